package measurement

import (
	"thru/internal/cause/gate"
	"thru/internal/cause/scene"
)

// ClockSyncGate is the gate `clock-sync`.
func ClockSyncGate() gate.Rule {
	return gate.Rule{ID: "clock-sync", Words: "ntp chrony time", Title: "Clock of the host", About: "whether a time service keeps the clock; information only, since rates are measured by each end's own steady clock",
		Why:    "one-way delays and times of day are only as right as the clocks",
		Source: "adjtimex(2)", Fix: "run chrony or another time service", Checklist: []string{"C-33"}, Host: gateClockSync}
}

func gateClockSync(h *scene.Host) *gate.Finding {
	c := h.Clock
	if c == nil || c.Synchronised == nil {
		return nil
	}
	if !*c.Synchronised {
		return gate.Pass("no time service keeps the clock: take no one-way delays from it")
	}
	if c.MaxErrorNs != nil && *c.MaxErrorNs >= 0 {
		return gate.Pass("a time service keeps the clock to %s", gate.Span(*c.MaxErrorNs))
	}
	return gate.Pass("a time service keeps the clock")
}
