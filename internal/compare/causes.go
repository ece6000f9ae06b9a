package compare

import (
	"slices"
	"strings"

	"thru/internal/measure"
)

// causeChanges returns the flows whose limiting cause changed.
func causeChanges(pairs []matched) (all []measure.CauseChange) {
	for _, p := range pairs {
		if p.after.baseline() {
			continue
		}
		was, is := p.before.newest().finding, p.after.newest().finding
		if was == nil || is == nil || was.Cause == is.Cause && was.Where.Place == is.Where.Place {
			continue
		}
		all = append(all, measure.CauseChange{From: p.after.from, To: p.after.to, Before: causeText(was), After: causeText(is), Summary: is.Summary})
	}
	return all
}

func firstFinding(all []measure.Finding) *measure.Finding {
	if len(all) == 0 {
		return nil
	}
	return &all[0]
}

// causeText words a cause with its place, if that is an end.
func causeText(f *measure.Finding) string {
	if f.Where.Place == measure.AtSender || f.Where.Place == measure.AtReceiver {
		return f.Cause + " (" + f.Where.Place + ")"
	}
	return f.Cause
}

// gateChanges returns the gates of the newest results whose status changed, if either is more than a pass.
func gateChanges(a, b *side, e ends) (all []measure.GateChange) {
	before := gatesOf(a.last(), func(name string) string {
		for after, was := range e.before {
			if was == name {
				return after
			}
		}
		return name
	})
	after := gatesOf(b.last(), func(name string) string { return name })
	for _, g := range after {
		i := slices.IndexFunc(before, func(x gateAt) bool { return x.id == g.id && x.of == g.of })
		if i < 0 || before[i].gate.Status == g.gate.Status || !bad(before[i].gate) && !bad(g.gate) {
			continue
		}
		all = append(all, measure.GateChange{ID: g.id, Of: g.of, Before: statusText(before[i].gate), After: statusText(g.gate), Fact: g.gate.Fact})
	}
	slices.SortStableFunc(all, func(x, y measure.GateChange) int { return worseStatus(y.After) - worseStatus(x.After) })
	return all
}

// gateAt is a gate with its subject, under the names of after.
type gateAt struct {
	id, of string
	gate   *measure.Gate
}

func gatesOf(d *measure.Document, called func(string) string) (all []gateAt) {
	for i := range d.Gates {
		g := &d.Gates[i]
		of := ""
		switch {
		case g.EndPoint != "":
			of = strings.TrimSpace(called(g.EndPoint) + " " + g.Interface)
		case g.From != "":
			of = measure.PairName(called(g.From), called(g.To))
		}
		all = append(all, gateAt{g.ID, of, g})
	}
	return all
}

func bad(g *measure.Gate) bool { return g.Status == measure.GateWarn || g.Status == measure.GateFail }

func statusText(g *measure.Gate) string { return strings.ReplaceAll(g.Status, "_", " ") }

func worseStatus(s string) int {
	return slices.Index([]string{"not checked", measure.GatePass, measure.GateWarn, measure.GateFail}, s)
}
