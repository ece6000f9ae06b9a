package advise

import (
	"fmt"
	"slices"
	"strings"

	"thru/internal/knob"
	"thru/internal/measure"
)

// cpuRules are for CPUs that are full, or that clock down.
func cpuRules() []rule {
	return []rule{
		{"cpu-governor", governor},
		{"receiver-cpu", budget},
		{"sender-cpu", lean},
		{"receiver-cpu", lean},
		{"numa-remote", nearCPU},
	}
}

func governor(r request) []draft {
	const want = "performance"
	h := r.at
	if h == nil {
		return nil
	}
	s := h.state(knob.Governor, "")
	if !s.known || knob.Same(s.value, want) || !s.offers(want) {
		return nil
	}
	return []draft{change(h, knob.Governor, "", want, "the CPUs of %s keep their clock up", h.name)}
}

// budget lets a CPU take more packets at a time, where it was seen to run out.
func budget(r request) []draft {
	if r.finding == nil || !slices.ContainsFunc(r.finding.Evidence, func(p measure.Proof) bool { return strings.Contains(p.Counter, "squeeze") && p.Value > 0 }) {
		return nil
	}
	h := r.receiving()
	has := h.state(knob.Budget, "").number()
	if has == 0 || has >= 1<<16 {
		return nil
	}
	return []draft{change(h, knob.Budget, "", fmt.Sprint(2*has), "a CPU of %s takes %d packets in a round, instead of %d", h.name, 2*has, has).forWay(r.way)}
}

// lean is a test that copies at neither end: it shows what the path carries,
// and changes nothing for other programs.
func lean(r request) []draft {
	c := r.way.cell
	if c == nil || c.Protocol != measure.TCP || c.IO == measure.IOLean || c.IO == measure.IOPortable || c.Spec.IOForced || c.Spec.Verify || !r.way.from.isLinux() || !r.way.to.isLinux() {
		return nil
	}
	d := draft{id: knob.Lean, title: "the test copies at neither end", test: &measure.TestOptions{IO: measure.IOLean, Flags: "--lean"}}.forWay(r.way)
	if x := r.way.best(func(x *measure.Cell) bool { return x.IO == measure.IOLean && x.Streams == c.Streams }); x != nil {
		d = r.way.shown(d, x)
	}
	return []draft{d.atLast()}
}

// nearCPU binds the one thread of an end to a CPU of the adapter's node.
func nearCPU(r request) []draft {
	h, c := r.at, r.way.cell
	if h == nil || c == nil || c.Streams != 1 || c.Spec.SenderCPU != nil || c.Spec.ReceiverCPU != nil {
		return nil
	}
	cpus := h.near(r.here(h))
	if i := h.facts.Interface(r.here(h)); i == nil || i.NUMANode == nil || len(cpus) == 0 {
		return nil
	}
	cpu := cpus[len(cpus)-1]                                     // interrupts are at the first ones
	t := &measure.TestOptions{Flags: fmt.Sprintf("-A ,%d", cpu)} // the other end's, as the command line has it
	if r.isOurs(h) {
		t.Flags = fmt.Sprintf("-A %d", cpu)
	}
	if h == r.way.from {
		t.SenderCPU = &cpu
	} else {
		t.ReceiverCPU = &cpu
	}
	return []draft{draft{id: fmt.Sprintf("%s=%d@%s", knob.CPUAffinity, cpu, h.name), title: fmt.Sprintf("the test's thread at %s is bound to CPU %d, which is near the adapter", h.name, cpu), test: t}.forWay(r.way).
		bring(0, "docs/causes.md, numa-remote", "10 to 40%% from 40 Gb/s on: memory of the adapter's own node").atLast()}
}
