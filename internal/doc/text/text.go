// Package text prints blocks for a terminal: lines of bounded width, with colours where they are wanted. It leaves out charts and details.
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

// Options say how lines are laid out.
type Options struct {
	Width  int  // columns; 0 means 80, with the answer in one line
	Colour bool // ANSI colours; without it there are no control characters
}

const (
	DefaultWidth = 80 // of who does not say how wide it is
	leastWidth   = 40
	nameWidth    = 15 // least column of the names in pairs
	mostName     = 27 // greatest
	listIndent   = 3
)

// ANSI colours (ECMA-48, SGR).
const (
	Bold   = "1"
	Red    = "31"
	Green  = "32"
	Yellow = "33"
)

// Printer collects lines of bounded width. Its fields are read by reports that are not yet made of blocks.
type Printer struct {
	strings.Builder
	Width  int
	Whole  bool // the answer stays in one line: a program may read it
	Colour bool

	titled bool // the next caption follows the title of its section
}

// New makes a printer without a line.
func New(o Options) *Printer {
	p := &Printer{Width: max(o.Width, leastWidth), Colour: o.Colour}
	if o.Width == 0 {
		p.Width, p.Whole = DefaultWidth, true
	}
	return p
}

// Face is a terminal.
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

// Section prints its body below its title; where the body begins with a caption, that says it.
func (p *Printer) Section(s doc.Section) {
	if s.Named || !captioned(s.Body) {
		p.Title(lowerFirst(s.Title))
	}
	doc.Print(p, s.Body)
	p.titled = false
}

// captioned tells whether blocks begin with a caption of their own.
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

func lowerFirst(s string) string {
	if len(s) > 1 && s[1] >= 'a' && s[1] <= 'z' {
		return strings.ToLower(s[:1]) + s[1:]
	}
	return s
}

// Title prints a heading, with a blank line before it.
func (p *Printer) Title(s string) {
	p.WriteByte('\n')
	p.Broken(Bold, 0, s)
	p.titled = true
}

// apart begins a block: with a blank line, but right below a title.
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

// List prints a line for each.
func (p *Printer) List(b doc.List) {
	p.titled = false
	for _, s := range b.Lines {
		p.Wrap("", listIndent, "  -", s)
	}
}

// Code prints lines that are to be copied, which are never broken.
func (p *Printer) Code(b doc.Code) {
	p.titled = false
	for _, s := range b.Lines {
		p.WriteString("  " + s + "\n")
	}
}

// Pairs prints values beside their names.
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

// SideBySide are one after the other.
func (p *Printer) SideBySide(b doc.SideBySide) { doc.Print(p, b.Body) }

// Filter is its body: nothing can be chosen.
func (p *Printer) Filter(b doc.Filter) { doc.Print(p, b.Body) }

// Columns of a card.
const (
	cardColumn = 9 // least of its facts, and of the lines of a notice
	cardMargin = 4
)

// Card prints a line with its name, and its facts below. One whose facts stand on pages alone is one line, where it has the room.
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

// fact prints a line of a card, and one for each part of what is to be typed; a command is not broken, as it shall be copied.
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
		p.Title(lowerFirst(b.Title))
		column, name = listIndent, "  -"
	}
	p.apart()
	for _, s := range b.Lines {
		p.Named(ColourOf(b.Tone), column, name, s)
	}
}

// Brief is left out: the answer says it.
func (p *Printer) Brief(doc.Brief) {}

// Bars are left out: tables have them.
func (p *Printer) Bars(doc.Bars) {}

// Charts are left out.
func (p *Printer) Charts(doc.Charts) {}

// Details are left out.
func (p *Printer) Details(doc.Details) {}

// Paint puts a colour around text where colours are wanted.
func (p *Printer) Paint(code, s string) string {
	if !p.Colour || s == "" || code == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// ColourOf is a tone as a colour of the terminal.
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

// Broken prints text from a column on, within the width also where a name in it is longer.
func (p *Printer) Broken(code string, indent int, text string) {
	for _, line := range Cell(text, p.Width-indent) {
		p.WriteString(strings.Repeat(" ", indent) + p.Paint(code, line) + "\n")
	}
}

// Named is Wrap for text that stays within the width, also where a word of it is longer.
func (p *Printer) Named(code string, indent int, name, words string) {
	head := p.Paint(code, Pad(name, indent)) + " "
	for _, line := range Cell(words, p.Width-max(indent, utf8.RuneCountInString(name))-1) {
		p.WriteString(head + line + "\n")
		head = strings.Repeat(" ", indent+1)
	}
}

// Lines breaks text at spaces; the first line has other room than the rest. There is always one.
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

// Cell breaks text at its spaces, and words that are longer than the width anywhere.
func Cell(text string, width int) []string {
	if utf8.RuneCountInString(text) <= width || width < 1 {
		return []string{text}
	}
	var out []string
	for _, line := range Lines(text, width, width) {
		rest := []rune(line)
		for len(rest) > width {
			out, rest = append(out, string(rest[:width])), rest[width:]
		}
		out = append(out, string(rest))
	}
	return out
}

// Pad fills text with spaces to n columns.
func Pad(s string, n int) string {
	return s + strings.Repeat(" ", max(0, n-utf8.RuneCountInString(s)))
}
