package advise

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"thru/internal/cause/knob"
	"thru/internal/measure"
)

// Host is an end point with what several rules ask of it.
type Host struct {
	Name  string
	Point *measure.EndPoint
	Facts *measure.Facts // never nil
	os    string         // "" not known
}

func newHost(e *measure.EndPoint) *Host {
	h := &Host{Name: e.Name, Point: e, Facts: e.Facts}
	if h.Facts == nil {
		h.Facts = &measure.Facts{}
	}
	if h.Facts.OS != nil {
		h.os = strings.ToLower(*h.Facts.OS)
	}
	return h
}

// IsLinux tells of a host whose knobs have Linux's values; where the system is
// not known it is taken for one.
func (h *Host) IsLinux() bool { return h.os == "" || h.os == "linux" }

// state is what is known of one knob of a host.
type state struct {
	Value    string // "" where it is not known
	Known    bool
	Possible string
	Refused  string // why thru does not set it there; "" it does
}

// State of a knob, by what the host says of its knobs, else by its facts.
func (h *Host) State(id, iface string) state {
	for _, k := range h.Point.Knobs {
		if k.Knob == id && k.Interface == iface {
			return state{k.Value, true, k.Possible, k.Refused}
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
func (s state) Is(value string) bool {
	fields := strings.Fields(s.Value)
	return len(fields) > 0 && fields[0] == value
}

// Number is the last of the numbers of a value: of three sizes the greatest.
// 0 where there is none.
func (s state) Number() int64 { return knob.Greatest(s.Value) }

// Most is the greatest that is possible; 0 where it is not told.
func (s state) Most() int64 { return knob.Greatest(s.Possible) }

// Offers tells whether a value is among those that are possible; true where it is not told.
func (s state) Offers(value string) bool {
	return s.Possible == "" || slices.Contains(strings.Fields(s.Possible), value)
}

// refuses says why thru does not change settings at this host at all; "" it does,
// or was not asked.
func (h *Host) refuses() string {
	switch {
	case h.Point.Speaks != "":
		return h.Name + " is no agent of thru: it speaks " + h.Point.Speaks
	case !h.IsLinux():
		return fmt.Sprintf("thru changes settings on Linux only, and %s runs %s", h.Name, h.os)
	case h.Point.Lost != "":
		return h.Name + " is no longer there: " + h.Point.Lost
	case h.Point.NoTune != "":
		return h.Point.NoTune
	}
	return ""
}

// CPUs that thru may use there; 0 where it is not known.
func (h *Host) CPUs() int {
	const most = 4096
	switch f := h.Facts; {
	case f.CPU != nil && f.CPU.Usable != nil && *f.CPU.Usable > 0:
		return min(*f.CPU.Usable, most)
	case f.Cores != nil && *f.Cores > 0:
		return min(*f.Cores, most)
	}
	return 0
}

// Near are the CPUs of the NUMA node of an interface; all where that is not known.
func (h *Host) Near(iface string) []int {
	if i := h.Facts.Interface(iface); i != nil && i.NUMANode != nil {
		for _, n := range h.Facts.NUMA {
			if n.Node == *i.NUMANode && len(n.CPUs) > 0 {
				return sound(n.CPUs)
			}
		}
	}
	all := make([]int, h.CPUs())
	for c := range all {
		all[c] = c
	}
	return all
}

// sound leaves out what is no number of a CPU.
func sound(cpus []int) []int {
	return slices.DeleteFunc(slices.Clone(cpus), func(c int) bool { return c < 0 || c >= 4096 })
}

// Speed of the wire behind an interface in bit/s; 0 where none is known.
func (h *Host) Speed(iface string) int64 {
	i := h.Facts.Interface(iface)
	if i == nil || i.SpeedBps == nil || *i.SpeedBps <= 0 || *i.SpeedBps > MostRate || i.Nominal != nil && *i.Nominal {
		return 0
	}
	return *i.SpeedBps
}

// Kind of an interface, "" where it is not known.
func (h *Host) Kind(iface string) string {
	if i := h.Facts.Interface(iface); i != nil && i.Kind != nil {
		return *i.Kind
	}
	return ""
}

// Has tells whether the host has a congestion control.
func (h *Host) Has(control string) bool {
	s := h.State(knob.Congestion, "")
	return slices.Contains(h.Facts.CongAvail, control) || s.Possible != "" && s.Offers(control)
}

// Route is the one to an address of which the host says that a congestion
// control can be named: the longest prefix; nil where there is none.
func (h *Host) Route(to netip.Addr) *measure.KnobState {
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
