package diagnose

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"thru/internal/measure"
	"thru/internal/unit"
)

// Bars of what a host does with a guest's virtual CPUs, in percent of the time
// of one.
const (
	readyBar     = 5  // ready and not run (esxtop %RDY): from here on it costs something
	readyLikely  = 10 // from here on it is likely to bind
	readyCertain = 25 // from here on it does, where nothing else is in the way
	costopBar    = 3  // waiting for its fellows (esxtop %CSTP)
	limitedBar   = 1  // held back by a limit (esxtop %MLMTD); below it is rounding
	limitedMuch  = 5
	quotaBar     = 95 // of a quota: from here on it is used up
)

// cpuBelow is what the host did with the virtual CPUs of a guest.
type cpuBelow struct {
	ready, costop, limited            gauges
	readyKnown, stopKnown, limitKnown bool
	wait, stop                        gauge   // ready and co-stop of the CPUs that the end's threads may use
	net                               float64 // ready of them in percent, a limit left out
	limit                             gauge   // held back by a limit
	unlimited                         bool    // no limit took any of their time
	full                              bool    // the guest's CPU had no time to spare
}

// cpus reads them for the virtual CPUs that the end's threads may use: what is
// taken of others is no loss to the flow. A CPU that a limit holds back counts as
// ready too (esxtop: %RDY includes %MLMTD), so that is taken off.
func (e *end) cpus() cpuBelow {
	b := cpuBelow{ready: e.ofGuest(measure.CounterReady), costop: e.ofGuest(measure.CounterCoStop), limited: e.ofGuest(measure.CounterLimited)}
	bound := e.boundCores()
	b.wait, b.readyKnown = b.ready.ofCPUs(bound)
	b.stop, b.stopKnown = b.costop.ofCPUs(bound)
	b.limit, b.limitKnown = b.limited.ofCPUs(bound)
	b.net = max(0, b.wait.mean-b.limit.mean)
	b.unlimited = b.limitKnown && b.limit.mean < limitedBar || !b.limitKnown && e.hasNoQuota()
	used, ok := e.ofGuest(measure.CounterUsed).parts(bound)
	b.full = e.isFull() || ok && b.readyKnown && used.mean+b.wait.mean > threadBar
	return b
}

// takenBelow is the time in percent for which the host kept the end's virtual
// CPUs waiting, or held them to a limit; 0 where it did not tell.
func (e *end) takenBelow() float64 {
	b := e.cpus()
	return max(b.net, b.limit.mean)
}

// waitsBelow judges how long the host kept the guest's virtual CPUs waiting.
func (e *end) waitsBelow() *outcome {
	if e.guest() == nil {
		return e.unplaced("time that the host kept its virtual CPUs waiting")
	}
	b := e.cpus()
	stop := b.stop
	if !b.readyKnown && !b.stopKnown {
		return missing("time that the host kept the "+e.place+"'s virtual CPUs waiting", cmp.Or(b.ready.why, "its threads are bound to CPUs that it was not told of"))
	}
	if o := e.flow.isAll(); o != nil {
		return o
	}
	if b.net < readyBar && stop.mean < costopBar {
		return no("%s kept the virtual CPUs of the %s waiting %s of the time", e.bedName(), e.place, unit.Percent(b.net))
	}
	o := possible("%s kept the virtual CPUs of the %s waiting %s of the time%s", e.bedName(), e.place, unit.Percent(max(b.net, stop.mean)), e.crowd())
	if b.readyKnown {
		p := b.wait.tells(e.name, b.net, "pct")
		if b.net < b.wait.mean {
			p.Note = "of " + unit.Percent(b.wait.mean) + ", without what a limit held back"
		}
		o.by(above(p, readyBar))
	}
	if b.stopKnown {
		o.by(above(stop.tells(e.name, stop.mean, "pct"), costopBar))
	}
	switch {
	case !b.full && b.net < readyLikely:
		o.beside()
	case b.full && b.net > readyCertain && b.unlimited:
		o.confidence = measure.Certain
	case b.full && (b.net > readyLikely || stop.mean > costopBar), b.net > readyCertain:
		o.confidence = measure.Likely
	}
	return o.at(e.onBed(e.bedName())).mend(e.freeCPU())
}

// crowd says how many virtual CPUs share how many of the host's, where they are
// more, or how few the guest may use.
func (e *end) crowd() string {
	g, h := e.guest(), e.bed()
	if n := len(g.Affinity); n > 0 && g.CPUs != nil && n < *g.CPUs {
		return fmt.Sprintf(": its %d virtual CPUs may use only %d of the host's", *g.CPUs, n)
	}
	if h == nil || h.CPUsHanded == nil || h.Facts == nil || h.Facts.Cores == nil || *h.CPUsHanded <= *h.Facts.Cores || *h.Facts.Cores <= 0 {
		return ""
	}
	return fmt.Sprintf(": %d virtual CPUs share its %d CPUs", *h.CPUsHanded, *h.Facts.Cores)
}

