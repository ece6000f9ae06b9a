package compare

import (
	"cmp"
	"slices"
	"strings"

	"thru/internal/measure"
)

// team is one subject of a side between the same ends, over all results that measured it.
type team struct {
	from, to string // names of the end points
	place    string
	hosts    [2]string
	roles    [2]string
	family   string
	kind     string // only teams of the same kind are compared
	key      string // settings that define the figure
	members  []*subject
}

// newest returns the subject of the newest result with a figure, else of the newest.
func (t *team) newest() *subject {
	for _, s := range slices.Backward(t.members) {
		if s.figure != nil {
			return s
		}
	}
	return t.members[len(t.members)-1]
}

// baseline reports whether the subject does not count for the outcome.
func (t *team) baseline() bool { return t.newest().baseline }

// matched is a pair of teams that measure the same.
type matched struct{ before, after *team }

// teams returns the subjects of a side, in the order in which they appear.
func (s *side) teams() []*team {
	var all []*team
	found := map[string]*team{}
	for _, d := range s.docs {
		for _, x := range subjectsOf(d) {
			key := x.identity()
			id := strings.Join([]string{x.from, x.to, x.kind, key}, "\n")
			t := found[id]
			if t == nil {
				t = &team{from: x.from, to: x.to, place: x.place, family: x.family, kind: x.kind, key: key}
				t.hosts = [2]string{hostOf(d, x.from), hostOf(d, x.to)}
				t.roles = [2]string{roleOf(x.from), roleOf(x.to)}
				found[id], all = t, append(all, t)
			}
			t.members = append(t.members, x)
		}
	}
	return all
}

// resultCells returns the cells that are results: not those that an explanation or a tuning tried. For a tuning
// they are of its final state.
func resultCells(d *measure.Document) (all []*measure.Cell) {
	if d.Tuning != nil && len(d.Tuning.Journey) > 0 {
		for _, i := range d.Tuning.Journey[len(d.Tuning.Journey)-1].Cells {
			if i >= 0 && i < len(d.Cells) {
				all = append(all, &d.Cells[i])
			}
		}
		return all
	}
	for i := range d.Cells {
		if c := &d.Cells[i]; c.Experiment == "" || c.Experiment == "base" {
			all = append(all, c)
		}
	}
	return all
}

// ofTuning reports whether a cell belongs to a tuning, all of whose cells are marked as baselines.
func ofTuning(c *measure.Cell) bool { return strings.HasPrefix(c.Experiment, measure.OfTuning) }

// hostOf returns the machine's own name for an end point.
func hostOf(d *measure.Document, name string) string {
	if f := d.FactsOf(name); f != nil {
		return measure.Value(f.Hostname)
	}
	return ""
}

// roleOf returns the role of an end point by its name.
func roleOf(name string) string {
	if name == "local" {
		return "here"
	}
	return "far"
}

// match pairs the teams of both sides: by the names of the end points, then by the machines' own names, then, if
// each side has a single pair, by who ran the command. Teams with equal settings are paired first; the remaining
// ones are paired despite different settings if each side has only one: main ones with each other, and baselines
// with each other.
func match(a, b *side) (pairs []matched, restA, restB []*team) {
	restA, restB = a.teams(), b.teams()
	lone := func(family string) bool { return singlePair(restA, family) && singlePair(restB, family) }
	byRole := byRole(map[string]bool{flows: lone(flows), disks: lone(disks), transfers: lone(transfers)})
	for _, loose := range []bool{false, true} {
		for _, same := range []func(x, y *team) bool{byName, byHost, byRole} {
			fits := func(x, y *team) bool { return x.kind == y.kind && (loose || x.key == y.key) && same(x, y) }
			pairs = append(pairs, take(&restA, &restB, fits)...)
		}
	}
	return ordered(pairs), restA, restB
}

func byName(x, y *team) bool { return x.from == y.from && x.to == y.to }

func byHost(x, y *team) bool { return x.hosts == y.hosts && x.hosts[0] != "" && x.hosts[1] != "" }

// byRole pairs by who ran the command, in families that have a single pair per side.
func byRole(lone map[string]bool) func(x, y *team) bool {
	return func(x, y *team) bool {
		return lone[x.family] && x.roles == y.roles && (x.from == x.to) == (y.from == y.to)
	}
}

// singlePair reports whether all teams of a family are between one pair of end points.
func singlePair(all []*team, family string) bool {
	var f *team
	for _, t := range all {
		switch {
		case t.family != family:
		case f == nil:
			f = t
		case !(t.from == f.from && t.to == f.to || t.from == f.to && t.to == f.from):
			return false
		}
	}
	return f != nil
}

// take removes and returns the teams that match exactly one team.
func take(as, bs *[]*team, fits func(x, y *team) bool) (pairs []matched) {
	partner := func(x *team, of []*team, fits func(y *team) bool) *team {
		var found *team
		for _, y := range of {
			if fits(y) {
				if found != nil {
					return nil
				}
				found = y
			}
		}
		return found
	}
	for _, x := range slices.Clone(*as) {
		y := partner(x, *bs, func(y *team) bool { return fits(x, y) })
		if y == nil || partner(y, *as, func(z *team) bool { return fits(z, y) }) != x {
			continue
		}
		pairs = append(pairs, matched{x, y})
		*as = slices.DeleteFunc(*as, func(z *team) bool { return z == x })
		*bs = slices.DeleteFunc(*bs, func(z *team) bool { return z == y })
	}
	return pairs
}

// ordered sorts main ones before baselines, and otherwise in the order of the documents.
func ordered(pairs []matched) []matched {
	rank := func(m matched) int {
		if m.after.baseline() {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(pairs, func(x, y matched) int { return cmp.Compare(rank(x), rank(y)) })
	return pairs
}

// isBaseline reports whether a cell does not count for the outcome.
func isBaseline(c *measure.Cell) bool { return c.Baseline && !ofTuning(c) }

// renamed reports a pair whose end points have other names than before, or are other machines by their own names.
func (p matched) renamed() (all []string) {
	was, is := directionText(p.before.from, p.before.to), directionText(p.after.from, p.after.to)
	if was != is {
		all = append(all, "it was "+was+" before, and is "+is+" after")
	}
	for i, name := range []string{p.after.from, p.after.to} {
		if x, y := p.before.hosts[i], p.after.hosts[i]; x != "" && y != "" && x != y {
			all = append(all, name+" is another machine: it was "+x+", and is "+y)
		}
	}
	return all
}

// unmatched returns the subjects that only one side has.
func unmatched(name string, rest []*team) (all []measure.UnmatchedCell) {
	for _, t := range rest {
		if t.family != flows && t.newest().figure == nil || t.family == disks && t.baseline() {
			continue // nobody is known to have requested it, or it is the baseline of a named one
		}
		what := t.newest().what()
		if t.baseline() {
			what += " (beside)"
		}
		all = append(all, measure.UnmatchedCell{Side: name, From: t.from, To: t.to, Place: t.place, What: what})
	}
	return all
}
