package scene

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"thru/internal/cause/knob"
	"thru/internal/measure"
)

// IsLinux reports whether a host's knobs have Linux values; an unknown system counts as Linux.
func (h *Host) IsLinux() bool { return h.System == "" || h.System == "linux" }

// KernelBefore reports whether the host's Linux kernel is older than a version; false if it is not known.
func (h *Host) KernelBefore(major, minor int) bool {
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

// State is the known state of one knob of a host.
type State struct {
	Value    string // "" if it is not known
	Known    bool
	Possible string
	Refused  string // why thru does not set it there; "" it does
}

// State returns the state of a knob from the host's reported knobs, or else from its facts.
func (h *Host) State(id, iface string) State {
	for _, k := range h.Point.Knobs {
		if k.Knob == id && k.Interface == iface {
			return State{k.Value, true, k.Possible, k.Refused}
		}
	}
	s := h.fromFacts(id, iface)
	if len(h.Point.Knobs) > 0 {
		s.Refused = "thru does not find this setting at " + h.Name
	}
	return s
}

// Value returns the value of a knob, "" if it is not known.
func (h *Host) Value(id, iface string) string { return h.State(id, iface).Value }

// Is reports whether a switch has a value; "on" also matches an offload whose text lists its parts after it.
func (s State) Is(value string) bool {
	fields := strings.Fields(s.Value)
	return len(fields) > 0 && fields[0] == value
}

// Number returns the last number of a value, which of three sizes is the maximum; 0 if there is none.
func (s State) Number() int64 { return knob.Greatest(s.Value) }

// Most returns the highest possible number; 0 if not known.
func (s State) Most() int64 { return knob.Greatest(s.Possible) }

// Offers reports whether a value is possible; true if the possible values are not known.
func (s State) Offers(value string) bool {
	return s.Possible == "" || slices.Contains(strings.Fields(s.Possible), value)
}

// fromFacts reads a knob from the facts, in the agent's format.
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

// possibleAt returns the highest value of a knob of an interface; "" if not known.
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

// fixedAt returns why an offload of an interface cannot be changed; "" if it can.
func fixedAt(id string, i *measure.Interface) string {
	if !knob.IsFixed(i, id) {
		return ""
	}
	return "the driver of " + i.Name + " cannot change it"
}

// Has reports whether the host has a congestion control.
func (h *Host) Has(control string) bool {
	s := h.State(knob.Congestion, "")
	return slices.Contains(h.CongAvail, control) || s.Possible != "" && s.Offers(control)
}

// RouteTo returns the route to an address for which a congestion control can be set: the longest matching prefix;
// nil if there is none.
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

// Covers returns the length of the prefix that contains an address; -1 if it does not. "default" contains all; an
// unknown address matches only a default route.
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

// Setting returns a knob of the host with a value.
func (h *Host) Setting(id, iface, value string) measure.Setting {
	return measure.Setting{EndPoint: h.Name, Knob: id, Interface: iface, Value: value}
}
