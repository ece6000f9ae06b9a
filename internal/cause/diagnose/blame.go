package diagnose

import (
	"math"

	"thru/internal/measure"
	"thru/internal/stat"
)

// Thresholds for the rate that a loss allows, and for how often it was seen.
const (
	FewEvents = 10  // fewer prove nothing: the next run may have three times as many, or none
	HeavyPct  = 5   // of loss: beyond it timeouts leave less than the formulas say
	BindsBar  = 2   // times that the loss-allowed rate may exceed the goodput that it limits
	ExceedBar = 1.1 // times that the goodput may exceed it within a site: a bound below the goodput is no bound
	RareBar   = 4   // times, from which the loss is too rare
	BurstBar  = 6   // times that the goodput may exceed it under continuous loss: cubic exceeds Mathis by 2 to 3
	MostlyOf  = 3   // times that a host-wide counter may exceed the flow's loss and still be of this flow
)

// LossBound returns the rate that a continuous loss in percent allows all streams of cubic or reno over a
// round-trip time in ns, and the formula used (methods.md, formula 6; RFC 9438, section 5).
func (f *Flow) LossBound(rttNs, pct float64) (bps float64, by string) {
	n := float64(max(1, len(f.Sender.Streams())))
	bps, by = stat.Mathis(int64(f.MSS()), int64(rttNs), pct/100)*n, "Mathis"
	if cubic := stat.Cubic(int64(f.MSS()), int64(rttNs), pct/100) * n; f.Congestion() == "cubic" && cubic > bps {
		return cubic, "CUBIC"
	}
	return bps, by
}

// Allowed returns the rate in bit/s that the sender's loss allows over the round-trip time under load, or else
// over the minimum; false if it is not known.
func (f *Flow) Allowed() (bps float64, ok bool) {
	pct, counted := f.AgainPct()
	bps, _ = f.LossBound(f.AnyRTT(), pct)
	return bps, counted && pct > 0 && IsNumber(bps)
}

// AnyRTT returns the round-trip time under load in ns, or else the minimum; 0 if neither is known.
func (f *Flow) AnyRTT() float64 {
	if loaded, ok := f.LoadedRTT(); ok {
		return loaded
	}
	base, _ := f.BaseRTT()
	return base
}

// IsRare reports whether the loss would allow more than so many times the goodput.
func (f *Flow) IsRare(times float64) bool {
	bound, known := f.Allowed()
	pct, _ := f.AgainPct()
	return known && pct <= HeavyPct && bound > times*f.Rate()
}

// MayFollow reports whether the sender's loss may limit the rate. It does not if the loss allows a far higher
// rate, if a queue before a plateau is full, or under bbr, which tolerates loss.
func (f *Flow) MayFollow() bool {
	pct, _ := f.AgainPct()
	flat, seen := f.Flatness()
	return !f.IsRare(BindsBar) && !(f.HasQueue() && seen && flat < FlatBar) && !(Paces(f.Congestion()) && pct < BbrBar)
}

// Follows reports whether the sender's loss determines the rate.
func (f *Flow) Follows() bool {
	bound, known := f.Allowed()
	return known && f.MayFollow() && f.Rate() <= BurstBar*bound
}

// Blame sets how certain it is that packets which a host counter lists as lost or damaged limit the flow. The
// counter covers all traffic of the host, so the flow must have lost as many, and that loss must explain its rate.
func (f *Flow) Blame(o *Outcome, n float64) *Outcome {
	if f.IsUDP() {
		return f.blameDatagrams(o, n)
	}
	again, ok := f.Sender.Seen.Delta(measure.Retransmits).Float()
	switch {
	case !ok:
		return o
	case again == 0 || f.IsAll() != nil || f.Sender.Load().Thread || !f.MayFollow(): // nothing was lost, or the sender did not wait for it
		return o.MarkNotBinding()
	case n > OfRetransmit*again && n <= MostlyOf*again && min(n, again) >= FewEvents && f.Follows():
		o.Confidence = measure.Certain
		o.By(f.Sender.Proof("tcp_info.total_retrans", again, "segments"))
	case n > again/10 && n < math.MaxInt64:
		o.Confidence = measure.Likely
	}
	return o
}

func (f *Flow) blameDatagrams(o *Outcome, n float64) *Outcome {
	d := f.Cell.Datagrams
	if d == nil || d.Lost <= 0 {
		return o.MarkNotBinding()
	}
	o.Confidence = measure.Likely
	here := float64(f.LostAt(measure.LossRing) + f.LostAt(measure.LossBacklog) + f.LostAt(measure.LossRecvNIC))
	if here > OfRetransmit*float64(d.Lost) && n <= MostlyOf*float64(d.Lost) && d.Lost >= FewEvents {
		o.Confidence = measure.Certain
	}
	return o
}
