// Package compared words a comparison of results: the change of each flow, what else changed, and what may
// have caused the change.
package compared

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"thru/internal/compare"
	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/report/result"
	"thru/internal/stat"
	"thru/internal/unit"
)

// view is a comparison ready to print.
type view struct {
	Answer     string
	Changed    string // the facts that the answer names
	Outcome    string
	Tone       doc.Tone
	Details    []string  // what the answer omits about the outcome
	Sides      []doc.Row // what is compared
	Flows      doc.Table
	Reasons    []doc.Row // why a flow has its outcome
	Facts      doc.Table
	Minor      doc.Table // facts that hardly affect a rate
	Causes     []doc.Row
	Guardrails doc.Table
	AsBefore   string // names of the guardrails that have not changed
	Settings   doc.Table
	Gates      doc.Table
	Alone      []string // flows of one side only
	Warnings   []string
	Command    string
	Thru       string
	When       string // time of the comparison
}

func newView(x *measure.Compared) *view {
	v := &view{Outcome: doc.Clean(x.Outcome), Tone: outcomeTone(x.Outcome), Thru: doc.Clean(x.Thru), Warnings: doc.CleanAll(x.Warnings)}
	v.Answer, v.Changed = comparedAnswer(x)
	v.Sides = []doc.Row{{Name: "before", Value: sideText(x.Before)}, {Name: "after", Value: sideText(x.After)}}
	v.Flows, v.Reasons = flowsGrid(x), flowReasons(x)
	v.Facts, v.Minor = factsGrid(x.Facts)
	v.Guardrails, v.AsBefore = guardrailsGrid(x.Cells)
	v.Settings, v.Gates = settingsGrid(x.Cells), gatesGrid(x.Gates)
	for _, c := range x.Causes[:min(len(x.Causes), result.MaxLines)] {
		v.Causes = append(v.Causes, doc.Row{Name: doc.Clean(endsText(c.From, c.To)), Value: doc.Clean(c.Before) + " -> " + doc.Clean(c.After) + doc.Prefixed(": ", doc.Clean(c.Summary))})
	}
	for _, u := range x.Unmatched[:min(len(x.Unmatched), result.MaxLines)] {
		v.Alone = append(v.Alone, doc.Clean("only "+u.Side+": "+atText(u.Place, u.From, u.To)+", "+u.What))
	}
	if n := len(x.Unmatched) - result.MaxLines; n > 0 {
		v.Alone = append(v.Alone, fmt.Sprintf("and %d more, see the JSON document", n))
	}
	if len(x.Cells) > 1 && hasDetails(x) {
		v.Details = append(v.Details, doc.Clean(x.Reason))
	}
	if x.Regression && x.Outcome != measure.Worse {
		v.Answer = doc.CleanUpTo(worstRail(x.Cells)+"; "+v.Answer, result.MaxAnswer)
		v.Tone = doc.ToneBad
	}
	v.Command = comparedCommand(x)
	if x.ComparedAt != nil {
		v.When = when(*x.ComparedAt)
	}
	return v
}

// worstRail names the guardrail that got worst in a comparison whose rates are no regression, and how many
// others got worse.
func worstRail(cells []measure.ComparedCell) string {
	var worst *measure.ComparedRail
	grown := func(r *measure.ComparedRail) float64 {
		if r.ChangePct == nil { // from zero
			return math.Inf(1)
		}
		return *r.ChangePct
	}
	direction, more := "", -1
	for i := range cells {
		for k := range cells[i].Guards {
			r := &cells[i].Guards[k]
			if cells[i].Baseline || !r.Worse {
				continue
			}
			more++
			if worst == nil || grown(r) > grown(worst) {
				worst, direction = r, comparedDirection(&cells[i])
			}
		}
	}
	if worst == nil {
		return ""
	}
	text := fmt.Sprintf("%s %s -> %s", worst.Name, railText(worst.Unit, worst.Before), railText(worst.Unit, worst.After))
	text += doc.Known(" (%s)", worst.ChangePct, unit.Change) + " " + direction + ": worse"
	if more > 0 {
		text += fmt.Sprintf(" (and %s)", unit.Plural(more, "more figure"))
	}
	return text
}

