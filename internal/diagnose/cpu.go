package diagnose

import (
	"fmt"

	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// cpuRules are the causes of CPUs that are full.
func cpuRules() []Rule {
	return []Rule{
		{
			Cause: "single-flow", TCP: true, Unseen: hostTime, Title: "one stream is one CPU", judge: singleFlow,
			Seen:  "one stream, a CPU full at one end, and more streams carry 1.3 times of it or more",
			Apart: "windows and loss grow with streams too, but leave the CPUs free",
			Mends: "more streams; jumbo frames, GRO or LRO for the one", Effect: "35 to 52 Gb/s between namespaces by 4 streams on 2 CPUs",
			Source: "methods.md, formula 10", Tests: []string{eightStreams}, Brings: []string{"sender-cpu", "receiver-cpu"},
		},
		{
			Cause: "too-many-streams", TCP: true, Unseen: hostTime, Title: "more streams than the CPUs manage", judge: tooManyStreams,
			Seen:  "fewer streams carry 1.1 times of it or more; the aggregate falls as end points are added, and all CPUs of a host are full",
			Apart: "the same with one stream, with half of them",
			Mends: "half as many streams as CPUs, then a sweep (thru ladder)", Effect: "about 10%",
			Source: "methods.md, formula 10; context switches of the worker (getrusage(2))", Tests: []string{oneStream},
		},
		{
			Cause: "sender-cpu", TCP: true, UDP: true, Unseen: hostTime, Title: "the sender's CPU is full", judge: senderCPU,
			Seen:  "the sender's thread is on a CPU or waits for one more than 88% of the time, and is not held up in send(); or all its CPUs are full",
			Apart: "the receiver's window, loss and a queue would block it in send(); a data path without copies raises the rate",
			Mends: "segmentation offload, larger packets, more streams, or nothing else on that CPU", Effect: "9 of 49 Gb/s without TSO between namespaces",
			Source: "/proc/PID/task/TID/schedstat; proc(5), /proc/stat", Tests: []string{otherControl, freeCPU, leanPath, eightStreams}, Brings: []string{"too-many-streams"},
		},
		{
			Cause: "receiver-cpu", TCP: true, UDP: true, Unseen: hostTime, Title: "the receiver's CPU is full", judge: receiverCPU,
			Seen:  "the reader's thread is on a CPU or waits for one more than 88% of the time while data waits unread; or a CPU is full of received packets",
			Apart: "the sender is held up, and its own CPUs are not full; several streams carry more",
			Mends: "GRO, more queues, interrupts and reader on CPUs of their own", Effect: "up to as many times as there are CPUs",
			Source: "/proc/PID/task/TID/schedstat; SIOCINQ; /proc/net/softnet_stat", Tests: []string{otherControl, freeCPU, leanPath, eightStreams}, Brings: []string{"slow-reader", "receive-window", "send-buffer", "ring-overflow", "backlog-overflow"},
		},
	}
}

// Bars of CPUs, in percent of the time.
const (
	threadBar = 88 // on a CPU or waiting for one: above it a thread had no time to spare
	fullBar   = 95 // busy: above it a CPU is full
	packetBar = 60 // of a CPU's time on received packets: above it they are what fills it
	sharedBar = 30 // waiting for a CPU: above it others have it
	mostBar   = 60 // as threadBar, of a thread that had to share CPUs that are all full
)

// load is how much of its CPUs an end had to take.
type load struct {
	known  bool
	hot    threads // of its busiest thread
	ran    float64 // time on CPUs of all its threads, in percent of one CPU
	thread bool    // that thread had no time to spare
	packet bool    // a CPU of the host was full of received packets
	all    bool    // every CPU that its threads may use was full, and the busiest had to wait
	cpus   int     // of the host; 0 where they are not known
	least  float64 // how busy the freest CPU is that its threads may use, in percent
	soft   measure.CPU
}

// isFull tells whether a CPU of the end holds the flow up.
func (l load) isFull() bool { return l.thread || l.packet || l.all }

// bounded is a share in percent of whatever a document holds in its place.
func bounded(pct float64) float64 {
	if !(pct > 0) {
		return 0
	}
	return min(pct, 100)
}

// busy is how much of its time a CPU did anything, and packets how much of it
// went to interrupts and received packets, in percent.
func busy(c measure.CPU) float64    { return bounded(c.Busy()) }
func packets(c measure.CPU) float64 { return bounded(c.IRQ + c.SoftIRQ) }

// load of the end in the measured time.
func (e *end) load() load {
	var l load
	l.hot, l.known = e.threads()
	if !l.known {
		l.hot, l.known = e.process()
	}
	for _, s := range e.streams() {
		if s.RunNs != nil && e.span() > 0 {
			l.ran += max(0, min(100, 100*float64(*s.RunNs)/float64(e.span())))
		}
	}
	l.thread = l.known && l.hot.run+l.hot.wait > threadBar
	if e.seen == nil || e.seen.Host == nil {
		return l
	}
	l.cpus = len(e.seen.Host.CPUs)
	bound, allowed := boundTo(e), 0
	for _, c := range e.seen.Host.CPUs {
		if bound == nil || *bound == c.Core {
			if allowed++; allowed == 1 || busy(c) < l.least {
				l.least = busy(c)
			}
		}
		if packets(c) > packets(l.soft) {
			l.soft = c
		}
	}
	l.packet = busy(l.soft) > fullBar && packets(l.soft) > packetBar
	l.all = l.least > fullBar && l.known && l.hot.run+l.hot.wait > mostBar
	return l
}

// isFull tells whether the end's hot thread, or a CPU of its host by received
// packets, had no time to spare.
func (e *end) isFull() bool { return e.load().isFull() }

// process stands for the threads of a foreign program, of which only the CPU
// time of the whole is known: one stream is one thread of it at most.
func (e *end) process() (threads, bool) {
	if e.seen == nil || e.seen.Worker == nil || e.span() <= 0 || len(e.streams()) != 1 {
		return threads{}, false
	}
	ran := 100 * (float64(e.seen.Worker.UserNs) + float64(e.seen.Worker.SystemNs)) / float64(e.span())
	ran = max(0, min(100, ran))
	return threads{run: ran, blocked: 100 - ran}, true
}

// stolen is the time in percent for which a thread stood still because the
// hypervisor had taken its CPU: the kernel counts it neither as run nor as
// waiting. It is the share of the steal that the thread's share of the CPU
// comes to.
func (e *end) stolen(s measure.Stream, run float64) float64 {
	if e.seen == nil || e.seen.Host == nil || len(e.seen.Host.CPUs) == 0 {
		return 0
	}
	steal, worked, n := 0.0, 0.0, 0.0
	for _, c := range e.seen.Host.CPUs {
		if s.CPU != nil && *s.CPU != c.Core {
			continue
		}
		steal, worked, n = steal+bounded(c.Steal), worked+max(0, busy(c)-bounded(c.Steal)), n+1
	}
	if n == 0 || worked <= 0 || steal <= 0 {
		return 0
	}
	return steal / n * min(1, run*n/worked)
}

// onSameCPUs tells that the CPUs of both ends are the same ones: one host, or
// two containers or network namespaces of one. Then the counters of a CPU say
// nothing of one end.
func (f *flow) onSameCPUs() bool {
	if f.onOneMachine() {
		return true
	}
	a, b := f.sender.facts, f.receiver.facts
	if a == nil || b == nil || !equal(a.Hostname, b.Hostname) || !equal(a.Kernel, b.Kernel) || !equal(a.Memory, b.Memory) || !equal(a.CPUModel, b.CPUModel) {
		return false
	}
	if f.sender.seen == nil || f.receiver.seen == nil || f.sender.seen.Host == nil || f.receiver.seen.Host == nil {
		return true
	}
	s, r := f.sender.seen.Host.CPUs, f.receiver.seen.Host.CPUs
	for i := range min(len(s), len(r)) {
		if d := busy(s[i]) - busy(r[i]); d > 10 || d < -10 {
			return false
		}
	}
	return len(s) == len(r)
}

// equal tells whether both are known and the same.
func equal[T int | int64 | string](a, b *T) bool { return a != nil && b != nil && *a == *b }

// isAll is the outcome of a cause where the flow carries all that it can or
// should, or nothing at all; nil where it does not.
func (f *flow) isAll() *outcome {
	bps, ok := f.goodput()
	if !ok || bps <= 0 {
		return missing("a goodput", "nothing was measured")
	}
	if share, ok := f.ceilingShare(); ok && share >= stat.PassPct {
		return no("the link is full: %s of what it can carry", unit.Percent(share))
	}
	asked := float64(f.cell.Spec.Rate)
	if asked > 0 && bps > 0.97*asked {
		return no("it is the rate that was asked for")
	}
	return nil
}

func senderCPU(f *flow) *outcome {
	if o := f.isAll(); o != nil {
		return o
	}
	mine, theirs := f.sender.load(), f.receiver.load()
	switch {
	case !mine.known:
		return f.sender.lacks("the time of its threads on a CPU")
	case !mine.thread && !mine.all:
		return no("the sender's thread was held up %s of the time, not for want of a CPU", unit.Percent(mine.hot.blocked))
	case f.onSameCPUs() && theirs.isFull() && theirs.ran > mine.ran:
		return no("the receiver takes more of the CPUs that both share: %s of one against %s", unit.Percent(theirs.ran), unit.Percent(mine.ran))
	case f.drowns():
		return no("the sender sends more than arrives: %s is lost", unit.Percent(f.cell.Datagrams.LossPct))
	}
	o := f.fullCPU(f.sender, mine)
	if !mine.packet || mine.thread {
		o.confidence = f.sureOfCPU(mine)
	}
	return f.unlessPaced(f.onOtherCPUs(f.scaled(o)))
}

// onOtherCPUs settles a full CPU by the same traffic on others.
func (f *flow) onOtherCPUs(o *outcome) *outcome {
	x := f.experiment(freeCPU)
	g := f.against(x)
	if g.Times < gainBar {
		return o
	}
	return o.gains(measure.Proof{EndPoint: f.receiver.name, Counter: "goodput on CPUs that the scheduler chose, over this"}, g).
		costs(0, "on other CPUs "+unit.Rate(rateOf(x))+" pass", "the same traffic with -A off")
}

// unlessPaced makes a full CPU likely, as long as it may be the pacing that
// fills it.
func (f *flow) unlessPaced(o *outcome) *outcome {
	if f.mayBePaced() && o.confidence == measure.Certain {
		o.confidence = measure.Likely
	}
	return o
}

// drowns tells that datagrams are sent faster than they arrive: what the
// sender could send more of would be lost too.
func (f *flow) drowns() bool {
	return f.isUDP() && f.cell.Datagrams != nil && f.cell.Datagrams.LossPct > drownBar
}

// drownBar is the share of datagrams in percent above which the loss of them
// is what binds.
const drownBar = 5

// sureOfCPU is certain where nothing else holds the sender up, or less work for
// each byte made the flow faster.
func (f *flow) sureOfCPU(l load) string {
	if f.against(f.experiment(leanPath)).Sure {
		return measure.Certain
	}
	if f.isUDP() {
		if l.thread {
			return measure.Certain
		}
		return measure.Likely
	}
	rwnd, ok := f.rwndPct()
	again, okToo := f.againPct()
	if ok && okToo && rwnd < rwndBar && again <= 0.1 && !f.hasQueue() && (l.thread || l.hot.run+l.hot.wait > 75) {
		return measure.Certain
	}
	return measure.Likely
}

func receiverCPU(f *flow) *outcome {
	if o := f.isAll(); o != nil {
		return o
	}
	mine, theirs := f.receiver.load(), f.sender.load()
	shared := f.onSameCPUs()
	switch {
	case !mine.known && (!mine.packet || shared):
		return f.receiver.lacks("the time of its threads on a CPU")
	case shared && theirs.isFull() && !f.drowns() && (theirs.ran >= mine.ran || !mine.thread && !mine.all):
		return no("the sender takes more of the CPUs that both share: %s of one against %s", unit.Percent(theirs.ran), unit.Percent(mine.ran))
	case !shared && !f.isUDP() && theirs.thread:
		return no("the sender is not held up: its own thread had no time to spare")
	case !mine.thread && !mine.all && (!mine.packet || shared):
		return no("the reader's thread waited for data %s of the time, and no CPU was full of packets", unit.Percent(mine.hot.blocked))
	}
	o := f.fullCPU(f.receiver, mine)
	unread, seen := f.unreadShare()
	rwnd, _ := f.rwndPct()
	switch {
	case f.against(f.experiment(leanPath)).Sure:
		o.confidence = measure.Certain
	case f.isUDP():
		if mine.thread && f.lostAt(measure.LossSocket) > 0 {
			o.confidence = measure.Certain
		}
	case mine.thread && (seen && unread > unreadBar || rwnd > rwndBar):
		o.confidence = measure.Certain
	case mine.packet && !mine.thread && packets(mine.soft) > 90 && f.receiver.squeezed(mine.soft.Core):
		o.confidence = measure.Certain
	case mine.all && shared:
		o.confidence = f.sureOfCPU(mine)
	}
	if seen && unread > unreadBar {
		o.by(above(f.receiver.proof("unread in the socket, of its room", unread, "pct"), unreadBar))
	}
	return f.unlessPaced(f.onOtherCPUs(f.scaled(o)))
}

// lostAt is how many datagrams the counters of a place took.
func (f *flow) lostAt(place string) (n int64) {
	for _, p := range f.cell.LossPlaces {
		if p.Place == place {
			n += max(0, p.Packets)
		}
	}
	return n
}

// squeezed tells whether that CPU of the end ran out of budget for received packets,
// and these were not far more than its interface received: then they are others'.
func (e *end) squeezed(core int) bool {
	for _, s := range e.seen.Host.Softnet {
		if s.Core == core && s.TimeSqueeze > 0 {
			n := e.seen.Host.NIC
			return n == nil || n.RxPackets == 0 || s.Processed < 4*n.RxPackets
		}
	}
	return false
}

// fullCPU words the CPU of an end that is full, and who fills it.
func (f *flow) fullCPU(e *end, l load) *outcome {
	o := likely("")
	if l.packet && !l.thread && !e.sends() {
		o.text = fmt.Sprintf("%s CPU %d is full of received packets (%s)", e.owner(), l.soft.Core, unit.Percent(packets(l.soft)))
		o.by(above(e.proof(fmt.Sprintf("/proc/stat cpu%d irq and softirq", l.soft.Core), packets(l.soft), "pct"), packetBar))
		return f.relieve(o.at(e.onCPU(l.soft.Core)), e, l, false)
	}
	others := f.others(e, l)
	o.text = f.sharers(e, l, others)
	o.by(above(e.proof("busiest thread on a CPU or waiting for one", l.hot.run+l.hot.wait, "pct"), threadBar))
	if !l.thread {
		o.evidence[0].Threshold = new(float64(mostBar))
		o.by(above(e.proof("freest CPU that it may run on, busy", l.least, "pct"), fullBar))
	}
	if l.hot.wait > sharedBar {
		o.by(above(e.proof("busiest thread waiting for a CPU", l.hot.wait, "pct"), sharedBar))
	}
	return f.relieve(o.at(e.onOwnCPU()), e, l, others)
}

// sharers says what is full, and where threads wait for it who else has it.
func (f *flow) sharers(e *end, l load, others bool) string {
	cpu := e.owner() + " CPU"
	bound := boundTo(e)
	if bound != nil {
		cpu += fmt.Sprintf(" %d", *bound)
	}
	ran, waited := unit.Percent(l.hot.run), unit.Percent(l.hot.wait)
	switch {
	case l.hot.wait <= sharedBar && l.thread:
		return fmt.Sprintf("%s is full: its thread ran %s of the time", cpu, ran)
	case others && bound != nil:
		return fmt.Sprintf("other programs take %s: its thread waited for it %s of the time", cpu, waited)
	case others:
		return fmt.Sprintf("other programs take %ss: its thread waited for one %s of the time", cpu, waited)
	case f.onSameCPUs() && bound != nil && equal(bound, boundTo(e.other())):
		return fmt.Sprintf("%s is full: both ends share it, and the %s takes more", cpu, e.place)
	case l.all && bound == nil && l.cpus > 1:
		return fmt.Sprintf("all %d CPUs of the %s are full", l.cpus, e.place)
	case l.all:
		return cpu + " is full"
	}
	return fmt.Sprintf("the %s's thread had to wait for a CPU %s of the time", e.place, waited)
}

// boundTo is the CPU that the end's busiest thread is bound to; nil where it
// may run on any, or several have theirs.
func boundTo(e *end) *int {
	var cpu *int
	for _, s := range e.streams() {
		if s.CPU == nil || cpu != nil && *cpu != *s.CPU {
			return nil
		}
		cpu = s.CPU
	}
	return cpu
}

// onOwnCPU is the place of a cause at this end, with the CPU that its busiest
// thread is bound to, if it is.
func (e *end) onOwnCPU() measure.Where {
	if cpu := boundTo(e); cpu != nil {
		return e.onCPU(*cpu)
	}
	return e.where()
}

// others tells whether programs that have nothing to do with the test take the
// CPUs that the end wants: while no test ran, and more than the test's own
// threads account for while it did.
func (f *flow) others(e *end, l load) bool {
	if e.seen == nil || e.seen.Base == nil || e.seen.Host == nil || l.hot.wait <= sharedBar {
		return false
	}
	bound := boundTo(e)
	idle, taken := 0.0, 0.0
	for _, c := range e.seen.Base.CPUs {
		if bound == nil || *bound == c.Core {
			idle += busy(c)
		}
	}
	for _, c := range e.seen.Host.CPUs {
		if bound == nil || *bound == c.Core {
			taken += busy(c) - packets(c)
		}
	}
	taken -= l.ran
	if f.onSameCPUs() && (bound == nil || equal(bound, boundTo(e.other()))) {
		taken -= e.other().load().ran
	}
	return idle > sharedBar && taken > sharedBar
}

// relieve says what takes work off a CPU.
func (f *flow) relieve(o *outcome, e *end, l load, others bool) *outcome {
	switch {
	case others && e.facts != nil && e.facts.Load != nil && len(e.facts.Load.Top) > 0:
		p := e.facts.Load.Top[0]
		return o.mend(advise(e, fmt.Sprintf("see what process %d (%.40s) does, and measure when it is idle, or with other CPUs (-A)", p.PID, p.Name)))
	case others:
		return o.mend(advise(e, "see what else runs there (top), and measure when it is idle, or with other CPUs (-A)"))
	case l.packet && !l.thread && e.flows() == 1:
		return o.mend(advise(e, "one flow has one queue, wherever its interrupts go: several streams use several (-P); GRO and MTU 9000 make less work for one"))
	case l.packet && !l.thread:
		return o.mend(e.spreadInterrupts())
	case l.all:
		return o.mend(advise(e, "less work for each byte: segmentation and receive offload on, MTU 9000; or more CPUs"))
	case len(e.streams()) <= 1 && l.cpus > 1:
		return o.mend(advise(e, "several streams use several CPUs (-P); offloads and MTU 9000 make less work for one"))
	}
	return o.mend(advise(e, "less work for each byte: segmentation and receive offload on, MTU 9000; a faster CPU"))
}

// scaled adds what more streams carry.
func (f *flow) scaled(o *outcome) *outcome {
	most := f.withMost()
	if f.against(most).Times > gainBar {
		o.costs(0, fmt.Sprintf("%d streams carry %s", most.Streams, unit.Rate(rateOf(most))), fmt.Sprintf("the same traffic with %d streams", most.Streams))
	}
	return o
}
