package measure

import "strings"

// NotChecked names a fact that could not be had, and why. A fact is yes, no,
// or not checked; the last is never printed as a zero or as "no".
type NotChecked struct {
	Fact string `json:"fact"`
	Why  string `json:"why"`
}

// Covers tells whether it stands for a fact: for itself, or for what it is a part of
// ("nics.eth0", "nics.eth0.*", "*").
func (n NotChecked) Covers(fact string) bool {
	return n.Fact == "*" || IsPart(fact, strings.TrimSuffix(n.Fact, ".*"))
}

// Below is the rest of a key that lies below another: "mac" of "nics.eth0.mac" below "nics.eth0".
func (n NotChecked) Below(key string) (rest string, is bool) {
	if rest, is = strings.CutPrefix(n.Fact, key+"."); !is {
		return "", false
	}
	return rest, true
}

// IsPart tells whether the key of a fact is this one, or lies below it.
func IsPart(fact, key string) bool { return fact == key || strings.HasPrefix(fact, key+".") }

// Keys of what no field of a document has: counters below the end points, by the
// names of those that lack them, and what a source was asked for.
const (
	keyCounters = "counters of "
	keyOfSource = ", of "
)

// CountersOf is the key of counters that guests, hosts or a source lack.
func CountersOf(names string) string { return keyCounters + names }

// CountersOf are whose counters are missing; nil of any other fact.
func (n NotChecked) CountersOf() []string {
	names, is := strings.CutPrefix(n.Fact, keyCounters)
	if !is {
		return nil
	}
	return append(strings.Split(names, ", "), names) // a name may have a comma
}

// AskedOf is the key of what a source was asked for.
func AskedOf(source, what string) string { return what + keyOfSource + source }

// IsAskedOf tells of what a source was asked for, and did not tell.
func (n NotChecked) IsAskedOf() bool { return strings.Contains(n.Fact, keyOfSource) }

// Value of what may not be known: zero, or empty, where it is not.
func Value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// Put sets a key of a map that may not be there yet.
func Put[K comparable, V any](m *map[K]V, key K, value V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[key] = value
}

// As is a number of another type; nil where it is not known.
func As[To, From int64 | uint32 | uint64 | float64](p *From) *To {
	if p == nil {
		return nil
	}
	return new(To(*p))
}

// Facts describe a host as it was when it was measured. A nil field is in
// NotChecked with its reason.
type Facts struct {
	Hostname   *string  `json:"hostname,omitempty"`
	OS         *string  `json:"os,omitempty"`           // "linux"
	Distro     *string  `json:"distribution,omitempty"` // "Debian GNU/Linux 12 (bookworm)"
	Kernel     *string  `json:"kernel,omitempty"`
	Arch       *string  `json:"arch,omitempty"`
	CPUModel   *string  `json:"cpu_model,omitempty"`
	Cores      *int     `json:"cores,omitempty"` // logical CPUs this host shows
	Memory     *int64   `json:"memory_bytes,omitempty"`
	Hypervisor *string  `json:"hypervisor,omitempty"` // "none", "kvm", "vmware", ...
	Congestion *string  `json:"congestion_control,omitempty"`
	CongAvail  []string `json:"congestion_available,omitempty"`
	// Sysctls of the TCP stack that bound a test, as the kernel prints them.
	Sysctls    map[string]string `json:"sysctls,omitempty"`
	Changed    map[string]string `json:"settings_changed,omitempty"` // settings that are not the system's default, by its own names (ESXi: kernel options, driver parameters)
	Tuned      []Changed         `json:"tuned,omitempty"`            // what tunings have changed here and not undone, by their journal
	Boot       *string           `json:"boot_device,omitempty"`      // what it was started from
	Machine    *Machine          `json:"machine,omitempty"`          // hardware
	CPU        *Processors       `json:"cpu,omitempty"`              // processors
	NUMA       []NUMANode        `json:"numa_nodes,omitempty"`       // NUMA nodes
	RAM        *RAM              `json:"ram,omitempty"`              // memory in detail
	Cgroup     *Cgroup           `json:"cgroup,omitempty"`           // control groups around thru
	Security   *Security         `json:"security,omitempty"`         // what may slow or forbid system calls
	Firewall   *Firewall         `json:"firewall,omitempty"`         // what every packet passes
	Clock      *Clock            `json:"clock,omitempty"`            // what time is read from
	Disks      []Disk            `json:"disks,omitempty"`            // block devices
	Hypervises *Hypervises       `json:"hypervises,omitempty"`       // signs that it runs virtual machines
	Load       *Load             `json:"load,omitempty"`             // what it does while no test runs
	Privileged *bool             `json:"privileged,omitempty"`       // thru runs as root there
	RootAdds   []string          `json:"root_would_add,omitempty"`   // facts that root could read
	Commands   []string          `json:"commands,omitempty"`         // commands that the facts were read with, where it is not by files and the kernel
	Interfaces []Interface       `json:"interfaces,omitempty"`
	Managers   []string          `json:"network_managers,omitempty"` // what sets up its interfaces, where that leaves traces: "systemd-networkd", "NetworkManager", "netplan", "ifupdown", "systemd-udevd", "udev"
	NotChecked []NotChecked      `json:"not_checked,omitempty"`
}

// Interface returns the interface of that name, or nil.
func (f *Facts) Interface(name string) *Interface {
	if f == nil {
		return nil
	}
	for i := range f.Interfaces {
		if f.Interfaces[i].Name == name {
			return &f.Interfaces[i]
		}
	}
	return nil
}
