package control

import (
	"slices"
	"strconv"
	"strings"

	"thru/internal/cause/gate"
	"thru/internal/cause/nic"
	"thru/internal/knob"
)

// Bounds of round trips in ns.
const (
	longRTT = 10e6  // from here on a connection needs long to find its rate again
	farRTT  = 100e6 // from here on Reno needs minutes to recover
)

// CongestionGates judge congestion control and queueing, and what TCP keeps
// from earlier connections.
func CongestionGates() []gate.Rule {
	return []gate.Rule{
		{ID: "congestion-control", Title: "Congestion control for this RTT", About: "the congestion control that connections of the path get, else the host's default, against the round trip",
			Warns:  "bbr where the RTT is below 1 ms (it paces), of a path over 2.5 Gb/s or of unknown rate; bbr on a kernel before 4.13 without fq; dctcp above 5 ms",
			Why:    "bbr paces each connection: 15 against 43 Gb/s with cubic on loopback",
			Source: "measured; Linux 4.13 gave TCP its own pacing timers; RFC 8257", Remedy: "cubic within a site", Cause: "paced", Checklist: []string{"C-17", "C-33"}, Host: congestion},
		{ID: "qdisc", Title: "Queueing discipline", About: "the discipline at the root of the interface",
			Warns:  "netem, which delays and drops on purpose; where --link-rate states a rate, a shaper (tbf, htb, cake, hfsc) on the route's interface",
			Why:    "what shapes, delays or drops at the sender is measured as if the path did it",
			Source: "tc(8)", Remedy: "the kernel's default discipline; of a shaper, look at its rate first", Cause: "shaper", Checklist: []string{"C-33"}, Face: qdisc},
		{ID: "tcp-carry-over", Title: "What TCP remembers", About: "tcp_no_metrics_save and tcp_slow_start_after_idle, where the path is long (10 ms) and holds more than 1 MB; information only",
			Why:    "a threshold kept from an earlier connection that lost packets makes the next ones start slowly",
			Source: "ip-sysctl.rst", Remedy: "do not keep it while measuring", Cause: "slow-convergence", Checklist: []string{"C-17"}, Host: carryOver},
	}
}

// control is the congestion control that the host's connections get on the
// path, else its default, in small letters; "" unknown.
func control(h *gate.Host) string {
	for _, w := range h.Ways() {
		if w.From == h.Name && w.Congestion != nil {
			return strings.ToLower(*w.Congestion)
		}
	}
	name, _ := standardControl(h)
	return name
}

func congestion(h *gate.Host) *gate.Finding {
	name, rtt := control(h), h.RTT()
	near := rtt > 0 && rtt < gate.LanRTT || h.End.Shared && h.End.Route != nil // a test of loopback
	switch {
	case h.Subject.UDP:
		return nil
	case name == "":
		return h.Missing("congestion control", "congestion_control")
	case strings.HasPrefix(name, "bbr") && near && h.Scene.Rate() > 0 && h.Scene.Rate() <= nic.SlowLink:
		return gate.Pass("%s%s: at %s its small bursts cost the CPUs little", name, atRTT(rtt), gate.Rate(h.Scene.Rate()))
	case strings.HasPrefix(name, "bbr") && near:
		where := "within a site"
		if rtt == 0 {
			where = "on loopback"
		}
		return gate.Warn("%s %s%s", name, where, atRTT(rtt)).Do(otherControl(h))
	case strings.HasPrefix(name, "bbr") && before(h, 4, 13) && !fairQueue(h):
		return gate.Warn("%s on kernel %s without the qdisc fq", name, *h.Kernel).
			Because("before Linux 4.13 bbr has no pacing but fq's, and floods the path").Do(fairQueueing(h))
	case name == "dctcp" && rtt > 5e6:
		return gate.Warn("dctcp%s", atRTT(rtt)).Because("dctcp is for data centers whose switches mark: elsewhere it crowds out others").
			Do(otherControl(h))
	case (name == "reno" || name == "newreno") && rtt >= farRTT:
		return gate.Pass("%s%s: it takes minutes to recover from a loss; cubic is faster", name, atRTT(rtt))
	case rtt == 0:
		return gate.Pass("%s; the round trip is not known", name)
	}
	return gate.Pass("%s%s", name, atRTT(rtt))
}

// otherControl gives the host's connections of the path one that does not
// pace. What a route names counts before the host's default, and in a network
// namespace the kernel takes only what the host's own allows
// (tcp_set_default_congestion_control, ip-route(8)).
func otherControl(h *gate.Host) gate.Remedy {
	name := lossBased(h)
	if h.System != "linux" {
		return gate.CongestionControl(h, name)
	}
	route := gate.Command("`ip route replace ... congctl %s`, with the rest of the route as `ip route get` shows it", name)
	if standard, known := standardControl(h); known && standard != control(h) {
		return gate.Advise("a route of this host names " + gate.Command("%s", control(h)) + ": " + route)
	}
	r := gate.CongestionControl(h, name)
	return r.Risking(r.Risk + "; where it is refused (in a container): add it to net.ipv4.tcp_allowed_congestion_control " +
		"of the host's own network namespace first, or name it by the route: " + route)
}

