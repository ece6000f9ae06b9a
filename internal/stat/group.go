package stat

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"thru/internal/measure"
	"thru/internal/unit"
)

// Groups fills d.Groups: what concurrent cells carried together. A document of a plan has one group for each of its
// steps; any other document has one if more than two data flows ran at once. Baselines and the experiments of an
// explanation have none.
//
// A repetition counts if the highest number of flows completed in it: with fewer flows the others had more room. If no
// flow completed in any, the partial data counts.
//
//	overlap   = [latest start, earliest end] of its runs, by Run.Timing
//	flow      = sum over the receiver's seconds of bytes * (part of the second in the overlap) * 8 / overlap
//	aggregate = sum over the flows, then the mean of the repetitions
//	sum       = sum of the cells' own figures
//	fairness  = Jain's index over the pairs (with one pair: over its flows), of the means of the
//	            repetitions in which each of them completed
//
// Without Timing there is no aggregate; fairness and the shares of hosts then use the flows' own figures. Requests have
// no goodput and count only for the CPU figures.
//
// For a plan it also sets d.Verdict: flows that share a link are not judged by their own shares of it. Ladder and
// Goals, which come after it, override the verdict if there are rungs or targets.
func Groups(d *measure.Document) {
	d.Groups = nil
	for _, cells := range teams(d) {
		t := newTeam(cells)
		d.Groups = append(d.Groups, t.judge(d))
	}
	if d.Plan != nil {
		d.Verdict = planVerdict(d)
	}
}

// teams returns the cells of each group that is judged, in the order of the document.
func teams(d *measure.Document) [][]*measure.Cell {
	var numbers []int
	members := map[int][]*measure.Cell{}
	for i := range d.Cells {
		c := &d.Cells[i]
		if c.Baseline || c.Experiment != "" {
			continue
		}
		if members[c.Group] == nil {
			numbers = append(numbers, c.Group)
		}
		members[c.Group] = append(members[c.Group], c)
	}
	var all [][]*measure.Cell
	for _, n := range numbers {
		if cells := members[n]; d.Plan != nil || len(bulkOf(cells)) > 2 {
			all = append(all, cells)
		}
	}
	return all
}

// bulkOf returns the data cells, which have a goodput.
func bulkOf(cells []*measure.Cell) []*measure.Cell {
	return slices.DeleteFunc(slices.Clone(cells), asks)
}

// team is the work on one group.
type team struct {
	cells   []*measure.Cell
	bulk    []*measure.Cell
	repeats []repeat // those that count
	made    int      // all
	group   measure.Group
}

// repeat is one repetition of a group.
type repeat struct {
	index   int
	members []member // that completed
	flows   []member // of these, the data flows, which have a goodput
	overlap overlap  // of these flows; see repeat.place
	why     string   // why there is none
}

// member is one flow in a repetition.
type member struct {
	cell *measure.Cell
	pair pair
}

func newTeam(cells []*measure.Cell) *team {
	t := &team{cells: cells, bulk: bulkOf(cells)}
	for _, whole := range []bool{true, false} {
		all := repeatsOf(cells, whole)
		most := 0
		for _, r := range all {
			most = max(most, len(r.members))
		}
		if t.made = len(all); most == 0 {
			continue
		}
		t.repeats = slices.DeleteFunc(all, func(r repeat) bool { return len(r.members) < most })
		break
	}
	for i := range t.repeats {
		t.repeats[i].place()
	}
	return t
}

// repeatsOf returns the repetitions in order, with their flows that have a rate: only the completed ones, or all.
func repeatsOf(cells []*measure.Cell, whole bool) []repeat {
	var all []repeat
	for _, c := range cells {
		for i := range c.Runs {
			r := &c.Runs[i]
			at := slices.IndexFunc(all, func(x repeat) bool { return x.index == r.Index })
			if at < 0 {
				at, all = len(all), append(all, repeat{index: r.Index})
			}
			p := pairOf(c, r)
			if _, ok := p.rate(); ok && (!whole || p.complete()) {
				all[at].members = append(all[at].members, member{c, p})
			}
		}
	}
	slices.SortFunc(all, func(a, b repeat) int { return cmp.Compare(a.index, b.index) })
	return all
}

