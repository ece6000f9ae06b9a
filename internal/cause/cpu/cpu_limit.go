package cpu

import (
	"fmt"
	"strings"

	"thru/internal/cause/diagnose"
	"thru/internal/cause/gate"
	"thru/internal/cause/hypervisor"
	"thru/internal/cause/rule"
	"thru/internal/cause/scene"
	"thru/internal/measure"
	"thru/internal/unit"
)

// CPULimit is the cause `cpu-limit`.
func CPULimit() rule.Cause {
	return rule.Cause{
		Rule: diagnose.Rule{
			Cause: "cpu-limit", TCP: true, UDP: true, Title: "the hypervisor limits the guest's CPUs", Judge: func(f *diagnose.Flow) *diagnose.Outcome { return f.Either(judgeCPULimit) },
			Seen:        "in the measured time a limit kept ready virtual CPUs from running, or the guest used 95% of its quota; a limit without a counter of its use is possible",
			Distinction: "ready time for lack of a free CPU (cpu-steal) is small",
			Fix:         "raise or remove the limit of the guest, or of its resource pool", Effect: "CPU time up to the limit only, in bursts",
			Source: "ESXi's cpu.maxlimited (esxtop %MLMTD above 0); cpu.stat and CPU time of a KVM guest", Brings: []string{"sender-cpu", "receiver-cpu", "slow-reader", "receive-window", "send-buffer", "app-limited", "single-flow", "too-many-streams", "cpu-steal", "noisy-neighbour"},
		},
		Gates: []gate.Rule{
			{ID: "guest-cpu-limit", Words: "vcpu maxlimited", Title: "CPU limit of a guest", About: "the CPU limit or quota that the hypervisor sets for the guest",
				Warns:  "a limit is set",
				Why:    "the guest cannot see it: its CPUs stop when the limit is used up",
				Source: "vSphere Resource Management, CPU limit; Linux cgroup-v2.rst", Fix: "remove or raise the limit", Checklist: []string{"C-08", "C-33"}, Hypervisor: true, Host: gateGuestCPULimit},
		},
	}
}

// judgeCPULimit judges a limit that the hypervisor sets on the guest's CPUs.
func judgeCPULimit(e *diagnose.End) *diagnose.Outcome {
	if e.Guest() == nil {
		return hypervisor.NoPlacement(e, "CPU limit")
	}
	if o := e.Flow.IsAll(); o != nil {
		return o
	}
	b := e.CPUs()
	limit, set := e.LimitOf()
	quota, spent := QuotaSpent(e)
	counted := b.LimitKnown
	switch {
	case counted && b.Limit.Mean >= diagnose.LimitedBar || spent && quota >= QuotaBar:
		return AsLimited(e, b, limit, quota)
	case limit != "" && !counted && !spent:
		o := diagnose.Possible("a CPU limit of %s is set for %s; no counter shows whether it was used up", limit, hypervisor.GuestName(e)).
			By(measure.Proof{EndPoint: e.Name, Counter: "CPU limits of the guest", Value: 1, Note: limit})
		return o.At(e.Where()).MarkNotBinding().Then("measure for three hypervisor samples or more: " + b.Limited.Why).AddFix(LiftLimit(e))
	case limit != "" || counted:
		return diagnose.No("no limit stopped the virtual CPUs of the %s: %s of the time", e.Place, unit.Percent(b.Limit.Mean))
	case set:
		return diagnose.No("no CPU limit is set for %s", hypervisor.GuestName(e))
	}
	return diagnose.Missing("CPU limit of the "+e.Place, b.Limited.Why)
}

// QuotaSpent returns how much of its quota a guest used up, in percent.
func QuotaSpent(e *diagnose.End) (float64, bool) {
	g := e.Guest()
	used, ok := e.OfGuest(measure.CounterUsed).Whole()
	if !ok || g.CPUQuota == nil || !(*g.CPUQuota > 0) {
		return 0, false
	}
	return min(100, used.Mean / *g.CPUQuota), true
}

// Thresholds of what a host does with a guest's virtual CPUs, in percent of one CPU's time.
const (
	limitedMuch = 5
	QuotaBar    = 95 // of a quota: used up from here
)

// AsLimited words a limit that was used up.
func AsLimited(e *diagnose.End, b diagnose.GuestCPU, limit string, quota float64) *diagnose.Outcome {
	of := "a CPU limit of " + limit
	if limit == "" {
		of = "a CPU limit of its resource pool or another parent"
	}
	o := diagnose.Possible("%s throttles %s", of, hypervisor.GuestName(e))
	if b.LimitKnown {
		o.Text += fmt.Sprintf(": it stopped the virtual CPUs %s of the time", unit.Percent(b.Limit.Mean))
		o.By(diagnose.Above(hypervisor.GaugeEvidence(b.Limit, e.Name, b.Limit.Mean, "pct"), diagnose.LimitedBar))
	}
	used := quota >= QuotaBar
	if used {
		o.By(diagnose.Above(measure.Proof{EndPoint: e.Name, Counter: "CPU time, of the quota", Value: quota, Unit: "pct"}, QuotaBar))
	}
	switch {
	case b.Limit.Mean > readyCertain && (b.Full || used) && b.ReadyKnown && b.Net < readyBar:
		o.Confidence = measure.Certain
	case b.Limit.Mean > limitedMuch && (b.Full || used), b.Limit.Mean > readyCertain, used && !b.LimitKnown:
		o.Confidence = measure.Likely
	case b.Limit.Mean <= limitedMuch && !b.Full && !used:
		o.MarkNotBinding()
	}
	return o.At(hypervisor.AtHost(e, hypervisor.HostName(e))).AddFix(LiftLimit(e))
}

// LiftLimit removes a guest's CPU limit.
func LiftLimit(e *diagnose.End) *measure.Fix {
	r := &measure.Fix{EndPoint: hypervisor.HostName(e), Risk: "it may then take CPU time that other guests of the host rely on"}
	if e.Kind() == measure.KindKVM {
		r.Platform = "linux"
		if id := e.Guest().ID; strings.Contains(strings.ToLower(e.Placements[0].Inventory.Product), "proxmox") && hypervisor.IsNumber10(id) {
			r.Commands = []string{"qm set " + id + " --cpulimit 0"}
			return r
		}
		r.Commands = []string{"virsh schedinfo " + hypervisor.Domain(e.Guest()) + " --live --set vcpu_quota=-1 global_quota=-1"}
		r.Advice = "with --live the change lasts until the guest stops, with --config permanently; Proxmox: qm set ID --cpulimit 0"
		return r
	}
	r.Advice = "raise or remove the CPU limit of " + hypervisor.GuestName(e) + " (Edit Settings, CPU, Limit: Unlimited), and that of its resource pool"
	return r
}

func gateGuestCPULimit(h *scene.Host) *gate.Finding {
	b, ok := hypervisor.Placement(h)
	if !ok {
		return nil
	}
	fix := scene.Advise("on the hypervisor: remove or raise the CPU limit of this guest").Risking("it may then take CPU time that other guests of the host rely on")
	switch cpus, hz, known := b.CPULimit(); {
	case cpus > 0:
		return gate.Warn("%s may use %.3g CPUs", b.Guest.Name, cpus).Do(fix)
	case hz > 0:
		return gate.Warn("%s may use %.3g GHz", b.Guest.Name, hz/1e9).Do(fix)
	case !known:
		return gate.NotChecked("CPU limit of "+b.Guest.Name, scene.Reason(b.Guest.NotChecked, "cpu_allocation", "cpu_quota_cpus"))
	}
	return gate.Pass("no CPU limit is set for %s", b.Guest.Name)
}
