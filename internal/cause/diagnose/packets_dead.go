package diagnose

import (
	"fmt"
	"slices"

	"thru/internal/measure"
	"thru/internal/unit"
)

// outage is a time in which no data in flight was acknowledged.
type outage struct {
	AtNs, Ns float64 // since the connection's first packet
	Ended    bool    // data was acknowledged after it
	Acked    float64 // bytes, before it
}

// Thresholds of an outage.
const (
	LeastOutageNs = 500e6 // 200 ms until the first timeout, and 400 until the second: a single loss takes less
	leastSteps    = 3     // of the time line
)

// LongestOutage returns the longest outage of the main connection; false without one. Only the sender's side
// distinguishes it from a program without data to send.
func (s *CapturePoint) LongestOutage() (outage, bool) {
	c := s.Main()
	x := c.Timeline
	if s.At == measure.AtReceiver || x == nil || x.StepNs <= 0 || len(x.Sent) != len(x.Acked) || c.Data.Timeout.N < 2 {
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
		if ns := float64(i-begin) * step; ns > longest.Ns {
			longest = outage{AtNs: float64(begin+1) * step, Ns: ns, Acked: float64(acked)}
		}
	}
	longest.Ended = float64(acked) > longest.Acked
	loaded, _, _ := s.RTT()
	closed := float64(c.Acks.ZeroNs) > longest.Ns/2
	return longest, !closed && longest.Ns >= max(LeastOutageNs, leastSteps*step, 4*loaded)
}

// deadPackets returns why a connection never carried data, with the evidence; "" if it did, or packets do not show
// it.
func (f *Flow) deadPackets() (why string, proofs []measure.Proof) {
	s := f.AnyCapturePoint()
	if s == nil {
		return "", nil
	}
	c := s.Main()
	if c.SYN != nil && c.SYNACK == nil && c.Data.New == 0 && c.Acks.New == 0 {
		return s.unanswered()
	}
	x, ok := s.LongestOutage()
	if !ok || x.Ended || x.Acked >= 10*s.MSS() {
		return "", nil
	}
	why = fmt.Sprintf("data was sent %d times and never acknowledged", c.Data.Timeout.N+1)
	if x.Acked > 0 {
		why = fmt.Sprintf("after %s nothing was acknowledged: the next data was sent %d times", unit.Size(int64(x.Acked)), c.Data.Timeout.N+1)
	}
	return why, []measure.Proof{s.Count("retransmitted after a timeout", c.Data.Timeout)}
}

// unanswered words a SYN that opened no connection.
func (s *CapturePoint) unanswered() (why string, proofs []measure.Proof) {
	c := s.Main()
	to, back := c.To, c.Acks
	if c.FromOpened != nil && !*c.FromOpened {
		to, back = c.From, c.Data
	}
	times := c.SYN.Again.N + 1
	syn := s.Proof("SYN sent", float64(times), "packets", slices.Concat([]int64{c.SYN.Packet}, c.SYN.Again.Packets)...)
	switch {
	case back.RST.N > 0:
		return "the connection was refused: " + to + " answered the SYN with RST", []measure.Proof{syn, s.Count("RST", back.RST)}
	case back.Packets > 0:
		return "", nil
	case times == 1:
		return "a SYN was sent to " + to + " and never answered", []measure.Proof{syn}
	}
	return fmt.Sprintf("a SYN was sent to %s %d times and never answered", to, times), []measure.Proof{syn}
}
