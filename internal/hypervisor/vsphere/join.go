package vsphere

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"thru/internal/measure"
)

// readPorts reads the ports of machines whose port group allows other
// settings for a port; for all others the port group has the settings.
func (b *builder) readPorts(ctx context.Context) error {
	free := map[string]bool{}
	for _, g := range b.groups {
		free[g.ID] = g.overrides
	}
	nics := map[string]map[string]*measure.GuestNIC{} // switch: port: adapter
	for i := range b.inv.Guests {
		g := &b.inv.Guests[i]
		for n := range g.NICs {
			nic := &g.NICs[n]
			if nic.Port == nil || !free[nic.PortGroup] {
				continue
			}
			if nics[nic.Switch] == nil {
				nics[nic.Switch] = map[string]*measure.GuestNIC{}
			}
			nics[nic.Switch][*nic.Port] = nic
		}
	}
	for _, d := range b.switches {
		if err := b.fetchPorts(ctx, d, nics[d.uuid]); err != nil {
			return err
		}
	}
	return nil
}

// fetchPorts reads some ports of one switch.
func (b *builder) fetchPorts(ctx context.Context, d *distributed, nics map[string]*measure.GuestNIC) error {
	for some := range slices.Chunk(slices.Sorted(maps.Keys(nics)), pageSize) {
		res, err := methods.FetchDVPorts(ctx, b.vc, &types.FetchDVPorts{This: d.ref,
			Criteria: &types.DistributedVirtualSwitchPortCriteria{PortKey: some}})
		if err != nil {
			return err
		}
		for _, p := range res.Returnval {
			if nic := nics[p.Key]; nic != nil {
				takePort(nic, p.Config.Setting, d.pvlan)
			}
		}
	}
	return nil
}

// takePort reads the settings of a port itself, without those of its port
// group.
func takePort(nic *measure.GuestNIC, setting types.BaseDVPortSetting, pvlan map[int32]int32) {
	if setting == nil {
		return
	}
	p, base := portParts(setting, pvlan), setting.GetDVPortSetting()
	if s := base.InShapingPolicy; s != nil && !s.Inherited && p.out != nil {
		nic.Limit = p.out
	}
	if s := base.OutShapingPolicy; s != nil && !s.Inherited && p.in != nil {
		nic.LimitIn = p.in
	}
	if v, is := setting.(*types.VMwareDVSPortSetting); is && v.Vlan != nil && !v.Vlan.GetVmwareDistributedVirtualSwitchVlanSpec().Inherited {
		nic.VLAN = p.vlan
	}
}

// join replaces references by names, in a stable order, and removes
// references to objects that are not in the inventory, since the account may
// not see them.
func (b *builder) join() {
	uuids := b.joinSwitches()
	for _, g := range b.groups {
		b.inv.PortGroups = append(b.inv.PortGroups, g.SwitchPortGroup)
	}
	b.sort()
	index := b.index()
	for i := range b.inv.PortGroups {
		if p := &b.inv.PortGroups[i]; p.Switch != "" && index.switches[p.Switch] == nil {
			p.NotChecked = append(p.NotChecked, unseen("switch", p.Switch))
			p.Switch = ""
		}
	}
	for i := range b.inv.Guests {
		joinGuest(&b.inv.Guests[i], index, uuids)
	}
	for i := range b.inv.Hosts {
		joinHost(&b.inv.Hosts[i], index)
	}
	b.inv.NotChecked = append(b.inv.NotChecked, b.refuse.list()...)
	if len(b.inv.Guests) > 0 {
		const ssh = "the web service does not report it; the host's own commands do (ssh://root@HOST)"
		b.inv.NotChecked = append(b.inv.NotChecked, measure.NotChecked{Fact: "guests.nics.uplink", Why: ssh},
			measure.NotChecked{Fact: "guests.nics.queues", Why: "the web service does not report a guest's queues; the guest's system does"})
	}
}

// unseen notes that the target of a reference is not in the inventory.
func unseen(fact, id string) measure.NotChecked {
	return measure.NotChecked{Fact: fact, Why: fmt.Sprintf("the account may not see %s", id)}
}

