// Package facts words the facts of hosts and their interfaces: a short table for a terminal, all of them for
// pages and Markdown, and single facts for other packages. An unknown fact is "" or "not checked".
package facts

import (
	"fmt"
	"strconv"
	"strings"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/unit"
)

// hostRows returns the facts of a host by subject, in reading order.
func hostRows(f *measure.Facts) []doc.Row {
	return []doc.Row{
		{Name: "machine", Value: Machine(f.Machine)}, {Name: "firmware", Value: Firmware(f.Machine)}, {Name: "processors", Value: Processors(f.CPU)},
		{Name: "clock rate", Value: Frequency(f.CPU)}, {Name: "idle states", Value: idleText(f.CPU)}, {Name: "NUMA", Value: NUMA(f.NUMA)}, {Name: "RAM", Value: ramText(f.RAM)},
		{Name: "control group", Value: Cgroup(f.Cgroup)}, {Name: "security", Value: securityText(f.Security)}, {Name: "firewall", Value: firewallText(f.Firewall)},
		{Name: "clock", Value: clockFactsText(f.Clock)}, {Name: "disks", Value: disksText(f.Disks)}, {Name: "hypervises", Value: Hypervises(f.Hypervises)}, {Name: "load", Value: loadText(f.Load)},
	}
}

// Machine returns maker, product and chassis.
func Machine(m *measure.Machine) string {
	if m == nil {
		return ""
	}
	return doc.Join(strings.TrimSpace(m.Vendor+" "+m.Product+" "+doc.Bracket(m.Version)), m.Chassis)
}

// Firmware returns the firmware of a machine with its version and date.
func Firmware(m *measure.Machine) string {
	if m == nil {
		return ""
	}
	s := strings.TrimSpace(m.BIOSVendor + " " + m.BIOSVersion + " " + doc.Bracket(m.BIOSDate))
	if m.UEFI != nil && *m.UEFI {
		s = doc.Join(s, "UEFI")
	}
	return s
}

// Processors counts sockets, cores and threads, and names those that thru may not use.
func Processors(c *measure.Processors) string {
	if c == nil {
		return ""
	}
	var all []string
	for _, x := range []struct {
		n    *int
		noun string
	}{{c.Sockets, "socket"}, {c.Cores, "core"}, {c.Threads, "thread"}} {
		all = said(all, x.n, func(n int) string { return unit.Plural(n, x.noun) })
	}
	all = said(all, c.SMT, func(on bool) string { return "SMT " + doc.OnOff(on) })
	if c.Usable != nil && c.Threads != nil && *c.Usable < *c.Threads {
		all = append(all, fmt.Sprintf("thru may use %d", *c.Usable))
	}
	if len(c.Isolated) > 0 {
		all = append(all, "isolated "+unit.List(c.Isolated))
	}
	return strings.Join(all, ", ")
}

// said appends the words of a fact if it is known.
func said[T any](all []string, fact *T, words func(T) string) []string {
	if fact == nil {
		return all
	}
	return append(all, words(*fact))
}

// bare returns its argument: for a fact that needs no words.
func bare(s string) string { return s }

// Frequency returns the clock rate of the CPUs, and what controls it.
func Frequency(c *measure.Processors) string {
	if c == nil {
		return ""
	}
	var all []string
	for _, x := range []struct {
		hz   *int64
		name string
	}{{c.CurrentHz, "now"}, {c.BaseHz, "base"}, {c.MaxHz, "max"}} {
		if x.hz != nil && *x.hz > 0 {
			all = append(all, fmt.Sprintf("%s %s GHz", x.name, doc.Digits(float64(*x.hz)/1e9)))
		}
	}
	if len(c.Governors) > 0 {
		all = append(all, "governor "+strings.Join(c.Governors, ", "))
	}
	all = said(said(all, c.Driver, bare), c.Preference, bare)
	return strings.Join(said(all, c.Boost, func(on bool) string { return "boost " + doc.OnOff(on) }), ", ")
}

func idleText(c *measure.Processors) string {
	if c == nil || c.IdleState == nil {
		return ""
	}
	return "down to " + *c.IdleState + doc.Known(", exit latency %s", c.IdleExit, unit.Duration) + doc.Known(" %s", c.IdleDriver, doc.Bracket)
}

// NUMA lists the CPUs and the memory of each node.
func NUMA(nodes []measure.NUMANode) string {
	var all []string
	for _, n := range nodes {
		all = append(all, fmt.Sprintf("node %d: CPUs %s", n.Node, unit.List(n.CPUs))+doc.Known(", %s", n.Total, unit.Size))
	}
	return strings.Join(all, "; ")
}

func ramText(r *measure.RAM) string {
	if r == nil {
		return ""
	}
	var all []string
	size := func(n *int64, words string) {
		all = said(all, n, func(n int64) string { return unit.Size(n) + " " + words })
	}
	size(r.Total, "total")
	size(r.Available, "available")
	if r.SwapTotal != nil && r.SwapUsed != nil && *r.SwapTotal > 0 {
		all = append(all, unit.Size(*r.SwapUsed)+" of "+unit.Size(*r.SwapTotal)+" swap used")
	}
	if r.HugePages != nil && r.HugeSize != nil && *r.HugePages > 0 {
		all = append(all, fmt.Sprintf("%d huge pages of %s", *r.HugePages, unit.Size(*r.HugeSize)))
	}
	all = said(all, r.THP, func(s string) string { return "transparent huge pages " + s })
	if r.Balloon != nil && *r.Balloon > 0 {
		size(r.Balloon, "reclaimed by the hypervisor (balloon)")
	}
	size(r.TCPMax, "max for TCP")
	return strings.Join(all, ", ")
}

