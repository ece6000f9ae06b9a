package fleet

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"thru/internal/doc"
	"thru/internal/doc/text"
	"thru/internal/measure"
	"thru/internal/plan"
	"thru/internal/report/facts"
	"thru/internal/report/result"
	"thru/internal/unit"
)

// nameWidth is the width of the column of names.
const nameWidth = 15

// PlanList prints what a plan will do: amount and duration in the first line, then each step with its
// traffic, and its pairs if they differ from those of the previous step.
func PlanList(w io.Writer, pl plan.Plan, o text.Options) error {
	p := text.New(o)
	p.Wrap(text.Bold, 0, "", PlanLine(pl))
	if pl.Order != "" {
		p.Wrap("", nameWidth, "  order", planOrder(pl))
	}
	for i, e := range pl.EndPoints {
		name := ""
		if i == 0 {
			name = "  end points"
		}
		p.Wrap("", nameWidth, fmt.Sprintf("%-*s", nameWidth, name), endPointText(e))
	}
	for i, t := range pl.Targets {
		name := ""
		if i == 0 {
			name = "  targets"
		}
		p.Wrap("", nameWidth, fmt.Sprintf("%-*s", nameWidth, name), wantedText(t))
	}
	for i, h := range pl.ManualSteps {
		name := ""
		if i == 0 {
			name = "  manual"
		}
		p.Wrap("", nameWidth, fmt.Sprintf("%-*s", nameWidth, name), plannedManual(h))
	}
	planSteps(p, pl)
	return p.Flush(w)
}

// PlanLine returns a plan in a line: "dci: 56 pairs in 12 steps, 3 runs of each, about 14 min".
func PlanLine(pl plan.Plan) string {
	pairs := map[[2]string]bool{}
	for _, s := range pl.Steps {
		for _, x := range s.Specs {
			pairs[[2]string{x.From, x.To}] = true
		}
	}
	s := fmt.Sprintf("%s in %s", unit.Plural(len(pairs), "pair"), unit.Plural(len(pl.Steps), "step"))
	if n := max(pl.Repeat.Max, 1); pl.Repeat.Min < pl.Repeat.Max {
		s += fmt.Sprintf(", %d to %d runs of each until they agree within %s", pl.Repeat.Min, n, unit.Percent(pl.Repeat.PrecisionPct))
	} else if n > 1 {
		s += fmt.Sprintf(", %d runs of each", n)
	}
	word := "about"
	if pl.Repeat.Min < pl.Repeat.Max {
		word = "at most"
	}
	s += ", " + word + " " + doc.AboutTime(pl.Time())
	if pl.Name != "" {
		s = doc.Clean(pl.Name) + ": " + s
	}
	return s
}

func planOrder(pl plan.Plan) string {
	s := doc.Clean(pl.Order)
	switch pl.Order {
	case plan.OrderSequential:
		s += ": one step after the other"
	case plan.OrderSimultaneous:
		s += ": all pairs of a step at once"
	case plan.OrderInterleaved:
		s += fmt.Sprintf(": the steps in order and in reverse order, in %s", unit.Plural(max(pl.Repeat.Max, 1), "block"))
	case plan.OrderBlocks:
		s += ": all runs of each variant, one variant after the other"
	case plan.OrderThereAndBack:
		s += ": each variant in a block, and the first one again at the end"
	}
	return s
}

func endPointText(e plan.EndPoint) string {
	at := ""
	if e.At != "" && e.At != e.Name {
		at = doc.Clean(e.At)
	}
	data := ""
	if e.DataAddr != "" {
		data = "data at " + doc.Clean(e.DataAddr)
	}
	return strings.TrimSpace(doc.Clean(e.Name) + " " + doc.Bracket(doc.Join(at, facts.Labels(e.Labels, true), data)))
}

