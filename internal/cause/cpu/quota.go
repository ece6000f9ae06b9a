package cpu

import (
	"fmt"

	"thru/internal/cause/below"
	"thru/internal/cause/diagnose"
	"thru/internal/measure"
	"thru/internal/unit"
)

// QuotaCauses are the causes of hosts that do not get what they seem to have.
func QuotaCauses() []diagnose.Rule {
	cpu := []string{"sender-cpu", "receiver-cpu", "slow-reader", "receive-window", "send-buffer", "app-limited", "single-flow", "too-many-streams"}
	return []diagnose.Rule{
		{
			Cause: "cpu-quota", TCP: true, UDP: true, Unseen: diagnose.HostTime, Title: "a CPU quota is used up", Judge: func(f *diagnose.Flow) *diagnose.Outcome { return f.Either(quota) },
			Seen:  "the control groups around thru were throttled, and its own busiest thread waited for it, a tenth of the measured time or more; certain from a quarter on, where that thread had no time to spare and a CPU that it may use did",
			Apart: "time, not periods: others of the group may be throttled while thru's thread runs; a thread that waits for full CPUs waits for others",
			Mends: "lift the quota for the test", Effect: "10.6 of 47 Gb/s with a fifth of a CPU",
			Source: "Linux cgroup-v2.rst, cpu.stat: throttled_usec; /proc/PID/task/TID/schedstat", Brings: cpu,
		},
		{
			Cause: "cpu-limit", TCP: true, UDP: true, Title: "the hypervisor limits the guest's CPUs", Judge: func(f *diagnose.Flow) *diagnose.Outcome { return f.Either(cpuLimit) },
			Seen:  "its virtual CPUs were ready and not run because of a limit, or its quota was used up to 95%, in the measured time; a limit that is set alone is possible",
			Apart: "time that it was ready for want of a CPU (cpu-steal) is little",
			Mends: "raise or remove the limit of the guest, or of its resource pool", Effect: "no more CPU than the limit, in bursts",
			Source: "ESXi's cpu.maxlimited (esxtop %MLMTD above 0); cpu.stat and CPU time of a KVM guest", Brings: append(cpu, "cpu-steal", "noisy-neighbour"),
		},
		{
			Cause: "cpu-steal", TCP: true, UDP: true, Title: "the hypervisor gives the CPUs to others", Judge: func(f *diagnose.Flow) *diagnose.Outcome { return f.Either(stealCause) },
			Seen:  "steal time of the CPU that the thread is bound to or that is full of packets, else the mean of all; by the hypervisor: these virtual CPUs were ready and not run 5% of the time or more (10: likely), or waited for each other 3%",
			Apart: "what is taken from other CPUs costs the flow nothing; time that a limit took is not counted; guests of ESXi and Hyper-V see no steal",
			Mends: "reserve CPU for the guest, fewer virtual CPUs, or an emptier host", Effect: "what is taken is missing, and comes in bursts",
			Source: "proc(5), /proc/stat; ESXi's cpu.ready and cpu.costop (%RDY above 5 to 10, %CSTP above 3); run delay of schedstat on KVM", Brings: append(cpu, "noisy-neighbour"),
		},
		{
			Cause: "memory-pressure", TCP: true, UDP: true, Title: "memory is short", Judge: func(f *diagnose.Flow) *diagnose.Outcome { return f.Either(pressure) },
			Seen:  "the kernel entered TCP's memory pressure, or swapped, in the measured time; by the hypervisor: the guest waited for memory, or some of it was taken back (balloon) or swapped out",
			Apart: "a small buffer of one socket prunes its queue without pressure",
			Mends: "free or add memory, raise tcp_mem", Effect: "the rate falls in steps",
			Source: "TcpExt.TCPMemoryPressures, PruneCalled; /proc/vmstat pswpin, pswpout; ESXi's mem.vmmemctl, mem.swapped, mem.latency", Brings: []string{"receive-window", "slow-reader"},
		},
	}
}

// Bars of the quota, in percent.
const (
	throttledBar = 10 // of the time: above it the quota costs something
	mostlyBar    = 50 // of the time: above it the quota is likely to bind a thread that had time to spare, too
)

