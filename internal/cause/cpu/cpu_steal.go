package cpu

import (
	"cmp"
	"fmt"

	"thru/internal/cause/diagnose"
	"thru/internal/cause/gate"
	"thru/internal/cause/hypervisor"
	"thru/internal/cause/rule"
	"thru/internal/cause/scene"
	"thru/internal/measure"
	"thru/internal/unit"
)

// CPUSteal is the cause `cpu-steal`.
func CPUSteal() rule.Cause {
	return rule.Cause{
		Rule: diagnose.Rule{
			Cause: "cpu-steal", TCP: true, UDP: true, Title: "the hypervisor gives CPU time to other guests", Judge: func(f *diagnose.Flow) *diagnose.Outcome { return f.Either(judgeCPUSteal) },
			Seen:        "steal time of the CPU to which the thread is bound or which is full of packets, else the mean of all; in the hypervisor's counters: ready time of these virtual CPUs of 5% or more (likely from 10%), or co-stop time of 3% or more",
			Distinction: "steal time of other CPUs costs the flow nothing; time stopped by a limit does not count; guests of ESXi and Hyper-V see no steal time",
			Fix:         "reserve CPU for the guest, give it fewer virtual CPUs, or move it to a less loaded host", Effect: "the stolen CPU time is missing, in bursts",
			Source: "proc(5), /proc/stat; ESXi's cpu.ready and cpu.costop (%RDY above 5 to 10, %CSTP above 3); run delay of schedstat on KVM", Brings: []string{"sender-cpu", "receiver-cpu", "slow-reader", "receive-window", "send-buffer", "app-limited", "single-flow", "too-many-streams", "noisy-neighbour"},
		},
		Gates: []gate.Rule{
			{ID: "steal", Title: "CPU time taken by the hypervisor", About: "steal time of the whole virtual machine",
				Warns:  "above 2% while no test runs",
				Why:    "CPU time that the hypervisor gives to other guests is missing here, in bursts",
				Source: "proc(5), /proc/stat", Fix: "reserve CPU for this guest, or move it", Checklist: []string{"C-29", "C-37"}, Host: gateSteal},
		},
	}
}

// judgeCPUSteal joins the steal time that the guest sees with what its host counted.
func judgeCPUSteal(e *diagnose.End) *diagnose.Outcome {
	own, under := stealSeen(e), HypervisorWaits(e)
	if under != nil && under.State == diagnose.Unknown && own != nil && own.State == diagnose.Excluded && e.HidesSteal() {
		return under
	}
	return hypervisor.Seconded(own, under)
}

