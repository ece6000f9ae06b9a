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

	Sent  int    // packets whose fate is known: answered or lost
	Lost  int    // not answered in time
	Void  int    // packets without a verdict: the host was suspended or stalled while they were under way
	Split *Split // of the losses before the last reply; nil: not known

	Late       int // replies to lost packets, after their time-out
	Duplicates int // further replies to a packet
	Reordered  int // replies that a reply to a later packet has overtaken
	Refused    int // replies with a wrong HMAC, or that match no packet
	Odd        int // replies with impossible times, whose one-way delays are not used

	Unsent int   // lost packets that this host itself did not send
	Err    error // why it did not send the last one of them

	RTT         Delays // round trip, without the time in the reflector
	There, Back Delays // one way; empty unless both clocks are said to be in sync, by this watch or by both hosts
	Bound       time.Duration
	TTLThere    uint8 // with which the last packet arrived (see Hops)
	TTLBack     uint8 // with which its reply arrived

	Runs     []Run // of leastRun losses and more, and one that goes on whatever its length; in order, at most mostRuns
	MoreRuns int   // that are not in Runs
	Longest  int   // packets of the longest run

	MTU int // IP packet that passed both ways, and that nothing larger did; 0: not known yet

	Bytes int64 // of IP packets, both ways

	Slept   time.Duration // how long the host was suspended
	Stalled time.Duration // how long this process did not run, though it should have
	Jumped  time.Duration // by how much the wall clock was set, forward or back
}

// Split is the number of packets lost in each direction, by the sequence numbers of the reflector.
type Split struct{ There, Back int }

// Delays are percentiles (nearest rank) of N packets.
type Delays struct {
	N                int
	Min, Median, P99 time.Duration
}

// Run is a run of losses: packets lost in a row, by the wall clock of the sender. A run that goes on is in the next Summary again, from its true beginning.
type Run struct {
	First, Last time.Time // when the first and the last packet of it were sent
	Next        time.Time // when the first answered packet after it was sent; zero while it goes on
	Packets     int
}

// Bounds of Summary.Runs.
const (
	leastRun = 3
	mostRuns = 16
)

// tally collects a Summary.
type tally struct {
	Summary
	end              time.Duration // of its packets, on the monotonic clock
	rtt, there, back []time.Duration
	run              Run  // that goes on, from an earlier Summary perhaps
	wasOpen          bool // an earlier Summary has it
	sequences        span // of the sender's packets that were answered
	counts           span // of the reflector's replies to them
	received         int  // replies within the spans
	unknown          bool // the direction of losses is not known
}

// span is a range of sequence numbers.
type span struct {
	from, to uint32
	is       bool
}

func (s *span) add(n uint32) {
	if !s.is {
		s.from, s.is = n, true
	}
	s.to = n
}

// size is the number of steps from the first to the last.
func (s *span) size() int { return int(int32(s.to - s.from)) }

// answer counts an answered packet. Packets come in the order of their sequence numbers.
func (t *tally) answer(p *packet, bound time.Duration) {
	t.Sent++
	t.endRun(p)
	t.rtt = append(t.rtt, p.rtt)
	switch {
	case p.isOdd, bound > 0 && min(p.there, p.back) < -bound:
		t.Odd++
	case bound > 0:
		t.there, t.back = append(t.there, p.there), append(t.back, p.back)
		t.Bound = max(t.Bound, bound)
	}
	t.TTLThere, t.TTLBack = p.ttlThere, p.ttlBack
	t.count(p)
}

// count notes the sequence numbers of an answered packet.
func (t *tally) count(p *packet) {
	if t.sequences.is {
		t.received++
	}
	t.sequences.add(p.sequence)
	t.counts.add(p.count)
}

// lose counts a lost packet.
func (t *tally) lose(p *packet) {
	t.Sent++
	t.Lost++
	if t.run.Packets == 0 {
		t.run.First = p.wall
	}
	t.run.Last = p.wall
	t.run.Packets++
	t.Longest = max(t.Longest, t.run.Packets)
}

// endRun ends a run of losses at an answered packet, if there is one.
func (t *tally) endRun(p *packet) {
	if t.run.Next = p.wall; t.run.Packets >= leastRun || t.wasOpen {
		t.list()
	}
	t.run, t.wasOpen = Run{}, false
}

func (t *tally) list() {
	if len(t.Runs) == mostRuns {
		t.MoreRuns++
		return
	}
	t.Runs = append(t.Runs, t.run)
}

// finish returns the Summary, and begins the next one, which inherits a run that goes on.
func (t *tally) finish(length time.Duration) Summary {
	s := t.Summary
	s.Span = length
	if t.run.Packets > 0 {
		t.list()
		s.Runs, s.MoreRuns, t.wasOpen = t.Runs, t.MoreRuns, true
	}
	s.RTT, s.Split = delaysOf(t.rtt), t.split()
	if s.Jumped == 0 {
		s.There, s.Back = delaysOf(t.there), delaysOf(t.back)
	}
	next := tally{rtt: t.rtt[:0], there: t.there[:0], back: t.back[:0], run: t.run, wasOpen: t.wasOpen}
	if t.sequences.is { // the losses after the last reply are in the next split
		next.sequences, next.counts = span{t.sequences.to, t.sequences.to, true}, span{t.counts.to, t.counts.to, true}
	}
	*t = next
	return s
}

// split tells the direction of the losses between two replies by the reflector's sequence numbers, which count its replies. It returns nil where the
// numbers contradict each other: requests were reordered, the reflector does not count, or it has begun anew.
func (t *tally) split() *Split {
	sent, answered := t.sequences.size(), t.counts.size()
	if !t.sequences.is || t.unknown || answered < t.received || answered > sent {
		return nil
	}
	return &Split{There: sent - answered, Back: answered - t.received}
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
