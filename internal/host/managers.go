package host

import (
	"slices"
	"strings"
)

// managers names what sets up the interfaces of this host, by the traces that
// each leaves while it runs; none where there are no traces, as in a container.
// Each is named as people know it, since a setting is made to last by its rules:
// sd_booted(3), systemd-networkd.service(8), NetworkManager(8), netplan(5),
// interfaces(5).
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
