package window

import (
	"fmt"

	"thru/internal/cause/gate"
	"thru/internal/knob"
	"thru/internal/stat"
)

// BufferGates judge whether the buffers of both ends hold what the path holds.
//
// A receiver's window is what of its buffer it advertises. Linux keeps a share
// for bookkeeping: half of it by default (ip-sysctl.rst, tcp_adv_win_scale;
// since 6.6 the share follows the packets, TCP_DEFAULT_SCALING_RATIO). FreeBSD
// advertises all of recvbuf_max, but a buffer holds only 2048 of 2304 bytes of
// maxsockbuf (sb_max_adj). A sender keeps what is not acknowledged in its
// buffer, of which nearly all is payload: measured on Linux, a buffer of
// 128 KiB keeps 126 KB under way.
func BufferGates() []gate.Rule {
	return []gate.Rule{
		{ID: "receive-window", Title: "Largest receive window", About: "the window that the host's receive buffer can grow to, against the bandwidth-delay product of the path",
			Warns:  "the product exceeds the window (of all planned connections together); without a known rate, it is less than half of what Linux sets by itself",
			Why:    "a connection carries one window a round trip: 3 MiB at 20 ms is 1.26 Gb/s, whatever the link",
			Source: "RFC 6349, 3.3.1; half of tcp_rmem[2] on Linux (ip-sysctl.rst; 6 MiB or a 128th of the memory: net/ipv4/tcp.c, tcp_init), maxsockbuf x 2048/2304 on FreeBSD", Remedy: "a buffer of twice the window, which is the product in an even number of segments",
			Cause: "receive-window", Checklist: []string{"C-14", "C-15", "C-32", "S-09", "B-19"}, Host: receiveWindow},
		{ID: "send-buffer", Title: "Largest send buffer", About: "what the host's send buffer can grow to, against the bandwidth-delay product of the path",
			Warns:  "the product exceeds it (of all planned connections together); without a known rate, it is less than half of what Linux sets by itself",
			Why:    "what is not acknowledged stays in the sender's buffer: one buffer a round trip is the most",
			Source: "RFC 6349, 3.3.1; all of tcp_wmem[2] on Linux (measured; 4 MiB or a 128th of the memory: net/ipv4/tcp.c, tcp_init)", Remedy: "a buffer of twice the window, for the queue that the traffic builds",
			Cause: "send-buffer", Checklist: []string{"C-14", "C-15", "C-32", "S-09", "B-19"}, Host: sendBuffer},
		{ID: "explicit-window", Title: "Limit of -w", About: "the most that a program may ask for (rmem_max, wmem_max, maxsockbuf), against the product, and what it can carry; information only",
			Why:    "an explicit window switches autotuning off, and the kernel cuts it to its limit without a word",
			Source: "socket(7), SO_RCVBUF", Remedy: "leave -w out, or raise the limit", Cause: "fixed-window", Checklist: []string{"C-18", "C-39", "B-19"}, Host: explicitWindow},
	}
}

// buffer is one of the two of a host.
type buffer struct {
	most          int64 // what one connection can have under way by it, in bytes; 0: not known
	what, of, key string
	sends         bool
}

func receiveWindow(h *gate.Host) *gate.Finding {
	l := h.Limits()
	return holds(h, buffer{l.Window, "receive window", l.WindowOf, l.Keys[0], false})
}

func sendBuffer(h *gate.Host) *gate.Finding {
	if h.System == "windows" {
		return nil // it has no such limit: the send buffer follows the window (SO_SNDBUF, ISB)
	}
	l := h.Limits()
	return holds(h, buffer{l.Send, "send buffer", l.SendOf, l.Keys[1], true})
}

