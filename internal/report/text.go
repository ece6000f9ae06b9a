package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"thru/internal/doc"
	"thru/internal/doc/text"
	"thru/internal/measure"
	"thru/internal/report/capture"
	"thru/internal/report/inventory"
	"thru/internal/report/ladder"
	"thru/internal/report/result"
	"thru/internal/report/why"
	"thru/internal/unit"
)

// TextOptions set the layout of Text's lines.
type TextOptions = text.Options

// printer prints on a terminal what is not made of blocks yet.
type printer struct{ *text.Printer }

func newPrinter(o TextOptions) *printer { return &printer{text.New(o)} }

// Text prints a result with the answer as its first line. It prints nothing if nothing was measured: then the
// command prints the error. For captures it prints what the packets show in any case.
func Text(w io.Writer, d *measure.Document, o TextOptions) error {
	p := newPrinter(o)
	v := newView(d)
	switch {
	case result.IsCheck(d):
		p.Loud(text.Bold+";"+text.ColourOf(checkTone(d)), v.Answer)
		doc.Print(p, v.checkBlocks())
		p.lists(v)
		return p.Flush(w)
	case result.OfFiles(d):
		p.answer(v)
		p.filed(v)
		return p.Flush(w)
	case result.IsTuning(d), result.IsTransfer(d), result.IsDisk(d), inventory.Is(d):
		p.answer(v)
		if !result.IsTuning(d) { // a tuning has tried the advice
			doc.Print(p, why.Blocks(v.Why, false))
		}
		doc.Print(p, v.Blocks)
		p.lists(v)
		return p.Flush(w)
	case !measured(d):
		return nil
	}
	p.answer(v)
	if v.Fleet != nil {
		doc.Print(p, []doc.Block{v.Fleet.Failures()})
	}
	doc.Print(p, why.Blocks(v.Why, false))
	doc.Print(p, capture.Blocks(v.Packets))
	doc.Print(p, stepBlocks(v.Steps, v.Ended))
	doc.Print(p, slices.Concat(v.Fleet.Blocks(), ladder.Blocks(v.Ladders)))
	if v.Fleet == nil && len(v.Ladders) == 0 || v.Fleet != nil && v.Fleet.ShowsCells() {
		p.cells(v)
	}
	doc.Print(p, v.Placement.blocks())
	p.lists(v)
	return p.Flush(w)
}

func (p *printer) answer(v *view) {
	code := text.Bold
	switch {
	case v.Verdict != nil && v.Verdict.Pass:
		code = text.Bold + ";" + text.Green
	case v.Verdict != nil && v.Verdict.Open:
		code = text.Bold + ";" + text.Yellow
	case v.Verdict != nil:
		code = text.Bold + ";" + text.Red
	}
	answer := cmp.Or(v.Answer, "no complete result")
	for _, s := range []string{answer, v.Back} {
		if s != "" {
			p.Loud(code, s)
		}
	}
	if v.Verdict != nil && v.Verdict.Reason != "" {
		p.Wrap("", 0, "", v.Verdict.Reason)
	}
	if v.Verdict != nil && v.Verdict.Do != "" {
		p.Wrap("", 3, "do:", v.Verdict.Do)
	}
}

// cells prints a table for each main cell, and a line for each baseline.
func (p *printer) cells(v *view) {
	for _, c := range v.Cells {
		if !c.Main() || len(c.Rows) == 0 {
			continue
		}
		rows := c.Rows
		if len(v.Steps) > 0 {
			rows = doc.BriefRows(rows)
		}
		doc.Print(p, []doc.Block{doc.Pairs{Name: c.Name + ", " + c.What, Rows: rows}})
	}
	if v.Hidden > 0 {
		fmt.Fprintf(p, "\nand %s, see the JSON document\n", unit.Plural(v.Hidden, "more cell"))
	}
	p.baselines(v)
}

func (p *printer) baselines(v *view) {
	first := true
	for _, c := range v.Cells {
		if !c.Baseline || c.Gauge || c.Tried {
			continue
		}
		if first {
			p.WriteByte('\n')
			first = false
		}
		p.Wrap("", 9, "baseline:", baselineText(c))
	}
}

// baselineText returns a cell in one line.
func baselineText(c result.Cell) string {
	figure := cmp.Or(result.FigureText(c.Source), "no result")
	s := c.Name + ", " + unit.Plural(c.Source.Streams, "stream") + ": " + figure
	if c.Source.SenderCPU != nil || c.Source.ReceiverCPU != nil {
		s += ", CPU sender/receiver " + result.MachinePct(c.Source.SenderCPU) + "/" + result.MachinePct(c.Source.ReceiverCPU)
	}
	return s
}