// judge creates the group.
func (t *team) judge(d *measure.Document) measure.Group {
	first := t.cells[0]
	t.group = measure.Group{Group: first.Group, Rung: first.Rung, Axes: first.Axes, Cells: len(t.cells), Label: teamLabel(t.cells)}
	t.failures(d)
	t.together()
	t.sum()
	if len(t.repeats) > 0 {
		t.fairness()
		t.group.Hosts = t.hosts()
		t.group.Labels = ofLabels(t.group.Hosts, d.EndPoints, t.cells)
	}
	return t.group
}

// teamLabel names a group: by the common part of its cells' names, such as "4 end points a host" of "4 end points
// a host, end point 1 of 4", else by its axes, else by its pairs.
func teamLabel(cells []*measure.Cell) string {
	shared := strings.Split(cells[0].Label, ", ")
	for _, c := range cells[1:] {
		parts := strings.Split(c.Label, ", ")
		n := 0
		for n < min(len(parts), len(shared)) && parts[n] == shared[n] {
			n++
		}
		shared = shared[:n]
	}
	if name := strings.Join(shared, ", "); name != "" {
		return name
	}
	if len(cells[0].Axes) > 0 {
		return AxesText(cells[0].Axes)
	}
	return pairsText(cells)
}

// AxesText words the axes of a cell or a group: "streams 4, window 800K".
func AxesText(axes []measure.Axis) string {
	return strings.Join(unit.Mapped(axes, func(a measure.Axis) string { return strings.TrimSpace(a.Name + " " + a.Value) }), ", ")
}

// pairsText names the pairs of cells: "a -> b", "8 pairs".
func pairsText(cells []*measure.Cell) string {
	names := unit.Unique(unit.Mapped(cells, pairName))
	if len(names) == 1 {
		return names[0]
	}
	return fmt.Sprintf("%d pairs", len(names))
}

// pairName returns the direction that a cell measures.
func pairName(c *measure.Cell) string { return measure.PairName(c.From, c.To) }

// failures names the cells that did not complete in every repetition.
func (t *team) failures(d *measure.Document) {
	for _, c := range t.cells {
		bad, last := 0, measure.Failure{From: c.From, To: c.To}
		for i := range c.Runs {
			if e := c.Runs[i].Error; e != nil && e.Interrupted {
				continue
			}
			if p := pairOf(c, &c.Runs[i]); !p.complete() {
				bad++
				last.Error, last.Hint = whyFailed(c, &c.Runs[i])
			}
		}
		missed := t.made - len(c.Runs) // an end point that was lost takes no part in the rest
		if bad+missed <= 0 && len(c.Runs) > 0 {
			continue
		}
		if last.Error == "" {
			if last.Error = lostText(d, c); last.Error == notRun && d.Plan != nil && d.Plan.Done < d.Plan.Steps {
				continue // its turn has not come
			}
		}
		if bad+missed < t.made {
			last.Error = fmt.Sprintf("in %d of %d runs: %s", bad+missed, t.made, last.Error)
			last.Counted = slices.ContainsFunc(t.repeats, func(r repeat) bool {
				return slices.ContainsFunc(r.members, func(m member) bool { return m.cell == c && m.pair.complete() })
			})
		}
		t.group.Failed = append(t.group.Failed, last)
	}
	if n := t.made - len(t.repeats); n > 0 && len(t.repeats) > 0 {
		t.warn("%d of %d runs are excluded: more of its pairs failed in them than in the others", n, t.made)
	}
}

// whyFailed returns the reason of one run that did not complete.
func whyFailed(c *measure.Cell, r *measure.Run) (text, hint string) {
	switch {
	case r.Error != nil:
		return r.Error.Message, r.Error.Hint
	case r.Partial:
		return "the run ended early", ""
	case c.Error != nil:
		return c.Error.Message, c.Error.Hint
	}
	return "nothing was measured", ""
}

