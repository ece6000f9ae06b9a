package diagnose

import (
	"math"

	"thru/internal/measure"
	"thru/internal/stat"
)

// Bars of the rate that a loss allows, and of how often it was seen.
const (
	FewEvents = 10  // fewer say nothing for certain: the next run may have three times as many, or none
	HeavyPct  = 5   // of loss: beyond it timeouts leave less than the formulas say
	BindsBar  = 2   // times what a loss allows may exceed the goodput that it holds
	ExceedBar = 1.1 // times the goodput may exceed it within a site: a bound below what was carried is none
	RareBar   = 4   // times, from where on it is too rare
	BurstBar  = 6   // times the goodput may exceed it where it went on all along: cubic exceeds Mathis by 2 to 3
	MostlyOf  = 3   // times a counter of the whole host may exceed what the flow lost, and be of this flow
)

// LossBound is the rate that a loss of so many percent, all along, allows all
// streams of cubic or reno over a round trip in ns, and by which formula
// (methods.md, formula 6; RFC 9438, section 5).
func (f *Flow) LossBound(rttNs, pct float64) (bps float64, by string) {
	n := float64(max(1, len(f.Sender.Streams())))
	bps, by = stat.Mathis(int64(f.MSS()), int64(rttNs), pct/100, stat.MathisEveryACK)*n, "Mathis"
	if cubic := stat.Cubic(int64(f.MSS()), int64(rttNs), pct/100) * n; f.Congestion() == "cubic" && cubic > bps {
		return cubic, "CUBIC"
	}
	return bps, by
}

// Allowed is what the loss that the sender saw allows over the round trip
// under load, else over the least; false where it is not known.
func (f *Flow) Allowed() (bps float64, ok bool) {
	pct, counted := f.AgainPct()
	bps, _ = f.LossBound(f.AnyRTT(), pct)
	return bps, counted && pct > 0 && IsNumber(bps)
}

// AnyRTT is the round trip under load in ns, else the least; 0 where neither is known.
func (f *Flow) AnyRTT() float64 {
	if loaded, ok := f.LoadedRTT(); ok {
		return loaded
	}
	base, _ := f.BaseRTT()
	return base
}

// IsRare tells that the loss would allow more than so many times the goodput.
func (f *Flow) IsRare(times float64) bool {
	bound, known := f.Allowed()
	pct, _ := f.AgainPct()
	return known && pct <= HeavyPct && bound > times*f.Rate()
}

// MayFollow tells whether the rate may be what the sender's loss leaves: not
// where that allows far more, where a queue stands before a plateau, which is
// what is full, or under bbr, which bears with it.
func (f *Flow) MayFollow() bool {
	pct, _ := f.AgainPct()
	flat, seen := f.Flatness()
	return !f.IsRare(BindsBar) && !(f.HasQueue() && seen && flat < FlatBar) && !(Paces(f.Congestion()) && pct < BbrBar)
}

// Follows tells that the rate is what the sender's loss leaves.
func (f *Flow) Follows() bool {
	bound, known := f.Allowed()
	return known && f.MayFollow() && f.Rate() <= BurstBar*bound
}

// Blame says how sure it is that packets which a host's counter lost or found
// damaged are what holds the flow. Such a counter is of all traffic of the
// host: the flow has to have lost as many, and its rate to follow from that.
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
