package gate

import (
	"fmt"
	"strings"

	"thru/internal/knob"
	"thru/internal/stat"
)

// bufferRules judge whether the buffers of both ends hold what the path holds.
//
// A receiver's window is what of its buffer it advertises. Linux keeps a share
// for bookkeeping: half of it by default (ip-sysctl.rst, tcp_adv_win_scale;
// since 6.6 the share follows the packets, TCP_DEFAULT_SCALING_RATIO). FreeBSD
// advertises all of recvbuf_max, but a buffer holds only 2048 of 2304 bytes of
// maxsockbuf (sb_max_adj). A sender keeps what is not acknowledged in its
// buffer, of which nearly all is payload: measured on Linux, a buffer of
// 128 KiB keeps 126 KB under way.
func bufferRules() []Rule {
	return []Rule{
		{ID: "receive-window", Title: "Largest receive window", About: "the window that the host's receive buffer can grow to, against the bandwidth-delay product of the path",
			Warns:  "the product exceeds the window (of all planned connections together); without a known rate, it is less than half of what Linux sets by itself",
			Why:    "a connection carries one window a round trip: 3 MiB at 20 ms is 1.26 Gb/s, whatever the link",
			Source: "RFC 6349, 3.3.1; half of tcp_rmem[2] on Linux (ip-sysctl.rst; 6 MiB or a 128th of the memory: net/ipv4/tcp.c, tcp_init), maxsockbuf x 2048/2304 on FreeBSD", Remedy: "a buffer of twice the window, which is the product in an even number of segments",
			Cause: "receive-window", Checklist: []string{"C-14", "C-15", "C-32", "S-09", "B-19"}, host: receiveWindow},
		{ID: "send-buffer", Title: "Largest send buffer", About: "what the host's send buffer can grow to, against the bandwidth-delay product of the path",
			Warns:  "the product exceeds it (of all planned connections together); without a known rate, it is less than half of what Linux sets by itself",
			Why:    "what is not acknowledged stays in the sender's buffer: one buffer a round trip is the most",
			Source: "RFC 6349, 3.3.1; all of tcp_wmem[2] on Linux (measured; 4 MiB or a 128th of the memory: net/ipv4/tcp.c, tcp_init)", Remedy: "a buffer of twice the window, for the queue that the traffic builds",
			Cause: "send-buffer", Checklist: []string{"C-14", "C-15", "C-32", "S-09", "B-19"}, host: sendBuffer},
		{ID: "explicit-window", Title: "Limit of -w", About: "the most that a program may ask for (rmem_max, wmem_max, maxsockbuf), against the product, and what it can carry; information only",
			Why:    "an explicit window switches autotuning off, and the kernel cuts it to its limit without a word",
			Source: "socket(7), SO_RCVBUF", Remedy: "leave -w out, or raise the limit", Cause: "fixed-window", Checklist: []string{"C-18", "C-39", "B-19"}, host: explicitWindow},
	}
}

// limits of a host's buffers in bytes.
type limits struct {
	window, send     int64 // what one connection can have under way; 0: not known
	windowOf, sendOf string
	keys             [2]string // settings that tell, for what is missing
}

// limits reads them by the names of the host's system.
func (h *host) limits() limits {
	switch h.os {
	case "linux":
		l := limits{windowOf: "tcp_rmem", sendOf: "tcp_wmem", keys: [2]string{"sysctls.net.ipv4.tcp_rmem", "sysctls.net.ipv4.tcp_wmem"}}
		rmem, _ := h.number("net.ipv4.tcp_rmem")
		l.send, _ = h.number("net.ipv4.tcp_wmem")
		l.window = rmem / 2
		return l
	case "freebsd", "darwin":
		return h.limitsBSD()
	case "solaris", "illumos":
		l := limits{windowOf: "recv_buf", sendOf: "send_buf", keys: [2]string{"sysctls.tcp.recv_buf", "sysctls.tcp.send_buf"}}
		l.window, _ = h.number("tcp.recv_buf")
		l.send, _ = h.number("tcp.send_buf")
		return l
	case "windows":
		l := limits{windowOf: "the autotuning level", keys: [2]string{"sysctls.Internet.AutoTuningLevelLocal", "send buffer"}}
		level, _ := h.sysctl("Internet.AutoTuningLevelLocal")
		l.window = autotuning(level)
		return l
	}
	return limits{keys: [2]string{"sysctls", "sysctls"}}
}

// limitsBSD: the maximum of autotuning, and the ceiling over all buffers.
func (h *host) limitsBSD() limits {
	names := [2]string{"net.inet.tcp.recvbuf_max", "net.inet.tcp.sendbuf_max"}
	if h.os == "darwin" {
		names = [2]string{"net.inet.tcp.autorcvbufmax", "net.inet.tcp.autosndbufmax"}
	}
	l := limits{windowOf: names[0], sendOf: names[1], keys: [2]string{"sysctls." + names[0], "sysctls." + names[1]}}
	l.window, _ = h.number(names[0])
	l.send, _ = h.number(names[1])
	ceiling, ok := h.number("kern.ipc.maxsockbuf")
	if !ok || h.os == "darwin" {
		return l
	}
	usable := knob.UsableSockBuf(ceiling)
	if l.window > usable {
		l.window, l.windowOf = usable, "kern.ipc.maxsockbuf"
	}
	if l.send > usable {
		l.send, l.sendOf = usable, "kern.ipc.maxsockbuf"
	}
	return l
}

// autotuning is the largest window of a level (C-31); 0 where it is not known.
func autotuning(level string) int64 {
	return map[string]int64{"disabled": 64 << 10, "highlyrestricted": 256 << 10, "restricted": 1 << 20,
		"normal": 16 << 20, "experimental": 1 << 30}[strings.ToLower(strings.ReplaceAll(level, " ", ""))]
}

