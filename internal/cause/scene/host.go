package scene

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"thru/internal/cause/knob"
	"thru/internal/measure"
)

// Host is an end with the data that several rules need. Its facts are never nil; known reports whether there are
// any.
type Host struct {
	*Scene
	End    *End
	Point  *measure.EndPoint // never nil
	Name   string
	System string
	Known  bool
	*measure.Facts
	byName map[string]*measure.Interface // of all interfaces: a host may have thousands
	Faces  []*Face                       // interfaces that the traffic passes, the one on top first
}

// NewHost returns an end with the data that several rules need.
func NewHost(sc *Scene, e *End) *Host {
	h := of(sc, e, &measure.EndPoint{Name: e.Name})
	h.byName = make(map[string]*measure.Interface, len(h.Interfaces))
	for i := range h.Interfaces {
		if d := &h.Interfaces[i]; h.byName[d.Name] == nil {
			h.byName[d.Name] = d
		}
	}
	h.Faces = h.pick()
	return h
}

// Of returns an end point of a result, with no interface picked to be judged.
func Of(e *measure.EndPoint) *Host {
	return of(&Scene{}, &End{Name: e.Name, Facts: e.Facts}, e)
}

func of(sc *Scene, e *End, point *measure.EndPoint) *Host {
	h := &Host{Scene: sc, End: e, Point: point, Name: e.Name, Known: e.Facts != nil, Facts: e.Facts}
	if !h.Known {
		h.Facts = &measure.Facts{}
	}
	if h.OS != nil {
		h.System = strings.ToLower(*h.OS)
	}
	return h
}

// Interface returns the interface of that name, or nil.
func (h *Host) Interface(name string) *measure.Interface {
	if h.byName == nil {
		return h.Facts.Interface(name)
	}
	return h.byName[name]
}

// WhyNot returns the host's reason for a missing fact, or for a missing parent or companion fact. reported is false if
// there is no reason.
func (h *Host) WhyNot(facts ...string) (why string, reported bool) {
	parent, _, _ := strings.Cut(facts[0], ".")
	return Reason(h.NotChecked, append(facts, parent)...), h.Known
}

// Guest reports whether the host is a virtual machine; known is false if it cannot say.
func (h *Host) Guest() (is, known bool) {
	return h.Hypervisor != nil && *h.Hypervisor != "none", h.Hypervisor != nil
}

// HypervisorName returns the hypervisor's name, or "".
func (h *Host) HypervisorName() string {
	if h.Hypervisor == nil {
		return ""
	}
	return *h.Hypervisor
}

// CPUs returns how many logical CPUs thru may use; 0 if not known.
func (h *Host) CPUs() int {
	switch {
	case h.CPU != nil && h.CPU.Usable != nil && *h.CPU.Usable > 0:
		return min(*h.CPU.Usable, mostCPUs)
	case h.Cores != nil && *h.Cores > 0:
		return min(*h.Cores, mostCPUs)
	}
	return 0
}

// mostCPUs limits the CPU count that a host may report.
const mostCPUs = 4096

// Sysctl returns the first of the settings that the host has. Systems differ in the names, and tools of the same
// system in upper and lower case.
func (h *Host) Sysctl(names ...string) (value string, ok bool) {
	for _, name := range names {
		if v, ok := h.Sysctls[name]; ok {
			return strings.TrimSpace(v), true
		}
	}
	for _, name := range names {
		for _, key := range SortedKeys(h.Sysctls) {
			if strings.EqualFold(key, name) {
				return strings.TrimSpace(h.Sysctls[key]), true
			}
		}
	}
	return "", false
}

// Number returns a setting that is one number, or the last of several ("4096 131072 6291456": the maximum). It
// must be above 0.
func (h *Host) Number(names ...string) (int64, bool) {
	text, _ := h.Sysctl(names...)
	fields := strings.Fields(text)
	if len(fields) == 0 {
		return 0, false
	}
	n, err := strconv.ParseInt(fields[len(fields)-1], 10, 64)
	return n, err == nil && n > 0
}

// SortedKeys returns the keys of a map in a fixed order.
func SortedKeys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}

// Switch is a TCP setting that has another name on every system.
type Switch struct {
	Knob  string // that sets it
	What  string // "window scaling"
	Names map[string][]string
	off   []string // values that mean off, in small letters
}

// IsOn reports whether a switch is on; known is false if it was not read.
func (h *Host) IsOn(s Switch) (on, known bool) {
	v, ok := h.Sysctl(s.Names[h.System]...)
	if !ok || v == "" {
		return false, false
	}
	return !slices.Contains(s.off, strings.ToLower(v)), true
}

// Key returns the name of the switch on this system, for a gate that misses it.
func (h *Host) Key(s Switch) string {
	if names := s.Names[h.System]; len(names) > 0 {
		return "sysctls." + names[0]
	}
	return "sysctls"
}

// WindowScaling is the switch of TCP for windows above 64 KiB. On Solaris it says whether scaling is offered with
// a small buffer too; Windows ties it to window autotuning.
func WindowScaling() Switch {
	return Switch{knob.WindowScaling, "window scaling", map[string][]string{
		"linux":   {"net.ipv4.tcp_window_scaling"},
		"freebsd": {"net.inet.tcp.rfc1323"},
		"darwin":  {"net.inet.tcp.rfc1323"},
		"solaris": {"tcp._wscale_always"}, "illumos": {"tcp._wscale_always"},
		"windows": {"Internet.AutoTuningLevelLocal"},
	}, []string{"0", "disabled"}}
}

// SackSetting is the switch of selective acknowledgement, with its name on each system.
func SackSetting() Switch {
	return Switch{knob.SACK, "selective acknowledgement (SACK)", map[string][]string{
		"linux":   {"net.ipv4.tcp_sack"},
		"freebsd": {"net.inet.tcp.sack.enable"},
		"darwin":  {"net.inet.tcp.sack"},
		"solaris": {"tcp.sack"}, "illumos": {"tcp.sack"},
	}, []string{"0", "never"}}
}

// TimestampsSetting is the switch of TCP timestamps, with its name on each system.
func TimestampsSetting() Switch {
	return Switch{knob.Timestamps, "TCP timestamps", map[string][]string{
		"linux":   {"net.ipv4.tcp_timestamps"},
		"freebsd": {"net.inet.tcp.rfc1323"},
		"darwin":  {"net.inet.tcp.rfc1323"},
	}, []string{"0"}}
}