// lostText returns why a cell was not run.
func lostText(d *measure.Document, c *measure.Cell) string {
	for _, e := range d.EndPoints {
		if e.Lost != "" && (e.Name == c.From || e.Name == c.To) {
			return e.Name + " was lost: " + e.Lost
		}
	}
	if c.Error != nil {
		return c.Error.Message
	}
	return notRun
}

const notRun = "it was not run"

func (t *team) missing(fact, why string) {
	t.group.Missing = append(t.group.Missing, measure.NotChecked{Fact: fact, Why: why})
}

func (t *team) warn(format string, args ...any) {
	t.group.Warnings = append(t.group.Warnings, fmt.Sprintf(format, args...))
}

// sum adds up the figures of the cells that count.
func (t *team) sum() {
	total, n := 0.0, 0
	for _, m := range t.counting() {
		if f := m.cell.Goodput; f != nil {
			total, n = total+f.Value, n+1
		}
	}
	if n > 0 {
		t.group.Sum = Known(total)
	}
}

// counting returns the data flows that count, each once.
func (t *team) counting() []member {
	if len(t.repeats) == 0 {
		return nil
	}
	return t.repeats[0].flows
}

// fairness fills Jain's index over the pairs, or over the flows of a single pair.
func (t *team) fairness() {
	counts, flows := map[*measure.Cell]float64{}, map[*measure.Cell]float64{}
	for _, r := range t.repeats {
		for _, m := range r.flows {
			counts[m.cell]++
			flows[m.cell] += r.rateOf(m)
		}
	}
	pairs := map[string]float64{}
	for _, c := range t.bulk { // one that failed in a repetition counts by its other repetitions
		if counts[c] > 0 {
			flows[c] /= counts[c]
			pairs[pairName(c)] += flows[c]
		}
	}
	switch rates := slices.Sorted(maps.Values(pairs)); {
	case len(rates) > 1:
		t.group.Fairness = Known(Jain(rates))
		t.warnUnfair(pairs)
	case len(flows) > 1:
		t.group.Fairness = Known(Jain(slices.Sorted(maps.Values(flows))))
	}
}

// Thresholds of fairness.
const (
	unfair  = 0.9 // Jain's index below it is reported
	farther = 2   // a round-trip time longer by this ratio reduces a flow's share under TCP
)

// warnUnfair names the pairs with the highest and the lowest share if they are unfair, and whether the round-trip
// times differ too: of TCP flows through one queue, those with the longer round trip get less.
func (t *team) warnUnfair(pairs map[string]float64) {
	if f := t.group.Fairness; f == nil || *f >= unfair || t.ratesDiffer() {
		return
	}
	names := slices.Sorted(maps.Keys(pairs))
	most := slices.MaxFunc(names, func(a, b string) int { return cmp.Compare(pairs[a], pairs[b]) })
	least := slices.MinFunc(names, func(a, b string) int { return cmp.Compare(pairs[a], pairs[b]) })
	text := fmt.Sprintf("its pairs share unfairly (Jain's index %.2f): %s has %s, %s has %s",
		*t.group.Fairness, most, unit.Rate(pairs[most]), least, unit.Rate(pairs[least]))
	if a, b := t.idleRTT(most), t.idleRTT(least); a > 0 && b > farther*a {
		text += fmt.Sprintf("; their round trips are %s and %s", unit.Duration(a), unit.Duration(b))
	}
	t.warn("%s", text)
}

// ratesDiffer reports whether the flows were meant to differ: their requested or allowed rates, or their numbers
// of streams, are not equal.
func (t *team) ratesDiffer() bool {
	first := t.bulk[0]
	return slices.ContainsFunc(t.bulk, func(c *measure.Cell) bool {
		return c.Spec.Rate != first.Spec.Rate || c.Spec.MaxRate != first.Spec.MaxRate || c.Streams != first.Streams
	})
}

// idleRTT returns the round-trip time of a pair before the traffic; 0 if it is not known.
func (t *team) idleRTT(pair string) int64 {
	for _, c := range t.bulk {
		if pairName(c) == pair && c.RTTIdle != nil {
			return *c.RTTIdle
		}
	}
	return 0
}
