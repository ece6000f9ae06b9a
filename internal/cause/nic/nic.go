// Package nic holds the causes of adapters and links: queues, interrupts, offloads,
// rings, drivers, speed, cables.
package nic

import (
	"fmt"
	"slices"
	"strconv"

	"thru/internal/cause/advise"
	"thru/internal/cause/diagnose"
	"thru/internal/cause/hypervisor"
	"thru/internal/cause/knob"
	"thru/internal/cause/scene"
	"thru/internal/measure"
	"thru/internal/unit"
)

// ProposeIRQOneCPU gives each interrupt of an interface a CPU of its own, of the
// adapter's node; where it has only one, software spreads its packets.
func ProposeIRQOneCPU(r advise.Request) []advise.Draft {
	h := r.Receiving()
	face := r.Here(h)
	s := h.State(knob.IRQAffinity, face)
	irqs, now := advise.Pairs(s.Value)
	cpus := h.FaceOf(face).Near()
	if len(irqs) < 2 || len(cpus) < 2 && r.Cause != "numa-remote" || len(cpus) == 0 {
		return Steering(r)
	}
	change := []string{}
	for i, irq := range irqs {
		if cpu := strconv.Itoa(cpus[i%len(cpus)]); now[irq] != cpu {
			change = append(change, irq, cpu)
		}
	}
	if len(change) == 0 {
		return Steering(r)
	}
	d := advise.Draft{Settings: []measure.Setting{h.Setting(knob.IRQAffinity, face, advise.With(s.Value, change...))},
		Title: fmt.Sprintf("the %d interrupts of %s at %s go to CPUs %s in turns", len(irqs), face, h.Name, unit.List(cpus))}
	if r.Finding != nil {
		d = d.ForDirection(r.Direction)
	}
	return []advise.Draft{d}
}

// takers are the CPUs that take the interrupts of the interface: as set, or
// as counted where the setting is not known.
func takers(f *scene.Face) (cpus []int, irqs int) {
	for _, q := range f.IRQs {
		list := q.Effective
		if len(list) == 0 {
			list = counted(q)
		}
		if len(list) > 0 {
			irqs++
			cpus = append(cpus, list...)
		}
	}
	slices.Sort(cpus)
	return slices.Compact(cpus), irqs
}

// counted is the CPU that took an interrupt most often.
func counted(q measure.IRQ) []int {
	best, most := -1, int64(0)
	for _, key := range scene.SortedKeys(q.Counts) {
		if cpu, err := strconv.Atoi(key); err == nil && q.Counts[key] > most {
			best, most = cpu, q.Counts[key]
		}
	}
	if best < 0 {
		return nil
	}
	return []int{best}
}

// Renegotiate makes the link agree on its speed again.
func Renegotiate(f *scene.Face) scene.Fix {
	return command(f, map[string]string{
		"linux":   "ethtool -s %s autoneg on",
		"freebsd": "ifconfig %s media autoselect",
		"darwin":  "ifconfig %s media autoselect",
		"solaris": "dladm set-linkprop -p adv_autoneg_cap=1 %s", "illumos": "dladm set-linkprop -p adv_autoneg_cap=1 %s",
		"windows": "Set-NetAdapterAdvancedProperty -Name %s -RegistryKeyword '*SpeedDuplex' -RegistryValue 0",
		"esxi":    "esxcli network nic set -a -n %s",
	}).Risking(knob.MayFlap).Saying("check cable and optics, and the settings of the switch port")
}

// SlowLink is the speed up to which a CPU does without the adapter's help.
const SlowLink = 2_500_000_000

// eachPort judges the interfaces with a wire of both ends, until one holds.
// clear is what is said where none does; without a wire there is nothing to judge.
func eachPort(f *diagnose.Flow, fact string, clear string, judge func(e *diagnose.End, i *measure.Interface) *diagnose.Outcome) *diagnose.Outcome {
	var open *diagnose.Outcome
	wires := 0
	for _, e := range f.Ends() {
		for _, i := range e.Ports() {
			wires++
			o := judge(e, i)
			switch {
			case o != nil && o.State == diagnose.Holds:
				return o
			case o != nil && o.State == diagnose.Unknown:
				open = o
			}
		}
	}
	switch {
	case open != nil:
		return open
	case wires > 0 && f.Sender.HasFace() && f.Receiver.HasFace():
		return diagnose.No("%s", clear)
	case f.OnOneMachine() || f.Sender.HasFace() && f.Receiver.HasFace():
		return nil // no wire at either end: nothing to judge
	}
	return diagnose.Missing(fact, "the interfaces of one end or both are not known")
}

