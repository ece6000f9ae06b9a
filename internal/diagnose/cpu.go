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
			Cause: "single-flow", TCP: true, Title: "one stream is one CPU", judge: singleFlow,
			Seen:  "one stream, a CPU full at one end, and more streams carry 1.3 times of it or more",
			Apart: "windows and loss grow with streams too, but leave the CPUs free",
			Mends: "more streams; jumbo frames, GRO or LRO for the one", Effect: "35 to 52 Gb/s between namespaces by 4 streams on 2 CPUs",
			Source: "methods.md, formula 10", Tests: []string{eightStreams}, Brings: []string{"sender-cpu", "receiver-cpu"},
		},
		{
			Cause: "too-many-streams", TCP: true, Title: "more streams than the CPUs manage", judge: tooManyStreams,
			Seen:  "fewer streams carry 1.1 times of it or more",
			Apart: "the same with one stream, with half of them",
			Mends: "half as many streams as CPUs, then a sweep (thru ladder)", Effect: "about 10%",
			Source: "methods.md, formula 10; context switches of the worker (getrusage(2))", Tests: []string{oneStream},
		},
		{
			Cause: "sender-cpu", TCP: true, UDP: true, Title: "the sender's CPU is full", judge: senderCPU,
			Seen:  "the sender's thread is on a CPU or waits for one more than 88% of the time, and is not held up in send(); or all its CPUs are full",
			Apart: "the receiver's window, loss and a queue would block it in send(); a data path without copies raises the rate",
			Mends: "segmentation offload, larger packets, more streams, or nothing else on that CPU", Effect: "9 of 49 Gb/s without TSO between namespaces",
			Source: "/proc/PID/task/TID/schedstat; proc(5), /proc/stat", Tests: []string{leanPath, eightStreams}, Brings: []string{"too-many-streams"},
		},
		{
			Cause: "receiver-cpu", TCP: true, UDP: true, Title: "the receiver's CPU is full", judge: receiverCPU,
			Seen:  "the reader's thread is on a CPU or waits for one more than 88% of the time while data waits unread; or a CPU is full of received packets",
			Apart: "the sender is held up, and its own CPUs are not full; several streams carry more",
			Mends: "GRO, more queues, interrupts and reader on CPUs of their own", Effect: "up to as many times as there are CPUs",
			Source: "/proc/PID/task/TID/schedstat; SIOCINQ; /proc/net/softnet_stat", Tests: []string{leanPath, eightStreams}, Brings: []string{"slow-reader", "receive-window"},
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
	all    bool    // every CPU of the host was full, and the thread had to wait
	cpus   int     // of the host; 0 where they are not known
	soft   measure.CPU
}

// isFull tells whether a CPU of the end holds the flow up.
func (l load) isFull() bool { return l.thread || l.packet || l.all }

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
	l.cpus, l.all = len(e.seen.Host.CPUs), len(e.seen.Host.CPUs) > 0
	for _, c := range e.seen.Host.CPUs {
		l.all = l.all && c.Busy() > fullBar
		if c.IRQ+c.SoftIRQ > l.soft.IRQ+l.soft.SoftIRQ {
			l.soft = c
		}
	}
	l.packet = l.soft.Busy() > fullBar && l.soft.IRQ+l.soft.SoftIRQ > packetBar
	l.all = l.all && l.known && l.hot.run+l.hot.wait > mostBar
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
		steal, worked, n = steal+c.Steal, worked+c.Busy()-c.Steal, n+1
	}
	if n == 0 || worked <= 0 || steal <= 0 {
		return 0
	}
	return min(steal/n, 100) * min(1, run*n/worked)
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
		if d := s[i].Busy() - r[i].Busy(); d > 10 || d < -10 {
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
	case f.isUDP() && f.cell.Datagrams != nil && f.cell.Datagrams.LossPct > 5:
		return no("the sender sends more than arrives: %s is lost", unit.Percent(f.cell.Datagrams.LossPct))
	}
	o := f.fullCPU(f.sender, mine)
	if !mine.packet || mine.thread {
		o.confidence = f.sureOfCPU(mine)
	}
	return f.scaled(o)
}

