package knob

import (
	"slices"
	"strings"

	"thru/internal/unit"
)

// Table returns all knobs: of TCP, of interfaces, of queues and CPUs, of a test.
func Table() []Knob {
	return slices.Concat(tcpKnobs(), stackKnobs(), linkKnobs(), offloadKnobs(), queueKnobs(), testKnobs())
}

var byID = unit.Once(func() map[string]Knob {
	all := map[string]Knob{}
	for _, k := range Table() {
		all[k.ID] = k
	}
	return all
})

// Find returns the knob of that id.
func Find(id string) (Knob, bool) {
	k, ok := byID()[id]
	return k, ok
}

// Sysctl returns the name of the knob's kernel setting on Linux: "net.ipv4.tcp_rmem"; "" if it is none.
func Sysctl(id string) string {
	if k, ok := Find(id); ok && strings.HasPrefix(k.Linux, "net.") {
		return k.Linux
	}
	return ""
}
