package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"thru/internal/doc/text"
	"thru/internal/stat"
)

// matrix is the pairs of a set: senders down, receivers across.
type matrix struct {
	Unit       scale
	Rows, Cols []string // hosts
	Cells      [][]matrixCell
	Least      pairFigure // of those that have a figure
	Most       pairFigure
}

// matrixCell is what one pair carried. Text is empty where the plan has no such pair.
type matrixCell struct {
	Text string
	Heat int // 1 to 9, the greatest figure is 9; 0: no figure
	Tone tone
}

// Class is that of a cell on a page.
func (c matrixCell) Class() string {
	class := string(c.Tone)
	if c.Heat > 0 {
		class = strings.TrimSpace(fmt.Sprintf("h%d %s", c.Heat, class))
	}
	return class
}

// Bounds of a matrix, in hosts on a side.
const (
	leastPairs    = 4
	maxTextMatrix = 24
	maxPageMatrix = 100
	heats         = 9
)

// What stands for a pair without a figure.
const (
	cellFailed   = "fail"
	cellMissing  = "?"
	cellNoPair   = "."
	matrixLegend = "senders down, receivers across"
)

// newMatrix lays out the pairs of a set; nil where a list says more: fewer than
// two on a side, or most places empty.
func newMatrix(s *set) *matrix {
	m := &matrix{}
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
	m.order(row, col)
	m.Unit = scaleOf([]*set{s}, func(s *set) float64 { return greatestValue(s.values()) })
	m.Cells = make([][]matrixCell, len(m.Rows))
	for i := range m.Cells {
		m.Cells[i] = make([]matrixCell, len(m.Cols))
	}
	m.fill(s, row, col)
	for i := range m.Rows {
		m.Rows[i] = clean(m.Rows[i])
	}
	for i := range m.Cols {
		m.Cols[i] = clean(m.Cols[i])
	}
	return m
}

// order sorts the hosts of a side by their names, numbers in them by size, so
// that the diagonal is one.
func (m *matrix) order(row, col map[string]int) {
	slices.SortFunc(m.Rows, byName)
	slices.SortFunc(m.Cols, byName)
	for i, n := range m.Rows {
		row[n] = i
	}
	for i, n := range m.Cols {
		col[n] = i
	}
}

// byName orders names, with numbers in them by their size: "web2" before "web10".
func byName(a, b string) int {
	x, y := a, b
	for x != "" && y != "" {
		nx, ny := leadingDigits(x), leadingDigits(y)
		if nx != "" && ny != "" {
			if vx, vy := strings.TrimLeft(nx, "0"), strings.TrimLeft(ny, "0"); vx != vy {
				if len(vx) != len(vy) {
					return len(vx) - len(vy)
				}
				return strings.Compare(vx, vy)
			}
			x, y = x[len(nx):], y[len(ny):]
			continue
		}
		if x[0] != y[0] {
			return int(x[0]) - int(y[0])
		}
		x, y = x[1:], y[1:]
	}
	if x == "" && y == "" {
		return strings.Compare(a, b)
	}
	return len(x) - len(y)
}

func leadingDigits(s string) string {
	return s[:len(s)-len(strings.TrimLeft(s, "0123456789"))]
}

// fill enters the figures. One that is less than half of the middle one stands out.
func (m *matrix) fill(s *set, row, col map[string]int) {
	values := s.values()
	most, middle := greatestValue(values), stat.Median(values)
	for _, p := range s.Pairs {
		c := &m.Cells[row[p.From]][col[p.To]]
		switch {
		case p.Value != nil:
			c.Text = s.number(m.Unit, *p.Value)
			c.Heat = 1 + int(math.Round((heats-1)*min(max(*p.Value/max(most, 1e-9), 0), 1)))
			if *p.Value < middle/2 {
				c.Tone = toneWarn
			}
			if m.Least.Value == nil || *p.Value < *m.Least.Value {
				m.Least = p
			}
			if m.Most.Value == nil || *p.Value > *m.Most.Value {
				m.Most = p
			}
		case p.Failed != "":
			c.Text, c.Tone = cellFailed, toneBad
		default:
			c.Text = cellMissing
		}
		if p.Value != nil && p.Failed != "" {
			c.Tone = toneBad
		}
	}
}

