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

// Host placement of a flow's ends: the hypervisor's inventory of the virtual machine, and the counters of its host
// over the run. Without an inventory these functions report nothing, and a rule relies on what the ends saw.

// findPlacements looks up the end in all inventories of the document.
func (e *End) findPlacements() {
	x := e.Point
	e.Placements, e.NoPlace = x.Placement.HostPlacement(e.Flow.Doc.Inventories), x.NoPlace
	if len(e.Placements) == 0 && x.Placement != nil {
		e.NoPlace = cmp.Or(e.NoPlace, "the inventory of "+x.Placement.Source+" does not list it")
	}
}

// Guest returns the virtual machine that the end is; nil if that is not known, or it is none.
func (e *End) Guest() *measure.Guest {
	if len(e.Placements) == 0 {
		return nil
	}
	return e.Placements[0].Guest
}

// Kind returns the kind of the inventory source that knows the end.
func (e *End) Kind() string {
	if len(e.Placements) == 0 {
		return ""
	}
	return e.Placements[0].Inventory.Kind
}

// during returns the measured time of the run by the controller's clock; false if it is not known.
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

// longestRun limits a time in a document.
const longestRun = 30 * 24 * time.Hour

// Gauge is one counter of the hypervisor over the measured time.
type Gauge struct {
	Instance  string
	Counter   string
	Native    string // its name at the source
	Mean, sum float64
	SpanNs    int64 // covered by the samples
}

// Gauges are the instances of one counter.
type Gauges struct {
	Placement *measure.HostPlacement // where they were read
	All       []Gauge
	Why       string // why there are none
}

// OfGuest reads a counter of the end's virtual machine.
func (e *End) OfGuest(counter string) Gauges {
	return e.Read(counter, func(b *measure.HostPlacement) string {
		if b.Guest == nil {
			return ""
		}
		return b.Guest.ID
	})
}

// Read takes the samples of a counter within the measured time, from the first inventory that has two of them.
func (e *End) Read(counter string, id func(*measure.HostPlacement) string) Gauges {
	r := Gauges{Why: "no queried hypervisor has it"}
	for i := range e.Placements {
		one := e.readOf(&e.Placements[i], counter, id(&e.Placements[i]))
		if one.known() {
			return one
		}
		r.Why = cmp.Or(one.Why, r.Why)
	}
	return r
}

// readOf reads them from one inventory, for the object with that id; "" gives nothing.
func (e *End) readOf(b *measure.HostPlacement, counter, id string) Gauges {
	r := Gauges{Placement: b}
	if id == "" {
		return r
	}
	begin, end, ok := e.during()
	if !ok {
		r.Why = "the times of its measurement are not known"
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
		} else if x.Mean > r.All[twin].Mean { // two commands that report the same
			r.All[twin] = x
		}
	}
	if r.known() {
		r.Why = ""
	}
	return r
}

// OfPort reads a counter of the guest's adapter that carries the test, from the first inventory that separates
// adapters. why is empty if it was read.
func (e *End) OfPort(counter string) (x Gauge, why string) {
	why = "no queried hypervisor has it"
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
			why = b.Inventory.Source + " does not show which of its adapters carries the test"
		}
	}
	return x, why
}

// noCounter says that an inventory has no such counter, with the reason if it has one: for the counter
// ("series.NAME"), or for a whole guest, host or source.
func noCounter(b *measure.HostPlacement, counter string) string {
	why := b.Inventory.Source + " reported no " + counter + " for it"
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

// gaugeOf summarises the samples of a series within a span; few is why it cannot.
func gaugeOf(s *measure.Series, begin, end time.Time) (x Gauge, few string) {
	every := time.Duration(s.EveryNs)
	if every <= 0 || every > longestRun {
		return x, "its samples do not state the time that they cover"
	}
	var values []float64
	for _, p := range s.Within(begin, end) {
		if v, ok := sane(s.Counter, p.Value); ok {
			values = append(values, v)
		}
	}
	if len(values) < 2 {
		return x, "fewer than two samples of " + unit.Duration(int64(every)) + " are within the measured " + unit.Duration(int64(end.Sub(begin)))
	}
	x = Gauge{Instance: s.Instance, Counter: s.Counter, Native: s.Native, SpanNs: int64(every) * int64(len(values))}
	for _, v := range values {
		x.sum += v
	}
	x.Mean = x.sum / float64(len(values))
	return x, ""
}

// mostValue is above the maximum of any counter.
const mostValue = 1e15

// sane reports whether a value is possible for that counter. A share of time above 100% comes from samples that
// are slightly longer than they claim.
func sane(counter string, v float64) (float64, bool) {
	if math.IsNaN(v) || v < 0 || v > mostValue {
		return 0, false
	}
	if strings.HasSuffix(counter, "_pct") && counter != measure.CounterUsed {
		v = min(v, 100)
	}
	return v, true
}

// known reports whether there are any.
func (r Gauges) known() bool { return len(r.All) > 0 }

// Of returns the gauge of an instance; false if there is none.
func (r Gauges) Of(instance string) (Gauge, bool) {
	i := slices.IndexFunc(r.All, func(x Gauge) bool { return x.Instance == instance })
	if i < 0 {
		return Gauge{}, false
	}
	return r.All[i], true
}

// Worst returns the gauge with the highest mean.
func (r Gauges) Worst() (Gauge, bool) {
	if !r.known() {
		return Gauge{}, false
	}
	return slices.MaxFunc(r.All, func(a, b Gauge) int { return cmp.Compare(a.Mean, b.Mean) }), true
}

// parts returns the mean over those virtual CPUs; over all if none are named.
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

// ofCPUs returns a share of time of those virtual CPUs; if the source does not separate them, that of the whole
// guest, the mean of its CPUs.
func (r Gauges) ofCPUs(cores []int) (Gauge, bool) {
	if x, ok := r.parts(cores); ok {
		return x, true
	}
	return r.Of("")
}

// Whole combines all instances of a counter: the total if there is one, else the sum; of a share of packets the
// worst.
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

// ofNIC returns the gauge of the guest's adapter that carries the test. Each inventory names adapters its own way,
// so its own key is used. A guest with one adapter needs none.
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

// Relation returns how the two ends are placed relative to each other; "" if it is not known.
func (f *Flow) Relation() string {
	for _, r := range f.Doc.Relations {
		if r.From == f.Cell.From && r.To == f.Cell.To || r.From == f.Cell.To && r.To == f.Cell.From {
			return r.Kind
		}
	}
	return ""
}
