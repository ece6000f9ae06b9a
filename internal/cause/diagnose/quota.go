package diagnose

import (
	"slices"

	"thru/internal/measure"
)

// Either judges a cause that can be at both ends, and returns the outcome of the end where it is more certain; the
// sender's if they are equal.
func (f *Flow) Either(judge func(*End) *Outcome) *Outcome {
	a := judge(f.Sender)
	if f.Cell.From == f.Cell.To {
		return a
	}
	b := judge(f.Receiver)
	if a == nil || b != nil && Sureness(b) > Sureness(a) {
		return b
	}
	if b != nil && a.State == Excluded && b.State == Excluded && a.Text != b.Text {
		a.Text += "; " + b.Text
	}
	return a
}

// Sureness orders outcomes: causes that hold, by certainty, then unknown, then excluded ones.
func Sureness(o *Outcome) int {
	switch {
	case o.State == Excluded:
		return 0
	case o.State == Unknown:
		return 1
	case o.NotBinding:
		return 2 + Weight(o.Confidence)
	}
	return 5 + Weight(o.Confidence)
}

// Thresholds of the quota, in percent.
const (
	StealBar    = 5  // of a CPU, as %RDY on ESXi
	StealLikely = 25 // of a full CPU: from here it outweighs the differences between runs
)

// Stolen is what the hypervisor took of the CPUs that the flow needs at an end, in percent of their time.
type Stolen struct {
	Cores      []measure.CPU
	Mean, Busy float64
}

// OwnSteal returns the steal of the CPUs that the end's threads may use, or of the CPU full of received packets,
// whichever is higher. Steal of other CPUs does not slow the flow.
func (e *End) OwnSteal() (x Stolen) {
	x.Cores = e.Own(e.Counters().CPUs)
	x.Mean, _ = StealOf(x.Cores)
	for _, c := range x.Cores {
		x.Busy += Busy(c) / float64(len(x.Cores))
	}
	for _, c := range e.Counters().CPUs {
		if Busy(c) > FullBar && Packets(c) > 0 && Packets(c)+Bounded(c.Steal) > PacketBar && Packets(c) >= Packets(e.Load().Soft) && Bounded(c.Steal) > x.Mean {
			x = Stolen{[]measure.CPU{c}, Bounded(c.Steal), Busy(c)}
		}
	}
	return x
}

// Own returns those CPUs to which the end's threads are bound; all if one of them may run on any.
func (e *End) Own(all []measure.CPU) []measure.CPU {
	bound := e.boundCores()
	if bound == nil {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(c measure.CPU) bool { return !slices.Contains(bound, c.Core) })
}

// boundCores returns the CPUs to which the end's threads are bound, each once; nil if one of them may run on any.
func (e *End) boundCores() (bound []int) {
	for _, s := range e.Streams() {
		if s.CPU == nil {
			return nil
		}
		if !slices.Contains(bound, *s.CPU) {
			bound = append(bound, *s.CPU)
		}
	}
	return bound
}
