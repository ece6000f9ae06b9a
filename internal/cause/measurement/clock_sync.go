package measurement

import (
	"thru/internal/cause/gate"
	"thru/internal/cause/scene"
)

// ClockSyncGate is the gate `clock-sync`.
func ClockSyncGate() gate.Rule {
	return gate.Rule{ID: "clock-sync", Words: "ntp chrony time", Title: "Clock synchronisation", About: "whether a time service synchronises the clock; information only, since each end measures rates with its own monotonic clock",
		Why:    "one-way delays and times of day are only as accurate as the clocks",
		Source: "adjtimex(2)", Fix: "run chrony or another time service", Checklist: []string{"C-33"}, Host: gateClockSync}
}

func gateClockSync(h *scene.Host) *gate.Finding {
	c := h.Clock
	if c == nil || c.Synchronised == nil {
		return nil
	}
	if !*c.Synchronised {
		return gate.Pass("no time service synchronises the clock: do not use it for one-way delays")
	}
	if c.MaxErrorNs != nil && *c.MaxErrorNs >= 0 {
		return gate.Pass("a time service synchronises the clock within %s", gate.Span(*c.MaxErrorNs))
	}
	return gate.Pass("a time service synchronises the clock")
}
