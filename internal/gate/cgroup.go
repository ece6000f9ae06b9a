package gate

import (
	"fmt"
	"slices"
	"strings"
)

// cgroupRules judge what control groups allow thru.
func cgroupRules() []Rule {
	return []Rule{{
		ID: "cpu-quota", Title: "CPU quota", About: "the time that the control groups around thru allow, and whether it was used up",
		Fails:  "less than the stated rate takes by earlier tests; without such, less than one CPU",
		Warns:  "less than one CPU, and the stated rate takes less by earlier tests; the quota was used up while no test ran, or in a tenth of the periods so far, once it was in 100 of them",
		Why:    "when the quota is used up all threads stop until the next period: 10.6 of 47 Gb/s with a fifth of a CPU",
		Source: "measured; Linux cgroup-v2.rst, cpu.max", Remedy: "lift the quota for the test", Cause: "cpu-quota", Checklist: []string{"C-08", "C-29"}, host: cpuQuota,
	}}
}

func cpuQuota(h *host) *finding {
	c := h.Cgroup
	if h.os != "linux" && c == nil {
		return nil
	}
	if c == nil {
		return h.missing("CPU quota", "cgroup")
	}
	if c.QuotaCPUs == nil && reason(h.NotChecked, "cgroup.quota_cpus") != notRead {
		return h.missing("CPU quota", "cgroup.quota_cpus")
	}
	if c.QuotaCPUs == nil {
		return pass("no CPU quota")
	}
	quota := *c.QuotaCPUs
	if !(quota > 0) {
		return notChecked("CPU quota", "the control group tells none that makes sense")
	}
	needed, _, known := h.needs()
	known = known && h.subject.LinkBps > 0
	if known && needed > quota && quota < float64(h.cpus()) {
		return fail("a quota of %.3g CPUs; %s takes %.1f by earlier tests", quota, rate(h.subject.LinkBps), needed).do(h.liftQuota())
	}
	switch {
	case quota < 1 && known:
		return warn("a quota of %.3g CPUs; %s takes %.2g by earlier tests", quota, rate(h.subject.LinkBps), needed).do(h.liftQuota())
	case quota < 1:
		return fail("a quota of %.3g CPUs", quota).do(h.liftQuota())
	case h.Load != nil && h.Load.Throttled != nil && *h.Load.Throttled > 0:
		return warn("the quota of %.3g CPUs was used up %d times while no test ran", quota, *h.Load.Throttled).do(h.liftQuota())
	case c.Periods != nil && c.Throttled != nil && *c.Throttled >= 100 && float64(*c.Throttled) > 0.1*float64(*c.Periods):
		return warn("the quota of %.3g CPUs was used up in %d of %d periods", quota, *c.Throttled, *c.Periods).do(h.liftQuota())
	}
	return pass("a quota of %.3g CPUs, of %d", quota, h.cpus())
}

// liftQuota says where the limit is.
func (h *host) liftQuota() remedy {
	c := h.Cgroup
	switch {
	case c.Container == "docker" || c.Container == "podman":
		return advise("on the host of the container: " + c.Container + " update --cpus 0 CONTAINER").risking("the limit protects other containers")
	case c.Container == "kubernetes":
		return advise("raise resources.limits.cpu of the pod").risking("the pod is started again")
	case c.Version == 2 && plainPath(c.Path):
		return commands("the limit protects others", fmt.Sprintf("echo max > /sys/fs/cgroup%s/cpu.max", c.Path)).
			saying("a group above may have the quota: there likewise")
	case plainPath(c.Path):
		// Where the controller is mounted differs: cpu, or cpu,cpuacct.
		return advise("write -1 into cpu.cfs_quota_us of the group " + c.Path + ", or of one above, where the controller cpu is mounted").
			risking("the limit protects others")
	}
	return advise("raise cpu.max (cgroup 2) or cpu.cfs_quota_us (cgroup 1) of the group or of one above").risking("the limit protects others")
}

// plainPath tells whether a path can stand in a command as it is, below the
// folder that the command puts before it.
func plainPath(path string) bool {
	return len(path) > 1 && path[0] == '/' && plain(path[1:], "/") && !slices.Contains(strings.Split(path, "/"), "..")
}
