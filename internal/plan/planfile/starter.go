package planfile

import (
	"slices"

	"thru/examples"
	"thru/internal/fault"
)

// Starters lists the kinds of plan that Starter knows.
func Starters() []string {
	return []string{"ladder", "mesh", "sweep", "dci", "ab", "lag", "many-to-one", "vms", "latency", "requests", "udp", "fleet", "netqueue"}
}

// Starter returns a commented starter plan, which is one of the examples.
func Starter(kind string) ([]byte, error) {
	if slices.Contains(Starters(), kind) {
		text, err := examples.Files.ReadFile(kind + ".yaml")
		if err == nil {
			return text, nil
		}
	}
	return nil, fault.Usagef(meant(kind, Starters()), "planfile: there is no starter %q", clip(kind))
}
