package inventory

import (
	"cmp"
	"slices"

	"thru/internal/doc"
	"thru/internal/measure"
)

// briefRows limits the anomalies, hosts and guests of the short form.
const briefRows = 4

// Brief returns the short form of inventories: the first anomalies, and the guests if they are few, else the
// hosts. It also returns the number of facts that are not known.
func Brief(d *measure.Document) (all []doc.Block, missing int) {
	for i, e := range newEstates(d) {
		slices.SortStableFunc(e.Observations, func(a, b observation) int { // those without a consequence last
			return cmp.Compare(b.Why, "") - cmp.Compare(a.Why, "")
		})
		found := e.standOut()
		found.Lines = doc.FirstOf(found.Lines, briefRows)
		t := e.all()
		if len(t.Rows) > briefRows {
			t = e.Hosts
		}
		t = t.Brief().Cut(briefRows, "")
		all, missing = append(all, found, t), missing+len(d.Inventories[i].NotChecked)
	}
	return all, missing
}
