package cpu

import (
	"fmt"
	"slices"
	"strings"

	"thru/internal/cause/advise"
	"thru/internal/knob"
	"thru/internal/measure"
)

// CpuProposals are for CPUs that are full, or that clock down.
func CpuProposals() []advise.Rule {
	return []advise.Rule{
		{Cause: "cpu-governor", Propose: governorProposal},
		{Cause: "receiver-cpu", Propose: budget},
		{Cause: "sender-cpu", Propose: lean},
		{Cause: "receiver-cpu", Propose: lean},
		{Cause: "numa-remote", Propose: nearCPU},
	}
}

func governorProposal(r advise.Request) []advise.Draft {
	const want = "performance"
	h := r.At
	if h == nil {
		return nil
	}
	s := h.State(knob.Governor, "")
	if !s.Known || knob.Same(s.Value, want) || !s.Offers(want) {
		return nil
	}
	return []advise.Draft{advise.Change(h, knob.Governor, "", want, "the CPUs of %s keep their clock up", h.Name)}
}

// budget lets a CPU take more packets at a time, where it was seen to run out.
func budget(r advise.Request) []advise.Draft {
	if r.Finding == nil || !slices.ContainsFunc(r.Finding.Evidence, func(p measure.Proof) bool { return strings.Contains(p.Counter, "squeeze") && p.Value > 0 }) {
		return nil
	}
	h := r.Receiving()
	has := h.State(knob.Budget, "").Number()
	if has == 0 || has >= 1<<16 {
		return nil
	}
	return []advise.Draft{advise.Change(h, knob.Budget, "", fmt.Sprint(2*has), "a CPU of %s takes %d packets in a round, instead of %d", h.Name, 2*has, has).ForWay(r.Way)}
}

// lean is a test that copies at neither end: it shows what the path carries,
// and changes nothing for other programs.
func lean(r advise.Request) []advise.Draft {
	c := r.Way.Cell
	if c == nil || c.Protocol != measure.TCP || c.IO == measure.IOLean || c.IO == measure.IOPortable || c.Spec.IOForced || c.Spec.Verify || !r.Way.From.IsLinux() || !r.Way.To.IsLinux() {
		return nil
	}
	d := advise.Draft{Id: knob.Lean, Title: "the test copies at neither end", Test: &measure.TestOptions{IO: measure.IOLean, Flags: "--lean"}}.ForWay(r.Way)
	if x := r.Way.Best(func(x *measure.Cell) bool { return x.IO == measure.IOLean && x.Streams == c.Streams }); x != nil {
		d = r.Way.Shown(d, x)
	}
	return []advise.Draft{d.AtLast()}
}

// nearCPU binds the one thread of an end to a CPU of the adapter's node.
func nearCPU(r advise.Request) []advise.Draft {
	h, c := r.At, r.Way.Cell
	if h == nil || c == nil || c.Streams != 1 || c.Spec.SenderCPU != nil || c.Spec.ReceiverCPU != nil {
		return nil
	}
	cpus := h.Near(r.Here(h))
	if i := h.Facts.Interface(r.Here(h)); i == nil || i.NUMANode == nil || len(cpus) == 0 {
		return nil
	}
	cpu := cpus[len(cpus)-1]                                     // interrupts are at the first ones
	t := &measure.TestOptions{Flags: fmt.Sprintf("-A ,%d", cpu)} // the other end's, as the command line has it
	if r.IsOurs(h) {
		t.Flags = fmt.Sprintf("-A %d", cpu)
	}
	if h == r.Way.From {
		t.SenderCPU = &cpu
	} else {
		t.ReceiverCPU = &cpu
	}
	return []advise.Draft{advise.Draft{Id: fmt.Sprintf("%s=%d@%s", knob.CPUAffinity, cpu, h.Name), Title: fmt.Sprintf("the test's thread at %s is bound to CPU %d, which is near the adapter", h.Name, cpu), Test: t}.ForWay(r.Way).
		Bring(0, "docs/causes.md, numa-remote", "10 to 40%% from 40 Gb/s on: memory of the adapter's own node").AtLast()}
}
