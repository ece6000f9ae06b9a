package cpu

import (
	"thru/internal/cause/gate"
)

// CgroupGates judge what control groups allow thru.
func CgroupGates() []gate.Rule {
	return []gate.Rule{{
		ID: "cpu-quota", Title: "CPU quota", About: "the time that the control groups around thru allow, and whether it was used up",
		Fails:  "less than the stated rate takes by earlier tests; without such, less than one CPU",
		Warns:  "less than one CPU, and the stated rate takes less by earlier tests; the quota was used up while no test ran, or in a tenth of the periods so far, once it was in 100 of them",
		Why:    "when the quota is used up all threads stop until the next period: 10.6 of 47 Gb/s with a fifth of a CPU",
		Source: "measured; Linux cgroup-v2.rst, cpu.max", Remedy: "lift the quota for the test", Cause: "cpu-quota", Checklist: []string{"C-08", "C-29"}, Host: cpuQuota,
	}}
}

func cpuQuota(h *gate.Host) *gate.Finding {
	c := h.Cgroup
	if h.System != "linux" && c == nil {
		return nil
	}
	if c == nil {
		return h.Missing("CPU quota", "cgroup")
	}
	if c.QuotaCPUs == nil && gate.Reason(h.NotChecked, "cgroup.quota_cpus") != gate.NotRead {
		return h.Missing("CPU quota", "cgroup.quota_cpus")
	}
	if c.QuotaCPUs == nil {
		return gate.Pass("no CPU quota")
	}
	quota := *c.QuotaCPUs
	if !(quota > 0) {
		return gate.NotChecked("CPU quota", "the control group tells none that makes sense")
	}
	needed, _, known := needs(h)
	known = known && h.Subject.LinkBps > 0
	if known && needed > quota && quota < float64(h.CPUs()) {
		return gate.Fail("a quota of %.3g CPUs; %s takes %.1f by earlier tests", quota, gate.Rate(h.Subject.LinkBps), needed).Do(h.LiftQuota())
	}
	switch {
	case quota < 1 && known:
		return gate.Warn("a quota of %.3g CPUs; %s takes %.2g by earlier tests", quota, gate.Rate(h.Subject.LinkBps), needed).Do(h.LiftQuota())
	case quota < 1:
		return gate.Fail("a quota of %.3g CPUs", quota).Do(h.LiftQuota())
	case h.Load != nil && h.Load.Throttled != nil && *h.Load.Throttled > 0:
		return gate.Warn("the quota of %.3g CPUs was used up %d times while no test ran", quota, *h.Load.Throttled).Do(h.LiftQuota())
	case c.Periods != nil && c.Throttled != nil && *c.Throttled >= 100 && float64(*c.Throttled) > 0.1*float64(*c.Periods):
		return gate.Warn("the quota of %.3g CPUs was used up in %d of %d periods", quota, *c.Throttled, *c.Periods).Do(h.LiftQuota())
	}
	return gate.Pass("a quota of %.3g CPUs, of %d", quota, h.CPUs())
}
