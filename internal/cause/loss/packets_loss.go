package loss

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"thru/internal/cause/diagnose"
	"thru/internal/cause/mtu"
	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// lossSeen is what a capture tells of a loss.
type lossSeen struct {
	*diagnose.Spot
	Pct          float64 // of the payload that was sent again without having been spurious
	loaded, base float64 // round trip in ns
	timed        bool    // these are known
	queue        bool    // the round trip grows under load
	bound        float64 // what such a loss allows (Mathis), in bit/s
	often        int     // how often some were sent again; 0: not known
	inARow       float64 // segments each time, on average
}

// LossAt is the loss that the best placed capture shows; why not otherwise.
func LossAt(f *diagnose.Flow) (lossSeen, *diagnose.Outcome) {
	if o := mtu.NothingAgain(f); o != nil {
		return lossSeen{}, o
	}
	s := f.AnySpot()
	again, ok := s.AgainPct()
	if !ok {
		return lossSeen{}, diagnose.Missing("segments that were sent again", "too few were captured")
	}
	l := lossSeen{Spot: s, Pct: again * (1 - diagnose.Share(float64(needless(s)), float64(s.Data.Again.N))/100)}
	l.loaded, l.base, l.timed = s.RTT()
	l.queue, _ = s.Stands()
	l.bound = s.Mathis(l.loaded, l.Pct)
	l.often, l.inARow = rows(s, l.loaded)
	if l.Pct < diagnose.AgainBar {
		return l, diagnose.No("%s of the data had to be sent again", Rare(l.Pct))
	}
	return l, nil
}

// needless is how many of those that were sent again had not been lost. D-SACKs
// alone do not tell: they come of packets that the path doubles, too.
func needless(s *diagnose.Spot) int64 { return s.Data.Spurious.N }

// isNeedless tells whether most of what was sent again had not been lost.
func isNeedless(s *diagnose.Spot) bool { return 2*needless(s) > s.Data.Again.N }

// afterTimeouts tells whether most of what was sent again waited for a timeout:
// losses here and there are found sooner, by what arrives after them.
func afterTimeouts(s *diagnose.Spot) bool {
	return 2*(s.Data.Timeout.N+s.Data.Wake.N) > s.Data.Again.N
}

// rows tells in what rows the main connection sent again: how often, and how many
// segments in one go on average. The next one more than a round trip later begins
// anew. Both are 0 where that is not known.
func rows(s *diagnose.Spot, rttNs float64) (often int, each float64) {
	c := s.Main().Course
	if c == nil || len(c.Again) < 3 {
		return 0, 0
	}
	marks := slices.Clone(c.Again)
	slices.SortFunc(marks, func(a, b measure.PacketMark) int { return cmp.Compare(a.AtNs, b.AtNs) })
	often = 1
	for i := range marks[1:] {
		if float64(marks[i+1].AtNs-marks[i].AtNs) > max(rttNs, 2e6) {
			often++
		}
	}
	segments := 1.0 // that a packet holds
	if again := s.Main().Data.Again; again.N > 0 {
		segments = max(1, float64(again.Bytes)/float64(again.N)/s.MSS())
	}
	return often, segments * float64(len(marks)) / float64(often)
}

// binds tells whether the loss may be what holds the rate; why not otherwise.
func (l lossSeen) binds() *diagnose.Outcome {
	bps := l.Rate()
	switch {
	case l.Pct < 0.05 && l.queue:
		return diagnose.No("the few segments that were sent again were dropped by a full queue: the round trip grew with it")
	case l.timed && l.bound > diagnose.RareBar*bps:
		return diagnose.No("the %s that was sent again would allow %s", Rare(l.Pct), unit.Rate(l.bound))
	case l.isBorne() && l.queue:
		return diagnose.No("%s was sent again, that a full queue dropped: the round trip grew with it", Rare(l.Pct))
	case l.isBorne() && l.often > 0 && l.often < fewRows:
		return diagnose.No("%s was sent again, in %d goes only: lost all along, it would allow %s", Rare(l.Pct), l.often, unit.Rate(l.bound))
	}
	return nil
}

// isBorne tells whether far more passes than such a loss allows where it comes one
// by one: it comes in rows, or the congestion control bears with it.
func (l lossSeen) isBorne() bool { return l.timed && l.Rate() > diagnose.BurstBar*l.bound }

// lossWhere says on which side of the capture it is lost: what is sent again after
// it had passed was lost beyond.
func (l lossSeen) lossWhere() string {
	switch gaps, again := l.Data.Gaps.N, l.Data.Again.N; {
	case l.At == measure.AtSender:
		return "behind the sender"
	case l.At == measure.AtReceiver:
		return "before they came to the receiver"
	case gaps > 8*again/10:
		return "before the place of the capture"
	case gaps < again/10:
		return "behind the place of the capture"
	}
	return "on the way"
}

