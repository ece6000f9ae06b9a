package gate

import (
	"slices"
	"strconv"
	"strings"

	"thru/internal/knob"
)

// Bounds of round trips in ns.
const (
	lanRTT  = 1e6   // below it a connection is within a site
	longRTT = 10e6  // from here on a connection needs long to find its rate again
	farRTT  = 100e6 // from here on Reno needs minutes to recover
)

// congestionRules judge congestion control and queueing, and what TCP keeps
// from earlier connections.
func congestionRules() []Rule {
	return []Rule{
		{ID: "congestion-control", Title: "Congestion control for this RTT", About: "the congestion control that connections of the path get, else the host's default, against the round trip",
			Warns:  "bbr where the RTT is below 1 ms (it paces), of a path over 2.5 Gb/s or of unknown rate; bbr on a kernel before 4.13 without fq; dctcp above 5 ms",
			Why:    "bbr paces each connection: 15 against 43 Gb/s with cubic on loopback",
			Source: "measured; Linux 4.13 gave TCP its own pacing timers; RFC 8257", Remedy: "cubic within a site", Cause: "paced", Checklist: []string{"C-17", "C-33"}, host: congestion},
		{ID: "qdisc", Title: "Queueing discipline", About: "the discipline at the root of the interface",
			Warns:  "netem, which delays and drops on purpose; where --link-rate states a rate, a shaper (tbf, htb, cake, hfsc) on the route's interface",
			Why:    "what shapes, delays or drops at the sender is measured as if the path did it",
			Source: "tc(8)", Remedy: "the kernel's default discipline; of a shaper, look at its rate first", Cause: "shaper", Checklist: []string{"C-33"}, face: qdisc},
		{ID: "tcp-carry-over", Title: "What TCP remembers", About: "tcp_no_metrics_save and tcp_slow_start_after_idle, where the path is long (10 ms) and holds more than 1 MB; information only",
			Why:    "a threshold kept from an earlier connection that lost packets makes the next ones start slowly",
			Source: "ip-sysctl.rst", Remedy: "do not keep it while measuring", Cause: "slow-convergence", Checklist: []string{"C-17"}, host: carryOver},
	}
}

// control is the congestion control that the host's connections get on the
// path, else its default, in small letters; "" unknown.
func (h *host) control() string {
	for _, w := range h.ways() {
		if w.from == h.name && w.Congestion != nil {
			return strings.ToLower(*w.Congestion)
		}
	}
	name, _ := h.standardControl()
	return name
}

func congestion(h *host) *finding {
	name, rtt := h.control(), h.rtt()
	near := rtt > 0 && rtt < lanRTT || h.end.Shared && h.end.Route != nil // a test of loopback
	switch {
	case h.subject.UDP:
		return nil
	case name == "":
		return h.missing("congestion control", "congestion_control")
	case strings.HasPrefix(name, "bbr") && near && h.scene.rate() > 0 && h.scene.rate() <= slowLink:
		return pass("%s%s: at %s its small bursts cost the CPUs little", name, atRTT(rtt), rate(h.scene.rate()))
	case strings.HasPrefix(name, "bbr") && near:
		where := "within a site"
		if rtt == 0 {
			where = "on loopback"
		}
		return warn("%s %s%s", name, where, atRTT(rtt)).do(h.otherControl())
	case strings.HasPrefix(name, "bbr") && h.before(4, 13) && !h.fairQueue():
		return warn("%s on kernel %s without the qdisc fq", name, *h.Kernel).
			because("before Linux 4.13 bbr has no pacing but fq's, and floods the path").do(fairQueueing(h))
	case name == "dctcp" && rtt > 5e6:
		return warn("dctcp%s", atRTT(rtt)).because("dctcp is for data centers whose switches mark: elsewhere it crowds out others").
			do(h.otherControl())
	case (name == "reno" || name == "newreno") && rtt >= farRTT:
		return pass("%s%s: it takes minutes to recover from a loss; cubic is faster", name, atRTT(rtt))
	case rtt == 0:
		return pass("%s; the round trip is not known", name)
	}
	return pass("%s%s", name, atRTT(rtt))
}

