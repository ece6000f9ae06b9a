package cpu

import (
	"fmt"
	"slices"
	"strings"

	"thru/internal/cause/diagnose"
	"thru/internal/cause/gate"
	"thru/internal/cause/rule"
	"thru/internal/cause/scene"
	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// CPUQuota is the cause `cpu-quota`.
func CPUQuota() rule.Cause {
	return rule.Cause{
		Rule: diagnose.Rule{
			Cause: "cpu-quota", TCP: true, UDP: true, Unseen: diagnose.HostTime, Title: "a CPU quota is used up", Judge: func(f *diagnose.Flow) *diagnose.Outcome { return f.Either(judgeCPUQuota) },
			Seen:        "the control groups of thru were throttled, and thru's busiest thread waited for that, for a tenth of the measured time or more; certain from a quarter on, if that thread was never idle and a CPU that it may use was",
			Distinction: "the throttled time of thru's thread, not the throttled periods of the group; a thread that waits while the CPUs are full waits for other programs",
			Fix:         "remove the quota for the test", Effect: "10.6 of 47 Gb/s with a fifth of a CPU",
			Source: "Linux cgroup-v2.rst, cpu.stat: throttled_usec; /proc/PID/task/TID/schedstat", Brings: []string{"sender-cpu", "receiver-cpu", "slow-reader", "receive-window", "send-buffer", "app-limited", "single-flow", "too-many-streams"},
		},
		Gates: []gate.Rule{
			{
				ID: "cpu-quota", Words: "cgroup cgroups quota limit throttling", Title: "CPU quota", About: "the CPU time that the control groups of thru allow, and whether it was used up",
				Fails:  "less CPU than the stated rate takes by earlier tests; without earlier tests, less than one CPU",
				Warns:  "less than one CPU, although the stated rate takes less by earlier tests; or the quota was used up while no test ran, or in 100 periods and a tenth of all periods so far",
				Why:    "when the quota is used up all threads stop until the next period: 10.6 of 47 Gb/s with a fifth of a CPU",
				Source: "measured; Linux cgroup-v2.rst, cpu.max", Fix: "remove the quota for the test", Checklist: []string{"C-08", "C-29"}, Host: gateCPUQuota,
			},
		},
	}
}

func judgeCPUQuota(e *diagnose.End) *diagnose.Outcome {
	if o := e.Flow.IsAll(); o != nil {
		return o
	}
	if e.Seen == nil || e.Seen.Host == nil || e.Seen.Reported != "" {
		return e.Lacks("the CPU quota")
	}
	q := e.Seen.Host.Quota
	if q == nil {
		return quotaByFacts(e)
	}
	if q.Periods <= 0 || q.Throttled < 0 {
		return diagnose.No("no period of the %s's quota of %.3g CPUs passed", e.Place, q.CPUs)
	}
	lost, ownThread := throttled(e, q)
	if lost < throttledBar {
		return diagnose.No("the quota of %.3g CPUs throttled the %s's thread only %s of the time", q.CPUs, e.Place, unit.Percent(lost))
	}
	counter := "thread waiting while cpu.stat counted throttled time, maximum"
	if !ownThread {
		counter = "cpu.stat throttled time, of all CPUs"
	}
	o := diagnose.Possible("a quota of %.3g CPUs throttles the %s %s of the time", q.CPUs, e.Place, unit.Percent(lost)).At(e.Where()).
		By(diagnose.Above(e.Proof(counter, lost, "pct"), throttledBar), e.Proof("cpu.stat nr_throttled", float64(q.Throttled), "periods"))
	switch l := e.Load(); {
	case !ownThread: // which threads of the group had to wait is not known
		o.Confidence = measure.Likely
	case l.Thread && lost > diagnose.StealLikely && l.CPUs > 0 && l.Least < diagnose.FullBar: // it wanted to run, and a CPU was free
		o.Confidence = measure.Certain
	case l.IsFull() && 2*lost > l.Hot.Wait, lost > mostlyBar: // most of its waiting time
		o.Confidence = measure.Likely
	}
	return o.AddFix(e.Machine().Fix(liftQuota(e.Machine())))
}

// quotaByFacts judges by the settings of the control groups if nothing counted how often the quota was used up.
func quotaByFacts(e *diagnose.End) *diagnose.Outcome {
	switch {
	case !e.Known:
		return e.Lacks("the CPU quota")
	case e.Cgroup == nil && e.System == "linux":
		return diagnose.Missing("the CPU quota of the "+e.Place, whyNot(e, "cgroup"))
	case e.Cgroup == nil:
		return nil // this system has no quotas
	case e.Cgroup.QuotaCPUs == nil:
		return diagnose.No("the %s has no CPU quota", e.Place)
	}
	return diagnose.Missing(fmt.Sprintf("how often the %s's quota of %.3g CPUs was used up", e.Place, *e.Cgroup.QuotaCPUs), e.Why("host.cpu_quota"))
}

// whyNot returns the host's reason for a fact that it could not read.
func whyNot(e *diagnose.End, fact string) string {
	for _, m := range e.NotChecked {
		if m.Fact == fact && m.Why != "" {
			return m.Why
		}
	}
	return "it was not read"
}

// throttled returns the percentage of the measured time that the quota took from the end's own thread: at most
// what the group's threads waited in total, and what the longest-waiting thread waited. Others of the group may be
// throttled while it runs; if its time is not known, ownThread is false.
func throttled(e *diagnose.End, q *measure.QuotaSpan) (pct float64, ownThread bool) {
	waited, ownThread := int64(0), len(e.Streams()) > 0
	for _, s := range e.Streams() {
		if s.WaitNs == nil {
			ownThread = false
			break
		}
		waited = max(waited, *s.WaitNs)
	}
	if !ownThread {
		waited = q.ThrottledNs
	}
	return diagnose.Bounded(stat.Pct(float64(min(waited, q.ThrottledNs)), float64(e.Span()))), ownThread
}

// Thresholds of the quota, in percent.
const (
	throttledBar = 10 // of the time: the quota costs something above it
	mostlyBar    = 50 // of the time: above it the quota likely binds even a thread with idle time
)

func gateCPUQuota(h *scene.Host) *gate.Finding {
	c := h.Cgroup
	if h.System != "linux" && c == nil {
		return nil
	}
	if c == nil {
		return gate.Missing(h, "CPU quota", "cgroup")
	}
	if c.QuotaCPUs == nil && scene.Reason(h.NotChecked, "cgroup.quota_cpus") != scene.NotRead {
		return gate.Missing(h, "CPU quota", "cgroup.quota_cpus")
	}
	if c.QuotaCPUs == nil {
		return gate.Pass("no CPU quota")
	}
	quota := *c.QuotaCPUs
	if !(quota > 0) {
		return gate.NotChecked("CPU quota", "the control group reports an invalid quota")
	}
	needed, _, known := needs(h)
	known = known && h.Subject.LinkBps > 0
	if known && needed > quota && quota < float64(h.CPUs()) {
		return gate.Fail("a quota of %.3g CPUs, but %s takes %.1f by earlier tests", quota, gate.Rate(h.Subject.LinkBps), needed).Do(liftQuota(h))
	}
	switch {
	case quota < 1 && known:
		return gate.Warn("a quota of %.3g CPUs; %s takes %.2g by earlier tests", quota, gate.Rate(h.Subject.LinkBps), needed).Do(liftQuota(h))
	case quota < 1:
		return gate.Fail("a quota of %.3g CPUs", quota).Do(liftQuota(h))
	case h.Load != nil && h.Load.Throttled != nil && *h.Load.Throttled > 0:
		return gate.Warn("the quota of %.3g CPUs was used up %d times while no test ran", quota, *h.Load.Throttled).Do(liftQuota(h))
	case c.Periods != nil && c.Throttled != nil && *c.Throttled >= 100 && float64(*c.Throttled) > 0.1*float64(*c.Periods):
		return gate.Warn("the quota of %.3g CPUs was used up in %d of %d periods", quota, *c.Throttled, *c.Periods).Do(liftQuota(h))
	}
	return gate.Pass("a quota of %.3g CPUs, of %d", quota, h.CPUs())
}

// liftQuota names where the limit is.
func liftQuota(h *scene.Host) scene.Fix {
	const others = "the limit protects other programs of the host"
	c := h.Cgroup
	switch {
	case c == nil:
	case c.Container == "docker" || c.Container == "podman":
		return scene.Advise("run on the container's host: " + c.Container + " update --cpus 0 CONTAINER").Risking("the limit protects other containers")
	case c.Container == "kubernetes":
		return scene.Advise("raise resources.limits.cpu of the pod").Risking("the pod restarts")
	case c.Version == 2 && plainPath(c.Path):
		return scene.Commands(others, fmt.Sprintf("echo max > /sys/fs/cgroup%s/cpu.max", c.Path)).WithAdvice("a parent group may have the quota: set it there too")
	case plainPath(c.Path): // the controller may be mounted as cpu, or cpu,cpuacct
		return scene.Advise("write -1 into cpu.cfs_quota_us of the group " + c.Path + ", or of a parent group, where the controller cpu is mounted").Risking(others)
	}
	return scene.Advise("raise cpu.max (cgroup 2) or cpu.cfs_quota_us (cgroup 1) of the group or of a parent group").Risking(others)
}

// plainPath reports whether a path can be used in a command as it is, below the folder that the command names.
func plainPath(path string) bool {
	return len(path) > 1 && path[0] == '/' && scene.Plain(path[1:], "/") && !slices.Contains(strings.Split(path, "/"), "..")
}
