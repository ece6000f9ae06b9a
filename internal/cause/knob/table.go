package knob

import (
	"slices"
	"strings"
)

// Systems whose words By knows. On Linux thru can set the knobs itself.
func Systems() []string {
	return []string{"linux", "freebsd", "darwin", "windows", "solaris", "illumos", "esxi"}
}

// Table is all knobs: of TCP, of interfaces, of queues and CPUs, of a test.
func Table() []Knob {
	list := knobs()
	for _, os := range Systems() {
		worded := system(os)
		for i, k := range list {
			if _, ok := worded[k.ID]; ok || k.Scope == OfTest && os != "esxi" { // where thru itself runs
				list[i].Platforms = append(list[i].Platforms, os)
			}
		}
	}
	return list
}

// knobs are those of Table without their platforms.
func knobs() []Knob {
	return slices.Concat(tcpKnobs(), stackKnobs(), linkKnobs(), offloadKnobs(), queueKnobs(), testKnobs())
}

// about is Find without the platforms.
func about(id string) (Knob, bool) {
	all := knobs()
	i := slices.IndexFunc(all, func(k Knob) bool { return k.ID == id })
	if i < 0 {
		return Knob{}, false
	}
	return all[i], true
}

// Find is the knob of that id.
func Find(id string) (Knob, bool) {
	all := Table()
	i := slices.IndexFunc(all, func(k Knob) bool { return k.ID == id })
	if i < 0 {
		return Knob{}, false
	}
	return all[i], true
}

// Sysctl is the name of the kernel's setting where the knob is one on Linux:
// "net.ipv4.tcp_rmem"; "" where it is none.
func Sysctl(id string) string {
	if k, ok := about(id); ok && strings.HasPrefix(k.Linux, "net.") {
		return k.Linux
	}
	return ""
}