// otherControl gives the host's connections of the path one that does not
// pace. What a route names counts before the host's default, and in a network
// namespace the kernel takes only what the host's own allows
// (tcp_set_default_congestion_control, ip-route(8)).
func (h *host) otherControl() remedy {
	name := h.lossBased()
	if h.os != "linux" {
		return congestionControl(h, name)
	}
	route := command("`ip route replace ... congctl %s`, with the rest of the route as `ip route get` shows it", name)
	if standard, known := h.standardControl(); known && standard != h.control() {
		return advise("a route of this host names " + command("%s", h.control()) + ": " + route)
	}
	r := congestionControl(h, name)
	return r.risking(r.risk + "; where it is refused (in a container): add it to net.ipv4.tcp_allowed_congestion_control " +
		"of the host's own network namespace first, or name it by the route: " + route)
}

// standardControl is the congestion control of connections for which no route names another.
func (h *host) standardControl() (name string, known bool) {
	if h.Congestion != nil {
		return strings.ToLower(*h.Congestion), true
	}
	v, ok := h.sysctl("net.ipv4.tcp_congestion_control", "net.inet.tcp.cc.algorithm", "cong_default", "CongestionProvider")
	return strings.ToLower(v), ok
}

func atRTT(rtt int64) string {
	if rtt == 0 {
		return ""
	}
	return " at " + span(rtt) + " RTT"
}

// lossBased is a congestion control that does not pace, of those that the host has.
func (h *host) lossBased() string {
	for _, name := range []string{"cubic", "reno", "newreno"} {
		if slices.Contains(h.CongAvail, name) {
			return name
		}
	}
	return "cubic"
}

// before tells whether the host's Linux is older than a release.
func (h *host) before(major, minor int) bool {
	if h.Kernel == nil || h.os != "linux" {
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
func (h *host) fairQueue() bool {
	i := h.top()
	return i != nil && i.Qdisc != nil && slices.Contains(strings.Fields(*i.Qdisc), "fq")
}

// fairQueueing sets it.
func fairQueueing(h *host) remedy {
	if i := h.top(); i != nil {
		return commands(linkLasts, i.typed(knob.Qdisc, "fq")...)
	}
	return sysctls(h, "net.core.default_qdisc=fq")
}

func qdisc(f *face) *finding {
	if f.Qdisc == nil || *f.Qdisc == "noqueue" {
		return nil
	}
	kinds := strings.Fields(*f.Qdisc)
	if slices.Contains(kinds, "netem") {
		return warn("%s has the qdisc netem, which delays or drops on purpose", f.Name).
			do(commands("whoever set it wants it back", command("tc qdisc del dev %s root", f.nic())))
	}
	shaper := slices.IndexFunc(kinds, func(k string) bool { return slices.Contains(shapers(), k) })
	switch {
	case shaper >= 0 && f.firm && f.host.subject.LinkBps > 0:
		return warn("%s has the qdisc %s, which may hold the rate below the %s that are wanted", f.Name, kinds[shaper], rate(f.host.subject.LinkBps)).
			do(advise(command("`tc -s qdisc show dev %s` tells its rate (of htb and hfsc: `tc class show dev %s`)", f.nic(), f.nic())))
	case shaper >= 0:
		return pass("%s has the qdisc %s, which may hold the rate: it is the link then", f.Name, kinds[shaper])
	}
	return pass("%s has the qdisc %s", f.Name, strings.Join(kinds, " "))
}

// shapers are qdiscs that can hold what they pass to a rate. At which one is
// no fact of the host.
func shapers() []string { return []string{"tbf", "htb", "cake", "hfsc"} }

func carryOver(h *host) *finding {
	product, _ := h.bdp()
	if h.os != "linux" || product < 1e6 || h.rtt() < longRTT {
		return nil
	}
	var set []string
	if v, ok := h.sysctl("net.ipv4.tcp_no_metrics_save"); ok && v == "0" {
		set = append(set, "net.ipv4.tcp_no_metrics_save=1")
	}
	if v, ok := h.sysctl("net.ipv4.tcp_slow_start_after_idle"); ok && v == "1" {
		set = append(set, "net.ipv4.tcp_slow_start_after_idle=0")
	}
	if len(set) == 0 {
		return nil
	}
	return pass("TCP keeps what earlier connections found, or starts anew after a pause%s", atRTT(h.rtt())).do(sysctls(h, set...))
}
