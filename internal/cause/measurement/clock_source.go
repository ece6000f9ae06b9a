package measurement

import (
	"fmt"
	"slices"

	"thru/internal/cause/gate"
	"thru/internal/cause/scene"
)

// slowRead is the highest acceptable cost of one clock reading, in ns.
const slowRead = 300

// ClockSourceGate is the gate `clock-source`.
func ClockSourceGate() gate.Rule {
	return gate.Rule{ID: "clock-source", Words: "tsc hpet clocksource", Title: "Clock source", About: "the kernel's clock source, and the cost of one reading",
		Warns:  "it is hpet, acpi_pm or jiffies; or a reading costs more than 300 ns",
		Why:    "a clock that needs a system call or a chip access costs 0.3 to 1 us for every packet's time stamp",
		Source: "Linux clocksource drivers; vdso(7)", Fix: "use tsc, or the hypervisor's clock", Checklist: []string{"C-33"}, Host: gateClockSource}
}

func gateClockSource(h *scene.Host) *gate.Finding {
	c := h.Clock
	if c == nil || c.Source == nil {
		if h.System != "linux" {
			return nil
		}
		return gate.Missing(h, "clock source", "clock.source")
	}
	cost := ""
	if c.ReadNs != nil && *c.ReadNs >= 0 {
		cost = fmt.Sprintf(", a reading costs %s", gate.Span(*c.ReadNs))
	}
	slow := slices.Contains([]string{"hpet", "acpi_pm", "jiffies", "refined-jiffies", "i8254", "ACPI-fast", "ACPI-safe", "HPET"}, *c.Source)
	if slow || c.ReadNs != nil && *c.ReadNs > slowRead {
		return gate.Warn("the clock source is %.20s%s", *c.Source, cost).Do(betterClock(h))
	}
	return gate.Pass("the clock source is %.20s%s", *c.Source, cost)
}

// betterClock chooses a faster clock source of the host.
func betterClock(h *scene.Host) scene.Fix {
	for _, name := range []string{"tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "TSC", "TSC-low"} {
		if *h.Clock.Source == name || !slices.Contains(h.Clock.Available, name) {
			continue
		}
		switch h.System {
		case "linux":
			return scene.Commands("lasts until the next boot; the kernel chose the other one for a reason: see clocksource in dmesg",
				"echo "+name+" > /sys/devices/system/clocksource/clocksource0/current_clocksource")
		case "freebsd":
			return scene.Sysctls(h, "kern.timecounter.hardware="+name)
		}
	}
	return scene.Fix{}
}
