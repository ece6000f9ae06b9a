package diagnose

import (
	"fmt"

	"thru/internal/measure"
	"thru/internal/unit"
)

// quotaRules are the causes of hosts that do not get what they seem to have.
func quotaRules() []Rule {
	cpu := []string{"sender-cpu", "receiver-cpu", "slow-reader", "receive-window", "send-buffer", "app-limited", "single-flow", "too-many-streams"}
	return []Rule{
		{
			Cause: "cpu-quota", TCP: true, UDP: true, Title: "a CPU quota is used up", judge: func(f *flow) *outcome { return f.either(quota) },
			Seen:  "the control group around thru was throttled in a tenth of its periods or more in the measured time",
			Apart: "the CPUs of the host have time left; the threads wait for one all the same",
			Mends: "lift the quota for the test", Effect: "10.6 of 47 Gb/s with a fifth of a CPU",
			Source: "Linux cgroup-v2.rst, cpu.stat: nr_throttled, throttled_usec", Brings: cpu,
		},
		{
			Cause: "cpu-limit", TCP: true, UDP: true, Title: "the hypervisor limits the guest's CPUs", judge: func(f *flow) *outcome { return f.either(cpuLimit) },
			Seen:  "its virtual CPUs were ready and not run because of a limit, or its quota was used up to 95%, in the measured time; a limit that is set alone is possible",
			Apart: "time that it was ready for want of a CPU (cpu-steal) is little",
			Mends: "raise or remove the limit of the guest, or of its resource pool", Effect: "no more CPU than the limit, in bursts",
			Source: "ESXi's cpu.maxlimited (esxtop %MLMTD above 0); cpu.stat and CPU time of a KVM guest", Brings: append(cpu, "cpu-steal", "noisy-neighbour"),
		},
		{
			Cause: "cpu-steal", TCP: true, UDP: true, Title: "the hypervisor gives the CPUs to others", judge: func(f *flow) *outcome { return f.either(steal) },
			Seen:  "steal time of the CPU that is full, or of all; by the hypervisor: its virtual CPUs were ready and not run 5% of the time or more (10: likely), or waited for each other 3%",
			Apart: "a CPU that is full of its own work has no steal; time that a limit took is not counted",
			Mends: "reserve CPU for the guest, fewer virtual CPUs, or an emptier host", Effect: "what is taken is missing, and comes in bursts",
			Source: "proc(5), /proc/stat; ESXi's cpu.ready and cpu.costop (%RDY above 5 to 10, %CSTP above 3); run delay of schedstat on KVM", Brings: append(cpu, "noisy-neighbour"),
		},
		{
			Cause: "memory-pressure", TCP: true, UDP: true, Title: "memory is short", judge: func(f *flow) *outcome { return f.either(pressure) },
			Seen:  "the kernel entered TCP's memory pressure, or swapped, in the measured time; by the hypervisor: the guest waited for memory, or some of it was taken back (balloon) or swapped out",
			Apart: "a small buffer of one socket prunes its queue without pressure",
			Mends: "free or add memory, raise tcp_mem", Effect: "the rate falls in steps",
			Source: "TcpExt.TCPMemoryPressures, PruneCalled; /proc/vmstat pswpin, pswpout; ESXi's mem.vmmemctl, mem.swapped, mem.latency", Brings: []string{"receive-window", "slow-reader"},
		},
	}
}

// either judges a cause that can be at both ends, and gives the outcome of the
// end that it is surer of; the sender's where they are alike.
func (f *flow) either(judge func(*end) *outcome) *outcome {
	a := judge(f.sender)
	if f.cell.From == f.cell.To {
		return a
	}
	b := judge(f.receiver)
	if a == nil || b != nil && sureness(b) > sureness(a) {
		return b
	}
	if b != nil && a.state == excluded && b.state == excluded && a.text != b.text {
		a.text += "; " + b.text
	}
	return a
}

// sureness orders outcomes: what holds, the surer the more, then what is not
// known, then what does not hold.
func sureness(o *outcome) int {
	switch {
	case o.state == excluded:
		return 0
	case o.state == unknown:
		return 1
	case o.aside:
		return 2 + weight(o.confidence)
	}
	return 5 + weight(o.confidence)
}

// Bars of the quota, in percent.
const (
	throttledBar = 10 // of the periods: above it the quota costs something
	mostlyBar    = 50 // of the periods: above it the quota is what binds
	stealBar     = 5  // of a CPU, as %RDY on ESXi
	stealLikely  = 25 // of a full CPU: from here on it outweighs what runs differ by
)

func quota(e *end) *outcome {
	if o := e.flow.isAll(); o != nil {
		return o
	}
	if e.seen == nil || e.seen.Host == nil || e.seen.Reported != "" {
		return e.lacks("the CPU quota")
	}
	q := e.seen.Host.Quota
	if q == nil {
		return e.quotaByFacts()
	}
	if q.Periods <= 0 || q.Throttled < 0 {
		return no("no period of the %s's quota of %.3g CPUs passed", e.place, q.CPUs)
	}
	share := min(100, 100*float64(q.Throttled)/float64(q.Periods))
	if share < throttledBar {
		return no("the %s's quota of %.3g CPUs was used up in %s of its periods", e.place, q.CPUs, unit.Percent(share))
	}
	o := likely("a CPU quota of %.3g CPUs holds the %s up: it was used up in %s of its periods", q.CPUs, e.place, unit.Percent(share)).at(e.where()).
		by(above(e.proof("cpu.stat nr_throttled of nr_periods", share, "pct"), throttledBar))
	if share > mostlyBar {
		o.confidence = measure.Certain // a thread that was stopped wanted to run
	}
	if q.ThrottledNs > 0 {
		o.by(e.proof("cpu.stat throttled time, of all CPUs", float64(q.ThrottledNs), "ns"))
	}
	return o.mend(e.remedy(e.mender().Quota()))
}

