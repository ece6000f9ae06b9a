package nic

import (
	"fmt"
	"strconv"

	"thru/internal/cause/advise"
	"thru/internal/cause/diagnose"
	"thru/internal/cause/gate"
	"thru/internal/cause/hypervisor"
	"thru/internal/cause/knob"
	"thru/internal/cause/rule"
	"thru/internal/cause/scene"
	"thru/internal/measure"
)

// InterruptModeration is the cause `interrupt-moderation`.
func InterruptModeration() rule.Cause {
	return rule.Cause{
		Rule: diagnose.Rule{
			Cause: "interrupt-moderation", TCP: true, UDP: true, Title: "the adapter interrupts too often or too late", Judge: func(f *diagnose.Flow) *diagnose.Outcome { return f.Either(judgeInterruptModeration) },
			Seen:        "50 000 interrupts per second or more on a CPU that is full; or a fixed delay of 500 us or more",
			Distinction: "a sweep of rx-usecs", Fix: "switch adaptive-rx on", Effect: "CPU, or latency",
			Source: "/proc/interrupts; ethtool -c; gate interrupt-moderation", Brings: []string{"receiver-cpu"},
		},
		Gates: []gate.Rule{
			{ID: "interrupt-moderation", Words: "coalescing coalesce itr", Receives: true, Title: "Interrupt moderation", About: "how long the adapter delays an interrupt",
				Warns:  "a fixed delay of 500 us or more after a received packet",
				Why:    "the delay adds to every round trip, and bursts of that length fill the ring",
				Source: "ethtool(8), -c", Fix: "let the driver choose the delay", Checklist: []string{"B-19", "C-24"}, Face: gateInterruptModeration},
		},
		Propose: []advise.Proposer{proposeInterruptModeration},
	}
}

func judgeInterruptModeration(e *diagnose.End) *diagnose.Outcome {
	if e.Flow.OnSameCPUs() {
		return diagnose.No("no interrupts: packets stay on the CPU that sends them")
	}
	if len(e.Counters().IRQs) > 0 {
		counts, _, _ := taken(e)
		n, most, _ := busiestOf(counts)
		cpu, ok := core(e, n)
		if rate := perSecond(e, most); ok && rate > manyIRQs && diagnose.Busy(cpu) > diagnose.FullBar && e.Flow.IsAll() == nil {
			o := diagnose.Possible("CPU %d of the %s takes %.0f interrupts per second", n, e.Place, rate).At(e.OnCPU(n)).
				By(diagnose.Above(e.Proof(fmt.Sprintf("/proc/interrupts of CPU %d", n), rate, "per_s"), manyIRQs)).
				AddFix(e.Machine().Fix(adaptive(e.Adapter()).Or("switch adaptive interrupt moderation on")))
			if cpu.IRQ > 20 {
				o.Confidence = measure.Likely
			}
			return o
		}
	}
	o, warns := hypervisor.Gated(e, "interrupt-moderation")
	if !warns {
		return o
	}
	return hypervisor.Symptom(o, e.Flow.WindowBinds() && e.Flow.IsAll() == nil) // the window is too small for this round trip
}

// manyIRQs is the number of interrupts per second on one CPU that cost more than the packets.
const manyIRQs = 50_000

func gateInterruptModeration(f *scene.Face) *gate.Finding {
	c := f.Coalesce
	if c == nil || !f.Wired() {
		return nil
	}
	if !c.AdaptiveRX && c.RXNs >= 500_000 {
		return gate.Warn("%s delays an interrupt by %s after a received packet", f.Name, gate.Span(c.RXNs)).Do(adaptive(f))
	}
	if c.AdaptiveRX {
		return gate.Pass("%s adapts its interrupt delay", f.Name)
	}
	return gate.Pass("%s delays an interrupt by %s after a received packet", f.Name, gate.Span(max(0, c.RXNs)))
}

// adaptive lets the driver choose the delay.
func adaptive(f *scene.Face) scene.Fix { return f.Set(knob.Coalescing, "adaptive-rx on") }

// proposeInterruptModeration lets the driver choose how long it gathers packets and, if it can or that does not
// help, proposes a shorter fixed time. They are separate proposals: a driver without adaptive moderation refuses
// only when it is set.
func proposeInterruptModeration(r advise.Request) []advise.Draft {
	h := r.Receiving()
	face := r.Here(h)
	s := h.State(knob.Coalescing, face)
	_, now := advise.Pairs(s.Value)
	const wait = 50 // us: some 40 full packets at 10 Gb/s
	var list []advise.Draft
	if now["adaptive-rx"] == "off" {
		list = append(list, advise.Change(h, knob.Coalescing, face, advise.With(s.Value, "adaptive-rx", "on"), "adaptive interrupt moderation at %s of %s", face, h.Name))
	}
	if has, err := strconv.Atoi(now["rx-usecs"]); err == nil && has > wait {
		fixed := []string{"rx-usecs", strconv.Itoa(wait)}
		if now["adaptive-rx"] == "on" { // which would override it
			fixed = append(fixed, "adaptive-rx", "off")
		}
		d := advise.Change(h, knob.Coalescing, face, advise.With(s.Value, fixed...), "%s of %s interrupts at most %d us after a packet", face, h.Name, wait)
		d.Id = fmt.Sprintf("%s=%d", d.Name(), wait)
		list = append(list, d)
	}
	return list
}
