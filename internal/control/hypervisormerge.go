package control

import (
	"slices"
	"time"

	"thru/internal/measure"
)

// takeOver adds to a continued run the hypervisors that were found in its first
// part, and their counters.
func (r *Runner) takeOver(doc *measure.Document) {
	b := r.Before
	if b == nil {
		return
	}
	for _, old := range b.Inventories {
		v := inventoryOf(doc, old.Source)
		if v == nil {
			doc.Inventories = append(doc.Inventories, old)
			continue
		}
		v.Guests = withOld(v.Guests, old.Guests, func(g *measure.Guest) string { return g.ID })
		v.Hosts = withOld(v.Hosts, old.Hosts, func(h *measure.GuestHost) string { return h.ID })
		v.Switches = withOld(v.Switches, old.Switches, func(s *measure.VirtualSwitch) string { return s.ID })
		v.PortGroups = withOld(v.PortGroups, old.PortGroups, func(g *measure.SwitchPortGroup) string { return g.ID })
		v.Series = mergeSeries(slices.Clone(old.Series), v.Series)
	}
	for i := range doc.EndPoints {
		e := &doc.EndPoints[i]
		for _, old := range b.EndPoints {
			if old.Name == e.Name && e.Placement == nil && old.Placement != nil {
				e.Placement, e.NoPlace, e.NoPlaceCode = old.Placement, "", ""
			}
		}
	}
	for _, old := range b.Relations {
		if !slices.ContainsFunc(doc.Relations, func(x measure.Relation) bool { return between(x.From, x.To) == between(old.From, old.To) }) {
			doc.Relations = append(doc.Relations, old)
		}
	}
}

// withOld adds the objects that are gone now: earlier counters refer to them.
func withOld[T any](now, old []T, id func(*T) string) []T {
	for i := range old {
		if !slices.ContainsFunc(now, func(x T) bool { return id(&x) == id(&old[i]) }) {
			now = append(now, old[i])
		}
	}
	return now
}

// mergeSeries adds samples to the series of the same counter, each once. The
// clock of a source was read again for the second part, so the same interval may
// end some milliseconds later there.
func mergeSeries(all, more []measure.Series) []measure.Series {
	for _, s := range more {
		i := slices.IndexFunc(all, func(x measure.Series) bool {
			return x.Of == s.Of && x.Instance == s.Instance && x.Counter == s.Counter && x.EveryNs == s.EveryNs
		})
		if i < 0 {
			all = append(all, s)
			continue
		}
		samples := append(slices.Clone(all[i].Samples), s.Samples...)
		slices.SortStableFunc(samples, func(a, b measure.Reading) int { return a.EndedAt.Compare(b.EndedAt) })
		near := max(time.Duration(s.EveryNs/2), 1)
		all[i].Samples = slices.CompactFunc(samples, func(a, b measure.Reading) bool { return b.EndedAt.Sub(a.EndedAt).Abs() < near })
	}
	return all
}

func inventoryOf(doc *measure.Document, source string) *measure.Inventory {
	i := slices.IndexFunc(doc.Inventories, func(v measure.Inventory) bool { return v.Source == source })
	if i < 0 {
		return nil
	}
	return &doc.Inventories[i]
}