// proofs of a loss.
func (l lossSeen) proofs() []measure.Proof {
	p := []measure.Proof{diagnose.Above(l.Proof("sent again, of the payload", l.Pct, "pct", l.Data.Again.Packets...), diagnose.AgainBar)}
	if l.Data.Timeout.N > 0 {
		p = append(p, l.Count("sent again after a timeout", l.Data.Timeout))
	}
	if l.timed {
		rtt := l.Proof("round trip under load, median", l.loaded, "ns")
		rtt.Note = "the least is " + unit.Duration(int64(l.base))
		p = append(p, rtt)
	}
	return p
}

func packetsLoss(f *diagnose.Flow) *diagnose.Outcome {
	o := lostAlong(f)
	if o.State == diagnose.Holds && o.Confidence != measure.Possible {
		return o
	}
	if cut := mtu.CutOff(f); cut != nil {
		return cut
	}
	return o
}

// lostAlong judges losses all along the connection.
func lostAlong(f *diagnose.Flow) *diagnose.Outcome {
	l, why := LossAt(f)
	if why != nil {
		return why
	}
	if why := l.binds(); why != nil {
		return why
	}
	if o := ignored(f, l); o != nil {
		return o
	}
	o := diagnose.Possible("%s of the data was lost %s and sent again", Rare(l.Pct), l.lossWhere()).By(l.proofs()...).
		Mend(diagnose.Advise(nil, "find what loses: error counters of the ports on the way, cabling, optics, a device that is full; bbr suffers less from it"))
	x := f.Crossing
	if x != nil && x.Data.Sent > 0 && x.Data.Lost.N == 0 && !x.Misses() {
		return diagnose.No("all that passed one place came to the other, so nothing is lost between the captures")
	}
	if isNeedless(l.Spot) {
		return o.Beside() // it is the order that costs
	}
	if l.isBorne() {
		o.Beside().Text += fmt.Sprintf(", many at a time or under a control that bears it: one by one, it would leave %s", unit.Rate(l.bound))
	}
	once := math.Sqrt(max(1, l.inARow)) // what is lost in one go slows the sender down once: Mathis counts events
	fits := l.timed && !l.queue && !l.isBorne() && l.Rate() < 3*l.bound*once
	if l.timed && l.Rate() <= l.bound {
		o.Costs(l.bound, "such a loss leaves about "+unit.Rate(l.bound), fmt.Sprintf("Mathis: %d bytes * 8 / %s * 1.22 / sqrt(%s)", int64(l.MSS()), unit.Duration(int64(l.loaded)), Rare(l.Pct)))
	}
	if fits && !l.Misses() && !afterTimeouts(l.Spot) {
		o.Confidence = measure.Likely
	}
	if x == nil {
		return o
	}
	gone := diagnose.Share(float64(x.Data.Lost.N), float64(x.Data.SuperSent.N+x.Data.SingleSent.N))
	if x.Data.Sent > 0 && x.Data.Lost.N > 0 {
		o.By(x.Left.Proof("packets that left one place and did not come whole to the other", gone, "pct", x.Data.Lost.Packets...))
		if o.Confidence == measure.Likely && l.often > 0 && l.inARow < fewInARow && !x.Misses() {
			o.Confidence = measure.Certain // they are lost one by one, whatever the rate: no queue and no policer does that
			o.Text = fmt.Sprintf("%s of the data is lost between the two captures, packet by packet", Rare(l.Pct))
		}
	}
	return o
}

// ignored judges data that came to the receiver's interface and was not acknowledged
// until it came again: its own host drops it, behind the capture. Nil where that is
// not most of what was sent again.
func ignored(f *diagnose.Flow, l lossSeen) *diagnose.Outcome {
	s := f.Spot(measure.AtReceiver)
	if s == nil {
		return nil
	}
	bytes, all := 0.0, float64(s.Data.Payload)
	for i := range s.Connections {
		bytes += float64(s.Connections[i].Ignored())
	}
	if bytes == 0 || diagnose.Share(bytes, all) < l.Pct/2 {
		return nil
	}
	o := diagnose.Likely("%s of the data came to the receiver's interface and was never acknowledged: its host drops it", Rare(diagnose.Share(bytes, all))).At(f.Receiver.OnFace()).
		By(l.proofs()...).By(s.Proof("arrived, and came again without having been acknowledged", bytes, "bytes", s.Data.Again.Packets...)).
		Mend(diagnose.Advise(f.Receiver, "see what drops at the receiver: filters of its ingress (tc -s filter, nft list ruleset), checksums (nstat TcpInCsumErrors), a full socket (nstat TcpExtTCPRcvQDrop)"))
	if bytes >= diagnose.FewEvents*s.MSS() && !s.Misses() {
		o.Confidence = measure.Certain
	}
	if l.isBorne() {
		o.Beside()
	}
	return o
}

