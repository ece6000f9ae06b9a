package host

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/shirou/gopsutil/v4/cpu"
	gohost "github.com/shirou/gopsutil/v4/host"
	"github.com/shirou/gopsutil/v4/mem"
	gonet "github.com/shirou/gopsutil/v4/net"

	"thru/internal/fault"
	"thru/internal/measure"
)

// This file has what every system can report, by package gopsutil and Go's
// own sockets. It builds on Linux too, so that its test runs there. On some
// systems gopsutil runs system programs (netstat, kstat), so a reading may
// take tens of milliseconds.

// notRead is the reason for all facts that thru does not read on a system.
func notRead() error { return errors.New("not read on " + runtime.GOOS) }

// portableFacts describes the host.
func portableFacts() measure.Facts {
	var n notes
	f := measure.Facts{OS: new(runtime.GOOS), Arch: new(runtime.GOARCH)}
	info, err := gohost.Info()
	if err != nil || info == nil {
		info = &gohost.InfoStat{}
	}
	named := func(fact, value string) *string {
		return keeper[string](&n, fact)(value, unless(value != "", err))
	}
	f.Hostname = named("hostname", info.Hostname)
	f.Distro = named("distribution", strings.TrimSpace(info.Platform+" "+info.PlatformVersion))
	f.Kernel = named("kernel", info.KernelVersion)
	f.Hypervisor = keeper[string](&n, "hypervisor")("", notRead())
	f.CPUModel = keeper[string](&n, "cpu_model")(portableCPU())
	f.Cores = keeper[int](&n, "cores")(cpu.Counts(true))
	m := keeper[measure.Memory](&n, "memory_bytes")(portableMemory())
	if m != nil {
		f.Memory = &m.Total
	}
	for _, fact := range []string{"congestion_control", "congestion_available", "sysctls"} {
		n.add(fact, notRead().Error())
	}
	f.Interfaces = portableInterfaces(&n)
	f.NotChecked = n
	return f
}

// unless returns nil where there is a value, and otherwise the reason.
func unless(have bool, err error) error {
	switch {
	case have:
		return nil
	case err != nil:
		return err
	}
	return errors.New("the system does not report it")
}

// portableCPU returns the model of the first processor.
func portableCPU() (string, error) {
	list, err := cpu.Info()
	if len(list) == 0 {
		return "", unless(false, err)
	}
	return list[0].ModelName, unless(list[0].ModelName != "", err)
}

// portableMemory reads the memory in bytes.
func portableMemory() (measure.Memory, error) {
	m, err := mem.VirtualMemory()
	if err != nil || m == nil {
		return measure.Memory{}, unless(false, err)
	}
	return measure.Memory{Total: int64(m.Total), Available: int64(m.Available)}, unless(m.Total > 0, nil)
}

// portableInterfaces lists Go's own facts about the interfaces. Without the
// driver it cannot say whether a speed is only nominal.
func portableInterfaces(n *notes) []measure.Interface {
	list, err := net.Interfaces()
	if err != nil {
		n.add("interfaces", err.Error())
		return nil
	}
	var all []measure.Interface
	for _, i := range list {
		fact := func(key string) string { return "interfaces." + i.Name + "." + key }
		d := measure.Interface{Name: i.Name, Up: new(i.Flags&net.FlagUp != 0)}
		d.MTU = keeper[int](n, fact("mtu_bytes"))(i.MTU, unless(i.MTU > 0, nil))
		mac := i.HardwareAddr.String()
		d.MAC = keeper[string](n, fact("mac"))(mac, unless(mac != "", nil))
		addrs, err := i.Addrs()
		if err != nil {
			n.add(fact("addresses"), err.Error())
		}
		for _, a := range addrs {
			d.Addrs = append(d.Addrs, a.String())
		}
		for _, key := range []string{"driver", "driver_version", "bus", "speed_bps", "duplex", "speed_is_nominal", "rx_queues", "offloads"} {
			n.add(fact(key), notRead().Error())
		}
		all = append(all, d)
	}
	return all
}

