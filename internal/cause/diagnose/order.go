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

// InOrder puts what binds first: what the rate hangs on before what is only
// to be mended, the surer before the less sure, and a root before what it
// brings along. Of equals the catalogue decides.
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

// rootOf is the surest cause that brings this one along; one that is merely
// possible explains nothing.
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

// rootsFirst moves each root before the first cause that it brings along,
// however sure that one is.
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

// Repeated tells whether the same was said of another cell: the same cause at the
// same place, whatever the direction.
func Repeated(all []measure.Finding, x measure.Finding) bool {
	return slices.ContainsFunc(all, func(o measure.Finding) bool {
		same := o.Cause == x.Cause && o.Where.EndPoint == x.Where.EndPoint && o.Where.Interface == x.Where.Interface
		if x.Where.EndPoint == "" { // of the path: each direction is one
			same = same && (o.Where.From == x.Where.From || x.Healthy)
		}
		return same
	})
}

// Settle leaves "none" out where something is wrong elsewhere.
func Settle(all []measure.Finding) []measure.Finding {
	if len(all) == 0 || all[0].Healthy || all[0].Cause == measure.CauseNone {
		return all
	}
	return slices.DeleteFunc(all, func(x measure.Finding) bool { return x.Cause == measure.CauseNone })
}

// sortCells puts the cells that are held back before those that are well, main
// ones before those beside them, and then the slower ones first.
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
