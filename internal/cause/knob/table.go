package knob

import (
	"slices"
	"strings"
)

// Table returns all knobs: of TCP, of interfaces, of queues and CPUs, of a test.
func Table() []Knob {
	return slices.Concat(tcpKnobs(), stackKnobs(), linkKnobs(), offloadKnobs(), queueKnobs(), testKnobs())
}

// Find returns the knob of that id.
func Find(id string) (Knob, bool) {
	all := Table()
	i := slices.IndexFunc(all, func(k Knob) bool { return k.ID == id })
	if i < 0 {
		return Knob{}, false
	}
	return all[i], true
}

// Sysctl returns the name of the knob's kernel setting on Linux: "net.ipv4.tcp_rmem"; "" if it is none.
func Sysctl(id string) string {
	if k, ok := Find(id); ok && strings.HasPrefix(k.Linux, "net.") {
		return k.Linux
	}
	return ""
}
