package cpu

import (
	"fmt"
	"slices"
	"strings"

	"thru/internal/cause/advise"
	"thru/internal/cause/diagnose"
	"thru/internal/cause/gate"
	"thru/internal/cause/hypervisor"
	"thru/internal/cause/knob"
	"thru/internal/cause/rule"
	"thru/internal/cause/scene"
	"thru/internal/measure"
)

// CPUGovernor is the cause `cpu-governor`.
func CPUGovernor() rule.Cause {
	return rule.Cause{
		Rule: diagnose.Rule{
			Cause: "cpu-governor", TCP: true, UDP: true, Title: "power saving lowers the CPU clock", Judge: func(f *diagnose.Flow) *diagnose.Outcome { return f.Either(judgeCPUGovernor) },
			Seen:        "the governor saves power; likely if a CPU is full and its clock was below 70% of its maximum",
			Distinction: "the same test with the governor performance", Fix: "set the governor performance", Effect: "5 to 30%",
			Source: "Linux cpufreq.rst; gate governor", Brings: []string{"sender-cpu", "receiver-cpu", "single-flow"},
		},
		Gates: []gate.Rule{
			{ID: "governor", Words: "cpufreq frequency powersave performance power", Title: "CPU frequency", About: "the frequency governor and the energy preference (not in virtual machines, which do not control the clock)",
				Warns:  "powersave, ondemand or conservative (Windows: Power saver, ESXi: Low Power); with intel_pstate or amd-pstate, where powersave follows the load, only an energy preference of power or balance_power",
				Why:    "a CPU that lowers its clock between packets costs 5 to 30% of the rate",
				Source: "Linux intel_pstate.rst, cpufreq.rst", Fix: "set the governor performance", Checklist: []string{"C-07", "C-29"}, Host: gateGovernor},
		},
		Propose: []advise.Proposer{proposeCPUGovernor},
	}
}

func judgeCPUGovernor(e *diagnose.End) *diagnose.Outcome {
	o, warns := hypervisor.Gated(e, "cpu-governor")
	if !warns {
		return o
	}
	if !hypervisor.WorksFully(e) {
		return o.MarkNotBinding()
	}
	if c := e.CPU; c != nil && c.CurrentHz != nil && c.MaxHz != nil && float64(*c.CurrentHz) < 0.7*float64(*c.MaxHz) {
		o.Confidence = measure.Likely
		o.By(diagnose.UnderBar(e.Proof("clock of the fastest CPU", float64(*c.CurrentHz), "Hz"), 0.7*float64(*c.MaxHz)))
	}
	return o
}

func gateGovernor(h *scene.Host) *gate.Finding {
	if guest, known := h.Guest(); guest || h.System == "" {
		return nil
	} else if !known && (h.CPU == nil || len(h.CPU.Governors) == 0) {
		return nil // perhaps a guest, and nothing shows otherwise
	}
	if h.CPU == nil || len(h.CPU.Governors) == 0 {
		return gate.Missing(h, "frequency governor", "cpu.governors")
	}
	names := strings.Join(h.CPU.Governors, ", ")
	driver := measure.Value(h.CPU.Driver)
	active := strings.HasPrefix(driver, "intel_pstate") || strings.HasPrefix(driver, "amd-pstate") || strings.HasPrefix(driver, "amd_pstate")
	if active && slices.Contains(h.CPU.Governors, "powersave") {
		switch pref := measure.Value(h.CPU.Preference); pref {
		case "power", "balance_power":
			return gate.Warn("%s with the energy preference %s", driver, pref).Do(Performance(h))
		default:
			return gate.Pass("%s: powersave, which follows the load%s", driver, preferring(pref))
		}
	}
	if slices.ContainsFunc(h.CPU.Governors, slow) {
		return gate.Warn("governor %s%s", names, clocks(h)).Do(Performance(h))
	}
	return gate.Pass("governor %s%s", names, clocks(h))
}

// Performance keeps the clock rate high.
func Performance(h *scene.Host) scene.Fix {
	return h.Set(knob.Governor, "", "performance").Costing("more power and heat")
}

func preferring(pref string) string {
	if pref == "" {
		return ""
	}
	return ", preference " + pref
}

// slow reports whether a governor lowers the clock: those of Linux, and the power plans of Windows and ESXi, in
// any case.
func slow(governor string) bool {
	return slices.Contains([]string{"powersave", "conservative", "ondemand", "power saver", "low power"}, strings.ToLower(governor))
}

// clocks words the current and the maximum clock rate.
func clocks(h *scene.Host) string {
	if h.CPU.CurrentHz == nil || h.CPU.MaxHz == nil {
		return ""
	}
	return ", at " + gigahertz(*h.CPU.CurrentHz) + " of " + gigahertz(*h.CPU.MaxHz)
}

// gigahertz words a clock rate.
func gigahertz(hz int64) string { return fmt.Sprintf("%.3g GHz", float64(hz)/1e9) }

func proposeCPUGovernor(r advise.Request) []advise.Draft {
	const want = "performance"
	h := r.At
	if h == nil {
		return nil
	}
	s := h.State(knob.Governor, "")
	if !s.Known || knob.Same(s.Value, want) || !s.Offers(want) {
		return nil
	}
	return []advise.Draft{advise.Change(h, knob.Governor, "", want, "set the governor performance on all CPUs of %s", h.Name)}
}
