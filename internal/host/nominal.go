package host

import (
	"path"
	"slices"
	"strings"
)

// nominal tells whether the speed of an interface is only a name: no wire of
// that rate stands behind it. That is so for everything that is on no bus
// (veth, tun, bridge, dummy, lo) and for the devices that hypervisors offer.
// VLANs and bonds are what lies below them. virtual: this host is a guest.
func (f FS) nominal(name string, virtual bool) bool {
	return f.nominalBelow(name, virtual, 4) // bond over VLAN over bond is as deep as it gets
}

func (f FS) nominalBelow(name string, virtual bool, depth int) bool {
	dir := path.Join("sys/class/net", name)
	if f.exists(path.Join(dir, "device")) {
		return paravirtual(uevent(f.optional(path.Join(dir, "device/uevent")), "DRIVER"), virtual)
	}
	stacked := slices.Contains([]string{"vlan", "bond", "macvlan"}, uevent(f.optional(path.Join(dir, "uevent")), "DEVTYPE"))
	if !stacked || depth == 0 {
		return true
	}
	entries, err := f.names(dir)
	if err != nil {
		return true
	}
	real := 0
	for _, e := range entries {
		lower, ok := strings.CutPrefix(e, "lower_")
		if !ok {
			continue
		}
		if f.nominalBelow(lower, virtual, depth-1) {
			return true
		}
		real++
	}
	return real == 0
}

// paravirtual tells whether a driver is one for a hypervisor's device. A
// driver of an old real NIC in a guest drives an emulation, which passes more
// than its name says.
func paravirtual(driver string, virtual bool) bool {
	always := []string{"virtio_net", "vmxnet3", "hv_netvsc", "vif", "xen-netfront", "tun", "veth", "netdevsim"}
	emulated := []string{"e1000", "e1000e", "pcnet32", "8139cp", "8139too", "ne2k-pci", "tulip"}
	return slices.Contains(always, driver) || virtual && slices.Contains(emulated, driver)
}

// uevent returns one value of a sysfs uevent file: KEY=value lines.
func uevent(text, key string) string {
	for line := range strings.Lines(text) {
		if v, ok := strings.CutPrefix(line, key+"="); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}
