package gate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"thru/internal/cause/knob"
)

// Sysctls words settings of one system, with how to keep them.
func Sysctls(h *Host, settings ...string) Remedy {
	risk := sysctlLasts
	prefix := "sysctl -w "
	switch h.System {
	case "freebsd":
		prefix, risk = "sysctl ", sysctlConf
	case "darwin":
		risk = sysctlConf
	}
	var r Remedy
	for _, s := range settings {
		r.Lines = append(r.Lines, prefix+s)
	}
	r.Risk = risk
	return r
}

// ipadm words properties of TCP on Solaris and illumos.
func ipadm(settings ...string) Remedy {
	r := Remedy{Risk: ipadmLasts}
	for _, s := range settings {
		r.Lines = append(r.Lines, "ipadm set-prop -p "+s+" tcp")
	}
	return r
}

// SwitchOn turns a switch of TCP on.
func SwitchOn(h *Host, s Setting) Remedy {
	if len(s.Names[h.System]) == 0 {
		return Remedy{}
	}
	risk := Sysctls(h).Risk
	switch h.System {
	case "windows":
		risk = netshLasts
	case "solaris", "illumos":
		risk = ipadmLasts
	}
	return Worded(risk, h.Typed(s.knob, "", "1"))
}

// SetBuffers lets one connection have the window under way: twice of it as
// buffer on Linux, whose bookkeeping takes up to half, and in which a sender
// wants the room of the next window beside (net/ipv4/tcp_input.c,
// tcp_sndbuf_expand). Only the buffer of one side is set, and never to less
// than it has.
func SetBuffers(h *Host, window int64, sends bool) Remedy {
	buffer := 3 * window // and half as much again: the next round trip may be longer
	side := func(receive, send string) string {
		if sends {
			return send
		}
		return receive
	}
	switch h.System {
	case "linux":
		name := side("net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem")
		return Sysctls(h, fmt.Sprintf("%s='%s %d'", name, h.lower(name), h.atLeast(buffer, name)))
	case "freebsd":
		// The ceiling first: the other is refused above it.
		return Sysctls(h, h.raise("kern.ipc.maxsockbuf", knob.MaxSockBuf(buffer)), h.raise(side("net.inet.tcp.recvbuf_max", "net.inet.tcp.sendbuf_max"), buffer))
	case "darwin":
		return Sysctls(h, h.raise("kern.ipc.maxsockbuf", knob.MaxSockBuf(buffer)), h.raise(side("net.inet.tcp.autorcvbufmax", "net.inet.tcp.autosndbufmax"), buffer))
	case "solaris", "illumos":
		name := side("recv_buf", "send_buf")
		return ipadm(fmt.Sprintf("max_buf=%d", h.atLeast(buffer, "tcp.max_buf")), fmt.Sprintf("%s=%d", name, h.atLeast(buffer, "tcp."+name)))
	case "windows":
		return h.raiseAutotuning(window)
	}
	return Remedy{}
}

// BootedBuffer gives a Linux host the greatest buffer back that it would set as it boots.
func BootedBuffer(h *Host, sends bool) Remedy {
	name := "net.ipv4.tcp_rmem"
	if sends {
		name = "net.ipv4.tcp_wmem"
	}
	return Sysctls(h, fmt.Sprintf("%s='%s %d'", name, h.lower(name), h.BootBuffer(sends)))
}

// raiseAutotuning chooses the level whose window suffices; there is none above
// the highest.
func (h *Host) raiseAutotuning(window int64) Remedy {
	level := "normal"
	if window > autotuning(level) {
		level = "experimental"
	}
	if has, _ := h.Sysctl("Internet.AutoTuningLevelLocal"); autotuning(has) >= autotuning(level) {
		return Remedy{}
	}
	return Commands(netshLasts, "netsh int tcp set global autotuninglevel="+level)
}

// atLeast is a value for a setting, but no less than it has now.
func (h *Host) atLeast(value int64, name string) int64 {
	has, _ := h.Number(name)
	return max(value, has)
}

// raise words a setting of one number that never gets less than it is.
func (h *Host) raise(name string, value int64) string {
	return fmt.Sprintf("%s=%d", name, h.atLeast(value, name))
}

// lower are the first two of the three numbers of tcp_rmem or tcp_wmem, as
// the host has them; the kernel's defaults where it does not say (tcp(7)).
func (h *Host) lower(name string) string {
	text, _ := h.Sysctl(name)
	fields := strings.Fields(text)
	isNumber := func(s string) bool { n, err := strconv.ParseInt(s, 10, 64); return err == nil && n > 0 }
	switch {
	case len(fields) == 3 && !slices.ContainsFunc(fields, func(s string) bool { return !isNumber(s) }):
		return fields[0] + " " + fields[1]
	case strings.HasSuffix(name, "wmem"):
		return "4096 16384"
	}
	return "4096 131072"
}

// RaiseLimit lets programs ask for the window.
func RaiseLimit(h *Host, window int64) Remedy {
	switch h.System {
	case "linux":
		var short []string
		for _, name := range []string{"net.core.rmem_max", "net.core.wmem_max"} {
			if has, _ := h.Number(name); has < window {
				short = append(short, fmt.Sprintf("%s=%d", name, window))
			}
		}
		return Sysctls(h, short...)
	case "freebsd":
		return Sysctls(h, h.raise("kern.ipc.maxsockbuf", knob.MaxSockBuf(window)))
	case "solaris", "illumos":
		return ipadm(fmt.Sprintf("max_buf=%d", h.atLeast(window, "tcp.max_buf")))
	}
	return Remedy{}
}

// MtuProbing lets TCP find the size that passes by itself (RFC 4821).
func MtuProbing(h *Host) Remedy {
	return Worded(Sysctls(h).Risk, h.Typed(knob.MTUProbing, "", "1"))
}

// CongestionControl chooses another one.
func CongestionControl(h *Host, name string) Remedy {
	risk := Sysctls(h).Risk
	switch h.System {
	case "solaris", "illumos":
		risk = ipadmLasts
	case "windows":
		risk = netshLasts
	case "esxi":
		risk = EsxcliLasts
	}
	return Worded(risk, h.Typed(knob.Congestion, "", name))
}

// TcpPages words tcp_mem by its most, in pages of 4 KiB (ip-sysctl.rst).
func TcpPages(most int64) string {
	return fmt.Sprintf("net.ipv4.tcp_mem='%d %d %d'", most/2, most/4*3, most)
}

// twice of a number, within what the kernel takes.
func twice(n int64) string { return strconv.FormatInt(max(n, 2*min(n, 1<<29)), 10) }