// lists prints advice, warnings and gaps of the whole result. The command prints the error; its words are
// among the warnings, too.
func (p *printer) lists(v *view) {
	if len(v.Advice)+len(v.Warnings)+len(v.Missing)+len(v.FactGaps) > 0 {
		p.WriteByte('\n')
	}
	if v.Command != "check" && v.Tuning == nil { // the proposals name them
		p.gateLines(v)
	}
	for _, s := range v.Advice {
		p.Wrap("", 9, "advice:", s)
	}
	warned := v.Warnings
	if n := len(warned) - result.FleetLines; v.Fleet != nil && n > 0 {
		warned = append(warned[:result.FleetLines:result.FleetLines], fmt.Sprintf("and %d more, see the HTML report", n))
	}
	for _, s := range warned {
		p.Wrap(text.Yellow, 9, "warning:", s)
	}
	if s := gapsText(v); s != "" {
		p.Wrap("", 9, "not checked:", s)
	}
}

// gapsText names what was not checked, grouped by reason; it only counts the hosts' facts.
func gapsText(v *view) string {
	var all []string
	for i, g := range v.Missing {
		if v.Fleet != nil && i == result.FleetLines {
			all = append(all, fmt.Sprintf("and %d more reasons, see the HTML report", len(v.Missing)-i))
			break
		}
		all = append(all, g.Text(result.GapFacts))
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

// filed prints a result of capture files: the finding and the handshake first, the causes that were ruled out
// last.
func (p *printer) filed(v *view) {
	doc.Print(p, why.Blocks(v.Why, true))
	var figures []doc.Row // of a single direction: printed after those of its connection
	if len(v.Cells) == 1 {
		figures = v.Cells[0].Rows
	}
	doc.Print(p, capture.Blocks(v.Packets, figures...))
	if len(v.Cells) > 1 {
		p.cells(v)
	}
	for i := range v.Why {
		var before *why.Diagnosis
		if i > 0 {
			before = &v.Why[i-1]
		}
		doc.Print(p, []doc.Block{doc.Pairs{Name: v.Why[i].Direction, Rows: v.Why[i].Others(before, true)}})
	}
	left := *v
	if left.Missing = v.Unseen; v.Silent {
		left.Missing = nil // a connection without data lacks no figures
	}
	p.lists(&left)
}

// checkBlocks returns a check for a terminal: what to do, what passed in a few lines, the path, and the
// hosts.
func (v *view) checkBlocks() []doc.Block {
	var rows []doc.Row
	if s := v.Gates.PassedText(); s != "" {
		rows = append(rows, doc.Row{Name: "pass", Value: s})
	}
	for _, g := range v.Gates.Unchecked() {
		rows = append(rows, doc.Row{Name: doc.NotChecked, Value: g.Text(result.GapFacts)})
	}
	all := []doc.Block{doc.Titled("Gates", append(v.Gates.Cards(), doc.Pairs{Rows: rows})...)}
	for _, t := range slices.Concat(v.Paths, v.Brief) {
		all = append(all, t)
	}
	return append(all, v.Placement.blocks()...)
}

// maxGateLines is how many gates are named below the figures of a test.
const maxGateLines = 3

// gateLines prints below the figures of a test which gates did not pass.
func (p *printer) gateLines(v *view) {
	open := v.Gates.With(measure.GateFail, measure.GateWarn)
	for _, g := range open[:min(len(open), maxGateLines)] {
		s := g.ID + " (" + g.Where + "): " + g.Fact
		switch {
		case len(g.Fix) > 0:
			s += "; do: " + strings.TrimSpace(g.At+" "+strings.Join(g.Fix, "; "))
		case g.Advice != "":
			s += "; do: " + g.Advice
		}
		p.Wrap(text.Yellow, 9, "gate:", s)
	}
	if more := len(open) - maxGateLines; more > 0 {
		p.Wrap("", 9, "gate:", fmt.Sprintf("and %d more, see `thru check`", more))
	}
}

// GateFailures prints the gates that prevented the measurement.
func GateFailures(w io.Writer, d *measure.Document, o TextOptions) error {
	p := newPrinter(o)
	doc.Print(p, newGates(d).With(measure.GateFail).Cards())
	return p.Flush(w)
}
