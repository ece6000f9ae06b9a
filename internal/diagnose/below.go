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

// findBelow looks up where the end is, among all inventories of the document.
func (e *end) findBelow() {
	for i := range e.flow.doc.EndPoints {
		if x := &e.flow.doc.EndPoints[i]; x.Name == e.name {
			e.below, e.noPlace = x.Placement.Beneath(e.flow.doc.Inventories), x.NoPlace
			if len(e.below) == 0 && x.Placement != nil {
				e.noPlace = cmp.Or(e.noPlace, "the inventory of "+x.Placement.Source+" does not list it")
			}
		}
	}
}

// guest is the virtual machine that the end is; nil where that is not known, or
// it is none.
func (e *end) guest() *measure.Guest {
	if len(e.below) == 0 {
		return nil
	}
	return e.below[0].Guest
}

// guestNIC is the adapter that carries the test.
func (e *end) guestNIC() *measure.GuestNIC {
	for _, b := range e.below {
		if b.NIC != nil {
			return b.NIC
		}
	}
	return nil
}

// bed is the host that the end's guest is on, or that the end is.
func (e *end) bed() *measure.GuestHost {
	for _, b := range e.below {
		if b.Host != nil {
			return b.Host
		}
	}
	return nil
}

// bedName is that host in the words of a sentence.
func (e *end) bedName() string {
	if h := e.bed(); h != nil && h.Name != "" {
		return line(h.Name)
	}
	return "its host"
}

// guestName is the virtual machine in the words of a sentence.
func (e *end) guestName() string {
	if g := e.guest(); g != nil && g.Name != "" {
		return line(g.Name)
	}
	return "the " + e.place + "'s guest"
}

// kind of the source that knows where the end is.
func (e *end) kind() string {
	if len(e.below) == 0 {
		return ""
	}
	return e.below[0].Inventory.Kind
}

// onBed is the place of a cause at what lies below the end.
func (e *end) onBed(name string) measure.Where {
	w := e.where()
	w.Below = name
	return w
}

// unplaced is the outcome of a rule that asks for what lies below an end of
// which nobody knows where it is; nil where nobody was asked.
func (e *end) unplaced(fact string) *outcome {
	switch {
	case e.guest() != nil:
		return nil
	case len(e.below) > 0:
		return nil // a host itself
	case e.noPlace != "":
		return missing(fact+" of the "+e.place, e.noPlace)
	case e.hidesSteal():
		return missing(fact+" of the "+e.place, "it is a guest: --hypervisor URL asks its host")
	}
	return nil
}

// during is the measured time of the run by the clock of who ran the command;
// false where it is not known.
func (e *end) during() (begin, end time.Time, ok bool) {
	r := e.flow.run
	if r.StartedAt.IsZero() && r.MeasuredFrom == nil || r.WaitedNs < 0 || r.WaitedNs > int64(longestRun) {
		return begin, end, false
	}
	for _, x := range []*measure.Evidence{e.seen, e.other().seen} {
		if x != nil && (x.RampNs < 0 || x.RampNs > int64(longestRun)) {
			return begin, end, false
		}
	}
	begin, end, ok = r.Span()
	return begin, end, ok && begin.Before(end) && end.Sub(begin) <= longestRun
}

// longestRun bounds a time that a document may hold.
const longestRun = 30 * 24 * time.Hour

// gauge is one counter of what lies below over the measured time.
type gauge struct {
	instance  string
	counter   string
	native    string // what its source calls it
	mean, sum float64
	spanNs    int64 // that the samples cover
}

// gauges are those of one counter.
type gauges struct {
	below *measure.Beneath // whose they are
	all   []gauge
	why   string // there are none
}

// ofGuest reads a counter of the end's virtual machine, ofBed one of its host.
func (e *end) ofGuest(counter string) gauges {
	return e.read(counter, func(b *measure.Beneath) string {
		if b.Guest == nil {
			return ""
		}
		return b.Guest.ID
	})
}

func (e *end) ofBed(counter string) gauges {
	return e.read(counter, func(b *measure.Beneath) string {
		if b.Host == nil {
			return ""
		}
		return b.Host.ID
	})
}

// read takes the samples of a counter that lie in the measured time, of the
// first inventory that has two of them.
func (e *end) read(counter string, id func(*measure.Beneath) string) gauges {
	r := gauges{why: "no hypervisor that was asked knows where it is"}
	for i := range e.below {
		one := e.readOf(&e.below[i], counter, id(&e.below[i]))
		if one.known() {
			return one
		}
		r.why = cmp.Or(one.why, r.why)
	}
	return r
}

