package nic

import (
	"fmt"

	"thru/internal/cause/advise"
	"thru/internal/cause/diagnose"
	"thru/internal/cause/gate"
	"thru/internal/cause/knob"
	"thru/internal/cause/rule"
	"thru/internal/cause/scene"
)

// BacklogOverflow is the cause `backlog-overflow`.
func BacklogOverflow() rule.Cause {
	return rule.Cause{
		Rule: diagnose.Rule{
			Cause: "backlog-overflow", TCP: true, UDP: true, Unseen: diagnose.HostTime, Title: "the kernel's backlog of received packets overflows", Judge: judgeBacklogOverflow,
			Seen:        "column 2 of softnet_stat rose at the receiver in the measured time",
			Distinction: "the ring does not overflow; about as many segments were retransmitted, and the rate is what TCP reaches with such a loss", Fix: "raise netdev_max_backlog; use more CPUs for received packets", Effect: "looks like loss on the path",
			Source: "/proc/net/softnet_stat, column 2", Brings: []string{"loss"},
		},
		Gates: []gate.Rule{
			{ID: "backlog", Title: "Backlog of received packets", About: "packets that the kernel dropped because its backlog was full, while no test ran",
				Warns:  "one packet or more",
				Why:    "a host that drops packets while idle drops more of them under load",
				Source: "Linux softnet_stat, column 2", Fix: "raise netdev_max_backlog; use more CPUs for received packets", Checklist: []string{"C-32"}, Host: gateBacklog},
		},
		Propose: []advise.Proposer{ProposeBacklogOverflow},
	}
}

func judgeBacklogOverflow(f *diagnose.Flow) *diagnose.Outcome {
	e := f.Receiver
	if e.Seen == nil || e.Seen.Host == nil || len(e.Seen.Host.Softnet) == 0 {
		return e.Lacks("softnet_stat")
	}
	n := 0.0
	for _, s := range e.Seen.Host.Softnet {
		n += float64(s.Dropped)
	}
	if n == 0 {
		return diagnose.No("the receiver's backlog dropped no packet")
	}
	o := f.Dropped(e, n, "softnet_stat dropped", "the receiver's backlog overflows: it dropped %.0f packets")
	h := e.Machine()
	return o.At(e.Where()).AddFix(h.Fix(longerBacklog(h).Or("raise the kernel's backlog of received packets")))
}

func gateBacklog(h *scene.Host) *gate.Finding {
	l := h.Load
	if l == nil || l.Dropped == nil {
		return nil // only Linux counts it, and the gate of the load reports that it was not read
	}
	if *l.Dropped > 0 {
		return gate.Warn("the full backlog dropped %d packets in %s", *l.Dropped, gate.Span(l.SpanNs)).Do(longerBacklog(h))
	}
	return gate.Pass("the backlog dropped no packet")
}

// longerBacklog doubles the queue to the network stack, within limits.
func longerBacklog(h *scene.Host) scene.Fix {
	n, ok := h.Number(knob.Sysctl(knob.Backlog))
	if !ok {
		n = 1000
	}
	return h.Set(knob.Backlog, "", fmt.Sprint(max(n, 2*min(n, 125_000))))
}

// ProposeBacklogOverflow proposes a longer queue to the network stack.
func ProposeBacklogOverflow(r advise.Request) []advise.Draft {
	h := r.Receiving()
	has := h.State(knob.Backlog, "").Number()
	if has == 0 || has >= diagnose.MostBacklog {
		return nil
	}
	return []advise.Draft{advise.Change(h, knob.Backlog, "", fmt.Sprint(2*has), "backlog of %d received packets at %s, instead of %d", 2*has, h.Name, has)}
}
