package diagnose

import (
	"thru/internal/measure"
)

// Port has the drops of the hypervisor's switch at the port of the end's guest, in the data direction.
type Port struct {
	Dropped     float64 // packets
	At          Gauge
	Share       Gauge // of the packets, if the source reports that (esxtop %DRPTX, %DRPRX)
	Known       bool
	Shares      bool
	Ring        float64 // times that the guest's ring was full, or packets that found no buffer in it
	RingAt      Gauge
	RingCounted bool
	Why         string
}

// Port reads the counters of the end's port.
func (e *End) Port() Port {
	counter, pct := measure.CounterRxDropped, measure.CounterRxDropPct
	if e.Sends() {
		counter, pct = measure.CounterTxDropped, measure.CounterTxDropPct
	}
	var p Port
	if p.At, p.Why = e.OfPort(counter); p.Why == "" {
		p.Known, p.Dropped = true, p.At.sum
	}
	share, why := e.OfPort(pct)
	p.Share, p.Shares = share, why == ""
	if e.Sends() {
		return p
	}
	for _, c := range []string{measure.CounterRingFull, measure.CounterNoBuffer} {
		if x, why := e.OfPort(c); why == "" { // both may count the same packet
			if !p.RingCounted || x.sum > p.Ring {
				p.Ring, p.RingAt = x.sum, x
			}
			p.RingCounted = true
		}
	}
	if p.Known { // vmxnet3 has a second ring: the first fills up without a loss
		p.Ring = min(p.Ring, p.Dropped)
	}
	return p
}
