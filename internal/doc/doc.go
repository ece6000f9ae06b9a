// Package doc is the block model of reports: headings, tables, lists, charts, as typed values without any markup.
//
// A subject of package report makes []Block of a measure.Document once. The printers doc/text (terminal), doc/html (page) and
// doc/markdown print the same blocks, so that the three faces cannot drift. Every string in a block is ready to be read by a
// person: foreign text went through Clean. Escaping belongs to the printers alone.
//
// A new kind of block is a struct here with a Print method, and one more method of Printer. The three printers then no longer
// compile until each of them prints it. First try to say it with the kinds there are.
package doc

import "html/template"

// Block is one part of a report.
type Block interface{ Print(Printer) }

// Printer is one face: it has a method for each kind of block.
type Printer interface {
	Section(Section)
	Para(Para)
	List(List)
	Code(Code)
	Table(Table)
	Pairs(Pairs)
	Charts(Charts)
	Details(Details)
	Only(Only)
}

// Print has a printer print blocks, one after the other.
func Print(p Printer, blocks []Block) {
	for _, b := range blocks {
		b.Print(p)
	}
}

// Section is a part with a title. A terminal leaves the title out where the first block of the body has a caption.
type Section struct {
	Title string
	Body  []Block
}

// Para is a paragraph.
type Para struct{ Text string }

// List is lines of equal rank. Notes are quieter than what they explain.
type List struct {
	Lines []string
	Notes bool
}

// Code is lines to be typed or pasted as they are.
type Code struct{ Lines []string }

// Pairs are names with their values.
type Pairs struct {
	Name string // caption
	Rows []Row
}

// Row is a name and its value.
type Row struct{ Name, Value string }

// Charts are drawings, on a page alone.
type Charts struct{ Charts []Chart }

// Chart is a drawing with its caption and legend.
type Chart struct {
	SVG     template.HTML // safe: our own elements and escaped text
	Caption string
	Legend  []Legend
}

// Legend is the sample of a line or colour, and what it stands for.
type Legend struct {
	Key  template.HTML
	Name string
}

// Details are folded on a page, have a heading in Markdown, and are left out on a terminal.
type Details struct {
	Title string
	Body  []Block
}

// Only is a body for some faces, where they have a reason to differ.
type Only struct {
	For  Audience
	Body []Block
}

// Audience is a set of faces.
type Audience int

// The faces. Pages have room for all there is.
const (
	Terminal Audience = 1 << iota
	HTML
	Markdown
	Pages = HTML | Markdown
)

// Print has the printer print the kind.
func (b Section) Print(p Printer) { p.Section(b) }

// Print has the printer print the kind.
func (b Para) Print(p Printer) { p.Para(b) }

// Print has the printer print the kind.
func (b List) Print(p Printer) { p.List(b) }

// Print has the printer print the kind.
func (b Code) Print(p Printer) { p.Code(b) }

// Print has the printer print the kind.
func (b Table) Print(p Printer) { p.Table(b) }

// Print has the printer print the kind.
func (b Pairs) Print(p Printer) { p.Pairs(b) }

// Print has the printer print the kind.
func (b Charts) Print(p Printer) { p.Charts(b) }

// Print has the printer print the kind.
func (b Details) Print(p Printer) { p.Details(b) }

// Print has the printer print the kind.
func (b Only) Print(p Printer) { p.Only(b) }
