// Package cpu holds the causes of the hosts' CPUs: streams, full CPUs, quota, steal,
// clocks, memory, firewalls.
package cpu

import (
	"fmt"

	"thru/internal/cause/diagnose"
	"thru/internal/measure"
	"thru/internal/unit"
)

// CpuCauses are the causes of CPUs that are full.
func CpuCauses() []diagnose.Rule {
	return []diagnose.Rule{
		{
			Cause: "single-flow", TCP: true, Unseen: diagnose.HostTime, Title: "one stream is one CPU", Judge: singleFlow,
			Seen:  "one stream, a CPU full at one end, and more streams carry 1.3 times of it or more",
			Apart: "windows and loss grow with streams too, but leave the CPUs free",
			Mends: "more streams; jumbo frames, GRO or LRO for the one", Effect: "35 to 52 Gb/s between namespaces by 4 streams on 2 CPUs",
			Source: "methods.md, formula 10", Tests: []string{diagnose.EightStreams}, Brings: []string{"sender-cpu", "receiver-cpu"},
		},
		{
			Cause: "too-many-streams", TCP: true, Unseen: diagnose.HostTime, Title: "more streams than the CPUs manage", Judge: tooManyStreams,
			Seen:  "fewer streams carry 1.1 times of it or more; the aggregate falls as end points are added, and all CPUs of a host are full",
			Apart: "the same with one stream, with half of them",
			Mends: "half as many streams as CPUs, then a sweep (thru ladder)", Effect: "about 10%",
			Source: "methods.md, formula 10; context switches of the worker (getrusage(2))", Tests: []string{diagnose.OneStream},
		},
		{
			Cause: "sender-cpu", TCP: true, UDP: true, Unseen: diagnose.HostTime, Title: "the sender's CPU is full", Judge: senderCPU,
			Seen:  "the sender's thread is on a CPU or waits for one more than 88% of the time, and is not held up in send(); or all its CPUs are full",
			Apart: "the receiver's window, loss and a queue would block it in send(); a data path without copies raises the rate",
			Mends: "segmentation offload, larger packets, more streams, or nothing else on that CPU", Effect: "9 of 49 Gb/s without TSO between namespaces",
			Source: "/proc/PID/task/TID/schedstat; proc(5), /proc/stat", Tests: []string{diagnose.OtherControl, diagnose.FreeCPU, diagnose.LeanPath, diagnose.EightStreams}, Brings: []string{"too-many-streams"},
		},
		{
			Cause: "receiver-cpu", TCP: true, UDP: true, Unseen: diagnose.HostTime, Title: "the receiver's CPU is full", Judge: receiverCPU,
			Seen:  "the reader's thread is on a CPU or waits for one more than 88% of the time while data waits unread; or a CPU is full of received packets",
			Apart: "the sender is held up, and its own CPUs are not full; several streams carry more",
			Mends: "GRO, more queues, interrupts and reader on CPUs of their own", Effect: "up to as many times as there are CPUs",
			Source: "/proc/PID/task/TID/schedstat; SIOCINQ; /proc/net/softnet_stat", Tests: []string{diagnose.OtherControl, diagnose.FreeCPU, diagnose.LeanPath, diagnose.EightStreams}, Brings: []string{"slow-reader", "receive-window", "send-buffer", "ring-overflow", "backlog-overflow"},
		},
	}
}

func senderCPU(f *diagnose.Flow) *diagnose.Outcome {
	if o := f.IsAll(); o != nil {
		return o
	}
	mine, theirs := f.Sender.Load(), f.Receiver.Load()
	switch {
	case !mine.Known:
		return f.Sender.Lacks("the time of its threads on a CPU")
	case !mine.Thread && !mine.All:
		return diagnose.No("the sender's thread was held up %s of the time, not for want of a CPU", unit.Percent(mine.Hot.Blocked))
	case f.OnSameCPUs() && theirs.IsFull() && theirs.Ran > mine.Ran:
		return diagnose.No("the receiver takes more of the CPUs that both share: %s of one against %s", unit.Percent(theirs.Ran), unit.Percent(mine.Ran))
	case drowns(f):
		return diagnose.No("the sender sends more than arrives: %s is lost", unit.Percent(f.Cell.Datagrams.LossPct))
	}
	o := fullCPU(f, f.Sender, mine)
	if !mine.Packet || mine.Thread {
		o.Confidence = sureOfCPU(f, mine)
	}
	return unlessPaced(f, onOtherCPUs(f, scaled(f, o)))
}