// readOf takes those of one inventory, of what has that id there; "" is nothing.
func (e *end) readOf(b *measure.Beneath, counter, id string) gauges {
	r := gauges{below: b}
	if id == "" {
		return r
	}
	begin, end, ok := e.during()
	if !ok {
		r.why = "when its measured time was is not known"
		return r
	}
	r.why = untold(b, counter)
	for _, s := range b.Inventory.Series {
		if s.Of != id || s.Counter != counter {
			continue
		}
		x, few := gaugeOf(&s, begin, end)
		if few != "" {
			r.why = few
			continue
		}
		if twin := slices.IndexFunc(r.all, func(o gauge) bool { return o.instance == x.instance }); twin < 0 {
			r.all = append(r.all, x)
		} else if x.mean > r.all[twin].mean { // two commands that tell the same
			r.all[twin] = x
		}
	}
	if r.known() {
		r.why = ""
	}
	return r
}

// ofPort reads a counter of the guest's adapter that carries the test, of the
// first inventory that tells it apart. why is empty where it was read.
func (e *end) ofPort(counter string) (x gauge, why string) {
	why = "no hypervisor that was asked knows where it is"
	for i := range e.below {
		b := &e.below[i]
		if b.Guest == nil {
			continue
		}
		r := e.readOf(b, counter, b.Guest.ID)
		if x, ok := r.ofNIC(); ok {
			return x, ""
		}
		if why = r.why; r.known() {
			why = "which of its adapters carries the test is not known to " + b.Inventory.Source
		}
	}
	return x, why
}

// untold says that an inventory has no such counter, and why where it says so:
// a counter is named as "series.NAME", what guests and hosts lack as "counters of
// NAME, NAME".
func untold(b *measure.Beneath, counter string) string {
	why := b.Inventory.Source + " told no " + counter + " of it"
	named := func(names string) bool {
		all := strings.Split(names, ", ")
		return names == b.Inventory.Source || b.Guest != nil && slices.Contains(all, b.Guest.Name) || b.Host != nil && slices.Contains(all, b.Host.Name)
	}
	for _, m := range b.Inventory.NotChecked {
		if names, of := strings.CutPrefix(m.Fact, "counters of "); m.Fact == "series."+counter || of && named(names) {
			return why + ": " + m.Why
		}
	}
	return why
}

