// Package cpu holds the causes of the hosts' CPUs: streams, full CPUs, quota, steal, clock rates, memory,
// firewalls.
package cpu

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"thru/internal/cause/advise"
	"thru/internal/cause/diagnose"
	"thru/internal/cause/knob"
	"thru/internal/cause/mtu"
	"thru/internal/cause/scene"
	"thru/internal/measure"
	"thru/internal/unit"
)

// jumboMTU is the usual MTU of jumbo frames.
const jumboMTU = 9000

// jumboFromProposal is the rate in bit/s from which fewer, larger packets may help a full CPU.
const jumboFromProposal = 5e9

// Jumbo proposes a larger MTU at both ends for CPUs that are full of packets on a fast link; at one end alone it
// has no effect.
func Jumbo(r advise.Request) []advise.Draft {
	w := r.Direction
	a, b := w.Face(w.From), w.Face(w.To)
	fast := min(w.From.FaceOf(a).Speed(), w.To.FaceOf(b).Speed()) >= 2*jumboFromProposal || w.Goodput() >= jumboFromProposal
	if w.Local() || w.Routed() || !fast || !w.From.Facts.Interface(a).IsDevice() || !w.To.Facts.Interface(b).IsDevice() || mtu.MTUAt(w, w.From) > mtu.UsualMTU || mtu.MTUAt(w, w.To) > mtu.UsualMTU {
		return nil
	}
	own, ok := mtu.SetMTU(w, w.From, jumboMTU)
	other, too := mtu.SetMTU(w, w.To, jumboMTU)
	if !ok || !too {
		return nil
	}
	d := own.And(other, "MTU %d at both ends (jumbo frames)", jumboMTU).
		Bring(0, "docs/causes.md, single-flow: 1.3 to 2 times", "a sixth of the packets for the same data: 1.3 to 2 times the rate of one stream")
	d.Risk, d.Once = mtu.Crossing, true
	return []advise.Draft{d.AtLast()}
}

// Lean proposes a test without copies at either end: it shows what the path carries, and changes nothing for other
// programs.
func Lean(r advise.Request) []advise.Draft {
	c := r.Direction.Cell
	if c == nil || c.Protocol != measure.TCP || c.IO == measure.IOLean || c.IO == measure.IOPortable || c.Spec.IOForced || c.Spec.Verify || !r.Direction.From.IsLinux() || !r.Direction.To.IsLinux() {
		return nil
	}
	d := advise.Draft{Id: knob.Lean, Title: "test without copying data at either end", Test: &measure.TestOptions{IO: measure.IOLean, Flags: "--lean"}}.ForDirection(r.Direction)
	if x := r.Direction.Best(func(x *measure.Cell) bool { return x.IO == measure.IOLean && x.Streams == c.Streams }); x != nil {
		d = r.Direction.Shown(d, x)
	}
	return []advise.Draft{d.AtLast()}
}

// onOtherCPUs decides about a full CPU by the same traffic on other CPUs.
func onOtherCPUs(f *diagnose.Flow, o *diagnose.Outcome) *diagnose.Outcome {
	x := f.Experiment(diagnose.FreeCPU)
	g := f.Against(x)
	if g.Times < diagnose.GainBar {
		return o
	}
	return o.Gains(measure.Proof{EndPoint: f.Receiver.Name, Counter: "goodput on CPUs that the scheduler chose, over the base"}, g).
		Costs(0, "on other CPUs "+unit.Rate(diagnose.RateOf(x))+" pass", "the same traffic with -A off")
}

// unlessPaced lowers a full CPU to likely while pacing may be what fills it.
func unlessPaced(f *diagnose.Flow, o *diagnose.Outcome) *diagnose.Outcome {
	if f.MayBePaced() && o.Confidence == measure.Certain {
		o.Confidence = measure.Likely
	}
	return o
}

// drowns reports whether datagrams are sent faster than they arrive: additional ones would be lost too.
func drowns(f *diagnose.Flow) bool {
	return f.IsUDP() && f.Cell.Datagrams != nil && f.Cell.Datagrams.LossPct > drownBar
}

// drownBar is the percentage of lost datagrams above which loss is what binds.
const drownBar = 5

