package host

import (
	"maps"
	"slices"
	"time"

	"thru/internal/host/tree"
	"thru/internal/measure"
)

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
