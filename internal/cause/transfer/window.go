package transfer

import (
	"fmt"

	"thru/internal/cause/diagnose"
	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// buffer holds if a buffer that was set here, over the round-trip time, is the rate.
func (c *scene) buffer() *bound {
	s, rtt := c.socket(), stat.TransferRTT(c.run)
	if s == nil || rtt <= 0 || s.Window.Asked <= 0 || s.Window.Usable <= 0 {
		return nil
	}
	passes := c.inRoundTrip(rtt)
	cause, whose, least, most := "receive-window", "receive", windowLow, windowHigh
	window, counter := s.Window.Usable, "socket buffer, usable"
	switch {
	case c.t.Direction == measure.Upload:
		if c.congestionHolds(s, passes) {
			return nil
		}
		cause, whose, least, most = "send-buffer", "send", sentLow, 1/sentLow
		window, counter = s.Window.Usable+s.Window.Granted/2, "socket buffer, usable and as granted, mean"
	case s.TCP.RecvWnd != nil && int64(*s.TCP.RecvWnd) > 0: // the kernel sizes the buffer itself
		window, counter = int64(*s.TCP.RecvWnd), "tcp_info.rcv_wnd"
	}
	if rtt < farNs && c.halfOfNetwork() {
		least = nearLow
	}
	if share := passes / float64(window); share < least || share > most {
		return nil
	}
	o := binds(cause, measure.Likely, "a %s buffer of %s was set (--buffer): %s pass in each round trip of %s",
		whose, unit.Size(s.Window.Asked), unit.Size(int64(passes)), unit.Duration(rtt))
	if rtt >= farNs {
		o.Confidence = measure.Certain
	}
	o.At(c.here()).By(c.proof(counter, float64(window), "bytes"), c.proof("data per round trip, by goodput", passes, "bytes"), c.proof("tcp_info.min_rtt_ns", float64(rtt), "ns"))
	o.Costs(c.bps, "this window carries "+unit.Rate(c.bps), fmt.Sprintf("%s * 8 / %s", unit.Size(int64(passes)), unit.Duration(rtt)))
	o.AddFix(&measure.Fix{EndPoint: "local", Advice: "leave --buffer out, so that the kernel tunes it, or set twice the bandwidth-delay product"})
	return o
}

// congestionHolds reports whether the congestion window of an upload, or the server's window, limits the rate:
// then the send buffer does not.
func (c *scene) congestionHolds(s *measure.Stream, passes float64) bool {
	if n, mss := s.TCP.Cwnd, s.TCP.SendMSS; n != nil && mss != nil && float64(*n)*float64(*mss) < 1.2*passes {
		return true
	}
	pct, known := s.Delta(measure.WindowLimited).Pct(s.Delta(measure.BusyTime))
	return known && pct >= diagnose.RwndBar
}

// peerWindow holds if the kernel counts that the server's window, or this end's send buffer, limited an upload for
// most of the time.
func (c *scene) peerWindow() *bound {
	s := c.socket()
	if s == nil || c.t.Direction != measure.Upload {
		return nil
	}
	for _, x := range []struct {
		limited        measure.Counter
		cause, counter string
		where          measure.Where
		text           string
	}{
		{measure.WindowLimited, "receive-window", "tcp_info.rwnd_limited_us of busy_time_us", c.there(), "the server's receive window limits it: its socket buffer is too small, or the server reads too slowly"},
		{measure.BufferLimited, "send-buffer", "tcp_info.sndbuf_limited_us of busy_time_us", c.here(), "the send buffer at this end limits it"},
	} {
		pct, known := s.Delta(x.limited).Pct(s.Delta(measure.BusyTime))
		if !known || pct < diagnose.RwndBar {
			continue
		}
		if x.where.EndPoint == "" && stat.TransferRTT(c.run) < farNs { // no window is too small for so short a path
			x.cause, x.text = "slow-reader", "the server reads too slowly: its window is full on a short path"
		}
		o := binds(x.cause, measure.Likely, "%s", x.text)
		o.At(x.where).By(diagnose.Above(c.proof(x.counter, pct, "pct"), diagnose.RwndBar))
		return o
	}
	return nil
}

// sendRoom holds if the send buffer is used up although nothing else limits the sender: for a foreign program
// there are no thread readings to show it.
func (c *scene) sendRoom(f *diagnose.Flow) []diagnose.Judged {
	full, known := bufferFull(f.Sender)
	flight, ok1 := f.InFlight()
	waits, ok2 := f.NotSent()
	cwnd, ok3 := f.Cwnd()
	rwnd, _, _ := f.WindowLimited()
	loaded, base, ok4 := f.RTT()
	buffer := f.SendBuffer()
	switch {
	case !known || !ok1 || !ok2 || !ok3 || !ok4 || full < diagnose.BlockedBar || base < farNs:
		return nil
	case waits > flight/4 && waits > 2*f.MSS(), flight > 0.85*cwnd, rwnd > diagnose.RwndBar, f.Lengthens(flight):
		return nil
	}
	bound := f.BoundOf(flight)
	o := diagnose.Likely("%s send buffer (SO_SNDBUF %s) is too small for a round trip of %s", c.senders(), unit.Size(int64(buffer)), unit.Duration(int64(loaded)))
	o.At(f.Sender.Where()).By(diagnose.Above(f.Sender.Proof("readings with a full send buffer", full, "pct"), diagnose.BlockedBar),
		f.Sender.Proof("in flight, mean", flight, "bytes"), f.Sender.Proof("SO_SNDBUF as granted", buffer, "bytes"), f.Sender.Proof("congestion window, mean", cwnd, "bytes")).
		Costs(bound, "this window carries "+unit.Rate(bound), fmt.Sprintf("%s in flight * 8 / %s", unit.Size(int64(flight)), unit.Duration(int64(loaded)))).
		AddFix(f.RaiseWindow(f.Sender, base))
	if f.FitOf(flight) <= diagnose.SendFitBar && full > 80 && loaded < diagnose.FitsBar*base {
		o.Confidence = measure.Certain
	}
	return []diagnose.Judged{{Rule: diagnose.Rule{Cause: "send-buffer"}, Outcome: o}}
}

// senders returns the sending end for a sentence.
func (c *scene) senders() string {
	if c.t.Direction == measure.Upload {
		return "this end's"
	}
	return "the server's"
}

// bufferFull returns the percentage of readings with a full send buffer.
func bufferFull(e *diagnose.End) (float64, bool) {
	var all []float64
	for _, s := range e.Streams() {
		if s.Timeline != nil && s.Timeline.BufferFull != nil {
			all = append(all, *s.Timeline.BufferFull)
		}
	}
	if len(all) == 0 {
		return 0, false
	}
	return stat.Mean(all), true
}
