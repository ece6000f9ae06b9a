package diagnose

import (
	"fmt"
	"slices"

	"thru/internal/measure"
	"thru/internal/unit"
)

// quotaRules are the causes of hosts that do not get what they seem to have.
func quotaRules() []Rule {
	cpu := []string{"sender-cpu", "receiver-cpu", "slow-reader", "receive-window", "send-buffer", "app-limited", "single-flow", "too-many-streams"}
	return []Rule{
		{
			Cause: "cpu-quota", TCP: true, UDP: true, Unseen: hostTime, Title: "a CPU quota is used up", judge: func(f *flow) *outcome { return f.either(quota) },
			Seen:  "the control groups around thru were throttled, and its own busiest thread waited for it, a tenth of the measured time or more; certain from a quarter on, where that thread had no time to spare and a CPU that it may use did",
			Apart: "time, not periods: others of the group may be throttled while thru's thread runs; a thread that waits for full CPUs waits for others",
			Mends: "lift the quota for the test", Effect: "10.6 of 47 Gb/s with a fifth of a CPU",
			Source: "Linux cgroup-v2.rst, cpu.stat: throttled_usec; /proc/PID/task/TID/schedstat", Brings: cpu,
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
			Seen:  "steal time of the CPU that the thread is bound to or that is full of packets, else the mean of all; by the hypervisor: these virtual CPUs were ready and not run 5% of the time or more (10: likely), or waited for each other 3%",
			Apart: "what is taken from other CPUs costs the flow nothing; time that a limit took is not counted; guests of ESXi and Hyper-V see no steal",
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
	throttledBar = 10 // of the time: above it the quota costs something
	mostlyBar    = 50 // of the time: above it the quota is likely to bind a thread that had time to spare, too
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
	lost, ownThread := e.throttled(q)
	if lost < throttledBar {
		return no("the quota of %.3g CPUs held the %s's thread up %s of the time", q.CPUs, e.place, unit.Percent(lost))
	}
	counter := "waited while cpu.stat counted throttled time, most of a thread"
	if !ownThread {
		counter = "cpu.stat throttled time, of all CPUs"
	}
	o := possible("a CPU quota of %.3g CPUs holds the %s up %s of the time", q.CPUs, e.place, unit.Percent(lost)).at(e.where()).
		by(above(e.proof(counter, lost, "pct"), throttledBar), e.proof("cpu.stat nr_throttled", float64(q.Throttled), "periods"))
	switch l := e.load(); {
	case !ownThread: // which threads of the group had to wait is not known
		o.confidence = measure.Likely
	case l.thread && lost > stealLikely && l.cpus > 0 && l.least < fullBar: // it wanted to run, and a CPU was there for it
		o.confidence = measure.Certain
	case l.isFull() && 2*lost > l.hot.wait, lost > mostlyBar: // most of what it waited
		o.confidence = measure.Likely
	}
	return o.mend(e.remedy(e.mender().Quota()))
}

// throttled is the share of the measured time in percent that the quota took
// from the end's own thread: no more than the group's threads had to wait in all,
// and than the one that waited longest did. Others of the group may be throttled
// while it runs; where its time is not known, ownThread is false.
func (e *end) throttled(q *measure.QuotaSpan) (pct float64, ownThread bool) {
	waited, ownThread := int64(0), len(e.streams()) > 0
	for _, s := range e.streams() {
		if s.WaitNs == nil {
			ownThread = false
			break
		}
		waited = max(waited, *s.WaitNs)
	}
	if !ownThread {
		waited = q.ThrottledNs
	}
	return bounded(share(float64(min(waited, q.ThrottledNs)), float64(e.span()))), ownThread
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
	x := e.ownSteal()
	switch {
	case x.mean < stealBar && e.hidesSteal():
		return missing("CPU time that its host took from the "+e.place, "a guest of this kind does not see it: --hypervisor URL asks its host")
	case x.mean < stealBar:
		return no("the hypervisor took %s of the %s's %s", unit.Percent(x.mean), e.place, x.name())
	}
	o := possible("the hypervisor took %s of the %s's %s", unit.Percent(x.mean), e.place, x.name()).at(x.where(e)).
		by(above(e.proof("/proc/stat steal of "+x.name(), x.mean, "pct"), stealBar)).
		mend(&measure.Remedy{EndPoint: e.name, Advice: "reserve CPU for this guest, give it fewer virtual CPUs, or move it or its neighbours", Risk: "what is reserved is lost to the other guests of the host; what is moved stands still for a moment"})
	switch l := e.load(); {
	case !l.isFull() && x.busy < fullBar:
		o.beside()
	case x.mean > 2*stealLikely && l.isFull():
		o.confidence = measure.Certain // more than half of the CPU that the thread wanted
	case x.mean > stealLikely:
		o.confidence = measure.Likely
	}
	return o
}

// stolen is what the hypervisor took of the CPUs that the flow needs at an end,
// in percent of their time.
type stolen struct {
	cores      []measure.CPU
	mean, busy float64
}

// ownSteal is that of the CPUs that the end's threads may use, or of the one that
// is full of received packets, where more was taken of it. What is taken of other
// CPUs is no loss to the flow.
func (e *end) ownSteal() (x stolen) {
	if e.seen == nil || e.seen.Host == nil {
		return x
	}
	x.cores = e.own(e.seen.Host.CPUs)
	x.mean, _ = stealOf(x.cores)
	for _, c := range x.cores {
		x.busy += busy(c) / float64(len(x.cores))
	}
	for _, c := range e.seen.Host.CPUs {
		if busy(c) > fullBar && packets(c) > 0 && packets(c)+bounded(c.Steal) > packetBar && packets(c) >= packets(e.load().soft) && bounded(c.Steal) > x.mean {
			x = stolen{[]measure.CPU{c}, bounded(c.Steal), busy(c)}
		}
	}
	return x
}

func (x stolen) name() string {
	if len(x.cores) == 1 {
		return fmt.Sprintf("CPU %d", x.cores[0].Core)
	}
	return "CPUs"
}

func (x stolen) where(e *end) measure.Where {
	if len(x.cores) == 1 {
		return e.onCPU(x.cores[0].Core)
	}
	return e.where()
}

// own are those CPUs that the end's threads are bound to; all where one of them
// may run on any.
func (e *end) own(all []measure.CPU) []measure.CPU {
	bound := e.boundCores()
	if bound == nil {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(c measure.CPU) bool { return !slices.Contains(bound, c.Core) })
}

// boundCores are the CPUs that the end's threads are bound to, each once; nil
// where one of them may run on any.
func (e *end) boundCores() (bound []int) {
	for _, s := range e.streams() {
		if s.CPU == nil {
			return nil
		}
		if !slices.Contains(bound, *s.CPU) {
			bound = append(bound, *s.CPU)
		}
	}
	return bound
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