// comparedCommand returns the command to repeat the comparison. It replaces words such as "last", which name
// another result later, by ids.
func comparedCommand(x *measure.Compared) string {
	words := []string{"thru"}
	sides := []measure.ComparedSide{x.Before, x.After}
	for _, a := range x.Arguments[:min(len(x.Arguments), result.MaxLines)] {
		if len(sides) > 0 && a == sides[0].Name && len(words) > 1 {
			a, sides = pinned(sides[0]), sides[1:]
		}
		words = append(words, doc.Quote(a))
	}
	if len(words) == 1 {
		return ""
	}
	return strings.Join(words, " ")
}

// pinned names a side so that it stays the same later: by an id, or for a period by the start times of its
// first and last result.
func pinned(s measure.ComparedSide) string {
	n := len(s.Results)
	switch {
	case n == 1 && s.Results[0].Name != "":
		return s.Results[0].Name
	case n > 1 && !s.Results[0].StartedAt.IsZero():
		return s.Results[0].StartedAt.UTC().Format(time.RFC3339) + ".." + s.Results[n-1].StartedAt.UTC().Format(time.RFC3339)
	}
	return s.Name
}

// hasDetails reports whether there is more than one main flow, or none was compared.
func hasDetails(x *measure.Compared) bool {
	main := unit.CountFunc(x.Cells, func(c measure.ComparedCell) bool { return !c.Baseline })
	return main > 1 || x.Outcome == measure.NotCompared
}

// comparedAnswer returns "956 -> 812 Mb/s local -> peer, -15.1% (-16.0..-14.2%): worse", and "changed: MTU of
// eth0 9000 -> 1500 at peer". Of several flows it describes the worst.
func comparedAnswer(x *measure.Compared) (answer, changed string) {
	if len(x.Cells) == 0 {
		return doc.Clean(x.Reason), ""
	}
	c := worstCompared(x.Cells)
	several := slices.ContainsFunc(x.Cells, func(o measure.ComparedCell) bool {
		return !o.Baseline && comparedDirection(&o) == comparedDirection(c) && o.What != c.What
	})
	return doc.CleanUpTo(flowAnswer(c, several || c.Place != ""), result.MaxAnswer), doc.CleanUpTo(doc.Prefixed("changed: ", doc.Join(chosen(c), changedFacts(x.Facts, c))), result.MaxAnswer)
}

// chosen words the settings of a flow that the user changed and that affect the figure.
func chosen(c *measure.ComparedCell) string {
	var words []string
	for _, s := range c.Settings {
		if s.Affects || s.Refuses && c.ChangePct != nil {
			words = append(words, fmt.Sprintf("%s %s -> %s", s.Name, s.Before, s.After))
		}
	}
	return strings.Join(words[:min(len(words), answerFacts)], ", ")
}

// worstCompared returns the flow to name first: the one with the worst outcome, and among these the one with
// the largest drop.
func worstCompared(all []measure.ComparedCell) *measure.ComparedCell {
	rank := func(c *measure.ComparedCell) int {
		r := slices.Index([]string{measure.Worse, measure.Undecided, measure.Improved, measure.Equivalent, measure.NotCompared}, c.Outcome)
		if c.Failed {
			r = 0
		}
		if c.Baseline {
			r += 10
		}
		return r
	}
	change := func(c *measure.ComparedCell) float64 {
		if c.ChangePct == nil {
			return 0
		}
		return *c.ChangePct
	}
	worst := &all[0]
	for i := range all {
		if c := &all[i]; cmp.Or(cmp.Compare(rank(c), rank(worst)), cmp.Compare(change(c), change(worst))) < 0 {
			worst = c
		}
	}
	return worst
}

// flowAnswer describes a flow with its figures in a line; named adds its traffic if the direction alone is
// ambiguous.
func flowAnswer(c *measure.ComparedCell, named bool) string {
	direction := comparedDirection(c)
	if named {
		direction += " (" + c.What + ")"
	}
	if c.Before == nil || c.After == nil || c.ChangePct == nil {
		return direction + ": " + c.Outcome + ", " + c.Reason
	}
	return flowChange(c) + " " + direction + ", " + unit.Change(*c.ChangePct) + doc.Prefixed(" ", doc.Bracket(unit.ChangeRange(c.LowPct, c.HighPct))) + ": " + c.Outcome
}

