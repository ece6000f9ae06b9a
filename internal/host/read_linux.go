package host

import (
	"bytes"
	"io"
	"slices"
	"time"

	"thru/internal/measure"
)

// Watch reads the counters of a host again and again, those of one interface
// and of the process that moves the data among them. It has found out once
// where they are. It is for one goroutine.
type Watch struct {
	host  *Host
	iface string
	pid   int
	quota quota // the least of the control groups around thru
	irqs  []int // interrupts of the interface
	notes notes // what is not known of these
}

// Watch finds out where the counters are of this host, of one interface, and of
// the process that moves the data. An empty name or a zero pid leaves that
// part out.
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

// Read is one reading of a Watch.
func (h *Host) Read(iface string, pid int) Snapshot { return h.Watch(iface, pid).Read() }

// Read reads all counters. It takes about a millisecond, and more where a
// driver asks its firmware.
func (w *Watch) Read() Snapshot {
	h, iface, pid := w.host, w.iface, w.pid
	n := slices.Clone(w.notes)
	s := Snapshot{Taken: time.Now()}
	if v := keeper[[]CPUTimes](&n, "cpus")(parsed(h.fs.read, "proc/stat", parseStat)); v != nil {
		s.CPUs = *v
	}
	if v := keeper[[]measure.Softnet](&n, "softnet")(parsed(h.fs.net, "softnet_stat", parseSoftnet)); v != nil {
		s.Softnet = *v
	}
	s.Memory = keeper[measure.Memory](&n, "memory")(parsed(h.fs.read, "proc/meminfo", parseMeminfo))
	s.Swap = keeper[measure.SwapSpan](&n, "swap")(parsed(h.fs.read, "proc/vmstat", parseSwap))
	s.Proto = h.fs.protocols(&n)
	s.Quota = w.readQuota(&n)
	if iface != "" {
		s.NIC = h.readNIC(&n, iface)
		s.Qdisc = h.readQdisc(&n, iface)
	}
	if len(w.irqs) > 0 {
		t := keeper[interruptTable](&n, "interrupts")(parsed(h.fs.read, "proc/interrupts", interruptsOf(w.irqs)))
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
	var all map[string]uint64
	for _, file := range []struct {
		name  string
		parse func(io.Reader) (map[string]uint64, error)
	}{{"netstat", parseProtocols}, {"snmp", parseProtocols}, {"snmp6", parseSNMP6}} {
		if v := keeper[map[string]uint64](n, "protocol."+file.name)(parsed(f.net, file.name, file.parse)); v != nil {
			all = merge(all, *v)
		}
	}
	if v, err := parsed(f.net, "stat/nf_conntrack", parseConntrack); err == nil {
		all = merge(all, v)
	} else if unlessAbsent(err) != nil { // else nothing tracks connections
		n.add("protocol.conntrack", err.Error())
	}
	return all
}

// findQuota finds the quota that binds first.
func (w *Watch) findQuota() {
	var err error
	if w.quota, err = w.host.fs.ownQuota(); err != nil {
		w.notes.add("cpu_quota", err.Error())
	}
}

// readQuota reads what the quota has done; nil where there is none. A group
// that is gone has left the process to another one.
func (w *Watch) readQuota(n *notes) *measure.QuotaSpan {
	if w.quota.dir != "" && !w.host.fs.exists(w.quota.dir) {
		w.findQuota()
	}
	if w.quota.dir == "" {
		return nil
	}
	t := keeper[throttling](n, "cpu_quota")(w.host.fs.throttling(w.quota.dir))
	if t == nil {
		return nil
	}
	return &measure.QuotaSpan{CPUs: w.quota.cpus, Periods: t.periods, Throttled: t.throttled, ThrottledNs: t.ns}
}

// onlyKernel is why a recorded tree lacks something.
const onlyKernel = "only the running kernel tells them"

// readQdisc reads what queues before one interface.
func (h *Host) readQdisc(n *notes, name string) *measure.Qdisc {
	if h.kernel == nil {
		n.add("qdisc", onlyKernel)
		return nil
	}
	return keeper[measure.Qdisc](n, "qdisc")(h.kernel.qdisc(name))
}

// readNIC reads the counters of one interface and of its driver.
func (h *Host) readNIC(n *notes, name string) *measure.NICSpan {
	b, err := h.fs.net("dev")
	if err != nil {
		n.add("interface", err.Error())
		return nil
	}
	nic := keeper[measure.NICSpan](n, "interface")(parseNetDev(bytes.NewReader(b), name))
	if nic == nil {
		return nil
	}
	if h.kernel == nil {
		n.add("interface.driver", onlyKernel)
		n.add("interface.rx_ring_drops", onlyKernel)
		return nic
	}
	if v := keeper[map[string]uint64](n, "interface.driver")(h.kernel.counters(name)); v != nil {
		nic.Driver = *v
	}
	nic.RxRing = keeper[uint64](n, "interface.rx_ring_drops")(h.kernel.rxRing(name))
	return nic
}
