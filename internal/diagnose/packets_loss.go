package diagnose

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// lossSeen is what a capture tells of a loss.
type lossSeen struct {
	*spot
	pct          float64 // of the payload that was sent again without having been spurious
	loaded, base float64 // round trip in ns
	timed        bool    // these are known
	queue        bool    // the round trip grows under load
	bound        float64 // what such a loss allows (Mathis), in bit/s
	often        int     // how often some were sent again; 0: not known
	inARow       float64 // segments each time, on average
}

// lossAt is the loss that the best placed capture shows; why not otherwise.
func (f *flow) lossAt() (lossSeen, *outcome) {
	if o := f.nothingAgain(); o != nil {
		return lossSeen{}, o
	}
	s := f.anySpot()
	again, ok := s.againPct()
	if !ok {
		return lossSeen{}, missing("segments that were sent again", "too few were captured")
	}
	l := lossSeen{spot: s, pct: again * (1 - share(float64(s.needless()), float64(s.data.Again.N))/100)}
	l.loaded, l.base, l.timed = s.rtt()
	l.queue, _ = s.stands()
	l.bound = s.mathis(l.loaded, l.pct)
	l.often, l.inARow = s.rows(l.loaded)
	if l.pct < againBar {
		return l, no("%s of the data had to be sent again", rare(l.pct))
	}
	return l, nil
}

// needless is how many of those that were sent again had not been lost. D-SACKs
// alone do not tell: they come of packets that the path doubles, too.
func (s *spot) needless() int64 { return s.data.Spurious.N }

// isNeedless tells whether most of what was sent again had not been lost.
func (s *spot) isNeedless() bool { return 2*s.needless() > s.data.Again.N }

// afterTimeouts tells whether most of what was sent again waited for a timeout:
// losses here and there are found sooner, by what arrives after them.
func (s *spot) afterTimeouts() bool {
	return 2*(s.data.Timeout.N+s.data.Wake.N) > s.data.Again.N
}

// rows tells in what rows the main connection sent again: how often, and how many
// segments in one go on average. The next one more than a round trip later begins
// anew. Both are 0 where that is not known.
func (s *spot) rows(rttNs float64) (often int, each float64) {
	c := s.main().Course
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
	if again := s.main().Data.Again; again.N > 0 {
		segments = max(1, float64(again.Bytes)/float64(again.N)/s.mss())
	}
	return often, segments * float64(len(marks)) / float64(often)
}

// binds tells whether the loss may be what holds the rate; why not otherwise.
func (l lossSeen) binds() *outcome {
	bps := l.rate()
	switch {
	case l.pct < 0.05 && l.queue:
		return no("the few segments that were sent again were dropped by a full queue: the round trip grew with it")
	case l.timed && l.bound > rareBar*bps:
		return no("the %s that was sent again would allow %s", rare(l.pct), unit.Rate(l.bound))
	case l.isBorne() && l.queue:
		return no("%s was sent again, that a full queue dropped: the round trip grew with it", rare(l.pct))
	case l.isBorne() && l.often > 0 && l.often < fewRows:
		return no("%s was sent again, in %d goes only: lost all along, it would allow %s", rare(l.pct), l.often, unit.Rate(l.bound))
	}
	return nil
}

// isBorne tells whether far more passes than such a loss allows where it comes one
// by one: it comes in rows, or the congestion control bears with it.
func (l lossSeen) isBorne() bool { return l.timed && l.rate() > burstBar*l.bound }

