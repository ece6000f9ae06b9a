package measurement

import (
	"fmt"
	"slices"

	"thru/internal/cause/gate"
)

// slowRead is what one reading of the clock may cost in ns.
const slowRead = 300

// ClockGates judge what time is read from.
func ClockGates() []gate.Rule {
	return []gate.Rule{
		{ID: "clock-source", Title: "Clock source", About: "what time is read from, and what one reading costs",
			Warns:  "hpet, acpi_pm or jiffies; or a reading costs more than 300 ns",
			Why:    "a clock that is read by a system call or from a chip costs 0.3 to 1 us with every packet's time stamp",
			Source: "Linux clocksource drivers; vdso(7)", Remedy: "tsc, or the hypervisor's clock", Checklist: []string{"C-33"}, Host: clockSource},
		{ID: "clock-sync", Title: "Clock of the host", About: "whether a time service keeps the clock; information only, since rates are measured by each end's own steady clock",
			Why:    "one-way delays and times of day are only as right as the clocks",
			Source: "adjtimex(2)", Remedy: "chrony or another time service", Checklist: []string{"C-33"}, Host: clockSync},
		{ID: "clock-offset", Title: "Clocks of both ends", About: "how far the clocks are apart, with its bound; information only",
			Why:    "times of both ends can be compared to within the bound after the offset is taken out",
			Source: "RFC 5905", Remedy: "none: thru takes the offset out", Checklist: []string{"C-33"}, Path: clockOffset},
	}
}

func clockSource(h *gate.Host) *gate.Finding {
	c := h.Clock
	if c == nil || c.Source == nil {
		if h.System != "linux" {
			return nil
		}
		return h.Missing("clock source", "clock.source")
	}
	cost := ""
	if c.ReadNs != nil && *c.ReadNs >= 0 {
		cost = fmt.Sprintf(", a reading costs %s", gate.Span(*c.ReadNs))
	}
	slow := slices.Contains([]string{"hpet", "acpi_pm", "jiffies", "refined-jiffies", "i8254", "ACPI-fast", "ACPI-safe", "HPET"}, *c.Source)
	if slow || c.ReadNs != nil && *c.ReadNs > slowRead {
		return gate.Warn("time is read from %.20s%s", *c.Source, cost).Do(betterClock(h))
	}
	return gate.Pass("time is read from %.20s%s", *c.Source, cost)
}

// betterClock chooses a faster one that the host has.
func betterClock(h *gate.Host) gate.Remedy {
	for _, name := range []string{"tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "TSC", "TSC-low"} {
		if *h.Clock.Source == name || !slices.Contains(h.Clock.Available, name) {
			continue
		}
		switch h.System {
		case "linux":
			return gate.Commands("lasts until the next boot; the kernel had its reason: see dmesg for clocksource",
				"echo "+name+" > /sys/devices/system/clocksource/clocksource0/current_clocksource")
		case "freebsd":
			return gate.Sysctls(h, "kern.timecounter.hardware="+name)
		}
	}
	return gate.Remedy{}
}

func clockSync(h *gate.Host) *gate.Finding {
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

func clockOffset(sc *gate.Scene) *gate.Finding {
	c := sc.Subject.Path.Clock
	if c == nil || sc.OnOneMachine() {
		return nil
	}
	off := c.OffsetNs
	which := "ahead of"
	if off < 0 {
		off, which = -max(off, -(1<<62)), "behind"
	}
	return gate.Pass("the clock of %s is %s %s that of %s, give or take %s", sc.Subject.Path.To, gate.Span(off), which, sc.Subject.Path.From, gate.Span(max(0, c.BoundNs)))
}
