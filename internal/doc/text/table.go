package text

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"thru/internal/doc"
)

// Indent of a table, and gap between its columns.
const (
	Indent = 2
	gap    = 2
)

// Limits of a bar, in columns.
const (
	mostBar  = 32
	leastBar = 8
)

// Table prints a table below its caption.
func (p *Printer) Table(t doc.Table) {
	if len(t.Rows) == 0 {
		return
	}
	p.apart()
	if t.Caption != "" {
		p.Broken(Bold, 0, t.Caption)
	}
	p.Grid(t)
}

// Grid prints a table without its caption, within the width: columns shrink first, and those that still do
// not fit follow in a block below that repeats the names.
func (p *Printer) Grid(t doc.Table) {
	if n := len(t.Rows) - t.Most; t.Most > 0 && n > 0 && !p.Whole {
		t.Rows, t.More = t.Rows[:t.Most], fmt.Sprintf("and %d more%s", n, doc.Prefixed(": ", t.Rest))
	}
	if t = drawn(t.For(doc.Terminal), p.Width); t.Fit {
		t = fitting(t, p.Width)
	}
	widths := widthsOf(t)
	shrink(t, widths, p.Width)
	for i, part := range parts(t, widths, p.Width) {
		if i > 0 {
			p.WriteByte('\n')
		}
		p.gridPart(t, widths, part)
	}
	if t.More != "" {
		p.Broken("", Indent, t.More)
	}
}

// fitting omits, and names, the last columns of a table that do not fit.
func fitting(t doc.Table, room int) doc.Table {
	const least = 3 // columns that are never omitted
	var left []string
	for len(t.Columns) > least {
		widths := widthsOf(t)
		shrink(t, widths, room)
		if len(parts(t, widths, room)) == 1 {
			break
		}
		last := len(t.Columns) - 1
		left = append(left, t.Columns[last].Name)
		t.Columns = t.Columns[:last]
		rows := make([][]string, len(t.Rows))
		for i, r := range t.Rows {
			rows[i] = r[:last]
		}
		t.Rows = rows
	}
	if slices.Reverse(left); len(left) > 0 {
		t.More = strings.TrimPrefix(t.More+"; columns without room: "+strings.Join(left, ", "), "; ")
	}
	return t
}

// Columns prints cells side by side, each broken at spaces to its width.
func (p *Printer) Columns(widths []int, cells []string) {
	broken := make([][]string, len(cells))
	height := 0
	for i, c := range cells {
		broken[i] = Lines(c, widths[i], widths[i])
		height = max(height, len(broken[i]))
	}
	for n := range height {
		line := ""
		for i, b := range broken {
			text := ""
			if n < len(b) {
				text = b[n]
			}
			line += Pad(text, widths[i]) + "  "
		}
		fmt.Fprintln(p, strings.TrimRight(line, " "))
	}
}

// drawn converts the bars of a table to text if there is room for them, and removes empty columns.
func drawn(t doc.Table, width int) doc.Table {
	at := slices.IndexFunc(t.Columns, func(c doc.Column) bool { return c.Bars != nil })
	if at < 0 {
		return t
	}
	bars := t.Columns[at].Bars
	t.Columns = slices.Clone(t.Columns)
	t.Columns[at].Bars = nil
	short := t.WithoutEmpty() // without the bars
	widths := widthsOf(short)
	shrink(short, widths, 0)
	room := width - Indent
	for _, n := range widths {
		room -= n + gap
	}
	if room = min(room, mostBar); room < leastBar {
		return short
	}
	rows := make([][]string, len(t.Rows))
	for i, r := range t.Rows {
		rows[i] = slices.Clone(r)
		if b := bars[i]; b.Share > 0 {
			rows[i][at] = barText(b, room)
		}
	}
	t.Rows = rows
	return t.WithoutEmpty()
}

// barText returns a bar as text, with a mark at the ceiling.
func barText(b doc.Bar, width int) string {
	n := int(math.Round(b.Share * float64(width)))
	if b.Share > 0 {
		n = max(n, 1)
	}
	bar := []rune(strings.Repeat("█", n) + strings.Repeat(" ", width-n))
	if at := int(math.Round(b.Mark*float64(width))) - 1; b.Mark > 0 && b.Mark < 1 && at >= n {
		bar[at] = '|'
	}
	return strings.TrimRight(string(bar), " ")
}

// widthsOf returns the width of each column's widest cell.
func widthsOf(t doc.Table) []int {
	widths := make([]int, len(t.Columns))
	for i, c := range t.Columns {
		widths[i] = utf8.RuneCountInString(c.Name)
		for _, r := range t.Rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(r[i]))
		}
	}
	return widths
}

