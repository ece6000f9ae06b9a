// Package doc is the block model of reports: headings, tables, lists, charts, as typed values without markup.
//
// Each part of package report converts a measure.Document to []Block once. The printers doc/text (terminal),
// doc/html (page) and doc/markdown print the same blocks, so that the three formats agree. Every string in a
// block is ready to print: foreign text went through Clean. Only the printers escape.
//
// A new kind of block is a struct here with the methods Print and Empty, and one more method of Printer,
// which all three printers must then implement. Prefer the existing kinds.
package doc

import (
	"slices"

	"thru/internal/unit"
)

// Block is one part of a report. A printer skips a block that is empty for its audience.
type Block interface {
	Print(Printer)
	Empty(Audience) bool
}

// Printer is one output format: it has a method for each kind of block.
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

// Print prints blocks, one after the other.
func Print(p Printer, blocks []Block) {
	for _, b := range blocks {
		if !b.Empty(p.Face()) {
			b.Print(p)
		}
	}
}

// Report is a whole report: its blocks, with head and foot.
type Report struct {
	Command string // "thru test"
	When    string
	Answer  string   // the first line
	More    []string // further lines of the answer
	Tone    Tone     // of the answer
	Body    []Block
	Foot    string // the program and its version
	Signed  *Signature
	Kept    Markup // on a page: the embedded document, which thru report reads
}

// Signature describes the signer of a page. The signature itself follows the page and covers all of its
// bytes.
type Signature struct {
	Host   string // name of the host that owns the key
	Key    string // public key, as the host prints it
	Verify string // command that checks it
}

// Clean returns the signature made safe to print.
func (s *Signature) Clean() *Signature {
	if s == nil {
		return nil
	}
	return &Signature{Host: Clean(s.Host), Key: Clean(s.Key), Verify: Clean(s.Verify)}
}

// Section is a part with a title. A terminal omits the title if the first block of the body has a caption,
// unless the title is a name that the caption lacks.
type Section struct {
	Title string
	Named bool
	Body  []Block
}

// Titled returns a section of some blocks.
func Titled(title string, body ...Block) Section { return Section{Title: title, Body: body} }

// Para is a paragraph.
type Para struct{ Text string }

// List is lines of equal rank. Notes are less prominent than what they explain.
type List struct {
	Lines []string
	Notes bool
}

// Code is lines to type or paste as they are.
type Code struct{ Lines []string }

// Markup is HTML or SVG that a page prints as it is: our own elements, with foreign text escaped.
type Markup string

// Pairs is a list of names with values.
type Pairs struct {
	Name string // caption
	Rows []Row
}

// Row is a name and its value.
type Row struct {
	Name, Value string
	Brief       bool // the short form has it too
}

// Rows collects rows that have a value.
type Rows []Row

// Add adds a row.
func (r *Rows) Add(name, value string) { r.add(Row{Name: name, Value: value}) }

// AddBrief adds a row that the short form has too.
func (r *Rows) AddBrief(name, value string) { r.add(Row{Name: name, Value: value, Brief: true}) }

func (r *Rows) add(row Row) {
	if row.Value != "" {
		*r = append(*r, row)
	}
}

// BriefRows returns the rows of the short form.
func BriefRows(all []Row) []Row { return unit.Filtered(all, func(r Row) bool { return r.Brief }) }

// Charts are drawings, only on a page.
type Charts struct{ Charts []Chart }

// Chart is a drawing with its caption and legend.
type Chart struct {
	SVG     Markup // safe: our own elements and escaped text
	Caption string
	Legend  []Legend
}

// Legend is the sample of a line or colour, and its meaning.
type Legend struct {
	Key  Markup
	Name string
}

// Bars are rates on one scale, as wide as a page; a terminal has bars in tables.
type Bars struct {
	Caption string
	Legend  []Legend
	Rows    []BarRow
}

// BarRow is a bar with its name and value.
type BarRow struct {
	Name, Value string
	Track       Markup // safe: our own elements
}

// Matrix is a matrix of figures of pairs, coloured by value.
type Matrix struct {
	Unit       string
	Legend     string // meaning of the sides, and of cells without a figure
	Rows, Cols []string
	Cells      [][]MatrixCell
}

// MatrixCell is one figure. Heat is 1 to 9, the highest is 9; 0: none.
type MatrixCell struct {
	Text string
	Heat int
	Tone Tone
}

// Details are folded on a page, have a heading in Markdown, and are omitted on a terminal.
type Details struct {
	Title string
	Note  string // less prominent, after the title
	Paper string // text after the title on paper
	Brief bool   // on paper only the title
	Open  bool
	Body  []Block
}

// Filter is a body of tables with classes of rows, from which the reader of a page can choose.
type Filter struct {
	Choices []Choice
	Body    []Block
}

// Choice shows only some rows; the page's style defines its class.
type Choice struct{ Class, Text string }

// SideBySide shows blocks side by side, if a page has the room.
type SideBySide struct{ Body []Block }

// Card is one thing with its facts: a finding, a change that was tried.
type Card struct {
	Name  string
	Badge string // its outcome: "certain", "kept"
	Where string
	Tone  Tone
	Text  string // in a sentence; "" if something before has it
	Said  bool   // the terminal's answer contains the text
	Facts []Fact
}

// Fact is a line of a card: words, and commands to type.
type Fact struct {
	Name  string
	Lines []string
	Code  []string
	For   Audience // 0: all
}

// Say adds a fact, unless it has no words.
func (c *Card) Say(name string, lines ...string) { c.Type(name, nil, lines...) }

// Type adds a fact with commands to type.
func (c *Card) Type(name string, code []string, lines ...string) {
	if lines = NonEmpty(lines...); len(lines)+len(code) > 0 {
		c.Facts = append(c.Facts, Fact{Name: name, Lines: lines, Code: code})
	}
}