// gaugeOf sums up what a series tells of a span; few is why it does not.
func gaugeOf(s *measure.Series, begin, end time.Time) (x gauge, few string) {
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
	x = gauge{instance: s.Instance, counter: s.Counter, native: s.Native, spanNs: int64(every) * int64(len(values))}
	for _, v := range values {
		x.sum += v
	}
	x.mean = x.sum / float64(len(values))
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
func (r gauges) known() bool { return len(r.all) > 0 }

// of is the one of an instance; false where there is none.
func (r gauges) of(instance string) (gauge, bool) {
	i := slices.IndexFunc(r.all, func(x gauge) bool { return x.instance == instance })
	if i < 0 {
		return gauge{}, false
	}
	return r.all[i], true
}

// worst is the one with the highest mean.
func (r gauges) worst() (gauge, bool) {
	if !r.known() {
		return gauge{}, false
	}
	return slices.MaxFunc(r.all, func(a, b gauge) int { return cmp.Compare(a.mean, b.mean) }), true
}

// parts is the mean of those virtual CPUs; of all that are told where none are named.
func (r gauges) parts(cores []int) (gauge, bool) {
	var mine []gauge
	for _, x := range r.all {
		if n, err := strconv.Atoi(x.instance); err == nil && (cores == nil || slices.Contains(cores, n)) {
			mine = append(mine, x)
		}
	}
	if len(mine) == 0 || len(mine) < len(cores) {
		return gauge{}, false
	}
	x := mine[0]
	for _, y := range mine[1:] {
		x.instance, x.mean = "", x.mean+y.mean
	}
	x.mean /= float64(len(mine))
	return x, true
}

// ofCPUs is what a share of time is of those virtual CPUs; of the whole guest,
// the mean of its CPUs, where they are not told apart.
func (r gauges) ofCPUs(cores []int) (gauge, bool) {
	if x, ok := r.parts(cores); ok {
		return x, true
	}
	return r.of("")
}

// whole is what a counter says of all parts: the one without an instance, else
// the sum of the others; of a share of packets the worst.
func (r gauges) whole() (gauge, bool) {
	if x, ok := r.of(""); ok || !r.known() {
		return x, ok
	}
	all := r.all[0]
	if all.counter == measure.CounterRxDropPct || all.counter == measure.CounterTxDropPct {
		return r.worst()
	}
	for _, x := range r.all[1:] {
		all.mean, all.sum = all.mean+x.mean, all.sum+x.sum
	}
	all.instance = ""
	return all, true
}

// ofNIC is what it says of the guest's adapter that carries the test. An
// inventory names adapters in its own way, so it is asked by its own key. A guest
// with one adapter needs none.
func (r gauges) ofNIC() (gauge, bool) {
	g, n := r.below.Guest, r.below.NIC
	if n != nil && n.Key != "" {
		if x, ok := r.of(n.Key); ok {
			return x, true
		}
	}
	parts := slices.DeleteFunc(slices.Clone(r.all), func(x gauge) bool { return x.instance == "" })
	if len(g.NICs) > 1 || len(parts) > 1 {
		return gauge{}, false
	}
	return r.whole()
}

// tells words a gauge as evidence: who it is about, what it is, and what its
// source calls it.
func (x gauge) tells(of string, value float64, unit string) measure.Proof {
	name := cmp.Or(x.native, x.counter)
	if plain := plainName(x.counter); plain != "" {
		name = plain + " (" + name + ")"
	}
	switch isNumbered := isNumber10(x.instance); {
	case isNumbered && strings.HasPrefix(x.counter, "cpu."):
		name += " of virtual CPU " + x.instance
	case isNumbered:
		name += " of port " + x.instance
	case x.instance != "":
		name += " of " + x.instance
	}
	return measure.Proof{EndPoint: of, Counter: line(name), Value: value, Unit: unit, SpanNs: x.spanNs}
}

// plainName is a counter in two words or more, which a source's own name for it
// is not always: "cpu.ready.summation", "% Used".
func plainName(counter string) string {
	return map[string]string{
		measure.CounterReady: "ready, not run", measure.CounterCoStop: "co-stop time", measure.CounterLimited: "held back by a limit", measure.CounterSwapWait: "waiting for swap",
		measure.CounterUsage: "CPU load", measure.CounterBalloon: "ballooned memory", measure.CounterSwapped: "swapped memory", measure.CounterSwapIn: "swapped in a second",
		measure.CounterMemWait: "waiting for memory", measure.CounterRxBps: "received rate", measure.CounterTxBps: "sent rate",
		measure.CounterRxDropped: "dropped on receiving", measure.CounterTxDropped: "dropped on sending", measure.CounterRxDropPct: "dropped on receiving", measure.CounterTxDropPct: "dropped on sending",
		measure.CounterRingFull: "ring found full", measure.CounterNoBuffer: "no buffer in the ring", measure.CounterQueueRx: "received packets", measure.CounterThread: "CPU time",
	}[counter]
}

// seconded joins what an end saw itself with what its hypervisor says, which
// knows more of it.
func seconded(own, below *outcome) *outcome {
	switch {
	case below == nil:
		return own
	case own == nil:
		return below
	case own.state == holds && below.state == holds:
		return both(own, below)
	case own.state == holds && below.state == excluded:
		return doubted(own, below)
	case own.state == holds:
		return own
	case below.state == unknown && own.state == excluded:
		return own
	case below.state == excluded && own.state == excluded && own.text != below.text:
		return no("%s; %s", own.text, below.text)
	}
	return below
}

// best is the surest of several outcomes: the first where they are alike.
func best(all ...*outcome) *outcome {
	var o *outcome
	for _, x := range all {
		if x != nil && (o == nil || sureness(x) > sureness(o)) {
			o = x
		}
	}
	return o
}

// relation is how the two ends lie to each other; "" where it is not known.
func (f *flow) relation() string {
	for _, r := range f.doc.Relations {
		if r.From == f.cell.From && r.To == f.cell.To || r.From == f.cell.To && r.To == f.cell.From {
			return r.Kind
		}
	}
	return ""
}

// staysInside tells that the flow does not leave the host: no uplink carries it.
func (f *flow) staysInside() bool {
	r := f.relation()
	return r == measure.SameHost || r == measure.SameMachine || f.onOneMachine()
}
