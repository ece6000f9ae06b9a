package scene

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"thru/internal/cause/knob"
	"thru/internal/measure"
)

// IsLinux tells of a host whose knobs have Linux's values; where the system is
// not known it is taken for one.
func (h *Host) IsLinux() bool { return h.System == "" || h.System == "linux" }

// State is what is known of one knob of a host.
type State struct {
	Value    string // "" where it is not known
	Known    bool
	Possible string
	Refused  string // why thru does not set it there; "" it does
}

// State of a knob, by what the host says of its knobs, else by its facts.
func (h *Host) State(id, iface string) State {
	for _, k := range h.Point.Knobs {
		if k.Knob == id && k.Interface == iface {
			return State{k.Value, true, k.Possible, k.Refused}
		}
	}
	s := h.fromFacts(id, iface)
	if len(h.Point.Knobs) > 0 {
		s.Refused = "thru finds no such setting at " + h.Name
	}
	return s
}

// Value of a knob, "" where it is not known.
func (h *Host) Value(id, iface string) string { return h.State(id, iface).Value }

// Is tells whether a switch has a value: "on" of an offload whose text has its
// parts behind it, too.
func (s State) Is(value string) bool {
	fields := strings.Fields(s.Value)
	return len(fields) > 0 && fields[0] == value
}

// Number is the last of the numbers of a value: of three sizes the greatest.
// 0 where there is none.
func (s State) Number() int64 { return knob.Greatest(s.Value) }

// Most is the greatest that is possible; 0 where it is not told.
func (s State) Most() int64 { return knob.Greatest(s.Possible) }

// Offers tells whether a value is among those that are possible; true where it is not told.
func (s State) Offers(value string) bool {
	return s.Possible == "" || slices.Contains(strings.Fields(s.Possible), value)
}

// fromFacts is what the facts tell of a knob, in the form that the agent gives it.
func (h *Host) fromFacts(id, iface string) State {
	f, s := h.Facts, State{Value: knob.FromFacts(h.Facts, id, iface)}
	s.Known = s.Value != ""
	switch {
	case id == knob.Congestion:
		s.Possible = strings.Join(f.CongAvail, " ")
	case id == knob.Governor && f.CPU != nil:
		s.Possible = strings.Join(f.CPU.Available, " ")
	case knob.Sysctl(id) != "":
		s.Known = s.Known && h.IsLinux()
	default:
		if i := h.Interface(iface); i != nil {
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

// Has tells whether the host has a congestion control.
func (h *Host) Has(control string) bool {
	s := h.State(knob.Congestion, "")
	return slices.Contains(h.CongAvail, control) || s.Possible != "" && s.Offers(control)
}

// RouteTo is the one to an address of which the host says that a congestion
// control can be named: the longest prefix; nil where there is none.
func (h *Host) RouteTo(to netip.Addr) *measure.KnobState {
	var best *measure.KnobState
	bits := -1
	for i := range h.Point.Knobs {
		k := &h.Point.Knobs[i]
		if k.Knob != knob.RouteCongestion {
			continue
		}
		dest, _, _ := strings.Cut(strings.TrimSpace(k.Interface), " ")
		if n := Covers(dest, to); n > bits {
			best, bits = k, n
		}
	}
	return best
}

// Covers is the length of the prefix that an address is in; -1 where it is not.
// "default" holds all; an address that is not known is held by a default alone.
func Covers(dest string, to netip.Addr) int {
	if dest == "default" {
		return 0
	}
	if a, err := netip.ParseAddr(dest); err == nil {
		if a.Unmap() == to {
			return a.BitLen()
		}
		return -1
	}
	p, err := netip.ParsePrefix(dest)
	if err != nil || !p.Contains(to) && (to.IsValid() || p.Bits() > 0) {
		return -1
	}
	return p.Bits()
}

// Setting of the host: a knob with a value.
func (h *Host) Setting(id, iface, value string) measure.Setting {
	return measure.Setting{EndPoint: h.Name, Knob: id, Interface: iface, Value: value}
}
