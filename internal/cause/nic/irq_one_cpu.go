package nic

import (
	"fmt"
	"strings"

	"thru/internal/cause/advise"
	"thru/internal/cause/diagnose"
	"thru/internal/cause/gate"
	"thru/internal/cause/rule"
	"thru/internal/cause/scene"
	"thru/internal/measure"
	"thru/internal/unit"
)

// IRQOneCPU is the cause `irq-one-cpu`.
func IRQOneCPU() rule.Cause {
	return rule.Cause{
		Rule: diagnose.Rule{
			Cause: "irq-one-cpu", TCP: true, UDP: true, Unseen: diagnose.HostTime, Title: "one CPU takes all packets of the interface", Judge: func(f *diagnose.Flow) *diagnose.Outcome { return f.Either(JudgeIRQOneCPU) },
			Seen:        "with several flows, nearly all interrupts of the interface or all received packets go to one CPU, which they fill, while other CPUs are idle",
			Distinction: "the same test with the interrupts of each queue on a CPU of its own; one flow uses one queue by design, and its cause is single-flow", Fix: "spread the interrupts (smp_affinity_list), or use RPS", Effect: "a rate up to as many times higher as there are CPUs",
			Source: "/proc/interrupts; /proc/net/softnet_stat; Linux scaling.rst", Brings: []string{"receiver-cpu", "ring-overflow", "backlog-overflow", "slow-reader"},
		},
		Gates: []gate.Rule{
			{ID: "irq-spread", Words: "irq irqs interrupts affinity irqbalance", Receives: true, Title: "Interrupts over the CPUs", About: "the CPUs that take the interrupts of an interface with several queues",
				Warns:  "all of its interrupts go to one CPU of several, without RPS",
				Why:    "one CPU then takes the packets of all queues, and more queues do not help",
				Source: "Linux scaling.rst", Fix: "assign each queue a CPU of its own", Checklist: []string{"C-11", "C-29"}, Face: gateIRQSpread},
			{ID: "irq-sharing", Title: "Shared interrupts", About: "whether other devices use the same interrupt",
				Warns:  "another device uses it",
				Why:    "each interrupt then runs the drivers of all its devices; one slow driver delays the others",
				Source: "C-11", Fix: "enable MSI-X, or use another slot", Checklist: []string{"C-11"}, Face: gateIRQSharing},
		},
		Propose: []advise.Proposer{ProposeIRQOneCPU},
	}
}

// JudgeIRQOneCPU judges by the CPUs that handled the packets of an end.
func JudgeIRQOneCPU(e *diagnose.End) *diagnose.Outcome {
	if e.Flow.OnSameCPUs() {
		return diagnose.No("no interrupts: packets stay on the CPU that sends them")
	}
	if o := e.Flow.IsAll(); o != nil {
		return o
	}
	counts, counter, known := taken(e)
	if !known || len(e.Seen.Host.CPUs) == 0 {
		return e.Lacks("interrupts of the interface on each CPU")
	}
	if o := sharesQueue(e); o != nil {
		return o
	}
	if len(e.Seen.Host.CPUs) == 1 {
		return diagnose.No("the %s has only one CPU", e.Place)
	}
	n, most, share := busiestOf(counts)
	cpu, seen := core(e, n)
	soft := diagnose.Packets(cpu)
	switch {
	case share < diagnose.OneShare || perSecond(e, most) < diagnose.FewPackets:
		return diagnose.No("the %s's CPU %d takes %s of the interface's interrupts or packets", e.Place, max(n, 0), unit.Percent(100*share))
	case !seen:
		return e.Lacks("the time of each CPU")
	case diagnose.Busy(cpu) < diagnose.FullBar || soft < diagnose.PacketBar:
		return diagnose.No("the %s's CPU %d, which takes the packets, is %s busy, %s with packets", e.Place, n, unit.Percent(diagnose.Busy(cpu)), unit.Percent(soft))
	}
	o := diagnose.Likely("one CPU of the %s (%d) takes all its packets, and spends %s of its time on them", e.Place, n, unit.Percent(soft)).At(e.OnCPU(n)).
		By(diagnose.Above(e.Proof(counter+", share of CPU "+fmt.Sprint(n), 100*share, "pct"), 100*diagnose.OneShare),
			diagnose.Above(e.Proof(fmt.Sprintf("/proc/stat cpu%d irq and softirq", n), soft, "pct"), diagnose.PacketBar))
	if l := e.Load(); counter == "/proc/interrupts" && !l.All && soft > 90 && !e.Other().Load().Thread {
		o.Confidence = measure.Certain
	}
	return o.AddFix(e.SpreadInterrupts())
}

func gateIRQSpread(f *scene.Face) *gate.Finding {
	if !f.Device() || f.RxQueues() <= 1 || f.Host.CPUs() <= 1 {
		return nil
	}
	cpus, irqs := takers(f)
	switch {
	case irqs == 0:
		return gate.Missing(f, "interrupts of "+f.Name, "interrupts")
	case irqs > 1 && len(cpus) == 1 && len(f.RPS) == 0:
		return gate.Warn("all %d interrupts of %s go to CPU %d, of %d", irqs, f.Name, cpus[0], f.Host.CPUs()).Do(scene.SpreadInterrupts(f))
	}
	return gate.Pass("%d interrupts of %s go to %d CPUs", irqs, f.Name, len(cpus))
}

func gateIRQSharing(f *scene.Face) *gate.Finding {
	if len(f.IRQs) == 0 {
		return nil
	}
	for _, q := range f.IRQs {
		if len(q.Shared) > 0 {
			return gate.Warn("interrupt %d of %s is shared with %s", q.Number, f.Name, strings.Join(q.Shared[:min(3, len(q.Shared))], ", ")).
				Do(scene.Advise("enable MSI-X (driver option, BIOS), or use another slot").Risking("the host must be shut down"))
		}
	}
	return gate.Pass("no device shares the %d interrupts of %s", len(f.IRQs), f.Name)
}
