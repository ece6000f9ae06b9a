package gate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"thru/internal/knob"
)

// sysctls words settings of one system, with how to keep them.
func sysctls(h *host, settings ...string) remedy {
	risk := sysctlLasts
	prefix := "sysctl -w "
	switch h.os {
	case "freebsd":
		prefix, risk = "sysctl ", sysctlConf
	case "darwin":
		risk = sysctlConf
	}
	var r remedy
	for _, s := range settings {
		r.lines = append(r.lines, prefix+s)
	}
	r.risk = risk
	return r
}

// ipadm words properties of TCP on Solaris and illumos.
func ipadm(settings ...string) remedy {
	r := remedy{risk: ipadmLasts}
	for _, s := range settings {
		r.lines = append(r.lines, "ipadm set-prop -p "+s+" tcp")
	}
	return r
}

// switchOn turns a switch of TCP on.
func switchOn(h *host, s setting) remedy {
	if len(s.names[h.os]) == 0 {
		return remedy{}
	}
	risk := sysctls(h).risk
	switch h.os {
	case "windows":
		risk = netshLasts
	case "solaris", "illumos":
		risk = ipadmLasts
	}
	return worded(risk, h.typed(s.knob, "", "1"))
}

// setBuffers lets one connection have the window under way: twice of it as
// buffer on Linux, whose bookkeeping takes up to half, and in which a sender
// wants the room of the next window beside (net/ipv4/tcp_input.c,
// tcp_sndbuf_expand). Only the buffer of one side is set, and never to less
// than it has.
func setBuffers(h *host, window int64, sends bool) remedy {
	buffer := 3 * window // and half as much again: the next round trip may be longer
	side := func(receive, send string) string {
		if sends {
			return send
		}
		return receive
	}
	switch h.os {
	case "linux":
		name := side("net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem")
		return sysctls(h, fmt.Sprintf("%s='%s %d'", name, h.lower(name), h.atLeast(buffer, name)))
	case "freebsd":
		// The ceiling first: the other is refused above it.
		return sysctls(h, h.raise("kern.ipc.maxsockbuf", knob.MaxSockBuf(buffer)), h.raise(side("net.inet.tcp.recvbuf_max", "net.inet.tcp.sendbuf_max"), buffer))
	case "darwin":
		return sysctls(h, h.raise("kern.ipc.maxsockbuf", knob.MaxSockBuf(buffer)), h.raise(side("net.inet.tcp.autorcvbufmax", "net.inet.tcp.autosndbufmax"), buffer))
	case "solaris", "illumos":
		name := side("recv_buf", "send_buf")
		return ipadm(fmt.Sprintf("max_buf=%d", h.atLeast(buffer, "tcp.max_buf")), fmt.Sprintf("%s=%d", name, h.atLeast(buffer, "tcp."+name)))
	case "windows":
		return h.raiseAutotuning(window)
	}
	return remedy{}
}

// bootedBuffer gives a Linux host the greatest buffer back that it would set as it boots.
func bootedBuffer(h *host, sends bool) remedy {
	name := "net.ipv4.tcp_rmem"
	if sends {
		name = "net.ipv4.tcp_wmem"
	}
	return sysctls(h, fmt.Sprintf("%s='%s %d'", name, h.lower(name), h.bootBuffer(sends)))
}

// raiseAutotuning chooses the level whose window suffices; there is none above
// the highest.
func (h *host) raiseAutotuning(window int64) remedy {
	level := "normal"
	if window > autotuning(level) {
		level = "experimental"
	}
	if has, _ := h.sysctl("Internet.AutoTuningLevelLocal"); autotuning(has) >= autotuning(level) {
		return remedy{}
	}
	return commands(netshLasts, "netsh int tcp set global autotuninglevel="+level)
}

// atLeast is a value for a setting, but no less than it has now.
func (h *host) atLeast(value int64, name string) int64 {
	has, _ := h.number(name)
	return max(value, has)
}

// raise words a setting of one number that never gets less than it is.
func (h *host) raise(name string, value int64) string {
	return fmt.Sprintf("%s=%d", name, h.atLeast(value, name))
}

// lower are the first two of the three numbers of tcp_rmem or tcp_wmem, as
// the host has them; the kernel's defaults where it does not say (tcp(7)).
func (h *host) lower(name string) string {
	text, _ := h.sysctl(name)
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

// raiseLimit lets programs ask for the window.
func raiseLimit(h *host, window int64) remedy {
	switch h.os {
	case "linux":
		var short []string
		for _, name := range []string{"net.core.rmem_max", "net.core.wmem_max"} {
			if has, _ := h.number(name); has < window {
				short = append(short, fmt.Sprintf("%s=%d", name, window))
			}
		}
		return sysctls(h, short...)
	case "freebsd":
		return sysctls(h, h.raise("kern.ipc.maxsockbuf", knob.MaxSockBuf(window)))
	case "solaris", "illumos":
		return ipadm(fmt.Sprintf("max_buf=%d", h.atLeast(window, "tcp.max_buf")))
	}
	return remedy{}
}

// mtuProbing lets TCP find the size that passes by itself (RFC 4821).
func mtuProbing(h *host) remedy {
	return worded(sysctls(h).risk, h.typed(knob.MTUProbing, "", "1"))
}

// congestionControl chooses another one.
func congestionControl(h *host, name string) remedy {
	risk := sysctls(h).risk
	switch h.os {
	case "solaris", "illumos":
		risk = ipadmLasts
	case "windows":
		risk = netshLasts
	case "esxi":
		risk = esxcliLasts
	}
	return worded(risk, h.typed(knob.Congestion, "", name))
}

// tcpPages words tcp_mem by its most, in pages of 4 KiB (ip-sysctl.rst).
func tcpPages(most int64) string {
	return fmt.Sprintf("net.ipv4.tcp_mem='%d %d %d'", most/2, most/4*3, most)
}

// twice of a number, within what the kernel takes.
func twice(n int64) string { return strconv.FormatInt(max(n, 2*min(n, 1<<29)), 10) }
