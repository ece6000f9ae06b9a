package advise

import (
	"thru/internal/knob"
	"thru/internal/unit"
)

// optionRules are for options of TCP that an end does not offer, and for what
// TCP remembers.
func optionRules() []rule {
	return []rule{
		{"window-scaling-off", func(r request) []draft { return r.switchOn(knob.WindowScaling, "window scaling") }},
		{"sack-off", func(r request) []draft { return r.switchOn(knob.SACK, "selective acknowledgements (SACK)") }},
		{"timestamps-off", func(r request) []draft { return r.switchOn(knob.Timestamps, "TCP timestamps") }},
		{"slow-convergence", slowStart},
	}
}

// switchOn turns an option on at the ends where it is off. Both have to offer
// it, so where both do not it is one change. A box between that takes it out
// is cured by no setting.
func (r request) switchOn(id, what string) []draft {
	var list []draft
	for _, h := range r.way.both() {
		s := h.state(id, "")
		if s.value == "0" || !s.known && h == r.at {
			list = append(list, change(h, id, "", "1", "%s on at %s", what, h.name))
		}
	}
	if len(list) == 0 {
		return nil
	}
	d := list[0]
	for _, o := range list[1:] {
		d = d.and(o, "%s on at both ends", what)
	}
	if id == knob.WindowScaling {
		d = r.scaled(d)
	}
	if r.finding != nil {
		d = d.forWay(r.way)
	}
	return []draft{d}
}

// plainWindow is the most without window scaling (RFC 9293), in bytes.
const plainWindow = 65535

// scaled expects what the buffers let the windows grow to.
func (r request) scaled(d draft) draft {
	w := r.way
	holds := w.receiver().holds()
	if s := w.sender().holds(); s > 0 {
		holds = min(holds, s)
	}
	plain, carries := w.carries(plainWindow), w.carries(holds)
	if plain <= 0 || carries <= plain {
		return d
	}
	return d.bring(carries, "RFC 7323, section 2.2", "up to %s: windows of up to %s instead of 64 KiB, which carry %s at %s of RTT",
		unit.Rate(carries), unit.Size(holds), unit.Rate(plain), unit.Duration(w.rtt()))
}

// both ends of the direction, each once.
func (w *way) both() []*host {
	if w.local() {
		return []*host{w.from}
	}
	return []*host{w.from, w.to}
}

// slowStart is for a rate that still rises: what an earlier connection found
// may hold it down, and a pause makes it begin anew.
func slowStart(r request) []draft {
	h := r.way.from
	var list []draft
	if h.value(knob.NoMetricsSave, "") == "0" {
		list = append(list, change(h, knob.NoMetricsSave, "", "1", "connections of %s do not begin with what earlier ones found", h.name).forWay(r.way))
	}
	if h.value(knob.SlowStartIdle, "") == "1" {
		list = append(list, change(h, knob.SlowStartIdle, "", "0", "connections of %s keep their rate over a pause", h.name).forWay(r.way))
	}
	return list
}
