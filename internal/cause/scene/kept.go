package scene

import (
	"slices"
	"strings"

	"thru/internal/cause/knob"
	"thru/internal/unit"
)

// longest is the maximum length of a text from a host, in characters.
const longest = 240

// Sparing removes from a fix whatever would revert a change that a tuning has kept: a measurement on this host
// outweighs a rule.
func (h *Host) Sparing(r Fix) Fix {
	var lines, kept []string
	for _, command := range r.Lines {
		against := knob.Against(h.System, h.Facts, command)
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
	advice := "keep " + unit.Line(strings.Join(kept, ", "), longest) + ", which a tuning has shown to help here, and make it persistent; fix its cause elsewhere: " +
		"the driver or firmware of the adapter, the hypervisor's switch, a device on the path"
	if len(lines) == 0 {
		return Advise(advice)
	}
	r.Lines = lines
	return r.WithAdvice(advice)
}

// KeptOff returns those of the offloads that a tuning has switched off at this interface and kept off.
func (f *Face) KeptOff(ids []string) (kept []string) {
	for _, c := range knob.Kept(f.Host.Facts) {
		if c.Interface == f.Name && slices.Contains(ids, c.Knob) {
			kept = append(kept, c.Knob)
		}
	}
	return kept
}
