package advise

import (
	"slices"
	"strings"

	"thru/internal/cause/diagnose"
	"thru/internal/cause/knob"
	"thru/internal/cause/scene"
	"thru/internal/measure"
	"thru/internal/unit"
)

// Shown sets the expected rate to that of another measurement of the document.
func (w *Direction) Shown(d Draft, x *measure.Cell) Draft {
	return d.Bring(x.Goodput.Value, "measured in this result", "%s, which the same traffic reached with it in this result", unit.Rate(x.Goodput.Value))
}

// CongestionOf returns the congestion control of connections of the direction, "" if not known: the host's current
// value, else that of the probe, of the run, or of the facts.
func CongestionOf(w *Direction) string {
	if route := w.From.RouteTo(w.Peer(w.From)); route != nil && route.Value != "" {
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

// Use makes the sender of the direction use a congestion control: through the route if a route names one, or if
// the system refuses another. While no route names one, a test can request it itself.
func Use(w *Direction, want, hope string) []Draft {
	h := w.From
	route := h.RouteTo(w.Peer(h))
	named := route != nil && route.Value != ""
	host := h.State(knob.Congestion, "")
	overridden := host.Known && w.There != nil && w.There.Congestion != nil && !strings.EqualFold(*w.There.Congestion, host.Value)
	var d Draft
	switch {
	case named, route != nil && (host.Refused != "" || !host.Offers(want)):
		d = Change(h, knob.RouteCongestion, route.Interface, want, "%s for connections from %s to %s", want, h.Name, w.To.Name)
	case overridden && route == nil && len(h.Point.Knobs) == 0:
		d = Change(h, knob.RouteCongestion, "", want, "%s for connections from %s to %s: a route sets %s", want, h.Name, w.To.Name, CongestionOf(w))
	default:
		d = Change(h, knob.Congestion, "", want, "%s for new connections of %s", want, h.Name)
	}
	d = d.ForDirection(w).Bring(0, "measured with thru in a lab", "%s", hope)
	if diagnose.Paces(want) && h.KernelBefore(4, 13) {
		for _, q := range FairQueue(w, h, w.Face(h)) {
			d = d.And(q, "%s, with the qdisc fq that paces it", d.Title)
		}
	}
	x := w.Best(func(x *measure.Cell) bool {
		return x.Spec.Congestion == want && w.Cell != nil && x.Streams == w.Cell.Streams
	})
	if x != nil {
		d = w.Shown(d, x)
	}
	list := []Draft{d}
	if !named && !overridden {
		t := Draft{Id: knob.TestCongestion + "=" + want, Title: "the test itself requests " + want, Test: &measure.TestOptions{Congestion: want, Flags: "-C " + want}}.ForDirection(w).Bring(0, d.Source, "%s", hope).AtLast()
		if x != nil {
			t = w.Shown(t, x)
		}
		list = append(list, t)
	}
	return list
}

// FairQueue proposes the qdisc that paces each connection if the interface has a default one; nothing if it has fq
// already, or a deliberately configured one.
func FairQueue(w *Direction, h *scene.Host, face string) []Draft {
	s := h.State(knob.Qdisc, face)
	if !s.Known || s.Refused != "" || !slices.Contains([]string{"pfifo_fast", "fq_codel", "noqueue"}, s.Value) || s.Possible != "" && !s.Offers("fq") || h.FaceOf(face).KindName() == "veth" {
		return nil
	}
	return []Draft{Change(h, knob.Qdisc, face, "fq", "%s of %s has the qdisc fq, which paces connections", face, h.Name).ForDirection(w)}
}
