package nic

import (
	"cmp"
	"fmt"
	"slices"

	"thru/internal/cause/advise"
	"thru/internal/cause/diagnose"
	"thru/internal/cause/gate"
	"thru/internal/cause/hypervisor"
	"thru/internal/cause/knob"
	"thru/internal/cause/rule"
	"thru/internal/cause/scene"
	"thru/internal/measure"
	"thru/internal/unit"
)

// NUMARemote is the cause `numa-remote`.
func NUMARemote() rule.Cause {
	return rule.Cause{
		Rule: diagnose.Rule{
			Cause: "numa-remote", TCP: true, UDP: true, Title: "the adapter is on another NUMA node", Judge: func(f *diagnose.Flow) *diagnose.Outcome { return f.Either(judgeNUMARemote) },
			Seen:        "threads or interrupts run on CPUs of another node than the adapter's; likely if a CPU is full above 10 Gb/s",
			Distinction: "the same test on CPUs of the adapter's node (-A)", Fix: "use CPUs of the adapter's node", Effect: "10 to 40% at 40 Gb/s and more",
			Source: "numa_node of the device (sysfs); gate numa", Brings: []string{"sender-cpu", "receiver-cpu", "single-flow"},
		},
		Gates: []gate.Rule{
			{ID: "numa", Receives: true, Title: "NUMA node of the adapter", About: "the node of the slot against the CPUs that thru may use and the CPUs that take the interrupts",
				Warns:  "thru may use no CPU of that node; or, from 25 Gb/s on, all interrupts go to other nodes",
				Why:    "memory of another node costs 10 to 40% of the rate from 40 Gb/s on",
				Source: "the catalogue of causes (numa-remote)", Fix: "use CPUs of the adapter's node", Checklist: []string{"C-29", "C-11"}, Face: gateNUMA},
		},
		Propose: []advise.Proposer{ProposeIRQOneCPU, NearCPU},
	}
}

func judgeNUMARemote(e *diagnose.End) *diagnose.Outcome {
	gated, warns := hypervisor.Gated(e, "numa-remote")
	if warns {
		return hypervisor.Symptom(gated, hypervisor.WorksFully(e) && e.Flow.Rate() > fastRate)
	}
	return cmp.Or(remoteThreads(e), gated)
}

// fastRate is the rate in bit/s from which memory of another NUMA node is a cost.
const fastRate = 10e9

// remoteThreads compares the CPUs to which the end's threads are bound with the adapter's NUMA node; nil if there
// is nothing to report.
func remoteThreads(e *diagnose.End) *diagnose.Outcome {
	if e.Face == nil || e.Face.NUMANode == nil || len(e.NUMA) < 2 {
		return nil
	}
	local := e.FaceOf(e.Face.Name).NodeCPUs()
	for _, s := range e.Streams() {
		if s.CPU == nil || len(local) == 0 || slices.Contains(local, *s.CPU) {
			continue
		}
		bps, _ := e.Flow.Goodput()
		return hypervisor.Symptom(diagnose.Possible("%s thread runs on CPU %d, but its adapter is on NUMA node %d", e.Owner(), *s.CPU, *e.Face.NUMANode).At(e.OnCPU(*s.CPU)).
			By(e.Proof("CPU of the thread", float64(*s.CPU), ""), e.Proof("numa_node of the adapter", float64(*e.Face.NUMANode), "")).
			AddFix(diagnose.Advise(e, "bind the thread to a CPU of that node: -A with one of "+unit.List(local))), hypervisor.WorksFully(e) && bps > fastRate)
	}
	return nil
}

func gateNUMA(f *scene.Face) *gate.Finding {
	local := f.NodeCPUs()
	if !f.Device() || len(f.Host.NUMA) < 2 || len(local) == 0 {
		return nil
	}
	if c := f.Host.Cgroup; c != nil && len(c.CPUs) > 0 && !shares(c.CPUs, local) {
		return gate.Warn("%s is on NUMA node %d, but thru may use only CPUs of other nodes", f.Name, *f.NUMANode).
			Do(scene.Advise("start thru with CPUs of that node: taskset -c " + unit.List(local) + " thru ..."))
	}
	cpus, irqs := takers(f)
	if irqs > 0 && !shares(cpus, local) && max(f.Speed(), f.Wanted()) >= 25_000_000_000 {
		return gate.Warn("%s is on NUMA node %d, but its interrupts go to other nodes", f.Name, *f.NUMANode).Do(scene.SpreadInterrupts(f))
	}
	return gate.Pass("%s is on NUMA node %d, which has %d CPUs", f.Name, *f.NUMANode, len(local))
}

// shares reports whether two lists have a member in common.
func shares(a, b []int) bool {
	return slices.ContainsFunc(a, func(n int) bool { return slices.Contains(b, n) })
}

// NearCPU binds the one thread of an end to a CPU of the adapter's NUMA node.
func NearCPU(r advise.Request) []advise.Draft {
	h, c := r.At, r.Direction.Cell
	if h == nil || c == nil || c.Streams != 1 || c.Spec.SenderCPU != nil || c.Spec.ReceiverCPU != nil {
		return nil
	}
	cpus := h.FaceOf(r.Here(h)).Near()
	if i := h.Facts.Interface(r.Here(h)); i == nil || i.NUMANode == nil || len(cpus) == 0 {
		return nil
	}
	cpu := cpus[len(cpus)-1]                                     // interrupts are at the first ones
	t := &measure.TestOptions{Flags: fmt.Sprintf("-A ,%d", cpu)} // the other end's, as the command line has it
	if r.IsOurs(h) {
		t.Flags = fmt.Sprintf("-A %d", cpu)
	}
	if h == r.Direction.From {
		t.SenderCPU = &cpu
	} else {
		t.ReceiverCPU = &cpu
	}
	return []advise.Draft{advise.Draft{Id: fmt.Sprintf("%s=%d@%s", knob.CPUAffinity, cpu, h.Name), Title: fmt.Sprintf("bind the test's thread at %s to CPU %d, on the adapter's NUMA node", h.Name, cpu), Test: t}.ForDirection(r.Direction).
		Bring(0, "docs/causes.md, numa-remote", "10 to 40%% from 40 Gb/s on: the thread uses memory of the adapter's node").AtLast()}
}