func quota(e *diagnose.End) *diagnose.Outcome {
	if o := e.Flow.IsAll(); o != nil {
		return o
	}
	if e.Seen == nil || e.Seen.Host == nil || e.Seen.Reported != "" {
		return e.Lacks("the CPU quota")
	}
	q := e.Seen.Host.Quota
	if q == nil {
		return quotaByFacts(e)
	}
	if q.Periods <= 0 || q.Throttled < 0 {
		return diagnose.No("no period of the %s's quota of %.3g CPUs passed", e.Place, q.CPUs)
	}
	lost, ownThread := throttled(e, q)
	if lost < throttledBar {
		return diagnose.No("the quota of %.3g CPUs held the %s's thread up %s of the time", q.CPUs, e.Place, unit.Percent(lost))
	}
	counter := "waited while cpu.stat counted throttled time, most of a thread"
	if !ownThread {
		counter = "cpu.stat throttled time, of all CPUs"
	}
	o := diagnose.Possible("a CPU quota of %.3g CPUs holds the %s up %s of the time", q.CPUs, e.Place, unit.Percent(lost)).At(e.Where()).
		By(diagnose.Above(e.Proof(counter, lost, "pct"), throttledBar), e.Proof("cpu.stat nr_throttled", float64(q.Throttled), "periods"))
	switch l := e.Load(); {
	case !ownThread: // which threads of the group had to wait is not known
		o.Confidence = measure.Likely
	case l.Thread && lost > diagnose.StealLikely && l.CPUs > 0 && l.Least < diagnose.FullBar: // it wanted to run, and a CPU was there for it
		o.Confidence = measure.Certain
	case l.IsFull() && 2*lost > l.Hot.Wait, lost > mostlyBar: // most of what it waited
		o.Confidence = measure.Likely
	}
	return o.Mend(e.Remedy(e.Mender().Quota()))
}

// throttled is the share of the measured time in percent that the quota took
// from the end's own thread: no more than the group's threads had to wait in all,
// and than the one that waited longest did. Others of the group may be throttled
// while it runs; where its time is not known, ownThread is false.
func throttled(e *diagnose.End, q *measure.QuotaSpan) (pct float64, ownThread bool) {
	waited, ownThread := int64(0), len(e.Streams()) > 0
	for _, s := range e.Streams() {
		if s.WaitNs == nil {
			ownThread = false
			break
		}
		waited = max(waited, *s.WaitNs)
	}
	if !ownThread {
		waited = q.ThrottledNs
	}
	return diagnose.Bounded(diagnose.Share(float64(min(waited, q.ThrottledNs)), float64(e.Span()))), ownThread
}

// quotaByFacts judges by what the control groups are set to, where nobody
// counted how often it was used up.
func quotaByFacts(e *diagnose.End) *diagnose.Outcome {
	switch {
	case e.Facts == nil:
		return e.Lacks("the CPU quota")
	case e.Facts.Cgroup == nil && e.Facts.OS != nil && *e.Facts.OS == "linux":
		return diagnose.Missing("the CPU quota of the "+e.Place, whyNot(e, "cgroup"))
	case e.Facts.Cgroup == nil:
		return nil // this system has no such thing
	case e.Facts.Cgroup.QuotaCPUs == nil:
		return diagnose.No("the %s has no CPU quota", e.Place)
	}
	return diagnose.Missing(fmt.Sprintf("how often the %s's quota of %.3g CPUs was used up", e.Place, *e.Facts.Cgroup.QuotaCPUs), e.Why("host.cpu_quota"))
}

// whyNot is the reason that the host gives for a fact that it could not read.
func whyNot(e *diagnose.End, fact string) string {
	for _, m := range e.Facts.NotChecked {
		if m.Fact == fact && m.Why != "" {
			return m.Why
		}
	}
	return "it was not read"
}

