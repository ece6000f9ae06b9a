package diagnose

import (
	"fmt"
	"slices"

	"thru/internal/measure"
	"thru/internal/unit"
)

// outage is a time in which nothing was acknowledged of what was under way.
type outage struct {
	atNs, ns float64 // since the connection's first packet
	ended    bool    // data was acknowledged after it
	acked    float64 // bytes, before it
}

// Bars of an outage.
const (
	leastOutageNs = 500e6 // 200 ms until the first timeout, and 400 until the second: a single loss takes less
	leastSteps    = 3     // of the course
	outageBar     = 5     // percent of the connection's time, from where on the rate hangs on it
)

// longestOutage of the main connection; false without one. Only the sender's side
// tells it from a program that has nothing to send.
func (s *spot) longestOutage() (outage, bool) {
	c := s.main()
	x := c.Course
	if s.place == measure.AtReceiver || x == nil || x.StepNs <= 0 || len(x.Sent) != len(x.Acked) || c.Data.Timeout.N < 2 {
		return outage{}, false
	}
	var longest outage
	var sent, acked int64
	begin, step := 0, float64(x.StepNs)
	for i := range x.Sent {
		idle := sent <= acked
		sent = max(sent, x.Sent[i])
		if x.Acked[i] > acked || idle {
			acked, begin = max(acked, x.Acked[i]), i
		}
		if ns := float64(i-begin) * step; ns > longest.ns {
			longest = outage{atNs: float64(begin+1) * step, ns: ns, acked: float64(acked)}
		}
	}
	longest.ended = float64(acked) > longest.acked
	loaded, _, _ := s.rtt()
	closed := float64(c.Acks.ZeroNs) > longest.ns/2
	return longest, !closed && longest.ns >= max(leastOutageNs, leastSteps*step, 4*loaded)
}

// cutOff judges a connection that carried data and then stood still: the path was
// dead, or the receiver; nil where it did not.
func (f *flow) cutOff() *outcome {
	s := f.anySpot()
	if s == nil || packetsTSO(f).state == holds {
		return nil
	}
	x, ok := s.longestOutage()
	if !ok || x.acked < 10*s.mss() { // full segments have to have passed
		return nil
	}
	o := likely("the path was dead for %s, from second %.1f on: what was under way had to be sent again after timeouts", unit.Duration(int64(x.ns)), x.atNs/1e9)
	if !x.ended {
		o.text = fmt.Sprintf("nothing was acknowledged any more from second %.1f on, for %s: the path was cut, or the receiver is gone", x.atNs/1e9, unit.Duration(int64(x.ns)))
	}
	pct := share(x.ns, float64(s.main().SpanNs))
	if pct < outageBar {
		o.beside()
	}
	if s.misses() {
		o.confidence = measure.Possible
	}
	o.by(above(s.proof("longest time in which nothing under way was acknowledged", x.ns, "ns"), leastOutageNs), s.count("sent again after a timeout", s.data.Timeout))
	return o.costs(0, unit.Percent(pct)+" of the time nothing passed", "the capture").
		mend(advise(nil, "see what was down at that time: links, routes and tunnels on the way, or the receiver itself (logs, ip monitor, counters of link changes)"))
}

// deadPackets says of a connection that never came to carry data why it did not,
// with what shows it; "" where it did, or packets do not tell.
func (f *flow) deadPackets() (why string, proofs []measure.Proof) {
	s := f.anySpot()
	if s == nil {
		return "", nil
	}
	c := s.main()
	if c.SYN != nil && c.SYNACK == nil && c.Data.New == 0 && c.Acks.New == 0 {
		return s.unanswered()
	}
	x, ok := s.longestOutage()
	if !ok || x.ended || x.acked >= 10*s.mss() {
		return "", nil
	}
	why = fmt.Sprintf("data was sent %d times and never acknowledged", c.Data.Timeout.N+1)
	if x.acked > 0 {
		why = fmt.Sprintf("after %s nothing was acknowledged any more: what came then was sent %d times", unit.Size(int64(x.acked)), c.Data.Timeout.N+1)
	}
	return why, []measure.Proof{s.count("sent again after a timeout", c.Data.Timeout)}
}

// unanswered words a SYN that opened nothing.
func (s *spot) unanswered() (why string, proofs []measure.Proof) {
	c := s.main()
	to, back := c.To, c.Acks
	if c.FromOpened != nil && !*c.FromOpened {
		to, back = c.From, c.Data
	}
	times := c.SYN.Again.N + 1
	syn := s.proof("SYN sent", float64(times), "packets", slices.Concat([]int64{c.SYN.Packet}, c.SYN.Again.Packets)...)
	switch {
	case back.RST.N > 0:
		return "the connection was refused: " + to + " answered the SYN with RST", []measure.Proof{syn, s.count("RST", back.RST)}
	case back.Packets > 0:
		return "", nil
	case times == 1:
		return "a SYN was sent to " + to + " and never answered", []measure.Proof{syn}
	}
	return fmt.Sprintf("a SYN was sent to %s %d times and never answered", to, times), []measure.Proof{syn}
}
