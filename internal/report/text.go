package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"thru/internal/measure"
	"thru/internal/unit"
)

// TextOptions say how Text lays out its lines.
type TextOptions struct {
	Width  int  // columns; 0 means 80, with the answer in one line
	Colour bool // ANSI colours; without it there are no control characters
}

const (
	defaultWidth = 80
	leastWidth   = 40
	nameWidth    = 15 // column of the names in a cell's table
	fleetLines   = 8  // warnings and reasons that are printed of a plan of many pairs
	gapFacts     = 4  // facts named for each reason; the page has all
)

// Text prints a result whose first line is the answer. It prints nothing where
// nothing was measured: the command prints the error then. Of captures it says
// what the packets show all the same.
func Text(w io.Writer, d *measure.Document, o TextOptions) error {
	p := newPrinter(o)
	v := newView(d)
	switch {
	case isCheck(d):
		p.checkText(d, v)
		return p.flush(w)
	case ofFiles(d):
		p.answer(v)
		p.filed(v)
		return p.flush(w)
	case isTuning(d):
		p.tuningText(v)
		return p.flush(w)
	case isTransfer(d):
		p.transferText(v)
		return p.flush(w)
	case isDisk(d):
		p.diskText(v)
		return p.flush(w)
	case isInventory(d):
		p.inventoryText(v)
		return p.flush(w)
	case !measured(d):
		return nil
	}
	p.answer(v)
	if v.Fleet != nil {
		p.failures(v.Fleet)
	}
	p.why(v.Why, false)
	p.captured(v.Packets, false)
	p.steps(v)
	switch {
	case v.Fleet != nil:
		p.fleet(v)
	case len(v.Ladders) > 0:
		p.ladders(v.Ladders)
	default:
		p.cells(v)
	}
	p.whereabouts(v.Placed)
	p.lists(v)
	return p.flush(w)
}

func newPrinter(o TextOptions) *printer {
	p := &printer{width: max(o.Width, leastWidth), colour: o.Colour}
	if o.Width == 0 {
		p.width, p.whole = defaultWidth, true
	}
	return p
}

func (p *printer) flush(w io.Writer) error {
	if _, err := io.WriteString(w, p.out.String()); err != nil {
		return fmt.Errorf("report: writing text: %w", err)
	}
	return nil
}

// isCheck tells of a document that judges hosts and path, and measures nothing.
func isCheck(d *measure.Document) bool { return d.Command == "check" && len(d.Gates) > 0 }

// printer collects lines of bounded width.
type printer struct {
	out    strings.Builder
	width  int
	whole  bool // the answer stays in one line: a program may read it
	colour bool
}

// ANSI colours (ECMA-48, SGR).
const (
	bold   = "1"
	red    = "31"
	green  = "32"
	yellow = "33"
)

