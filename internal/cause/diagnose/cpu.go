package diagnose

import (
	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// CPU thresholds, in percent of the time.
const (
	ThreadBar = 88 // on a CPU or waiting for one: above it a thread had no idle time
	FullBar   = 95 // busy: above it a CPU is full
	PacketBar = 60 // of a CPU's time on received packets: above it they fill the CPU
	SharedBar = 30 // waiting for a CPU: above it others use it
	MostBar   = 60 // like ThreadBar, for a thread that shared CPUs that are all full
)

// Load is the CPU load of an end.
type Load struct {
	Known  bool
	Hot    Threads // of its busiest thread
	Ran    float64 // time on CPUs of all its threads, in percent of one CPU
	Thread bool    // the busiest thread had no idle time
	Packet bool    // received packets filled a CPU of the host
	All    bool    // every CPU that its threads may use was full, and the busiest thread had to wait
	CPUs   int     // of the host; 0 if not known
	Least  float64 // load of the least busy CPU that its threads may use, in percent
	Soft   measure.CPU
}

// IsFull reports whether a CPU of the end limits the flow.
func (l Load) IsFull() bool { return l.Thread || l.Packet || l.All }

// Bounded limits a value of a document to a valid percentage.
func Bounded(pct float64) float64 {
	if !(pct > 0) {
		return 0
	}
	return min(pct, 100)
}

// Busy returns the percentage of time that a CPU was busy.
func Busy(c measure.CPU) float64 { return Bounded(c.Busy()) }

// Packets returns the percentage of a CPU's time spent on interrupts and received packets.
func Packets(c measure.CPU) float64 { return Bounded(c.IRQ + c.SoftIRQ) }

// Load returns the CPU load of the end in the measured time.
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

// IsFull reports whether the end's busiest thread, or a CPU of its host that handles received packets, had no idle
// time.
func (e *End) IsFull() bool { return e.Load().IsFull() }

// process stands in for the threads of a foreign program, of which only the total CPU time is known: one stream
// uses at most one of its threads.
func (e *End) process() (Threads, bool) {
	if e.Seen == nil || e.Seen.Worker == nil || e.Span() <= 0 || len(e.Streams()) != 1 {
		return Threads{}, false
	}
	ran := 100 * (float64(e.Seen.Worker.UserNs) + float64(e.Seen.Worker.SystemNs)) / float64(e.Span())
	ran = max(0, min(100, ran))
	return Threads{Run: ran, Blocked: 100 - ran}, true
}

// stolen returns the percentage of time that a thread stood still because the hypervisor had taken its CPU: the
// kernel counts that neither as run nor as wait. It is the part of the steal time that corresponds to the thread's
// share of the CPU.
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

// OnSameCPUs reports whether both ends use the same CPUs: one host, or two of its containers or network
// namespaces. CPU counters then do not distinguish the ends.
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

// Equal reports whether both are known and the same.
func Equal[T int | int64 | string](a, b *T) bool { return a != nil && b != nil && *a == *b }

// IsAll returns the outcome for a flow that carries all that it can or should, or nothing at all; else nil.
func (f *Flow) IsAll() *Outcome {
	bps, ok := f.Goodput()
	if !ok || bps <= 0 {
		return Missing("a goodput", "nothing was measured")
	}
	if share, ok := f.CeilingShare(); ok && share >= stat.PassPct {
		return No("the link is full: %s of its capacity", unit.Percent(share))
	}
	asked := float64(f.Cell.Spec.Rate)
	if asked > 0 && bps > 0.97*asked {
		return No("it is the requested rate")
	}
	return nil
}

// LostAt returns how many datagrams the counters of a place lost.
func (f *Flow) LostAt(place string) (n int64) {
	for _, p := range f.Cell.LossPlaces {
		if p.Place == place {
			n += max(0, p.Packets)
		}
	}
	return n
}

// BoundTo returns the CPU to which the end's busiest thread is bound; nil if it may run on any, or if several
// threads are bound.
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
