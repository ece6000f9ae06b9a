package place

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"thru/internal/measure"
)

// Trait is an anomaly in the settings of a guest or host: likely to reduce traffic, or to make its figures hard to
// explain. Nothing was measured.
type Trait int

// Traits of guests.
const (
	EmulatedAdapter Trait = iota
	CPULimited
	MemoryLimited // limited below its configured memory
	CPUsBound
	AdapterLimited // limited to a rate
	NoTools
	NotConnected
	NoVhost
)

// Traits of hosts.
const (
	OutOfService Trait = iota
	LegacyCPU          // it runs on a CPU that its version does not support
	NetQueueOff
	CPUsShared // virtual CPUs exceed its threads
	MemoryShared
)

// Observation is one anomaly.
type Observation struct {
	Trait   Trait
	NIC     *measure.GuestNIC // for a guest: the first adapter that has it
	Setting string            // for a host: the setting that shows it, "name=value"
}

// ObserveGuest lists the anomalies of a guest of that kind of hypervisor.
func ObserveGuest(kind string, g *measure.Guest) (all []Observation) {
	isOn := g.Power == "on"
	note := func(t Trait, holds bool) {
		if holds {
			all = append(all, Observation{Trait: t})
		}
	}
	ofNIC := func(t Trait, is func(*measure.GuestNIC) bool) {
		if i := slices.IndexFunc(g.NICs, func(n measure.GuestNIC) bool { return is(&n) }); i >= 0 {
			all = append(all, Observation{Trait: t, NIC: &g.NICs[i]})
		}
	}
	ofNIC(EmulatedAdapter, func(n *measure.GuestNIC) bool { return n.Emulated(kind) })
	note(CPULimited, isLimited(g.CPUShare) || g.CPUQuota != nil)
	m := g.MemoryShare
	note(MemoryLimited, isLimited(m) && m.Limit != nil && g.Memory != nil && *m.Limit < *g.Memory)
	note(CPUsBound, len(g.Affinity) > 0)
	ofNIC(AdapterLimited, func(n *measure.GuestNIC) bool { return n.LimitIn.Holds() || n.Limit.Holds() || n.IOLimit.Holds() })
	t := g.Tools
	note(NoTools, isOn && t != nil && (t.Status != nil && *t.Status == "not installed" || t.Running != nil && !*t.Running))
	if isOn {
		ofNIC(NotConnected, func(n *measure.GuestNIC) bool { return n.Connected != nil && !*n.Connected })
		ofNIC(NoVhost, func(n *measure.GuestNIC) bool {
			return n.Vhost != nil && !*n.Vhost && n.Model != nil && strings.HasPrefix(*n.Model, "virtio")
		})
	}
	return all
}

func isLimited(a *measure.Allocation) bool { return a != nil && a.Limited != nil && *a.Limited }

// ObserveHost lists the anomalies of a host.
func ObserveHost(h *measure.GuestHost) (all []Observation) {
	note := func(t Trait, holds bool, setting string) {
		if holds {
			all = append(all, Observation{Trait: t, Setting: setting})
		}
	}
	f := h.Facts
	f = cmp.Or(f, &measure.Facts{})
	legacy, queues := LegacySetting(f), setting(f, "netnetqueueenabled")
	now, _, _ := strings.Cut(strings.ToLower(queues), " ")
	note(OutOfService, h.State != nil && *h.State != "" && *h.State != "connected" || h.Maintenance != nil && *h.Maintenance, "")
	note(LegacyCPU, legacy != "", legacy)
	note(NetQueueOff, now == "false" || now == "0", queues)
	threads := f.ThreadCount()
	note(CPUsShared, h.CPUsHanded != nil && threads != nil && *h.CPUsHanded > *threads, "")
	note(MemoryShared, h.MemHanded != nil && f.Memory != nil && *h.MemHanded > *f.Memory, "")
	return all
}

// LegacySetting returns the setting that lets ESXi run on a CPU that it no longer supports (the boot option
// allowLegacyCPU), as "name=value"; "" if it is not set.
func LegacySetting(f *measure.Facts) string {
	if f == nil {
		return ""
	}
	for name, v := range f.Changed {
		if IsLegacySetting(name) && !slices.Contains([]string{"", "0", "false"}, strings.ToLower(v)) {
			return name + "=" + v
		}
	}
	return ""
}

// IsLegacySetting reports whether it is the name of that setting.
func IsLegacySetting(name string) bool {
	return strings.HasSuffix(strings.ToLower(name), "allowlegacycpu")
}