// holds compares what one connection can have under way with the path.
func holds(h *gate.Host, b buffer) *gate.Finding {
	if !h.Known {
		return nil
	}
	if b.most <= 0 {
		return h.Missing("largest "+b.what, b.key)
	}
	product, why := h.BDP()
	all := float64(b.most) * float64(h.Streams())
	if product == 0 {
		return suffices(h, b, why)
	}
	if product <= all {
		return gate.Pass("%s up to %s (%s); bandwidth-delay product %s", b.what, gate.Size(b.most), b.of, gate.Size(product))
	}
	window := h.Window(product / float64(h.Streams()))
	together := ""
	if h.Streams() > 1 {
		together = " together"
	}
	return gate.Warn("%s at most %s (%s); bandwidth-delay product %s: %s at %s RTT", b.what, gate.Size(b.most), b.of, gate.Size(product), gate.Rate(h.Rate()), gate.Span(h.RTT())).
		Because("it carries at most %s%s; window needed: %s", gate.Rate(stat.WindowRate(all, h.RTT())), together, gate.Size(window)).
		Do(gate.SetBuffers(h, window, b.sends))
}

// suffices judges a buffer where no rate is known: by the rate that it carries,
// and by what the system would have set itself.
func suffices(h *gate.Host, b buffer, why string) *gate.Finding {
	carries, says := 0.0, ""
	if h.RTT() > 0 {
		carries = stat.WindowRate(float64(b.most)*float64(h.Streams()), h.RTT())
		says = fmt.Sprintf("it carries %s at %s RTT", gate.Rate(carries), gate.Span(h.RTT()))
	}
	booted := booted(h, b.sends)
	switch {
	case h.RTT() == 0 && h.OnOneMachine():
		return nil // nothing is under way for long
	case carries >= anyRate:
		return gate.Pass("%s up to %s carries %s at %s RTT", b.what, gate.Size(b.most), gate.Rate(carries), gate.Span(h.RTT()))
	case booted > 0 && b.most < booted/2:
		f := gate.Warn("%s at most %s (%s), where Linux sets %s by itself", b.what, gate.Size(b.most), b.of, gate.Size(booted)).Do(gate.BootedBuffer(h, b.sends))
		if says != "" {
			f = f.Because("%s; somebody has made it smaller", says)
		}
		return f
	case says == "":
		return gate.NotChecked("whether a "+b.what+" of "+gate.Size(b.most)+" suffices", why)
	}
	return gate.NotChecked(fmt.Sprintf("whether a %s of %s suffices: %s", b.what, gate.Size(b.most), says), why)
}

// booted is what one connection can have under way by that buffer.
func booted(h *gate.Host, sends bool) int64 {
	if sends {
		return h.BootBuffer(sends)
	}
	return h.BootBuffer(sends) / 2
}

// anyRate is one that no single connection exceeds, in bit/s.
const anyRate = 100e9

// explicitWindow tells only: without -w the limit does not matter.
func explicitWindow(h *gate.Host) *gate.Finding {
	limit, of := int64(0), ""
	switch h.System {
	case "linux":
		// SO_RCVBUF of n gets 2n, of which about n is the window (socket(7)).
		r, okR := h.Number("net.core.rmem_max")
		w, okW := h.Number("net.core.wmem_max")
		if !okR || !okW {
			return nil // a network namespace does not show them
		}
		limit, of = min(r, w), "rmem_max, wmem_max"
	case "freebsd":
		n, _ := h.Number("kern.ipc.maxsockbuf")
		limit, of = knob.UsableSockBuf(n), "kern.ipc.maxsockbuf"
	case "solaris", "illumos":
		limit, _ = h.Number("tcp.max_buf")
		of = "max_buf"
	}
	product, _ := h.BDP()
	if limit <= 0 || product == 0 {
		return nil
	}
	window := h.Window(product / float64(h.Streams()))
	if window <= limit {
		return gate.Pass("-w up to %s (%s) is granted; bandwidth-delay product %s", gate.Size(limit), of, gate.Size(product))
	}
	without := ""
	if l := h.Limits(); l.Window > 0 {
		without = "; without -w up to " + gate.Size(l.Window) + " (" + l.WindowOf + ")"
	}
	return gate.Pass("-w gets at most %s (%s): %s a connection%s", gate.Size(limit), of, gate.Rate(stat.WindowRate(float64(limit), h.RTT())), without).
		Because("a connection needs %s; the kernel cuts what -w asks for to its limit without a word", gate.Size(window)).
		Do(gate.RaiseLimit(h, window).Saying("leave -w out; only a test with -w needs a higher limit"))
}