// Legend says what the places without a figure mean.
func (m *matrix) Legend() string {
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

// pairMatrix prints it in blocks of as many columns as fit. Where names are
// longer than the figures, columns have the numbers of the hosts.
func (p *printer) pairMatrix(m *matrix) {
	width := 0
	for _, r := range m.Cells {
		for _, c := range r {
			width = max(width, utf8.RuneCountInString(c.Text))
		}
	}
	heads, rows, legend := m.Cols, m.Rows, ""
	if longest(m.Cols) > max(width, mostHead) {
		heads, rows, legend = m.numbered()
	}
	width = max(width, longest(heads))
	name := longest(rows)
	if room := p.Width - gridIndent - len(heads)*(width+1); name > room && room >= leastName {
		name = room // a name is cut where that spares a second block
	}
	name = min(name, max(leastName, p.Width/3))
	most := max(1, (p.Width-gridIndent-name)/(width+1))
	for first := 0; first < len(heads); first += most {
		if first > 0 {
			p.WriteByte('\n')
		}
		p.matrixBlock(m, heads, rows, first, min(first+most, len(heads)), name, width)
	}
	p.Wrap("", 1, " ", m.Unit.name+"; "+m.Legend()+"; "+cellNoPair+" itself, or not in the plan")
	if legend != "" {
		p.Named("  names", legend)
	}
}

const (
	mostHead  = 6  // a name as long as that can stand over a column
	leastName = 12 // columns for the names of the rows
)

// longest is the length of the longest of some texts.
func longest(texts []string) int {
	n := 0
	for _, s := range texts {
		n = max(n, utf8.RuneCountInString(s))
	}
	return n
}

// numbered gives each host a number: rows show it before the name, columns
// alone. A domain that all have in common stands once in the legend.
func (m *matrix) numbered() (heads, rows []string, legend string) {
	number := map[string]int{}
	domain := commonDomain(slices.Concat(m.Rows, m.Cols))
	digits := len(fmt.Sprint(len(m.Rows) + len(m.Cols)))
	for i, n := range m.Rows {
		number[n] = i + 1
		rows = append(rows, fmt.Sprintf("%*d %s", digits, i+1, strings.TrimSuffix(n, domain)))
	}
	var others []string
	for _, n := range m.Cols {
		if number[n] == 0 {
			number[n] = len(number) + 1
			others = append(others, fmt.Sprintf("%d %s", number[n], strings.TrimSuffix(n, domain)))
		}
		heads = append(heads, fmt.Sprint(number[n]))
	}
	if domain != "" {
		others = append(others, "all end in "+domain)
	}
	return heads, rows, strings.Join(others, ", ")
}

// commonDomain is the ending from a dot on that all names have, and something before it.
func commonDomain(names []string) string {
	_, common, ok := strings.Cut(names[0], ".")
	for ok {
		common = "." + common
		if !slices.ContainsFunc(names, func(n string) bool { return !strings.HasSuffix(n, common) || n == common }) {
			return common
		}
		_, common, ok = strings.Cut(common[1:], ".")
	}
	return ""
}

func (p *printer) matrixBlock(m *matrix, heads, rows []string, first, end, name, width int) {
	indent := strings.Repeat(" ", gridIndent)
	line := indent + strings.Repeat(" ", name)
	for _, h := range heads[first:end] {
		line += " " + fmt.Sprintf("%*s", width, h)
	}
	p.WriteString(p.Paint(bold, line) + "\n")
	for i, r := range rows {
		line := indent + pad(shortened(r, name), name)
		for _, c := range m.Cells[i][first:end] {
			figure := c.Text
			if figure == "" {
				figure = cellNoPair
			}
			line += " " + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(figure))) + p.Paint(text.ColourOf(c.Tone), figure)
		}
		p.WriteString(line + "\n")
	}
}

// shortened cuts a name that is too long in the middle: its ends tell hosts apart.
func shortened(s string, most int) string {
	r := []rune(s)
	if len(r) <= most {
		return s
	}
	tail := (most - 2) / 2
	return string(r[:most-2-tail]) + ".." + string(r[len(r)-tail:])
}