// flowChange returns "956 -> 812 Mb/s", for requests "204 000 -> 180 000/s", for a disk "3.21 GB/s -> 2.87
// GB/s" or "85.2k -> 61.0k IOPS".
func flowChange(c *measure.ComparedCell) string {
	a, b := c.Before.Value, c.After.Value
	switch c.Figure {
	case "transactions_per_s":
		return stat.ThreeDigits(a) + " -> " + stat.ThreeDigits(b) + "/s"
	case "iops":
		return doc.PerSecond(a) + " -> " + doc.PerSecond(b) + " IOPS"
	case "bytes_per_s":
		return doc.ByteRate(a) + " -> " + doc.ByteRate(b)
	}
	if in := doc.ScaleFor(max(a, b)); min(a, b) >= in.Div/100 {
		return in.Number(a) + " -> " + in.Number(b) + " " + in.Name
	}
	return bitRate(a) + " -> " + bitRate(b)
}

// changedFacts names the changes for the answer; the same change at several places counts once.
func changedFacts(all []measure.FactChange, of *measure.ComparedCell) string {
	var words []string
	var places [][]string
	more := 0
	for _, f := range all {
		said := fmt.Sprintf("%s %s -> %s", f.Name, f.Before, f.After)
		i := slices.Index(words, said)
		switch {
		case f.Minor, f.Fact == "paths.mtu" && followsMTU(all, f):
		case i >= 0 && len(places[i]) < answerFacts:
			places[i] = append(places[i], f.Of)
		case i >= 0:
		case len(words) == answerFacts:
			more++
		default:
			words, places = append(words, said), append(places, []string{f.Of})
		}
	}
	for i := range words {
		words[i] += " " + changedAt(places[i], of)
	}
	if more > 0 {
		words = append(words, fmt.Sprintf("%d more", more))
	}
	return strings.Join(words, ", ")
}

// followsMTU reports whether the MTU of a path changed because that of an interface did.
func followsMTU(all []measure.FactChange, p measure.FactChange) bool {
	return slices.ContainsFunc(all, func(f measure.FactChange) bool {
		return !f.Minor && compare.KindOfFact(f.Fact) == "interfaces.mtu_bytes" && f.Before == p.Before && f.After == p.After
	})
}

// changedAt returns "at peer", "at both ends" of a flow, or for a path "on local -> peer" and "in both directions".
func changedAt(places []string, of *measure.ComparedCell) string {
	are := func(a, b string) bool {
		return len(places) == 2 && slices.Contains(places, a) && slices.Contains(places, b)
	}
	switch {
	case are(of.From, of.To):
		return "at both ends"
	case are(measure.PairName(of.From, of.To), measure.PairName(of.To, of.From)):
		return "in both directions"
	case strings.Contains(places[0], " -> "):
		return "on " + strings.Join(places, " and ")
	}
	return "at " + strings.Join(places, " and ")
}

// sideText names the results of a side.
func sideText(s measure.ComparedSide) string {
	n := len(s.Results)
	if n == 0 {
		return "no result"
	}
	first, last := s.Results[0], s.Results[n-1]
	if n > 1 {
		failed, lost := 0, ""
		for _, r := range s.Results {
			if r.Error != "" {
				failed++
			}
		}
		if failed > 0 {
			lost = fmt.Sprintf("%d of them failed", failed)
		}
		return doc.Clean(doc.Join(s.Name, fmt.Sprintf("%d results", n), lost, when(first.StartedAt)+" to "+when(last.StartedAt), machinesText(last)))
	}
	called := s.Name
	if first.Name != "" && first.Name != s.Name {
		called += " " + doc.Bracket(first.Name)
	}
	failed := ""
	if first.Error != "" {
		failed = "failed: " + first.Error
	}
	return doc.Clean(doc.Join(called, doc.Prefixed("thru ", first.Command), when(first.StartedAt), machinesText(first), failed))
}

// machinesText names the machines of a result, at most a few.
func machinesText(r measure.ComparedResult) string {
	names := r.Hosts[:min(len(r.Hosts), result.FleetLines)]
	more := ""
	if n := len(r.Hosts) - len(names); n > 0 {
		more = fmt.Sprintf("%d more hosts", n)
	}
	return doc.Join(strings.Join(names, ", "), more)
}

// when formats a time for people; "" for the zero time.
func when(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04") + " UTC"
}