// For limits some of the facts to an audience.
func (c Card) For(a Audience, names ...string) Card {
	for i, f := range c.Facts {
		if slices.Contains(names, f.Name) {
			c.Facts[i].For = a
		}
	}
	return c
}

// Cards converts a list to cards.
func Cards[T any](all []T, card func(T) Card) (out []Block) {
	for _, x := range all {
		out = append(out, card(x))
	}
	return out
}

// Notice is lines that a reader must not miss, such as warnings.
type Notice struct {
	Title string // on a page: "Warnings"
	Name  string // of each line on a terminal: "warning"; "": the lines follow the title
	Tone  Tone
	Lines []string
}

// Brief is the summary at the top of a page; a terminal has the answer instead.
type Brief struct {
	Verdict *Verdict
	Rows    []BriefRow
}

// Verdict is whether the result is accepted.
type Verdict struct {
	Mark string // a sign, for readers who do not see the colour
	Word string // "accepted", "no verdict"
	Tone Tone
	Why  string
	Do   string   // what would decide it
	But  []string // what makes it only an indication
	How  []string // commands that would give one
}

// BriefRow is an answer of a few lines.
type BriefRow struct {
	Name  string
	Items []BriefItem
}

// BriefItem is a line, and the commands for it.
type BriefItem struct {
	Text     string
	Commands []string
}

// Only is a body for some audiences, if they need different contents.
type Only struct {
	For  Audience
	Body []Block
}

// OnPages returns a body that a terminal has no room for.
func OnPages(body ...Block) Only { return Only{For: Pages, Body: body} }

// OnTerminal returns a body that pages show differently.
func OnTerminal(body ...Block) Only { return Only{For: Terminal, Body: body} }

// OnScreen returns a body of drawings, which only a page in a browser has.
func OnScreen(body ...Block) Only { return Only{For: HTML, Body: body} }

// Audience is a set of output formats.
type Audience int

// The output formats. Pages have room for everything.
const (
	Terminal Audience = 1 << iota
	HTML
	Markdown
	Pages = HTML | Markdown
)

// Print prints the block.
func (b Section) Print(p Printer) { p.Section(b) }

// Print prints the block.
func (b Para) Print(p Printer) { p.Para(b) }

// Print prints the block.
func (b List) Print(p Printer) { p.List(b) }

// Print prints the block.
func (b Code) Print(p Printer) { p.Code(b) }

// Print prints the block.
func (b Table) Print(p Printer) { p.Table(b) }

// Print prints the block.
func (b Matrix) Print(p Printer) { p.Matrix(b) }

// Print prints the block.
func (b Pairs) Print(p Printer) { p.Pairs(b) }

// Print prints the block.
func (b Charts) Print(p Printer) { p.Charts(b) }

// Print prints the block.
func (b Bars) Print(p Printer) { p.Bars(b) }

// Print prints the block.
func (b Details) Print(p Printer) { p.Details(b) }

// Print prints the block.
func (b SideBySide) Print(p Printer) { p.SideBySide(b) }

// Print prints the block.
func (b Card) Print(p Printer) { p.Card(b) }

// Print prints the block.
func (b Notice) Print(p Printer) { p.Notice(b) }

// Print prints the block.
func (b Brief) Print(p Printer) { p.Brief(b) }

// Print prints the body.
func (b Only) Print(p Printer) { Print(p, b.Body) }

func empty(a Audience, blocks []Block) bool {
	return !slices.ContainsFunc(blocks, func(b Block) bool { return !b.Empty(a) })
}

// Empty reports whether there is nothing to print.
func (b Section) Empty(a Audience) bool { return empty(a, b.Body) }

// Empty reports whether there is nothing to print.
func (b Para) Empty(Audience) bool { return b.Text == "" }

// Empty reports whether there is nothing to print.
func (b List) Empty(Audience) bool { return len(b.Lines) == 0 }

// Empty reports whether there is nothing to print.
func (b Code) Empty(Audience) bool { return len(b.Lines) == 0 }

// Empty reports whether there is nothing to print.
func (b Table) Empty(Audience) bool { return len(b.Rows) == 0 }

// Empty reports whether there is nothing to print.
func (b Matrix) Empty(Audience) bool { return len(b.Rows) == 0 }

// Empty reports whether there is nothing to print.
func (b Pairs) Empty(Audience) bool { return len(b.Rows) == 0 }

// Empty reports whether there is nothing to print.
func (b Charts) Empty(a Audience) bool { return a != HTML || len(b.Charts) == 0 }

// Empty reports whether there is nothing to print.
func (b Bars) Empty(a Audience) bool { return a != HTML || len(b.Rows) == 0 }

// Empty reports whether there is nothing to print.
func (b Details) Empty(a Audience) bool { return a == Terminal || empty(a, b.Body) }

// Print prints the block.
func (b Filter) Print(p Printer) { p.Filter(b) }

// Empty reports whether there is nothing to print.
func (b Filter) Empty(a Audience) bool { return empty(a, b.Body) }

// Empty reports whether there is nothing to print.
func (b SideBySide) Empty(a Audience) bool { return empty(a, b.Body) }

// Empty reports whether there is nothing to print.
func (b Card) Empty(Audience) bool { return b.Name == "" }

// Empty reports whether there is nothing to print.
func (b Notice) Empty(Audience) bool { return len(b.Lines) == 0 }

// Empty reports whether there is nothing to print.
func (b Brief) Empty(a Audience) bool { return a == Terminal || b.Verdict == nil && len(b.Rows) == 0 }

// Empty reports whether there is nothing to print.
func (b Only) Empty(a Audience) bool { return b.For&a == 0 || empty(a, b.Body) }
