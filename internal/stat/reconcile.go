package stat

import (
	"fmt"
	"math"

	"thru/internal/measure"
	"thru/internal/unit"
)

// reconcile compares the figures of both ends: the rates are means of the runs that count, the totals are sums
// over the whole life of their connections.
func (s *summary) reconcile() {
	var r measure.Reconciled
	var sent, got []float64
	acked, ackedAll, whole := int64(0), true, true
	for _, p := range s.runs {
		a, okA := Goodput(p.sender)
		b, okB := Goodput(p.receiver)
		if isDerived(p.receiver) {
			s.missing("reconciled", s.why(receiverSide, "bytes_read", "the receiver reports nothing"))
			return
		}
		if !okA || !okB || p.sender.Error != "" || p.receiver.Error != "" {
			continue // an end that was cut short has not counted all
		}
		sent, got = append(sent, a), append(got, b)
		if knowsLife(p.sender) && knowsLife(p.receiver) {
			r.SentBytes += p.sender.TotalBytes
			r.ReceivedBytes += p.receiver.TotalBytes
		} else {
			whole = false
			r.SentBytes += p.sender.Bytes
			r.ReceivedBytes += p.receiver.Bytes
		}
		n, ok := ackedBytes(p.sender)
		acked, ackedAll = acked+n, ackedAll && ok
	}
	if len(sent) == 0 {
		s.missing("reconciled", "it needs the complete evidence of both ends of a run")
		return
	}
	r.SenderBps, r.ReceiverBps = Mean(sent), Mean(got)
	if ackedAll && whole {
		r.AckedBytes = &acked
	}
	r.DifferencePct = 100 * differenceOf(float64(r.SentBytes), float64(r.ReceivedBytes))
	if !whole { // the two spans began and ended at different times: their rates compare, their bytes do not
		r.DifferencePct = 100 * differenceOf(r.SenderBps, r.ReceiverBps)
	}
	if r.Note = noteOf(r); s.isUDP() && r.SentBytes > r.ReceivedBytes {
		r.Note = unit.Count(r.SentBytes-r.ReceivedBytes) + " bytes were sent but not received"
	}
	if !whole {
		r.OfRates, r.Note = true, "of the measured time, since the far end's bytes are of a span of its own"
	}
	s.cell.Reconciled = &r
}

// ackedBytes returns the bytes that the peer's kernel acknowledged until the end. The kernel's count includes the
// connection's greeting, SYN and FIN.
func ackedBytes(e *measure.Evidence) (n int64, known bool) {
	for _, x := range streams(e) {
		if x.TCPEnd == nil || x.TCPEnd.BytesAcked == nil || *x.TCPEnd.BytesAcked > math.MaxInt64 {
			return 0, false
		}
		n, known = n+int64(*x.TCPEnd.BytesAcked), true
	}
	return n, known
}

// differenceOf returns by how much b is less than a, as a share of a; 0 for two zeros.
func differenceOf(a, b float64) float64 {
	if a == b {
		return 0
	}
	return (a - b) / max(math.Abs(a), math.Abs(b))
}

// noteOf words the difference of the totals.
func noteOf(r measure.Reconciled) string {
	rest := r.SentBytes - r.ReceivedBytes
	switch {
	case rest == 0:
		return "equal"
	case rest < 0:
		return fmt.Sprintf("the receiver counted %s bytes more than were sent: one of the two counts is wrong", unit.Count(-rest))
	case r.AckedBytes != nil && *r.AckedBytes >= r.SentBytes:
		return fmt.Sprintf("%s bytes had reached the receiver's kernel but were not read when the test ended", unit.Count(rest))
	default:
		return fmt.Sprintf("%s bytes were still in flight when the test ended", unit.Count(rest))
	}
}
