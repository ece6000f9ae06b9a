package doc

import (
	"fmt"
	"slices"
	"strings"
)

// Table has columns and rows; the first column names the rows. A table without rows is not printed.
type Table struct {
	Caption string
	Columns []Column
	Rows    [][]string
	Tone    func(cell string) Tone // nil: no cell has a tone
	More    string                 // a line about omitted rows
	Classes []string               // class of each row on a page, for its style and for Filter
	Fit     bool                   // a terminal omits, and names, the last columns that do not fit
	Most    int                    // rows shown on a terminal with a width; 0: all
	Rest    string                 // where to find the other rows
	Figures bool                   // mostly numbers
	Sheet   bool                   // facts side by side: equal cells of a row are merged
}

// Column is one column of a table.
type Column struct {
	Name   string
	Group  string // a common heading over adjacent columns
	Right  bool   // aligned right
	Least  int    // minimum width on a terminal, with cells broken over lines; 0: it keeps its width
	Bars   []Bar  // one for each row, drawn on a terminal that has room for them; pages have a chart
	Meters []Bar  // one for each row, drawn on a page below the figure
	Wide   bool   // only for pages: a terminal has no room for it
	Detail bool   // left out of a short answer
}

// FigureColumns returns a first column that names the rows, and right-aligned columns of figures.
func FigureColumns(names ...string) []Column {
	all := make([]Column, len(names))
	for i, n := range names {
		all[i] = Column{Name: n, Right: i > 0}
	}
	return all
}

// Bar is a share of the longest bar, 0 to 1, and the position of a mark; 0: none.
type Bar struct{ Share, Mark float64 }

// Percent returns the share in percent, for a style.
func (b Bar) Percent() float64 { return 100 * b.Share }

// MarkPercent returns the position of the mark in percent, for a style.
func (b Bar) MarkPercent() float64 { return 100 * b.Mark }

// Tone is the meaning of a cell's colour.
type Tone string

// Tones are classes of the page's style.
const (
	ToneNone Tone = ""
	ToneOpen Tone = "open"
	ToneGood Tone = "good"
	ToneWarn Tone = "low"
	ToneBad  Tone = "bad"
)

// ToneOf returns the tone of a cell.
func (t Table) ToneOf(cell string) Tone {
	if t.Tone == nil {
		return ToneNone
	}
	return t.Tone(cell)
}

// ClassOf returns the class of a cell on a page, with "none" for a cell without a value.
func (t Table) ClassOf(column int, cell string) string {
	class := string(t.ToneOf(cell))
	if t.Columns[column].Right {
		class = strings.TrimSpace("n " + class)
	}
	if cell == "-" {
		class = strings.TrimSpace(class + " none")
	}
	return class
}

// RowClass returns the class of a row on a page.
func (t Table) RowClass(row int) string {
	if row < len(t.Classes) {
		return t.Classes[row]
	}
	return ""
}

// WithoutEmpty drops columns in which every cell is "-".
func (t Table) WithoutEmpty() Table {
	return t.with(func(i int) bool {
		return i == 0 || t.Columns[i].Bars != nil || slices.ContainsFunc(t.Rows, func(r []string) bool { return r[i] != "-" })
	})
}

// Brief drops the columns of details.
func (t Table) Brief() Table { return t.with(func(i int) bool { return !t.Columns[i].Detail }) }

// For keeps the columns for an audience.
func (t Table) For(a Audience) Table {
	t = t.with(func(i int) bool {
		c := t.Columns[i]
		return a == Terminal && !c.Wide || a != Terminal && c.Bars == nil
	})
	if a == HTML {
		return t
	}
	for i, c := range t.Columns {
		if a == Markdown {
			t.Columns[i].Name = strings.TrimSpace(c.Group + " " + c.Name)
		}
	}
	for _, r := range t.Rows {
		for i := range r {
			r[i] = flat(r[i])
		}
	}
	return t
}

// with keeps some of the columns.
func (t Table) with(keep func(column int) bool) Table {
	out := t
	out.Columns, out.Rows = nil, nil
	var kept []int
	for i, c := range t.Columns {
		if keep(i) {
			kept, out.Columns = append(kept, i), append(out.Columns, c)
		}
	}
	for _, r := range t.Rows {
		var cells []string
		for _, i := range kept {
			cells = append(cells, r[i])
		}
		out.Rows = append(out.Rows, cells)
	}
	return out
}

// First keeps the first most rows, and counts the omitted ones.
func (t Table) First(most int) Table { return t.Cut(most, ", see the JSON document") }

// Cut keeps the first most rows, and counts the omitted ones before some words.
func (t Table) Cut(most int, words string) Table {
	if n := len(t.Rows) - most; n > 0 {
		t.Rows, t.More = t.Rows[:most], fmt.Sprintf("and %d more%s", n, words)
	}
	return t
}

// Same returns the common value of all cells of a row but the first; "" if they differ.
func (t Table) Same(row []string) string {
	if !t.Sheet || len(row) < 3 || slices.ContainsFunc(row[1:], func(v string) bool { return v != row[1] }) {
		return ""
	}
	return row[1]
}

// Unknown reports whether a text is a reason why something is unknown, not a value.
func Unknown(s string) bool { return strings.HasPrefix(s, NotChecked) }

// NotChecked begins the text of an unknown value.
const NotChecked = "not checked"

// Class returns the class of a cell on a page.
func (c MatrixCell) Class() string {
	class := string(c.Tone)
	if c.Heat > 0 {
		class = strings.TrimSpace(fmt.Sprintf("h%d %s", c.Heat, class))
	}
	return class
}

// Group is a common heading over adjacent columns.
type Group struct {
	Name string
	Span int
}

// Groups returns the headings over the columns; nil if no column has one.
func (t Table) Groups() (all []Group) {
	named := false
	for i, c := range t.Columns {
		if named = named || c.Group != ""; i > 0 && c.Group == t.Columns[i-1].Group {
			all[len(all)-1].Span++
		} else {
			all = append(all, Group{c.Group, 1})
		}
	}
	if !named {
		return nil
	}
	return all
}

// Meter returns the bar below a figure; nil if there is none.
func (t Table) Meter(column, row int) *Bar {
	if m := t.Columns[column].Meters; row < len(m) && m[row].Share > 0 {
		return &m[row]
	}
	return nil
}

// Marks within a cell of several lines. Clean removes them from foreign text.
const (
	typedMark = "\x01"
	typedNext = "\x02"
)

// Lines returns a cell of several lines.
func Lines(lines ...string) string { return strings.Join(lines, "\n") }

// Typed returns commands as a line of a cell that a page offers to copy; nil without a command.
func Typed(commands ...string) []string {
	if len(commands) == 0 {
		return nil
	}
	return []string{typedMark + strings.Join(commands, typedNext)}
}

// Commands returns the commands of a line from Typed; "" for other lines.
func Commands(line string) string {
	rest, ok := strings.CutPrefix(line, typedMark)
	if !ok {
		return ""
	}
	return strings.ReplaceAll(rest, typedNext, "\n")
}

// flat returns a cell in one line.
func flat(cell string) string {
	return strings.NewReplacer("\n", "; ", typedMark, "", typedNext, "; ").Replace(cell)
}
