package stamp

import (
	"slices"
	"time"
)

// Summary is what a session measured with the packets that it sent in one span, usually a minute. It is complete: each packet was answered, or its time-out
// has passed, and each belongs to one Summary. What was not measured is absent: zero, unless the comment says otherwise, or nil.
type Summary struct {
	Begin time.Time     // when its first packet was sent, by the wall clock
	Span  time.Duration // that it stands for

	Sent int   // packets whose fate is known: answered or lost
	Lost int   // not answered in time
	Void int   // packets without a verdict: the host was suspended or stalled while they were under way
	Err  error // why this host itself did not send the last one that it did not

	RTT      Delays // round trip, without the time in the reflector
	There    Delays // one way; empty unless both clocks are said to be in sync, by this watch or by both hosts
	Bound    time.Duration
	TTLThere uint8 // with which the last packet arrived (see Hops)

	Runs []Run // of leastRun losses and more, and one that goes on whatever its length; in order, at most mostRuns

	MTU int // IP packet that passed both ways, and that nothing larger did; 0: not known yet

	Bytes int64 // of IP packets, both ways

	Slept   time.Duration // how long the host was suspended
	Stalled time.Duration // how long this process did not run, though it should have
	Jumped  time.Duration // by how much the wall clock was set, forward or back
}

// Delays are percentiles (nearest rank) of N packets.
type Delays struct {
	N                int
	Min, Median, P99 time.Duration
}

// Run is a run of losses: packets lost in a row, by the wall clock of the sender. A run that goes on is in the next Summary again, from its true beginning.
type Run struct {
	First   time.Time // when its first packet was sent
	Next    time.Time // when the first answered packet after it was sent; zero while it goes on
	Packets int
}

// Bounds of Summary.Runs.
const (
	leastRun = 3
	mostRuns = 16
)

// tally collects a Summary.
type tally struct {
	Summary
	end        time.Duration // of its packets, on the monotonic clock
	rtt, there []time.Duration
	run        Run  // that goes on, from an earlier Summary perhaps
	wasOpen    bool // an earlier Summary has it
}

// answer counts an answered packet. Packets come in the order of their sequence numbers.
func (t *tally) answer(p *packet, bound time.Duration) {
	t.Sent++
	t.endRun(p)
	t.rtt = append(t.rtt, p.rtt)
	if bound > 0 && !p.isOdd && min(p.there, p.back) >= -bound { // else the clocks are not as they are said to be
		t.there = append(t.there, p.there)
		t.Bound = max(t.Bound, bound)
	}
	t.TTLThere = p.ttlThere
}

// lose counts a lost packet.
func (t *tally) lose(p *packet) {
	t.Sent++
	t.Lost++
	if t.run.Packets == 0 {
		t.run.First = p.wall
	}
	t.run.Packets++
}

// endRun ends a run of losses at an answered packet, if there is one.
func (t *tally) endRun(p *packet) {
	if t.run.Next = p.wall; t.run.Packets >= leastRun || t.wasOpen {
		t.list()
	}
	t.run, t.wasOpen = Run{}, false
}

func (t *tally) list() {
	if len(t.Runs) < mostRuns {
		t.Runs = append(t.Runs, t.run)
	}
}

// finish returns the Summary, and begins the next one, which inherits a run that goes on.
func (t *tally) finish(length time.Duration) Summary {
	s := t.Summary
	s.Span = length
	if t.run.Packets > 0 {
		t.list()
		s.Runs, t.wasOpen = t.Runs, true
	}
	s.RTT = delaysOf(t.rtt)
	if s.Jumped == 0 {
		s.There = delaysOf(t.there)
	}
	*t = tally{rtt: t.rtt[:0], there: t.there[:0], run: t.run, wasOpen: t.wasOpen}
	return s
}

// delaysOf sorts the values.
func delaysOf(values []time.Duration) Delays {
	if len(values) == 0 {
		return Delays{}
	}
	slices.Sort(values)
	rank := func(pct int) time.Duration { return values[(pct*len(values)+99)/100-1] }
	return Delays{N: len(values), Min: values[0], Median: rank(50), P99: rank(99)}
}
