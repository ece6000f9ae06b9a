package gate

import (
	"slices"
	"strconv"
	"strings"

	"thru/internal/knob"
	"thru/internal/measure"
)

// host is an end with what several rules ask of it. Its facts are never nil;
// known tells whether there are any.
type host struct {
	*scene
	end   *End
	name  string
	os    string
	known bool
	*measure.Facts
	byName map[string]*measure.Interface // of all interfaces: a host may have thousands
	faces  []*face                       // interfaces that the traffic passes, the one on top first
}

func newHost(sc *scene, e *End) *host {
	h := &host{scene: sc, end: e, name: e.Name, known: e.Facts != nil, Facts: e.Facts}
	if !h.known {
		h.Facts = &measure.Facts{}
	}
	if h.OS != nil {
		h.os = strings.ToLower(*h.OS)
	}
	h.byName = make(map[string]*measure.Interface, len(h.Interfaces))
	for i := range h.Interfaces {
		if d := &h.Interfaces[i]; h.byName[d.Name] == nil {
			h.byName[d.Name] = d
		}
	}
	h.faces = h.pick()
	return h
}

// Interface returns the interface of that name, or nil.
func (h *host) Interface(name string) *measure.Interface { return h.byName[name] }

// missing is a gate for a fact of the host that could not be had, by the
// reason that the host gave for it, for another that comes with it, or for
// what it belongs to.
func (h *host) missing(what string, facts ...string) *finding {
	if !h.known {
		return nil // one gate says that there are no facts at all
	}
	parent, _, _ := strings.Cut(facts[0], ".")
	return notChecked(what, reason(h.NotChecked, append(facts, parent)...))
}

// guest tells whether the host is a virtual machine; known is false where it cannot say.
func (h *host) guest() (is, known bool) {
	return h.Hypervisor != nil && *h.Hypervisor != "none", h.Hypervisor != nil
}

// hypervisor is its name, or "".
func (h *host) hypervisor() string {
	if h.Hypervisor == nil {
		return ""
	}
	return *h.Hypervisor
}

// cpus is how many logical CPUs thru may use; 0 where it is not known.
func (h *host) cpus() int {
	if h.CPU != nil && h.CPU.Usable != nil && *h.CPU.Usable > 0 {
		return *h.CPU.Usable
	}
	if h.Cores != nil && *h.Cores > 0 {
		return *h.Cores
	}
	return 0
}

// sysctl is the first of the settings that the host has. Systems differ in
// names, and tools of the same system in their capitals.
func (h *host) sysctl(names ...string) (value string, ok bool) {
	for _, name := range names {
		if v, ok := h.Sysctls[name]; ok {
			return strings.TrimSpace(v), true
		}
	}
	for _, name := range names {
		for _, key := range sortedKeys(h.Sysctls) {
			if strings.EqualFold(key, name) {
				return strings.TrimSpace(h.Sysctls[key]), true
			}
		}
	}
	return "", false
}

// number is a setting that is one number, or the last of several ("4096
// 131072 6291456": the most). It must be above 0.
func (h *host) number(names ...string) (int64, bool) {
	text, _ := h.sysctl(names...)
	fields := strings.Fields(text)
	if len(fields) == 0 {
		return 0, false
	}
	n, err := strconv.ParseInt(fields[len(fields)-1], 10, 64)
	return n, err == nil && n > 0
}

// sortedKeys of a map, so that its order never shows.
func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// setting is a switch of TCP that every system has under another name.
type setting struct {
	knob  string // of package knob, which sets it
	what  string // "window scaling"
	names map[string][]string
	off   []string // values that mean off, in small letters
}

// state tells whether a switch is on; known is false where it was not read.
func (h *host) state(s setting) (on, known bool) {
	v, ok := h.sysctl(s.names[h.os]...)
	if !ok || v == "" {
		return false, false
	}
	return !slices.Contains(s.off, strings.ToLower(v)), true
}

// key of the switch on this system, for the gate that it is missing.
func (h *host) key(s setting) string {
	if names := s.names[h.os]; len(names) > 0 {
		return "sysctls." + names[0]
	}
	return "sysctls"
}

// windowScaling, sack and timestampsSetting are the switches of TCP.
// That of Solaris is whether it offers scaling with a small
// buffer too; Windows ties it to the autotuning of the window.
func windowScaling() setting {
	return setting{knob.WindowScaling, "window scaling", map[string][]string{
		"linux":   {"net.ipv4.tcp_window_scaling"},
		"freebsd": {"net.inet.tcp.rfc1323"},
		"darwin":  {"net.inet.tcp.rfc1323"},
		"solaris": {"tcp._wscale_always"}, "illumos": {"tcp._wscale_always"},
		"windows": {"Internet.AutoTuningLevelLocal"},
	}, []string{"0", "disabled"}}
}

func sackSetting() setting {
	return setting{knob.SACK, "selective acknowledgement (SACK)", map[string][]string{
		"linux":   {"net.ipv4.tcp_sack"},
		"freebsd": {"net.inet.tcp.sack.enable"},
		"darwin":  {"net.inet.tcp.sack"},
		"solaris": {"tcp.sack"}, "illumos": {"tcp.sack"},
	}, []string{"0", "never"}}
}

func timestampsSetting() setting {
	return setting{knob.Timestamps, "TCP timestamps", map[string][]string{
		"linux":   {"net.ipv4.tcp_timestamps"},
		"freebsd": {"net.inet.tcp.rfc1323"},
		"darwin":  {"net.inet.tcp.rfc1323"},
	}, []string{"0"}}
}

// endRules judge whether there is anything to judge.
func endRules() []Rule {
	return []Rule{{
		ID: "host-facts", Title: "Facts of the host",
		About:  "whether an agent is there that tells what its host is, and the interface of the route is among its facts",
		Why:    "what cannot be seen cannot be judged: a limit of that host would be taken for one of the path",
		Source: "C-07, C-08",
		Remedy: "run `thru serve` there", Checklist: []string{"C-07", "C-08"},
		host: hostFacts,
	}}
}

func hostFacts(h *host) *finding {
	switch r := h.end.Route; {
	case !h.known:
		return notChecked("facts of this host", "no agent of thru is there")
	case r != nil && h.Interface(r.Interface) == nil:
		return notChecked("interface "+r.Interface+" of the route", reason(h.NotChecked, "interfaces."+r.Interface, "interfaces"))
	case len(h.faces) == 0:
		return notChecked("interfaces", "none is up that could carry a test")
	}
	return nil
}
