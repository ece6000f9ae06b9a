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
	return f.nominalBelow(name, virtual, maxStack)
}

func (f FS) nominalBelow(name string, virtual bool, depth int) bool {
	dir := path.Join("sys/class/net", name)
	if f.exists(path.Join(dir, "device")) {
		return paravirtual(uevent(f.optional(path.Join(dir, "device/uevent")), "DRIVER"), virtual)
	}
	lower := f.lower(name)
	if len(lower) == 0 || depth == 0 {
		return true
	}
	return slices.ContainsFunc(lower, func(l string) bool { return f.nominalBelow(l, virtual, depth-1) })
}

// lower names the interfaces that a VLAN, a bond or a macvlan lies on. A
// bridge has such too, but its traffic need not leave by them.
func (f FS) lower(name string) []string {
	dir := path.Join("sys/class/net", name)
	if !slices.Contains([]string{"vlan", "bond", "macvlan"}, uevent(f.optional(path.Join(dir, "uevent")), "DEVTYPE")) {
		return nil
	}
	entries, err := f.names(dir)
	if err != nil {
		return nil
	}
	var list []string
	for _, e := range entries {
		if l, ok := strings.CutPrefix(e, "lower_"); ok {
			list = append(list, l)
		}
	}
	return list
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
