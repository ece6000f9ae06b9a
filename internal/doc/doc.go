// Package doc is the block model of reports: headings, tables, lists, charts, as typed values without any markup.
//
// A subject of package report makes []Block of a measure.Document once. The printers doc/text (terminal), doc/html (page) and
// doc/markdown print the same blocks, so that the three faces cannot drift. Every string in a block is ready to be read by a
// person: foreign text went through Clean. Escaping belongs to the printers alone.
//
// A new kind of block is a struct here with the methods Print and Empty, and one more method of Printer. The three printers then no longer
// compile until each of them prints it. First try to say it with the kinds there are.
package doc

import (
	"html/template"
	"slices"
)

// Block is one part of a report. One that is empty for a face is not printed there.
type Block interface {
	Print(Printer)
	Empty(Audience) bool
}

// Printer is one face: it has a method for each kind of block.
type Printer interface {
	Face() Audience
	Section(Section)
	Para(Para)
	List(List)
	Code(Code)
	Table(Table)
	Matrix(Matrix)
	Pairs(Pairs)
	Charts(Charts)
	Bars(Bars)
	Details(Details)
	SideBySide(SideBySide)
	Filter(Filter)
	Card(Card)
	Notice(Notice)
	Brief(Brief)
}

// Print has a printer print blocks, one after the other.
func Print(p Printer, blocks []Block) {
	for _, b := range blocks {
		if !b.Empty(p.Face()) {
			b.Print(p)
		}
	}
}

// Report is a whole one: what stands around its blocks.
type Report struct {
	Command string // "thru test"
	When    string
	Answer  string   // what a person would say first
	More    []string // what goes on with it
	Tone    Tone     // of the answer
	Body    []Block
	Foot    string // who made it
	Signed  *Signature
	Kept    template.HTML // of a page: the document itself, read back by thru report
}

// Signature is what a page says of the one who signs it. The signature itself
// stands behind the page, over all of its bytes.
type Signature struct {
	Host   string // name of the host whose key it is
	Key    string // public key, as the host prints it
	Verify string // command that checks it
}

// Clean is the signature made safe to print.
func (s *Signature) Clean() *Signature {
	if s == nil {
		return nil
	}
	return &Signature{Host: Clean(s.Host), Key: Clean(s.Key), Verify: Clean(s.Verify)}
}

// Section is a part with a title. A terminal leaves the title out where the first block of the body has a caption,
// unless it is a name that no caption says.
type Section struct {
	Title string
	Named bool
	Body  []Block
}

// Titled is a section of some blocks.
func Titled(title string, body ...Block) Section { return Section{Title: title, Body: body} }

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

// Bars are rates on one scale, as wide as a page; a terminal has them in tables.
type Bars struct {
	Caption string
	Legend  []Legend
	Rows    []BarRow
}

// BarRow is a bar with its name, and what is said of it.
type BarRow struct {
	Name, Value string
	Track       template.HTML // safe: our own elements
}

// Matrix is figures of pairs, coloured by their height.
type Matrix struct {
	Unit       string
	Legend     string // what its sides are, and what stands for no figure
	Rows, Cols []string
	Cells      [][]MatrixCell
}

// MatrixCell is one figure. Heat is 1 to 9, the greatest is 9; 0: none.
type MatrixCell struct {
	Text string
	Heat int
	Tone Tone
}

// Details are folded on a page, have a heading in Markdown, and are left out on a terminal.
type Details struct {
	Title string
	Note  string // quieter, behind the title
	Paper string // words on paper behind the title
	Brief bool   // on paper the title alone
	Open  bool
	Body  []Block
}

// Filter is a body of tables with classes of rows, which a reader of a page can choose.
type Filter struct {
	Choices []Choice
	Body    []Block
}

// Choice shows some rows alone; its class is known to the page's style.
type Choice struct{ Class, Text string }

// SideBySide are blocks side by side, where a page has the room.
type SideBySide struct{ Body []Block }

// Card is one thing with its facts: a finding, a change that was tried.
type Card struct {
	Name  string
	Badge string // what it came to: "certain", "kept"
	Where string
	Tone  Tone
	Text  string // in a sentence; "" where something before has said it
	Said  bool   // the answer of a terminal has the text
	Facts []Fact
}

// Fact is a line of a card: words, and what is to be typed.
type Fact struct {
	Name  string
	Lines []string
	Code  []string
	For   Audience // 0: all
}

// Say adds a fact; one without words is none.
func (c *Card) Say(name string, lines ...string) { c.Type(name, nil, lines...) }

// Type adds a fact with what is to be typed for it.
func (c *Card) Type(name string, code []string, lines ...string) {
	if lines = NonEmpty(lines...); len(lines)+len(code) > 0 {
		c.Facts = append(c.Facts, Fact{Name: name, Lines: lines, Code: code})
	}
}

// For says which faces have some of the facts.
func (c Card) For(a Audience, names ...string) Card {
	for i, f := range c.Facts {
		if slices.Contains(names, f.Name) {
			c.Facts[i].For = a
		}
	}
	return c
}