// setting returns the changed setting of a host whose name ends so.
func setting(f *measure.Facts, end string) string {
	for name, v := range f.Changed {
		if strings.HasSuffix(strings.ToLower(name), end) {
			return v
		}
	}
	return ""
}

// ClockOff returns how far the clock of an inventory's source is ahead, in ns; false if that is not known, or too
// little to matter.
func ClockOff(v *measure.Inventory) (aheadNs int64, off bool) {
	const least = 2e9 // ns
	if v.ClockNs == nil {
		return 0, false
	}
	return *v.ClockNs, max(*v.ClockNs, -*v.ClockNs) > least
}

// LimitedNetworks returns the port groups with a rate limit.
func LimitedNetworks(v *measure.Inventory) (all []*measure.SwitchPortGroup) {
	for i := range v.PortGroups {
		if p := &v.PortGroups[i]; p.ShapeIn.Holds() || p.ShapeOut.Holds() {
			all = append(all, p)
		}
	}
	return all
}

// SmallerMTU is a switch with a smaller MTU than what is connected to it.
type SmallerMTU struct {
	Switch *measure.VirtualSwitch
	MTU    int    // of what is connected
	Of     string // "vmk0 of esx1"
}

// SmallerMTUs finds them, by the switches and port groups of an inventory.
func SmallerMTUs(v *measure.Inventory, switches map[string]*measure.VirtualSwitch, groups map[string]*measure.SwitchPortGroup) (all []SmallerMTU) {
	note := func(group, direct string, mtu *int, of string) {
		s := switches[direct]
		if p := groups[group]; p != nil {
			s = switches[p.Switch]
		}
		if s != nil && s.MTU != nil && mtu != nil && *s.MTU > 0 && *mtu > *s.MTU {
			all = append(all, SmallerMTU{s, *mtu, of})
		}
	}
	for i := range v.Hosts {
		for _, p := range v.Hosts[i].Ports {
			note(p.PortGroup, "", p.MTU, p.Device+" of "+v.Hosts[i].Name)
		}
	}
	for i := range v.Guests {
		for _, n := range v.Guests[i].NICs {
			device := n.Name
			if n.Device != nil {
				device = cmp.Or(*n.Device, n.Name)
			}
			note(n.PortGroup, n.Switch, n.MTU, device+" of "+v.Guests[i].Name)
		}
	}
	return all
}

// Unlike is a name whose value differs between hosts that guests migrate between: those of one cluster, or without
// a cluster those of one data center. Between other hosts nothing migrates, and default names ("vSwitch0", "VM
// Network") may well differ.
type Unlike struct {
	Site, Cluster, Name string
	Values              map[string][]string // each with its hosts
}

// unlikes collects values of names.
type unlikes []Unlike

func (u *unlikes) add(h *measure.GuestHost, name, value string) {
	if h == nil {
		return
	}
	i := slices.IndexFunc(*u, func(o Unlike) bool { return o.Site == h.Site && o.Cluster == h.Cluster && o.Name == name })
	if i < 0 {
		i = len(*u)
		*u = append(*u, Unlike{h.Site, h.Cluster, name, map[string][]string{}})
	}
	if host := cmp.Or(h.Name, h.ID); !slices.Contains((*u)[i].Values[value], host) {
		(*u)[i].Values[value] = append((*u)[i].Values[value], host)
	}
}

// differing returns those with several values.
func (u unlikes) differing() []Unlike {
	return slices.DeleteFunc(u, func(o Unlike) bool { return len(o.Values) < 2 })
}

// UnlikeMTUs returns switches of one name with several MTUs.
func UnlikeMTUs(v *measure.Inventory, hosts map[string]*measure.GuestHost) []Unlike {
	var all unlikes
	for i := range v.Switches {
		if s := &v.Switches[i]; s.Host != "" && s.MTU != nil {
			all.add(hosts[s.Host], s.Name, strconv.Itoa(*s.MTU))
		}
	}
	return all.differing()
}

// UnlikeVLANs returns port groups of one name with several VLANs; "0" is no tag.
func UnlikeVLANs(v *measure.Inventory, hosts map[string]*measure.GuestHost, switches map[string]*measure.VirtualSwitch) []Unlike {
	var all unlikes
	for i := range v.PortGroups {
		p := &v.PortGroups[i]
		if p.VLAN == nil {
			continue
		}
		host := p.Host
		if s := switches[p.Switch]; host == "" && s != nil {
			host = s.Host
		}
		all.add(hosts[host], p.Name, *p.VLAN)
	}
	return all.differing()
}