// steal joins the steal that the guest sees with what its host counted.
func steal(e *end) *outcome {
	own, below := e.stealSeen(), e.waitsBelow()
	if below != nil && below.state == unknown && own != nil && own.state == excluded && e.hidesSteal() {
		return below
	}
	return seconded(own, below)
}

// cpuLimit judges a limit that the hypervisor holds the guest's CPUs to.
func cpuLimit(e *end) *outcome {
	if e.guest() == nil {
		return e.unplaced("CPU limit")
	}
	if o := e.flow.isAll(); o != nil {
		return o
	}
	b := e.cpus()
	limit, set := e.limitOf()
	quota, spent := e.quotaSpent()
	counted := b.limitKnown
	switch {
	case counted && b.limit.mean >= limitedBar || spent && quota >= quotaBar:
		return e.asLimited(b, limit, quota)
	case limit != "" && !counted && !spent:
		o := possible("a CPU limit of %s is set for %s: whether it was used up was not counted", limit, e.guestName()).
			by(measure.Proof{EndPoint: e.name, Counter: "CPU limits of the guest", Value: 1, Note: limit})
		return o.at(e.where()).beside().then("a run of three samples or more: " + b.limited.why).mend(e.liftLimit())
	case limit != "" || counted:
		return no("no limit held back the virtual CPUs of the %s: %s of the time", e.place, unit.Percent(b.limit.mean))
	case set:
		return no("no CPU limit is set for %s", e.guestName())
	}
	return missing("CPU limit of the "+e.place, b.limited.why)
}

// asLimited words a limit that was used up.
func (e *end) asLimited(b cpuBelow, limit string, quota float64) *outcome {
	of := "a CPU limit of " + limit
	if limit == "" {
		of = "a CPU limit of what contains it, as a resource pool"
	}
	o := possible("%s holds %s back", of, e.guestName())
	if b.limitKnown {
		o.text += fmt.Sprintf(": %s of the time its virtual CPUs were not run because of it", unit.Percent(b.limit.mean))
		o.by(above(b.limit.tells(e.name, b.limit.mean, "pct"), limitedBar))
	}
	used := quota >= quotaBar
	if used {
		o.by(above(measure.Proof{EndPoint: e.name, Counter: "CPU time of its quota", Value: quota, Unit: "pct"}, quotaBar))
	}
	switch {
	case b.limit.mean > readyCertain && (b.full || used) && b.readyKnown && b.net < readyBar:
		o.confidence = measure.Certain
	case b.limit.mean > limitedMuch && (b.full || used), b.limit.mean > readyCertain, used && !b.limitKnown:
		o.confidence = measure.Likely
	case b.limit.mean <= limitedMuch && !b.full && !used:
		o.beside()
	}
	return o.at(e.onBed(e.bedName())).mend(e.liftLimit())
}

// limitOf words the limit of the end's guest; known tells whether the inventory says.
func (e *end) limitOf() (limit string, known bool) {
	if e.guest() == nil {
		return "", false
	}
	switch cpus, hz, known := e.below[0].CPULimit(); {
	case cpus > 0:
		return fmt.Sprintf("%.3g CPUs", cpus), true
	case hz > 0:
		return fmt.Sprintf("%.3g GHz", hz/1e9), true
	default:
		return "", known
	}
}

// hasNoQuota tells of a guest of KVM that no quota is set for it.
func (e *end) hasNoQuota() bool {
	limit, known := e.limitOf()
	return e.kind() == measure.KindKVM && known && limit == ""
}

// quotaSpent is how much of its quota a guest used up, in percent.
func (e *end) quotaSpent() (float64, bool) {
	g := e.guest()
	used, ok := e.ofGuest(measure.CounterUsed).whole()
	if !ok || g.CPUQuota == nil || !(*g.CPUQuota > 0) {
		return 0, false
	}
	return min(100, used.mean / *g.CPUQuota), true
}

// Bars of a guest's memory.
const (
	ballooned  = 1 << 20 // bytes: below it is rounding
	memWaitBar = 1       // percent of the time that waited for memory
	memCertain = 10
)

// taken is one sign that memory of a guest is not there.
type taken struct {
	counter, unit string
	bar           float64
	words         string // of the guest's name and the value
}

func signsOfMemory() []taken {
	return []taken{
		{measure.CounterMemWait, "pct", memWaitBar, "%s waited for it %s of the time"},
		{measure.CounterSwapWait, "pct", memWaitBar, "%s waited %s of the time for it to be read back from disk"},
		{measure.CounterSwapIn, "bytes", 0, "of %s %s a second are read back from disk"},
		{measure.CounterSwapped, "bytes", ballooned, "of %s %s are swapped out"},
		{measure.CounterBalloon, "bytes", ballooned, "it has taken back from %s %s"},
	}
}