// Bars of how many segments are lost in one go: a queue that overflows or a
// policer drops many, damage one here and there.
const (
	fewInARow  = 3
	manyInARow = 10
	fewRows    = 3 // once or twice is how a connection finds its rate
)

// filled tells whether the round trip was far above its least at times: then a
// queue was full, and dropped.
func (l lossSeen) filled() bool {
	d := l.Main().RTT
	if l.At == measure.AtReceiver {
		d = l.Main().RTTBack
	}
	return d != nil && float64(d.P99-d.Min) > max(5e6, l.base/2)
}

// ceases tells whether all that was sent again was so in the first half of the main
// connection's time: a policer that holds the rate drops again and again.
func (l lossSeen) ceases() bool {
	c := l.Main()
	return l.often > 0 && !slices.ContainsFunc(c.Course.Again, func(m measure.PacketMark) bool { return 2*m.AtNs > c.SpanNs })
}

func packetsPolicer(f *diagnose.Flow) *diagnose.Outcome {
	l, why := LossAt(f)
	if why != nil {
		return why
	}
	h, known := l.WindowHeld()
	flat, seen := settledFlatness(f)
	idle, told := l.IdlePct()
	switch {
	case !l.timed:
		return diagnose.Missing("the round trip under load", "the packets that were captured do not tell")
	case told && idle > diagnose.IdleBar/2:
		return diagnose.Missing("the rate of a sender that always has data", fmt.Sprintf("it had nothing to send %s of the time: a flat rate is the program's", unit.Percent(idle)))
	case l.bound > diagnose.RareBar*l.Rate():
		return diagnose.No("the %s that was sent again would allow %s", Rare(l.Pct), unit.Rate(l.bound))
	case isNeedless(l.Spot):
		return diagnose.No("most of what was sent again had not been lost")
	case afterTimeouts(l.Spot):
		return diagnose.No("most of what was sent again waited for a timeout: nothing came after it that a policer lets pass")
	case l.queue:
		return diagnose.No("a queue fills: the round trip grows under load")
	case known && h.Binds:
		return diagnose.No("the receiver's window holds the sender up")
	case seen && flat > 6*diagnose.FlatBar:
		return diagnose.No("the rate of the seconds differs by %s: a policer's does not", unit.Percent(flat))
	case l.filled():
		return diagnose.No("the round trip was far above its least at times: a queue was full, and dropped")
	case l.often > 0 && l.often < fewRows:
		return diagnose.No("segments were lost in %d goes only, as a connection finds its rate", l.often)
	case l.ceases():
		return diagnose.No("nothing was lost in the second half of the time, at a rate that stays")
	case l.often > 0 && l.inARow < fewInARow:
		return diagnose.No("segments are lost one by one, a policer drops them in a row")
	}
	o := diagnose.Possible("a policer may drop what is above its rate: data is lost while the round trip stays at its least").By(l.proofs()...).
		Mend(diagnose.Advise(f.Sender, "shape below the rate at the sender (a qdisc such as tbf or fq with maxrate), or have the policer allow a longer burst"))
	if l.inARow > manyInARow && seen && flat < 2*diagnose.FlatBar && !l.Misses() {
		o.Confidence = measure.Likely
		o.Text = "a policer drops what is above its rate: many segments in a row, while the round trip stays at its least and the rate is flat"
		o.By(diagnose.Above(l.Proof("segments sent again in one go", l.inARow, "segments"), manyInARow))
	}
	return o
}

// settledFlatness is how much the rates of the seconds differ, without the first
// of a capture: there the connection only begins.
func settledFlatness(f *diagnose.Flow) (float64, bool) {
	if bins := f.Bins(); f.PacketsOnly() && len(bins) > 3 {
		return diagnose.SpreadOf(bins[1:]), true
	}
	return f.Flatness()
}

// SettledShare is the median rate of those seconds in percent of what the link can
// carry; 0 where it is not known.
func SettledShare(f *diagnose.Flow) float64 {
	bins := f.Bins()
	if !f.PacketsOnly() || len(bins) <= 3 || f.Cell.Ceiling == nil || f.Cell.Ceiling.Bps <= 0 {
		return 0
	}
	return 100 * stat.Median(bins[1:]) / f.Cell.Ceiling.Bps
}

