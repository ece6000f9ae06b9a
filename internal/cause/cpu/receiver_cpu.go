package cpu

import (
	"fmt"
	"slices"
	"strings"

	"thru/internal/cause/advise"
	"thru/internal/cause/diagnose"
	"thru/internal/cause/knob"
	"thru/internal/cause/nic"
	"thru/internal/cause/rule"
	"thru/internal/measure"
	"thru/internal/unit"
)

// ReceiverCPU is the cause `receiver-cpu`.
func ReceiverCPU() rule.Cause {
	return rule.Cause{
		Rule: diagnose.Rule{
			Cause: "receiver-cpu", Binds: true, TCP: true, UDP: true, Unseen: diagnose.HostTime, Title: "the receiver's CPU is full", Judge: judgeReceiverCPU,
			Seen:        "the reader's thread runs or waits for a CPU more than 88% of the time while data waits unread; or a CPU is full of received packets",
			Distinction: "the sender is blocked, and its own CPUs are not full; several streams carry more",
			Fix:         "use GRO, more queues, and separate CPUs for interrupts and reader", Effect: "a rate up to as many times higher as there are CPUs",
			Source: "/proc/PID/task/TID/schedstat; SIOCINQ; /proc/net/softnet_stat", Tests: []string{diagnose.OtherControl, diagnose.FreeCPU, diagnose.LeanPath, diagnose.EightStreams}, Brings: []string{"slow-reader", "receive-window", "send-buffer", "ring-overflow", "backlog-overflow"},
		},
		Propose: []advise.Proposer{Jumbo, nic.ProposeOffloadsOff, nic.Steering, Budget, Lean, SeveralStreams},
	}
}

func judgeReceiverCPU(f *diagnose.Flow) *diagnose.Outcome {
	if o := f.IsAll(); o != nil {
		return o
	}
	mine, theirs := f.Receiver.Load(), f.Sender.Load()
	shared := f.OnSameCPUs()
	switch {
	case !mine.Known && (!mine.Packet || shared):
		return f.Receiver.Lacks("the time of its threads on a CPU")
	case shared && theirs.IsFull() && !drowns(f) && (theirs.Ran >= mine.Ran || !mine.Thread && !mine.All):
		return diagnose.No("the sender uses more of the CPUs that both share: %s of one CPU, the receiver %s", unit.Percent(theirs.Ran), unit.Percent(mine.Ran))
	case !shared && !f.IsUDP() && theirs.Thread:
		return diagnose.No("the sender is not blocked: its own thread was always busy")
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
		o.By(diagnose.Above(f.Receiver.Proof("unread data, of the socket buffer", unread, "pct"), diagnose.UnreadBar))
	}
	return unlessPaced(f, onOtherCPUs(f, scaled(f, o)))
}

// squeezed reports whether that CPU of the end ran out of budget for received packets, and these were not far more
// than its interface received: the excess would be another interface's.
func squeezed(e *diagnose.End, core int) bool {
	for _, s := range e.Seen.Host.Softnet {
		if s.Core == core && s.TimeSqueeze > 0 {
			n := e.Seen.Host.NIC
			return n == nil || n.RxPackets == 0 || s.Processed < 4*n.RxPackets
		}
	}
	return false
}

// Budget proposes more packets per softirq round for a CPU that ran out of budget.
func Budget(r advise.Request) []advise.Draft {
	if r.Finding == nil || !slices.ContainsFunc(r.Finding.Evidence, func(p measure.Proof) bool { return strings.Contains(p.Counter, "squeeze") && p.Value > 0 }) {
		return nil
	}
	h := r.Receiving()
	has := h.State(knob.Budget, "").Number()
	if has == 0 || has >= 1<<16 {
		return nil
	}
	return []advise.Draft{advise.Change(h, knob.Budget, "", fmt.Sprint(2*has), "softirq budget of %d packets at %s, instead of %d", 2*has, h.Name, has).ForDirection(r.Direction)}
}