// quotaByFacts judges by what the control groups are set to, where nobody
// counted how often it was used up.
func (e *end) quotaByFacts() *outcome {
	switch {
	case e.facts == nil:
		return e.lacks("the CPU quota")
	case e.facts.Cgroup == nil && e.facts.OS != nil && *e.facts.OS == "linux":
		return missing("the CPU quota of the "+e.place, e.whyNot("cgroup"))
	case e.facts.Cgroup == nil:
		return nil // this system has no such thing
	case e.facts.Cgroup.QuotaCPUs == nil:
		return no("the %s has no CPU quota", e.place)
	}
	return missing(fmt.Sprintf("how often the %s's quota of %.3g CPUs was used up", e.place, *e.facts.Cgroup.QuotaCPUs), e.why("host.cpu_quota"))
}

// whyNot is the reason that the host gives for a fact that it could not read.
func (e *end) whyNot(fact string) string {
	for _, m := range e.facts.NotChecked {
		if m.Fact == fact && m.Why != "" {
			return m.Why
		}
	}
	return "it was not read"
}

// stealSeen is what the guest itself saw of it.
func (e *end) stealSeen() *outcome {
	if e.guest() == nil && e.facts != nil && e.facts.Hypervisor != nil && *e.facts.Hypervisor == "none" {
		return no("the %s is no virtual machine", e.place)
	}
	if e.seen == nil || e.seen.Host == nil || len(e.seen.Host.CPUs) == 0 {
		return e.lacks("steal time")
	}
	if o := e.flow.isAll(); o != nil {
		return o
	}
	most := e.seen.Host.CPUs[0]
	for _, c := range e.seen.Host.CPUs {
		if c.Steal > most.Steal {
			most = c
		}
	}
	most.Steal = bounded(most.Steal)
	if most.Steal < stealBar {
		return no("the hypervisor took %s of the %s's CPUs at most", unit.Percent(most.Steal), e.place)
	}
	o := possible("the hypervisor took %s of the %s's CPU %d", unit.Percent(most.Steal), e.place, most.Core).at(e.onCPU(most.Core)).
		by(above(e.proof(fmt.Sprintf("/proc/stat cpu%d steal", most.Core), most.Steal, "pct"), stealBar)).
		mend(&measure.Remedy{EndPoint: e.name, Advice: "reserve CPU for this guest, give it fewer virtual CPUs, or move it or its neighbours", Risk: "what is reserved is lost to the other guests of the host; what is moved stands still for a moment"})
	switch l := e.load(); {
	case !l.isFull() && busy(most) < fullBar:
		o.beside()
	case most.Steal > 2*stealLikely && l.isFull():
		o.confidence = measure.Certain // more than half of the CPU that the thread wanted
	case most.Steal > stealLikely:
		o.confidence = measure.Likely
	}
	return o
}

// pressure joins what the kernel counted with what its hypervisor did.
func pressure(e *end) *outcome {
	own, below := e.pressureSeen(), e.memoryBelow()
	if below != nil && below.state == unknown && own != nil && own.state == excluded { // a guest does not see what is taken below it
		return below
	}
	return seconded(own, below)
}

func (e *end) pressureSeen() *outcome {
	if e.seen == nil || e.seen.Host == nil || e.seen.Host.Proto == nil {
		return e.lacks("counters of memory pressure")
	}
	entered, _ := e.counter("TcpExt.TCPMemoryPressures")
	pruned, _ := e.counter("TcpExt.PruneCalled")
	swapped := 0.0
	if s := e.seen.Host.Swap; s != nil {
		swapped = float64(s.InPages) + float64(s.OutPages)
	}
	if entered == 0 && swapped < swapBar {
		if gates := e.flow.conditions("memory-pressure", e.name); len(gates) > 0 {
			return e.condition(gates[0]).beside()
		}
		return no("the %s's kernel was short of no memory", e.place)
	}
	o := likely("the %s's kernel was short of memory for TCP", e.place).at(e.where())
	if entered > 0 {
		o.by(above(e.proof("TcpExt.TCPMemoryPressures", entered, ""), 0))
	} else {
		o = possible("the %s swapped while it was measured", e.place).at(e.where())
	}
	if pruned > 0 {
		o.by(e.proof("TcpExt.PruneCalled", pruned, ""))
	}
	if swapped >= swapBar {
		o.by(above(e.proof("/proc/vmstat pswpin and pswpout", swapped, "pages"), swapBar))
	}
	if e.flow.isAll() != nil {
		o.beside()
	}
	return o.mend(advise(e, "free or add memory; raise net.ipv4.tcp_mem where TCP alone is short of it"))
}

// swapBar is how many pages moved to and from disk mean that memory is short:
// 4 MiB; a few always do.
const swapBar = 1024