func PacketsShaper(f *diagnose.Flow) *diagnose.Outcome {
	s := f.AnySpot()
	if s == nil {
		return diagnose.Missing("a connection of the flow", "none is in the capture")
	}
	queue, ok := s.Stands()
	h, known := s.WindowHeld()
	flat, seen := settledFlatness(f)
	idle, told := s.IdlePct()
	loaded, least, _ := s.RTT()
	share, stated := f.CeilingShare()
	share = max(share, SettledShare(f))
	switch {
	case f.OnOneMachine():
		return diagnose.No("no link lies between the ends")
	case !ok && queue:
		return diagnose.Missing("the round trip under load", "it grows, but the capture does not tell whether the sender itself waits; one at the sender would")
	case !ok:
		return diagnose.Missing("the round trip under load", "the packets that were captured do not tell")
	case stated && share >= diagnose.NearBar:
		return diagnose.No("the queue is the link's own: %s of what it can carry pass", unit.Percent(share))
	case s.ClosedPct() >= diagnose.ClosedFew:
		return diagnose.No("the receiver's window was closed %s of the time", unit.Percent(s.ClosedPct()))
	case known && h.Binds && !queue:
		return diagnose.No("the receiver's window holds the sender up")
	case told && idle > diagnose.IdleBar/2:
		return diagnose.No("the sender had nothing to send %s of the time", unit.Percent(idle))
	case !queue && s.At == measure.AtSender && f.HasQueue(): // of the kernel's round trip only what lies behind the interface is in the capture
		return diagnose.Missing("the queue of the sender's host", "its kernel waits longer than its packets take from the interface on: the queue is before the capture")
	case !queue && seen && flat < diagnose.FlatBar && s.Data.Again.N == 0:
		return diagnose.Missing("the congestion control", "the rate is flat without a queue, as one that paces (bbr) leaves it; packets do not tell the control")
	case !queue:
		return diagnose.No("the round trip under load is %.1f times the least: no queue is full", loaded/least)
	case !seen:
		return diagnose.Missing("three seconds of the course", "the capture is too short to see a plateau")
	case flat > 3*diagnose.FlatBar:
		return diagnose.No("the rate of the seconds differs by %s", unit.Percent(flat))
	}
	o := diagnose.Possible("a queue on the way there or back holds it at this rate: the round trip grows by %s under load", unit.Duration(int64(loaded-least)))
	if flat < diagnose.FlatBar {
		o.Confidence = measure.Likely
	}
	rtt := s.Proof("round trip under load, median", loaded, "ns")
	rtt.Note = "the least is " + unit.Duration(int64(least))
	o.By(rtt, diagnose.Below(f.Receiver.Proof("deviation of the seconds from their median", flat, "pct"), diagnose.FlatBar))
	if x := f.Crossing; x != nil && x.Data.Delay != nil {
		if o = queueWhere(f, o, x, loaded-least); o.State != diagnose.Holds {
			return o
		}
	}
	return f.AsShaper(o)
}

// waited is how far a delay is above its least, the median, in ns; 0 where it is
// not known.
func waited(d *measure.Delay) float64 {
	if d == nil {
		return 0
	}
	return float64(d.P50 - d.Min)
}

// queueWhere finds by two captures on which way the round trip grows by so many ns.
func queueWhere(f *diagnose.Flow, o *diagnose.Outcome, x *diagnose.Crossed, by float64) *diagnose.Outcome {
	there, back, own := waited(x.Data.Delay), waited(x.Acks.Delay), waited(x.Left.Main().RTTBack)
	o.By(x.Left.Proof("delay there over its least, median", there, "ns"))
	if x.Acks.Delay != nil {
		o.By(x.Right.Proof("delay back over its least, median", back, "ns"))
	}
	held := "holds it at this rate"
	switch {
	case back >= by/4 && back > 2*there:
		o.Text = fmt.Sprintf("a queue on the way back %s: acknowledgements wait %s there", held, unit.Duration(int64(back)))
		return o.At(measure.Where{Place: measure.AtPath, From: f.Cell.To, To: f.Cell.From})
	case there >= by/4:
		o.Text = fmt.Sprintf("a queue on the way %s: the round trip grows by %s under load, data waits %s", held, unit.Duration(int64(by)), unit.Duration(int64(there)))
		return o
	case own >= by/2:
		o.Text = fmt.Sprintf("a queue before the first capture, on the sender's side, %s: data waits %s there", held, unit.Duration(int64(own)))
		return o.At(f.Sender.Where())
	}
	return diagnose.No("the delay between the captures stays at its least: the queue is elsewhere")
}
