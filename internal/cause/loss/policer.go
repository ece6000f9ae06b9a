package loss

import (
	"cmp"
	"fmt"
	"slices"

	"thru/internal/cause/advise"
	"thru/internal/cause/diagnose"
	"thru/internal/cause/mtu"
	"thru/internal/cause/rule"
	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// Policer is the cause `policer`.
func Policer() rule.Cause {
	return rule.Cause{
		Rule: diagnose.Rule{
			Cause: "policer", TCP: true, UDP: true, Unseen: diagnose.HostPackets, Title: "a policer drops traffic above its rate", Judge: judgePolicer, Packets: packetsPolicer,
			Seen:        "segments are lost while the round trip stays at its minimum; in captures: many segments are retransmitted in one burst",
			Distinction: "UDP below the rate is not lost; above the rate only the excess is lost, and the delay is less than 16 packets take",
			Fix:         "shape below the rate at the sender", Effect: "55 of 100 Mb/s with cubic, 95 when shaped",
			Source: "causes.md, calibration; RFC 2697", Tests: []string{diagnose.UdpBelow, diagnose.UdpAbove, diagnose.UdpThrice, diagnose.UdpTenfold, diagnose.UdpThirtyfold}, Brings: []string{"loss"},
		},
		Propose: []advise.Proposer{sturdier("bbr for cubic: 55 to 95 of the 100 Mb/s that a policer lets pass")},
	}
}

func judgePolicer(f *diagnose.Flow) *diagnose.Outcome {
	if f.IsUDP() {
		return policedDatagrams(f)
	}
	if o := noPolicer(f); o != nil {
		return o
	}
	again, _ := f.AgainPct()
	s, over := f.Surplus()
	b := Below(f, again)
	flat, seen := f.Flatness()
	passed, far := PassesFar(f)
	o := diagnose.Possible("a policer drops traffic above its rate").
		By(diagnose.Above(f.Sender.Proof("tcp_info.total_retrans of data_segs_out", again, "pct"), diagnose.AgainBar), QueueProof(f)).
		AddFix(diagnose.Advise(f.Sender, "shape below the rate at the sender (a qdisc such as tbf or fq with maxrate), or have the policer allow a longer burst"))
	switch {
	case b.Lost:
		return diagnose.No("UDP below the rate is lost too")
	case !over && f.Cut() != nil: // which loses packets too
		return f.Cut()
	case over && s.Wait.Stands():
		return diagnose.No("datagrams above the rate wait %s in a queue", unit.Duration(int64(s.Wait.Mean)))
	case over && b.tried:
		if o.Confidence = measure.Likely; s.Wait.IsClear() && b.pct < s.LostPct/10 {
			o.Confidence = measure.Certain
		}
		o.Text = fmt.Sprintf("a policer lets %s pass and drops the rest", unit.Rate(s.Capacity))
		o.By(Proofs(s, f)...)
		o.Costs(s.Capacity, "shaped traffic would reach "+unit.Rate(s.Capacity)+" of payload", "UDP above the rate: goodput")
	case far:
		return diagnose.No("UDP at %s passes", unit.Rate(passed))
	case seen && flat > 6*diagnose.FlatBar && !over:
		return diagnose.No("the rate varies by %s from second to second: a policer's rate is flat", unit.Percent(flat))
	case perRecovery(f) > 10:
		o.By(diagnose.Above(f.Sender.Proof("segments lost in one recovery", perRecovery(f), "segments"), 10))
	}
	return o
}

// policedDatagrams judges a UDP test for a policer: datagrams above a rate are lost, and the others are not
// delayed.
func policedDatagrams(f *diagnose.Flow) *diagnose.Outcome {
	x, ok := FateOfDatagrams(f)
	if !ok {
		return f.Receiver.Lacks("the count of datagrams")
	}
	if o := elsewhere(f, x); o != nil {
		return o
	}
	switch {
	case x.LossPct < diagnose.SurplusBar:
		return diagnose.No("only %s of the datagrams were lost: no rate limit was exceeded", unit.Percent(x.LossPct))
	case x.wait.Stands():
		return diagnose.No("the received datagrams had waited in a queue")
	case x.DelayMeanNs == nil:
		return f.Receiver.Lacks("delay of the datagrams")
	case x.Gone[measure.LossPath] <= PlaceBar:
		return diagnose.Missing("the place of the loss", "the counters of one end or both are not known")
	}
	bps, _ := f.Goodput()
	o := diagnose.Possible("a policer may let %s pass and drop the rest", unit.Rate(bps)).By(x.proofs(f)...).
		Then("the same test at a lower rate (-b): a policer passes it without loss").
		AddFix(diagnose.Advise(f.Sender, "send or shape below the rate, or have the policer allow a longer burst"))
	slow := slowerDatagrams(f)
	if slow == nil && x.LossPct >= farTooMuch {
		o.Confidence = measure.Likely
	}
	if slow != nil {
		if slow.Datagrams.LossPct > x.LossPct/10 {
			return diagnose.No("at %s %s are lost too", unit.Rate(float64(slow.Spec.Rate)), unit.Percent(slow.Datagrams.LossPct))
		}
		if o.Confidence = measure.Likely; x.wait.IsClear() {
			o.Confidence = measure.Certain
		}
		o.Text = fmt.Sprintf("a policer lets %s pass and drops the rest", unit.Rate(bps))
		o.By(measure.Proof{EndPoint: f.Receiver.Name, Counter: "lost at " + unit.Rate(float64(slow.Spec.Rate)), Value: slow.Datagrams.LossPct, Unit: "pct"}).
			Costs(bps, unit.Rate(bps)+" pass", "datagrams received")
	}
	return o
}

// noPolicer returns why the loss of a flow is not a policer's; nil if nothing excludes that.
func noPolicer(f *diagnose.Flow) *diagnose.Outcome {
	again, counted := f.AgainPct()
	loaded, known := f.LoadedRTT()
	bound, _ := f.LossBound(loaded, again)
	_, _, idle := f.RTT()
	held, _, reported := f.WindowLimited()
	switch {
	case !counted:
		return f.Sender.Lacks("tcp_info.total_retrans_segments")
	case again < diagnose.AgainBar:
		return diagnose.No("only %s of the segments were retransmitted", unit.Percent(again))
	case f.OnOneMachine():
		return diagnose.No("both ends are on one host")
	case known && bound > diagnose.RareBar*f.Rate():
		return diagnose.No("the %s of segments that were retransmitted would allow %s", unit.Percent(again), unit.Rate(bound))
	case !idle:
		return f.Sender.Lacks("the round trip of the idle path")
	case f.HasQueue():
		return diagnose.No("a queue fills: the round trip grows under load")
	case reported && held > diagnose.RwndBar:
		return diagnose.No("the receiver's window limited the sender %s of the time", unit.Percent(held))
	}
	return nil
}

// QueueProof returns the round-trip time under load and its minimum as evidence.
func QueueProof(f *diagnose.Flow) measure.Proof {
	loaded, base, _ := f.RTT()
	p := f.Sender.Proof("tcp_info.rtt_ns under load, mean", loaded, "ns")
	p.Note = "the minimum is " + unit.Duration(int64(base))
	return p
}

// Proofs returns the evidence of a rate that does not pass.
func Proofs(s diagnose.Surplus, f *diagnose.Flow) []measure.Proof {
	to := f.Receiver.Name
	return []measure.Proof{
		{EndPoint: to, Counter: "UDP above the rate, received", Value: s.Capacity, Unit: "bps"},
		{EndPoint: to, Counter: "UDP above the rate, lost on the path", Value: s.LostPct, Unit: "pct"},
		{EndPoint: to, Counter: "UDP above the rate, delay above the minimum", Value: s.Wait.Mean, Unit: "ns"},
	}
}

// perRecovery returns the mean number of segments retransmitted in one recovery; 0 if it is not known.
func perRecovery(f *diagnose.Flow) float64 {
	again, ok := f.Sender.Seen.Delta(measure.Retransmits).Float()
	n, okToo := f.Sender.Counter("TcpExt.TCPSackRecovery")
	if !ok || !okToo || n == 0 {
		return 0
	}
	return again / n
}

func packetsPolicer(f *diagnose.Flow) *diagnose.Outcome {
	l, why := LossAt(f)
	if why != nil {
		return why
	}
	h, known := l.WindowLimited()
	flat, seen := SettledFlatness(f)
	idle, reported := l.IdlePct()
	switch {
	case !l.timed:
		return diagnose.Missing("the round trip under load", "the captured packets do not show it")
	case reported && idle > diagnose.IdleBar/2:
		return diagnose.Missing("the rate of a sender that always has data", fmt.Sprintf("it had nothing to send %s of the time: the program itself may send at a flat rate", unit.Percent(idle)))
	case l.bound > diagnose.RareBar*l.Rate():
		return diagnose.No("the %s that was retransmitted would allow %s", Rare(l.Pct), unit.Rate(l.bound))
	case isNeedless(l.CapturePoint):
		return diagnose.No("most of the retransmissions were spurious")
	case afterTimeouts(l.CapturePoint):
		return diagnose.No("most of the retransmissions waited for a timeout: nothing after the lost segments arrived, but a policer lets later segments pass")
	case l.queue:
		return diagnose.No("a queue fills: the round trip grows under load")
	case known && h.Binds:
		return diagnose.No("the receiver's window limits the sender")
	case seen && flat > 6*diagnose.FlatBar:
		return diagnose.No("the rate varies by %s from second to second: a policer's rate is flat", unit.Percent(flat))
	case l.filled():
		return diagnose.No("the round trip was far above its minimum at times: a full queue dropped packets")
	case l.often > 0 && l.often < fewRows:
		return diagnose.No("segments were lost in only %d bursts, as when a connection finds its rate", l.often)
	case l.ceases():
		return diagnose.No("no segment was lost in the second half of the time, at the same rate")
	case l.often > 0 && l.inARow < fewInARow:
		return diagnose.No("segments are lost one by one; a policer drops them in a row")
	}
	o := diagnose.Possible("a policer may drop traffic above its rate: data is lost while the round trip stays at its minimum").By(l.proofs()...).
		AddFix(diagnose.Advise(f.Sender, "shape below the rate at the sender (a qdisc such as tbf or fq with maxrate), or have the policer allow a longer burst"))
	if l.inARow > manyInARow && seen && flat < 2*diagnose.FlatBar && !l.Misses() {
		o.Confidence = measure.Likely
		o.Text = "a policer drops traffic above its rate: many segments in a row, while the round trip stays at its minimum and the rate is flat"
		o.By(diagnose.Above(l.Proof("segments retransmitted in one burst", l.inARow, "segments"), manyInARow))
	}
	return o
}

// LossAt returns the loss in the best-placed capture; else why there is none.
func LossAt(f *diagnose.Flow) (lossSeen, *diagnose.Outcome) {
	if o := mtu.NothingAgain(f); o != nil {
		return lossSeen{}, o
	}
	s := f.AnyCapturePoint()
	again, ok := s.AgainPct()
	if !ok {
		return lossSeen{}, diagnose.Missing("retransmitted segments", "too few were captured")
	}
	l := lossSeen{CapturePoint: s, Pct: again * (1 - stat.Pct(float64(needless(s)), float64(s.Data.Again.N))/100)}
	l.loaded, l.base, l.timed = s.RTT()
	l.queue, _ = s.Stands()
	l.bound = s.Mathis(l.loaded, l.Pct)
	l.often, l.inARow = rows(s, l.loaded)
	if l.Pct < diagnose.AgainBar {
		return l, diagnose.No("only %s of the data was retransmitted", Rare(l.Pct))
	}
	return l, nil
}

// lossSeen describes a loss in a capture.
type lossSeen struct {
	*diagnose.CapturePoint
	Pct          float64 // of the payload that was retransmitted, without spurious ones
	loaded, base float64 // round trip in ns
	timed        bool    // these are known
	queue        bool    // the round trip grows under load
	bound        float64 // rate that such a loss allows (Mathis), in bit/s
	often        int     // number of retransmission bursts; 0: not known
	inARow       float64 // mean segments per burst
}

// proofs returns the evidence of a loss.
func (l lossSeen) proofs() []measure.Proof {
	p := []measure.Proof{diagnose.Above(l.Proof("retransmitted, of the payload", l.Pct, "pct", l.Data.Again.Packets...), diagnose.AgainBar)}
	if l.Data.Timeout.N > 0 {
		p = append(p, l.Count("retransmitted after a timeout", l.Data.Timeout))
	}
	if l.timed {
		rtt := l.Proof("round trip under load, median", l.loaded, "ns")
		rtt.Note = "the minimum is " + unit.Duration(int64(l.base))
		p = append(p, rtt)
	}
	return p
}

// filled reports whether the round-trip time was at times far above its minimum: then a queue was full and dropped
// packets.
func (l lossSeen) filled() bool {
	d := l.Main().RTT
	if l.At == measure.AtReceiver {
		d = l.Main().RTTBack
	}
	return d != nil && float64(d.P99-d.Min) > max(5e6, l.base/2)
}

// ceases reports whether all retransmissions were in the first half of the main connection's time: a policer that
// limits the rate drops again and again.
func (l lossSeen) ceases() bool {
	c := l.Main()
	return l.often > 0 && !slices.ContainsFunc(c.Timeline.Again, func(m measure.PacketMark) bool { return 2*m.AtNs > c.SpanNs })
}

// rows returns how many bursts of retransmissions the main connection had, and their mean number of segments. A
// retransmission more than a round trip after the last begins a new burst. Both are 0 if that is not known.
func rows(s *diagnose.CapturePoint, rttNs float64) (often int, each float64) {
	c := s.Main().Timeline
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
	segments := 1.0 // segments in a packet
	if again := s.Main().Data.Again; again.N > 0 {
		segments = max(1, float64(again.Bytes)/float64(again.N)/s.MSS())
	}
	return often, segments * float64(len(marks)) / float64(often)
}

// isNeedless reports whether most retransmitted data had not been lost.
func isNeedless(s *diagnose.CapturePoint) bool { return 2*needless(s) > s.Data.Again.N }

// afterTimeouts reports whether most retransmissions waited for a timeout: isolated losses are found sooner, by
// the data that arrives after them.
func afterTimeouts(s *diagnose.CapturePoint) bool {
	return 2*(s.Data.Timeout.N+s.Data.Wake.N) > s.Data.Again.N
}

// Thresholds of how many segments are lost at once: an overflowing queue or a policer drops many, corruption
// single ones.
const (
	fewInARow  = 3
	manyInARow = 10
	fewRows    = 3 // once or twice is how a connection finds its rate
)
