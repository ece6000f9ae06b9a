package fleet

import (
	"cmp"
	"fmt"
	"slices"

	"thru/internal/doc"
	"thru/internal/report/result"
)

// Failures returns the hosts that were lost, and the pairs that failed.
func (f *View) Failures() doc.Block {
	return doc.Notice{Title: "Failures", Tone: doc.ToneWarn, Lines: f.Failed}
}

// Blocks returns the results of a plan: rungs, comparisons, targets, settings, pairs.
func (f *View) Blocks() (all []doc.Block) {
	if f == nil {
		return nil
	}
	if f.Waterfall != nil {
		all = f.Waterfall.Blocks()
	}
	compared := doc.Cards(f.Compared, comparison.card)
	if len(f.Compared) == 1 { // the answer has its sentence
		compared = []doc.Block{doc.OnPages(compared...), doc.OnTerminal(doc.List{Lines: append(doc.NonEmpty(f.Compared[0].Reason), f.Compared[0].Guards...)})}
	}
	var charts []doc.Chart
	if f.Chart != nil {
		charts = append(charts, *f.Chart)
	}
	sets := f.Sets.First(maxSetRows)
	sets.Most, sets.Rest = textSetRows, elsewhere
	all = append(all, doc.Titled("Comparisons", append(compared, doc.OnTerminal(doc.Pairs{Rows: f.ManualSteps}))...),
		doc.Titled("Targets", f.targets()...), doc.Titled("Varied settings", doc.Charts{Charts: charts}, sets))
	for i, s := range f.Details {
		x := s.section(f.ShowsCells())
		if i > 0 && len(f.Details) > fewSets { // a terminal shows only the best set
			x = doc.OnPages(x)
		}
		all = append(all, x)
	}
	if len(f.Details) > fewSets {
		all = append(all, doc.OnTerminal(doc.Para{Text: "details of the other settings: " + elsewhere}))
	}
	if f.Hidden > 0 {
		all = append(all, doc.OnPages(doc.Para{Text: fmt.Sprintf("%d more settings are in the JSON document.", f.Hidden)}))
	}
	return all
}

// ShowsCells reports whether each pair is shown as in a test of two hosts.
func (f *View) ShowsCells() bool { return f.Few && len(f.Sets.Rows) == 0 }

// card returns an A/B test.
func (c comparison) card() doc.Card {
	x := doc.Card{Name: c.Text, Tone: c.Tone}
	x.Say("because", c.Reason)
	x.Say("guardrails", c.Guards...)
	return x
}

// targets returns the missed targets if there are many, and the table of all.
func (f *View) targets() []doc.Block {
	all, first := f.Targets.First(result.MaxTargetRows), brief(f.Targets, f.missed)
	if first.More == "" {
		return []doc.Block{all}
	}
	met := ""
	if len(first.Rows) == 0 {
		met = fmt.Sprintf("all %d targets are met", len(f.Targets.Rows))
	}
	return []doc.Block{first, doc.Para{Text: met}, doc.Details{Title: fmt.Sprintf("All %d targets", len(f.Targets.Rows)), Body: []doc.Block{all}}}
}

// section returns one set: when its pairs ran, and what they and their hosts carried. Pairs are a matrix if
// it fits, else a list; few pairs have their own figures.
func (s setView) section(few bool) doc.Block {
	var list []doc.Block
	for _, g := range s.Pairs {
		list = append(list, g)
	}
	shares := []doc.Block{s.Limits, s.Hosts, s.Labels}
	body := slices.Concat(list, shares)
	if few {
		body = []doc.Block{doc.OnPages(slices.Concat(list, shares[:1])...), s.Hosts, s.Labels}
	}
	if m := s.Matrix; m != nil {
		drawn := append(slices.Concat([]doc.Block{*m, s.Slow}, shares), doc.Details{Title: "The pairs as a list", Body: list})
		if max(len(m.Rows), len(m.Cols)) <= maxTextMatrix {
			body = drawn
		} else {
			body = []doc.Block{doc.OnPages(drawn...), doc.OnTerminal(body...)}
		}
	}
	return doc.Section{Title: cmp.Or(s.Name, "All pairs"), Named: true, Body: append([]doc.Block{doc.Para{Text: s.Overlap}}, body...)}
}
