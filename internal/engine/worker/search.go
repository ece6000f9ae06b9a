package worker

import "time"

// A search for the capacity of a path follows RFC 9097, section 8.1, with the load rate adjustment of its type B: every 50 ms the receiver reports its counts,
// and the sender steps through a table of rates.
const (
	feedbackEvery  = 50 * time.Millisecond
	seqErrors      = 10                    // tolerated lost, reordered and duplicate datagrams in an interval
	lowDelay       = 30 * time.Millisecond // delay variation up to which the rate rises
	highDelay      = 90 * time.Millisecond // delay variation from which it falls
	slowAfter      = 3                     // intervals of congestion after which steps are small
	fastStep       = 10                    // rows per upward step in the fast phase
	fallback       = 3                     // fast steps back when that phase ends
	highSpeed      = 1_000_000_000         // bit/s from which steps are always small
	mostSearchRate = 1_000_000_000_000
	mostRow        = 1090 + 990 // its row
)

// searchRow returns a rate of the table in bit/s of payload: 0.5 Mb/s, then steps of 1 Mb/s up to 1 Gb/s, of 100 Mb/s up to 10 Gb/s, and of 1 Gb/s above.
func searchRow(row int) int64 {
	const mega, giga = 1_000_000, 1_000_000_000
	switch {
	case row <= 0:
		return mega / 2
	case row <= 1000:
		return int64(row) * mega
	case row <= 1090:
		return giga + int64(row-1000)*100*mega
	default:
		return min(10*giga+int64(row-1090)*giga, mostSearchRate)
	}
}

// search is the sender's side: it processes the reports of one flow.
type search struct {
	flow      *flow
	most      int64 // bit/s that this end allows; 0: no limit
	row       int
	congested int       // intervals with congestion so far
	heard     time.Time // time of the last report
}

func newSearch(f *flow, most int64) *search { return &search{flow: f, most: most} }

// heed processes one report and sets the rate of every stream. It ignores reports that arrive too early for their interval.
func (s *search) heed(r report) {
	if time.Since(s.heard) < feedbackEvery*3/4 || s.isSilence(r) {
		return
	}
	s.heard = time.Now()
	s.step(r)
	each := max(lower(searchRow(s.row), s.most)/int64(len(s.flow.streams)), 1)
	for _, x := range s.flow.streams {
		if x.pace != nil {
			x.pace.set(each)
			x.more[cRateBps].Store(each)
		}
	}
}

// isSilence reports an interval in which no datagram was due: it carries no information.
func (s *search) isSilence(r report) bool {
	due := float64(searchRow(s.row)) / 8 / float64(s.flow.length) * float64(r.SpanNs) / 1e9
	return r.ReceivedN == 0 && due < 2
}

// step moves the row according to one interval.
func (s *search) step(r report) {
	delay := time.Duration(r.DelayNs)
	fast := searchRow(s.row) < highSpeed && s.congested < slowAfter
	switch {
	case r.Errors <= seqErrors && delay < lowDelay:
		if fast {
			s.row += fastStep
			s.congested = 0
		} else {
			s.row++
		}
	case r.Errors > seqErrors || delay > highDelay:
		s.congested++
		if searchRow(s.row) < highSpeed && s.congested == slowAfter {
			s.row -= fastStep * fallback
		} else {
			s.row--
		}
	}
	s.row = min(max(s.row, 0), mostRow)
}

// giveFeedback sends the receiver's counts since the last report to the sender of a search.
func (w *worker) giveFeedback() {
	if !w.cmd.Spec.Search || w.cmd.Sends {
		return
	}
	now := time.Now()
	span := now.Sub(w.ended.at)
	if span < feedbackEvery {
		return
	}
	next := feedback{at: now}
	for _, s := range w.flow.streams {
		next.bytes += s.bytes.Load()
		next.packets += s.more[cPackets].Load()
		next.errors += s.more[cLost].Load() + 2*s.more[cReordered].Load() + s.more[cDuplicates].Load()
		next.delaySum += s.more[cDelaySumUs].Load()
		next.delayCount += s.more[cDelayCount].Load()
	}
	last := w.ended
	w.ended = next
	if last.at.IsZero() {
		return
	}
	r := report{SpanNs: int64(span), Bytes: next.bytes - last.bytes, ReceivedN: next.packets - last.packets, Errors: max(next.errors-last.errors, 0)}
	if n := next.delayCount - last.delayCount; n > 0 {
		r.DelayNs = (next.delaySum - last.delaySum) * 1000 / n
	} else {
		r.Errors = seqErrors + 1 // nothing arrived
	}
	w.flow.side.report(r)
}

// feedback holds the counters at the last report. A late datagram counts as an error although it is no longer lost.
type feedback struct {
	at                                           time.Time
	bytes, packets, errors, delaySum, delayCount int64
}