// standardControl is the congestion control of connections for which no route names another.
func standardControl(h *gate.Host) (name string, known bool) {
	if h.Congestion != nil {
		return strings.ToLower(*h.Congestion), true
	}
	v, ok := h.Sysctl("net.ipv4.tcp_congestion_control", "net.inet.tcp.cc.algorithm", "cong_default", "CongestionProvider")
	return strings.ToLower(v), ok
}

func atRTT(rtt int64) string {
	if rtt == 0 {
		return ""
	}
	return " at " + gate.Span(rtt) + " RTT"
}

// lossBased is a congestion control that does not pace, of those that the host has.
func lossBased(h *gate.Host) string {
	for _, name := range []string{"cubic", "reno", "newreno"} {
		if slices.Contains(h.CongAvail, name) {
			return name
		}
	}
	return "cubic"
}

// before tells whether the host's Linux is older than a release.
func before(h *gate.Host, major, minor int) bool {
	if h.Kernel == nil || h.System != "linux" {
		return false
	}
	parts := strings.SplitN(*h.Kernel, ".", 3)
	if len(parts) < 2 {
		return false
	}
	a, errA := strconv.Atoi(parts[0])
	b, errB := strconv.Atoi(strings.TrimRight(parts[1], "-abcdefghijklmnopqrstuvwxyz+~"))
	return errA == nil && errB == nil && (a < major || a == major && b < minor)
}

// fairQueue tells whether the interface of the route has the qdisc fq.
func fairQueue(h *gate.Host) bool {
	i := h.Top()
	return i != nil && i.Qdisc != nil && slices.Contains(strings.Fields(*i.Qdisc), "fq")
}

// fairQueueing sets it.
func fairQueueing(h *gate.Host) gate.Remedy {
	if i := h.Top(); i != nil {
		return gate.Commands(gate.LinkLasts, i.Typed(knob.Qdisc, "fq")...)
	}
	return gate.Sysctls(h, "net.core.default_qdisc=fq")
}

func qdisc(f *gate.Face) *gate.Finding {
	if f.Qdisc == nil || *f.Qdisc == "noqueue" {
		return nil
	}
	kinds := strings.Fields(*f.Qdisc)
	if slices.Contains(kinds, "netem") {
		return gate.Warn("%s has the qdisc netem, which delays or drops on purpose", f.Name).
			Do(gate.Commands("whoever set it wants it back", gate.Command("tc qdisc del dev %s root", f.NIC())))
	}
	shaper := slices.IndexFunc(kinds, func(k string) bool { return slices.Contains(shapers(), k) })
	switch {
	case shaper >= 0 && f.Firm && f.Host.Subject.LinkBps > 0:
		return gate.Warn("%s has the qdisc %s, which may hold the rate below the %s that are wanted", f.Name, kinds[shaper], gate.Rate(f.Host.Subject.LinkBps)).
			Do(gate.Advise(gate.Command("`tc -s qdisc show dev %s` tells its rate (of htb and hfsc: `tc class show dev %s`)", f.NIC(), f.NIC())))
	case shaper >= 0:
		return gate.Pass("%s has the qdisc %s, which may hold the rate: it is the link then", f.Name, kinds[shaper])
	}
	return gate.Pass("%s has the qdisc %s", f.Name, strings.Join(kinds, " "))
}

// shapers are qdiscs that can hold what they pass to a rate. At which one is
// no fact of the host.
func shapers() []string { return []string{"tbf", "htb", "cake", "hfsc"} }

func carryOver(h *gate.Host) *gate.Finding {
	product, _ := h.BDP()
	if h.System != "linux" || product < 1e6 || h.RTT() < longRTT {
		return nil
	}
	var set []string
	if v, ok := h.Sysctl("net.ipv4.tcp_no_metrics_save"); ok && v == "0" {
		set = append(set, "net.ipv4.tcp_no_metrics_save=1")
	}
	if v, ok := h.Sysctl("net.ipv4.tcp_slow_start_after_idle"); ok && v == "1" {
		set = append(set, "net.ipv4.tcp_slow_start_after_idle=0")
	}
	if len(set) == 0 {
		return nil
	}
	return gate.Pass("TCP keeps what earlier connections found, or starts anew after a pause%s", atRTT(h.RTT())).Do(gate.Sysctls(h, set...))
}
