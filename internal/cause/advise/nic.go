package advise

import (
	"fmt"
	"slices"
	"strings"

	"thru/internal/cause/knob"
	"thru/internal/cause/scene"
	"thru/internal/unit"
)

// OffloadsOffProposal switches on what is off, in the order in which one needs the
// other, as one change of the interface. A veth goes without GRO: what arrives
// there was never split.
func OffloadsOffProposal(r Request) []Draft {
	if r.At == nil {
		return nil
	}
	face := r.Here(r.At)
	var off, fixed, kept []string
	for _, id := range knob.Offloads() {
		s := r.At.State(id, face)
		switch {
		case id == knob.LRO || !s.Is("off") || id == knob.GRO && r.At.FaceOf(face).KindName() == "veth":
		case r.TakesBack(r.At.Setting(id, face, "on")):
			kept = append(kept, id)
		case s.Refused != "":
			fixed = append(fixed, id)
		default:
			off = append(off, id)
		}
	}
	if len(off) == 0 {
		off = fixed // then it is said why not
	}
	if len(off) == 0 {
		off = kept // which is dropped, so that no remedy in words asks for it either
	}
	if len(off) == 0 {
		return nil
	}
	d := Draft{Title: strings.Join(off, ", ") + " on at " + face + " of " + r.At.Name}
	for _, id := range off {
		d.Settings = append(d.Settings, r.At.Setting(id, face, "on"))
	}
	if r.Finding != nil {
		d = d.ForWay(r.Way)
	}
	return []Draft{d.Bring(0, "measured between namespaces; docs/causes.md, offloads-off", "less work for each byte: 9.1 Gb/s without TSO and 3.4 with none, of 49 with all")}
}

// Steering spreads the packets of the one queue by software (RPS), over the CPUs
// of the adapter's node without the one that takes its interrupts.
func Steering(r Request) []Draft {
	h := r.Receiving()
	if r.At != nil && r.At != r.Way.To && r.Cause == "receiver-cpu" {
		return nil
	}
	face := r.Here(h)
	queues, _ := Pairs(h.Value(knob.RPS, face))
	cpus := h.FaceOf(face).Near()
	if len(queues) != 1 || len(cpus) < 2 || h.FaceOf(face).KindName() == "loopback" || r.Way.Local() {
		return nil
	}
	if taker, known := taker(r, h, face); known && len(cpus) > 1 {
		cpus = slices.DeleteFunc(slices.Clone(cpus), func(c int) bool { return c == taker })
	}
	value := With("", queues[0], knob.Mask(cpus))
	where := "CPUs " + unit.List(cpus) + " share them"
	if len(cpus) == 1 {
		where = fmt.Sprintf("CPU %d takes them", cpus[0])
	}
	return []Draft{Change(h, knob.RPS, face, value, "packets of the one queue of %s at %s: %s (RPS)", face, h.Name, where).ForWay(r.Way)}
}

// taker is the CPU that takes the interrupts of an interface: as found, or as set.
func taker(r Request, h *scene.Host, face string) (cpu int, known bool) {
	if r.Finding != nil && r.Finding.Where.CPU != nil && r.Finding.Where.EndPoint == h.Name {
		return *r.Finding.Where.CPU, true
	}
	if i := h.Interface(face); i != nil && len(i.IRQs) == 1 && len(i.IRQs[0].Effective) == 1 {
		return i.IRQs[0].Effective[0], true
	}
	return 0, false
}
