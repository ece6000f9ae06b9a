package window

import (
	"fmt"

	"thru/internal/cause/advise"
	"thru/internal/cause/diagnose"
	"thru/internal/cause/gate"
	"thru/internal/cause/rule"
	"thru/internal/cause/scene"
	"thru/internal/stat"
	"thru/internal/unit"
)

// SendBuffer is the cause `send-buffer`.
func SendBuffer() rule.Cause {
	return rule.Cause{
		Rule: diagnose.Rule{
			Cause: "send-buffer", TCP: true, Title: "the sender's buffer is too small for the round trip", Judge: diagnose.SendBuffer, Packets: packetsSendBuffer,
			Seen:        "the sender is blocked in send() with no unsent data, and the data in flight is as large as the socket's buffer; in a capture at the sender: the data in flight is almost constant, although no window limits it (possible)",
			Distinction: "neither window is full, and no packet is lost; if a queue on the path is full, a larger buffer only makes it longer",
			Fix:         "raise tcp_wmem at the sender to three times the bandwidth-delay product, leave -w out", Effect: "44 of 189 Mb/s with 64 KiB at 20 ms",
			Source: "methods.md, Traps: tcp_info.tcpi_sndbuf_limited reads 0 for a blocking sender; so the time blocked in send() counts", Tests: []string{diagnose.MoreBuffer, diagnose.EightStreams},
		},
		Urgent: 3,
		Gates: []gate.Rule{
			{ID: "send-buffer", Words: "wmem tcp_wmem sendbuf", Title: "Largest send buffer", About: "the size that the host's send buffer can grow to, against the bandwidth-delay product of the path",
				Warns:  "the product exceeds it (of all planned connections together); without a known rate, it is less than half of the Linux default",
				Why:    "unacknowledged data stays in the sender's buffer: a connection carries at most one buffer per round trip",
				Source: "RFC 6349, 3.3.1; all of tcp_wmem[2] on Linux (measured; 4 MiB or a 128th of the memory: net/ipv4/tcp.c, tcp_init)", Fix: "set a buffer of three times the window, with room for the queue that the traffic builds",
				Checklist: []string{"C-14", "C-15", "C-32", "S-09", "B-19"}, Host: gateSendBuffer},
		},
		Propose: []advise.Proposer{proposeSendBuffer},
		Tight:   func(r advise.Request) bool { return r.IsTight(r.Direction.Sender()) },
	}
}

func packetsSendBuffer(f *diagnose.Flow) *diagnose.Outcome {
	s, why := Evenly(f)
	if why != nil {
		return why
	}
	flight := s.Main().Flight
	loaded, least, _ := s.RTT()
	bound := stat.WindowRate(flight.Max, int64(loaded)) * float64(len(s.Connections))
	switch {
	case least < diagnose.NearNs:
		return diagnose.Missing("time blocked in send()", "a capture does not show it, and the other end is near")
	case flight.Max > evenBar*flight.Mean:
		return diagnose.No("the data in flight varies: %s on average, %s at most", unit.Size(int64(flight.Mean)), unit.Size(int64(flight.Max)))
	case bound > (1+diagnose.SendFitBar/100.0)*s.Rate():
		return diagnose.No("%s in flight would carry %s, more than what passes", unit.Size(int64(flight.Max)), unit.Rate(bound))
	}
	return diagnose.Possible("no more than %s are in flight, although the window has room and no packet is lost: the sender's buffer may be too small", unit.Size(int64(flight.Max))).
		At(f.Sender.Where()).By(s.Proof("in flight, maximum", flight.Max, "bytes"), s.Proof("in flight, mean", flight.Mean, "bytes"), s.Proof("window that the receiver advertised, mean", s.Main().Window.Mean, "bytes")).
		Costs(bound, "the data in flight carries "+unit.Rate(bound), fmt.Sprintf("%s * 8 / %s", unit.Size(int64(flight.Max)), unit.Duration(int64(loaded)))).
		Then("run `thru test` from there: it shows whether the sender is blocked in send()").AddFix(f.RaiseWindow(f.Sender, loaded))
}

// evenBar is by how much the maximum in flight may exceed the mean if a buffer limits it.
const evenBar = 1.25

func gateSendBuffer(h *scene.Host) *gate.Finding {
	if h.System == "windows" {
		return nil // it has no such limit: the send buffer follows the window (SO_SNDBUF, ISB)
	}
	l := h.Limits()
	return holds(h, buffer{l.Send, "send buffer", l.SendOf, l.Keys[1], true})
}

func proposeSendBuffer(r advise.Request) []advise.Draft {
	return buffers(r, r.Direction.Sender(), r.Direction.Receiver())
}
