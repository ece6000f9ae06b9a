package host

import (
	"path"
	"slices"
	"strings"
)

// lower names the lower interfaces of a VLAN, a bond or a macvlan. A bridge
// has some too, but its traffic need not leave by them.
func (f FS) lower(name string) []string {
	dir := path.Join("sys/class/net", name)
	if !slices.Contains([]string{"vlan", "bond", "macvlan", "macvtap"}, uevent(f.Optional(path.Join(dir, "uevent")), "DEVTYPE")) {
		return nil
	}
	entries, err := f.Names(dir)
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

// uevent returns one value of a sysfs uevent file: KEY=value lines.
func uevent(text, key string) string {
	for line := range strings.Lines(text) {
		if v, ok := strings.CutPrefix(line, key+"="); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}
