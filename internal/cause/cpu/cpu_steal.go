package cpu

import (
	"fmt"

	"thru/internal/cause/below"
	"thru/internal/cause/diagnose"
	"thru/internal/cause/gate"
	"thru/internal/cause/rule"
	"thru/internal/measure"
	"thru/internal/unit"
)

// CPUSteal is the cause `cpu-steal`.
func CPUSteal() rule.Cause {
	return rule.Cause{
		Rule: diagnose.Rule{
			Cause: "cpu-steal", TCP: true, UDP: true, Title: "the hypervisor gives the CPUs to others", Judge: func(f *diagnose.Flow) *diagnose.Outcome { return f.Either(judgeCPUSteal) },
			Seen:  "steal time of the CPU that the thread is bound to or that is full of packets, else the mean of all; by the hypervisor: these virtual CPUs were ready and not run 5% of the time or more (10: likely), or waited for each other 3%",
			Apart: "what is taken from other CPUs costs the flow nothing; time that a limit took is not counted; guests of ESXi and Hyper-V see no steal",
			Mends: "reserve CPU for the guest, fewer virtual CPUs, or an emptier host", Effect: "what is taken is missing, and comes in bursts",
			Source: "proc(5), /proc/stat; ESXi's cpu.ready and cpu.costop (%RDY above 5 to 10, %CSTP above 3); run delay of schedstat on KVM", Brings: []string{"sender-cpu", "receiver-cpu", "slow-reader", "receive-window", "send-buffer", "app-limited", "single-flow", "too-many-streams", "noisy-neighbour"},
		},
		Gates: []gate.Rule{
			{ID: "steal", Title: "CPU time taken by the hypervisor", About: "steal time of the whole virtual machine",
				Warns:  "above 2% while no test runs",
				Why:    "what the hypervisor gives to others is missing here, and comes back in bursts",
				Source: "proc(5), /proc/stat", Remedy: "reserve CPU for this guest, or move it", Cause: "cpu-steal", Checklist: []string{"C-29", "C-37"}, Host: gateSteal},
		},
	}
}

// judgeCPUSteal joins the steal that the guest sees with what its host counted.
func judgeCPUSteal(e *diagnose.End) *diagnose.Outcome {
	own, under := stealSeen(e), below.WaitsBelow(e)
	if under != nil && under.State == diagnose.Unknown && own != nil && own.State == diagnose.Excluded && e.HidesSteal() {
		return under
	}
	return below.Seconded(own, under)
}

// stealSeen is what the guest itself saw of it.
func stealSeen(e *diagnose.End) *diagnose.Outcome {
	if e.Guest() == nil && e.Facts != nil && e.Facts.Hypervisor != nil && *e.Facts.Hypervisor == "none" {
		return diagnose.No("the %s is no virtual machine", e.Place)
	}
	if e.Seen == nil || e.Seen.Host == nil || len(e.Seen.Host.CPUs) == 0 {
		return e.Lacks("steal time")
	}
	if o := e.Flow.IsAll(); o != nil {
		return o
	}
	x := e.OwnSteal()
	switch {
	case x.Mean < diagnose.StealBar && e.HidesSteal():
		return diagnose.Missing("CPU time that its host took from the "+e.Place, "a guest of this kind does not see it: --hypervisor URL asks its host")
	case x.Mean < diagnose.StealBar:
		return diagnose.No("the hypervisor took %s of the %s's %s", unit.Percent(x.Mean), e.Place, name(x))
	}
	o := diagnose.Possible("the hypervisor took %s of the %s's %s", unit.Percent(x.Mean), e.Place, name(x)).At(where(x, e)).
		By(diagnose.Above(e.Proof("/proc/stat steal of "+name(x), x.Mean, "pct"), diagnose.StealBar)).
		Mend(&measure.Remedy{EndPoint: e.Name, Advice: "reserve CPU for this guest, give it fewer virtual CPUs, or move it or its neighbours", Risk: "what is reserved is lost to the other guests of the host; what is moved stands still for a moment"})
	switch l := e.Load(); {
	case !l.IsFull() && x.Busy < diagnose.FullBar:
		o.Beside()
	case x.Mean > 2*diagnose.StealLikely && l.IsFull():
		o.Confidence = measure.Certain // more than half of the CPU that the thread wanted
	case x.Mean > diagnose.StealLikely:
		o.Confidence = measure.Likely
	}
	return o
}

func name(x diagnose.Stolen) string {
	if len(x.Cores) == 1 {
		return fmt.Sprintf("CPU %d", x.Cores[0].Core)
	}
	return "CPUs"
}

func where(x diagnose.Stolen, e *diagnose.End) measure.Where {
	if len(x.Cores) == 1 {
		return e.OnCPU(x.Cores[0].Core)
	}
	return e.Where()
}

func gateSteal(h *gate.Host) *gate.Finding {
	guest, known := h.Guest()
	if known && !guest || h.System == "esxi" {
		return nil
	}
	if h.Load == nil || h.Load.StealPct == nil {
		if !guest {
			return nil
		}
		return h.Missing("steal time", "load.steal_pct")
	}
	if *h.Load.StealPct > 2 {
		return gate.Warn("the hypervisor takes %s of this guest's CPU time", gate.Percent(*h.Load.StealPct)).
			Do(gate.Advise("reserve CPU for this guest, or move it or its neighbours").Risking(gate.OnTheHost))
	}
	if b := h.Load.StealBoot; b != nil && *b > 2 {
		return gate.Pass("steal %s now, %s since the boot", gate.Percent(*h.Load.StealPct), gate.Percent(*b))
	}
	return gate.Pass("steal %s", gate.Percent(*h.Load.StealPct))
}
