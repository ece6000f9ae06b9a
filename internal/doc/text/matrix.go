package text

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"thru/internal/doc"
)

// noPair fills a place without a pair.
const noPair = "."

// Matrix prints the matrix in blocks of as many columns as fit. If names are longer than the figures, the
// column heads are numbers of hosts.
func (p *Printer) Matrix(m doc.Matrix) {
	width := 0
	for _, r := range m.Cells {
		for _, c := range r {
			width = max(width, utf8.RuneCountInString(c.Text))
		}
	}
	heads, rows, legend := m.Cols, m.Rows, ""
	if longest(m.Cols) > max(width, mostHead) {
		heads, rows, legend = numbered(m)
	}
	width = max(width, longest(heads))
	name := longest(rows)
	if room := p.Width - Indent - len(heads)*(width+1); name > room && room >= leastName {
		name = room // cut a name if that avoids a second block
	}
	name = min(name, max(leastName, p.Width/3))
	most := max(1, (p.Width-Indent-name)/(width+1))
	p.apart()
	for first := 0; first < len(heads); first += most {
		if first > 0 {
			p.WriteByte('\n')
		}
		p.matrixBlock(m, heads, rows, first, min(first+most, len(heads)), name, width)
	}
	p.Wrap("", 1, " ", m.Unit+"; "+m.Legend+"; "+noPair+" the host itself, or not in the plan")
	if legend != "" {
		p.Named("", nameWidth, "  names", legend)
	}
}

const (
	mostHead  = 6  // the longest name that can head a column
	leastName = 12 // width of the row names
)

// longest is the length of the longest of some texts.
func longest(texts []string) int {
	n := 0
	for _, s := range texts {
		n = max(n, utf8.RuneCountInString(s))
	}
	return n
}

// numbered gives each host a number: rows show it before the name, columns only the number. A common domain
// appears once in the legend.
func numbered(m doc.Matrix) (heads, rows []string, legend string) {
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

// commonDomain returns the domain, from its dot, that all names share; each name must be longer.
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

func (p *Printer) matrixBlock(m doc.Matrix, heads, rows []string, first, end, name, width int) {
	indent := strings.Repeat(" ", Indent)
	line := indent + strings.Repeat(" ", name)
	for _, h := range heads[first:end] {
		line += " " + fmt.Sprintf("%*s", width, h)
	}
	p.WriteString(p.Paint(Bold, line) + "\n")
	for i, r := range rows {
		line := indent + Pad(Shortened(r, name), name)
		for _, c := range m.Cells[i][first:end] {
			figure := cmp.Or(c.Text, noPair)
			line += " " + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(figure))) + p.Paint(ColourOf(c.Tone), figure)
		}
		p.WriteString(line + "\n")
	}
}

// Shortened cuts a long name in the middle, since the ends distinguish hosts.
func Shortened(s string, most int) string {
	r := []rune(s)
	if len(r) <= most {
		return s
	}
	tail := (most - 2) / 2
	return string(r[:most-2-tail]) + ".." + string(r[len(r)-tail:])
}
