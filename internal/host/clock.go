package host

import (
	"path"
	"strings"

	"thru/internal/measure"
)

// timex is the state of the clock by adjtimex(2).
type timex struct {
	synchronised bool
	maxErrorNs   int64
	offsetNs     int64
	driftPPM     float64
}

// clock reads the clock source
// (Documentation/ABI/testing/sysfs-devices-system-clocksource) and, from the
// running kernel, the clock's error and the cost of a reading.
func (h *Host) clock(n *notes) *measure.Clock {
	const dir = "sys/devices/system/clocksource/clocksource0"
	var c measure.Clock
	c.Source = keeper[string](n, "clock.source")(h.fs.Text(path.Join(dir, "current_clocksource")))
	c.Available = strings.Fields(h.fs.Optional(path.Join(dir, "available_clocksource"))) // in the same folder
	if h.system == nil {
		n.add("clock.synchronised", onlyLive)
		n.add("clock.read_cost_ns", onlyLive)
	} else {
		if t := keeper[timex](n, "clock.synchronised")(h.system.adjtime()); t != nil {
			c.Synchronised, c.MaxErrorNs, c.OffsetNs, c.DriftPPM = &t.synchronised, &t.maxErrorNs, &t.offsetNs, &t.driftPPM
		}
		c.ReadNs = new(h.system.readCost().Nanoseconds())
	}
	if c.Source == nil && c.Synchronised == nil && c.ReadNs == nil {
		return nil
	}
	return &c
}
