package window

import (
	"fmt"

	"thru/internal/cause/diagnose"
	"thru/internal/cause/loss"
	"thru/internal/cause/rule"
	"thru/internal/measure"
	"thru/internal/unit"
)

// SlowReader is the cause `slow-reader`.
func SlowReader() rule.Cause {
	return rule.Cause{
		Rule: diagnose.Rule{
			Cause: "slow-reader", TCP: true, UDP: true, Unseen: diagnose.HostTime, Title: "the program at the receiver reads too slowly", Judge: judgeSlowReader, Packets: packetsSlowReader,
			Seen:        "the receive window limits the sender while data waits unread in the receiver's socket; in captures: the receiver's window is closed for a tenth of the time or more, or it limits the sender and is below half of its maximum (possible)",
			Distinction: "a larger buffer only takes longer to fill",
			Fix:         "make the receiving program read faster", Effect: "51 of 189 Mb/s", Source: "SIOCINQ (tcp(7)), TcpExt.TCPToZeroWindowAdv", Tests: []string{diagnose.LargeMessages, diagnose.LeanPath, diagnose.Captured},
		},
	}
}

func judgeSlowReader(f *diagnose.Flow) *diagnose.Outcome {
	if f.IsUDP() {
		return UnreadDatagrams(f)
	}
	pct, proof, ok := f.WindowLimited()
	if !ok {
		return f.Sender.Lacks("tcp_info.rwnd_limited_us")
	}
	behind, seen := f.UnreadShare()
	late := f.Receiver.IsBehind()
	if pct < diagnose.RwndClear && !late {
		return diagnose.No("the receiver's window limited the sender %s of the time", unit.Percent(pct))
	}
	if !seen {
		return f.Receiver.Lacks("unread bytes of the socket")
	}
	if behind <= diagnose.UnreadBar && !late {
		return diagnose.No("the receiver's socket queue is nearly empty: %s of its buffer", unit.Percent(behind))
	}
	o := diagnose.Likely("the program at the receiver reads too slowly: %s of its buffer is unread", unit.Percent(behind))
	if late {
		o.Text = fmt.Sprintf("the program at the receiver reads too slowly: data waits %s unread", unit.Duration(int64(f.Receiver.WaitsNs())))
		o.By(diagnose.Above(f.Receiver.Proof("time that data waits unread", f.Receiver.WaitsNs(), "ns"), diagnose.LateNs))
	}
	t, known := f.Receiver.Threads()
	switch {
	case known && t.Run+t.Wait > diagnose.ThreadBar:
		o.Then("find what keeps the reader's CPU busy")
	case f.Receiver.Load().IsFull() || f.Receiver.Load().Least > diagnose.MostBar:
		o.Then("check whether the reader waits for a CPU: the host's CPUs are busy")
	case known && (pct >= diagnose.RwndBar || late):
		o.Confidence = measure.Certain // its thread has a CPU to run on, and does not read
		o.By(diagnose.UnderBar(f.Receiver.Proof("reader's thread on a CPU or waiting for one", t.Run+t.Wait, "pct"), diagnose.ThreadBar))
	}
	o.At(f.Receiver.Where()).By(diagnose.Above(f.Receiver.Proof("unread data, of the socket buffer", behind, "pct"), diagnose.UnreadBar), diagnose.Above(proof, diagnose.RwndBar))
	if n, ok := f.Receiver.Counter("TcpExt.TCPToZeroWindowAdv"); ok && n > 0 {
		o.By(f.Receiver.Proof("TcpExt.TCPToZeroWindowAdv", n, ""))
	}
	return o.AddFix(readFaster(f))
}

