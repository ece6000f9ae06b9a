package advise

import (
	"slices"
	"strconv"
	"strings"

	"thru/internal/knob"
	"thru/internal/measure"
	"thru/internal/unit"
)

// controlRules are for congestion control that does not suit the path.
func controlRules() []rule {
	return []rule{
		{"loss", sturdy},
		{"policer", sturdy},
		{"reordering", sturdy},
		{"paced", unpaced},
	}
}

// control is what connections of the direction get, "" not known: what the host
// says now, else of the probe, of the run, of the facts.
func (w *way) control() string {
	if route := w.from.route(w.peer(w.from)); route != nil && route.Value != "" {
		return strings.ToLower(route.Value)
	}
	if s := w.from.state(knob.Congestion, ""); s.known && len(w.from.point.Knobs) > 0 {
		return strings.ToLower(s.value)
	}
	if w.there != nil && w.there.Congestion != nil {
		return strings.ToLower(*w.there.Congestion)
	}
	if w.cell != nil && w.cell.Spec.Congestion != "" {
		return w.cell.Spec.Congestion
	}
	return strings.ToLower(w.from.value(knob.Congestion, ""))
}

// paces tells the congestion controls whose segments leave at a rate of their own.
func paces(control string) bool { return strings.HasPrefix(control, "bbr") }

// sturdy is a congestion control that does not take each loss for a full path.
func sturdy(r request) []draft {
	w := r.way
	if w.cell != nil && w.cell.Protocol != measure.TCP {
		return nil
	}
	now, want := w.control(), "bbr"
	if paces(now) {
		return w.fairQueue(w.from, r.here(w.from))
	}
	if !w.from.has(want) {
		if want = "cubic"; now == want || now == "" || !w.from.has(want) {
			return nil
		}
	}
	return w.use(want, hopes()[r.cause])
}

// hopes are what a control that does not take each loss for a full path was
// measured to bring.
func hopes() map[string]string {
	return map[string]string{
		"loss":       "bbr for cubic: 20 to 185 Mb/s at 0.1% loss and 20 ms",
		"policer":    "bbr for cubic: 55 to 95 of the 100 Mb/s that a policer lets pass",
		"reordering": "bbr does not slow down for each segment that comes late; how much that is, is measured",
	}
}

// unpaced is one that does not space its segments, which costs a near path much.
func unpaced(r request) []draft {
	w := r.way
	if now := w.control(); now != "" && !paces(now) {
		return nil
	}
	const hope = "cubic for bbr: 15 to 43 Gb/s over loopback, where pacing costs most"
	for _, want := range []string{"cubic", "reno"} {
		if w.from.has(want) {
			return w.use(want, hope)
		}
	}
	return w.use("cubic", hope)
}

// use has the sender of the direction use a congestion control: where a route
// names one, by the route, and where the system refuses another, too. A test
// can ask for one by itself as long as no route names one.
func (w *way) use(want, hope string) []draft {
	h := w.from
	route := h.route(w.peer(h))
	named := route != nil && route.Value != ""
	host := h.state(knob.Congestion, "")
	overridden := host.known && w.there != nil && w.there.Congestion != nil && !strings.EqualFold(*w.there.Congestion, host.value)
	var d draft
	switch {
	case named, route != nil && (host.refused != "" || !host.offers(want)):
		d = change(h, knob.RouteCongestion, route.Interface, want, "%s for connections from %s to %s", want, h.name, w.to.name)
	case overridden && route == nil && len(h.point.Knobs) == 0:
		d = change(h, knob.RouteCongestion, "", want, "%s for connections from %s to %s: a route names %s", want, h.name, w.to.name, w.control())
	default:
		d = change(h, knob.Congestion, "", want, "%s for new connections of %s", want, h.name)
	}
	d = d.forWay(w).bring(0, "measured with thru in a lab", "%s", hope)
	if paces(want) && h.needsFairQueue() {
		for _, q := range w.fairQueue(h, w.face(h)) {
			d = d.and(q, "%s, with the qdisc fq that paces it", d.title)
		}
	}
	x := w.best(func(x *measure.Cell) bool {
		return x.Spec.Congestion == want && w.cell != nil && x.Streams == w.cell.Streams
	})
	if x != nil {
		d = w.shown(d, x)
	}
	list := []draft{d}
	if !named && !overridden {
		t := draft{id: knob.TestCongestion + "=" + want, title: "the test asks for " + want + " itself", test: &measure.TestOptions{Congestion: want, Flags: "-C " + want}}.forWay(w).bring(0, d.source, "%s", hope).atLast()
		if x != nil {
			t = w.shown(t, x)
		}
		list = append(list, t)
	}
	return list
}

// shown expects what another measurement of the document has shown.
func (w *way) shown(d draft, x *measure.Cell) draft {
	return d.bring(x.Goodput.Value, "measured in this result", "%s, as the same traffic carried with it in this result", unit.Rate(x.Goodput.Value))
}

// fairQueue is the qdisc that paces each connection, where the interface has a
// plain one; nothing where it has it, or one that somebody has set up.
func (w *way) fairQueue(h *host, face string) []draft {
	s := h.state(knob.Qdisc, face)
	if !s.known || s.refused != "" || !slices.Contains([]string{"pfifo_fast", "fq_codel", "noqueue"}, s.value) || s.possible != "" && !s.offers("fq") || h.kind(face) == "veth" {
		return nil
	}
	return []draft{change(h, knob.Qdisc, face, "fq", "%s of %s has the qdisc fq, which paces connections", face, h.name).forWay(w)}
}

// needsFairQueue tells of kernels whose TCP does not pace by itself: before 4.13.
func (h *host) needsFairQueue() bool {
	if h.facts.Kernel == nil || !h.isLinux() {
		return false
	}
	parts := strings.SplitN(*h.facts.Kernel, ".", 3)
	if len(parts) < 2 {
		return false
	}
	major, errA := strconv.Atoi(parts[0])
	minor, errB := strconv.Atoi(parts[1])
	return errA == nil && errB == nil && (major < 4 || major == 4 && minor < 13)
}