// lossWhere says on which side of the capture it is lost: what is sent again after
// it had passed was lost beyond.
func (l lossSeen) lossWhere() string {
	switch gaps, again := l.data.Gaps.N, l.data.Again.N; {
	case l.place == measure.AtSender:
		return "behind the sender"
	case l.place == measure.AtReceiver:
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
	p := []measure.Proof{above(l.proof("sent again, of the payload", l.pct, "pct", l.data.Again.Packets...), againBar)}
	if l.data.Timeout.N > 0 {
		p = append(p, l.count("sent again after a timeout", l.data.Timeout))
	}
	if l.timed {
		rtt := l.proof("round trip under load, median", l.loaded, "ns")
		rtt.Note = "the least is " + unit.Duration(int64(l.base))
		p = append(p, rtt)
	}
	return p
}

func packetsLoss(f *flow) *outcome {
	o := f.lostAlong()
	if o.state == holds && o.confidence != measure.Possible {
		return o
	}
	if cut := f.cutOff(); cut != nil {
		return cut
	}
	return o
}

// lostAlong judges losses all along the connection.
func (f *flow) lostAlong() *outcome {
	l, why := f.lossAt()
	if why != nil {
		return why
	}
	if why := l.binds(); why != nil {
		return why
	}
	if o := f.ignored(l); o != nil {
		return o
	}
	o := possible("%s of the data was lost %s and sent again", rare(l.pct), l.lossWhere()).by(l.proofs()...).
		mend(advise(nil, "find what loses: error counters of the ports on the way, cabling, optics, a device that is full; bbr suffers less from it"))
	x := f.crossing
	if x != nil && x.data.Sent > 0 && x.data.Lost.N == 0 && !x.misses() {
		return no("all that passed one place came to the other, so nothing is lost between the captures")
	}
	if l.isNeedless() {
		return o.beside() // it is the order that costs
	}
	if l.isBorne() {
		o.beside().text += fmt.Sprintf(", many at a time or under a control that bears it: one by one, it would leave %s", unit.Rate(l.bound))
	}
	once := math.Sqrt(max(1, l.inARow)) // what is lost in one go slows the sender down once: Mathis counts events
	fits := l.timed && !l.queue && !l.isBorne() && l.rate() < 3*l.bound*once
	if l.timed && l.rate() <= l.bound {
		o.costs(l.bound, "such a loss leaves about "+unit.Rate(l.bound), fmt.Sprintf("Mathis: %d bytes * 8 / %s * 1.22 / sqrt(%s)", int64(l.mss()), unit.Duration(int64(l.loaded)), rare(l.pct)))
	}
	if fits && !l.misses() && !l.afterTimeouts() {
		o.confidence = measure.Likely
	}
	if x == nil {
		return o
	}
	gone := share(float64(x.data.Lost.N), float64(x.data.SuperSent.N+x.data.SingleSent.N))
	if x.data.Sent > 0 && x.data.Lost.N > 0 {
		o.by(x.left.proof("packets that left one place and did not come whole to the other", gone, "pct", x.data.Lost.Packets...))
		if o.confidence == measure.Likely && l.often > 0 && l.inARow < fewInARow && !x.misses() {
			o.confidence = measure.Certain // they are lost one by one, whatever the rate: no queue and no policer does that
			o.text = fmt.Sprintf("%s of the data is lost between the two captures, packet by packet", rare(l.pct))
		}
	}
	return o
}

// ignored judges data that came to the receiver's interface and was not acknowledged
// until it came again: its own host drops it, behind the capture. Nil where that is
// not most of what was sent again.
func (f *flow) ignored(l lossSeen) *outcome {
	s := f.spot(measure.AtReceiver)
	if s == nil {
		return nil
	}
	bytes, all := 0.0, float64(s.data.Payload)
	for i := range s.conns {
		bytes += float64(s.conns[i].Ignored())
	}
	if bytes == 0 || share(bytes, all) < l.pct/2 {
		return nil
	}
	o := likely("%s of the data came to the receiver's interface and was never acknowledged: its host drops it", rare(share(bytes, all))).at(f.receiver.onFace()).
		by(l.proofs()...).by(s.proof("arrived, and came again without having been acknowledged", bytes, "bytes", s.data.Again.Packets...)).
		mend(advise(f.receiver, "see what drops at the receiver: filters of its ingress (tc -s filter, nft list ruleset), checksums (nstat TcpInCsumErrors), a full socket (nstat TcpExtTCPRcvQDrop)"))
	if bytes >= fewEvents*s.mss() && !s.misses() {
		o.confidence = measure.Certain
	}
	if l.isBorne() {
		o.beside()
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
	d := l.main().RTT
	if l.place == measure.AtReceiver {
		d = l.main().RTTBack
	}
	return d != nil && float64(d.P99-d.Min) > max(5e6, l.base/2)
}

// ceases tells whether all that was sent again was so in the first half of the main
// connection's time: a policer that holds the rate drops again and again.
func (l lossSeen) ceases() bool {
	c := l.main()
	return l.often > 0 && !slices.ContainsFunc(c.Course.Again, func(m measure.PacketMark) bool { return 2*m.AtNs > c.SpanNs })
}

func packetsPolicer(f *flow) *outcome {
	l, why := f.lossAt()
	if why != nil {
		return why
	}
	h, known := l.windowHeld()
	flat, seen := f.settledFlatness()
	idle, told := l.idlePct()
	switch {
	case !l.timed:
		return missing("the round trip under load", "the packets that were captured do not tell")
	case told && idle > idleBar/2:
		return missing("the rate of a sender that always has data", fmt.Sprintf("it had nothing to send %s of the time: a flat rate is the program's", unit.Percent(idle)))
	case l.bound > rareBar*l.rate():
		return no("the %s that was sent again would allow %s", rare(l.pct), unit.Rate(l.bound))
	case l.isNeedless():
		return no("most of what was sent again had not been lost")
	case l.afterTimeouts():
		return no("most of what was sent again waited for a timeout: nothing came after it that a policer lets pass")
	case l.queue:
		return no("a queue fills: the round trip grows under load")
	case known && h.binds:
		return no("the receiver's window holds the sender up")
	case seen && flat > 6*flatBar:
		return no("the rate of the seconds differs by %s: a policer's does not", unit.Percent(flat))
	case l.filled():
		return no("the round trip was far above its least at times: a queue was full, and dropped")
	case l.often > 0 && l.often < fewRows:
		return no("segments were lost in %d goes only, as a connection finds its rate", l.often)
	case l.ceases():
		return no("nothing was lost in the second half of the time, at a rate that stays")
	case l.often > 0 && l.inARow < fewInARow:
		return no("segments are lost one by one, a policer drops them in a row")
	}
	o := possible("a policer may drop what is above its rate: data is lost while the round trip stays at its least").by(l.proofs()...).
		mend(advise(f.sender, "shape below the rate at the sender (a qdisc such as tbf or fq with maxrate), or have the policer allow a longer burst"))
	if l.inARow > manyInARow && seen && flat < 2*flatBar && !l.misses() {
		o.confidence = measure.Likely
		o.text = "a policer drops what is above its rate: many segments in a row, while the round trip stays at its least and the rate is flat"
		o.by(above(l.proof("segments sent again in one go", l.inARow, "segments"), manyInARow))
	}
	return o
}

// settledFlatness is how much the rates of the seconds differ, without the first
// of a capture: there the connection only begins.
func (f *flow) settledFlatness() (float64, bool) {
	if bins := f.bins(); f.packetsOnly() && len(bins) > 3 {
		return spreadOf(bins[1:]), true
	}
	return f.flatness()
}

// settledShare is the median rate of those seconds in percent of what the link can
// carry; 0 where it is not known.
func (f *flow) settledShare() float64 {
	bins := f.bins()
	if !f.packetsOnly() || len(bins) <= 3 || f.cell.Ceiling == nil || f.cell.Ceiling.Bps <= 0 {
		return 0
	}
	return 100 * stat.Median(bins[1:]) / f.cell.Ceiling.Bps
}

func packetsShaper(f *flow) *outcome {
	s := f.anySpot()
	if s == nil {
		return missing("a connection of the flow", "none is in the capture")
	}
	queue, ok := s.stands()
	h, known := s.windowHeld()
	flat, seen := f.settledFlatness()
	idle, told := s.idlePct()
	loaded, least, _ := s.rtt()
	share, stated := f.ceilingShare()
	share = max(share, f.settledShare())
	switch {
	case f.onOneMachine():
		return no("no link lies between the ends")
	case !ok && queue:
		return missing("the round trip under load", "it grows, but the capture does not tell whether the sender itself waits; one at the sender would")
	case !ok:
		return missing("the round trip under load", "the packets that were captured do not tell")
	case stated && share >= nearBar:
		return no("the queue is the link's own: %s of what it can carry pass", unit.Percent(share))
	case s.closedPct() >= closedFew:
		return no("the receiver's window was closed %s of the time", unit.Percent(s.closedPct()))
	case known && h.binds && !queue:
		return no("the receiver's window holds the sender up")
	case told && idle > idleBar/2:
		return no("the sender had nothing to send %s of the time", unit.Percent(idle))
	case !queue && s.place == measure.AtSender && f.hasQueue(): // of the kernel's round trip only what lies behind the interface is in the capture
		return missing("the queue of the sender's host", "its kernel waits longer than its packets take from the interface on: the queue is before the capture")
	case !queue && seen && flat < flatBar && s.data.Again.N == 0:
		return missing("the congestion control", "the rate is flat without a queue, as one that paces (bbr) leaves it; packets do not tell the control")
	case !queue:
		return no("the round trip under load is %.1f times the least: no queue is full", loaded/least)
	case !seen:
		return missing("three seconds of the course", "the capture is too short to see a plateau")
	case flat > 3*flatBar:
		return no("the rate of the seconds differs by %s", unit.Percent(flat))
	}
	o := possible("a queue on the way there or back holds it at this rate: the round trip grows by %s under load", unit.Duration(int64(loaded-least)))
	if flat < flatBar {
		o.confidence = measure.Likely
	}
	rtt := s.proof("round trip under load, median", loaded, "ns")
	rtt.Note = "the least is " + unit.Duration(int64(least))
	o.by(rtt, below(f.receiver.proof("deviation of the seconds from their median", flat, "pct"), flatBar))
	if x := f.crossing; x != nil && x.data.Delay != nil {
		if o = f.queueWhere(o, x, loaded-least); o.state != holds {
			return o
		}
	}
	return f.asShaper(o)
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
func (f *flow) queueWhere(o *outcome, x *crossed, by float64) *outcome {
	there, back, own := waited(x.data.Delay), waited(x.acks.Delay), waited(x.left.main().RTTBack)
	o.by(x.left.proof("delay there over its least, median", there, "ns"))
	if x.acks.Delay != nil {
		o.by(x.right.proof("delay back over its least, median", back, "ns"))
	}
	held := "holds it at this rate"
	switch {
	case back >= by/4 && back > 2*there:
		o.text = fmt.Sprintf("a queue on the way back %s: acknowledgements wait %s there", held, unit.Duration(int64(back)))
		return o.at(measure.Where{Place: measure.AtPath, From: f.cell.To, To: f.cell.From})
	case there >= by/4:
		o.text = fmt.Sprintf("a queue on the way %s: the round trip grows by %s under load, data waits %s", held, unit.Duration(int64(by)), unit.Duration(int64(there)))
		return o
	case own >= by/2:
		o.text = fmt.Sprintf("a queue before the first capture, on the sender's side, %s: data waits %s there", held, unit.Duration(int64(own)))
		return o.at(f.sender.where())
	}
	return no("the delay between the captures stays at its least: the queue is elsewhere")
}