// portableRoute finds the interface that the system uses towards dst: it
// connects a UDP socket, which sends nothing, and looks for the interface
// with the source address. The gateway stays unknown. Where two interfaces
// have the address it returns the first.
func portableRoute(dst netip.Addr) (measure.Route, error) {
	if !dst.IsValid() {
		return measure.Route{}, errors.New("host: looking up a route: no address given")
	}
	const discard = 9 // any port serves (RFC 863)
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(dst.Unmap(), discard)))
	if err != nil {
		return measure.Route{}, fault.Failf("check the routing table of this host: `netstat -rn`", "host: looking up the route to %s: %w", dst, err)
	}
	defer c.Close()
	local := c.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap().WithZone("")
	list, err := net.Interfaces()
	if err != nil {
		return measure.Route{}, fmt.Errorf("host: listing interfaces for the route to %s: %w", dst, err)
	}
	for _, i := range list {
		addrs, err := i.Addrs()
		if err != nil {
			continue
		}
		if slices.ContainsFunc(addrs, func(a net.Addr) bool { return holds(a, local) }) {
			return measure.Route{Interface: i.Name, Source: local.String(), MTU: i.MTU}, nil
		}
	}
	return measure.Route{}, fmt.Errorf("host: looking up the route to %s: no interface has the source address %s", dst, local)
}

// holds reports whether an interface's address ("192.0.2.1/24") is addr.
func holds(a net.Addr, addr netip.Addr) bool {
	p, err := netip.ParsePrefix(a.String())
	return err == nil && p.Addr().Unmap().WithZone("") == addr
}

// portableRead reads the counters that gopsutil provides.
func portableRead(iface string, pid int) Snapshot {
	var n notes
	s := Snapshot{Taken: time.Now()}
	if v := keeper[[]CPUTimes](&n, "cpus")(portableTimes()); v != nil {
		s.CPUs = *v
	}
	s.Memory = keeper[measure.Memory](&n, "memory")(portableMemory())
	if iface != "" {
		s.NIC = keeper[measure.NICSpan](&n, "interface")(portableNIC(iface))
		for _, fact := range []string{"interface.driver", "interface.rx_ring_drops", "qdisc", "interrupts"} {
			n.add(fact, notRead().Error())
		}
	}
	if pid != 0 {
		n.add("worker", notRead().Error())
	}
	n.add("softnet", notRead().Error())
	n.add("protocol", notRead().Error())
	n.add("swap", notRead().Error())
	s.Missing = n
	return s
}

// portableTimes reads the CPU times of each core, given in seconds. Systems
// that lack a kind of time (softirq, steal) report zero and count it as
// system time.
func portableTimes() ([]CPUTimes, error) {
	list, err := cpu.Times(true)
	if err != nil || len(list) == 0 {
		return nil, unless(false, err)
	}
	ns := func(seconds float64) int64 { return int64(seconds * float64(time.Second)) }
	var all []CPUTimes
	for i, t := range list {
		all = append(all, CPUTimes{
			Core: i, User: ns(t.User + t.Nice), System: ns(t.System), IRQ: ns(t.Irq),
			SoftIRQ: ns(t.Softirq), Steal: ns(t.Steal), Idle: ns(t.Idle + t.Iowait),
		})
	}
	return all, nil
}

// portableNIC reads the counters of one interface.
func portableNIC(name string) (measure.NICSpan, error) {
	list, err := gonet.IOCounters(true)
	if err != nil {
		return measure.NICSpan{}, err
	}
	i := slices.IndexFunc(list, func(c gonet.IOCountersStat) bool { return c.Name == name })
	if i < 0 {
		return measure.NICSpan{}, errors.New("the system has no counters of " + name)
	}
	c := list[i]
	return measure.NICSpan{
		Name: name, RxBytes: c.BytesRecv, TxBytes: c.BytesSent, RxPackets: c.PacketsRecv, TxPackets: c.PacketsSent,
		RxDropped: c.Dropin, TxDropped: c.Dropout, RxErrors: c.Errin, TxErrors: c.Errout,
	}, nil
}

// portableActivity reads the load counters. Other systems do not count
// packets dropped for want of CPU time; processes are not read.
func portableActivity(n *notes) activity {
	a := activity{taken: time.Now()}
	if v := keeper[[]CPUTimes](n, "load.cpu_pct")(portableTimes()); v != nil {
		a.cpus = *v
	}
	list, err := gonet.IOCounters(true)
	if err != nil {
		n.add("load.interfaces", err.Error())
	}
	for _, c := range list {
		a.nets = append(a.nets, octets{c.Name, c.BytesRecv, c.BytesSent})
	}
	for _, fact := range []string{"load.softnet_squeezed", "load.processes"} {
		n.add(fact, notRead().Error())
	}
	return a
}