// shrink narrows the widest column that can shrink until all fit or none can: heads wider than their cells
// shrink first.
func shrink(t doc.Table, widths []int, room int) {
	cells, least := make([]int, len(widths)), make([]int, len(widths))
	total := Indent - gap
	for i, c := range t.Columns {
		for _, r := range t.Rows {
			cells[i] = max(cells[i], utf8.RuneCountInString(r[i]))
		}
		for word := range strings.FieldsSeq(c.Name) {
			cells[i] = max(cells[i], utf8.RuneCountInString(word))
		}
		if least[i] = cells[i]; c.Least > 0 {
			least[i] = min(cells[i], max(c.Least, longestWord(t, i)))
		}
		total += widths[i] + gap
	}
	for _, floor := range [][]int{cells, least} {
		for total > room && takeOne(widths, floor) {
			total--
		}
	}
}

// wholeWord is the longest word that is never cut to make room.
const wholeWord = 16

// longestWord returns the longest word of a column, including its head, among those that are never cut.
func longestWord(t doc.Table, column int) (longest int) {
	take := func(text string) {
		for word := range strings.FieldsSeq(text) {
			if n := utf8.RuneCountInString(word); n <= wholeWord {
				longest = max(longest, n)
			}
		}
	}
	take(t.Columns[column].Name)
	for _, r := range t.Rows {
		take(r[column])
	}
	return longest
}

// takeOne narrows the widest column above its floor.
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

// parts divides the columns into blocks that fit; each begins with the first column. A group stays together.
func parts(t doc.Table, widths []int, room int) (parts [][]int) {
	part, used := []int{0}, Indent+widths[0]
	for i := 1; i < len(widths); i++ {
		need := gap + widths[i]
		for j := i + 1; j < len(widths) && grouped(t, i, j) && !grouped(t, i-1, i); j++ {
			need += gap + widths[j]
		}
		if used+need > room && len(part) > 1 {
			parts = append(parts, part)
			part, used = []int{0}, Indent+widths[0]
		}
		part, used = append(part, i), used+gap+widths[i]
	}
	return append(parts, part)
}

// grouped reports whether two columns have a common heading.
func grouped(t doc.Table, a, b int) bool {
	return t.Columns[a].Group != "" && t.Columns[a].Group == t.Columns[b].Group
}

// groupLine prints the headings over groups of columns.
func (p *Printer) groupLine(t doc.Table, widths, part []int) {
	line, at := "", Indent
	for n, i := range part {
		if n == 0 || !grouped(t, part[n-1], i) {
			line = Pad(line, at) + t.Columns[i].Group
		}
		at += widths[i] + gap
	}
	if strings.TrimSpace(line) != "" {
		p.WriteString(p.Paint(Bold, strings.TrimRight(line, " ")) + "\n")
	}
}

func (p *Printer) gridPart(t doc.Table, widths, part []int) {
	p.groupLine(t, widths, part)
	heads := make([][]string, len(t.Columns))
	height := 1
	for _, i := range part {
		heads[i] = Cell(t.Columns[i].Name, widths[i])
		height = max(height, len(heads[i]))
	}
	for _, i := range part { // align the heads with the table
		heads[i] = append(make([]string, height-len(heads[i])), heads[i]...)
	}
	p.gridLines(t, widths, part, heads, func(int) string { return Bold })
	for _, r := range t.Rows {
		cells := make([][]string, len(r))
		for _, i := range part {
			cells[i] = Cell(r[i], widths[i])
		}
		p.gridLines(t, widths, part, cells, func(i int) string { return ColourOf(t.ToneOf(r[i])) })
	}
}

// gridLines prints a row of broken cells, over as many lines as the longest needs.
func (p *Printer) gridLines(t doc.Table, widths, part []int, cells [][]string, code func(column int) string) {
	height := 1
	for _, i := range part {
		height = max(height, len(cells[i]))
	}
	for n := range height {
		var line strings.Builder
		blank := Indent // spaces to print before the next text
		for _, i := range part {
			text := ""
			if n < len(cells[i]) {
				text = cells[i][n]
			}
			room := widths[i] - utf8.RuneCountInString(text)
			if t.Columns[i].Right {
				blank, room = blank+room, 0
			}
			if text != "" {
				line.WriteString(strings.Repeat(" ", blank))
				line.WriteString(p.Paint(code(i), text))
				blank = 0
			}
			blank += room + gap
		}
		fmt.Fprintln(p, line.String())
	}
}
