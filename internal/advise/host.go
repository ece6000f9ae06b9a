package advise

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"thru/internal/knob"
	"thru/internal/measure"
)

// host is an end point with what several rules ask of it.
type host struct {
	name  string
	point *measure.EndPoint
	facts *measure.Facts // never nil
	os    string         // "" not known
}

func newHost(e *measure.EndPoint) *host {
	h := &host{name: e.Name, point: e, facts: e.Facts}
	if h.facts == nil {
		h.facts = &measure.Facts{}
	}
	if h.facts.OS != nil {
		h.os = strings.ToLower(*h.facts.OS)
	}
	return h
}

// isLinux tells of a host whose knobs have Linux's values; where the system is
// not known it is taken for one.
func (h *host) isLinux() bool { return h.os == "" || h.os == "linux" }

// state is what is known of one knob of a host.
type state struct {
	value    string // "" where it is not known
	known    bool
	possible string
	refused  string // why thru does not set it there; "" it does
}

// state of a knob, by what the host says of its knobs, else by its facts.
func (h *host) state(id, iface string) state {
	for _, k := range h.point.Knobs {
		if k.Knob == id && k.Interface == iface {
			return state{k.Value, true, k.Possible, k.Refused}
		}
	}
	s := h.fromFacts(id, iface)
	if len(h.point.Knobs) > 0 {
		s.refused = "thru finds no such setting at " + h.name
	}
	return s
}

// value of a knob, "" where it is not known.
func (h *host) value(id, iface string) string { return h.state(id, iface).value }

// is tells whether a switch has a value: "on" of an offload whose text has its
// parts behind it, too.
func (s state) is(value string) bool {
	fields := strings.Fields(s.value)
	return len(fields) > 0 && fields[0] == value
}

// number is the last of the numbers of a value: of three sizes the greatest.
// 0 where there is none.
func (s state) number() int64 { return knob.Greatest(s.value) }

// most is the greatest that is possible; 0 where it is not told.
func (s state) most() int64 { return knob.Greatest(s.possible) }

// offers tells whether a value is among those that are possible; true where it is not told.
func (s state) offers(value string) bool {
	return s.possible == "" || slices.Contains(strings.Fields(s.possible), value)
}

// refuses says why thru does not change settings at this host at all; "" it does,
// or was not asked.
func (h *host) refuses() string {
	switch {
	case h.point.Speaks != "":
		return h.name + " is no agent of thru: it speaks " + h.point.Speaks
	case !h.isLinux():
		return fmt.Sprintf("thru changes settings on Linux only, and %s runs %s", h.name, h.os)
	case h.point.Lost != "":
		return h.name + " is no longer there: " + h.point.Lost
	case h.point.NoTune != "":
		return h.point.NoTune
	}
	return ""
}

// cpus that thru may use there; 0 where it is not known.
func (h *host) cpus() int {
	const most = 4096
	switch f := h.facts; {
	case f.CPU != nil && f.CPU.Usable != nil && *f.CPU.Usable > 0:
		return min(*f.CPU.Usable, most)
	case f.Cores != nil && *f.Cores > 0:
		return min(*f.Cores, most)
	}
	return 0
}

// near are the CPUs of the NUMA node of an interface; all where that is not known.
func (h *host) near(iface string) []int {
	if i := h.facts.Interface(iface); i != nil && i.NUMANode != nil {
		for _, n := range h.facts.NUMA {
			if n.Node == *i.NUMANode && len(n.CPUs) > 0 {
				return sound(n.CPUs)
			}
		}
	}
	all := make([]int, h.cpus())
	for c := range all {
		all[c] = c
	}
	return all
}

// sound leaves out what is no number of a CPU.
func sound(cpus []int) []int {
	return slices.DeleteFunc(slices.Clone(cpus), func(c int) bool { return c < 0 || c >= 4096 })
}

// speed of the wire behind an interface in bit/s; 0 where none is known.
func (h *host) speed(iface string) int64 {
	i := h.facts.Interface(iface)
	if i == nil || i.SpeedBps == nil || *i.SpeedBps <= 0 || *i.SpeedBps > mostRate || i.Nominal != nil && *i.Nominal {
		return 0
	}
	return *i.SpeedBps
}

// isDevice tells whether hardware, or what a hypervisor shows as such, is behind an interface.
func (h *host) isDevice(iface string) bool {
	i := h.facts.Interface(iface)
	return i != nil && i.Kind != nil && slices.Contains([]string{"physical", "virtual function", "paravirtual", "emulated"}, *i.Kind)
}

// kind of an interface, "" where it is not known.
func (h *host) kind(iface string) string {
	if i := h.facts.Interface(iface); i != nil && i.Kind != nil {
		return *i.Kind
	}
	return ""
}

// has tells whether the host has a congestion control.
func (h *host) has(control string) bool {
	s := h.state(knob.Congestion, "")
	return slices.Contains(h.facts.CongAvail, control) || s.possible != "" && s.offers(control)
}

// route is the one to an address of which the host says that a congestion
// control can be named: the longest prefix; nil where there is none.
func (h *host) route(to netip.Addr) *measure.KnobState {
	var best *measure.KnobState
	bits := -1
	for i := range h.point.Knobs {
		k := &h.point.Knobs[i]
		if k.Knob != knob.RouteCongestion {
			continue
		}
		dest, _, _ := strings.Cut(strings.TrimSpace(k.Interface), " ")
		if n := covers(dest, to); n > bits {
			best, bits = k, n
		}
	}
	return best
}

// covers is the length of the prefix that an address is in; -1 where it is not.
// "default" holds all; an address that is not known is held by a default alone.
func covers(dest string, to netip.Addr) int {
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
