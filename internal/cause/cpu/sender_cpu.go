package cpu

import (
	"thru/internal/cause/advise"
	"thru/internal/cause/diagnose"
	"thru/internal/cause/gate"
	"thru/internal/cause/nic"
	"thru/internal/cause/rule"
	"thru/internal/cause/scene"
	"thru/internal/unit"
)

// SenderCPU is the cause `sender-cpu`.
func SenderCPU() rule.Cause {
	return rule.Cause{
		Rule: diagnose.Rule{
			Cause: "sender-cpu", Binds: true, TCP: true, UDP: true, Unseen: diagnose.HostTime, Title: "the sender's CPU is full", Judge: judgeSenderCPU,
			Seen:        "the sender's thread runs or waits for a CPU more than 88% of the time, and is not blocked in send(); or all its CPUs are full",
			Distinction: "the receiver's window, loss or a queue would block it in send(); a test without copying raises the rate",
			Fix:         "use segmentation offload, larger packets or more streams, or run nothing else on that CPU", Effect: "9 of 49 Gb/s without TSO between namespaces",
			Source: "/proc/PID/task/TID/schedstat; proc(5), /proc/stat", Tests: []string{diagnose.OtherControl, diagnose.FreeCPU, diagnose.LeanPath, diagnose.EightStreams}, Brings: []string{"too-many-streams"},
		},
		Gates: []gate.Rule{
			{
				ID: "cpu-capacity", Words: "cpu cpus cores", Title: "CPUs for the rate",
				About:  "the CPUs that the rate takes, by the CPU cost of earlier TCP tests on this host, against those that thru may use",
				Warns:  "the rate takes more CPUs than thru may use; or, in an earlier test, one stream filled a CPU below the rate and one stream is planned",
				Why:    "a host that cannot reach the rate measures itself, not the link",
				Source: "CPUs used x rate / measured rate; B-07, B-16: 4 CPUs ~10 Gb/s, 8 CPUs ~20 Gb/s", Fix: "use offloads, more streams or more CPUs",
				Checklist: []string{"A-04", "B-07", "B-16", "C-12", "C-29"}, Host: gateCPUCapacity,
			},
		},
		Propose: []advise.Proposer{Jumbo, nic.ProposeOffloadsOff, Lean, SeveralStreams},
	}
}

func judgeSenderCPU(f *diagnose.Flow) *diagnose.Outcome {
	if o := f.IsAll(); o != nil {
		return o
	}
	mine, theirs := f.Sender.Load(), f.Receiver.Load()
	switch {
	case !mine.Known:
		return f.Sender.Lacks("the time of its threads on a CPU")
	case !mine.Thread && !mine.All:
		return diagnose.No("the sender's thread was blocked %s of the time, not for lack of a CPU", unit.Percent(mine.Hot.Blocked))
	case f.OnSameCPUs() && theirs.IsFull() && theirs.Ran > mine.Ran:
		return diagnose.No("the receiver uses more of the CPUs that both share: %s of one CPU, the sender %s", unit.Percent(theirs.Ran), unit.Percent(mine.Ran))
	case drowns(f):
		return diagnose.No("the sender sends more than arrives: %s is lost", unit.Percent(f.Cell.Datagrams.LossPct))
	}
	o := fullCPU(f, f.Sender, mine)
	if !mine.Packet || mine.Thread {
		o.Confidence = sureOfCPU(f, mine)
	}
	return unlessPaced(f, onOtherCPUs(f, scaled(f, o)))
}

func gateCPUCapacity(h *scene.Host) *gate.Finding {
	if !h.Known {
		return nil
	}
	cores, by, ok := needs(h)
	switch {
	case h.Rate() == 0 && h.OnOneMachine():
		return nil // the CPUs determine the rate
	case h.Rate() == 0:
		return gate.NotChecked("CPUs for the rate", "the link rate is not known: state it with --link-rate")
	case !ok:
		return gate.NotChecked("CPUs for "+gate.Rate(h.Rate()), "no earlier result of this host shows its CPU cost")
	case h.CPUs() == 0:
		return gate.Missing(h, "CPUs for "+gate.Rate(h.Rate()), "cores")
	}
	what, cause := "receiving", "receiver-cpu"
	if by.Sends {
		what, cause = "sending", "sender-cpu"
	}
	if has := allowed(h); cores > has {
		return gate.Warn("%s takes %.1f CPUs for %s, of %.3g: an earlier test used %.1f for %s", gate.Rate(h.Rate()), cores, what, has, by.Cores, gate.Rate(by.Bps)).
			As(cause).Do(scene.Advise("give this host more CPUs, or switch offloads on and set MTU 9000"))
	}
	if f := oneStream(h); f != nil {
		return f
	}
	return gate.Pass("%s takes %.1f of %d CPUs for %s, by an earlier test at %s", gate.Rate(h.Rate()), cores, h.CPUs(), what, gate.Rate(by.Bps))
}

// allowed returns how much CPU time thru may use, in CPUs.
func allowed(h *scene.Host) float64 {
	has := float64(h.CPUs())
	if h.Cgroup != nil && h.Cgroup.QuotaCPUs != nil && *h.Cgroup.QuotaCPUs > 0 {
		has = min(has, *h.Cgroup.QuotaCPUs)
	}
	return has
}

// oneStream warns if a single planned stream filled a CPU below the wanted rate in an earlier test.
func oneStream(h *scene.Host) *gate.Finding {
	if h.Subject.Streams != 1 {
		return nil
	}
	for _, sends := range []bool{true, false} {
		for _, c := range costs(h, sends) {
			if c.Streams == 1 && c.BusiestPct >= fullCore && c.Bps < float64(h.Rate()) {
				return gate.Warn("one stream filled a CPU at %s, below the wanted %s", gate.Rate(c.Bps), gate.Rate(h.Rate())).
					Because("one stream uses one CPU of the receiver; several streams use several CPUs").As("single-flow").
					Do(scene.Advise("test with several streams too: thru test -P 4"))
			}
		}
	}
	return nil
}

// fullCore is the load from which a CPU limits a stream, in percent.
const fullCore = 95