// sureOfCPU is certain where nothing else holds the sender up, or less work for
// each byte made the flow faster.
func (f *flow) sureOfCPU(l load) string {
	if f.against(f.experiment(leanPath)) > gainBar {
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
	case !mine.known && mine.cpus == 0:
		return f.receiver.lacks("the time of its threads on a CPU")
	case shared && theirs.isFull() && (theirs.ran >= mine.ran || !mine.thread && !mine.all):
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
	case f.against(f.experiment(leanPath)) > gainBar:
		o.confidence = measure.Certain
	case f.isUDP():
		if mine.thread && f.lostAt(measure.LossSocket) > 0 {
			o.confidence = measure.Certain
		}
	case mine.thread && (seen && unread > unreadBar || rwnd > rwndBar):
		o.confidence = measure.Certain
	case mine.packet && !mine.thread && mine.soft.IRQ+mine.soft.SoftIRQ > 90 && f.receiver.squeezed() > 0:
		o.confidence = measure.Certain
	case mine.all && shared:
		o.confidence = f.sureOfCPU(mine)
	}
	if seen && unread > unreadBar {
		o.by(above(f.receiver.proof("unread in the socket, of its room", unread, "pct"), unreadBar))
	}
	return f.scaled(o)
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

// squeezed is how often a CPU of the end ran out of budget for received packets.
func (e *end) squeezed() (n uint64) {
	if e.seen == nil || e.seen.Host == nil {
		return 0
	}
	for _, s := range e.seen.Host.Softnet {
		n += s.TimeSqueeze
	}
	return n
}

// fullCPU words the CPU of an end that is full, and who fills it.
func (f *flow) fullCPU(e *end, l load) *outcome {
	who := "sender's"
	if !e.sends() {
		who = "reader's"
	}
	cpu := boundTo(e)
	o := likely("")
	switch {
	case l.packet && !l.thread && !e.sends():
		o.text = fmt.Sprintf("%s CPU %d is full of received packets (%s)", e.owner(), l.soft.Core, unit.Percent(l.soft.IRQ+l.soft.SoftIRQ))
		o.by(above(e.proof(fmt.Sprintf("/proc/stat cpu%d irq and softirq", l.soft.Core), l.soft.IRQ+l.soft.SoftIRQ, "pct"), packetBar))
		return f.relieve(o.at(e.onCPU(l.soft.Core)), e, l, false)
	case l.thread && l.hot.wait <= sharedBar && cpu != nil:
		o.text = fmt.Sprintf("%s CPU %d is full: the %s thread ran on it %s of the time", e.owner(), *cpu, who, unit.Percent(l.hot.run))
	case l.thread && l.hot.wait <= sharedBar:
		o.text = fmt.Sprintf("%s CPU is full: the %s thread ran %s of the time", e.owner(), who, unit.Percent(l.hot.run))
	case l.all:
		o.text = fmt.Sprintf("all %d CPUs of the %s are full", l.cpus, e.place)
		if l.cpus == 1 {
			o.text = fmt.Sprintf("the only CPU of the %s is full", e.place)
		}
	default:
		o.text = fmt.Sprintf("the %s thread had to wait for a CPU %s of the time", who, unit.Percent(l.hot.wait))
	}
	others := f.others(e, l)
	if l.hot.wait > sharedBar {
		o.text += f.sharers(e, others)
	}
	o.by(above(e.proof(who+" thread on a CPU or waiting for one", l.hot.run+l.hot.wait, "pct"), threadBar))
	if l.hot.wait > sharedBar {
		o.by(above(e.proof(who+" thread waiting for a CPU", l.hot.wait, "pct"), sharedBar))
	}
	if cpu != nil {
		o.at(e.onCPU(*cpu))
	} else {
		o.at(e.where())
	}
	return f.relieve(o, e, l, others)
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

// others tells whether programs that have nothing to do with the test take the
// CPUs that the end wants: what they did while no test ran.
func (f *flow) others(e *end, l load) bool {
	if e.seen == nil || e.seen.Base == nil || l.hot.wait <= sharedBar {
		return false
	}
	cpu := boundTo(e)
	busy := 0.0
	for _, c := range e.seen.Base.CPUs {
		if cpu == nil || *cpu == c.Core {
			busy += c.Busy()
		}
	}
	return busy > sharedBar
}

// sharers says who has the CPU that a thread waits for.
func (f *flow) sharers(e *end, others bool) string {
	mine, theirs := boundTo(e), boundTo(e.other())
	switch {
	case others:
		return ", which other programs of the host take"
	case len(e.streams()) > 1:
		return fmt.Sprintf(", which its %d streams share", len(e.streams()))
	case f.onSameCPUs() && (equal(mine, theirs) || mine == nil):
		return ", which both ends share"
	}
	return ""
}

// relieve says what takes work off a CPU.
func (f *flow) relieve(o *outcome, e *end, l load, others bool) *outcome {
	switch {
	case others && e.facts != nil && e.facts.Load != nil && len(e.facts.Load.Top) > 0:
		p := e.facts.Load.Top[0]
		return o.mend(advise(e, fmt.Sprintf("see what process %d (%.40s) does, and measure when it is idle, or with other CPUs (-A)", p.PID, p.Name)))
	case others:
		return o.mend(advise(e, "see what else runs there (top), and measure when it is idle, or with other CPUs (-A)"))
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
	if g := f.against(most); g > gainBar {
		o.costs(0, fmt.Sprintf("%d streams carry %s", most.Streams, unit.Rate(rateOf(most))), fmt.Sprintf("the same traffic with %d streams", most.Streams))
	}
	return o
}
