package hypervisor

import (
	"thru/internal/cause/diagnose"
	"thru/internal/measure"
)

// ShapedPort is a rate limit that the hypervisor sets on an end's port.
type ShapedPort struct {
	End     *diagnose.End
	Name    string // of the port group, switch or adapter that has the setting
	Average float64
}

// ShapedAt returns the shaping of the end's port in the data direction: its own, else that of the port group, else
// that of the switch. nil: there is none, or it is not known.
func ShapedAt(f *diagnose.Flow, e *diagnose.End) *ShapedPort {
	for _, b := range e.Placements {
		if x, at, reported := b.Shaped(e.Sends()); x != nil {
			return &ShapedPort{End: e, Name: diagnose.Line(at), Average: float64(*x.AverageBps)}
		} else if reported {
			return nil
		}
	}
	return nil
}

// Thresholds of a shaped port, in percent of its average rate. It counts frames, so a flow at the limit carries
// less by their headers: 5% at an MTU of 1500.
const (
	ShapedLow  = 88
	ShapedHigh = 102
)

// PortRate returns the counter of what the end moves through its port.
func PortRate(e *diagnose.End) string {
	if e.Sends() {
		return measure.CounterTxBps
	}
	return measure.CounterRxBps
}

// Drops reports whether the port dropped anything.
func Drops(p diagnose.Port) bool { return p.Dropped > 0 || p.Shares && p.Share.Mean > 0 }

// Proofs returns the drops as evidence.
func Proofs(p diagnose.Port, e *diagnose.End) (all []measure.Proof) {
	if p.Dropped > 0 {
		all = append(all, diagnose.Above(GaugeEvidence(p.At, e.Name, p.Dropped, "packets"), 0))
	}
	if p.Shares && p.Share.Mean > 0 {
		all = append(all, diagnose.Above(GaugeEvidence(p.Share, e.Name, p.Share.Mean, "pct"), 0))
	}
	return all
}

// SwitchName returns the virtual switch's name for a sentence.
func SwitchName(e *diagnose.End) string {
	for _, b := range e.Placements {
		if b.Switch != nil && b.Switch.Name != "" {
			return diagnose.Line(b.Switch.Name)
		}
	}
	return "the virtual switch"
}