// onOtherCPUs settles a full CPU by the same traffic on others.
func onOtherCPUs(f *diagnose.Flow, o *diagnose.Outcome) *diagnose.Outcome {
	x := f.Experiment(diagnose.FreeCPU)
	g := f.Against(x)
	if g.Times < diagnose.GainBar {
		return o
	}
	return o.Gains(measure.Proof{EndPoint: f.Receiver.Name, Counter: "goodput on CPUs that the scheduler chose, over this"}, g).
		Costs(0, "on other CPUs "+unit.Rate(diagnose.RateOf(x))+" pass", "the same traffic with -A off")
}

// unlessPaced makes a full CPU likely, as long as it may be the pacing that
// fills it.
func unlessPaced(f *diagnose.Flow, o *diagnose.Outcome) *diagnose.Outcome {
	if f.MayBePaced() && o.Confidence == measure.Certain {
		o.Confidence = measure.Likely
	}
	return o
}

// drowns tells that datagrams are sent faster than they arrive: what the
// sender could send more of would be lost too.
func drowns(f *diagnose.Flow) bool {
	return f.IsUDP() && f.Cell.Datagrams != nil && f.Cell.Datagrams.LossPct > drownBar
}

// drownBar is the share of datagrams in percent above which the loss of them
// is what binds.
const drownBar = 5

// sureOfCPU is certain where nothing else holds the sender up, or less work for
// each byte made the flow faster.
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

func receiverCPU(f *diagnose.Flow) *diagnose.Outcome {
	if o := f.IsAll(); o != nil {
		return o
	}
	mine, theirs := f.Receiver.Load(), f.Sender.Load()
	shared := f.OnSameCPUs()
	switch {
	case !mine.Known && (!mine.Packet || shared):
		return f.Receiver.Lacks("the time of its threads on a CPU")
	case shared && theirs.IsFull() && !drowns(f) && (theirs.Ran >= mine.Ran || !mine.Thread && !mine.All):
		return diagnose.No("the sender takes more of the CPUs that both share: %s of one against %s", unit.Percent(theirs.Ran), unit.Percent(mine.Ran))
	case !shared && !f.IsUDP() && theirs.Thread:
		return diagnose.No("the sender is not held up: its own thread had no time to spare")
	case !mine.Thread && !mine.All && (!mine.Packet || shared):
		return diagnose.No("the reader's thread waited for data %s of the time, and no CPU was full of packets", unit.Percent(mine.Hot.Blocked))
	}
	o := fullCPU(f, f.Receiver, mine)
	unread, seen := f.UnreadShare()
	rwnd, _ := f.RwndPct()
	switch {
	case f.Against(f.Experiment(diagnose.LeanPath)).Sure:
		o.Confidence = measure.Certain
	case f.IsUDP():
		if mine.Thread && f.LostAt(measure.LossSocket) > 0 {
			o.Confidence = measure.Certain
		}
	case mine.Thread && (seen && unread > diagnose.UnreadBar || rwnd > diagnose.RwndBar):
		o.Confidence = measure.Certain
	case mine.Packet && !mine.Thread && diagnose.Packets(mine.Soft) > 90 && squeezed(f.Receiver, mine.Soft.Core):
		o.Confidence = measure.Certain
	case mine.All && shared:
		o.Confidence = sureOfCPU(f, mine)
	}
	if seen && unread > diagnose.UnreadBar {
		o.By(diagnose.Above(f.Receiver.Proof("unread in the socket, of its room", unread, "pct"), diagnose.UnreadBar))
	}
	return unlessPaced(f, onOtherCPUs(f, scaled(f, o)))
}

// squeezed tells whether that CPU of the end ran out of budget for received packets,
// and these were not far more than its interface received: then they are others'.
func squeezed(e *diagnose.End, core int) bool {
	for _, s := range e.Seen.Host.Softnet {
		if s.Core == core && s.TimeSqueeze > 0 {
			n := e.Seen.Host.NIC
			return n == nil || n.RxPackets == 0 || s.Processed < 4*n.RxPackets
		}
	}
	return false
}

// fullCPU words the CPU of an end that is full, and who fills it.
func fullCPU(f *diagnose.Flow, e *diagnose.End, l diagnose.Load) *diagnose.Outcome {
	o := diagnose.Likely("")
	if l.Packet && !l.Thread && !e.Sends() {
		o.Text = fmt.Sprintf("%s CPU %d is full of received packets (%s)", e.Owner(), l.Soft.Core, unit.Percent(diagnose.Packets(l.Soft)))
		o.By(diagnose.Above(e.Proof(fmt.Sprintf("/proc/stat cpu%d irq and softirq", l.Soft.Core), diagnose.Packets(l.Soft), "pct"), diagnose.PacketBar))
		return relieve(f, o.At(e.OnCPU(l.Soft.Core)), e, l, false)
	}
	others := others(f, e, l)
	o.Text = sharers(f, e, l, others)
	o.By(diagnose.Above(e.Proof("busiest thread on a CPU or waiting for one", l.Hot.Run+l.Hot.Wait, "pct"), diagnose.ThreadBar))
	if !l.Thread {
		o.Evidence[0].Threshold = new(float64(diagnose.MostBar))
		o.By(diagnose.Above(e.Proof("freest CPU that it may run on, busy", l.Least, "pct"), diagnose.FullBar))
	}
	if l.Hot.Wait > diagnose.SharedBar {
		o.By(diagnose.Above(e.Proof("busiest thread waiting for a CPU", l.Hot.Wait, "pct"), diagnose.SharedBar))
	}
	return relieve(f, o.At(onOwnCPU(e)), e, l, others)
}

