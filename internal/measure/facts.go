package measure

import "strings"

// NotChecked names a fact that could not be read, and why. A fact is yes, no, or not checked; reports never print the last as a zero or as "no".
type NotChecked struct {
	Fact string `json:"fact"`
	Why  string `json:"why"`
	Code string `json:"code,omitempty"` // NotInCapture; empty for all other reasons
}

// Covers reports whether n stands for a fact: for the fact itself, or for something that contains it ("nics.eth0", "nics.eth0.*", "*").
func (n NotChecked) Covers(fact string) bool {
	return n.Fact == "*" || IsPart(fact, strings.TrimSuffix(n.Fact, ".*"))
}

// Below returns the part of n.Fact after a key and a dot: "mac" of "nics.eth0.mac" for the key "nics.eth0".
func (n NotChecked) Below(key string) (rest string, is bool) {
	if rest, is = strings.CutPrefix(n.Fact, key+"."); !is {
		return "", false
	}
	return rest, true
}

// IsPart reports whether the key of a fact equals key or is nested in it.
func IsPart(fact, key string) bool { return fact == key || strings.HasPrefix(fact, key+".") }

// Keys that stand for no field of a document: missing counters of guests, hosts or sources, and requests to a source.
const (
	keyCounters = "counters of "
	keyOfSource = ", of "
)

// CountersOf returns the key for missing counters of guests, hosts or a source.
func CountersOf(names string) string { return keyCounters + names }

// CountersOf returns the names whose counters are missing; nil for any other fact.
func (n NotChecked) CountersOf() []string {
	names, is := strings.CutPrefix(n.Fact, keyCounters)
	if !is {
		return nil
	}
	return append(strings.Split(names, ", "), names) // a name may have a comma
}

// AskedOf returns the key of a request to a source.
func AskedOf(source, what string) string { return what + keyOfSource + source }

// IsAskedOf reports whether n stands for a request that a source did not answer.
func (n NotChecked) IsAskedOf() bool { return strings.Contains(n.Fact, keyOfSource) }

// Value returns *p, or the zero value where p is nil.
func Value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// Put sets a key of a map that may be nil.
func Put[K comparable, V any](m *map[K]V, key K, value V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[key] = value
}

// As converts a number to another type; nil stays nil.
func As[To, From int64 | uint32 | uint64 | float64](p *From) *To {
	if p == nil {
		return nil
	}
	return new(To(*p))
}

// Facts describe a host at the time of its measurement. A nil field has its reason in NotChecked.
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
	// Sysctls of the TCP stack that limit a test, as the kernel prints them.
	Sysctls    map[string]string `json:"sysctls,omitempty"`
	Changed    map[string]string `json:"settings_changed,omitempty"` // settings that differ from the system's default, by its own names (ESXi: kernel options, driver parameters)
	Tuned      []Changed         `json:"tuned,omitempty"`            // changes of tunings that are still in force, by the host's journal
	Boot       *string           `json:"boot_device,omitempty"`      // device that it booted from
	Machine    *Machine          `json:"machine,omitempty"`          // hardware
	CPU        *Processors       `json:"cpu,omitempty"`              // processors
	NUMA       []NUMANode        `json:"numa_nodes,omitempty"`       // NUMA nodes
	RAM        *RAM              `json:"ram,omitempty"`              // memory in detail
	Cgroup     *Cgroup           `json:"cgroup,omitempty"`           // control groups of thru's process
	Security   *Security         `json:"security,omitempty"`         // security modules that may slow or deny system calls
	Firewall   *Firewall         `json:"firewall,omitempty"`         // firewall rules that every packet passes
	Clock      *Clock            `json:"clock,omitempty"`            // clock source and its accuracy
	Disks      []Disk            `json:"disks,omitempty"`            // block devices
	Hypervises *Hypervises       `json:"hypervises,omitempty"`       // signs that it runs virtual machines
	Load       *Load             `json:"load,omitempty"`             // load without a test
	Privileged *bool             `json:"privileged,omitempty"`       // thru runs as root there
	RootAdds   []string          `json:"root_would_add,omitempty"`   // facts that root could read
	Commands   []string          `json:"commands,omitempty"`         // commands that read the facts, where files and the kernel do not suffice
	Interfaces []Interface       `json:"interfaces,omitempty"`
	Managers   []string          `json:"network_managers,omitempty"` // programs that configure its interfaces, as far as they leave traces: "systemd-networkd", "NetworkManager", "netplan", "ifupdown", "systemd-udevd", "udev"
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
