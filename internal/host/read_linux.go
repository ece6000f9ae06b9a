package host

import (
	"bytes"
	"io"
	"time"

	"thru/internal/measure"
)

// Read reads the counters of this host, of one interface, and of the process
// that moves the data. An empty name or a zero pid leaves that part out. It
// takes about a millisecond, and more where a driver asks its firmware.
func (h *Host) Read(iface string, pid int) Snapshot {
	var n notes
	s := Snapshot{Taken: time.Now()}
	if v := keeper[[]CPUTimes](&n, "cpus")(parsed(h.fs.read, "proc/stat", parseStat)); v != nil {
		s.CPUs = *v
	}
	if v := keeper[[]measure.Softnet](&n, "softnet")(parsed(h.fs.net, "softnet_stat", parseSoftnet)); v != nil {
		s.Softnet = *v
	}
	s.Memory = keeper[measure.Memory](&n, "memory")(parsed(h.fs.read, "proc/meminfo", parseMeminfo))
	s.Proto = h.fs.protocols(&n)
	if iface != "" {
		s.NIC = h.readNIC(&n, iface)
		s.Qdisc = h.readQdisc(&n, iface)
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
	return all
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