// sureOfCPU returns certain if nothing else limits the sender, or if less work per byte made the flow faster.
func sureOfCPU(f *diagnose.Flow, l diagnose.Load) string {
	if f.Against(f.Experiment(diagnose.LeanPath)).Sure {
		return measure.Certain
	}
	if f.IsUDP() {
		if l.Thread {
			return measure.Certain
		}
		return measure.Likely
	}
	rwnd, ok := f.RwndPct()
	again, okToo := f.AgainPct()
	if ok && okToo && rwnd < diagnose.RwndBar && again <= 0.1 && !f.HasQueue() && (l.Thread || l.Hot.Run+l.Hot.Wait > 75) {
		return measure.Certain
	}
	return measure.Likely
}

// fullCPU words the full CPU of an end, and what fills it.
func fullCPU(f *diagnose.Flow, e *diagnose.End, l diagnose.Load) *diagnose.Outcome {
	o := diagnose.Likely("")
	if l.Packet && !l.Thread && !e.Sends() {
		o.Text = fmt.Sprintf("%s CPU %d is full: received packets take %s of its time", e.Owner(), l.Soft.Core, unit.Percent(diagnose.Packets(l.Soft)))
		o.By(diagnose.Above(e.Proof(fmt.Sprintf("/proc/stat cpu%d irq and softirq", l.Soft.Core), diagnose.Packets(l.Soft), "pct"), diagnose.PacketBar))
		return relieve(f, o.At(e.OnCPU(l.Soft.Core)), e, l, false)
	}
	others := others(f, e, l)
	o.Text = sharers(f, e, l, others)
	o.By(diagnose.Above(e.Proof("busiest thread on a CPU or waiting for one", l.Hot.Run+l.Hot.Wait, "pct"), diagnose.ThreadBar))
	if !l.Thread {
		o.Evidence[0].Threshold = new(float64(diagnose.MostBar))
		o.By(diagnose.Above(e.Proof("least busy CPU that it may use", l.Least, "pct"), diagnose.FullBar))
	}
	if l.Hot.Wait > diagnose.SharedBar {
		o.By(diagnose.Above(e.Proof("busiest thread waiting for a CPU", l.Hot.Wait, "pct"), diagnose.SharedBar))
	}
	return relieve(f, o.At(onOwnCPU(e)), e, l, others)
}

// sharers words what is full, and what else uses the CPU if threads wait for it.
func sharers(f *diagnose.Flow, e *diagnose.End, l diagnose.Load, others bool) string {
	cpu := e.Owner() + " CPU"
	bound := diagnose.BoundTo(e)
	if bound != nil {
		cpu += fmt.Sprintf(" %d", *bound)
	}
	ran, waited := unit.Percent(l.Hot.Run), unit.Percent(l.Hot.Wait)
	switch {
	case l.Hot.Wait <= diagnose.SharedBar && l.Thread:
		return fmt.Sprintf("%s is full: its thread ran %s of the time", cpu, ran)
	case others && bound != nil:
		return fmt.Sprintf("other programs take %s: its thread waited for it %s of the time", cpu, waited)
	case others:
		return fmt.Sprintf("other programs take %ss: its thread waited for one %s of the time", cpu, waited)
	case f.OnSameCPUs() && bound != nil && diagnose.Equal(bound, diagnose.BoundTo(e.Other())):
		return fmt.Sprintf("%s is full: both ends share it, and the %s uses more of it", cpu, e.Place)
	case l.All && bound == nil && l.CPUs > 1:
		return fmt.Sprintf("all %d CPUs of the %s are full", l.CPUs, e.Place)
	case l.All:
		return cpu + " is full"
	}
	return fmt.Sprintf("the %s's thread waited for a CPU %s of the time", e.Place, waited)
}

// relieve adds what takes work off a CPU.
func relieve(f *diagnose.Flow, o *diagnose.Outcome, e *diagnose.End, l diagnose.Load, others bool) *diagnose.Outcome {
	switch {
	case others && e.Facts.Load != nil && len(e.Facts.Load.Top) > 0:
		p := e.Facts.Load.Top[0]
		return o.AddFix(diagnose.Advise(e, fmt.Sprintf("check process %d (%.40s), and measure when it is idle, or use other CPUs (-A)", p.PID, p.Name)))
	case others:
		return o.AddFix(diagnose.Advise(e, "check what else runs there (top), and measure when it is idle, or use other CPUs (-A)"))
	case l.Packet && !l.Thread && e.Flows() == 1:
		return o.AddFix(diagnose.Advise(e, "use several streams (-P): one flow uses one queue, whichever CPU takes its interrupts; for one stream, GRO and MTU 9000 reduce the work"))
	case l.Packet && !l.Thread:
		return o.AddFix(e.SpreadInterrupts())
	case l.All:
		return o.AddFix(diagnose.Advise(e, "switch segmentation and receive offload on and set MTU 9000, to reduce the work per byte; or use more CPUs"))
	case len(e.Streams()) <= 1 && l.CPUs > 1:
		return o.AddFix(diagnose.Advise(e, "use several streams (-P), which use several CPUs; for one stream, offloads and MTU 9000 reduce the work"))
	}
	return o.AddFix(diagnose.Advise(e, "switch segmentation and receive offload on and set MTU 9000, to reduce the work per byte; or use a faster CPU"))
}