// buffer is one of the two of a host.
type buffer struct {
	most          int64 // what one connection can have under way by it, in bytes; 0: not known
	what, of, key string
	sends         bool
}

func receiveWindow(h *host) *finding {
	l := h.limits()
	return h.holds(buffer{l.window, "receive window", l.windowOf, l.keys[0], false})
}

func sendBuffer(h *host) *finding {
	if h.os == "windows" {
		return nil // it has no such limit: the send buffer follows the window (SO_SNDBUF, ISB)
	}
	l := h.limits()
	return h.holds(buffer{l.send, "send buffer", l.sendOf, l.keys[1], true})
}

// holds compares what one connection can have under way with the path.
func (h *host) holds(b buffer) *finding {
	if !h.known {
		return nil
	}
	if b.most <= 0 {
		return h.missing("largest "+b.what, b.key)
	}
	product, why := h.bdp()
	all := float64(b.most) * float64(h.streams())
	if product == 0 {
		return h.suffices(b, why)
	}
	if product <= all {
		return pass("%s up to %s (%s); bandwidth-delay product %s", b.what, size(b.most), b.of, size(product))
	}
	window := h.window(product / float64(h.streams()))
	together := ""
	if h.streams() > 1 {
		together = " together"
	}
	return warn("%s at most %s (%s); bandwidth-delay product %s: %s at %s RTT", b.what, size(b.most), b.of, size(product), rate(h.rate()), span(h.rtt())).
		because("it carries at most %s%s; window needed: %s", rate(stat.WindowRate(all, h.rtt())), together, size(window)).
		do(setBuffers(h, window, b.sends))
}

// suffices judges a buffer where no rate is known: by the rate that it carries,
// and by what the system would have set itself.
func (h *host) suffices(b buffer, why string) *finding {
	carries, says := 0.0, ""
	if h.rtt() > 0 {
		carries = stat.WindowRate(float64(b.most)*float64(h.streams()), h.rtt())
		says = fmt.Sprintf("it carries %s at %s RTT", rate(carries), span(h.rtt()))
	}
	booted := h.booted(b.sends)
	switch {
	case h.rtt() == 0 && h.onOneMachine():
		return nil // nothing is under way for long
	case carries >= anyRate:
		return pass("%s up to %s carries %s at %s RTT", b.what, size(b.most), rate(carries), span(h.rtt()))
	case booted > 0 && b.most < booted/2:
		f := warn("%s at most %s (%s), where Linux sets %s by itself", b.what, size(b.most), b.of, size(booted)).do(bootedBuffer(h, b.sends))
		if says != "" {
			f = f.because("%s; somebody has made it smaller", says)
		}
		return f
	case says == "":
		return notChecked("whether a "+b.what+" of "+size(b.most)+" suffices", why)
	}
	return notChecked(fmt.Sprintf("whether a %s of %s suffices: %s", b.what, size(b.most), says), why)
}

// Greatest buffers that Linux sets as it boots, in bytes: a 128th of the memory, between
// these (net/ipv4/tcp.c, tcp_init; receive buffers of newer kernels are larger).
const (
	leastRmem, mostRmem = 128 << 10, 6 << 20
	leastWmem, mostWmem = 64 << 10, 4 << 20
)

// bootBuffer is the greatest buffer that the kernel of a Linux host sets as it boots, in
// bytes; 0 of another system, and where its memory is not known.
func (h *host) bootBuffer(sends bool) int64 {
	if h.os != "linux" || h.RAM == nil || h.RAM.Total == nil || *h.RAM.Total <= 0 {
		return 0
	}
	if sends {
		return min(max(*h.RAM.Total/128, leastWmem), mostWmem)
	}
	return min(max(*h.RAM.Total/128, leastRmem), mostRmem)
}

// booted is what one connection can have under way by that buffer.
func (h *host) booted(sends bool) int64 {
	if sends {
		return h.bootBuffer(sends)
	}
	return h.bootBuffer(sends) / 2
}

// anyRate is one that no single connection exceeds, in bit/s.
const anyRate = 100e9

// explicitWindow tells only: without -w the limit does not matter.
func explicitWindow(h *host) *finding {
	limit, of := int64(0), ""
	switch h.os {
	case "linux":
		// SO_RCVBUF of n gets 2n, of which about n is the window (socket(7)).
		r, okR := h.number("net.core.rmem_max")
		w, okW := h.number("net.core.wmem_max")
		if !okR || !okW {
			return nil // a network namespace does not show them
		}
		limit, of = min(r, w), "rmem_max, wmem_max"
	case "freebsd":
		n, _ := h.number("kern.ipc.maxsockbuf")
		limit, of = knob.UsableSockBuf(n), "kern.ipc.maxsockbuf"
	case "solaris", "illumos":
		limit, _ = h.number("tcp.max_buf")
		of = "max_buf"
	}
	product, _ := h.bdp()
	if limit <= 0 || product == 0 {
		return nil
	}
	window := h.window(product / float64(h.streams()))
	if window <= limit {
		return pass("-w up to %s (%s) is granted; bandwidth-delay product %s", size(limit), of, size(product))
	}
	without := ""
	if l := h.limits(); l.window > 0 {
		without = "; without -w up to " + size(l.window) + " (" + l.windowOf + ")"
	}
	return pass("-w gets at most %s (%s): %s a connection%s", size(limit), of, rate(stat.WindowRate(float64(limit), h.rtt())), without).
		because("a connection needs %s; the kernel cuts what -w asks for to its limit without a word", size(window)).
		do(raiseLimit(h, window).saying("leave -w out; only a test with -w needs a higher limit"))
}
