package host

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

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

// runningSystem returns the kernel that this program runs on.
func runningSystem() system { return live{} }

type live struct{}

// adjtime reads the clock's state; modes of 0 change nothing (adjtimex(2)).
// Offsets are in microseconds unless STA_NANO is set, the rate in units of
// 2^-16 ppm, the bound always in microseconds.
func (live) adjtime() (timex, error) {
	var t unix.Timex
	state, err := unix.Adjtimex(&t)
	if err != nil {
		return timex{}, fmt.Errorf("adjtimex: %w", err)
	}
	unit := int64(time.Microsecond)
	if t.Status&unix.STA_NANO != 0 {
		unit = 1
	}
	return timex{
		synchronised: state != unix.TIME_ERROR && t.Status&unix.STA_UNSYNC == 0,
		maxErrorNs:   int64(t.Maxerror) * int64(time.Microsecond),
		offsetNs:     int64(t.Offset) * unit,
		driftPPM:     float64(t.Freq) / (1 << 16),
	}, nil
}

// readCost returns the time of one reading of the monotonic clock: the
// shortest of some batches, so that an interruption does not count.
func (live) readCost() time.Duration {
	const batches, readings = 5, 200
	best := time.Hour
	for range batches {
		began := time.Now()
		var last time.Duration
		for range readings {
			last = time.Since(began) // one reading each
		}
		best = min(best, last)
	}
	return best / readings
}

// free returns the bytes that a user may still write to the file system at
// path (statfs(2)).
func (live) free(path string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	return int64(s.Bavail) * int64(s.Bsize), nil
}

// latencyLimit returns the longest exit latency of idle states that programs
// allow, in microseconds. Reading the file requests nothing
// (Documentation/admin-guide/pm/cpuidle.rst, "Power Management Quality of
// Service").
func (live) latencyLimit() (int, error) {
	file, err := os.Open("/dev/cpu_dma_latency")
	if err != nil {
		return 0, tree.Explain("dev/cpu_dma_latency", err)
	}
	defer file.Close()
	var b [4]byte
	if _, err := file.Read(b[:]); err != nil {
		return 0, tree.Explain("dev/cpu_dma_latency", err)
	}
	return int(int32(binary.NativeEndian.Uint32(b[:]))), nil
}

// Watch reads the counters of a host repeatedly, with those of one interface
// and of the process that moves the data. It finds the counters once. It is
// for one goroutine.
type Watch struct {
	host  *Host
	iface string
	pid   int
	quota quota // the lowest of the control groups around thru
	irqs  []int // of the interface
	notes notes // notes of the search
}

// Watch finds the counters of this host, of one interface, and of the process
// that moves the data. An empty name or a zero pid leaves that part out.
func (h *Host) Watch(iface string, pid int) *Watch {
	w := &Watch{host: h, iface: iface, pid: pid}
	w.findQuota()
	if iface == "" {
		return w
	}
	err := h.OwnSysfs(iface)
	if err == nil {
		w.irqs, err = h.fs.irqsBelow(iface)
	}
	if err != nil {
		w.notes.add("interrupts", err.Error())
	}
	return w
}

// Read takes one reading of a Watch.
func (h *Host) Read(iface string, pid int) Snapshot { return h.Watch(iface, pid).Read() }

// Read reads all counters. It takes about a millisecond, and more where a
// driver asks its firmware.
func (w *Watch) Read() Snapshot {
	h, iface, pid := w.host, w.iface, w.pid
	n := slices.Clone(w.notes)
	s := Snapshot{Taken: time.Now()}
	s.CPUs = orNote[[]CPUTimes](&n, "cpus")(h.CPUs())
	s.Softnet = orNote[[]measure.Softnet](&n, "softnet")(tree.Parsed(h.fs.net, "softnet_stat", parseSoftnet))
	s.Memory = keeper[measure.Memory](&n, "memory")(tree.Parsed(h.fs.Read, "proc/meminfo", parseMeminfo))
	s.Swap = keeper[measure.SwapSpan](&n, "swap")(tree.Parsed(h.fs.Read, "proc/vmstat", parseSwap))
	s.Proto = h.fs.protocols(&n)
	s.Quota = w.readQuota(&n)
	if iface != "" {
		s.NIC = h.readNIC(&n, iface)
		s.Qdisc = h.readQdisc(&n, iface)
	}
	if len(w.irqs) > 0 {
		some := func(text string) (interruptTable, error) { return interruptsOf(text, w.irqs) }
		t := keeper[interruptTable](&n, "interrupts")(tree.Parsed(h.fs.Read, "proc/interrupts", some))
		if t != nil {
			s.IRQs = t.countsByCore()
		}
	}
	if pid != 0 {
		s.Worker = keeper[measure.Process](&n, "worker")(h.fs.process(pid))
	}
	s.Missing = n
	return s
}

// protocols reads the counters of TCP, UDP, IP and ICMP. A system without
// IPv6 has no snmp6.
func (f FS) protocols(n *notes) map[string]uint64 {
	all := map[string]uint64{}
	for _, file := range []struct {
		name  string
		parse func(string) (map[string]uint64, error)
	}{{"netstat", parseProtocols}, {"snmp", parseProtocols}, {"snmp6", parseSNMP6}} {
		maps.Copy(all, orNote[map[string]uint64](n, "protocol."+file.name)(tree.Parsed(f.net, file.name, file.parse)))
	}
	v, err := tree.Parsed(f.net, "stat/nf_conntrack", parseConntrack)
	maps.Copy(all, v)
	if unlessAbsent(err) != nil { // the file does not exist without connection tracking
		n.add("protocol.conntrack", err.Error())
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// findQuota finds the lowest quota.
func (w *Watch) findQuota() {
	var err error
	if w.quota, err = w.host.fs.quotaAround("self"); err != nil {
		w.notes.add("cpu_quota", err.Error())
	}
}

// readQuota reads the counters of the quota; nil where there is none. Where
// its group is gone, readQuota searches again, since the process is in
// another group.
func (w *Watch) readQuota(n *notes) *measure.QuotaSpan {
	if w.quota.dir != "" && !w.host.fs.Exists(w.quota.dir) {
		w.findQuota()
	}
	if w.quota.dir == "" {
		return nil
	}
	return keeper[measure.QuotaSpan](n, "cpu_quota")(w.host.fs.throttling(w.quota))
}

// onlyKernel is the reason why a recorded tree lacks a fact.
const onlyKernel = "only the running kernel reports them"

// readQdisc reads the queueing counters of one interface.
func (h *Host) readQdisc(n *notes, name string) *measure.Qdisc {
	if h.kernel == nil {
		n.add("qdisc", onlyKernel)
		return nil
	}
	return keeper[measure.Qdisc](n, "qdisc")(h.kernel.qdisc(name))
}

// readNIC reads the counters of one interface and of its driver.
func (h *Host) readNIC(n *notes, name string) *measure.NICSpan {
	nic := keeper[measure.NICSpan](n, "interface")(tree.Parsed(h.fs.net, "dev", func(text string) (measure.NICSpan, error) { return parseNetDev(text, name) }))
	if nic == nil {
		return nil
	}
	if h.kernel == nil {
		n.add("interface.driver", onlyKernel)
		n.add("interface.rx_ring_drops", onlyKernel)
		return nic
	}
	nic.Driver = orNote[map[string]uint64](n, "interface.driver")(h.kernel.counters(name))
	nic.RxRing = keeper[uint64](n, "interface.rx_ring_drops")(h.kernel.rxRing(name))
	return nic
}
