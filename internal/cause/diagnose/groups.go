package diagnose

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// Sweep is a set of groups of a plan that differ only in their number of flows, the fewest first.
type Sweep struct {
	Axis   string // "end_points" or "streams"
	Groups []*measure.Group
	Counts []int // number of flows of each group
}

// Sweeps returns the sweeps of a document with at least two groups that have an aggregate. It leaves out a group
// with a failed pair, which carries less for another reason.
func Sweeps(d *measure.Document) []Sweep {
	var all []Sweep
	for _, axis := range []string{"end_points", "streams"} {
		var keys []string
		found := map[string]*Sweep{}
		for i := range d.Groups {
			g := &d.Groups[i]
			n, rest, ok := countOn(g.Axes, axis)
			if !ok || g.Aggregate == nil || len(g.Failed) > 0 || IsRateLimitedGroup(d, g.Group) {
				continue
			}
			key := g.Rung + "\n" + stat.AxesText(rest) + "\n" + directions(d, g.Group)
			if found[key] == nil {
				keys, found[key] = append(keys, key), &Sweep{Axis: axis}
			}
			found[key].Groups, found[key].Counts = append(found[key].Groups, g), append(found[key].Counts, n)
		}
		for _, k := range keys {
			if s := found[k]; len(s.Groups) > 1 {
				s.sort()
				all = append(all, *s)
			}
		}
	}
	return all
}

// countOn separates the number on an axis from the other axes.
func countOn(axes []measure.Axis, axis string) (n int, rest []measure.Axis, ok bool) {
	for _, a := range axes {
		if a.Name != axis {
			rest = append(rest, a)
		} else if x, err := strconv.Atoi(a.Value); err == nil && x > 0 {
			n, ok = x, true
		}
	}
	return n, rest, ok
}

// directions lists the directions of a group's flows, each once.
func directions(d *measure.Document, group int) string {
	all := unit.Mapped(CellsOf(d, group), func(c *measure.Cell) string { return c.From + " -> " + c.To })
	slices.Sort(all)
	return strings.Join(slices.Compact(all), "\n")
}

// CellsOf returns the measured data flows of a group.
func CellsOf(d *measure.Document, group int) []*measure.Cell {
	var all []*measure.Cell
	for i := range d.Cells {
		if c := &d.Cells[i]; c.Group == group && !c.Baseline && c.Spec.Traffic == measure.Bulk && RateOf(c) > 0 {
			all = append(all, c)
		}
	}
	return all
}

// IsRateLimitedGroup reports whether any of its flows had a requested rate.
func IsRateLimitedGroup(d *measure.Document, group int) bool {
	return slices.ContainsFunc(CellsOf(d, group), func(c *measure.Cell) bool { return c.Spec.Rate > 0 || c.Spec.MaxRate > 0 })
}

func (s *Sweep) sort() {
	order := make([]int, len(s.Groups))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(s.Counts[a], s.Counts[b]) })
	groups, counts := slices.Clone(s.Groups), slices.Clone(s.Counts)
	for i, at := range order {
		s.Groups[i], s.Counts[i] = groups[at], counts[at]
	}
}

// Words returns the number of flows of one of its groups, in words.
func (s Sweep) Words(i int) string {
	if s.Axis == "end_points" {
		return unit.Plural(s.Counts[i], "end point") + " a host"
	}
	return unit.Plural(s.Counts[i], "stream")
}

// FallBar is by how many percent the rate must fall with more flows.
const FallBar = 5

// BestOf returns the index of the fastest group of a sweep.
func BestOf(s Sweep) int {
	best := 0
	for i, g := range s.Groups {
		if g.Aggregate.Value > s.Groups[best].Aggregate.Value {
			best = i
		}
	}
	return best
}

// MemberSpeed returns the speed of the members of a bond in bit/s, if all have the same, and how many carry
// traffic at a time.
func MemberSpeed(i *measure.Interface) (bps float64, n int) {
	if i == nil || i.Bond == nil || i.Bond.Active != "" || i.Bond.Mode == "active-backup" {
		return 0, 0
	}
	for _, m := range i.Bond.Members {
		if !m.Up {
			continue
		}
		if n++; m.SpeedBps == nil || *m.SpeedBps <= 0 || bps > 0 && float64(*m.SpeedBps) != bps {
			return 0, 0
		}
		bps = float64(*m.SpeedBps)
	}
	return bps, n
}

// GroupGainBar is the least ratio at which another measurement counts as a gain: a change has to bring 2% (package
// stat).
const GroupGainBar = 1.02
