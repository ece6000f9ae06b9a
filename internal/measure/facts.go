package measure

// NotChecked names a fact that could not be had, and why. A fact is yes, no,
// or not checked; the last is never printed as a zero or as "no".
type NotChecked struct {
	Fact string `json:"fact"`
	Why  string `json:"why"`
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
	Interfaces []Interface       `json:"interfaces,omitempty"`
	NotChecked []NotChecked      `json:"not_checked,omitempty"`
}

// Interface describes one network interface.
type Interface struct {
	Name     string   `json:"name"`
	MTU      *int     `json:"mtu_bytes,omitempty"`
	MAC      *string  `json:"mac,omitempty"`
	Addrs    []string `json:"addresses,omitempty"` // with prefix length
	Up       *bool    `json:"up,omitempty"`
	Driver   *string  `json:"driver,omitempty"`
	Version  *string  `json:"driver_version,omitempty"`
	Bus      *string  `json:"bus,omitempty"`
	SpeedBps *int64   `json:"speed_bps,omitempty"`
	Duplex   *string  `json:"duplex,omitempty"`
	// Nominal: the speed is a name only (veth, virtio, vmxnet3 ...), no bound of what passes.
	Nominal  *bool           `json:"speed_is_nominal,omitempty"`
	Queues   *int            `json:"rx_queues,omitempty"`
	Offloads map[string]bool `json:"offloads,omitempty"` // "tcp-segmentation-offload": true
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
