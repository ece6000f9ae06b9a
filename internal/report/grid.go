package report

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// grid is a table, for a terminal and for a page. Its first column names the rows.
type grid struct {
	Caption string
	Columns []column
	Rows    [][]string
	Tone    func(cell string) tone // nil: none has one
	More    string                 // what it leaves out
}

// tone is what a cell says of itself by its colour.
type tone string

// Tones are classes of the page's style.
const (
	toneNone tone = ""
	toneOpen tone = "open"
	toneGood tone = "good"
	toneWarn tone = "low"
	toneBad  tone = "bad"
)

// code is the tone as a colour of the terminal.
func (t tone) code() string {
	return map[tone]string{toneGood: green, toneWarn: yellow, toneBad: red}[t]
}

// ToneOf is the tone of a cell, for the page's template.
func (g grid) ToneOf(cell string) tone {
	if g.Tone == nil {
		return toneNone
	}
	return g.Tone(cell)
}

// ClassOf is the class of a cell on a page; "none" is of one without a value.
func (g grid) ClassOf(column int, cell string) string {
	class := string(g.ToneOf(cell))
	if g.Columns[column].Right {
		class = strings.TrimSpace("n " + class)
	}
	if cell == "-" {
		class = strings.TrimSpace(class + " none")
	}
	return class
}

// withoutEmpty drops columns of which no row has anything but "-".
func (g grid) withoutEmpty() grid {
	keep := make([]bool, len(g.Columns))
	for i := range g.Columns {
		keep[i] = i == 0 || slices.ContainsFunc(g.Rows, func(r []string) bool { return r[i] != "-" })
	}
	out := grid{Caption: g.Caption, Tone: g.Tone, More: g.More}
	for i, c := range g.Columns {
		if keep[i] {
			out.Columns = append(out.Columns, c)
		}
	}
	for _, r := range g.Rows {
		var kept []string
		for i, s := range r {
			if keep[i] {
				kept = append(kept, s)
			}
		}
		out.Rows = append(out.Rows, kept)
	}
	return out
}

// firstRows bounds a table, and says how many it leaves out.
func (g grid) firstRows(most int) grid {
	if n := len(g.Rows) - most; n > 0 {
		g.Rows, g.More = g.Rows[:most], fmt.Sprintf("and %d more, see the JSON document", n)
	}
	return g
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
	if g.More != "" {
		p.broken("", gridIndent, g.More)
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

// shrink takes from the widest column that can give, until all fit or none
// can: heads that are wider than their cells give first.
func (g grid) shrink(widths []int, room int) {
	cells, least := make([]int, len(widths)), make([]int, len(widths))
	total := gridIndent - gridGap
	for i, c := range g.Columns {
		for _, r := range g.Rows {
			cells[i] = max(cells[i], utf8.RuneCountInString(r[i]))
		}
		for word := range strings.FieldsSeq(c.Name) {
			cells[i] = max(cells[i], utf8.RuneCountInString(word))
		}
		if least[i] = cells[i]; c.Least > 0 {
			least[i] = min(cells[i], max(c.Least, g.longestWord(i)))
		}
		total += widths[i] + gridGap
	}
	for _, floor := range [][]int{cells, least} {
		for total > room && takeOne(widths, floor) {
			total--
		}
	}
}

// wholeWord is how long a word may be that is never cut to make room.
const wholeWord = 16

// longestWord of a column, its head included, of those that are never cut.
func (g grid) longestWord(i int) (longest int) {
	take := func(text string) {
		for word := range strings.FieldsSeq(text) {
			if n := utf8.RuneCountInString(word); n <= wholeWord {
				longest = max(longest, n)
			}
		}
	}
	take(g.Columns[i].Name)
	for _, r := range g.Rows {
		take(r[i])
	}
	return longest
}

// takeOne narrows the widest column that is above its floor.
func takeOne(widths, floor []int) bool {
	widest := -1
	for i, w := range widths {
		if w > floor[i] && (widest < 0 || w > widths[widest]) {
			widest = i
		}
	}
	if widest >= 0 {
		widths[widest]--
	}
	return widest >= 0
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
	heads := make([][]string, len(g.Columns))
	height := 1
	for _, i := range part {
		heads[i] = breakCell(g.Columns[i].Name, widths[i])
		height = max(height, len(heads[i]))
	}
	for _, i := range part { // heads end where the table begins
		heads[i] = append(make([]string, height-len(heads[i])), heads[i]...)
	}
	p.gridLines(g, widths, part, heads, func(int) string { return bold })
	for _, r := range g.Rows {
		cells := make([][]string, len(r))
		for _, i := range part {
			cells[i] = breakCell(r[i], widths[i])
		}
		p.gridLines(g, widths, part, cells, func(i int) string { return g.ToneOf(r[i]).code() })
	}
}

// painted is paint, but for no colour.
func (p *printer) painted(code, s string) string {
	if code == "" {
		return s
	}
	return p.paint(code, s)
}

// gridLines prints a row of broken cells, over as many lines as the longest needs.
func (p *printer) gridLines(g grid, widths, part []int, cells [][]string, code func(column int) string) {
	height := 1
	for _, i := range part {
		height = max(height, len(cells[i]))
	}
	for n := range height {
		var line strings.Builder
		blank := gridIndent // spaces that wait for something to follow
		for _, i := range part {
			text := ""
			if n < len(cells[i]) {
				text = cells[i][n]
			}
			room := widths[i] - utf8.RuneCountInString(text)
			if g.Columns[i].Right {
				blank, room = blank+room, 0
			}
			if text != "" {
				line.WriteString(strings.Repeat(" ", blank))
				line.WriteString(p.painted(code(i), text))
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
