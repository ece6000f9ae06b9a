package stat

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"thru/internal/measure"
	"thru/internal/unit"
)

// SearchCapacity returns the outcome of one run of a search by its receiver: the best whole second (RFC 9097,
// section 5), as payload and with the headers of IP and UDP, and the loss in that second. payload is the length of
// a datagram in bytes; link has the MTU and the version of IP.
func SearchCapacity(receiver *measure.Evidence, link Link, payload int) measure.Search {
	var found measure.Search
	if receiver == nil {
		found.Why = "the evidence of the receiver did not arrive"
		return found
	}
	before := 0.0
	for _, b := range receiver.Bins {
		if b.Span < int64(measure.Bin)*9/10 || b.Bytes <= 0 {
			before = 0
			continue // a partial second at the end does not count
		}
		own := float64(b.Bytes) * 8e9 / float64(b.Span)
		bps := withoutArrears(before, own)
		before = own
		if found.CapacityBps != nil && bps <= *found.CapacityBps {
			continue
		}
		found.CapacityBps, found.IPCapacityBps, found.LossPct = &bps, nil, nil
		if payload > 0 {
			found.IPCapacityBps = Known(bps * float64(ipBytes(link, payload)) / float64(payload))
		}
		if d := b.Datagrams; d != nil && d.Packets >= 0 && d.Lost >= 0 {
			found.LossPct = Known(100 * ratio(float64(d.Lost), float64(d.Lost)+float64(d.Packets)))
		}
	}
	if found.CapacityBps == nil {
		found.Why = "no whole second was received"
	}
	return found
}

// arrearsPct is the highest difference of two seconds that count with their mean.
const arrearsPct = 10

// withoutArrears returns the rate that the network delivered in a second in which a receiver read bps, after a
// slightly lower second before. A receiver without CPU time for 40 ms reads the delayed data in the next second:
// 4% above what the link carries. So two seconds that differ little count with their mean.
func withoutArrears(before, bps float64) float64 {
	if before < bps && before > bps*(1-arrearsPct/100.0) {
		return (before + bps) / 2
	}
	return bps
}

// search fills the capacity with the best of the runs that count. It keeps the trials, which control makes
// afterwards.
func (s *summary) search() {
	if !s.cell.Spec.Search {
		return
	}
	var best measure.Search
	link := Link{MTU: s.pathMTU(), IPv6: s.isIPv6()}
	for _, p := range s.runs {
		one := SearchCapacity(p.receiver, link, s.payload())
		if best.CapacityBps == nil || one.CapacityBps != nil && *one.CapacityBps > *best.CapacityBps {
			best = one
		}
	}
	if old := s.cell.Search; old != nil {
		best.LosslessBps, best.Trials = old.LosslessBps, old.Trials
		best.Why = cmp.Or(best.Why, old.Why)
	}
	s.cell.Search = &best
	if best.CapacityBps == nil {
		s.missing("search.capacity_bps", s.why(receiverSide, "bins", best.Why))
	}
	if slices.ContainsFunc(s.runs, func(p pair) bool { return climbs(p.receiver) }) {
		best.Rising = true
		s.warn("the rate was still rising when the search ended: the capacity may be higher; search for longer (-t)")
	}
}

// stillRisingPct is by how much the last second must exceed the one before, in percent.
const stillRisingPct = 5

// climbs reports whether a search ended while its rate rose and nothing was lost.
func climbs(e *measure.Evidence) bool {
	bins := Bins(e)
	n := len(bins)
	if n < 2 || bins[n-1] < bins[n-2]*(1+stillRisingPct/100.0) {
		return false
	}
	last := e.Bins[len(e.Bins)-1].Datagrams
	return last == nil || last.Lost == 0
}

// Limits of the search for the highest rate without loss.
const (
	MaxTrials       = 12
	losslessPct     = 2  // the interval at which it ends, in percent
	losslessDepth   = 64 // it gives up below this fraction of the capacity
	leastMetPct     = 97 // of the requested rate, that a sender must reach
	confirmationFit = 1  // trials reserved for the confirmation
)

// LosslessSearch finds the highest rate without loss, the throughput of RFC 2544: it halves the ratio of the lowest rate
// that failed to the highest that passed, and confirms the last by a longer trial. A failed confirmation lowers the
// bound. The rate is never above the capacity.
//
//	for s := NewLosslessSearch(capacity); ; {
//		rate, done := s.Next()
//		if done { cell.Search.LosslessBps, ... = s.Outcome() }
//		s.Report(trial at rate, longer if s.Confirming())
//	}
type LosslessSearch struct {
	low, high  float64 // low passed, or is the bound below which the search gives up; high is the capacity, or failed
	passed     bool    // low is the rate of a trial
	capacity   float64
	trials     []measure.Trial
	confirming bool // the next trial is the confirmation
	confirmed  *measure.Trial
}

