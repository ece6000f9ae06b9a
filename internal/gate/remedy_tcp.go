package gate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
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
	names := s.names[h.os]
	if len(names) == 0 {
		return remedy{}
	}
	switch h.os {
	case "windows":
		return commands(netshLasts, "netsh int tcp set global autotuninglevel=normal")
	case "solaris", "illumos":
		name, value := strings.TrimPrefix(names[0], "tcp."), "1"
		if name == "sack" {
			value = "active"
		}
		return ipadm(name + "=" + value)
	}
	return sysctls(h, names[0]+"=1")
}

// setBuffers lets one connection have the window under way: twice of it as
// buffer on Linux, whose bookkeeping takes up to half, and in which a sender
// wants the room of the next window beside (net/ipv4/tcp_input.c,
// tcp_sndbuf_expand).
func setBuffers(h *host, window int64) remedy {
	buffer := 2 * window
	switch h.os {
	case "linux":
		return sysctls(h, fmt.Sprintf("net.ipv4.tcp_rmem='%s %d'", h.lower("net.ipv4.tcp_rmem", 4096, 131072), buffer),
			fmt.Sprintf("net.ipv4.tcp_wmem='%s %d'", h.lower("net.ipv4.tcp_wmem", 4096, 16384), buffer))
	case "freebsd":
		// The ceiling first: the others are refused above it.
		return sysctls(h, fmt.Sprintf("kern.ipc.maxsockbuf=%d", ceilingBSD(buffer)),
			fmt.Sprintf("net.inet.tcp.recvbuf_max=%d", buffer), fmt.Sprintf("net.inet.tcp.sendbuf_max=%d", buffer))
	case "darwin":
		return sysctls(h, fmt.Sprintf("kern.ipc.maxsockbuf=%d", ceilingBSD(buffer)),
			fmt.Sprintf("net.inet.tcp.autorcvbufmax=%d", buffer), fmt.Sprintf("net.inet.tcp.autosndbufmax=%d", buffer))
	case "solaris", "illumos":
		return ipadm(fmt.Sprintf("max_buf=%d", buffer), fmt.Sprintf("recv_buf=%d", buffer), fmt.Sprintf("send_buf=%d", buffer))
	case "windows":
		level := "normal"
		if window > autotuning(level) {
			level = "experimental"
		}
		return commands(netshLasts, "netsh int tcp set global autotuninglevel="+level)
	}
	return remedy{}
}

// ceilingBSD is the maxsockbuf under which a buffer of so many bytes is granted.
func ceilingBSD(buffer int64) int64 {
	return (buffer + clusterBytes - 1) / clusterBytes * clusterWithHeader
}

// lower are the first two of the three numbers of tcp_rmem or tcp_wmem, as
// the host has them; the defaults where it does not say.
func (h *host) lower(name string, least, usual int64) string {
	text, _ := h.sysctl(name)
	fields := strings.Fields(text)
	isNumber := func(s string) bool { n, err := strconv.ParseInt(s, 10, 64); return err == nil && n > 0 }
	if len(fields) == 3 && !slices.ContainsFunc(fields, func(s string) bool { return !isNumber(s) }) {
		return fields[0] + " " + fields[1]
	}
	return fmt.Sprintf("%d %d", least, usual)
}

// raiseLimit lets programs ask for the window.
func raiseLimit(h *host, window int64) remedy {
	switch h.os {
	case "linux":
		return sysctls(h, fmt.Sprintf("net.core.rmem_max=%d", window), fmt.Sprintf("net.core.wmem_max=%d", window))
	case "freebsd":
		return sysctls(h, fmt.Sprintf("kern.ipc.maxsockbuf=%d", ceilingBSD(window)))
	case "solaris", "illumos":
		return ipadm(fmt.Sprintf("max_buf=%d", window))
	}
	return remedy{}
}

// mtuProbing lets TCP find the size that passes by itself (RFC 4821).
func mtuProbing(h *host) remedy {
	switch h.os {
	case "linux":
		return sysctls(h, "net.ipv4.tcp_mtu_probing=1")
	case "freebsd", "darwin":
		return sysctls(h, "net.inet.tcp.pmtud_blackhole_detection=1")
	}
	return remedy{}
}

// congestionControl chooses another one.
func congestionControl(h *host, name string) remedy {
	switch h.os {
	case "linux":
		return sysctls(h, command("net.ipv4.tcp_congestion_control=%s", name))
	case "freebsd":
		return sysctls(h, command("net.inet.tcp.cc.algorithm=%s", name))
	case "solaris", "illumos":
		return ipadm(command("cong_default=%s", name))
	case "windows":
		return commands(netshLasts, command("netsh int tcp set supplemental template=internet congestionprovider=%s", name))
	}
	return remedy{}
}

// tcpPages words tcp_mem by its most, in pages of 4 KiB (ip-sysctl.rst).
func tcpPages(most int64) string {
	return fmt.Sprintf("net.ipv4.tcp_mem='%d %d %d'", most/2, most/4*3, most)
}

// twice of a number, within what the kernel takes.
func twice(n int64) string { return strconv.FormatInt(2*min(n, 1<<29), 10) }
