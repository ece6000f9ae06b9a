package gate

import (
	"fmt"
	"slices"
	"strings"

	"thru/internal/knob"
)

// deepSleep is the time to leave an idle state from which on it counts, in ns.
const deepSleep = 100_000

// powerRules judge what saves power and costs speed.
func powerRules() []Rule {
	return []Rule{
		{ID: "governor", Title: "CPU frequency", About: "the frequency governor and the energy preference (not of virtual machines, which do not drive the clock)",
			Warns:  "powersave, ondemand or conservative (Windows: Power saver, ESXi: Low Power); with intel_pstate or amd-pstate, whose powersave follows the load, only a preference for power",
			Why:    "a CPU that clocks down between packets costs 5 to 30% of the rate",
			Source: "Linux intel_pstate.rst, cpufreq.rst", Remedy: "the governor performance", Cause: "cpu-governor", Checklist: []string{"C-07", "C-29"}, host: governor},
		{ID: "idle-states", Title: "Idle states", About: "the time to leave the deepest idle state, and whether the idle round trips show it",
			Warns:  "it is above 100 us, and a tenth of the round trips between two hosts takes half of it longer than the least",
			Why:    "a CPU that sleeps between requests adds the time to wake up to each of them",
			Source: "Linux cpuidle.rst", Remedy: "no deep states while latency is measured", Checklist: []string{"C-15"}, host: idleStates},
		{ID: "steal", Title: "CPU time taken by the hypervisor", About: "steal time of the whole virtual machine",
			Warns:  "above 2% while no test runs",
			Why:    "what the hypervisor gives to others is missing here, and comes back in bursts",
			Source: "proc(5), /proc/stat", Remedy: "reserve CPU for this guest, or move it", Cause: "cpu-steal", Checklist: []string{"C-29", "C-37"}, host: steal},
	}
}

func governor(h *host) *finding {
	if guest, known := h.guest(); guest || h.os == "" {
		return nil
	} else if !known && (h.CPU == nil || len(h.CPU.Governors) == 0) {
		return nil // perhaps a guest, and nothing that says otherwise
	}
	if h.CPU == nil || len(h.CPU.Governors) == 0 {
		return h.missing("frequency governor", "cpu.governors")
	}
	names := strings.Join(h.CPU.Governors, ", ")
	driver := text(h.CPU.Driver)
	active := strings.HasPrefix(driver, "intel_pstate") || strings.HasPrefix(driver, "amd-pstate") || strings.HasPrefix(driver, "amd_pstate")
	if active && slices.Contains(h.CPU.Governors, "powersave") {
		switch pref := text(h.CPU.Preference); pref {
		case "power", "balance_power":
			return warn("%s with the preference %s", driver, pref).do(performance(h))
		default:
			return pass("%s: powersave, which follows the load%s", driver, preferring(pref))
		}
	}
	if slices.ContainsFunc(h.CPU.Governors, slow) {
		return warn("governor %s%s", names, h.clocks()).do(performance(h))
	}
	return pass("governor %s%s", names, h.clocks())
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
func (h *host) clocks() string {
	if h.CPU.CurrentHz == nil || h.CPU.MaxHz == nil {
		return ""
	}
	return ", at " + gigahertz(*h.CPU.CurrentHz) + " of " + gigahertz(*h.CPU.MaxHz)
}

// performance holds the clock up.
func performance(h *host) remedy {
	risk := "more power and heat"
	switch h.os {
	case "linux":
		risk += "; lasts until the next boot"
	case "freebsd":
		risk += "; to keep it: powerd_enable=NO in /etc/rc.conf"
	case "esxi":
		risk += "; " + esxcliLasts
	}
	return worded(risk, h.typed(knob.Governor, "", "performance"))
}

func idleStates(h *host) *finding {
	c := h.CPU
	if c == nil || c.IdleExit == nil || *c.IdleExit < 0 {
		return nil
	}
	state := text(c.IdleState)
	if state == "" {
		state = "the deepest state"
	}
	if *c.IdleExit > deepSleep && h.wakesUp(*c.IdleExit) {
		fix := remedy{}
		if h.os == "linux" {
			fix = commands("more power and heat; lasts until the next boot", fmt.Sprintf("cpupower idle-set -D %d", deepSleep/1000))
		}
		r := h.subject.Path.RTT
		return warn("%s takes %s to leave; round trips take %s to %s", state, span(*c.IdleExit), span(r.Min), span(r.P90)).do(fix)
	}
	return pass("%s takes %s to leave", state, span(*c.IdleExit))
}

// wakesUp tells whether the round trips of the idle path look as if a CPU had
// to leave such a state first. On a long path other things hide it.
func (h *host) wakesUp(exit int64) bool {
	p := h.subject.Path
	return p != nil && p.RTT != nil && !h.onOneMachine() && p.RTT.Min > 0 && p.RTT.Min < 10*lanRTT && p.RTT.P90-p.RTT.Min > exit/2
}

func steal(h *host) *finding {
	guest, known := h.guest()
	if known && !guest || h.os == "esxi" {
		return nil
	}
	if h.Load == nil || h.Load.StealPct == nil {
		if !guest {
			return nil
		}
		return h.missing("steal time", "load.steal_pct")
	}
	if *h.Load.StealPct > 2 {
		return warn("the hypervisor takes %s of this guest's CPU time", percent(*h.Load.StealPct)).
			do(advise("reserve CPU for this guest, or move it or its neighbours").risking(onTheHost))
	}
	if b := h.Load.StealBoot; b != nil && *b > 2 {
		return pass("steal %s now, %s since the boot", percent(*h.Load.StealPct), percent(*b))
	}
	return pass("steal %s", percent(*h.Load.StealPct))
}

// gigahertz words a clock rate.
func gigahertz(hz int64) string { return fmt.Sprintf("%.3g GHz", float64(hz)/1e9) }
