package doc

import (
	"fmt"
	"slices"
	"strings"
)

// Table has columns and rows. Its first column names the rows; one without rows is not printed.
type Table struct {
	Caption string
	Columns []Column
	Rows    [][]string
	Tone    func(cell string) Tone // nil: none has one
	More    string                 // what it leaves out
	Classes []string               // of each row on a page, for its style and for Filter
	Fit     bool                   // a terminal leaves out the last columns that have no room, and names them
	Most    int                    // rows that a terminal of some width shows; 0: all
	Rest    string                 // where the others are
	Figures bool                   // many numbers, and nothing else
	Sheet   bool                   // facts of things side by side: what is the same of all is one cell
}

// Column is one column of a table.
type Column struct {
	Name   string
	Group  string // of columns: a name over them
	Right  bool   // numbers end at the same place
	Least  int    // columns of a terminal that it can shrink to, its cells broken over lines; 0: it keeps its width
	Bars   []Bar  // one a row, drawn on a terminal that has room for them; pages have a chart
	Meters []Bar  // one a row, drawn on a page below the figure
	Wide   bool   // for pages alone: a terminal has no room for it
}

// FigureColumns name the rows, and then figures.
func FigureColumns(names ...string) []Column {
	all := make([]Column, len(names))
	for i, n := range names {
		all[i] = Column{Name: n, Right: i > 0}
	}
	return all
}

// Bar is a share of the longest one, 0 to 1, and where a mark stands in it; 0: none.
type Bar struct{ Share, Mark float64 }

// Percent is the share for a style.
func (b Bar) Percent() float64 { return 100 * b.Share }

// MarkPercent is the place of the mark for a style.
func (b Bar) MarkPercent() float64 { return 100 * b.Mark }

// Tone is what a cell says of itself by its colour.
type Tone string

// Tones are classes of the page's style.
const (
	ToneNone Tone = ""
	ToneOpen Tone = "open"
	ToneGood Tone = "good"
	ToneWarn Tone = "low"
	ToneBad  Tone = "bad"
)

// ToneOf is the tone of a cell.
func (t Table) ToneOf(cell string) Tone {
	if t.Tone == nil {
		return ToneNone
	}
	return t.Tone(cell)
}

// ClassOf is the class of a cell on a page; "none" is of one without a value.
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

// RowClass is the class of a row on a page.
func (t Table) RowClass(row int) string {
	if row < len(t.Classes) {
		return t.Classes[row]
	}
	return ""
}

// WithoutEmpty drops columns of which no row has anything but "-".
func (t Table) WithoutEmpty() Table {
	return t.with(func(i int) bool {
		return i == 0 || t.Columns[i].Bars != nil || slices.ContainsFunc(t.Rows, func(r []string) bool { return r[i] != "-" })
	})
}

// For has the columns that some faces print.
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

// First bounds a table, and says how many rows it leaves out.
func (t Table) First(most int) Table {
	if n := len(t.Rows) - most; n > 0 {
		t.Rows, t.More = t.Rows[:most], fmt.Sprintf("and %d more, see the JSON document", n)
	}
	return t
}

// Same is the value of all columns of a row but its name, where it is one; "" elsewhere.
func (t Table) Same(row []string) string {
	if !t.Sheet || len(row) < 3 || slices.ContainsFunc(row[1:], func(v string) bool { return v != row[1] }) {
		return ""
	}
	return row[1]
}

// Unknown tells a reason why something is not known from a value.
func Unknown(s string) bool { return strings.HasPrefix(s, NotChecked) }

// NotChecked begins what is said instead of a value.
const NotChecked = "not checked"

// Class is that of a cell on a page.
func (c MatrixCell) Class() string {
	class := string(c.Tone)
	if c.Heat > 0 {
		class = strings.TrimSpace(fmt.Sprintf("h%d %s", c.Heat, class))
	}
	return class
}

// Group is a name over neighbouring columns.
type Group struct {
	Name string
	Span int
}

// Groups are the names over the columns; nil where no column has one.
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

// Meter is the bar below a figure; nil where there is none.
func (t Table) Meter(column, row int) *Bar {
	if m := t.Columns[column].Meters; row < len(m) && m[row].Share > 0 {
		return &m[row]
	}
	return nil
}

// Marks within a cell of several lines. Clean leaves none of them in foreign text.
const (
	typedMark = "\x01"
	typedNext = "\x02"
)

// Lines is a cell of several lines.
func Lines(lines ...string) string { return strings.Join(lines, "\n") }

// Typed are commands as a line of a cell, to be copied from a page; none without a command.
func Typed(commands ...string) []string {
	if len(commands) == 0 {
		return nil
	}
	return []string{typedMark + strings.Join(commands, typedNext)}
}

// Commands are those of a line that Typed has made; "" of others.
func Commands(line string) string {
	rest, ok := strings.CutPrefix(line, typedMark)
	if !ok {
		return ""
	}
	return strings.ReplaceAll(rest, typedNext, "\n")
}

// flat is a cell in one line.
func flat(cell string) string {
	return strings.NewReplacer("\n", "; ", typedMark, "", typedNext, "; ").Replace(cell)
}
