package compared

import (
	"fmt"
	"strings"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/unit"
)

// Report returns a comparison for all output formats.
func Report(x *measure.Compared) doc.Report {
	v := newView(x)
	r := doc.Report{Command: "thru compare", Answer: v.Answer, More: doc.NonEmpty(v.Changed), Tone: v.Tone, Foot: doc.Join("thru "+v.Thru, doc.Prefixed("compared ", v.When))}
	verdict := doc.Verdict{Word: v.Outcome, Tone: v.badge(), Why: strings.Join(v.Details, "; ")}
	r.Body = []doc.Block{
		picture(x).Block(),
		doc.Brief{Verdict: &verdict},
		doc.OnTerminal(doc.Para{Text: verdict.Why}),
		doc.Pairs{Rows: v.Sides},
		doc.Notice{Title: "Warnings", Name: "warning", Tone: doc.ToneWarn, Lines: v.Warnings},
		doc.Titled("The change", v.Flows, doc.List{Lines: flatRows("", v.Reasons), Notes: true}),
		doc.Titled("Other changes", v.facts()...),
		doc.Titled("Guardrails", v.Guardrails, doc.Para{Text: v.AsBefore}),
		doc.Titled("Settings that differ", v.Settings),
		doc.Titled("Gates", v.Gates),
		doc.Titled("Measured on one side only", doc.List{Lines: v.Alone}),
	}
	if v.Command != "" {
		r.Body = append(r.Body, doc.Only{For: doc.Pages, Body: []doc.Block{doc.Titled("Reproduce", doc.Code{Lines: []string{v.Command}})}})
	}
	return r
}

// facts returns the facts that changed; a terminal only counts those that hardly affect a rate.
func (v *view) facts() []doc.Block {
	all := []doc.Block{v.Facts}
	if len(v.Facts.Rows) == 0 {
		all = []doc.Block{doc.OnPages(doc.Para{Text: "No changed fact of the hosts or the path affects the rate."})}
	}
	all = append(all, doc.List{Lines: flatRows("Limit ", v.Causes)})
	if n := len(v.Minor.Rows); n > 0 {
		more := "and " + unit.Plural(n, "fact") + " that hardly " + doc.Verb(n, "affects", "affect") + " the rate, see --html or --json"
		all = append(all, doc.Details{Title: "Facts that hardly affect the rate", Body: []doc.Block{v.Minor}}, doc.OnTerminal(doc.Para{Text: more}))
	}
	return all
}

// badge returns the tone of the outcome: no change is good, and an undecided outcome is neutral.
func (v *view) badge() doc.Tone {
	switch v.Tone {
	case doc.ToneGood, doc.ToneNone:
		return doc.ToneGood
	case doc.ToneBad:
		return doc.ToneBad
	}
	return doc.ToneNone
}

func flatRows(before string, rows []doc.Row) (lines []string) {
	for _, r := range rows {
		lines = append(lines, fmt.Sprintf("%s%s: %s", before, r.Name, r.Value))
	}
	return lines
}
