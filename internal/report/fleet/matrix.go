package fleet

import (
	"math"
	"slices"

	"thru/internal/doc"
	"thru/internal/report/result"
	"thru/internal/stat"
)

// Limits of a matrix, in hosts on a side.
const (
	leastPairs    = 4
	maxTextMatrix = 24
	maxPageMatrix = 100
	heats         = 9
)

// Texts for a pair without a figure.
const (
	cellFailed   = "fail"
	cellMissing  = "?"
	matrixLegend = "senders down, receivers across"
)

// newMatrix returns the matrix of a set's pairs; nil if a list is better: fewer than two hosts on a side, or
// most cells empty.
func newMatrix(s *Set) *doc.Matrix {
	m := &doc.Matrix{}
	row, col := map[string]int{}, map[string]int{}
	for _, p := range s.Pairs {
		if _, ok := row[p.From]; !ok {
			row[p.From] = len(m.Rows)
			m.Rows = append(m.Rows, p.From)
		}
		if _, ok := col[p.To]; !ok {
			col[p.To] = len(m.Cols)
			m.Cols = append(m.Cols, p.To)
		}
	}
	if len(m.Rows) < 2 || len(m.Cols) < 2 || len(s.Pairs) < leastPairs || 3*len(s.Pairs) < len(m.Rows)*len(m.Cols) {
		return nil
	}
	orderMatrix(m, row, col)
	in := scaleOf([]*Set{s}, func(s *Set) float64 { return greatestValue(s.values()) })
	m.Cells = make([][]doc.MatrixCell, len(m.Rows))
	for i := range m.Cells {
		m.Cells[i] = make([]doc.MatrixCell, len(m.Cols))
	}
	fillMatrix(m, s, in, row, col)
	m.Unit, m.Legend = in.Name, legendOf(m)
	for i := range m.Rows {
		m.Rows[i] = doc.Clean(m.Rows[i])
	}
	for i := range m.Cols {
		m.Cols[i] = doc.Clean(m.Cols[i])
	}
	return m
}

// orderMatrix sorts the hosts of both sides by name, with numbers in numeric order, so that the diagonal is
// straight.
func orderMatrix(m *doc.Matrix, row, col map[string]int) {
	slices.SortFunc(m.Rows, result.ByName)
	slices.SortFunc(m.Cols, result.ByName)
	for i, n := range m.Rows {
		row[n] = i
	}
	for i, n := range m.Cols {
		col[n] = i
	}
}

// fillMatrix enters the figures. It marks those below half the median.
func fillMatrix(m *doc.Matrix, s *Set, in doc.Scale, row, col map[string]int) {
	values := s.values()
	most, middle := greatestValue(values), stat.Median(values)
	for _, p := range s.Pairs {
		c := &m.Cells[row[p.From]][col[p.To]]
		switch {
		case p.Value != nil:
			c.Text = s.number(in, *p.Value)
			c.Heat = 1 + int(math.Round((heats-1)*min(max(*p.Value/max(most, 1e-9), 0), 1)))
			if *p.Value < middle/2 {
				c.Tone = doc.ToneWarn
			}
		case p.Failed != "":
			c.Text, c.Tone = cellFailed, doc.ToneBad
		default:
			c.Text = cellMissing
		}
		if p.Value != nil && p.Failed != "" {
			c.Tone = doc.ToneBad
		}
	}
}

// legendOf explains the cells without a figure.
func legendOf(m *doc.Matrix) string {
	legend, failed, missing := matrixLegend, false, false
	for _, r := range m.Cells {
		for _, c := range r {
			failed, missing = failed || c.Text == cellFailed, missing || c.Text == cellMissing
		}
	}
	if failed {
		legend += "; " + cellFailed + " failed"
	}
	if missing {
		legend += "; " + cellMissing + " not measured"
	}
	return legend
}
