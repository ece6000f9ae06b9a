package fleet

import (
	"cmp"
	"slices"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/report/ladder"
	"thru/internal/report/result"
	"thru/internal/stat"
	"thru/internal/unit"
)

// Set is what a plan measured under the same conditions: the groups with the same rung and axes. One group
// holds pairs that ran at once; several groups ran one after the other.
type Set struct {
	Name   string // "4 streams, default window"
	Rung   string
	Axes   []measure.Axis
	Asks   bool // requests and responses, which have no bit/s
	Groups []*measure.Group
	Cells  []*measure.Cell
	Pairs  []pairFigure
}

// pairFigure is what one pair of a set carried: all its flows together.
type pairFigure struct {
	From, To string
	Flows    int
	Value    *float64 // bit/s, or requests a second; nil: no figure
	Failed   string   // why; empty: it did not fail
	Whole    bool     // a run of it ended as planned, and its figure is of that run
	Cells    []*measure.Cell
}

// Sets returns the sets of a document, in the order of measurement. They exclude baselines and latency
// probes.
func Sets(d *measure.Document) []*Set {
	var all []*Set
	byKey, byGroup := map[string]*Set{}, map[int][]*measure.Cell{}
	for i := range d.Cells {
		if c := &d.Cells[i]; !c.Baseline && !result.IsExperiment(c) && !result.IsGauge(d, c) {
			byGroup[c.Group] = append(byGroup[c.Group], c)
		}
	}
	for i := range d.Groups {
		g := &d.Groups[i]
		cells := bulkFirst(byGroup[g.Group])
		if len(cells) == 0 && len(g.Failed) == 0 {
			continue
		}
		axes := result.Conditions(g.Axes)
		asked := len(cells) > 0 && result.Asks(cells[0])
		key := g.Rung + "\x00" + result.AxesText(axes) + "\x00" + map[bool]string{true: "asks"}[asked]
		s := byKey[key]
		if s == nil {
			s = &Set{Name: result.SetName(axes, g.Label), Rung: doc.Clean(g.Rung), Axes: axes, Asks: asked}
			byKey[key] = s
			all = append(all, s)
		}
		s.Groups, s.Cells = append(s.Groups, g), append(s.Cells, cells...)
	}
	for _, s := range all {
		s.pair()
	}
	return all
}

// bulkFirst omits requests that ran with data: they show its latency.
func bulkFirst(cells []*measure.Cell) []*measure.Cell {
	bulk := slices.DeleteFunc(slices.Clone(cells), result.Asks)
	if len(bulk) == 0 {
		return cells
	}
	return bulk
}

// pair adds up the flows of each pair. A pair in several groups has their mean.
func (s *Set) pair() {
	type key struct{ from, to string }
	at, groups := map[key]int{}, map[key]map[int]bool{}
	find := func(from, to string, group int) *pairFigure {
		k := key{from, to}
		if _, ok := at[k]; !ok {
			at[k], groups[k] = len(s.Pairs), map[int]bool{}
			s.Pairs = append(s.Pairs, pairFigure{From: from, To: to})
		}
		groups[k][group] = true
		return &s.Pairs[at[k]]
	}
	for _, c := range s.Cells {
		p := find(c.From, c.To, c.Group)
		p.Flows, p.Cells = p.Flows+1, append(p.Cells, c)
		if f := stat.MainFigure(c); f != nil {
			p.Value = new(measure.Value(p.Value) + f.Value)
		}
		p.Whole = p.Whole || slices.ContainsFunc(c.Runs, func(r measure.Run) bool { return !r.Partial && r.Error == nil })
		if c.Error != nil && p.Failed == "" {
			p.Failed = cmp.Or(doc.Reason(c.Error.Message), "failed")
		}
	}
	for _, g := range s.Groups {
		for _, f := range g.Failed {
			if p := find(f.From, f.To, g.Group); p.Failed == "" && !f.Counted { // a flow that counts is in the figures
				p.Failed = cmp.Or(doc.Reason(f.Error), "failed")
			}
		}
	}
	for i := range s.Pairs {
		p := &s.Pairs[i]
		if n := len(groups[key{p.From, p.To}]); n > 1 && p.Value != nil {
			p.Value, p.Flows = new(*p.Value/float64(n)), max(1, p.Flows/n)
		}
	}
}

// Name returns the pair: "a -> b".
func (p pairFigure) Name() string { return result.PairName(p.From, p.To) }

// AtOnce reports whether the pairs of the set ran at the same time.
func (s *Set) AtOnce() bool { return len(s.Groups) == 1 && (len(s.Cells) > 1 || len(s.Pairs) > 1) }

// together returns what all pairs of a set that ran at once carried, and whether the rate is over the time in
// which all of them ran, not a mere sum.
func (s *Set) together() (bps float64, overlap, ok bool) {
	if !s.AtOnce() {
		return 0, false, false
	}
	g := s.Groups[0]
	switch {
	case g.Aggregate != nil:
		return g.Aggregate.Value, true, true
	case g.Sum != nil:
		return *g.Sum, false, true
	}
	return 0, false, false
}

