package below

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"thru/internal/cause/diagnose"
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
	limitedMuch  = 5
	QuotaBar     = 95 // of a quota: from here on it is used up
)

// WaitsBelow judges how long the host kept the guest's virtual CPUs waiting.
func WaitsBelow(e *diagnose.End) *diagnose.Outcome {
	if e.Guest() == nil {
		return Unplaced(e, "time that the host kept its virtual CPUs waiting")
	}
	b := e.CPUs()
	stop := b.Stop
	if !b.ReadyKnown && !b.StopKnown {
		return diagnose.Missing("time that the host kept the "+e.Place+"'s virtual CPUs waiting", cmp.Or(b.Ready.Why, "its threads are bound to CPUs that it was not told of"))
	}
	if o := e.Flow.IsAll(); o != nil {
		return o
	}
	if b.Net < readyBar && stop.Mean < costopBar {
		return diagnose.No("%s kept the virtual CPUs of the %s waiting %s of the time", BedName(e), e.Place, unit.Percent(b.Net))
	}
	o := diagnose.Possible("%s kept the virtual CPUs of the %s waiting %s of the time%s", BedName(e), e.Place, unit.Percent(max(b.Net, stop.Mean)), crowd(e))
	if b.ReadyKnown {
		p := Tells(b.Wait, e.Name, b.Net, "pct")
		if b.Net < b.Wait.Mean {
			p.Note = "of " + unit.Percent(b.Wait.Mean) + ", without what a limit held back"
		}
		o.By(diagnose.Above(p, readyBar))
	}
	if b.StopKnown {
		o.By(diagnose.Above(Tells(stop, e.Name, stop.Mean, "pct"), costopBar))
	}
	switch {
	case !b.Full && b.Net < readyLikely:
		o.Beside()
	case b.Full && b.Net > readyCertain && b.Unlimited:
		o.Confidence = measure.Certain
	case b.Full && (b.Net > readyLikely || stop.Mean > costopBar), b.Net > readyCertain:
		o.Confidence = measure.Likely
	}
	return o.At(OnBed(e, BedName(e))).Mend(freeCPU(e))
}

// crowd says how many virtual CPUs share how many of the host's, where they are
// more, or how few the guest may use.
func crowd(e *diagnose.End) string {
	g, h := e.Guest(), bed(e)
	if n := len(g.Affinity); n > 0 && g.CPUs != nil && n < *g.CPUs {
		return fmt.Sprintf(": its %d virtual CPUs may use only %d of the host's", *g.CPUs, n)
	}
	if h == nil || h.CPUsHanded == nil || h.Facts == nil || h.Facts.Cores == nil || *h.CPUsHanded <= *h.Facts.Cores || *h.Facts.Cores <= 0 {
		return ""
	}
	return fmt.Sprintf(": %d virtual CPUs share its %d CPUs", *h.CPUsHanded, *h.Facts.Cores)
}

// AsLimited words a limit that was used up.
func AsLimited(e *diagnose.End, b diagnose.CpuBelow, limit string, quota float64) *diagnose.Outcome {
	of := "a CPU limit of " + limit
	if limit == "" {
		of = "a CPU limit of what contains it, as a resource pool"
	}
	o := diagnose.Possible("%s holds %s back", of, GuestName(e))
	if b.LimitKnown {
		o.Text += fmt.Sprintf(": %s of the time its virtual CPUs were not run because of it", unit.Percent(b.Limit.Mean))
		o.By(diagnose.Above(Tells(b.Limit, e.Name, b.Limit.Mean, "pct"), diagnose.LimitedBar))
	}
	used := quota >= QuotaBar
	if used {
		o.By(diagnose.Above(measure.Proof{EndPoint: e.Name, Counter: "CPU time of its quota", Value: quota, Unit: "pct"}, QuotaBar))
	}
	switch {
	case b.Limit.Mean > readyCertain && (b.Full || used) && b.ReadyKnown && b.Net < readyBar:
		o.Confidence = measure.Certain
	case b.Limit.Mean > limitedMuch && (b.Full || used), b.Limit.Mean > readyCertain, used && !b.LimitKnown:
		o.Confidence = measure.Likely
	case b.Limit.Mean <= limitedMuch && !b.Full && !used:
		o.Beside()
	}
	return o.At(OnBed(e, BedName(e))).Mend(LiftLimit(e))
}

