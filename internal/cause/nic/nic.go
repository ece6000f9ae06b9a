// Package nic holds the causes of adapters and links: queues, interrupts, offloads, rings, drivers, speed, cables.
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

// ProposeIRQOneCPU pins each interrupt of an interface to a CPU of its own, on the adapter's NUMA node; with a
// single interrupt, software spreads its packets (RPS).
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
		Title: fmt.Sprintf("spread the %d interrupts of %s at %s over CPUs %s", len(irqs), face, h.Name, unit.List(cpus))}
	if r.Finding != nil {
		d = d.ForDirection(r.Direction)
	}
	return []advise.Draft{d}
}

// takers returns the CPUs that handle the interrupts of the interface: as configured, or as counted if the setting
// is not known.
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

// counted returns the CPU that handled an interrupt most often.
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

// Renegotiate makes the link negotiate its speed again.
func Renegotiate(f *scene.Face) scene.Fix {
	return command(f, map[string]string{
		"linux":   "ethtool -s %s autoneg on",
		"freebsd": "ifconfig %s media autoselect",
		"darwin":  "ifconfig %s media autoselect",
		"solaris": "dladm set-linkprop -p adv_autoneg_cap=1 %s", "illumos": "dladm set-linkprop -p adv_autoneg_cap=1 %s",
		"windows": "Set-NetAdapterAdvancedProperty -Name %s -RegistryKeyword '*SpeedDuplex' -RegistryValue 0",
		"esxi":    "esxcli network nic set -a -n %s",
	}).Risking(knob.MayFlap).WithAdvice("check cable and optics, and the settings of the switch port")
}

// SlowLink is the highest speed in bit/s at which a CPU needs no offloads.
const SlowLink = 2_500_000_000

// eachPort judges the interfaces with a wire of both ends until one holds. clear is the outcome if none does;
// without a wire there is nothing to judge.
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
	return diagnose.Missing(fact, "the interfaces of one or both ends are not known")
}

// gateFix returns the fix of a gate of that cause at an end, else the advice.
func gateFix(f *diagnose.Flow, cause string, e *diagnose.End, advice string) *measure.Fix {
	return hypervisor.Fix(e, hypervisor.Conditions(f, cause, e.Name), diagnose.Advise(e, advice))
}

// perSecond returns a count of the measured time per second; 0 if the time is not known.
func perSecond(e *diagnose.End, n float64) float64 {
	if e.Span() <= 0 {
		return 0
	}
	return n / (float64(e.Span()) / 1e9)
}

// busiestOf returns the CPU with the highest count, that count, and its share.
func busiestOf(counts map[int]float64) (core int, most, share float64) {
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

// taken returns how often each CPU handled packets of the end's interface, by its interrupts, or else by the
// packets it processed; false if neither is known.
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

// core returns the counters of a CPU of the end; false if they are not known.
func core(e *diagnose.End, n int) (measure.CPU, bool) {
	cpus := e.Counters().CPUs
	i := slices.IndexFunc(cpus, func(c measure.CPU) bool { return c.Core == n })
	if i < 0 {
		return measure.CPU{}, false
	}
	return cpus[i], true
}

// fewFlows is a number of flows that may share one of several queues by chance.
const fewFlows = 4

// sharesQueue excludes the cause if the end has too few flows to use several queues: one flow uses one queue by
// design, whichever CPU its interrupts are bound to. nil: there are enough flows.
func sharesQueue(e *diagnose.End) *diagnose.Outcome {
	single := e.Face != nil && e.Face.Queues != nil && *e.Face.Queues == 1
	switch n := e.Flows(); {
	case n == 1:
		return diagnose.No("one flow uses one queue and so one CPU by design")
	case n < fewFlows && !single:
		return diagnose.No("%d flows can share a queue by chance", n)
	}
	return nil
}

// Steering spreads the packets of a single queue in software (RPS), over the CPUs of the adapter's NUMA node
// except the one that handles its interrupts.
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
	where := "CPUs " + unit.List(cpus) + " take them"
	if len(cpus) == 1 {
		where = fmt.Sprintf("CPU %d takes them", cpus[0])
	}
	return []advise.Draft{advise.Change(h, knob.RPS, face, value, "spread the packets of the single queue of %s at %s: %s (RPS)", face, h.Name, where).ForDirection(r.Direction)}
}

// taker returns the CPU that handles the interrupts of an interface: as found, or as configured.
func taker(r advise.Request, h *scene.Host, face string) (cpu int, known bool) {
	if r.Finding != nil && r.Finding.Where.CPU != nil && r.Finding.Where.EndPoint == h.Name {
		return *r.Finding.Where.CPU, true
	}
	if i := h.Interface(face); i != nil && len(i.IRQs) == 1 && len(i.IRQs[0].Effective) == 1 {
		return i.IRQs[0].Effective[0], true
	}
	return 0, false
}
