package measure

import (
	"slices"
	"strings"
)

// EmulatedDriver reports whether a driver belongs to an old real adapter that hypervisors emulate. It knows drivers of Linux, FreeBSD, illumos and Windows.
func EmulatedDriver(driver string) bool {
	return slices.Contains([]string{"e1000", "e1000e", "pcnet32", "pcnet", "8139cp", "8139too", "rtl8139", "ne2k-pci", "tulip",
		"em", "le", "pcn", "rl", "re", "ed", "e1000g", "rtls", "E1G60", "e1iexpress"}, driver)
}

// ParavirtualDriver reports whether a driver is paravirtual. The speed that such an adapter reports is nominal.
func ParavirtualDriver(driver string) bool {
	driver = strings.ToLower(driver)
	for _, p := range []string{"vmxnet3", "netvsc", "netkvm"} { // Windows adds a version: "netvsc63"
		if strings.HasPrefix(driver, p) {
			return true
		}
	}
	return slices.Contains([]string{"virtio_net", "hv_netvsc", "xen-netfront", "vif", "vmx", "vtnet", "hn", "xn", "xnf", "vioif", "gve"}, driver)
}

// EmulatedCard returns the name of an adapter that hypervisors emulate and that no current machine has, by its PCI ids. It returns "" for other adapters.
func (p *PCI) EmulatedCard() string {
	if p == nil {
		return ""
	}
	return map[string]string{"0x8086 0x100e": "82540EM", "0x8086 0x100f": "82545EM", "0x8086 0x10d3": "82574L",
		"0x1022 0x2000": "Am79C970", "0x10ec 0x8139": "RTL8139"}[p.Vendor+" "+p.Device]
}

// Emulated reports whether an adapter emulates a real card, by the model name that a hypervisor of that kind uses. vmxnet3 is native to ESXi; under QEMU it is
// emulated.
func (n *GuestNIC) Emulated(kind string) bool {
	if n == nil || n.Model == nil {
		return false
	}
	model := strings.ToLower(*n.Model)
	return kind == KindKVM && (model == "vmxnet3" || model == "igb") ||
		slices.Contains([]string{"e1000", "e1000e", "e1000-82540em", "e1000-82544gc", "e1000-82545em", "82545em", "82574l", "pcnet", "pcnet32", "vlance", "flexible",
			"rtl8139", "ne2k_pci", "ne2k_isa", "tulip", "i82551", "i82557b", "i82559er"}, model)
}

// IsDevice reports whether the kind of an interface is known and stands for hardware, or for what a hypervisor shows as hardware.
func (i *Interface) IsDevice() bool {
	return i != nil && i.Kind != nil && slices.Contains([]string{"physical", "virtual function", "paravirtual", "emulated"}, *i.Kind)
}

// ThreadCount returns how many threads the CPUs of a host have; nil where that is not known.
func (f *Facts) ThreadCount() *int {
	if f.CPU != nil && f.CPU.Threads != nil {
		return f.CPU.Threads
	}
	return f.Cores
}
