// Package measurement holds the causes of a contradictory measurement, or of a traffic generator that is too slow.
package measurement

import (
	"fmt"
	"strings"

	"thru/internal/cause/diagnose"
	"thru/internal/cause/rule"
	"thru/internal/cause/window"
	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// Measurement is the cause `measurement`.
func Measurement() rule.Cause {
	return rule.Cause{
		Rule: diagnose.Rule{
			Cause: "measurement", TCP: true, UDP: true, Title: "the measurement contradicts itself", Judge: judgeMeasurement,
			Seen: "goodput is above the ceiling of the link; the receiver counted more than was sent, or more than its interface received; " +
				"a time counter runs faster than the clock; a capture misses packets: the kernel dropped them, or they were acknowledged but not captured",
			Distinction: "byte counters of the interfaces", Fix: "state the correct link rate and MTU; use the receiver's goodput",
			Effect: "9.74 of 10 Gb/s at MTU 1500, which carries at most 9.415 (B-10): the figure proves nothing", Source: "methods.md, formula 4 and Common mistakes",
		},
	}
}

// judgeMeasurement checks the figures for contradictions, the gravest first.
func judgeMeasurement(f *diagnose.Flow) *diagnose.Outcome {
	for _, judge := range []func(*diagnose.Flow) *diagnose.Outcome{aboveCeiling, moreThanSent, pastTheFace, fastClock, PacketsMissed} {
		if o := judge(f); o != nil {
			if o.Where.Place == "" {
				o.At(measure.Where{Place: measure.AtTool})
			}
			return o
		}
	}
	if _, ok := f.Goodput(); !ok {
		return diagnose.Missing("the goodput", "no run was measured")
	}
	if f.PacketsOnly() && f.Crossing == nil {
		return diagnose.Missing("figures of both ends", "one capture alone has no figures to compare with")
	}
	return diagnose.No("the figures of both ends agree with each other, and with the link rate if it is known")
}

func aboveCeiling(f *diagnose.Flow) *diagnose.Outcome {
	share, ok := f.CeilingShare()
	bps, known := f.Goodput()
	if !ok || !known || f.OnOneMachine() || !stat.AboveCeiling(f.Cell) || f.Cell.Ceiling.Bps <= 0 {
		return nil
	}
	c := f.Cell.Ceiling
	if bins := f.Bins(); len(bins) >= 3 && stat.Median(bins) <= c.Bps*BeyondBar/100 {
		return diagnose.Possible("in single seconds %s is more than a link of %s can carry: they include data that was delayed before", unit.Rate(bps), unit.Rate(float64(c.LinkBps))).
			By(diagnose.Above(f.Receiver.Proof("goodput relative to the ceiling", share, "pct"), BeyondBar), diagnose.UnderBar(f.Receiver.Proof("goodput of the median second", stat.Median(bins), "bps"), c.Bps*BeyondBar/100)).
			Then("a longer run").AddFix(diagnose.Advise(nil, "measure for longer: delayed data then weighs less")).MarkNotBinding()
	}
	guess := "the link is faster, or the rate counts other headers"
	if c.MTU > 0 && c.MTU < JumboFrom {
		if most := ceilingAt(f, JumboFrom); bps <= most {
			guess = fmt.Sprintf("frames must have been larger (%s fit at MTU %d), ", unit.Rate(most), JumboFrom) + guess
		}
	}
	return diagnose.Certain("%s is more than a link of %s can carry at MTU %d (%s): %s", unit.Rate(bps), unit.Rate(float64(c.LinkBps)), c.MTU, unit.Rate(c.Bps), guess).
		By(diagnose.Above(f.Receiver.Proof("goodput relative to the ceiling", share, "pct"), BeyondBar)).
		Costs(c.Bps, "a rate above "+unit.Rate(c.Bps)+" proves nothing", fmt.Sprintf("%s at MTU %d, %s", unit.Rate(float64(c.LinkBps)), c.MTU, strings.ToUpper(c.LinkLayer))).
		AddFix(diagnose.Advise(nil, "state the rate of the link (--link-rate), and check the MTU of both ends and of the path (thru check)"))
}

// BeyondBar is the percentage of the ceiling above which an assumption is wrong.
const BeyondBar = stat.AboveCeilingPct

// JumboFrom is the usual MTU of jumbo frames, in bytes.
const JumboFrom = 9000

// ceilingAt returns what the link would carry of this flow at another MTU, in bit/s: the ceiling scaled by the
// share of the payload (methods.md, formula 4).
func ceilingAt(f *diagnose.Flow, mtu int) float64 {
	c := f.Cell.Ceiling
	l := stat.Link{RateBps: c.LinkBps, Layer: c.LinkLayer, MTU: mtu, VLANs: c.VLANs, EncapBytes: c.Encap}
	if on, known := window.Option(f, func(t *measure.TCPInfo) *bool { return t.Timestamps }); !known || on {
		l.Timestamps = true
	}
	if f.IsUDP() {
		return stat.MaxDatagramGoodput(l, mtu-48)
	}
	return stat.MaxGoodput(l)
}

// moreThanSent compares the counts of both ends; receiving less than was sent is loss, or data in flight.
func moreThanSent(f *diagnose.Flow) *diagnose.Outcome {
	r := f.Cell.Reconciled
	if r == nil || r.SentBytes <= 0 || r.ReceivedBytes <= 0 {
		return nil
	}
	more := -r.DifferencePct
	if r.OfRates { // the two spans began and ended at different times
		if more < 10 || r.SenderBps <= 0 {
			return nil
		}
		return diagnose.Possible("the receiver reports %s, the sender %s: their measured times differ", unit.Rate(r.ReceiverBps), unit.Rate(r.SenderBps)).
			By(diagnose.Above(f.Receiver.Proof("excess of the receiver's rate over the sender's", more, "pct"), 10)).
			Then("a longer run").AddFix(diagnose.Advise(nil, "measure for longer: the difference of the times then weighs less")).MarkNotBinding()
	}
	if more < countBar {
		return nil
	}
	return diagnose.Certain("the receiver counted %s more than was sent: one of the counts is wrong", unit.Percent(more)).
		By(diagnose.Above(f.Receiver.Proof("excess of received over sent", more, "pct"), countBar), f.Sender.Proof("sent", float64(r.SentBytes), "bytes"), f.Receiver.Proof("received", float64(r.ReceivedBytes), "bytes")).
		AddFix(diagnose.Advise(nil, "repeat the test, and use the lower figure until both ends agree"))
}

// Thresholds of contradictions, in percent.
const (
	countBar = 0.1 // by which the receiver's count may exceed the sender's
	clockBar = 110 // of the measured time that a connection can have been busy
)

// pastTheFace compares the payload with the bytes that the route's interface received.
func pastTheFace(f *diagnose.Flow) *diagnose.Outcome {
	e := f.Receiver
	n := e.NIC()
	if n == nil || n.RxBytes == 0 || e.Seen.Reported != "" || e.Seen.Bytes <= 0 || f.OnOneMachine() {
		return nil
	}
	part := 100 * float64(n.RxBytes) / float64(e.Seen.Bytes)
	if part >= diagnose.FaceBar {
		return nil
	}
	return diagnose.Possible("data arrived at another interface than %s, which sends the answers: its counter has only %s of the payload", diagnose.Word(n.Name), unit.Percent(part)).
		At(e.OnFace()).By(diagnose.UnderBar(e.Proof("rx_bytes of the payload", part, "pct"), diagnose.FaceBar)).
		Then("the counters of all interfaces (ip -s link)").AddFix(diagnose.Advise(e, "find the interfaces at which the data arrived: their limits count too")).MarkNotBinding()
}

// fastClock compares the sender's clock with its kernel's: a connection cannot be busy for longer than the
// measured time.
func fastClock(f *diagnose.Flow) *diagnose.Outcome {
	busy, ok := f.Sender.Seen.Delta(measure.BusyTime).Float()
	n, span := float64(len(f.Sender.Streams())), float64(f.Sender.Span())
	if !ok || span < 1e9 || n == 0 {
		return nil
	}
	part := 100 * busy * 1e3 / n / span
	if part <= clockBar {
		return nil
	}
	return diagnose.Likely("the sender's kernel counted %s of the measured time: its clocks run at different speeds", unit.Percent(part)).
		At(f.Sender.Where()).By(diagnose.Above(f.Sender.Proof("tcp_info.busy_time_us of the measured time", part, "pct"), clockBar)).
		AddFix(diagnose.Advise(f.Sender, "check its clock source, and take the time from the other end"))
}

// PacketsMissed judges the captures themselves: a packet missing from an incomplete capture proves nothing about
// the network. It is nil if all are complete.
func PacketsMissed(f *diagnose.Flow) *diagnose.Outcome {
	for _, s := range f.CapturePoints {
		dropped := 0.0
		if s.Dropped != nil {
			dropped = stat.Pct(float64(*s.Dropped), float64(*s.Dropped+s.Packets))
		}
		unseen := stat.Pct(float64(s.Data.Unseen.N+s.Acks.Unseen.N), float64(s.Data.Segments+s.Acks.Segments))
		if dropped == 0 && unseen == 0 {
			continue
		}
		o := diagnose.Possible("the capture %s misses packets: these look like loss, but are not", s.From()).MarkNotBinding().At(measure.Where{Place: measure.AtTool, EndPoint: s.EndPoint}).
			AddFix(diagnose.Advise(nil, "capture less of each packet (tcpdump -s 128), only this flow, and with a larger buffer (-B 65536)"))
		if dropped > 0 {
			o.By(diagnose.Above(s.Proof("packets that the capturing kernel dropped", dropped, "pct"), missedBar))
		}
		if unseen > 0 {
			o.By(diagnose.Above(s.Proof("acknowledged, but not captured", unseen, "pct", s.Data.Unseen.Packets...), missedBar))
		}
		if max(dropped, unseen) > missedBar {
			o.Confidence = measure.Likely
			o.Text = fmt.Sprintf("the capture %s misses %s of the packets: these look like loss, but are not", s.From(), unit.Percent(max(dropped, unseen)))
		}
		return o
	}
	return nil
}

// missedBar is the percentage of packets that a capture may miss before its counts are unreliable.
const missedBar = 1

// Generators judges the cells of the upper rung by the fastest of the lower one, with this catalogue.
func Generators(cat *diagnose.Catalogue, lower, upper *measure.Document) []measure.Finding {
	made, cell := Strongest(cat, lower, lower != upper)
	if cell == nil {
		return nil
	}
	var all []measure.Finding
	for i := range upper.Cells {
		c := &upper.Cells[i]
		if f := diagnose.NewFlow(cat, upper, c); f != nil && (c != cell || f.OnOneMachine()) && !c.Baseline && !f.IsUDP() {
			if x, ok := generator(f, made, cell); ok && !diagnose.Repeated(all, x) {
				all = append(all, x)
			}
		}
	}
	return all
}

// Strongest returns the fastest TCP cell of a lower rung: one without a link between its ends, or with any the
// fastest of all.
func Strongest(cat *diagnose.Catalogue, d *measure.Document, any bool) (*diagnose.Flow, *measure.Cell) {
	var best *diagnose.Flow
	for i := range d.Cells {
		f := diagnose.NewFlow(cat, d, &d.Cells[i])
		if f == nil || f.IsUDP() || f.IsRateLimited() || !any && !f.OnOneMachine() {
			continue
		}
		if best == nil || diagnose.RateOf(f.Cell) > diagnose.RateOf(best.Cell) {
			best = f
		}
	}
	if best == nil || diagnose.RateOf(best.Cell) <= 0 {
		return nil, nil
	}
	return best, best.Cell
}

// generator judges one cell of the upper rung by the fastest of the lower one.
func generator(f *diagnose.Flow, made *diagnose.Flow, lower *measure.Cell) (measure.Finding, bool) {
	limited, against := outdoes(f, diagnose.RateOf(lower))
	if !limited {
		return measure.Finding{}, false
	}
	cause, at := "sender-cpu", made.Sender
	if s, ok := made.Sender.Threads(); ok {
		if r, ok := made.Receiver.Threads(); ok && r.Run+r.Wait > s.Run+s.Wait {
			cause, at = "receiver-cpu", made.Receiver
		}
	}
	of := "that the path limits the rate to " + unit.Rate(against) + ", which takes 1.3 times as much"
	if c := f.Cell.Ceiling; c != nil {
		of = "a link of " + unit.Rate(float64(c.LinkBps))
	}
	o := diagnose.Possible("this machine can generate only %s: it cannot prove %s", unit.Rate(diagnose.RateOf(lower)), of).
		At(measure.Where{Place: measure.AtTool, EndPoint: at.Name}).
		By(diagnose.UnderBar(at.Proof("goodput without a link between the ends", diagnose.RateOf(lower), "bps"), stat.GeneratorFactor*against)).
		Costs(diagnose.RateOf(lower), "at most "+unit.Rate(diagnose.RateOf(lower))+" can be shown", "the baseline").
		Then("a faster baseline: more streams, zero-copy, larger messages, another host").
		AddFix(diagnose.Advise(at, "use more streams, zero-copy (-Z), offloads or a faster host: first show 1.3 times the link's ceiling without the link"))
	if diagnose.RateOf(lower) < against {
		o.Confidence = measure.Likely
	}
	return f.Finding(diagnose.Judged{Rule: diagnose.Rule{Cause: cause, Source: "methods.md, formula 13"}, Outcome: o}), true
}

// outdoes reports whether the link of this flow may carry more than a generator of that rate can prove, and the
// rate that it was compared with. Without a link rate it judges only between the rungs of a ladder, for which the
// plan says that one contains the other.
func outdoes(f *diagnose.Flow, made float64) (limited bool, against float64) {
	c := f.Cell.Ceiling
	switch {
	case f.OnOneMachine() && c != nil && c.Bps > 0: // its own link is stated for the one to be tested with it
		return stat.GeneratorLimited(made, c.Bps), c.Bps
	case f.OnOneMachine() || c == nil && f.Cell.Rung == "":
		return false, 0
	}
	return stat.GeneratorFor(made, diagnose.RateOf(f.Cell), c)
}