// gateFix is what a gate of that cause says is to be done at an end, else
// the advice.
func gateFix(f *diagnose.Flow, cause string, e *diagnose.End, advice string) *measure.Fix {
	return hypervisor.Fix(e, hypervisor.Conditions(f, cause, e.Name), diagnose.Advise(e, advice))
}

// perSecond is a count of the measured time for each second of it; 0 where the
// time is not known.
func perSecond(e *diagnose.End, n float64) float64 {
	if e.Span() <= 0 {
		return 0
	}
	return n / (float64(e.Span()) / 1e9)
}

// BusiestOf is the CPU with the most of a count, that count, and its share.
func BusiestOf(counts map[int]float64) (core int, most, share float64) {
	sum := 0.0
	core = -1
	for c, n := range counts {
		sum += n
		if n > most || n == most && n > 0 && c < core {
			core, most = c, n
		}
	}
	if sum <= 0 {
		return -1, 0, 0
	}
	return core, most, most / sum
}

// taken is how often each CPU took packets of the end's interface, by its
// interrupts, else by what it processed; false where neither is known.
func taken(e *diagnose.End) (counts map[int]float64, counter string, known bool) {
	counts = map[int]float64{}
	for _, q := range e.Counters().IRQs {
		counts[q.Core] += float64(q.Count)
	}
	if len(counts) > 0 {
		return counts, "/proc/interrupts", true
	}
	for _, s := range e.Counters().Softnet {
		counts[s.Core] += float64(s.Processed)
	}
	return counts, "/proc/net/softnet_stat processed", len(counts) > 0
}

// core is what a CPU of the end did; false where it is not known.
func core(e *diagnose.End, n int) (measure.CPU, bool) {
	cpus := e.Counters().CPUs
	i := slices.IndexFunc(cpus, func(c measure.CPU) bool { return c.Core == n })
	if i < 0 {
		return measure.CPU{}, false
	}
	return cpus[i], true
}

// fewFlows may have come by one queue of several by chance.
const fewFlows = 4

// sharesQueue says that the flows of an end are too few to use several queues: one
// has one by design, whichever CPU its interrupts are bound to. nil: they are enough.
func sharesQueue(e *diagnose.End) *diagnose.Outcome {
	single := e.Face != nil && e.Face.Queues != nil && *e.Face.Queues == 1
	switch n := e.Flows(); {
	case n == 1:
		return diagnose.No("one flow has one queue by design, and so one CPU")
	case n < fewFlows && !single:
		return diagnose.No("%d flows may well share a queue", n)
	}
	return nil
}

// Steering spreads the packets of the one queue by software (RPS), over the CPUs
// of the adapter's node without the one that takes its interrupts.
func Steering(r advise.Request) []advise.Draft {
	h := r.Receiving()
	if r.At != nil && r.At != r.Direction.To && r.Cause == "receiver-cpu" {
		return nil
	}
	face := r.Here(h)
	queues, _ := advise.Pairs(h.Value(knob.RPS, face))
	cpus := h.FaceOf(face).Near()
	if len(queues) != 1 || len(cpus) < 2 || h.FaceOf(face).KindName() == "loopback" || r.Direction.Local() {
		return nil
	}
	if taker, known := taker(r, h, face); known && len(cpus) > 1 {
		cpus = slices.DeleteFunc(slices.Clone(cpus), func(c int) bool { return c == taker })
	}
	value := advise.With("", queues[0], knob.Mask(cpus))
	where := "CPUs " + unit.List(cpus) + " share them"
	if len(cpus) == 1 {
		where = fmt.Sprintf("CPU %d takes them", cpus[0])
	}
	return []advise.Draft{advise.Change(h, knob.RPS, face, value, "packets of the one queue of %s at %s: %s (RPS)", face, h.Name, where).ForDirection(r.Direction)}
}

// taker is the CPU that takes the interrupts of an interface: as found, or as set.
func taker(r advise.Request, h *scene.Host, face string) (cpu int, known bool) {
	if r.Finding != nil && r.Finding.Where.CPU != nil && r.Finding.Where.EndPoint == h.Name {
		return *r.Finding.Where.CPU, true
	}
	if i := h.Interface(face); i != nil && len(i.IRQs) == 1 && len(i.IRQs[0].Effective) == 1 {
		return i.IRQs[0].Effective[0], true
	}
	return 0, false
}
