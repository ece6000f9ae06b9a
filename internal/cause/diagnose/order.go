package diagnose

import (
	"cmp"
	"slices"

	"thru/internal/measure"
)

// Judged is a rule that holds.
type Judged struct {
	Rule    Rule
	Place   int // in the catalogue
	Outcome *Outcome
	Because string
}

// Weight orders degrees of confidence.
func Weight(confidence string) int {
	return slices.Index([]string{measure.Possible, measure.Likely, measure.Certain}, confidence)
}

// InOrder puts the binding causes first: causes that limit the rate before those merely worth fixing, more certain
// before less certain, and a root before its effects. The catalogue's order breaks ties.
func InOrder(all []Judged) []Judged {
	for i := range all {
		all[i].Because = rootOf(all[i], all)
	}
	rank := func(j Judged) (int, int, int) {
		aside, rooted := 0, 0
		if j.Outcome.NotBinding {
			aside = 1
		}
		if j.Because != "" {
			rooted = 1
		}
		return aside, rooted, -Weight(j.Outcome.Confidence)
	}
	slices.SortStableFunc(all, func(a, b Judged) int {
		aa, ar, aw := rank(a)
		ba, br, bw := rank(b)
		return cmp.Or(cmp.Compare(aa, ba), cmp.Compare(aw, bw), cmp.Compare(ar, br), cmp.Compare(a.Place, b.Place))
	})
	return rootsFirst(all)
}

// rootOf returns the most certain cause that has this one as its effect; a merely possible one explains nothing.
func rootOf(j Judged, all []Judged) string {
	best, sure := "", -1
	for _, o := range all {
		w := Weight(o.Outcome.Confidence)
		if slices.Contains(o.Rule.Brings, j.Rule.Cause) && !slices.Contains(j.Outcome.RuledOutEffects, o.Rule.Cause) && w >= Weight(measure.Likely) && w > sure && !o.Outcome.NotBinding {
			best, sure = o.Rule.Cause, w
		}
	}
	return best
}

// rootsFirst moves each root before the first of its effects, however certain that is.
func rootsFirst(all []Judged) []Judged {
	var out []Judged
	var add func(j Judged)
	add = func(j Judged) {
		if slices.ContainsFunc(out, func(o Judged) bool { return o.Rule.Cause == j.Rule.Cause }) {
			return
		}
		for _, root := range all {
			if j.Because != "" && root.Rule.Cause == j.Because && root.Because != j.Rule.Cause {
				add(root)
			}
		}
		out = append(out, j)
	}
	for _, j := range all {
		add(j)
	}
	return out
}

// Repeated reports whether another cell has the same finding: the same cause at the same place, whatever the
// direction.
func Repeated(all []measure.Finding, x measure.Finding) bool {
	return slices.ContainsFunc(all, func(o measure.Finding) bool {
		same := o.Cause == x.Cause && o.Where.EndPoint == x.Where.EndPoint && o.Where.Interface == x.Where.Interface
		if x.Where.EndPoint == "" { // on the path: each direction is separate
			same = same && (o.Where.From == x.Where.From || x.Healthy)
		}
		return same
	})
}

// Settle removes "none" if another cell has a fault.
func Settle(all []measure.Finding) []measure.Finding {
	if len(all) == 0 || all[0].Healthy || all[0].Cause == measure.CauseNone {
		return all
	}
	return slices.DeleteFunc(all, func(x measure.Finding) bool { return x.Cause == measure.CauseNone })
}

// sortCells puts limited cells before healthy ones, main cells before the others, and then slower ones first.
func sortCells(cells []*measure.Cell) {
	rank := func(c *measure.Cell) int {
		n := 0
		if c.Baseline {
			n += 2
		}
		if c.Findings[0].Healthy {
			n++
		}
		return n
	}
	rate := func(c *measure.Cell) float64 {
		if c.Goodput == nil {
			return 0
		}
		return c.Goodput.Value
	}
	slices.SortStableFunc(cells, func(a, b *measure.Cell) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(rate(a), rate(b)))
	})
}
