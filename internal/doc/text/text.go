// Package text prints blocks for a terminal: lines of limited width, with optional colours. It omits charts
// and details.
package text

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"thru/internal/doc"
)

// Options set the layout of lines.
type Options struct {
	Width  int  // columns; 0 means 80, with the answer in one line
	Colour bool // ANSI colours; without it there are no control characters
}

const (
	DefaultWidth = 80 // if the width is unknown
	leastWidth   = 40
	nameWidth    = 15 // minimum width of the names in pairs
	mostName     = 27 // maximum
	listIndent   = 3
)

// ANSI colours (ECMA-48, SGR).
const (
	Bold   = "1"
	Red    = "31"
	Green  = "32"
	Yellow = "33"
)

// Printer collects lines of limited width. Reports that are not made of blocks yet read its fields.
type Printer struct {
	strings.Builder
	Width  int
	Whole  bool // the answer stays in one line, for programs
	Colour bool

	titled bool // the next caption follows the title of its section
}

// New returns an empty printer.
func New(o Options) *Printer {
	p := &Printer{Width: max(o.Width, leastWidth), Colour: o.Colour}
	if o.Width == 0 {
		p.Width, p.Whole = DefaultWidth, true
	}
	return p
}

// Face returns Terminal.
func (p *Printer) Face() doc.Audience { return doc.Terminal }

// Flush writes all lines.
func (p *Printer) Flush(w io.Writer) error {
	if _, err := io.WriteString(w, p.String()); err != nil {
		return fmt.Errorf("report: writing text: %w", err)
	}
	return nil
}

// Report prints the answer, and the blocks below it.
func (p *Printer) Report(r doc.Report) {
	p.Loud(strings.TrimSuffix(Bold+";"+ColourOf(r.Tone), ";"), r.Answer)
	for _, s := range r.More {
		p.Wrap("", 0, "", s)
	}
	doc.Print(p, r.Body)
}

// Section prints its body below its title; it omits the title if the body begins with a caption.
func (p *Printer) Section(s doc.Section) {
	if s.Named || !captioned(s.Body) {
		p.Title(s.Title)
	}
	doc.Print(p, s.Body)
	p.titled = false
}

// captioned reports whether blocks begin with a caption.
func captioned(all []doc.Block) bool {
	for _, b := range all {
		if b.Empty(doc.Terminal) {
			continue
		}
		switch b := b.(type) {
		case doc.Table:
			return b.Caption != ""
		case doc.Pairs:
			return b.Name != ""
		case doc.Only:
			return captioned(b.Body)
		case doc.SideBySide:
			return captioned(b.Body)
		case doc.Notice:
			return b.Name == ""
		}
		return false
	}
	return false
}

// Title prints a heading, with a blank line before it.
func (p *Printer) Title(s string) {
	p.WriteByte('\n')
	p.Broken(Bold, 0, s)
	p.titled = true
}

// apart begins a block with a blank line, except directly below a title.
func (p *Printer) apart() {
	if !p.titled {
		p.WriteByte('\n')
	}
	p.titled = false
}

// Para prints a paragraph.
func (p *Printer) Para(b doc.Para) {
	if b.Text != "" {
		p.apart()
		p.Wrap("", 0, "", b.Text)
	}
}

// List prints the lines as list items.
func (p *Printer) List(b doc.List) {
	p.titled = false
	for _, s := range b.Lines {
		p.Wrap("", listIndent, "  -", s)
	}
}

// Code prints lines to copy, which it never breaks.
func (p *Printer) Code(b doc.Code) {
	p.titled = false
	for _, s := range b.Lines {
		p.WriteString("  " + s + "\n")
	}
}

// Pairs prints names with their values.
func (p *Printer) Pairs(b doc.Pairs) {
	if len(b.Rows) == 0 {
		return
	}
	p.apart()
	if b.Name != "" {
		p.Broken(Bold, 0, b.Name)
	}
	wide := nameWidth
	for _, r := range b.Rows {
		wide = min(max(wide, utf8.RuneCountInString(r.Name)+2), mostName)
	}
	for _, r := range b.Rows {
		p.Wrap("", wide, "  "+r.Name, r.Value)
	}
}

// SideBySide prints the blocks one after the other.
func (p *Printer) SideBySide(b doc.SideBySide) { doc.Print(p, b.Body) }

// Filter prints its body: a terminal cannot filter.
func (p *Printer) Filter(b doc.Filter) { doc.Print(p, b.Body) }

// Columns of a card.
const (
	cardColumn = 9 // minimum width of the names of its facts, and of a notice's lines
	cardMargin = 4
)

// Card prints a line with its name, and its facts below. If only pages show its facts and the text fits, it
// is a single line.
func (p *Printer) Card(b doc.Card) {
	p.titled = false
	code, head := cmp.Or(ColourOf(b.Tone), Yellow), b.Name+doc.Prefixed(": ", doc.Join(b.Badge, b.Where))
	facts := slices.DeleteFunc(slices.Clone(b.Facts), func(f doc.Fact) bool { return f.For != 0 && f.For&doc.Terminal == 0 })
	if b.Said {
		b.Text = ""
	}
	if one := "  " + head + ": " + b.Text; b.Text != "" && len(facts) == 0 && len(b.Facts) > 0 && utf8.RuneCountInString(one) <= p.Width {
		p.WriteString("  " + p.Paint(code, head) + ": " + b.Text + "\n")
		return
	}
	p.Broken(code, listIndent-1, head)
	if b.Text != "" {
		p.Wrap("", cardMargin-1, strings.Repeat(" ", cardMargin-1), b.Text)
	}
	column := cardColumn
	for _, f := range b.Facts {
		column = max(column, cardMargin+utf8.RuneCountInString(f.Name)+1)
	}
	for _, f := range facts {
		p.fact(f, column)
	}
}