// stealSeen judges the steal time that the guest sees.
func stealSeen(e *diagnose.End) *diagnose.Outcome {
	if e.Guest() == nil && e.HypervisorName() == "none" {
		return diagnose.No("the %s is not a virtual machine", e.Place)
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
		return diagnose.Missing("CPU time that its host took from the "+e.Place, "a guest of this kind does not see it; query its host with --hypervisor URL")
	case x.Mean < diagnose.StealBar:
		return diagnose.No("the hypervisor took %s of the %s's %s", unit.Percent(x.Mean), e.Place, name(x))
	}
	o := diagnose.Possible("the hypervisor took %s of the %s's %s", unit.Percent(x.Mean), e.Place, name(x)).At(where(x, e)).
		By(diagnose.Above(e.Proof("/proc/stat steal of "+name(x), x.Mean, "pct"), diagnose.StealBar)).
		AddFix(&measure.Fix{EndPoint: e.Name, Advice: "reserve CPU for this guest, give it fewer virtual CPUs, or move it or its neighbours", Risk: "other guests lose the CPU time that is reserved; a guest that is moved stops for a moment"})
	switch l := e.Load(); {
	case !l.IsFull() && x.Busy < diagnose.FullBar:
		o.MarkNotBinding()
	case x.Mean > 2*diagnose.StealLikely && l.IsFull():
		o.Confidence = measure.Certain // more than half of the CPU time that the thread wanted
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

func gateSteal(h *scene.Host) *gate.Finding {
	guest, known := h.Guest()
	if known && !guest || h.System == "esxi" {
		return nil
	}
	if h.Load == nil || h.Load.StealPct == nil {
		if !guest {
			return nil
		}
		return gate.Missing(h, "steal time", "load.steal_pct")
	}
	if *h.Load.StealPct > 2 {
		return gate.Warn("the hypervisor takes %s of this guest's CPU time", gate.Percent(*h.Load.StealPct)).
			Do(scene.Advise("reserve CPU for this guest, or move it or its neighbours").Risking(scene.OnTheHost))
	}
	if b := h.Load.StealBoot; b != nil && *b > 2 {
		return gate.Pass("steal %s now, %s since the boot", gate.Percent(*h.Load.StealPct), gate.Percent(*b))
	}
	return gate.Pass("steal %s", gate.Percent(*h.Load.StealPct))
}

// Thresholds of what a host does with a guest's virtual CPUs, in percent of one CPU's time.
const (
	readyBar     = 5  // ready and not running (esxtop %RDY): it costs something from here
	readyLikely  = 10 // likely to bind from here
	readyCertain = 25 // binds from here if nothing else does
	costopBar    = 3  // waiting for the other virtual CPUs (esxtop %CSTP)
)

// HypervisorWaits judges how long the host kept the guest's virtual CPUs waiting.
func HypervisorWaits(e *diagnose.End) *diagnose.Outcome {
	if e.Guest() == nil {
		return hypervisor.NoPlacement(e, "time that its virtual CPUs waited for the host")
	}
	b := e.CPUs()
	stop := b.Stop
	if !b.ReadyKnown && !b.StopKnown {
		return diagnose.Missing("time that the "+e.Place+"'s virtual CPUs waited for the host", cmp.Or(b.Ready.Why, "the hypervisor reports no counters for the CPUs to which its threads are bound"))
	}
	if o := e.Flow.IsAll(); o != nil {
		return o
	}
	if b.Net < readyBar && stop.Mean < costopBar {
		return diagnose.No("%s made the virtual CPUs of the %s wait only %s of the time", hypervisor.HostName(e), e.Place, unit.Percent(b.Net))
	}
	o := diagnose.Possible("%s makes the virtual CPUs of the %s wait %s of the time%s", hypervisor.HostName(e), e.Place, unit.Percent(max(b.Net, stop.Mean)), crowd(e))
	if b.ReadyKnown {
		p := hypervisor.GaugeEvidence(b.Wait, e.Name, b.Net, "pct")
		if b.Net < b.Wait.Mean {
			p.Note = "of " + unit.Percent(b.Wait.Mean) + ", without the time stopped by a limit"
		}
		o.By(diagnose.Above(p, readyBar))
	}
	if b.StopKnown {
		o.By(diagnose.Above(hypervisor.GaugeEvidence(stop, e.Name, stop.Mean, "pct"), costopBar))
	}
	switch {
	case !b.Full && b.Net < readyLikely:
		o.MarkNotBinding()
	case b.Full && b.Net > readyCertain && b.Unlimited:
		o.Confidence = measure.Certain
	case b.Full && (b.Net > readyLikely || stop.Mean > costopBar), b.Net > readyCertain:
		o.Confidence = measure.Likely
	}
	return o.At(hypervisor.AtHost(e, hypervisor.HostName(e))).AddFix(freeCPU(e))
}

// crowd words how many virtual CPUs share how many of the host's if they exceed them, or how few the guest may
// use.
func crowd(e *diagnose.End) string {
	g, h := e.Guest(), hypervisor.HypervisorHost(e)
	if n := len(g.Affinity); n > 0 && g.CPUs != nil && n < *g.CPUs {
		return fmt.Sprintf(": its %d virtual CPUs may use only %d of the host's", *g.CPUs, n)
	}
	if h == nil || h.CPUsHanded == nil || h.Facts == nil || h.Facts.Cores == nil || *h.CPUsHanded <= *h.Facts.Cores || *h.Facts.Cores <= 0 {
		return ""
	}
	return fmt.Sprintf(": %d virtual CPUs share its %d CPUs", *h.CPUsHanded, *h.Facts.Cores)
}

// freeCPU gives a guest's virtual CPUs more of the host's CPU time.
func freeCPU(e *diagnose.End) *measure.Fix {
	r := &measure.Fix{EndPoint: hypervisor.HostName(e), Risk: "other guests lose the CPU time that is reserved; a guest that is moved stops for a moment"}
	if e.Kind() != measure.KindKVM {
		r.Advice = "reserve CPU for " + hypervisor.GuestName(e) + ", give it fewer virtual CPUs, or move it or its neighbours"
		return r
	}
	r.Advice = "check which CPUs its virtual CPUs may use, then bind each to a CPU that nothing else uses (libvirt: virsh vcpupin GUEST VCPU CPU; Proxmox: qm set ID --affinity; otherwise: taskset -pc CPU TID)"
	r.Platform, r.Risk = "linux", "the commands change nothing"
	for _, t := range e.Guest().Threads {
		if t.Role == "vcpu" && t.TID > 0 && len(r.Commands) < 4 {
			r.Commands = append(r.Commands, fmt.Sprintf("taskset -pc %d", t.TID))
		}
	}
	if len(r.Commands) == 0 {
		r.Commands = []string{"virsh vcpuinfo " + hypervisor.Domain(e.Guest())}
	}
	return r
}
