package control

import (
	"slices"
	"strconv"
	"strings"

	"thru/internal/cause/advise"
	"thru/internal/knob"
	"thru/internal/measure"
)

// ControlProposals are for congestion control that does not suit the path.
func ControlProposals() []advise.Rule {
	return []advise.Rule{
		{Cause: "loss", Propose: sturdy},
		{Cause: "policer", Propose: sturdy},
		{Cause: "reordering", Propose: sturdy},
		{Cause: "paced", Propose: unpaced},
	}
}

// controlOfWay is what connections of the direction get, "" not known: what the host
// says now, else of the probe, of the run, of the facts.
func controlOfWay(w *advise.Way) string {
	if route := w.From.Route(w.Peer(w.From)); route != nil && route.Value != "" {
		return strings.ToLower(route.Value)
	}
	if s := w.From.State(knob.Congestion, ""); s.Known && len(w.From.Point.Knobs) > 0 {
		return strings.ToLower(s.Value)
	}
	if w.There != nil && w.There.Congestion != nil {
		return strings.ToLower(*w.There.Congestion)
	}
	if w.Cell != nil && w.Cell.Spec.Congestion != "" {
		return w.Cell.Spec.Congestion
	}
	return strings.ToLower(w.From.Value(knob.Congestion, ""))
}

// paces tells the congestion controls whose segments leave at a rate of their own.
func paces(control string) bool { return strings.HasPrefix(control, "bbr") }

// sturdy is a congestion control that does not take each loss for a full path.
func sturdy(r advise.Request) []advise.Draft {
	w := r.Way
	if w.Cell != nil && w.Cell.Protocol != measure.TCP {
		return nil
	}
	now, want := controlOfWay(w), "bbr"
	if paces(now) {
		return fairQueueOfWay(w, w.From, r.Here(w.From))
	}
	if !w.From.Has(want) {
		if want = "cubic"; now == want || now == "" || !w.From.Has(want) {
			return nil
		}
	}
	return use(w, want, hopes()[r.Cause])
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
func unpaced(r advise.Request) []advise.Draft {
	w := r.Way
	if now := controlOfWay(w); now != "" && !paces(now) {
		return nil
	}
	const hope = "cubic for bbr: 15 to 43 Gb/s over loopback, where pacing costs most"
	for _, want := range []string{"cubic", "reno"} {
		if w.From.Has(want) {
			return use(w, want, hope)
		}
	}
	return use(w, "cubic", hope)
}

// use has the sender of the direction use a congestion control: where a route
// names one, by the route, and where the system refuses another, too. A test
// can ask for one by itself as long as no route names one.
func use(w *advise.Way, want, hope string) []advise.Draft {
	h := w.From
	route := h.Route(w.Peer(h))
	named := route != nil && route.Value != ""
	host := h.State(knob.Congestion, "")
	overridden := host.Known && w.There != nil && w.There.Congestion != nil && !strings.EqualFold(*w.There.Congestion, host.Value)
	var d advise.Draft
	switch {
	case named, route != nil && (host.Refused != "" || !host.Offers(want)):
		d = advise.Change(h, knob.RouteCongestion, route.Interface, want, "%s for connections from %s to %s", want, h.Name, w.To.Name)
	case overridden && route == nil && len(h.Point.Knobs) == 0:
		d = advise.Change(h, knob.RouteCongestion, "", want, "%s for connections from %s to %s: a route names %s", want, h.Name, w.To.Name, controlOfWay(w))
	default:
		d = advise.Change(h, knob.Congestion, "", want, "%s for new connections of %s", want, h.Name)
	}
	d = d.ForWay(w).Bring(0, "measured with thru in a lab", "%s", hope)
	if paces(want) && needsFairQueue(h) {
		for _, q := range fairQueueOfWay(w, h, w.Face(h)) {
			d = d.And(q, "%s, with the qdisc fq that paces it", d.Title)
		}
	}
	x := w.Best(func(x *measure.Cell) bool {
		return x.Spec.Congestion == want && w.Cell != nil && x.Streams == w.Cell.Streams
	})
	if x != nil {
		d = w.Shown(d, x)
	}
	list := []advise.Draft{d}
	if !named && !overridden {
		t := advise.Draft{Id: knob.TestCongestion + "=" + want, Title: "the test asks for " + want + " itself", Test: &measure.TestOptions{Congestion: want, Flags: "-C " + want}}.ForWay(w).Bring(0, d.Source, "%s", hope).AtLast()
		if x != nil {
			t = w.Shown(t, x)
		}
		list = append(list, t)
	}
	return list
}

// fairQueueOfWay is the qdisc that paces each connection, where the interface has a
// plain one; nothing where it has it, or one that somebody has set up.
func fairQueueOfWay(w *advise.Way, h *advise.Host, face string) []advise.Draft {
	s := h.State(knob.Qdisc, face)
	if !s.Known || s.Refused != "" || !slices.Contains([]string{"pfifo_fast", "fq_codel", "noqueue"}, s.Value) || s.Possible != "" && !s.Offers("fq") || h.Kind(face) == "veth" {
		return nil
	}
	return []advise.Draft{advise.Change(h, knob.Qdisc, face, "fq", "%s of %s has the qdisc fq, which paces connections", face, h.Name).ForWay(w)}
}

// needsFairQueue tells of kernels whose TCP does not pace by itself: before 4.13.
func needsFairQueue(h *advise.Host) bool {
	if h.Facts.Kernel == nil || !h.IsLinux() {
		return false
	}
	parts := strings.SplitN(*h.Facts.Kernel, ".", 3)
	if len(parts) < 2 {
		return false
	}
	major, errA := strconv.Atoi(parts[0])
	minor, errB := strconv.Atoi(parts[1])
	return errA == nil && errB == nil && (major < 4 || major == 4 && minor < 13)
}
