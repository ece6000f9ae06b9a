package cpu

import (
	"cmp"
	"fmt"

	"thru/internal/cause/gate"
	"thru/internal/cause/scene"
	"thru/internal/measure"
)

// deepSleep is the exit latency of an idle state from which it matters, in ns.
const deepSleep = 100_000

// IdleStatesGate is the gate `idle-states`.
func IdleStatesGate() gate.Rule {
	return gate.Rule{ID: "idle-states", Words: "c-states cstates sleep cpuidle", Title: "Idle states", About: "the exit latency of the deepest idle state, and whether idle round trips show it",
		Warns:  "the exit latency is above 100 us, and a tenth of the round trips between two hosts exceed the minimum by half the exit latency",
		Why:    "a CPU that sleeps between requests adds its wake-up time to each request",
		Source: "Linux cpuidle.rst", Fix: "forbid deep idle states while latency is measured", Checklist: []string{"C-15"}, Host: gateIdleStates}
}

func gateIdleStates(h *scene.Host) *gate.Finding {
	c := h.CPU
	if c == nil || c.IdleExit == nil || *c.IdleExit < 0 {
		return nil
	}
	state := cmp.Or(measure.Value(c.IdleState), "the deepest state")
	if *c.IdleExit > deepSleep && wakesUp(h, *c.IdleExit) {
		fix := scene.Fix{}
		if h.System == "linux" {
			fix = scene.Commands("more power and heat; lasts until the next boot", fmt.Sprintf("cpupower idle-set -D %d", deepSleep/1000))
		}
		r := h.Subject.Path.RTT
		return gate.Warn("exit latency of %s is %s; round trips take %s to %s", state, gate.Span(*c.IdleExit), gate.Span(r.Min), gate.Span(r.P90)).Do(fix)
	}
	return gate.Pass("exit latency of %s is %s", state, gate.Span(*c.IdleExit))
}

// wakesUp reports whether the round trips of the idle path look as if a CPU first had to leave such a state. On a
// long path other delays hide it.
func wakesUp(h *scene.Host, exit int64) bool {
	p := h.Subject.Path
	return p != nil && p.RTT != nil && !h.OnOneMachine() && p.RTT.Min > 0 && p.RTT.Min < 10*scene.LanRTT && p.RTT.P90-p.RTT.Min > exit/2
}