// Cards are the cards of a list.
func Cards[T any](all []T, card func(T) Card) (out []Block) {
	for _, x := range all {
		out = append(out, card(x))
	}
	return out
}

// Notice is lines that are not to be missed, such as warnings.
type Notice struct {
	Title string // of a page: "Warnings"
	Name  string // of each line on a terminal: "warning"; "": they stand below the title
	Tone  Tone
	Lines []string
}

// Brief is what a reader wants to know in the first minute; a terminal has the answer for it.
type Brief struct {
	Verdict *Verdict
	Rows    []BriefRow
}

// Verdict says whether what was measured is accepted.
type Verdict struct {
	Mark string // a sign, so that colour does not say it alone
	Word string // "accepted", "no verdict"
	Tone Tone
	Why  string
	Do   string   // what would tell
	But  []string // what makes it no more than an indication
	How  []string // commands that would give one
}

// BriefRow is an answer of a few lines.
type BriefRow struct {
	Name  string
	Items []BriefItem
}

// BriefItem is a line, and what to type for it.
type BriefItem struct {
	Text     string
	Commands []string
}

// Only is a body for some faces, where they have a reason to differ.
type Only struct {
	For  Audience
	Body []Block
}

// OnPages is a body that a terminal has no room for.
func OnPages(body ...Block) Only { return Only{For: Pages, Body: body} }

// OnTerminal is a body that pages say otherwise.
func OnTerminal(body ...Block) Only { return Only{For: Terminal, Body: body} }

// OnScreen is a body of drawings, which only a page in a browser has.
func OnScreen(body ...Block) Only { return Only{For: HTML, Body: body} }

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
func (b Matrix) Print(p Printer) { p.Matrix(b) }

// Print has the printer print the kind.
func (b Pairs) Print(p Printer) { p.Pairs(b) }

// Print has the printer print the kind.
func (b Charts) Print(p Printer) { p.Charts(b) }

// Print has the printer print the kind.
func (b Bars) Print(p Printer) { p.Bars(b) }

// Print has the printer print the kind.
func (b Details) Print(p Printer) { p.Details(b) }

// Print has the printer print the kind.
func (b SideBySide) Print(p Printer) { p.SideBySide(b) }

// Print has the printer print the kind.
func (b Card) Print(p Printer) { p.Card(b) }

// Print has the printer print the kind.
func (b Notice) Print(p Printer) { p.Notice(b) }

// Print has the printer print the kind.
func (b Brief) Print(p Printer) { p.Brief(b) }

// Print has the printer print the kind.
func (b Only) Print(p Printer) { Print(p, b.Body) }

func empty(a Audience, blocks []Block) bool {
	return !slices.ContainsFunc(blocks, func(b Block) bool { return !b.Empty(a) })
}

// Empty tells whether there is nothing to print.
func (b Section) Empty(a Audience) bool { return empty(a, b.Body) }

// Empty tells whether there is nothing to print.
func (b Para) Empty(Audience) bool { return b.Text == "" }

// Empty tells whether there is nothing to print.
func (b List) Empty(Audience) bool { return len(b.Lines) == 0 }

// Empty tells whether there is nothing to print.
func (b Code) Empty(Audience) bool { return len(b.Lines) == 0 }

// Empty tells whether there is nothing to print.
func (b Table) Empty(Audience) bool { return len(b.Rows) == 0 }

// Empty tells whether there is nothing to print.
func (b Matrix) Empty(Audience) bool { return len(b.Rows) == 0 }

// Empty tells whether there is nothing to print.
func (b Pairs) Empty(Audience) bool { return len(b.Rows) == 0 }

// Empty tells whether there is nothing to print.
func (b Charts) Empty(a Audience) bool { return a != HTML || len(b.Charts) == 0 }

// Empty tells whether there is nothing to print.
func (b Bars) Empty(a Audience) bool { return a != HTML || len(b.Rows) == 0 }

// Empty tells whether there is nothing to print.
func (b Details) Empty(a Audience) bool { return a == Terminal || empty(a, b.Body) }

// Print has the printer print the kind.
func (b Filter) Print(p Printer) { p.Filter(b) }

// Empty tells whether there is nothing to print.
func (b Filter) Empty(a Audience) bool { return empty(a, b.Body) }

// Empty tells whether there is nothing to print.
func (b SideBySide) Empty(a Audience) bool { return empty(a, b.Body) }

// Empty tells whether there is nothing to print.
func (b Card) Empty(Audience) bool { return b.Name == "" }

// Empty tells whether there is nothing to print.
func (b Notice) Empty(Audience) bool { return len(b.Lines) == 0 }

// Empty tells whether there is nothing to print.
func (b Brief) Empty(a Audience) bool { return a == Terminal || b.Verdict == nil && len(b.Rows) == 0 }

// Empty tells whether there is nothing to print.
func (b Only) Empty(a Audience) bool { return b.For&a == 0 || empty(a, b.Body) }
