package gate

import (
	"slices"
	"strings"

	"thru/internal/knob"
)

// sparing leaves out of a remedy what would take back a change that a tuning has
// kept: it was shown to help here, which no rule knows better.
func (h *host) sparing(r remedy) remedy {
	var lines, kept []string
	for _, command := range r.lines {
		against := knob.Against(h.os, h.Facts, command)
		if len(against) == 0 {
			lines = append(lines, command)
		}
		for _, c := range against {
			name := strings.TrimSpace(c.Knob + " " + c.Value + " " + c.Interface)
			if !slices.Contains(kept, name) {
				kept = append(kept, name)
			}
		}
	}
	if len(kept) == 0 {
		return r
	}
	advice := "keep " + line(strings.Join(kept, ", ")) + ", which a tuning has shown to help here, and make it permanent; what needs it is to be mended elsewhere: " +
		"the driver or firmware of the adapter, the hypervisor's switch, a device on the way"
	if len(lines) == 0 {
		return advise(advice)
	}
	r.lines = lines
	return r.saying(advice)
}

// keptOff are those of the offloads, by their short names, that a tuning has
// switched off at this interface and kept so.
func (f *face) keptOff(names []string) (kept []string) {
	for _, c := range knob.Kept(f.host.Facts) {
		for _, o := range offloads() {
			if c.Interface == f.Name && knob.Offload(c.Knob) == o.name && slices.Contains(names, o.short) {
				kept = append(kept, o.short)
			}
		}
	}
	return kept
}