// memoryBelow judges the memory that the host took back from the guest.
func (e *end) memoryBelow() *outcome {
	if e.guest() == nil {
		return e.unplaced("memory that the host took back")
	}
	var o *outcome
	waited, read := 0.0, 0.0
	why, known := "", false
	for _, t := range signsOfMemory() {
		r := e.ofGuest(t.counter)
		x, ok := r.whole()
		if t.unit == "pct" && ok { // of its virtual CPUs the one that waited longest
			x, ok = r.worst()
		}
		if !ok {
			why = cmp.Or(why, r.why)
			continue
		}
		switch known = true; {
		case t.unit == "pct":
			waited = max(waited, x.mean)
		case t.counter == measure.CounterSwapIn:
			read = x.mean
		}
		if x.mean > t.bar {
			if o == nil {
				o = possible("%s is short of memory: %s", e.bedName(), fmt.Sprintf(t.words, e.guestName(), amount(x.mean, t.unit)))
			}
			o.by(above(x.tells(e.name, x.mean, t.unit), t.bar))
		}
	}
	switch {
	case !known:
		return missing("memory that the host took back from the "+e.place, why)
	case o == nil:
		return no("the host took no memory back from the %s", e.place)
	}
	e.sureOfMemory(o, waited, read)
	return o.at(e.onBed(e.bedName())).mend(&measure.Remedy{EndPoint: e.bedName(), Advice: "reserve the memory of " + e.guestName() +
		", free memory of the host, or move guests away from it", Risk: "what is reserved is lost to the other guests of the host"})
}

// amount words a share or a size.
func amount(value float64, of string) string {
	if of == "pct" {
		return unit.Percent(value)
	}
	return unit.Size(int64(value))
}

// sureOfMemory: what was taken back earlier costs nothing until it is wanted; a
// guest that waits for memory does.
func (e *end) sureOfMemory(o *outcome, waited, swappedIn float64) {
	cpu := e.cpus()
	switch {
	case e.flow.isAll() != nil || waited <= memWaitBar && swappedIn <= 0:
		o.beside()
	case waited > memCertain && cpu.readyKnown && cpu.net < readyBar && cpu.unlimited:
		o.confidence = measure.Certain
	case waited > memWaitBar:
		o.confidence = measure.Likely
	}
}

// Remedies at a hypervisor. The administrator runs them there, so they name the
// host, not the end point.

// freeCPU gives a guest's virtual CPUs more of the host's.
func (e *end) freeCPU() *measure.Remedy {
	r := &measure.Remedy{EndPoint: e.bedName(), Risk: "what is reserved is lost to the other guests of the host; what is moved stands still for a moment"}
	if e.kind() != measure.KindKVM {
		r.Advice = "reserve CPU for " + e.guestName() + ", give it fewer virtual CPUs, or move it or its neighbours"
		return r
	}
	r.Advice = "see which CPUs its virtual CPUs may use, then bind each to one that nothing else uses (libvirt: virsh vcpupin GUEST VCPU CPU; Proxmox: qm set ID --affinity; by hand: taskset -pc CPU TID)"
	r.Platform, r.Risk = "linux", "these only show"
	for _, t := range e.guest().Threads {
		if t.Role == "vcpu" && t.TID > 0 && len(r.Commands) < 4 {
			r.Commands = append(r.Commands, fmt.Sprintf("taskset -pc %d", t.TID))
		}
	}
	if len(r.Commands) == 0 {
		r.Commands = []string{"virsh vcpuinfo " + domain(e.guest())}
	}
	return r
}

// liftLimit takes a guest's CPU limit away.
func (e *end) liftLimit() *measure.Remedy {
	r := &measure.Remedy{EndPoint: e.bedName(), Risk: "it may then take CPU that others of the host count on"}
	if e.kind() == measure.KindKVM {
		r.Platform = "linux"
		if id := e.guest().ID; strings.Contains(strings.ToLower(e.below[0].Inventory.Product), "proxmox") && isNumber10(id) {
			r.Commands = []string{"qm set " + id + " --cpulimit 0"}
			return r
		}
		r.Commands = []string{"virsh schedinfo " + domain(e.guest()) + " --live --set vcpu_quota=-1 global_quota=-1"}
		r.Advice = "--live lasts until it is stopped, --config for good; Proxmox: qm set ID --cpulimit 0"
		return r
	}
	r.Advice = "raise or remove the CPU limit of " + e.guestName() + " (Edit Settings, CPU, Limit: Unlimited), and that of its resource pool"
	return r
}

func isNumber10(text string) bool { _, err := strconv.ParseUint(text, 10, 32); return err == nil }

// domain is a guest's name as a shell takes it.
func domain(g *measure.Guest) string {
	if w := word(g.Name); w != "INTERFACE" {
		return w
	}
	return "GUEST"
}
