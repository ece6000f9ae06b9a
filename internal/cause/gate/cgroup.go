package gate

import (
	"fmt"
	"slices"
	"strings"
)

// LiftQuota says where the limit is.
func (h *Host) LiftQuota() Remedy {
	c := h.Cgroup
	switch {
	case c.Container == "docker" || c.Container == "podman":
		return Advise("on the host of the container: " + c.Container + " update --cpus 0 CONTAINER").Risking("the limit protects other containers")
	case c.Container == "kubernetes":
		return Advise("raise resources.limits.cpu of the pod").Risking("the pod is started again")
	case c.Version == 2 && plainPath(c.Path):
		return Commands("the limit protects others", fmt.Sprintf("echo max > /sys/fs/cgroup%s/cpu.max", c.Path)).
			Saying("a group above may have the quota: there likewise")
	case plainPath(c.Path):
		// Where the controller is mounted differs: cpu, or cpu,cpuacct.
		return Advise("write -1 into cpu.cfs_quota_us of the group " + c.Path + ", or of one above, where the controller cpu is mounted").
			Risking("the limit protects others")
	}
	return Advise("raise cpu.max (cgroup 2) or cpu.cfs_quota_us (cgroup 1) of the group or of one above").Risking("the limit protects others")
}

// plainPath tells whether a path can stand in a command as it is, below the
// folder that the command puts before it.
func plainPath(path string) bool {
	return len(path) > 1 && path[0] == '/' && Plain(path[1:], "/") && !slices.Contains(strings.Split(path, "/"), "..")
}