// UnreadDatagrams judges a UDP test for a receiver that does not keep up: its socket had no room.
func UnreadDatagrams(f *diagnose.Flow) *diagnose.Outcome {
	x, ok := loss.FateOfDatagrams(f)
	switch {
	case !ok:
		return f.Receiver.Lacks("the count of datagrams")
	case x.LossPct < diagnose.LostBar:
		return diagnose.No("%s of the datagrams were lost", unit.Percent(x.LossPct))
	case len(x.Places) == 0:
		return f.Receiver.Lacks("the place of the loss")
	}
	p := x.At(measure.LossSocket)
	if x.Gone[measure.LossSocket] < 100-loss.PlaceBar {
		return diagnose.No("the receiver's full socket buffer dropped %s of the lost datagrams", unit.Percent(x.Gone[measure.LossSocket]))
	}
	o := diagnose.Certain("the receiver's full socket buffer drops %s of the datagrams: the program reads too slowly, or the buffer is too small", unit.Percent(x.LossPct)).
		At(f.Receiver.Where()).By(diagnose.Above(f.Receiver.Proof(p.Counter, float64(p.Packets), "packets"), 0)).
		Costs(0, unit.Percent(x.LossPct)+" are lost", "drops of the socket")
	if p.Packets < diagnose.FewEvents {
		o.Confidence = measure.Likely
	}
	if f.Cell.Spec.Rate == 0 {
		o.Then("set a rate (-b): without one the sender overruns any receiver")
	}
	return o.AddFix(diagnose.Advise(f.Receiver, p.Fix))
}

func packetsSlowReader(f *diagnose.Flow) *diagnose.Outcome {
	s := f.CapturePoint(measure.AtReceiver, measure.AtPath, "", measure.AtSender)
	if s == nil {
		return diagnose.Missing("a connection of the flow", "the capture has none")
	}
	pct, zero := s.ClosedPct(), s.Acks.Zero
	c := s.Main()
	switch {
	case s.Data.New < diagnose.LeastFill:
		return diagnose.Missing("a transfer of data", "too little data passed to fill a window")
	case zero.N > 0 && pct >= diagnose.ClosedFew:
		o := diagnose.Likely("the program at the receiver reads too slowly: its window was closed %s of the time", unit.Percent(pct))
		if pct >= closedBar && s.Data.Segments >= diagnose.LeastSegments {
			o.Confidence = measure.Certain
		}
		o.At(f.Receiver.Where()).By(diagnose.Above(s.Proof("time with the receiver's window closed", pct, "pct", zero.Packets...), diagnose.ClosedFew), s.Count("zero windows of the receiver", zero))
		if s.Data.Probes.N > 0 {
			o.By(s.Count("probes of the closed window", s.Data.Probes))
		}
		return o.AddFix(readFaster(f))
	case zero.N > 0:
		return diagnose.No("the receiver's window was closed %s of the time", unit.Percent(pct))
	case f.Receiver.IsBehind():
		return nil // data may wait for long without a full buffer
	case fallen(s) >= fallenBar && waitsForWindow(f):
		return readsInBits(f, s)
	case c.Window != nil && !c.Unscaled && c.Window.Min > c.Window.Max/2:
		return diagnose.No("the receiver's window never closed, and never fell to half")
	}
	return diagnose.Missing("the unread data at the receiver", "its window never closed; packets show no more")
}

// waitsForWindow reports whether the receiver's window limits the sender at least some of the time.
func waitsForWindow(f *diagnose.Flow) bool {
	s := f.AnyCapturePoint()
	h, known := s.WindowLimited()
	return known && !h.Clear
}

// readsInBits words a receiver's window that shrinks and never closes: its program reads some data now and then,
// and so determines the rate.
func readsInBits(f *diagnose.Flow, s *diagnose.CapturePoint) *diagnose.Outcome {
	o := diagnose.Possible("the program at the receiver may read too slowly: its window is below half of its maximum %s of the time", unit.Percent(fallen(s)))
	if h, _ := f.AnyCapturePoint().WindowLimited(); h.Binds {
		o.Confidence = measure.Likely
	}
	return o.At(f.Receiver.Where()).By(diagnose.Above(s.Proof("time with the receiver's window below half of its maximum", fallen(s), "pct"), fallenBar),
		s.Proof("window that the receiver advertised, minimum", s.Main().Window.Min, "bytes"), s.Proof("window that the receiver advertised, maximum", s.Main().Window.Max, "bytes")).
		AddFix(readFaster(f))
}

// readFaster is the fix if a reader binds.
func readFaster(f *diagnose.Flow) *measure.Fix {
	return diagnose.Advise(f.Receiver, "make the program at the receiver read faster, or find what it waits for: a disk, a lock, a CPU")
}