// amount returns the value to rank sets by: the total of pairs that ran at once, else the mean of the pairs.
func (s *Set) amount() float64 {
	if v, _, ok := s.together(); ok {
		return v
	}
	values := s.values()
	if len(values) == 0 {
		return 0
	}
	return stat.Mean(values)
}

// values returns the pairs' values in ascending order. Values of pairs that failed midway count only if all
// failed.
func (s *Set) values() []float64 {
	var whole, parts []float64
	for _, p := range s.Pairs {
		switch {
		case p.Value != nil && (p.Failed == "" || p.Whole):
			whole = append(whole, *p.Value)
		case p.Value != nil:
			parts = append(parts, *p.Value)
		}
	}
	if len(whole) == 0 {
		whole = parts
	}
	slices.Sort(whole)
	return whole
}

// failed counts the pairs that failed.
func (s *Set) failed() int {
	return len(slices.DeleteFunc(slices.Clone(s.Pairs), func(p pairFigure) bool { return p.Failed == "" }))
}

// Best returns the set that carried most; nil if none carried anything.
func Best(sets []*Set) *Set {
	var most *Set
	for _, s := range sets {
		if len(s.values()) > 0 && (most == nil || s.Asks == most.Asks && s.amount() > most.amount() || most.Asks && !s.Asks) {
			most = s
		}
	}
	return most
}

// scaleOf returns the unit of all figures of the sets: none if they are too far apart, or of different kinds,
// so that each needs its own.
func scaleOf(sets []*Set, value func(*Set) float64) doc.Scale {
	most, least, asked := 0.0, 0.0, 0
	for _, s := range sets {
		if s.Asks {
			asked++
		}
		if v := value(s); v > 0 {
			if most = max(most, v); least == 0 || v < least {
				least = v
			}
		}
	}
	switch {
	case asked == len(sets) && asked > 0:
		return doc.Scale{Div: 1, Name: "requests/s"}
	case asked > 0 || most > farBetween*least:
		return doc.Scale{Div: 0, Name: "rate"}
	}
	return doc.ScaleFor(most)
}

// farBetween is the ratio of two rates above which a common unit would cost the small one its digits.
const farBetween = 50

// number prints a figure of the set in a common unit.
func (s *Set) number(in doc.Scale, v float64) string {
	if s.Asks {
		if in.Div == 0 {
			return s.rate(v)
		}
		return stat.ThreeDigits(v)
	}
	return in.Number(v)
}

// rate prints a figure of the set with its unit.
func (s *Set) rate(v float64) string {
	if s.Asks {
		return stat.ThreeDigits(v) + " requests/s"
	}
	return unit.Rate(v)
}

// slowest returns the pairs of a set in ascending order of rate: failed ones first.
func (s *Set) slowest() []pairFigure {
	sorted := slices.Clone(s.Pairs)
	slices.SortStableFunc(sorted, func(a, b pairFigure) int {
		if (a.Failed != "") != (b.Failed != "") {
			if a.Failed != "" {
				return -1
			}
			return 1
		}
		return cmp.Compare(measure.Value(a.Value), measure.Value(b.Value))
	})
	return sorted
}

// perCore returns the rate per core of all hosts of the set (stat.PerCore).
func (s *Set) perCore() *float64 { return stat.PerCore(s.hosts()) }

// hosts returns the hosts of all groups of the set.
func (s *Set) hosts() (all []measure.Share) {
	for _, g := range s.Groups {
		all = append(all, g.Hosts...)
	}
	return all
}

// busiest returns the host with the highest CPU load; nil if none is known.
func (s *Set) busiest() *measure.Share {
	hosts := slices.DeleteFunc(s.hosts(), func(h measure.Share) bool { return h.CPU == nil })
	if len(hosts) == 0 {
		return nil
	}
	return new(slices.MaxFunc(hosts, moreCPU))
}

// Is reports whether a document has more than one pair of hosts, or more than one setting: then no cell
// stands for the whole.
func Is(d *measure.Document) bool {
	return result.IsPlanned(d) && (result.MainCount(d) > result.FewCells || len(Sets(d)) > 1)
}

// inLadders reports whether the matrix of a rung shows all of a set.
func inLadders(d *measure.Document, s *Set) bool {
	return len(s.Cells) > 0 && !slices.ContainsFunc(s.Cells, func(c *measure.Cell) bool { return !ladder.Has(d, c) })
}

// figure returns what a set carried; nil for several pairs in turn.
func (s *Set) figure() *measure.Figure {
	switch {
	case s.AtOnce() && s.Groups[0].Aggregate != nil:
		return s.Groups[0].Aggregate
	case len(s.Cells) == 1:
		return stat.MainFigure(s.Cells[0])
	}
	return nil
}

// figuresOf returns the figures of all sets that have one.
func figuresOf(sets []*Set) (all []*measure.Figure) {
	for _, s := range sets {
		if f := s.figure(); f != nil {
			all = append(all, f)
		}
	}
	return all
}

// moreCPU orders hosts by CPU load; unknown loads come first.
func moreCPU(a, b measure.Share) int {
	pct := func(h measure.Share) float64 {
		if h.CPU == nil {
			return -1
		}
		return h.CPU.Pct
	}
	return cmp.Compare(pct(a), pct(b))
}
