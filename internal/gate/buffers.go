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
			Warns:  "the product exceeds the window (of all planned connections together)",
			Why:    "a connection carries one window a round trip: 3 MiB at 20 ms is 1.26 Gb/s, whatever the link",
			Source: "RFC 6349, 3.3.1; half of tcp_rmem[2] on Linux (ip-sysctl.rst), maxsockbuf x 2048/2304 on FreeBSD", Remedy: "a buffer of twice the window, which is the product in an even number of segments",
			Cause: "receive-window", Checklist: []string{"C-14", "C-15", "C-32", "S-09", "B-19"}, host: receiveWindow},
		{ID: "send-buffer", Title: "Largest send buffer", About: "what the host's send buffer can grow to, against the bandwidth-delay product of the path",
			Warns:  "the product exceeds it (of all planned connections together)",
			Why:    "what is not acknowledged stays in the sender's buffer: one buffer a round trip is the most",
			Source: "RFC 6349, 3.3.1; all of tcp_wmem[2] on Linux (measured)", Remedy: "a buffer of twice the window, for the queue that the traffic builds",
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

func receiveWindow(h *host) *finding {
	l := h.limits()
	return h.holds(l.window, "receive window", l.windowOf, l.keys[0], false)
}

func sendBuffer(h *host) *finding {
	if h.os == "windows" {
		return nil // it has no such limit: the send buffer follows the window (SO_SNDBUF, ISB)
	}
	l := h.limits()
	return h.holds(l.send, "send buffer", l.sendOf, l.keys[1], true)
}

// holds compares what one connection can have under way with the path.
func (h *host) holds(most int64, what, of, key string, sends bool) *finding {
	if !h.known {
		return nil
	}
	if most <= 0 {
		return h.missing("largest "+what, key)
	}
	product, why := h.bdp()
	all := float64(most) * float64(h.streams())
	if product == 0 {
		return h.suffices(all, what, most, why)
	}
	if product <= all {
		return pass("%s up to %s (%s); bandwidth-delay product %s", what, size(most), of, size(product))
	}
	window := h.window(product / float64(h.streams()))
	together := ""
	if h.streams() > 1 {
		together = " together"
	}
	return warn("%s at most %s (%s); bandwidth-delay product %s: %s at %s RTT", what, size(most), of, size(product), rate(h.rate()), span(h.rtt())).
		because("it carries at most %s%s; window needed: %s", rate(stat.WindowRate(all, h.rtt())), together, size(window)).
		do(setBuffers(h, window, sends))
}

// suffices judges a window where no rate is known: by the rate that it carries.
func (h *host) suffices(all float64, what string, most int64, why string) *finding {
	switch {
	case h.rtt() == 0 && h.onOneMachine():
		return nil // nothing is under way for long
	case h.rtt() == 0:
		return notChecked("whether a "+what+" of "+size(most)+" suffices", why)
	}
	carries := stat.WindowRate(all, h.rtt())
	if carries >= anyRate {
		return pass("%s up to %s carries %s at %s RTT", what, size(most), rate(carries), span(h.rtt()))
	}
	return notChecked(fmt.Sprintf("whether a %s of %s suffices: it carries %s at %s RTT", what, size(most), rate(carries), span(h.rtt())), why)
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
