package host

import (
	"errors"
	"strings"
)

// traces holds the signs of a hypervisor in a guest's files.
type traces struct {
	guest  *bool    // the CPU flag; nil where the architecture has none
	sys    string   // /sys/hypervisor/type: Xen only
	clocks string   // available clock sources; paravirtual ones carry the hypervisor's name
	oem    string   // author of the ACPI tables (readable by root only)
	dmi    []string // vendor and product in the SMBIOS tables
	tree   string   // hypervisor node of the device tree (arm64)
}

// dmiNames returns the strings that hypervisors write into SMBIOS and the
// hypervisors' names, the most specific first. QEMU comes last: KVM and
// others show its tables too.
func dmiNames() [][2]string {
	return [][2]string{
		{"VMware", "vmware"}, {"VirtualBox", "virtualbox"}, {"innotek", "virtualbox"},
		{"Virtual Machine Microsoft", "hyperv"}, {"Parallels", "parallels"}, {"BHYVE", "bhyve"},
		{"Apple Virtualization", "apple"}, {"Cloud Hypervisor", "cloud-hypervisor"},
		{"Nutanix", "kvm"}, {"Amazon EC2", "kvm"}, {"Google Compute Engine", "kvm"},
		{"OpenStack", "kvm"}, {"KubeVirt", "kvm"}, {"KVM", "kvm"}, {"DigitalOcean", "kvm"},
		{"Xen", "xen"}, {"QEMU", "qemu"}, {"Bochs", "qemu"},
	}
}

// hypervisor reads the traces and returns "none", the hypervisor's name, or
// "unknown hypervisor".
func (f FS) hypervisor() (string, error) {
	t := traces{sys: f.Optional("sys/hypervisor/type"),
		clocks: f.Optional("sys/devices/system/clocksource/clocksource0/available_clocksource"),
		tree:   f.Optional("proc/device-tree/hypervisor/compatible")}
	if c, err := f.firstCPU(); err == nil {
		t.guest = c.guest
	}
	// The product comes before the vendor: "Virtual Machine Microsoft
	// Corporation".
	for _, name := range []string{"product_name", "sys_vendor", "board_vendor", "bios_vendor"} {
		if s := f.Optional("sys/class/dmi/id/" + name); s != "" {
			t.dmi = append(t.dmi, s)
		}
	}
	// A table starts with signature, length, revision, check sum (10 bytes),
	// then 6 bytes of OEM (ACPI specification 6.5, table 5.4).
	if b, err := f.Read("sys/firmware/acpi/tables/FACP"); err == nil && len(b) >= 16 {
		t.oem = string(b[10:16])
	}
	return t.name()
}

// name returns the hypervisor by the traces, the most specific first.
func (t traces) name() (string, error) {
	if t.sys != "" {
		return t.sys, nil // Xen's paravirtual guests hide the CPU flag
	}
	if t.guest != nil && !*t.guest {
		return "none", nil // a rented bare-metal machine may name its cloud in SMBIOS
	}
	if t.oem == "FIRECK" {
		return "firecracker", nil
	}
	fromDMI := t.byDMI()
	if fromDMI != "" && fromDMI != "qemu" {
		return fromDMI, nil
	}
	for _, c := range [][2]string{{"hyperv", "hyperv"}, {"xen", "xen"}, {"kvm-clock", "kvm"}} {
		if strings.Contains(t.clocks, c[0]) {
			return c[1], nil
		}
	}
	switch {
	case strings.Contains(t.tree, "kvm"):
		return "kvm", nil
	case fromDMI != "":
		return fromDMI, nil
	case t.tree != "" || t.guest != nil:
		return "unknown hypervisor", nil
	case len(t.dmi) > 0:
		return "none", nil // no CPU flag on this architecture, but a maker of physical machines
	}
	return "", errors.New("this architecture has no CPU flag for it, and the firmware reports no manufacturer")
}

// byDMI looks up the SMBIOS names.
func (t traces) byDMI() string {
	all := strings.Join(t.dmi, " ")
	for _, n := range dmiNames() {
		if strings.Contains(all, n[0]) {
			return n[1]
		}
	}
	return ""
}