// fact prints a line of a card, and one for each part of the code; it does not break commands, so that they
// can be copied.
func (p *Printer) fact(f doc.Fact, column int) {
	name := strings.Repeat(" ", cardMargin) + f.Name
	if f.Name != "" {
		name += ":"
	}
	lines := f.Lines
	if len(f.Code) == 0 {
		lines = doc.NonEmpty(strings.Join(lines, "; "))
	}
	for _, s := range lines {
		p.Wrap("", column, name, s)
		name = " "
	}
	for _, c := range f.Code {
		p.WriteString(strings.TrimRight(fmt.Sprintf("%-*s %s", column, name, c), " ") + "\n")
		name = ""
	}
}

// Notice prints each line with its name.
func (p *Printer) Notice(b doc.Notice) {
	column, name := cardColumn, b.Name+":"
	if b.Name == "" {
		p.Title(b.Title)
		column, name = listIndent, "  -"
	}
	p.apart()
	for _, s := range b.Lines {
		p.Named(ColourOf(b.Tone), column, name, s)
	}
}

// Brief prints nothing: the answer has it.
func (p *Printer) Brief(doc.Brief) {}

// Bars prints nothing: tables have them.
func (p *Printer) Bars(doc.Bars) {}

// Charts prints nothing.
func (p *Printer) Charts(doc.Charts) {}

// Details prints nothing.
func (p *Printer) Details(doc.Details) {}

// Paint colours text if colours are wanted.
func (p *Printer) Paint(code, s string) string {
	if !p.Colour || s == "" || code == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// ColourOf returns the terminal colour of a tone.
func ColourOf(t doc.Tone) string {
	return map[doc.Tone]string{doc.ToneGood: Green, doc.ToneWarn: Yellow, doc.ToneBad: Red}[t]
}

// Loud prints a line of the answer.
func (p *Printer) Loud(code, s string) {
	broken := []string{s}
	if !p.Whole {
		broken = Lines(s, p.Width, p.Width)
	}
	for _, line := range broken {
		fmt.Fprintln(p, p.Paint(code, line))
	}
}

// Wrap prints a name and, from column indent+2 on, text broken at spaces.
func (p *Printer) Wrap(code string, indent int, name, text string) {
	head, margin := fmt.Sprintf("%-*s", indent, name), 0
	if name != "" {
		head, margin = head+" ", indent+1
	}
	for i, line := range Lines(text, p.Width-utf8.RuneCountInString(head), p.Width-margin) {
		if i == 0 {
			fmt.Fprintln(p, p.Paint(code, head)+line)
		} else {
			fmt.Fprintln(p, strings.Repeat(" ", margin)+line)
		}
	}
}

// Broken prints text from a column on; it also breaks words longer than the width.
func (p *Printer) Broken(code string, indent int, text string) {
	for _, line := range Cell(text, p.Width-indent) {
		p.WriteString(strings.Repeat(" ", indent) + p.Paint(code, line) + "\n")
	}
}

// Named is Wrap for text with words longer than the width, which it breaks.
func (p *Printer) Named(code string, indent int, name, words string) {
	head := p.Paint(code, Pad(name, indent)) + " "
	for _, line := range Cell(words, p.Width-max(indent, utf8.RuneCountInString(name))-1) {
		p.WriteString(head + line + "\n")
		head = strings.Repeat(" ", indent+1)
	}
}

// Lines breaks text at spaces; first and rest are the widths of the first and the other lines. It returns at
// least one line.
func Lines(text string, first, rest int) (all []string) {
	line, room := "", first
	for i, word := range doc.Unbroken(text) {
		if i > 0 && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > room {
			all, line, room = append(all, line), "", rest
		} else if i > 0 {
			line += " "
		}
		line += word
	}
	return append(all, line)
}

// Cell breaks text at spaces, and words longer than the width within.
func Cell(text string, width int) []string {
	if utf8.RuneCountInString(text) <= width || width < 1 {
		return []string{text}
	}
	var out []string
	for _, line := range Lines(text, width, width) {
		rest := []rune(line)
		for len(rest) > width {
			n := within(rest, width)
			out, rest = append(out, string(rest[:n])), rest[n:]
		}
		out = append(out, string(rest))
	}
	return out
}

// within returns where to break a word longer than the width: after a dot, dash or slash, if that takes no more lines.
func within(word []rune, width int) int {
	least := len(word) - width*((len(word)-1)/width)
	for n := width; n >= least; n-- {
		if strings.ContainsRune(".-/:", word[n-1]) {
			return n
		}
	}
	return width
}

// Pad appends spaces up to n columns.
func Pad(s string, n int) string {
	return s + strings.Repeat(" ", max(0, n-utf8.RuneCountInString(s)))
}
