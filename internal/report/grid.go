package report

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// grid is a table for a terminal. Its first column names the rows.
type grid struct {
	Columns []column
	Rows    [][]string
	Code    func(cell string) string // colour of a cell, "" for none; nil: no colours
}

// column is one column of a grid.
type column struct {
	Name  string
	Right bool // numbers end at the same place
	Least int  // columns that it can shrink to, its cells broken over lines; 0: it keeps its width
}

const (
	gridIndent = 2
	gridGap    = 2
)

// grid prints a table within the width: columns shrink first, and those that
// still find no room follow in a block below, with the names again.
func (p *printer) grid(g grid) {
	widths := g.widths()
	g.shrink(widths, p.width)
	for i, part := range g.parts(widths, p.width) {
		if i > 0 {
			p.out.WriteByte('\n')
		}
		p.gridPart(g, widths, part)
	}
}

// widths are those of the widest cells.
func (g grid) widths() []int {
	widths := make([]int, len(g.Columns))
	for i, c := range g.Columns {
		widths[i] = utf8.RuneCountInString(c.Name)
		for _, r := range g.Rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(r[i]))
		}
	}
	return widths
}

// shrink takes from the widest column that can give, until all fit or none can.
func (g grid) shrink(widths []int, room int) {
	total := gridIndent - gridGap
	for _, w := range widths {
		total += w + gridGap
	}
	for ; total > room; total-- {
		widest := -1
		for i, c := range g.Columns {
			if c.Least > 0 && widths[i] > c.Least && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		widths[widest]--
	}
}

// parts divides the columns into blocks that fit; each begins with the first column.
func (g grid) parts(widths []int, room int) (parts [][]int) {
	part, used := []int{0}, gridIndent+widths[0]
	for i := 1; i < len(widths); i++ {
		if used+gridGap+widths[i] > room && len(part) > 1 {
			parts = append(parts, part)
			part, used = []int{0}, gridIndent+widths[0]
		}
		part, used = append(part, i), used+gridGap+widths[i]
	}
	return append(parts, part)
}

func (p *printer) gridPart(g grid, widths, part []int) {
	head := make([]string, len(g.Columns))
	for i, c := range g.Columns {
		head[i] = c.Name
	}
	p.gridRow(g, widths, part, head, func(string) string { return bold })
	for _, r := range g.Rows {
		p.gridRow(g, widths, part, r, g.Code)
	}
}

// gridRow prints a row, over as many lines as its longest cell needs.
func (p *printer) gridRow(g grid, widths, part []int, cells []string, code func(string) string) {
	broken := make([][]string, len(cells))
	height := 1
	for _, i := range part {
		broken[i] = breakCell(cells[i], widths[i])
		height = max(height, len(broken[i]))
	}
	for n := range height {
		var line strings.Builder
		blank := gridIndent // spaces that wait for something to follow
		for _, i := range part {
			text := ""
			if n < len(broken[i]) {
				text = broken[i][n]
			}
			room := widths[i] - utf8.RuneCountInString(text)
			if g.Columns[i].Right {
				blank, room = blank+room, 0
			}
			if text != "" {
				line.WriteString(strings.Repeat(" ", blank))
				if code != nil {
					text = p.paint(code(cells[i]), text)
				}
				line.WriteString(text)
				blank = 0
			}
			blank += room + gridGap
		}
		fmt.Fprintln(&p.out, line.String())
	}
}

// breakCell breaks a cell at its spaces, and words that are longer than the column anywhere.
func breakCell(text string, width int) []string {
	if utf8.RuneCountInString(text) <= width || width < 1 {
		return []string{text}
	}
	var out []string
	for _, line := range lines(text, width, width) {
		rest := []rune(line)
		for len(rest) > width {
			out, rest = append(out, string(rest[:width])), rest[width:]
		}
		out = append(out, string(rest))
	}
	return out
}

// within prints a name and a text that stays within the width, also where a
// word of it is longer: names of hosts can be.
func (p *printer) within(name, text string) {
	for i, line := range breakCell(text, p.width-nameWidth-1) {
		if i > 0 {
			name = ""
		}
		fmt.Fprintln(&p.out, strings.TrimRight(pad(name, nameWidth+1)+line, " "))
	}
}
