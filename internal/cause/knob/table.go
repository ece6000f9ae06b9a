package knob

import (
	"slices"
	"strings"
)

// Table is all knobs: of TCP, of interfaces, of queues and CPUs, of a test.
func Table() []Knob {
	return slices.Concat(tcpKnobs(), stackKnobs(), linkKnobs(), offloadKnobs(), queueKnobs(), testKnobs())
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
	if k, ok := Find(id); ok && strings.HasPrefix(k.Linux, "net.") {
		return k.Linux
	}
	return ""
}
