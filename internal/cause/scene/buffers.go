package scene

import (
	"strings"

	"thru/internal/cause/knob"
)

// limits are a host's buffer limits in bytes.
type limits struct {
	Window, Send     int64 // bytes that one connection can have in flight; 0: not known
	WindowOf, SendOf string
	Keys             [2]string // names of the settings, for the text about a missing one
}

// Limits reads the buffer limits under the names of the host's system.
func (h *Host) Limits() limits {
	switch h.System {
	case "linux":
		l := limits{WindowOf: "tcp_rmem", SendOf: "tcp_wmem", Keys: [2]string{"sysctls.net.ipv4.tcp_rmem", "sysctls.net.ipv4.tcp_wmem"}}
		rmem, _ := h.Number("net.ipv4.tcp_rmem")
		l.Send, _ = h.Number("net.ipv4.tcp_wmem")
		l.Window = rmem / 2
		return l
	case "freebsd", "darwin":
		return h.limitsBSD()
	case "solaris", "illumos":
		l := limits{WindowOf: "recv_buf", SendOf: "send_buf", Keys: [2]string{"sysctls.tcp.recv_buf", "sysctls.tcp.send_buf"}}
		l.Window, _ = h.Number("tcp.recv_buf")
		l.Send, _ = h.Number("tcp.send_buf")
		return l
	case "windows":
		l := limits{WindowOf: "the autotuning level", Keys: [2]string{"sysctls.Internet.AutoTuningLevelLocal", "send buffer"}}
		level, _ := h.Sysctl("Internet.AutoTuningLevelLocal")
		l.Window = autotuning(level)
		return l
	}
	return limits{Keys: [2]string{"sysctls", "sysctls"}}
}

// greatest returns the configured buffer maximum of a side; 0 if it is not known.
func (l limits) greatest(h *Host, sends bool) int64 {
	key := l.Keys[0]
	if sends {
		key = l.Keys[1]
	}
	n, _ := h.Number(strings.TrimPrefix(key, "sysctls."))
	return n
}

// limitsBSD reads the autotuning maximum and the ceiling of all buffers.
func (h *Host) limitsBSD() limits {
	names := [2]string{"net.inet.tcp.recvbuf_max", "net.inet.tcp.sendbuf_max"}
	if h.System == "darwin" {
		names = [2]string{"net.inet.tcp.autorcvbufmax", "net.inet.tcp.autosndbufmax"}
	}
	l := limits{WindowOf: names[0], SendOf: names[1], Keys: [2]string{"sysctls." + names[0], "sysctls." + names[1]}}
	l.Window, _ = h.Number(names[0])
	l.Send, _ = h.Number(names[1])
	ceiling, ok := h.Number("kern.ipc.maxsockbuf")
	if !ok || h.System == "darwin" {
		return l
	}
	usable := knob.UsableSockBuf(ceiling)
	if l.Window > usable {
		l.Window, l.WindowOf = usable, "kern.ipc.maxsockbuf"
	}
	if l.Send > usable {
		l.Send, l.SendOf = usable, "kern.ipc.maxsockbuf"
	}
	return l
}

// autotuning returns the largest window of an autotuning level (C-31); 0 if it is not known.
func autotuning(level string) int64 {
	return map[string]int64{"disabled": 64 << 10, "highlyrestricted": 256 << 10, "restricted": 1 << 20,
		"normal": 16 << 20, "experimental": 1 << 30}[strings.ToLower(strings.ReplaceAll(level, " ", ""))]
}

// Buffer maxima that Linux sets at boot, in bytes: 1/128 of the memory, within these bounds (net/ipv4/tcp.c,
// tcp_init; receive buffers of newer kernels are larger).
const (
	leastRmem, MostRmem = 128 << 10, 6 << 20
	leastWmem, MostWmem = 64 << 10, 4 << 20
)

// BootBuffer returns the buffer maximum that a Linux kernel sets at boot, in bytes; 0 for another system or
// unknown memory.
func (h *Host) BootBuffer(sends bool) int64 {
	if h.System != "linux" || h.RAM == nil || h.RAM.Total == nil || *h.RAM.Total <= 0 {
		return 0
	}
	if sends {
		return min(max(*h.RAM.Total/128, leastWmem), MostWmem)
	}
	return min(max(*h.RAM.Total/128, leastRmem), MostRmem)
}
