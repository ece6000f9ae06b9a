package cpu

import (
	"fmt"
	"slices"
	"strings"

	"thru/internal/cause/gate"
	"thru/internal/knob"
)

// deepSleep is the time to leave an idle state from which on it counts, in ns.
const deepSleep = 100_000

// PowerGates judge what saves power and costs speed.
func PowerGates() []gate.Rule {
	return []gate.Rule{
		{ID: "governor", Title: "CPU frequency", About: "the frequency governor and the energy preference (not of virtual machines, which do not drive the clock)",
			Warns:  "powersave, ondemand or conservative (Windows: Power saver, ESXi: Low Power); with intel_pstate or amd-pstate, whose powersave follows the load, only a preference for power",
			Why:    "a CPU that clocks down between packets costs 5 to 30% of the rate",
			Source: "Linux intel_pstate.rst, cpufreq.rst", Remedy: "the governor performance", Cause: "cpu-governor", Checklist: []string{"C-07", "C-29"}, Host: governor},
		{ID: "idle-states", Title: "Idle states", About: "the time to leave the deepest idle state, and whether the idle round trips show it",
			Warns:  "it is above 100 us, and a tenth of the round trips between two hosts takes half of it longer than the least",
			Why:    "a CPU that sleeps between requests adds the time to wake up to each of them",
			Source: "Linux cpuidle.rst", Remedy: "no deep states while latency is measured", Checklist: []string{"C-15"}, Host: idleStates},
		{ID: "steal", Title: "CPU time taken by the hypervisor", About: "steal time of the whole virtual machine",
			Warns:  "above 2% while no test runs",
			Why:    "what the hypervisor gives to others is missing here, and comes back in bursts",
			Source: "proc(5), /proc/stat", Remedy: "reserve CPU for this guest, or move it", Cause: "cpu-steal", Checklist: []string{"C-29", "C-37"}, Host: steal},
	}
}

func governor(h *gate.Host) *gate.Finding {
	if guest, known := h.Guest(); guest || h.System == "" {
		return nil
	} else if !known && (h.CPU == nil || len(h.CPU.Governors) == 0) {
		return nil // perhaps a guest, and nothing that says otherwise
	}
	if h.CPU == nil || len(h.CPU.Governors) == 0 {
		return h.Missing("frequency governor", "cpu.governors")
	}
	names := strings.Join(h.CPU.Governors, ", ")
	driver := text(h.CPU.Driver)
	active := strings.HasPrefix(driver, "intel_pstate") || strings.HasPrefix(driver, "amd-pstate") || strings.HasPrefix(driver, "amd_pstate")
	if active && slices.Contains(h.CPU.Governors, "powersave") {
		switch pref := text(h.CPU.Preference); pref {
		case "power", "balance_power":
			return gate.Warn("%s with the preference %s", driver, pref).Do(Performance(h))
		default:
			return gate.Pass("%s: powersave, which follows the load%s", driver, preferring(pref))
		}
	}
	if slices.ContainsFunc(h.CPU.Governors, slow) {
		return gate.Warn("governor %s%s", names, clocks(h)).Do(Performance(h))
	}
	return gate.Pass("governor %s%s", names, clocks(h))
}

// slow tells of governors that clock down: those of Linux, and the power plans
// of Windows and ESXi, whose readers differ in capitals.
func slow(governor string) bool {
	return slices.Contains([]string{"powersave", "conservative", "ondemand", "power saver", "low power"}, strings.ToLower(governor))
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func preferring(pref string) string {
	if pref == "" {
		return ""
	}
	return ", preference " + pref
}

// clocks words the clock now and at most.
func clocks(h *gate.Host) string {
	if h.CPU.CurrentHz == nil || h.CPU.MaxHz == nil {
		return ""
	}
	return ", at " + gigahertz(*h.CPU.CurrentHz) + " of " + gigahertz(*h.CPU.MaxHz)
}

// Performance holds the clock up.
func Performance(h *gate.Host) gate.Remedy {
	risk := "more power and heat"
	switch h.System {
	case "linux":
		risk += "; lasts until the next boot"
	case "freebsd":
		risk += "; to keep it: powerd_enable=NO in /etc/rc.conf"
	case "esxi":
		risk += "; " + gate.EsxcliLasts
	}
	return gate.Worded(risk, h.Typed(knob.Governor, "", "performance"))
}

func idleStates(h *gate.Host) *gate.Finding {
	c := h.CPU
	if c == nil || c.IdleExit == nil || *c.IdleExit < 0 {
		return nil
	}
	state := text(c.IdleState)
	if state == "" {
		state = "the deepest state"
	}
	if *c.IdleExit > deepSleep && wakesUp(h, *c.IdleExit) {
		fix := gate.Remedy{}
		if h.System == "linux" {
			fix = gate.Commands("more power and heat; lasts until the next boot", fmt.Sprintf("cpupower idle-set -D %d", deepSleep/1000))
		}
		r := h.Subject.Path.RTT
		return gate.Warn("%s takes %s to leave; round trips take %s to %s", state, gate.Span(*c.IdleExit), gate.Span(r.Min), gate.Span(r.P90)).Do(fix)
	}
	return gate.Pass("%s takes %s to leave", state, gate.Span(*c.IdleExit))
}

// wakesUp tells whether the round trips of the idle path look as if a CPU had
// to leave such a state first. On a long path other things hide it.
func wakesUp(h *gate.Host, exit int64) bool {
	p := h.Subject.Path
	return p != nil && p.RTT != nil && !h.OnOneMachine() && p.RTT.Min > 0 && p.RTT.Min < 10*gate.LanRTT && p.RTT.P90-p.RTT.Min > exit/2
}

func steal(h *gate.Host) *gate.Finding {
	guest, known := h.Guest()
	if known && !guest || h.System == "esxi" {
		return nil
	}
	if h.Load == nil || h.Load.StealPct == nil {
		if !guest {
			return nil
		}
		return h.Missing("steal time", "load.steal_pct")
	}
	if *h.Load.StealPct > 2 {
		return gate.Warn("the hypervisor takes %s of this guest's CPU time", gate.Percent(*h.Load.StealPct)).
			Do(gate.Advise("reserve CPU for this guest, or move it or its neighbours").Risking(gate.OnTheHost))
	}
	if b := h.Load.StealBoot; b != nil && *b > 2 {
		return gate.Pass("steal %s now, %s since the boot", gate.Percent(*h.Load.StealPct), gate.Percent(*b))
	}
	return gate.Pass("steal %s", gate.Percent(*h.Load.StealPct))
}

// gigahertz words a clock rate.
func gigahertz(hz int64) string { return fmt.Sprintf("%.3g GHz", float64(hz)/1e9) }
