package nic

import (
	"fmt"
	"strconv"
	"strings"

	"thru/internal/cause/advise"
	"thru/internal/cause/diagnose"
	"thru/internal/cause/gate"
	"thru/internal/cause/hypervisor"
	"thru/internal/cause/knob"
	"thru/internal/cause/rule"
	"thru/internal/cause/scene"
	"thru/internal/measure"
)

// TooFewQueues is the cause `too-few-queues`.
func TooFewQueues() rule.Cause {
	return rule.Cause{
		Rule: diagnose.Rule{
			Cause: "too-few-queues", TCP: true, UDP: true, Title: "one queue for several CPUs", Judge: func(f *diagnose.Flow) *diagnose.Outcome { return f.Either(JudgeTooFewQueues) },
			Seen:        "one receive queue is in use and more are possible; likely if a CPU is full of received packets of several flows; possible if the total rate falls as end points are added (A-05)",
			Distinction: "the same test with more queues and several streams", Fix: "set as many queues as CPUs", Effect: "linear until the CPUs are full",
			Source: "ethtool -l; gate queues; C-22", Brings: []string{"irq-one-cpu", "receiver-cpu", "ring-overflow"},
		},
		Urgent: 8,
		Gates: []gate.Rule{
			{ID: "queues", Words: "channels multiqueue vmq netqueue rps xps", Receives: true, Title: "Queues", About: "the receive queues in use against the possible ones, and against the CPUs",
				Warns:  "one queue is in use and more are possible, with more than one CPU; or the device has only one and 10 Gb/s or more are wanted",
				Why:    "one queue uses one CPU: the rate grows with the queues until the CPUs are full",
				Source: "C-22: queues = cores; Linux scaling.rst", Fix: "set as many queues as CPUs", Checklist: []string{"C-22", "C-27", "C-28", "B-19"}, Face: gateQueues},
		},
		Propose: []advise.Proposer{ProposeTooFewQueues},
	}
}

// JudgeTooFewQueues judges the queues of an end by its counters.
func JudgeTooFewQueues(e *diagnose.End) *diagnose.Outcome {
	o, warns := hypervisor.Gated(e, "too-few-queues")
	if !warns {
		return o
	}
	return hypervisor.Symptom(o, e.Flow.IsAll() == nil && !e.Sends() && !e.Flow.OnSameCPUs() && e.Load().Packet && e.Flows() > 1)
}

func gateQueues(f *scene.Face) *gate.Finding {
	if !f.Device() {
		return queuesOfSoftware(f)
	}
	set, cpus := f.RxQueues(), f.Host.CPUs()
	if set == 0 {
		return gate.Missing(f, "queues of "+f.Name, "channels")
	}
	return queuesSet(f, set, cpus)
}

// queuesOfSoftware reports, without judging, that a veth moves packets on the CPU that sends them, whatever its
// queues; but with GRO each queue processes its packets on one CPU, like a NIC's (drivers/net/veth.c, veth_xmit).
func queuesOfSoftware(f *scene.Face) *gate.Finding {
	if f.KindName() != "veth" || f.RxQueues() == 0 {
		return nil
	}
	if f.Offloads["generic-receive-offload"] && f.Channels != nil {
		return queuesSet(f, f.RxQueues(), f.Host.CPUs())
	}
	return gate.Pass("%s: receive queues %d; packets stay on the CPU that sends them", f.Name, f.RxQueues())
}

// queuesSet compares the configured with the possible queues.
func queuesSet(f *scene.Face, set, cpus int) *gate.Finding {
	want := max(f.Wanted(), f.Speed())
	switch c := f.Channels; {
	case set == 1 && cpus > 1 && c != nil && max(c.CombinedMax, c.RXMax) > 1:
		kind, most := "combined", c.CombinedMax
		if most <= 1 {
			kind, most = "rx", c.RXMax
		}
		return gate.Warn("%s has 1 queue of %d possible, for %d CPUs", f.Name, most, cpus).Do(f.Set(knob.Channels, fmt.Sprintf("%s %d", kind, min(most, cpus))))
	case set == 1 && cpus > 1 && want >= fastNUMARate && len(f.RPS) == 0:
		return gate.Warn("%s has only 1 queue, for %d CPUs and %s", f.Name, cpus, gate.Rate(want)).
			Because("one CPU handles every packet; RPS or a device with several queues spreads them").Do(scene.PacketSteering(f))
	case c == nil:
		return gate.Pass("%s: receive queues %d, CPUs %d", f.Name, set, cpus)
	}
	return gate.Pass("%s: queues %d of %d possible, CPUs %d", f.Name, set, max(f.Channels.CombinedMax, f.Channels.RXMax, set), cpus)
}

// fastNUMARate is the rate in bit/s from which one queue, and so one CPU, is not enough.
const fastNUMARate = 10_000_000_000

// ProposeTooFewQueues gives an interface as many queues as it can have, but no more than CPUs.
func ProposeTooFewQueues(r advise.Request) []advise.Draft {
	h := r.Receiving()
	if h.FaceOf(r.Here(h)).KindName() == "veth" {
		return queuesOfPair(r, h)
	}
	if own, ok := channels(r, h, "combined", "rx", "tx"); ok {
		return []advise.Draft{own}
	}
	return Steering(r)
}

// queuesOfPair proposes the same for a veth. One end receives from the other end's transmit queues, which may not
// be more (veth_set_channels). So it proposes the receiving end alone first, then both ends.
func queuesOfPair(r advise.Request, h *scene.Host) []advise.Draft {
	peer := r.Direction.From
	if h == peer {
		peer = r.Direction.To
	}
	own, ok := channels(r, h, "rx")
	other, too := channels(r, peer, "tx")
	switch {
	case ok && too && peer != h:
		return []advise.Draft{own, own.And(other, "%s; %s", own.Title, other.Title)}
	case ok:
		return []advise.Draft{own}
	case too && peer != h:
		return []advise.Draft{other}
	}
	return Steering(r)
}

// channels raises the queues of some kinds of one host; ok is false if it has the maximum.
func channels(r advise.Request, h *scene.Host, kinds ...string) (d advise.Draft, ok bool) {
	face := r.Here(h)
	s := h.State(knob.Channels, face)
	has, most := counts(s.Value), counts(s.Possible)
	if !s.Known || h.CPUs() < 2 {
		return advise.Draft{}, false
	}
	var change, titles []string
	for _, kind := range kinds {
		want := min(most[kind], h.CPUs())
		if want <= has[kind] || kind != "combined" && has["combined"] > 0 {
			continue
		}
		change = append(change, kind, strconv.Itoa(want))
		titles = append(titles, fmt.Sprintf("%d %s instead of %d", want, kind, has[kind]))
	}
	if len(change) == 0 {
		return advise.Draft{}, false
	}
	return advise.Draft{Settings: []measure.Setting{h.Setting(knob.Channels, face, advise.With(s.Value, change...))},
		Title: "queues of " + face + " at " + h.Name + ": " + strings.Join(titles, ", ")}, true
}
