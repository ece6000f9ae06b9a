package host

import (
	"slices"
	"strings"
)

// managers names the programs that configure the interfaces of this host, by
// the files that each leaves while it runs; none in a container. Persistent
// settings must follow the rules of the named program: sd_booted(3),
// systemd-networkd.service(8), NetworkManager(8), netplan(5), interfaces(5).
func (f FS) managers() []string {
	var found []string
	for _, m := range []struct{ name, trace string }{
		{"systemd-networkd", "run/systemd/netif/links"},
		{"NetworkManager", "run/NetworkManager/devices"},
		{"ifupdown", "run/network/ifstate"},
	} {
		if f.Exists(m.trace) {
			found = append(found, m.name)
		}
	}
	if names, err := f.Names("etc/netplan"); err == nil && slices.ContainsFunc(names, func(s string) bool { return strings.HasSuffix(s, ".yaml") }) {
		found = append(found, "netplan")
	}
	switch udev := f.Exists("run/udev/data"); {
	case udev && f.Exists("run/systemd/system"):
		found = append(found, "systemd-udevd")
	case udev:
		found = append(found, "udev")
	}
	return found
}