// wantedText returns a target: "total goodput at least 9 Gb/s, where streams is 8".
func wantedText(t plan.Target) string {
	figure, wanted := targetFigure(t.Figure, t.Wanted)
	word := "at least"
	if t.AtMost {
		word = "at most"
	}
	of := map[string]string{plan.TargetTotal: "total", plan.TargetPair: "each pair's", plan.TargetHost: "each host's"}[t.Of]
	s := strings.TrimSpace(of + " " + figure + " " + word + " " + wanted)
	if len(t.Where) > 0 {
		s += ", where " + result.AxesText(t.Where)
	}
	if t.Rung != "" {
		s += ", on the rung " + doc.Clean(t.Rung)
	}
	return s
}

// targetFigure returns the name of a target's figure, and formats its value.
func targetFigure(figure string, v float64) (name, value string) {
	switch figure {
	case "goodput_bps":
		return "goodput", unit.Rate(v)
	case "share_pct":
		return "goodput", unit.Percent(v) + " of the ceiling"
	case "rtt_loaded_ns":
		return "RTT under load", unit.Duration(int64(v))
	case "loss_pct":
		return "loss", unit.Percent(v)
	case "jain_fairness":
		return "fairness", doc.Plain(v)
	}
	return doc.Clean(figure), doc.Plain(v)
}

// planSteps prints the steps as a table, and below it the pairs of each step, once if consecutive steps have
// the same.
func planSteps(p *text.Printer, pl plan.Plan) {
	g := doc.Table{Columns: []doc.Column{{Name: "step", Right: true}, {Name: "what", Least: 12}, {Name: "flows", Right: true}, {Name: "traffic", Least: 12}, {Name: "time", Right: true}}}
	for i, s := range pl.Steps {
		g.Rows = append(g.Rows, []string{fmt.Sprint(i + 1), stepName(s), fmt.Sprint(len(s.Specs)), traffics(s), unit.Duration(int64(s.Time().Round(100 * time.Millisecond)))})
	}
	if len(g.Rows) == 0 {
		return
	}
	p.WriteByte('\n')
	p.Grid(g)
	p.WriteByte('\n')
	for first := 0; first < len(pl.Steps); {
		pairs, next := pairNames(pl.Steps[first]), first+1
		for next < len(pl.Steps) && slices.Equal(pairNames(pl.Steps[next]), pairs) {
			next++
		}
		p.Named("", nameWidth, "  "+stepsText(first+1, next), strings.Join(pairs, ", "))
		first = next
	}
}

// stepsText returns "step 3" or "steps 1-2".
func stepsText(first, last int) string {
	if first == last {
		return fmt.Sprintf("step %d", first)
	}
	return fmt.Sprintf("steps %d-%d", first, last)
}

func stepName(s plan.Step) string {
	name := doc.Clean(s.Label)
	if s.Rung != "" && !strings.Contains(s.Label, s.Rung) {
		name = doc.Join(doc.Clean(s.Rung), name)
	}
	if s.Baseline {
		name += " (baseline, once)"
	}
	return name
}

// pairNames returns the pairs of a step, each once: "a->b", "a->c (4 flows)". No spaces around the arrow, so
// that no line breaks there.
func pairNames(s plan.Step) []string {
	flows := map[string]int{}
	var names []string
	for _, x := range s.Specs {
		name := result.PairName(x.From, x.To)
		if flows[name]++; flows[name] == 1 {
			names = append(names, name)
		}
	}
	for i, n := range names {
		if flows[n] > 1 {
			names[i] = fmt.Sprintf("%s (%d flows)", n, flows[n])
		}
	}
	return names
}

// traffics returns the kinds of traffic of a step, each once, without the parts that its label contains.
func traffics(s plan.Step) string {
	var all []string
	for _, x := range s.Specs {
		c := measure.Cell{From: x.From, To: x.To, Protocol: x.Protocol, Streams: x.Streams, Window: x.Window, Spec: x}
		parts := slices.DeleteFunc(strings.Split(result.What(&c), ", "), func(part string) bool { return slices.Contains(strings.Split(s.Label, ", "), part) })
		text := strings.Join(append(parts, unit.Duration(x.Duration)), ", ")
		if !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	if len(all) > 3 {
		all = append(all[:3], fmt.Sprintf("and %d more kinds", len(all)-3))
	}
	return strings.Join(all, "; ")
}