// sharers says what is full, and where threads wait for it who else has it.
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
		return fmt.Sprintf("%s is full: both ends share it, and the %s takes more", cpu, e.Place)
	case l.All && bound == nil && l.CPUs > 1:
		return fmt.Sprintf("all %d CPUs of the %s are full", l.CPUs, e.Place)
	case l.All:
		return cpu + " is full"
	}
	return fmt.Sprintf("the %s's thread had to wait for a CPU %s of the time", e.Place, waited)
}

// onOwnCPU is the place of a cause at this end, with the CPU that its busiest
// thread is bound to, if it is.
func onOwnCPU(e *diagnose.End) measure.Where {
	if cpu := diagnose.BoundTo(e); cpu != nil {
		return e.OnCPU(*cpu)
	}
	return e.Where()
}

// others tells whether programs that have nothing to do with the test take the
// CPUs that the end wants: while no test ran, and more than the test's own
// threads account for while it did.
func others(f *diagnose.Flow, e *diagnose.End, l diagnose.Load) bool {
	if e.Seen == nil || e.Seen.Base == nil || e.Seen.Host == nil || l.Hot.Wait <= diagnose.SharedBar {
		return false
	}
	bound := diagnose.BoundTo(e)
	idle, taken := 0.0, 0.0
	for _, c := range e.Seen.Base.CPUs {
		if bound == nil || *bound == c.Core {
			idle += diagnose.Busy(c)
		}
	}
	for _, c := range e.Seen.Host.CPUs {
		if bound == nil || *bound == c.Core {
			taken += diagnose.Busy(c) - diagnose.Packets(c)
		}
	}
	taken -= l.Ran
	if f.OnSameCPUs() && (bound == nil || diagnose.Equal(bound, diagnose.BoundTo(e.Other()))) {
		taken -= e.Other().Load().Ran
	}
	return idle > diagnose.SharedBar && taken > diagnose.SharedBar
}

// relieve says what takes work off a CPU.
func relieve(f *diagnose.Flow, o *diagnose.Outcome, e *diagnose.End, l diagnose.Load, others bool) *diagnose.Outcome {
	switch {
	case others && e.Facts != nil && e.Facts.Load != nil && len(e.Facts.Load.Top) > 0:
		p := e.Facts.Load.Top[0]
		return o.Mend(diagnose.Advise(e, fmt.Sprintf("see what process %d (%.40s) does, and measure when it is idle, or with other CPUs (-A)", p.PID, p.Name)))
	case others:
		return o.Mend(diagnose.Advise(e, "see what else runs there (top), and measure when it is idle, or with other CPUs (-A)"))
	case l.Packet && !l.Thread && e.Flows() == 1:
		return o.Mend(diagnose.Advise(e, "one flow has one queue, wherever its interrupts go: several streams use several (-P); GRO and MTU 9000 make less work for one"))
	case l.Packet && !l.Thread:
		return o.Mend(e.SpreadInterrupts())
	case l.All:
		return o.Mend(diagnose.Advise(e, "less work for each byte: segmentation and receive offload on, MTU 9000; or more CPUs"))
	case len(e.Streams()) <= 1 && l.CPUs > 1:
		return o.Mend(diagnose.Advise(e, "several streams use several CPUs (-P); offloads and MTU 9000 make less work for one"))
	}
	return o.Mend(diagnose.Advise(e, "less work for each byte: segmentation and receive offload on, MTU 9000; a faster CPU"))
}

// scaled adds what more streams carry.
func scaled(f *diagnose.Flow, o *diagnose.Outcome) *diagnose.Outcome {
	most := f.WithMost()
	if f.Against(most).Times > diagnose.GainBar {
		o.Costs(0, fmt.Sprintf("%d streams carry %s", most.Streams, unit.Rate(diagnose.RateOf(most))), fmt.Sprintf("the same traffic with %d streams", most.Streams))
	}
	return o
}