// paint puts a colour around text where colours are wanted.
func (p *printer) paint(code, s string) string {
	if !p.colour || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (p *printer) answer(v *view) {
	code := bold
	switch {
	case v.Verdict != nil && v.Verdict.Pass:
		code = bold + ";" + green
	case v.Verdict != nil && v.Verdict.Open:
		code = bold + ";" + yellow
	case v.Verdict != nil:
		code = bold + ";" + red
	}
	answer := v.Answer
	if answer == "" {
		answer = "no result, only parts of it"
	}
	for _, s := range []string{answer, v.Back} {
		if s != "" {
			p.loud(code, s)
		}
	}
	if v.Verdict != nil && v.Verdict.Reason != "" {
		p.wrap("", 0, "", v.Verdict.Reason)
	}
	if v.Verdict != nil && v.Verdict.Do != "" {
		p.wrap("", 3, "do:", v.Verdict.Do)
	}
}

// loud prints a line of the answer.
func (p *printer) loud(code, s string) {
	broken := []string{s}
	if !p.whole {
		broken = lines(s, p.width, p.width)
	}
	for _, line := range broken {
		fmt.Fprintln(&p.out, p.paint(code, line))
	}
}

// cells prints a table for each main cell, and a line for each beside them.
func (p *printer) cells(v *view) {
	for _, c := range v.Cells {
		if !c.main() || len(c.Rows) == 0 {
			continue
		}
		fmt.Fprintf(&p.out, "\n%s\n", p.paint(bold, c.Name+", "+c.What))
		for _, r := range c.Rows {
			if len(v.Steps) == 0 || isBrief(r.Name) {
				p.wrap("", nameWidth, "  "+r.Name, r.Value)
			}
		}
	}
	if v.Hidden > 0 {
		fmt.Fprintf(&p.out, "\nand %s, see the JSON document\n", unit.Plural(v.Hidden, "more cell"))
	}
	p.beside(v)
}

// isBrief names the rows of a cell that stand below the steps of an explanation.
func isBrief(name string) bool {
	return slices.Contains([]string{"goodput", "share", "datagrams", "loss", "CPU", "CPU, sender", "CPU, receiver", "retransmits", "RTT", "window", "TCP", "UDP"}, name)
}

func (p *printer) beside(v *view) {
	first := true
	for _, c := range v.Cells {
		if !c.Beside || c.Gauge || c.Tried {
			continue
		}
		if first {
			p.out.WriteByte('\n')
			first = false
		}
		p.wrap("", 9, "beside:", besideText(c))
	}
}

// besideText is a cell in one line.
func besideText(c cell) string {
	figure := figureText(c.Source)
	if figure == "" {
		figure = "no result"
	}
	s := c.Name + ", " + unit.Plural(c.Source.Streams, "stream") + ": " + figure
	if c.Source.SenderCPU != nil || c.Source.ReceiverCPU != nil {
		s += ", CPU sender/receiver " + machinePct(c.Source.SenderCPU) + "/" + machinePct(c.Source.ReceiverCPU)
	}
	return s
}

// lists prints what belongs to the whole: advice, warnings, gaps. The error is
// the command's to print; its words are among the warnings too.
func (p *printer) lists(v *view) {
	if len(v.Advice)+len(v.Warnings)+len(v.Missing)+len(v.FactGaps) > 0 {
		p.out.WriteByte('\n')
	}
	if v.Command != "check" && v.Tuning == nil { // whose proposals name them
		p.gateLines(v)
	}
	for _, s := range v.Advice {
		p.wrap("", 9, "advice:", s)
	}
	warned := v.Warnings
	if n := len(warned) - fleetLines; v.Fleet != nil && n > 0 {
		warned = append(warned[:fleetLines:fleetLines], fmt.Sprintf("%d more, see the HTML report", n))
	}
	for _, s := range warned {
		p.wrap(yellow, 9, "warning:", s)
	}
	if s := gapsText(v); s != "" {
		p.wrap("", 9, "not checked:", s)
	}
}

// gapsText names what was not checked, grouped by reason; of the hosts' facts only how many.
func gapsText(v *view) string {
	var all []string
	for i, g := range v.Missing {
		if v.Fleet != nil && i == fleetLines {
			all = append(all, fmt.Sprintf("%d more reasons, see the HTML report", len(v.Missing)-i))
			break
		}
		all = append(all, g.text(gapFacts))
	}
	facts := 0
	for _, g := range v.FactGaps {
		facts += len(g.Facts)
	}
	if facts > 0 {
		all = append(all, unit.Plural(facts, "fact")+" of the hosts (named in the JSON and HTML reports)")
	}
	return strings.Join(all, "; ")
}

// unbroken splits a text where a line may break: not within a number whose
// thousands are apart, not before its unit, and not behind "p99.9".
func unbroken(text string) []string {
	var words []string
	for word := range strings.FieldsSeq(text) {
		n := len(words) - 1
		if n >= 0 && (isPercentile(words[n]) || isWhole(words[n]) && isThousands(word) || endsInDigit(words[n]) && isUnit(strings.TrimRight(word, ",;:.)"))) {
			words[n] += " " + word
			continue
		}
		words = append(words, word)
	}
	return words
}

func endsInDigit(s string) bool { return s[len(s)-1] >= '0' && s[len(s)-1] <= '9' }

func isUnit(s string) bool {
	switch s {
	case "ns", "µs", "ms", "s", "B", "KiB", "MiB", "GiB", "b/s", "kb/s", "Mb/s", "Gb/s", "Tb/s", "B/s", "kB/s", "MB/s", "GB/s", "IOPS":
		return true
	}
	return false
}

// isPercentile tells whether a word is "p50", "p99.9".
func isPercentile(s string) bool {
	rest, ok := strings.CutPrefix(s, "p")
	return ok && rest != "" && strings.Trim(rest, "0123456789.") == ""
}

// isWhole tells whether a word is a whole number or ends a range of them.
func isWhole(s string) bool {
	return endsInDigit(s) && !strings.ContainsFunc(s, func(r rune) bool { return (r < '0' || r > '9') && !strings.ContainsRune(" -(+", r) })
}

// isThousands tells whether a word begins with three digits and no fourth.
func isThousands(s string) bool {
	n := strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' })
	return n == 3 || n < 0 && len(s) == 3
}

// wrap prints a name and, from column indent+2 on, text broken at spaces.
func (p *printer) wrap(code string, indent int, name, text string) {
	head, margin := fmt.Sprintf("%-*s", indent, name), 0
	if name != "" {
		head, margin = head+" ", indent+1
	}
	for i, line := range lines(text, p.width-utf8.RuneCountInString(head), p.width-margin) {
		if i == 0 {
			fmt.Fprintln(&p.out, p.paint(code, head)+line)
		} else {
			fmt.Fprintln(&p.out, strings.Repeat(" ", margin)+line)
		}
	}
}

// lines breaks text at spaces; the first line has other room than the rest. There is always one.
func lines(text string, first, rest int) (all []string) {
	line, room := "", first
	for i, word := range unbroken(text) {
		if i > 0 && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > room {
			all, line, room = append(all, line), "", rest
		} else if i > 0 {
			line += " "
		}
		line += word
	}
	return append(all, line)
}