// Cgroup words the limits of thru's control group.
func Cgroup(c *measure.Cgroup) string {
	if c == nil {
		return ""
	}
	all := []string{"v" + strconv.Itoa(c.Version)}
	if c.Container != "" {
		all = append(all, c.Container)
	}
	if c.QuotaCPUs != nil {
		all = append(all, "max "+doc.Digits(*c.QuotaCPUs)+" CPUs")
	} else {
		all = append(all, "no CPU quota")
	}
	all = said(all, c.MemoryMax, func(n int64) string { return "max " + unit.Size(n) })
	if c.Throttled != nil && c.Periods != nil && *c.Throttled > 0 {
		all = append(all, fmt.Sprintf("throttled in %s of %s periods", unit.Count(*c.Throttled), unit.Count(*c.Periods)))
	}
	return strings.Join(all, ", ")
}

func securityText(s *measure.Security) string {
	if s == nil {
		return ""
	}
	var all []string
	for _, x := range []struct {
		name  string
		value *string
	}{{"SELinux", s.SELinux}, {"AppArmor", s.AppArmor}, {"seccomp", s.Seccomp}, {"CPU mitigations", s.Mitigations}} {
		all = said(all, x.value, func(s string) string { return x.name + " " + s })
	}
	return strings.Join(all, ", ")
}

func firewallText(f *measure.Firewall) string {
	if f == nil {
		return ""
	}
	var all []string
	if f.Rules != nil && f.Chains != nil {
		s := unit.Plural(*f.Rules, "rule") + " in " + unit.Plural(*f.Chains, "base chain")
		if f.LongestChain != nil && *f.LongestChain > 0 {
			s += fmt.Sprintf(", the longest has %d", *f.LongestChain)
		}
		all = append(all, s)
	}
	if len(f.Legacy) > 0 {
		all = append(all, "iptables: "+strings.Join(f.Legacy, ", "))
	}
	if f.Tracked != nil && f.TrackedMax != nil {
		all = append(all, unit.Count(*f.Tracked)+" of "+unit.Count(*f.TrackedMax)+" connections tracked")
	} else if f.Conntrack != nil && !*f.Conntrack {
		all = append(all, "connections are not tracked")
	}
	return strings.Join(all, ", ")
}

func clockFactsText(c *measure.Clock) string {
	if c == nil {
		return ""
	}
	all := said(nil, c.Source, bare)
	all = said(all, c.ReadNs, func(ns int64) string { return "one read takes " + unit.Duration(ns) })
	if c.Synchronised != nil && *c.Synchronised {
		all = append(all, "synchronized by a time service"+doc.Known(" within %s", c.MaxErrorNs, unit.Duration))
	} else if c.Synchronised != nil {
		all = append(all, "not synchronized by a time service")
	}
	return strings.Join(all, ", ")
}

func disksText(disks []measure.Disk) string {
	var all []string
	for _, d := range disks[:min(len(disks), MostInterfaces)] {
		s := d.Name
		var about []string
		if d.Model != "" {
			about = append(about, d.Model)
		}
		about = said(about, d.SizeBytes, unit.Size)
		if d.Rotational != nil && *d.Rotational {
			about = append(about, "rotating")
		}
		about = said(about, d.Scheduler, func(s string) string { return "scheduler " + s })
		for _, m := range d.Mounts {
			about = append(about, m.Path+" "+m.Type)
		}
		all = append(all, strings.TrimSpace(s+" "+doc.Bracket(strings.Join(about, ", "))))
	}
	return strings.Join(all, "; ")
}

// Hypervises counts what runs there for virtual machines; "" for nothing.
func Hypervises(h *measure.Hypervises) string {
	if h == nil || h.Guests+h.Vhost+len(h.Switch) == 0 {
		return ""
	}
	var all []string
	if h.Guests > 0 {
		all = append(all, unit.Plural(h.Guests, "guest"))
	}
	if h.Vhost > 0 {
		all = append(all, unit.Plural(h.Vhost, "vhost thread"))
	}
	return strings.Join(append(all, h.Switch...), ", ")
}

func loadText(l *measure.Load) string {
	if l == nil {
		return ""
	}
	all := said(nil, l.CPUPct, func(pct float64) string { return "CPU " + unit.Percent(pct) })
	if l.BusiestPct != nil && l.BusiestCPU != nil {
		all = append(all, fmt.Sprintf("busiest CPU %d %s", *l.BusiestCPU, unit.Percent(*l.BusiestPct)))
	}
	all = said(all, l.StealPct, func(pct float64) string { return "steal " + unit.Percent(pct) })
	for _, p := range l.Top {
		all = append(all, fmt.Sprintf("%s %s", p.Name, unit.Percent(p.CPUPct)))
	}
	for _, i := range l.Interfaces {
		if i.RxBps+i.TxBps >= leastTraffic {
			all = append(all, fmt.Sprintf("%s %s in, %s out", i.Name, unit.Rate(i.RxBps), unit.Rate(i.TxBps)))
		}
	}
	return strings.Join(all, ", ")
}

// leastTraffic is the lowest rate to mention, in bit/s.
const leastTraffic = 1e6

// Limits of what is printed; the JSON document has all.
const (
	MostEndPoints  = 8
	MostInterfaces = 24
)
