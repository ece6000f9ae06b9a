package host

import (
	"errors"
	"io/fs"
	"runtime"
	"strings"

	"thru/internal/host/tree"
	"thru/internal/measure"
)

// Facts reads the present facts about this host. It takes some milliseconds,
// more with many interfaces.
func (h *Host) Facts() measure.Facts {
	var n notes
	f := measure.Facts{
		Hostname:   keeper[string](&n, "hostname")(h.fs.Text("proc/sys/kernel/hostname")),
		OS:         new("linux"),
		Distro:     keeper[string](&n, "distribution")(h.fs.distribution()),
		Kernel:     keeper[string](&n, "kernel")(h.fs.Text("proc/sys/kernel/osrelease")),
		Arch:       new(runtime.GOARCH),
		CPUModel:   keeper[string](&n, "cpu_model")(h.fs.cpuModel()),
		Cores:      keeper[int](&n, "cores")(h.fs.cores()),
		Memory:     keeper[int64](&n, "memory_bytes")(h.fs.memoryTotal()),
		Hypervisor: keeper[string](&n, "hypervisor")(h.fs.hypervisor()),
		Congestion: keeper[string](&n, "congestion_control")(h.fs.Text("proc/sys/net/ipv4/tcp_congestion_control")),
	}
	if s := keeper[string](&n, "congestion_available")(h.fs.Text("proc/sys/net/ipv4/tcp_available_congestion_control")); s != nil {
		f.CongAvail = strings.Fields(*s)
	}
	f.Sysctls = h.fs.sysctls(&n)
	virtual := f.Hypervisor != nil && *f.Hypervisor != "none"
	f.Interfaces = h.interfaces(&n, virtual)
	f.Managers = h.fs.managers()
	h.machineFacts(&n, &f)
	f.NotChecked = n
	return f
}

// machineFacts adds the facts about the host itself. Load is separate, since
// it takes time.
func (h *Host) machineFacts(n *notes, f *measure.Facts) {
	f.Machine = h.fs.machine(n)
	f.CPU = h.processors(n, f.CPUModel)
	f.NUMA = h.fs.nodes(n)
	f.RAM = h.fs.ram(n, f.Hypervisor)
	f.Cgroup = h.fs.cgroup(n)
	f.Security = h.fs.security(n)
	f.Firewall = h.firewall(n)
	f.Clock = h.clock(n)
	f.Disks = h.disks(n)
	f.Hypervises = h.fs.hypervises(n)
	f.Privileged = keeper[bool](n, "privileged")(h.fs.privileged())
	if f.Privileged != nil && !*f.Privileged {
		f.RootAdds = rootAdds(*n)
	}
}

// privileged reports whether this process runs as root: the second number is
// the effective user (proc_pid_status(5)).
func (f FS) privileged() (bool, error) {
	all, err := f.Fields("proc/self/status")
	if err != nil {
		return false, err
	}
	if words := strings.Fields(all["Uid"]); len(words) == 4 {
		return words[1] == "0", nil
	}
	return false, errors.New("/proc/self/status has no user")
}

// distribution returns the name of the distribution; os-release(5) gives the
// two places.
func (f FS) distribution() (string, error) {
	s, err := tree.Parsed(f.Read, "etc/os-release", parseOSRelease)
	if errors.Is(err, fs.ErrNotExist) {
		return tree.Parsed(f.Read, "usr/lib/os-release", parseOSRelease)
	}
	return s, err
}

// cpuModel returns the model of the first processor.
func (f FS) cpuModel() (string, error) {
	c, err := f.firstCPU()
	if err == nil && c.model == "" {
		err = errors.New("/proc/cpuinfo has no model on this architecture")
	}
	return c.model, err
}

// cores counts the online logical CPUs, whether or not this process may use
// them.
func (f FS) cores() (int, error) {
	cpus, err := f.cpuList("sys/devices/system/cpu/online")
	return len(cpus), err
}

// memoryTotal returns the host's memory in bytes, without what the kernel
// reserved at boot.
func (f FS) memoryTotal() (int64, error) {
	m, err := f.Fields("proc/meminfo")
	if err != nil {
		return 0, err
	}
	return tree.Kilobytes(m["MemTotal"])
}

// sysctls reads the network stack settings that limit a test
// (Documentation/networking/ip-sysctl.rst,
// Documentation/admin-guide/sysctl/net.rst). A network namespace does not
// show all of net.core.
func (f FS) sysctls(n *notes) map[string]string {
	all := map[string]string{}
	for _, name := range []string{
		"net.core.rmem_max", "net.core.wmem_max", "net.core.netdev_max_backlog", "net.core.default_qdisc",
		"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem", "net.ipv4.tcp_window_scaling", "net.ipv4.tcp_sack",
		"net.ipv4.tcp_timestamps", "net.ipv4.tcp_mtu_probing", "net.ipv4.tcp_slow_start_after_idle",
		"net.ipv4.tcp_no_metrics_save", "net.ipv4.tcp_congestion_control", "net.ipv4.ip_forward",
	} {
		file := "proc/sys/" + strings.ReplaceAll(name, ".", "/")
		if v := keeper[string](n, "sysctls."+name)(f.Text(file)); v != nil {
			all[name] = *v
		}
	}
	return all
}