// QuotaSpent is how much of its quota a guest used up, in percent.
func QuotaSpent(e *diagnose.End) (float64, bool) {
	g := e.Guest()
	used, ok := e.OfGuest(measure.CounterUsed).Whole()
	if !ok || g.CPUQuota == nil || !(*g.CPUQuota > 0) {
		return 0, false
	}
	return min(100, used.Mean / *g.CPUQuota), true
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

// MemoryBelow judges the memory that the host took back from the guest.
func MemoryBelow(e *diagnose.End) *diagnose.Outcome {
	if e.Guest() == nil {
		return Unplaced(e, "memory that the host took back")
	}
	var o *diagnose.Outcome
	waited, read := 0.0, 0.0
	why, known := "", false
	for _, t := range signsOfMemory() {
		r := e.OfGuest(t.counter)
		x, ok := r.Whole()
		if t.unit == "pct" && ok { // of its virtual CPUs the one that waited longest
			x, ok = r.Worst()
		}
		if !ok {
			why = cmp.Or(why, r.Why)
			continue
		}
		switch known = true; {
		case t.unit == "pct":
			waited = max(waited, x.Mean)
		case t.counter == measure.CounterSwapIn:
			read = x.Mean
		}
		if x.Mean > t.bar {
			if o == nil {
				o = diagnose.Possible("%s is short of memory: %s", BedName(e), fmt.Sprintf(t.words, GuestName(e), amount(x.Mean, t.unit)))
			}
			o.By(diagnose.Above(Tells(x, e.Name, x.Mean, t.unit), t.bar))
		}
	}
	switch {
	case !known:
		return diagnose.Missing("memory that the host took back from the "+e.Place, why)
	case o == nil:
		return diagnose.No("the host took no memory back from the %s", e.Place)
	}
	sureOfMemory(e, o, waited, read)
	return o.At(OnBed(e, BedName(e))).Mend(&measure.Remedy{EndPoint: BedName(e), Advice: "reserve the memory of " + GuestName(e) +
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
func sureOfMemory(e *diagnose.End, o *diagnose.Outcome, waited, swappedIn float64) {
	cpu := e.CPUs()
	switch {
	case e.Flow.IsAll() != nil || waited <= memWaitBar && swappedIn <= 0:
		o.Beside()
	case waited > memCertain && cpu.ReadyKnown && cpu.Net < readyBar && cpu.Unlimited:
		o.Confidence = measure.Certain
	case waited > memWaitBar:
		o.Confidence = measure.Likely
	}
}

// Remedies at a hypervisor. The administrator runs them there, so they name the
// host, not the end point.

// freeCPU gives a guest's virtual CPUs more of the host's.
func freeCPU(e *diagnose.End) *measure.Remedy {
	r := &measure.Remedy{EndPoint: BedName(e), Risk: "what is reserved is lost to the other guests of the host; what is moved stands still for a moment"}
	if e.Kind() != measure.KindKVM {
		r.Advice = "reserve CPU for " + GuestName(e) + ", give it fewer virtual CPUs, or move it or its neighbours"
		return r
	}
	r.Advice = "see which CPUs its virtual CPUs may use, then bind each to one that nothing else uses (libvirt: virsh vcpupin GUEST VCPU CPU; Proxmox: qm set ID --affinity; by hand: taskset -pc CPU TID)"
	r.Platform, r.Risk = "linux", "these only show"
	for _, t := range e.Guest().Threads {
		if t.Role == "vcpu" && t.TID > 0 && len(r.Commands) < 4 {
			r.Commands = append(r.Commands, fmt.Sprintf("taskset -pc %d", t.TID))
		}
	}
	if len(r.Commands) == 0 {
		r.Commands = []string{"virsh vcpuinfo " + domain(e.Guest())}
	}
	return r
}

// LiftLimit takes a guest's CPU limit away.
func LiftLimit(e *diagnose.End) *measure.Remedy {
	r := &measure.Remedy{EndPoint: BedName(e), Risk: "it may then take CPU that others of the host count on"}
	if e.Kind() == measure.KindKVM {
		r.Platform = "linux"
		if id := e.Guest().ID; strings.Contains(strings.ToLower(e.Below[0].Inventory.Product), "proxmox") && isNumber10(id) {
			r.Commands = []string{"qm set " + id + " --cpulimit 0"}
			return r
		}
		r.Commands = []string{"virsh schedinfo " + domain(e.Guest()) + " --live --set vcpu_quota=-1 global_quota=-1"}
		r.Advice = "--live lasts until it is stopped, --config for good; Proxmox: qm set ID --cpulimit 0"
		return r
	}
	r.Advice = "raise or remove the CPU limit of " + GuestName(e) + " (Edit Settings, CPU, Limit: Unlimited), and that of its resource pool"
	return r
}

func isNumber10(text string) bool { _, err := strconv.ParseUint(text, 10, 32); return err == nil }

// domain is a guest's name as a shell takes it.
func domain(g *measure.Guest) string {
	if w := diagnose.Word(g.Name); w != "INTERFACE" {
		return w
	}
	return "GUEST"
}