// NewLosslessSearch starts at the capacity found, in bit/s of payload.
func NewLosslessSearch(capacityBps float64) *LosslessSearch {
	return &LosslessSearch{low: capacityBps / losslessDepth, high: capacityBps, capacity: capacityBps}
}

// Next returns the payload rate to try in bit/s; done ends the search.
func (s *LosslessSearch) Next() (rateBps float64, done bool) {
	s.confirming = false
	narrow := s.high <= s.low*(1+losslessPct/100.0)
	last := len(s.trials) >= MaxTrials-confirmationFit
	switch {
	case !(s.capacity > 0) || math.IsInf(s.capacity, 0) || s.confirmed != nil || len(s.trials) >= MaxTrials:
		return 0, true
	case len(s.trials) == 0:
		return s.capacity, false
	case s.passed && (narrow || last):
		s.confirming = true
		return s.low, false
	case narrow:
		return 0, true
	}
	return s.low * math.Sqrt(s.high/s.low), false
}

// Confirming reports whether the rate that Next just returned needs a longer trial.
func (s *LosslessSearch) Confirming() bool { return s.confirming }

// Report takes the result of the trial at the rate that Next returned.
func (s *LosslessSearch) Report(t measure.Trial) {
	s.trials = append(s.trials, t)
	switch {
	case s.confirming && t.Pass:
		s.confirmed = &s.trials[len(s.trials)-1]
	case t.Pass:
		s.low, s.passed = t.AskedBps, true
		if t.AskedBps >= s.capacity {
			s.high = s.low
		}
	default:
		s.high = t.AskedBps
		s.fallBack()
	}
}

// fallBack takes the best trial below a rate that failed as the lower bound.
func (s *LosslessSearch) fallBack() {
	s.low, s.passed = s.capacity/losslessDepth, false
	for _, t := range s.trials {
		if t.Pass && t.AskedBps < s.high && t.AskedBps > s.low {
			s.low, s.passed = t.AskedBps, true
		}
	}
}

// Outcome adds the search's result to that of the capacity.
func (s *LosslessSearch) Outcome(to *measure.Search) {
	to.Trials = s.trials
	switch {
	case s.confirmed != nil:
		to.LosslessBps = Known(min(s.confirmed.ReceivedBps, s.confirmed.AskedBps)) // clocks differ a little
		to.Why = fmt.Sprintf("confirmed by a trial of %.0f s after %s", s.confirmed.Seconds, unit.Plural(len(s.trials)-1, "trial"))
	case s.passed:
		to.LosslessBps = Known(s.low)
		to.Why = fmt.Sprintf("not confirmed within %d trials%s", len(s.trials), s.atAnyRate())
	case len(s.trials) == 0:
		to.Why = "no trial was made"
	default:
		to.Why = fmt.Sprintf("no trial of %d passed: the lowest was at %s%s", len(s.trials), unit.Rate(s.trials[len(s.trials)-1].AskedBps), s.atAnyRate())
	}
}

// atAnyRate says that a few datagrams were lost at rates far below the capacity too: that is no lack of capacity.
func (s *LosslessSearch) atAnyRate() string {
	const far, little = 4, 0.01
	for _, t := range s.trials {
		if t.Lost > 0 && t.AskedBps < s.capacity/far && float64(t.Lost) < little*float64(t.Sent) {
			return "; the loss does not depend on the rate"
		}
	}
	return ""
}

// TrialOf judges one run at a rate: it passes if every datagram arrived and the sender reached the rate. Counts
// are over the life of the streams.
func TrialOf(askedBps float64, f *measure.Flow) measure.Trial {
	t := measure.Trial{AskedBps: askedBps}
	if f == nil {
		return t
	}
	sent, got := countOf(f.Sender, inLife), countOf(f.Receiver, inLife)
	t.Sent, t.Lost = sent.Packets, max(sub(sent.Packets, got.Packets), got.Lost)
	if f.Receiver != nil && f.Receiver.MeasuredNs > 0 {
		t.Seconds = float64(f.Receiver.MeasuredNs) / 1e9
	}
	t.ReceivedBps, _ = Goodput(f.Receiver)
	offered, measured := Goodput(f.Sender)
	t.Pass = measured && sent.known && got.known && sent.Packets > 0 && t.Lost == 0 && offered >= askedBps*leastMetPct/100
	return t
}
