package diagnose

import (
	"cmp"
	"slices"

	"thru/internal/measure"
)

// judged is a rule that holds.
type judged struct {
	rule    Rule
	place   int // in the catalogue
	outcome *outcome
	because string
}

// weight orders degrees of confidence.
func weight(confidence string) int {
	return slices.Index([]string{measure.Possible, measure.Likely, measure.Certain}, confidence)
}

// inOrder puts what binds first: what the rate hangs on before what is only
// to be mended, the surer before the less sure, and a root before what it
// brings along. Of equals the catalogue decides.
func inOrder(all []judged) []judged {
	for i := range all {
		all[i].because = rootOf(all[i], all)
	}
	rank := func(j judged) (int, int, int) {
		aside, rooted := 0, 0
		if j.outcome.aside {
			aside = 1
		}
		if j.because != "" {
			rooted = 1
		}
		return aside, rooted, -weight(j.outcome.confidence)
	}
	slices.SortStableFunc(all, func(a, b judged) int {
		aa, ar, aw := rank(a)
		ba, br, bw := rank(b)
		return cmp.Or(cmp.Compare(aa, ba), cmp.Compare(aw, bw), cmp.Compare(ar, br), cmp.Compare(a.place, b.place))
	})
	return rootsFirst(all)
}

// rootOf is the surest cause that brings this one along; one that is merely
// possible explains nothing.
func rootOf(j judged, all []judged) string {
	best, sure := "", -1
	for _, o := range all {
		w := weight(o.outcome.confidence)
		if slices.Contains(o.rule.Brings, j.rule.Cause) && !slices.Contains(j.outcome.apart, o.rule.Cause) && w >= weight(measure.Likely) && w > sure && !o.outcome.aside {
			best, sure = o.rule.Cause, w
		}
	}
	return best
}

// rootsFirst moves each root before the first cause that it brings along,
// however sure that one is.
func rootsFirst(all []judged) []judged {
	var out []judged
	var add func(j judged)
	add = func(j judged) {
		if slices.ContainsFunc(out, func(o judged) bool { return o.rule.Cause == j.rule.Cause }) {
			return
		}
		for _, root := range all {
			if j.because != "" && root.rule.Cause == j.because && root.because != j.rule.Cause {
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

// told tells whether the same was said of another cell: the same cause at the
// same place, whatever the direction.
func told(all []measure.Finding, x measure.Finding) bool {
	return slices.ContainsFunc(all, func(o measure.Finding) bool {
		same := o.Cause == x.Cause && o.Where.EndPoint == x.Where.EndPoint && o.Where.Interface == x.Where.Interface
		if x.Where.EndPoint == "" { // of the path: each direction is one
			same = same && (o.Where.From == x.Where.From || x.Healthy)
		}
		return same
	})
}

// settle leaves "none" out where something is wrong elsewhere.
func settle(all []measure.Finding) []measure.Finding {
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
		if c.Beside {
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
