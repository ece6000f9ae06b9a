package gate

import (
	"fmt"
	"slices"
	"strings"

	"thru/internal/cause/knob"
)

// MoreTracked doubles the table.
func MoreTracked(h *Host) Remedy {
	if h.System != "linux" {
		return Remedy{}
	}
	r := Sysctls(h, "net.netfilter.nf_conntrack_max="+twice(*h.Firewall.TrackedMax))
	return r.Risking("can be set in the host's own network namespace only (of a container: at its host); " + r.Risk)
}

// Doubled is twice the backlog that is set, within reason.
func Doubled(h *Host) string {
	n, ok := h.Number("net.core.netdev_max_backlog")
	if !ok {
		n = 1000
	}
	return fmt.Sprint(max(n, 2*min(n, 125_000)))
}

// ChangeModel is done on the hypervisor, not in the guest.
func (h *Host) ChangeModel() Remedy {
	const risk = "the guest is shut down for it, and gets a new MAC address"
	switch h.HypervisorName() {
	case "vmware":
		return Advise("on the hypervisor, in the guest's .vmx file: ethernet0.virtualDev = vmxnet3").Risking(risk)
	case "kvm", "qemu":
		return Advise("on the hypervisor, in the guest's definition: model type virtio in place of the emulated one").Risking(risk)
	case "virtualbox":
		return Advise("on the hypervisor: VBoxManage modifyvm GUEST --nic-type1 virtio").Risking(risk)
	}
	return Advise("on the hypervisor: choose its paravirtual adapter for this guest").Risking(risk)
}

// RxQueues is how many receive queues are set; 0 where it is not known.
func (f *Face) RxQueues() int {
	if c := f.Channels; c != nil && c.Combined+c.RX > 0 {
		return max(c.Combined, 0) + max(c.RX, 0)
	}
	if f.Queues != nil && *f.Queues > 0 {
		return *f.Queues
	}
	return 0
}

// PacketSteering spreads the packets of a queue over all CPUs by software.
func PacketSteering(f *Face) Remedy {
	n := f.Host.CPUs()
	if f.Host.System != "linux" || n <= 0 || n > 32 {
		return Remedy{}
	}
	mask := uint64(1)<<n - 1
	return Commands(LinkLasts, f.Typed(knob.RPS, fmt.Sprintf("rx-0 %x", mask))...)
}

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
