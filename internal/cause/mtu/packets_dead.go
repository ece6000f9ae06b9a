package mtu

import (
	"fmt"

	"thru/internal/cause/diagnose"
	"thru/internal/measure"
	"thru/internal/unit"
)

// Bars of an outage.
const (
	outageBar = 5 // percent of the connection's time, from where on the rate hangs on it
)

// CutOff judges a connection that carried data and then stood still: the path was
// dead, or the receiver; nil where it did not.
func CutOff(f *diagnose.Flow) *diagnose.Outcome {
	s := f.AnySpot()
	if s == nil || packetsTSO(f).State == diagnose.Holds {
		return nil
	}
	x, ok := s.LongestOutage()
	if !ok || x.Acked < 10*s.MSS() { // full segments have to have passed
		return nil
	}
	o := diagnose.Likely("the path was dead for %s, from second %.1f on: what was under way had to be sent again after timeouts", unit.Duration(int64(x.Ns)), x.AtNs/1e9)
	if !x.Ended {
		o.Text = fmt.Sprintf("nothing was acknowledged any more from second %.1f on, for %s: the path was cut, or the receiver is gone", x.AtNs/1e9, unit.Duration(int64(x.Ns)))
	}
	pct := diagnose.Share(x.Ns, float64(s.Main().SpanNs))
	if pct < outageBar {
		o.Beside()
	}
	if s.Misses() {
		o.Confidence = measure.Possible
	}
	o.By(diagnose.Above(s.Proof("longest time in which nothing under way was acknowledged", x.Ns, "ns"), diagnose.LeastOutageNs), s.Count("sent again after a timeout", s.Data.Timeout))
	return o.Costs(0, unit.Percent(pct)+" of the time nothing passed", "the capture").
		Mend(diagnose.Advise(nil, "see what was down at that time: links, routes and tunnels on the way, or the receiver itself (logs, ip monitor, counters of link changes)"))
}
