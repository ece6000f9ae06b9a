package diagnose

import (
	"math"

	"thru/internal/measure"
	"thru/internal/stat"
)

// Bars of the rate that a loss allows, and of how often it was seen.
const (
	fewEvents = 10  // fewer say nothing for certain: the next run may have three times as many, or none
	heavyPct  = 5   // of loss: beyond it timeouts leave less than the formulas say
	bindsBar  = 2   // times what a loss allows may exceed the goodput that it holds
	exceedBar = 1.1 // times the goodput may exceed it within a site: a bound below what was carried is none
	rareBar   = 4   // times, from where on it is too rare
	burstBar  = 6   // times the goodput may exceed it where it went on all along: cubic exceeds Mathis by 2 to 3
	mostlyOf  = 3   // times a counter of the whole host may exceed what the flow lost, and be of this flow
)

// lossBound is the rate that a loss of so many percent, all along, allows all
// streams of cubic or reno over a round trip in ns, and by which formula
// (methods.md, formula 6; RFC 9438, section 5).
func (f *flow) lossBound(rttNs, pct float64) (bps float64, by string) {
	n := float64(max(1, len(f.sender.streams())))
	bps, by = stat.Mathis(int64(f.mss()), int64(rttNs), pct/100, stat.MathisEveryACK)*n, "Mathis"
	if cubic := stat.Cubic(int64(f.mss()), int64(rttNs), pct/100) * n; f.congestion() == "cubic" && cubic > bps {
		return cubic, "CUBIC"
	}
	return bps, by
}

// allowed is what the loss that the sender saw allows over the round trip
// under load, else over the least; false where it is not known.
func (f *flow) allowed() (bps float64, ok bool) {
	pct, counted := f.againPct()
	bps, _ = f.lossBound(f.anyRTT(), pct)
	return bps, counted && pct > 0 && isNumber(bps)
}

// anyRTT is the round trip under load in ns, else the least; 0 where neither is known.
func (f *flow) anyRTT() float64 {
	if loaded, ok := f.loadedRTT(); ok {
		return loaded
	}
	base, _ := f.baseRTT()
	return base
}

// isRare tells that the loss would allow more than so many times the goodput.
func (f *flow) isRare(times float64) bool {
	bound, known := f.allowed()
	pct, _ := f.againPct()
	return known && pct <= heavyPct && bound > times*f.rate()
}

// mayFollow tells whether the rate may be what the sender's loss leaves: not
// where that allows far more, where a queue stands before a plateau, which is
// what is full, or under bbr, which bears with it.
func (f *flow) mayFollow() bool {
	pct, _ := f.againPct()
	flat, seen := f.flatness()
	return !f.isRare(bindsBar) && !(f.hasQueue() && seen && flat < flatBar) && !(paces(f.congestion()) && pct < bbrBar)
}

// follows tells that the rate is what the sender's loss leaves.
func (f *flow) follows() bool {
	bound, known := f.allowed()
	return known && f.mayFollow() && f.rate() <= burstBar*bound
}

// blame says how sure it is that packets which a host's counter lost or found
// damaged are what holds the flow. Such a counter is of all traffic of the
// host: the flow has to have lost as many, and its rate to follow from that.
func (f *flow) blame(o *outcome, n float64) *outcome {
	if f.isUDP() {
		return f.blameDatagrams(o, n)
	}
	again, ok := f.sender.grew(segsAgain)
	switch {
	case !ok:
		return o
	case again == 0 || f.isAll() != nil || f.sender.load().thread || !f.mayFollow(): // nothing was lost, or the sender did not wait for it
		return o.beside()
	case n > ofRetransmit*again && n <= mostlyOf*again && min(n, again) >= fewEvents && f.follows():
		o.confidence = measure.Certain
		o.by(f.sender.proof("tcp_info.total_retrans", again, "segments"))
	case n > again/10 && n < math.MaxInt64:
		o.confidence = measure.Likely
	}
	return o
}

func (f *flow) blameDatagrams(o *outcome, n float64) *outcome {
	d := f.cell.Datagrams
	if d == nil || d.Lost <= 0 {
		return o.beside()
	}
	o.confidence = measure.Likely
	here := float64(f.lostAt(measure.LossRing) + f.lostAt(measure.LossBacklog) + f.lostAt(measure.LossRecvNIC))
	if here > ofRetransmit*float64(d.Lost) && n <= mostlyOf*float64(d.Lost) && d.Lost >= fewEvents {
		o.confidence = measure.Certain
	}
	return o
}
