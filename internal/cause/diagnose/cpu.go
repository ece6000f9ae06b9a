package diagnose

import (
	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// Bars of CPUs, in percent of the time.
const (
	ThreadBar = 88 // on a CPU or waiting for one: above it a thread had no time to spare
	FullBar   = 95 // busy: above it a CPU is full
	PacketBar = 60 // of a CPU's time on received packets: above it they are what fills it
	SharedBar = 30 // waiting for a CPU: above it others have it
	MostBar   = 60 // as threadBar, of a thread that had to share CPUs that are all full
)

// Load is how much of its CPUs an end had to take.
type Load struct {
	Known  bool
	Hot    Threads // of its busiest thread
	Ran    float64 // time on CPUs of all its threads, in percent of one CPU
	Thread bool    // that thread had no time to spare
	Packet bool    // a CPU of the host was full of received packets
	All    bool    // every CPU that its threads may use was full, and the busiest had to wait
	CPUs   int     // of the host; 0 where they are not known
	Least  float64 // how busy the freest CPU is that its threads may use, in percent
	Soft   measure.CPU
}

// IsFull tells whether a CPU of the end holds the flow up.
func (l Load) IsFull() bool { return l.Thread || l.Packet || l.All }

// Bounded is a share in percent of whatever a document holds in its place.
func Bounded(pct float64) float64 {
	if !(pct > 0) {
		return 0
	}
	return min(pct, 100)
}

// Busy is how much of its time a CPU did anything, and packets how much of it
// went to interrupts and received packets, in percent.
func Busy(c measure.CPU) float64 { return Bounded(c.Busy()) }

// Packets are the packets that a CPU took, a second.
func Packets(c measure.CPU) float64 { return Bounded(c.IRQ + c.SoftIRQ) }

// Load of the end in the measured time.
func (e *End) Load() Load {
	var l Load
	l.Hot, l.Known = e.Threads()
	if !l.Known {
		l.Hot, l.Known = e.process()
	}
	for _, s := range e.Streams() {
		if s.RunNs != nil && e.Span() > 0 {
			l.Ran += max(0, min(100, 100*float64(*s.RunNs)/float64(e.Span())))
		}
	}
	l.Thread = l.Known && l.Hot.Run+l.Hot.Wait > ThreadBar
	l.CPUs = len(e.Counters().CPUs)
	bound, allowed := BoundTo(e), 0
	for _, c := range e.Counters().CPUs {
		if bound == nil || *bound == c.Core {
			if allowed++; allowed == 1 || Busy(c) < l.Least {
				l.Least = Busy(c)
			}
		}
		if Packets(c) > Packets(l.Soft) {
			l.Soft = c
		}
	}
	l.Packet = Busy(l.Soft) > FullBar && Packets(l.Soft) > PacketBar
	l.All = l.Least > FullBar && l.Known && l.Hot.Run+l.Hot.Wait > MostBar
	return l
}

// IsFull tells whether the end's hot thread, or a CPU of its host by received
// packets, had no time to spare.
func (e *End) IsFull() bool { return e.Load().IsFull() }

// process stands for the threads of a foreign program, of which only the CPU
// time of the whole is known: one stream is one thread of it at most.
func (e *End) process() (Threads, bool) {
	if e.Seen == nil || e.Seen.Worker == nil || e.Span() <= 0 || len(e.Streams()) != 1 {
		return Threads{}, false
	}
	ran := 100 * (float64(e.Seen.Worker.UserNs) + float64(e.Seen.Worker.SystemNs)) / float64(e.Span())
	ran = max(0, min(100, ran))
	return Threads{Run: ran, Blocked: 100 - ran}, true
}

// stolen is the time in percent for which a thread stood still because the
// hypervisor had taken its CPU: the kernel counts it neither as run nor as
// waiting. It is the share of the steal that the thread's share of the CPU
// comes to.
func (e *End) stolen(s measure.Stream, run float64) float64 {
	steal, worked, n := 0.0, 0.0, 0.0
	for _, c := range e.Counters().CPUs {
		if s.CPU != nil && *s.CPU != c.Core {
			continue
		}
		steal, worked, n = steal+Bounded(c.Steal), worked+max(0, Busy(c)-Bounded(c.Steal)), n+1
	}
	if n == 0 || worked <= 0 || steal <= 0 {
		return 0
	}
	return steal / n * min(1, run*n/worked)
}

// OnSameCPUs tells that the CPUs of both ends are the same ones: one host, or
// two containers or network namespaces of one. Then the counters of a CPU say
// nothing of one end.
func (f *Flow) OnSameCPUs() bool {
	if f.OnOneMachine() {
		return true
	}
	a, b := f.Sender.Facts, f.Receiver.Facts
	if !Equal(a.Hostname, b.Hostname) || !Equal(a.Kernel, b.Kernel) || !Equal(a.Memory, b.Memory) || !Equal(a.CPUModel, b.CPUModel) {
		return false
	}
	if f.Sender.Seen == nil || f.Receiver.Seen == nil || f.Sender.Seen.Host == nil || f.Receiver.Seen.Host == nil {
		return true
	}
	s, r := f.Sender.Seen.Host.CPUs, f.Receiver.Seen.Host.CPUs
	for i := range min(len(s), len(r)) {
		if d := Busy(s[i]) - Busy(r[i]); d > 10 || d < -10 {
			return false
		}
	}
	return len(s) == len(r)
}

// Equal tells whether both are known and the same.
func Equal[T int | int64 | string](a, b *T) bool { return a != nil && b != nil && *a == *b }

// IsAll is the outcome of a cause where the flow carries all that it can or
// should, or nothing at all; nil where it does not.
func (f *Flow) IsAll() *Outcome {
	bps, ok := f.Goodput()
	if !ok || bps <= 0 {
		return Missing("a goodput", "nothing was measured")
	}
	if share, ok := f.CeilingShare(); ok && share >= stat.PassPct {
		return No("the link is full: %s of what it can carry", unit.Percent(share))
	}
	asked := float64(f.Cell.Spec.Rate)
	if asked > 0 && bps > 0.97*asked {
		return No("it is the rate that was asked for")
	}
	return nil
}

// LostAt is how many datagrams the counters of a place took.
func (f *Flow) LostAt(place string) (n int64) {
	for _, p := range f.Cell.LossPlaces {
		if p.Place == place {
			n += max(0, p.Packets)
		}
	}
	return n
}

// BoundTo is the CPU that the end's busiest thread is bound to; nil where it
// may run on any, or several have theirs.
func BoundTo(e *End) *int {
	var cpu *int
	for _, s := range e.Streams() {
		if s.CPU == nil || cpu != nil && *cpu != *s.CPU {
			return nil
		}
		cpu = s.CPU
	}
	return cpu
}
