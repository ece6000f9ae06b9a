package compare

import (
	"cmp"
	"slices"
	"strings"

	"thru/internal/measure"
	"thru/internal/stat"
)

// team is one flow of a side: the same traffic between the same ends, over all
// results that measured it.
type team struct {
	from, to string // names of the end points
	hosts    [2]string
	roles    [2]string
	kind     string // what no other is ever held against
	key      string // settings that make the figure what it is
	cells    []placed
}

// placed is a cell with the result that it is of.
type placed struct {
	doc  *measure.Document
	cell *measure.Cell
}

// newest is the cell of the newest result that has a figure, else of the newest.
func (t *team) newest() placed {
	for _, p := range slices.Backward(t.cells) {
		if _, _, ok := valueOf(p.cell); ok {
			return p
		}
	}
	return t.cells[len(t.cells)-1]
}

// beside tells whether the flow decides nothing.
func (t *team) beside() bool { return isBeside(t.newest().cell) }

// matched are the teams of both sides that measure the same.
type matched struct{ before, after *team }

// teams gathers the flows of a side, in the order in which they appear.
func (s *side) teams() []*team {
	var all []*team
	found := map[string]*team{}
	for _, d := range s.docs {
		for _, c := range resultCells(d) {
			kind, key := kindOf(c), keyOf(c)
			id := strings.Join([]string{c.From, c.To, kind, key}, "\n")
			t := found[id]
			if t == nil {
				t = &team{from: c.From, to: c.To, kind: kind, key: key}
				t.hosts = [2]string{hostOf(d, c.From), hostOf(d, c.To)}
				t.roles = [2]string{roleOf(c.From), roleOf(c.To)}
				found[id], all = t, append(all, t)
			}
			t.cells = append(t.cells, placed{d, c})
		}
	}
	return all
}

// resultCells are the cells that are results: not those that an explanation or a
// tuning has tried. Of a tuning they are of the state that it has ended in.
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

// ofTuning tells whether a cell is one of a tuning, all of which are beside.
func ofTuning(c *measure.Cell) bool { return strings.HasPrefix(c.Experiment, measure.OfTuning) }

// hostOf is the name that the machine of an end point gives itself.
func hostOf(d *measure.Document, name string) string {
	for _, e := range d.EndPoints {
		if e.Name == name && e.Facts != nil && e.Facts.Hostname != nil {
			return *e.Facts.Hostname
		}
	}
	return ""
}

// roleOf is the part that an end point has by its name alone.
func roleOf(name string) string {
	if name == "local" {
		return "here"
	}
	return "far"
}

// match pairs the teams of both sides: those of the same end points by name, then
// by the machines' own names, then, where each side has a single pair, by who
// ran the command. Flows of the same settings come first; what is left is paired
// although its settings differ, where there is but one on each side: main flows
// among themselves, and those beside them.
func match(a, b *side) (pairs []matched, restA, restB []*team) {
	restA, restB = a.teams(), b.teams()
	lone := singlePair(restA) && singlePair(restB)
	for _, loose := range []bool{false, true} {
		for _, same := range []func(x, y *team) bool{byName, byHost, byRole(lone)} {
			fits := func(x, y *team) bool { return x.kind == y.kind && (loose || x.key == y.key) && same(x, y) }
			pairs = append(pairs, take(&restA, &restB, fits)...)
		}
	}
	return ordered(pairs), restA, restB
}

func byName(x, y *team) bool { return x.from == y.from && x.to == y.to }

func byHost(x, y *team) bool { return x.hosts == y.hosts && x.hosts[0] != "" && x.hosts[1] != "" }

func byRole(lone bool) func(x, y *team) bool {
	return func(x, y *team) bool {
		return lone && x.roles == y.roles && (x.from == x.to) == (y.from == y.to)
	}
}

// singlePair tells whether all teams are between one pair of end points.
func singlePair(all []*team) bool {
	for _, t := range all {
		if f := all[0]; !(t.from == f.from && t.to == f.to || t.from == f.to && t.to == f.from) {
			return false
		}
	}
	return len(all) > 0
}

// take removes and returns the teams that fit one another and no other.
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

// ordered has main flows before those beside them, else the order of the documents.
func ordered(pairs []matched) []matched {
	rank := func(m matched) int {
		if isBeside(m.after.newest().cell) {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(pairs, func(x, y matched) int { return cmp.Compare(rank(x), rank(y)) })
	return pairs
}

// isBeside tells whether a cell decides nothing.
func isBeside(c *measure.Cell) bool { return c.Beside && !ofTuning(c) }

// renamed tells of a flow whose end points are not called what they were, or are
// other machines by their own names.
func (p matched) renamed() (all []string) {
	was, is := measure.PairName(p.before.from, p.before.to), measure.PairName(p.after.from, p.after.to)
	if was != is {
		all = append(all, "before it was "+was+", after it is "+is)
	}
	for i, name := range []string{p.after.from, p.after.to} {
		if x, y := p.before.hosts[i], p.after.hosts[i]; x != "" && y != "" && x != y {
			all = append(all, name+" is another machine: it was "+x+", and is "+y)
		}
	}
	return all
}

// unmatched are the flows that only one side has.
func unmatched(name string, rest []*team) (all []measure.UnmatchedCell) {
	for _, t := range rest {
		what := whatOf(t.newest().cell)
		if t.beside() {
			what += " (beside)"
		}
		all = append(all, measure.UnmatchedCell{Side: name, From: t.from, To: t.to, What: what})
	}
	return all
}

// whatOf is the traffic of a cell in words: "TCP, 4 streams".
func whatOf(c *measure.Cell) string {
	words := []string{protocolText(c)}
	for _, s := range settingsOf(placed{cell: c}) {
		if s.refuses && s.shown != "" {
			words = append(words, s.shown)
		}
	}
	if text := stat.AxesText(axesBeside(c)); text != "" {
		words = append(words, text)
	}
	return strings.Join(words, ", ")
}