// stealSeen is what the guest itself saw of it.
func stealSeen(e *diagnose.End) *diagnose.Outcome {
	if e.Guest() == nil && e.Facts != nil && e.Facts.Hypervisor != nil && *e.Facts.Hypervisor == "none" {
		return diagnose.No("the %s is no virtual machine", e.Place)
	}
	if e.Seen == nil || e.Seen.Host == nil || len(e.Seen.Host.CPUs) == 0 {
		return e.Lacks("steal time")
	}
	if o := e.Flow.IsAll(); o != nil {
		return o
	}
	x := e.OwnSteal()
	switch {
	case x.Mean < diagnose.StealBar && e.HidesSteal():
		return diagnose.Missing("CPU time that its host took from the "+e.Place, "a guest of this kind does not see it: --hypervisor URL asks its host")
	case x.Mean < diagnose.StealBar:
		return diagnose.No("the hypervisor took %s of the %s's %s", unit.Percent(x.Mean), e.Place, name(x))
	}
	o := diagnose.Possible("the hypervisor took %s of the %s's %s", unit.Percent(x.Mean), e.Place, name(x)).At(where(x, e)).
		By(diagnose.Above(e.Proof("/proc/stat steal of "+name(x), x.Mean, "pct"), diagnose.StealBar)).
		Mend(&measure.Remedy{EndPoint: e.Name, Advice: "reserve CPU for this guest, give it fewer virtual CPUs, or move it or its neighbours", Risk: "what is reserved is lost to the other guests of the host; what is moved stands still for a moment"})
	switch l := e.Load(); {
	case !l.IsFull() && x.Busy < diagnose.FullBar:
		o.Beside()
	case x.Mean > 2*diagnose.StealLikely && l.IsFull():
		o.Confidence = measure.Certain // more than half of the CPU that the thread wanted
	case x.Mean > diagnose.StealLikely:
		o.Confidence = measure.Likely
	}
	return o
}

func name(x diagnose.Stolen) string {
	if len(x.Cores) == 1 {
		return fmt.Sprintf("CPU %d", x.Cores[0].Core)
	}
	return "CPUs"
}

func where(x diagnose.Stolen, e *diagnose.End) measure.Where {
	if len(x.Cores) == 1 {
		return e.OnCPU(x.Cores[0].Core)
	}
	return e.Where()
}

// pressure joins what the kernel counted with what its hypervisor did.
func pressure(e *diagnose.End) *diagnose.Outcome {
	own, under := pressureSeen(e), below.MemoryBelow(e)
	if under != nil && under.State == diagnose.Unknown && own != nil && own.State == diagnose.Excluded { // a guest does not see what is taken below it
		return under
	}
	return below.Seconded(own, under)
}

func pressureSeen(e *diagnose.End) *diagnose.Outcome {
	if e.Seen == nil || e.Seen.Host == nil || e.Seen.Host.Proto == nil {
		return e.Lacks("counters of memory pressure")
	}
	entered, _ := e.Counter("TcpExt.TCPMemoryPressures")
	pruned, _ := e.Counter("TcpExt.PruneCalled")
	swapped := 0.0
	if s := e.Seen.Host.Swap; s != nil {
		swapped = float64(s.InPages) + float64(s.OutPages)
	}
	if entered == 0 && swapped < swapBar {
		if gates := below.Conditions(e.Flow, "memory-pressure", e.Name); len(gates) > 0 {
			return below.Condition(e, gates[0]).Beside()
		}
		return diagnose.No("the %s's kernel was short of no memory", e.Place)
	}
	o := diagnose.Likely("the %s's kernel was short of memory for TCP", e.Place).At(e.Where())
	if entered > 0 {
		o.By(diagnose.Above(e.Proof("TcpExt.TCPMemoryPressures", entered, ""), 0))
	} else {
		o = diagnose.Possible("the %s swapped while it was measured", e.Place).At(e.Where())
	}
	if pruned > 0 {
		o.By(e.Proof("TcpExt.PruneCalled", pruned, ""))
	}
	if swapped >= swapBar {
		o.By(diagnose.Above(e.Proof("/proc/vmstat pswpin and pswpout", swapped, "pages"), swapBar))
	}
	if e.Flow.IsAll() != nil {
		o.Beside()
	}
	return o.Mend(diagnose.Advise(e, "free or add memory; raise net.ipv4.tcp_mem where TCP alone is short of it"))
}

// swapBar is how many pages moved to and from disk mean that memory is short:
// 4 MiB; a few always do.
const swapBar = 1024
