package diagnose

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"thru/internal/measure"
	"thru/internal/unit"
)

// What lies below the ends of a flow: the hypervisor's inventory of the virtual
// machine, and counters of its host over the run. Without an inventory none of
// this says anything, and a rule stands on what the ends saw themselves.

// findPlacements looks up where the end is, among all inventories of the document.
func (e *End) findPlacements() {
	x := e.Point
	e.Placements, e.NoPlace = x.Placement.HostPlacement(e.Flow.Doc.Inventories), x.NoPlace
	if len(e.Placements) == 0 && x.Placement != nil {
		e.NoPlace = cmp.Or(e.NoPlace, "the inventory of "+x.Placement.Source+" does not list it")
	}
}

// Guest is the virtual machine that the end is; nil where that is not known, or
// it is none.
func (e *End) Guest() *measure.Guest {
	if len(e.Placements) == 0 {
		return nil
	}
	return e.Placements[0].Guest
}

// Kind of the source that knows where the end is.
func (e *End) Kind() string {
	if len(e.Placements) == 0 {
		return ""
	}
	return e.Placements[0].Inventory.Kind
}

// during is the measured time of the run by the clock of who ran the command;
// false where it is not known.
func (e *End) during() (begin, end time.Time, ok bool) {
	r := e.Flow.Run
	if r.StartedAt.IsZero() && r.MeasuredFrom == nil || r.WaitedNs < 0 || r.WaitedNs > int64(longestRun) {
		return begin, end, false
	}
	for _, x := range []*measure.Evidence{e.Seen, e.Other().Seen} {
		if x != nil && (x.RampNs < 0 || x.RampNs > int64(longestRun)) {
			return begin, end, false
		}
	}
	begin, end, ok = r.Span()
	return begin, end, ok && begin.Before(end) && end.Sub(begin) <= longestRun
}

// longestRun bounds a time that a document may hold.
const longestRun = 30 * 24 * time.Hour

// Gauge is one counter of what lies below over the measured time.
type Gauge struct {
	Instance  string
	Counter   string
	Native    string // what its source calls it
	Mean, sum float64
	SpanNs    int64 // that the samples cover
}

// Gauges are those of one counter.
type Gauges struct {
	Placement *measure.HostPlacement // whose they are
	All       []Gauge
	Why       string // there are none
}

// OfGuest reads a counter of the end's virtual machine, ofBed one of its host.
func (e *End) OfGuest(counter string) Gauges {
	return e.Read(counter, func(b *measure.HostPlacement) string {
		if b.Guest == nil {
			return ""
		}
		return b.Guest.ID
	})
}

// Read takes the samples of a counter that lie in the measured time, of the
// first inventory that has two of them.
func (e *End) Read(counter string, id func(*measure.HostPlacement) string) Gauges {
	r := Gauges{Why: "no hypervisor that was asked knows where it is"}
	for i := range e.Placements {
		one := e.readOf(&e.Placements[i], counter, id(&e.Placements[i]))
		if one.known() {
			return one
		}
		r.Why = cmp.Or(one.Why, r.Why)
	}
	return r
}

// readOf takes those of one inventory, of what has that id there; "" is nothing.
func (e *End) readOf(b *measure.HostPlacement, counter, id string) Gauges {
	r := Gauges{Placement: b}
	if id == "" {
		return r
	}
	begin, end, ok := e.during()
	if !ok {
		r.Why = "when its measured time was is not known"
		return r
	}
	r.Why = noCounter(b, counter)
	for _, s := range b.Inventory.Series {
		if s.Of != id || s.Counter != counter {
			continue
		}
		x, few := gaugeOf(&s, begin, end)
		if few != "" {
			r.Why = few
			continue
		}
		if twin := slices.IndexFunc(r.All, func(o Gauge) bool { return o.Instance == x.Instance }); twin < 0 {
			r.All = append(r.All, x)
		} else if x.Mean > r.All[twin].Mean { // two commands that tell the same
			r.All[twin] = x
		}
	}
	if r.known() {
		r.Why = ""
	}
	return r
}

// OfPort reads a counter of the guest's adapter that carries the test, of the
// first inventory that tells it apart. why is empty where it was read.
func (e *End) OfPort(counter string) (x Gauge, why string) {
	why = "no hypervisor that was asked knows where it is"
	for i := range e.Placements {
		b := &e.Placements[i]
		if b.Guest == nil {
			continue
		}
		r := e.readOf(b, counter, b.Guest.ID)
		if x, ok := r.ofNIC(); ok {
			return x, ""
		}
		if why = r.Why; r.known() {
			why = "which of its adapters carries the test is not known to " + b.Inventory.Source
		}
	}
	return x, why
}

