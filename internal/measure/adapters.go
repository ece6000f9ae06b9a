package measure

import (
	"slices"
	"strings"
)

// EmulatedDriver tells of drivers of old real adapters that hypervisors imitate, on
// Linux, FreeBSD, illumos and Windows.
func EmulatedDriver(driver string) bool {
	return slices.Contains([]string{"e1000", "e1000e", "pcnet32", "pcnet", "8139cp", "8139too", "rtl8139", "ne2k-pci", "tulip",
		"em", "le", "pcn", "rl", "re", "ed", "e1000g", "rtls", "E1G60", "e1iexpress"}, driver)
}

// ParavirtualDriver tells of drivers that know that they run in a guest: the speed of
// what they drive is a name.
func ParavirtualDriver(driver string) bool {
	driver = strings.ToLower(driver)
	for _, p := range []string{"vmxnet3", "netvsc", "netkvm"} { // Windows adds a version: "netvsc63"
		if strings.HasPrefix(driver, p) {
			return true
		}
	}
	return slices.Contains([]string{"virtio_net", "hv_netvsc", "xen-netfront", "vif", "vmx", "vtnet", "hn", "xn", "xnf", "vioif", "gve"}, driver)
}

// EmulatedCard names by its PCI numbers an adapter that hypervisors imitate, and that no
// current machine has; "" where it is none.
func (p *PCI) EmulatedCard() string {
	if p == nil {
		return ""
	}
	return map[string]string{"0x8086 0x100e": "82540EM", "0x8086 0x100f": "82545EM", "0x8086 0x10d3": "82574L",
		"0x1022 0x2000": "Am79C970", "0x10ec 0x8139": "RTL8139"}[p.Vendor+" "+p.Device]
}

// Emulated tells whether an adapter imitates a card, by the name that a
// hypervisor of that kind has for its model. vmxnet3 is ESXi's own: QEMU
// imitates it too.
func (n *GuestNIC) Emulated(kind string) bool {
	if n == nil || n.Model == nil {
		return false
	}
	model := strings.ToLower(*n.Model)
	return kind == KindKVM && (model == "vmxnet3" || model == "igb") ||
		slices.Contains([]string{"e1000", "e1000e", "e1000-82540em", "e1000-82544gc", "e1000-82545em", "82545em", "82574l", "pcnet", "pcnet32", "vlance", "flexible",
			"rtl8139", "ne2k_pci", "ne2k_isa", "tulip", "i82551", "i82557b", "i82559er"}, model)
}

// IsDevice tells by its kind, where that is known, whether hardware, or what a hypervisor
// shows as such, is behind an interface.
func (i *Interface) IsDevice() bool {
	return i != nil && i.Kind != nil && slices.Contains([]string{"physical", "virtual function", "paravirtual", "emulated"}, *i.Kind)
}

// ThreadCount is how many threads the CPUs of a host have; nil where that is not known.
func (f *Facts) ThreadCount() *int {
	if f.CPU != nil && f.CPU.Threads != nil {
		return f.CPU.Threads
	}
	return f.Cores
}
