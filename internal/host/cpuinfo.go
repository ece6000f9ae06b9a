package host

import (
	"errors"
	"slices"
	"strings"
	"thru/internal/host/tree"
)

// cpuinfo holds facts about the first processor of /proc/cpuinfo.
type cpuinfo struct {
	model string // "" where the architecture names none
	guest *bool  // the flag `hypervisor` (x86, CPUID leaf 1, ECX bit 31); nil: no such flag on this architecture
}

// parseCPUInfo reads the first processor (arch/x86/kernel/cpu/proc.c,
// arch/arm64/kernel/cpuinfo.c). arm64 has numbers instead of a name.
func parseCPUInfo(text string) (cpuinfo, error) {
	var c cpuinfo
	var implementer, part string
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(line, ":")
		if !ok {
			break // the first processor ends with an empty line
		}
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(key) {
		case "model name":
			c.model = value
		case "flags":
			c.guest = new(slices.Contains(strings.Fields(value), "hypervisor"))
		case "CPU implementer":
			implementer = value
		case "CPU part":
			part = value
		}
	}
	if c.model == "" && part != "" {
		c.model = "implementer " + implementer + " part " + part
	}
	if c.model == "" && c.guest == nil {
		return cpuinfo{}, errors.New("no model and no flags")
	}
	return c, nil
}

// firstCPU reads the beginning of /proc/cpuinfo; the whole file has some KB
// for each processor.
func (f FS) firstCPU() (cpuinfo, error) {
	const enough = 16 << 10
	return tree.Parsed(func(name string) ([]byte, error) { return f.Head(name, enough) }, "proc/cpuinfo", parseCPUInfo)
}
