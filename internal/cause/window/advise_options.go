package window

import (
	"thru/internal/cause/advise"
	"thru/internal/knob"
	"thru/internal/unit"
)

// OptionProposals are for options of TCP that an end does not offer, and for what
// TCP remembers.
func OptionProposals() []advise.Rule {
	return []advise.Rule{
		{Cause: "window-scaling-off", Propose: func(r advise.Request) []advise.Draft { return switchOn(r, knob.WindowScaling, "window scaling") }},
		{Cause: "sack-off", Propose: func(r advise.Request) []advise.Draft {
			return switchOn(r, knob.SACK, "selective acknowledgements (SACK)")
		}},
		{Cause: "timestamps-off", Propose: func(r advise.Request) []advise.Draft { return switchOn(r, knob.Timestamps, "TCP timestamps") }},
		{Cause: "slow-convergence", Propose: slowStart},
	}
}

// switchOn turns an option on at the ends where it is off. Both have to offer
// it, so where both do not it is one change. A box between that takes it out
// is cured by no setting.
func switchOn(r advise.Request, id, what string) []advise.Draft {
	var list []advise.Draft
	for _, h := range Both(r.Way) {
		s := h.State(id, "")
		if s.Value == "0" || !s.Known && h == r.At {
			list = append(list, advise.Change(h, id, "", "1", "%s on at %s", what, h.Name))
		}
	}
	if len(list) == 0 {
		return nil
	}
	d := list[0]
	for _, o := range list[1:] {
		d = d.And(o, "%s on at both ends", what)
	}
	if id == knob.WindowScaling {
		d = scaled(r, d)
	}
	if r.Finding != nil {
		d = d.ForWay(r.Way)
	}
	return []advise.Draft{d}
}

// plainWindowProposal is the most without window scaling (RFC 9293), in bytes.
const plainWindowProposal = 65535

// scaled expects what the buffers let the windows grow to.
func scaled(r advise.Request, d advise.Draft) advise.Draft {
	w := r.Way
	holds := w.Receiver().Holds()
	if s := w.Sender().Holds(); s > 0 {
		holds = min(holds, s)
	}
	plain, carries := w.Carries(plainWindowProposal), w.Carries(holds)
	if plain <= 0 || carries <= plain {
		return d
	}
	return d.Bring(carries, "RFC 7323, section 2.2", "up to %s: windows of up to %s instead of 64 KiB, which carry %s at %s of RTT",
		unit.Rate(carries), unit.Size(holds), unit.Rate(plain), unit.Duration(w.RTT()))
}

// Both ends of the direction, each once.
func Both(w *advise.Way) []*advise.Host {
	if w.Local() {
		return []*advise.Host{w.From}
	}
	return []*advise.Host{w.From, w.To}
}

// slowStart is for a rate that still rises: what an earlier connection found
// may hold it down, and a pause makes it begin anew.
func slowStart(r advise.Request) []advise.Draft {
	h := r.Way.From
	var list []advise.Draft
	if h.Value(knob.NoMetricsSave, "") == "0" {
		list = append(list, advise.Change(h, knob.NoMetricsSave, "", "1", "connections of %s do not begin with what earlier ones found", h.Name).ForWay(r.Way))
	}
	if h.Value(knob.SlowStartIdle, "") == "1" {
		list = append(list, advise.Change(h, knob.SlowStartIdle, "", "0", "connections of %s keep their rate over a pause", h.Name).ForWay(r.Way))
	}
	return list
}
