package hypervisor

import (
	"thru/internal/cause/diagnose"
	"thru/internal/measure"
)

// ShapedPort is a rate that the hypervisor holds the port of an end to.
type ShapedPort struct {
	End     *diagnose.End
	Name    string // of the port group, switch or adapter that it is set at
	Average float64
}

// ShapedAt is the shaping of the end's port in the direction of the data: its
// own, else that of the port group, else that of the switch. nil: there is none,
// or it is not known.
func ShapedAt(f *diagnose.Flow, e *diagnose.End) *ShapedPort {
	for _, b := range e.Placements {
		if x, at, told := b.Shaped(e.Sends()); x != nil {
			return &ShapedPort{End: e, Name: diagnose.Line(at), Average: float64(*x.AverageBps)}
		} else if told {
			return nil
		}
	}
	return nil
}

// Bars of a shaped port, in percent of its average. It counts frames, so a
// flow at it carries their headers less: 5% at an MTU of 1500.
const (
	ShapedLow  = 88
	ShapedHigh = 102
)

// PortRate names the counter of what the end moves through its port.
func PortRate(e *diagnose.End) string {
	if e.Sends() {
		return measure.CounterTxBps
	}
	return measure.CounterRxBps
}

// Drops tells whether anything was dropped there.
func Drops(p diagnose.Port) bool { return p.Dropped > 0 || p.Shares && p.Share.Mean > 0 }

// Proofs of what was dropped.
func Proofs(p diagnose.Port, e *diagnose.End) (all []measure.Proof) {
	if p.Dropped > 0 {
		all = append(all, diagnose.Above(GaugeEvidence(p.At, e.Name, p.Dropped, "packets"), 0))
	}
	if p.Shares && p.Share.Mean > 0 {
		all = append(all, diagnose.Above(GaugeEvidence(p.Share, e.Name, p.Share.Mean, "pct"), 0))
	}
	return all
}

// SwitchName is the virtual switch in the words of a sentence.
func SwitchName(e *diagnose.End) string {
	for _, b := range e.Placements {
		if b.Switch != nil && b.Switch.Name != "" {
			return diagnose.Line(b.Switch.Name)
		}
	}
	return "the virtual switch"
}