// noCounter says that an inventory has no such counter, and why where it says so: of
// the counter ("series.NAME"), or of all of a guest, a host or the source.
func noCounter(b *measure.HostPlacement, counter string) string {
	why := b.Inventory.Source + " told no " + counter + " of it"
	of := []string{b.Inventory.Source}
	if b.Guest != nil {
		of = append(of, b.Guest.Name)
	}
	if b.Host != nil {
		of = append(of, b.Host.Name)
	}
	for _, m := range b.Inventory.NotChecked {
		if m.Fact == "series."+counter || slices.ContainsFunc(m.CountersOf(), func(name string) bool { return slices.Contains(of, name) }) {
			return why + ": " + m.Why
		}
	}
	return why
}

// gaugeOf sums up what a series tells of a span; few is why it does not.
func gaugeOf(s *measure.Series, begin, end time.Time) (x Gauge, few string) {
	every := time.Duration(s.EveryNs)
	if every <= 0 || every > longestRun {
		return x, "its samples do not say what time they cover"
	}
	var values []float64
	for _, p := range s.Within(begin, end) {
		if v, ok := sane(s.Counter, p.Value); ok {
			values = append(values, v)
		}
	}
	if len(values) < 2 {
		return x, "fewer than two samples of " + unit.Duration(int64(every)) + " lie in the " + unit.Duration(int64(end.Sub(begin))) + " that were measured"
	}
	x = Gauge{Instance: s.Instance, Counter: s.Counter, Native: s.Native, SpanNs: int64(every) * int64(len(values))}
	for _, v := range values {
		x.sum += v
	}
	x.Mean = x.sum / float64(len(values))
	return x, ""
}

// mostValue is above all that a counter can be.
const mostValue = 1e15

// sane tells whether a value can be one of that counter. A share of time above
// all of it comes of samples that are a little longer than they say.
func sane(counter string, v float64) (float64, bool) {
	if math.IsNaN(v) || v < 0 || v > mostValue {
		return 0, false
	}
	if strings.HasSuffix(counter, "_pct") && counter != measure.CounterUsed {
		v = min(v, 100)
	}
	return v, true
}

// known tells whether there are any.
func (r Gauges) known() bool { return len(r.All) > 0 }

// Of is the one of an instance; false where there is none.
func (r Gauges) Of(instance string) (Gauge, bool) {
	i := slices.IndexFunc(r.All, func(x Gauge) bool { return x.Instance == instance })
	if i < 0 {
		return Gauge{}, false
	}
	return r.All[i], true
}

// Worst is the one with the highest mean.
func (r Gauges) Worst() (Gauge, bool) {
	if !r.known() {
		return Gauge{}, false
	}
	return slices.MaxFunc(r.All, func(a, b Gauge) int { return cmp.Compare(a.Mean, b.Mean) }), true
}

// parts is the mean of those virtual CPUs; of all that are told where none are named.
func (r Gauges) parts(cores []int) (Gauge, bool) {
	var mine []Gauge
	for _, x := range r.All {
		if n, err := strconv.Atoi(x.Instance); err == nil && (cores == nil || slices.Contains(cores, n)) {
			mine = append(mine, x)
		}
	}
	if len(mine) == 0 || len(mine) < len(cores) {
		return Gauge{}, false
	}
	x := mine[0]
	for _, y := range mine[1:] {
		x.Instance, x.Mean = "", x.Mean+y.Mean
	}
	x.Mean /= float64(len(mine))
	return x, true
}

// ofCPUs is what a share of time is of those virtual CPUs; of the whole guest,
// the mean of its CPUs, where they are not told apart.
func (r Gauges) ofCPUs(cores []int) (Gauge, bool) {
	if x, ok := r.parts(cores); ok {
		return x, true
	}
	return r.Of("")
}

// Whole is what a counter says of all parts: the one without an instance, else
// the sum of the others; of a share of packets the worst.
func (r Gauges) Whole() (Gauge, bool) {
	if x, ok := r.Of(""); ok || !r.known() {
		return x, ok
	}
	all := r.All[0]
	if all.Counter == measure.CounterRxDropPct || all.Counter == measure.CounterTxDropPct {
		return r.Worst()
	}
	for _, x := range r.All[1:] {
		all.Mean, all.sum = all.Mean+x.Mean, all.sum+x.sum
	}
	all.Instance = ""
	return all, true
}

// ofNIC is what it says of the guest's adapter that carries the test. An
// inventory names adapters in its own way, so it is asked by its own key. A guest
// with one adapter needs none.
func (r Gauges) ofNIC() (Gauge, bool) {
	g, n := r.Placement.Guest, r.Placement.NIC
	if n != nil && n.Key != "" {
		if x, ok := r.Of(n.Key); ok {
			return x, true
		}
	}
	parts := slices.DeleteFunc(slices.Clone(r.All), func(x Gauge) bool { return x.Instance == "" })
	if len(g.NICs) > 1 || len(parts) > 1 {
		return Gauge{}, false
	}
	return r.Whole()
}

// Relation is how the two ends lie to each other; "" where it is not known.
func (f *Flow) Relation() string {
	for _, r := range f.Doc.Relations {
		if r.From == f.Cell.From && r.To == f.Cell.To || r.From == f.Cell.To && r.To == f.Cell.From {
			return r.Kind
		}
	}
	return ""
}