// joinSwitches names the uplinks of the distributed switches, and keeps only
// hosts of the inventory. It returns ids by UUID, which machines refer to.
func (b *builder) joinSwitches() map[string]string {
	uuids := map[string]string{}
	for _, d := range b.switches {
		d.Hosts = slices.DeleteFunc(d.Hosts, func(id string) bool { return b.inv.Host(id) == nil })
		d.Uplinks = slices.DeleteFunc(d.Uplinks, func(u measure.Uplink) bool { return b.inv.Host(u.Host) == nil })
		for i := range d.Uplinks {
			u := &d.Uplinks[i]
			u.Name = b.links[u.Host+" "+d.uuid+" "+u.Name]
		}
		uuids[d.uuid] = d.ID
		b.inv.Switches = append(b.inv.Switches, d.VirtualSwitch)
	}
	if !b.vc.IsVC() {
		for _, s := range b.inv.Switches {
			uuids[s.ID] = s.ID
		}
	}
	return uuids
}

// sort orders everything by name.
func (b *builder) sort() {
	v := &b.inv
	slices.SortFunc(v.Guests, func(x, y measure.Guest) int { return cmp.Or(cmp.Compare(x.Name, y.Name), natural(x.ID, y.ID)) })
	slices.SortFunc(v.Hosts, func(x, y measure.GuestHost) int { return cmp.Or(cmp.Compare(x.Name, y.Name), natural(x.ID, y.ID)) })
	slices.SortFunc(v.Switches, func(x, y measure.VirtualSwitch) int {
		return cmp.Or(cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Name, y.Name), natural(x.ID, y.ID))
	})
	slices.SortFunc(v.PortGroups, func(x, y measure.SwitchPortGroup) int {
		return cmp.Or(cmp.Compare(x.Name, y.Name), natural(x.ID, y.ID))
	})
}

// index finds items by id; measure's own search is linear, which would take
// long with thousands of machines.
type index struct {
	hosts    map[string]*measure.GuestHost
	switches map[string]*measure.VirtualSwitch
	groups   map[string]*measure.SwitchPortGroup
	stores   map[string]*measure.Datastore
}

func (b *builder) index() index {
	return index{
		byID(b.inv.Hosts, func(h *measure.GuestHost) string { return h.ID }),
		byID(b.inv.Switches, func(s *measure.VirtualSwitch) string { return s.ID }),
		byID(b.inv.PortGroups, func(p *measure.SwitchPortGroup) string { return p.ID }),
		byID(b.inv.Datastores, func(d *measure.Datastore) string { return d.ID }),
	}
}

func byID[T any](list []T, id func(*T) string) map[string]*T {
	all := map[string]*T{}
	for i := range list {
		all[id(&list[i])] = &list[i]
	}
	return all
}

// joinGuest sets the names of a machine's networks.
func joinGuest(g *measure.Guest, index index, uuids map[string]string) {
	for i := range g.NICs {
		nic := &g.NICs[i]
		fact := "nics." + nic.Name + ".port_group"
		group := index.groups[nic.PortGroup]
		nic.Switch = uuids[nic.Switch]
		switch {
		case group != nil:
			nic.Network, nic.Switch = &group.Name, ""
			controlled(nic, index.switches[group.Switch])
		case nic.PortGroup != "":
			g.NotChecked = append(g.NotChecked, unseen(fact, nic.PortGroup))
			nic.PortGroup = ""
		case nic.Switch == "" && nic.Network == nil:
			g.NotChecked = append(g.NotChecked, measure.NotChecked{Fact: fact, Why: "the adapter is not connected, or the server does not report its network"})
		}
	}
	for i := range g.Disks {
		d := &g.Disks[i]
		if d.Datastore != "" && index.stores[d.Datastore] == nil {
			g.NotChecked = append(g.NotChecked, unseen("disks."+d.Name+".datastore", d.Datastore))
			d.Datastore = ""
		}
	}
	if g.Host != "" && index.hosts[g.Host] == nil {
		g.NotChecked = append(g.NotChecked, unseen("host", g.Host))
		g.Host = ""
	}
}

// controlled disables the limit of Network I/O Control where the switch has
// it off: the adapter keeps the number.
func controlled(nic *measure.GuestNIC, s *measure.VirtualSwitch) {
	if nic.IOLimit != nil && s != nil && (s.Kind == "standard" || s.NIOC != nil && !*s.NIOC) {
		nic.IOLimit.Enabled = new(false)
	}
}

// joinHost sets the names of a host's own networks.
func joinHost(h *measure.GuestHost, index index) {
	for i := range h.Ports {
		p := &h.Ports[i]
		if group := index.groups[p.PortGroup]; group != nil {
			p.Network = &group.Name
		} else if p.PortGroup != "" {
			h.NotChecked = append(h.NotChecked, unseen("vmkernel_ports."+p.Device+".port_group", p.PortGroup))
			p.PortGroup = ""
		}
	}
	h.Datastores = slices.DeleteFunc(h.Datastores, func(id string) bool { return index.stores[id] == nil })
}
