package why

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/report/result"
	"thru/internal/unit"
)

// Limits of what a terminal shows of a diagnosis; page and JSON document have more.
const (
	textFindings = 4
	textGroups   = 4 // reasons for which causes were not checked
)

// Blocks returns each direction's findings with their evidence, and what is ruled out. For capture files a
// terminal shows only the facts of the first finding, and the other causes further below.
func Blocks(all []Diagnosis, files bool) (out []doc.Block) {
	var before *Diagnosis
	for i := range all {
		d := &all[i]
		body := slices.Concat(d.cards(before, files), d.details())
		if !files {
			body = append(body, doc.OnTerminal(doc.Pairs{Rows: d.Others(before, false)}))
		}
		out, before = append(out, doc.Titled("What limits it"+doc.Prefixed(", ", d.Direction), body...)), d
	}
	return out
}

// cards returns the findings. A terminal does not repeat those of the previous direction.
func (d *Diagnosis) cards(before *Diagnosis, files bool) (body []doc.Block) {
	for n, f := range d.Findings {
		body = append(body, doc.OnPages(f.card()))
		if n >= textFindings {
			continue
		}
		pages := []string{"rule"} // what does not fit a terminal
		switch {
		case n > 0 && (files || f.Confidence == measure.Possible):
			pages = append(pages, "seen", "cost", "next", "do", "risk")
		case before != nil && before.has(f):
			pages, f.Advice = append(pages, "next", "risk"), ""
		}
		body = append(body, doc.OnTerminal(f.card().For(doc.Pages, pages...)))
	}
	if more := d.More + len(d.Findings) - textFindings; more > 0 {
		body = append(body, doc.OnTerminal(doc.List{Lines: []string{fmt.Sprintf("and %d more, see the HTML report", more)}}))
	}
	if d.More > 0 {
		body = append(body, doc.OnPages(doc.Para{Text: fmt.Sprintf("%d more are in the JSON document.", d.More)}))
	}
	return body
}

// has reports whether a direction has the same finding, with the same advice.
func (d *Diagnosis) has(f Finding) bool {
	return slices.ContainsFunc(d.Findings, func(x Finding) bool {
		return x.Cause == f.Cause && x.Advice == f.Advice && x.Risk == f.Risk && x.Next == f.Next
	})
}

// card returns a finding with its evidence and fix.
func (f Finding) card() doc.Card {
	c := doc.Card{Name: f.name(), Badge: f.Confidence, Where: doc.Join(f.Where, doc.Prefixed("because of ", f.BecauseOf)), Tone: f.tone(), Text: f.Summary, Said: f.Said}
	c.Say("seen", f.Evidence...)
	c.Say("cost", f.Effect)
	c.Say("next", f.Next)
	c.Type("do", f.Commands, f.Advice, f.At)
	c.Say("risk", f.Risk)
	c.Say("rule", f.Source)
	return c
}

func (f *Finding) tone() doc.Tone {
	if f.Healthy {
		return doc.ToneGood
	}
	return map[string]doc.Tone{measure.Certain: doc.ToneBad, measure.Likely: doc.ToneWarn}[f.Confidence]
}

// name returns the cause, or "nothing found".
func (f Finding) name() string {
	if f.Cause == measure.CauseNone {
		return "nothing found"
	}
	return f.Cause
}

// details returns the other causes with the evidence against them, or what is missing.
func (d *Diagnosis) details() []doc.Block {
	paper := strings.Join(d.ids(), ", ")
	if d.OfMany {
		paper = "on screen, and in the JSON document"
	}
	open := doc.Table{Columns: []doc.Column{{Name: "cause"}, {Name: "missing"}, {Name: "why"}, {Name: "test that would decide"}}}
	var causes []string
	for _, u := range d.Open {
		open.Rows, causes = append(open.Rows, []string{u.Cause, u.Fact, u.Why, doc.OrDash(u.Tests)}), append(causes, u.Cause)
	}
	return []doc.Block{
		doc.Details{Title: fmt.Sprintf("%d ruled out", len(d.RuledOut)), Brief: true, Paper: paper, Body: []doc.Block{doc.Pairs{Rows: d.Against()}}},
		doc.Details{Title: fmt.Sprintf("%d not checked: a fact is missing", len(d.Open)), Note: strings.Join(causes, ", "), Brief: true, Body: []doc.Block{open}},
	}
}

// Others returns the other causes in a few lines: those ruled out, and the others by what is missing; for
// capture files by the capture that would decide.
func (d *Diagnosis) Others(before *Diagnosis, files bool) (rows []doc.Row) {
	if before != nil && sameOthers(*d, *before) {
		return []doc.Row{{Name: "other causes", Value: "as for " + cmp.Or(before.Direction, "the other direction")}}
	}
	if ids := d.ids(); len(ids) > 0 {
		rows = append(rows, doc.Row{Name: "ruled out", Value: strings.Join(ids, ", ")})
	}
	if len(d.Open) == 0 {
		return rows
	}
	groups, others := d.groups(), 0
	if files {
		groups, others = d.tellable()
	}
	parts := unit.Mapped(groups[:min(len(groups), textGroups)], func(g doc.Gap) string { return g.Text(result.GapFacts) })
	if n := len(groups) - textGroups; n > 0 && !files {
		parts = append(parts, "and causes that lack "+unit.Plural(n, "other fact"))
	}
	if others > 0 {
		parts = append(parts, fmt.Sprintf("%d that these packets cannot decide", others))
	}
	count := unit.Plural(len(d.Open), "cause") + ": "
	if files {
		count = ""
	}
	return append(rows, doc.Row{Name: "not checked", Value: count + strings.Join(parts, "; ")})
}

// sameOthers reports whether two directions rule out the same causes, and leave the same open.
func sameOthers(a, b Diagnosis) bool {
	return slices.EqualFunc(a.RuledOut, b.RuledOut, func(x, y doc.Row) bool { return x.Name == y.Name }) &&
		slices.EqualFunc(a.Open, b.Open, func(x, y unsettled) bool { return x.Cause == y.Cause && x.Fact == y.Fact })
}

// Against returns what rules causes out: a row for each reason, with its causes.
func (d Diagnosis) Against() (rows []doc.Row) {
	for _, r := range d.RuledOut {
		same := slices.IndexFunc(rows, func(x doc.Row) bool { return x.Value == r.Value })
		if same < 0 {
			rows = append(rows, r)
		} else {
			rows[same].Name += ", " + r.Name
		}
	}
	return rows
}

// tellable returns the causes that another capture would decide, grouped by that capture, and how many others
// captures leave open.
func (d Diagnosis) tellable() (all []doc.Gap, others int) {
	for _, u := range d.Open {
		if why := captureText(u.Capture); why != "" {
			all = doc.AddGap(all, u.Cause, why)
		} else {
			others++
		}
	}
	return all, others
}

// captureText words which capture would decide a cause; "" if none would.
func captureText(capture string) string {
	switch capture {
	case measure.AtSender, measure.AtReceiver:
		return "a capture at the " + capture + " would decide"
	case measure.CaptureAtOtherEnd:
		return "a second capture at the other end would decide"
	case measure.CaptureHandshake:
		return "the handshake is not in the capture"
	}
	return ""
}
