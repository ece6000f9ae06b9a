package advise

import (
	"fmt"
	"strings"

	"thru/internal/cause/knob"
	"thru/internal/measure"
)

// fromFacts is what the facts tell of a knob, in the form that the agent gives it.
func (h *Host) fromFacts(id, iface string) state {
	f, s := h.Facts, state{Value: knob.FromFacts(h.Facts, id, iface)}
	s.Known = s.Value != ""
	switch {
	case id == knob.Congestion:
		s.Possible = strings.Join(f.CongAvail, " ")
	case id == knob.Governor && f.CPU != nil:
		s.Possible = strings.Join(f.CPU.Available, " ")
	case knob.Sysctl(id) != "":
		s.Known = s.Known && h.IsLinux()
	default:
		if i := f.Interface(iface); i != nil {
			s.Possible, s.Refused = possibleAt(id, i), fixedAt(id, i)
		}
	}
	return s
}

// possibleAt is the greatest value of a knob of an interface; "" where it is not told.
func possibleAt(id string, i *measure.Interface) string {
	most := 0
	switch {
	case id == knob.MTU:
		most = measure.Value(i.MaxMTU)
	case id == knob.RXRing && i.Rings != nil:
		most = i.Rings.RXMax
	case id == knob.TXRing && i.Rings != nil:
		most = i.Rings.TXMax
	case id == knob.Channels && i.Channels != nil:
		return knob.Queues(i.Channels.CombinedMax, i.Channels.RXMax, i.Channels.TXMax)
	}
	if most <= 0 {
		return ""
	}
	return fmt.Sprint(most)
}

// fixedAt is why an offload of an interface cannot be changed; "" where it can.
func fixedAt(id string, i *measure.Interface) string {
	if !knob.IsFixed(i, id) {
		return ""
	}
	return "the driver of " + i.Name + " cannot change it"
}
