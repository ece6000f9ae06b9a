package diagnose

import (
	"slices"

	"thru/internal/measure"
)

// Either judges a cause that can be at both ends, and gives the outcome of the
// end that it is surer of; the sender's where they are alike.
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

// Sureness orders outcomes: what holds, the surer the more, then what is not
// known, then what does not hold.
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

// Bars of the quota, in percent.
const (
	StealBar    = 5  // of a CPU, as %RDY on ESXi
	StealLikely = 25 // of a full CPU: from here on it outweighs what runs differ by
)

// Stolen is what the hypervisor took of the CPUs that the flow needs at an end,
// in percent of their time.
type Stolen struct {
	Cores      []measure.CPU
	Mean, Busy float64
}

// OwnSteal is that of the CPUs that the end's threads may use, or of the one that
// is full of received packets, where more was taken of it. What is taken of other
// CPUs is no loss to the flow.
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

// Own are those CPUs that the end's threads are bound to; all where one of them
// may run on any.
func (e *End) Own(all []measure.CPU) []measure.CPU {
	bound := e.boundCores()
	if bound == nil {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(c measure.CPU) bool { return !slices.Contains(bound, c.Core) })
}

// boundCores are the CPUs that the end's threads are bound to, each once; nil
// where one of them may run on any.
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