// scaled adds what more streams carry.
func scaled(f *diagnose.Flow, o *diagnose.Outcome) *diagnose.Outcome {
	most := f.WithMost()
	if f.Against(most).Times > diagnose.GainBar {
		o.Costs(0, fmt.Sprintf("%d streams carry %s", most.Streams, unit.Rate(diagnose.RateOf(most))), fmt.Sprintf("the same traffic with %d streams", most.Streams))
	}
	return o
}

// costs returns the CPU costs of this host's earlier TCP tests in its current state, the highest rate first.
func costs(h *scene.Host, sends bool) []scene.Cost {
	var list []scene.Cost
	for _, c := range h.End.Costs {
		usable := c.Bps > 0 && c.Cores > 0 && !math.IsInf(c.Bps, 0) && !math.IsInf(c.Cores, 0)
		same := h.CPUModel == nil || c.CPUModel == "" || c.CPUModel == *h.CPUModel
		if c.Sends == sends && usable && same && (c.Protocol == measure.TCP || c.Protocol == "") {
			list = append(list, c)
		}
	}
	slices.SortStableFunc(list, func(a, b scene.Cost) int {
		return cmp.Or(cmp.Compare(b.Bps, a.Bps), cmp.Compare(a.Cores, b.Cores))
	})
	return list
}

// needs returns how many CPUs the rate takes in the more expensive direction, and the test that shows it. ok is
// false if no earlier test does.
func needs(h *scene.Host) (cores float64, by scene.Cost, ok bool) {
	want := float64(h.Rate())
	for _, sends := range []bool{true, false} {
		if list := costs(h, sends); len(list) > 0 && want > 0 {
			if n := list[0].Cores / list[0].Bps * want; n > cores {
				cores, by, ok = n, list[0], true
			}
		}
	}
	return cores, by, ok
}

// SeveralStreams proposes more streams for one stream whose CPU is full: last, since it does not help a program
// with only one connection.
func SeveralStreams(r advise.Request) []advise.Draft {
	if r.Direction.Cell == nil || r.Direction.Cell.Streams > 1 {
		return nil
	}
	list := MoreStreams(r)
	for i := range list {
		list[i] = list[i].AtLast()
	}
	return list
}

// Streams returns a test with another number of streams.
func Streams(w *advise.Direction, n int, x *measure.Cell) advise.Draft {
	d := advise.Draft{Id: fmt.Sprintf("%s=%d", knob.Streams, n), Title: unit.Count(int64(n)) + " streams", Test: &measure.TestOptions{Streams: n, Flags: fmt.Sprintf("-P %d", n)}}.ForDirection(w)
	if n == 1 {
		d.Title = "one stream"
	}
	if x != nil {
		d = w.Shown(d, x)
	}
	return d
}

// MoreStreams proposes the number of streams that did best in this result, else the number of CPUs of the smaller
// end.
func MoreStreams(r advise.Request) []advise.Draft {
	c := r.Direction.Cell
	if c == nil {
		return nil
	}
	if x := r.Direction.Best(func(x *measure.Cell) bool { return x.Streams > c.Streams && x.Streams <= measure.MaxStreams }); x != nil {
		if x.Goodput.Value < diagnose.GroupGainBar*r.Direction.Goodput() {
			return nil // they were measured, without a gain
		}
		return []advise.Draft{Streams(r.Direction, x.Streams, x)}
	}
	const most = 8 // the limit of the default of `thru test`
	n := most
	for _, h := range advise.Both(r.Direction) {
		if h.CPUs() > 0 {
			n = min(n, h.CPUs())
		}
	}
	if n <= c.Streams {
		return nil
	}
	return []advise.Draft{Streams(r.Direction, n, nil)}
}
