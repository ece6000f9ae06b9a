package vsphere

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/vmware/govmomi/vim25/types"

	"thru/internal/measure"
)

// standardSwitches returns a host's own switches and their port groups. Each
// host has its own, so their ids include the host's id.
func standardSwitches(o *types.ObjectContent) ([]measure.VirtualSwitch, []measure.SwitchPortGroup) {
	r := &reader{object: o}
	host := o.Obj.Value
	pnics := pnicNames(r)
	var switches []measure.VirtualSwitch
	list, _ := value[types.ArrayOfHostVirtualSwitch](r, "", "config.network.vswitch", "")
	for _, s := range list.HostVirtualSwitch {
		v := measure.VirtualSwitch{ID: standardID(host, s.Name), Name: s.Name, Kind: "standard", Host: host, MTU: positive(s.Mtu), Ports: positive(s.NumPorts)}
		v.MTU = cmp.Or(v.MTU, positive(s.Spec.Mtu))
		if v.MTU == nil {
			v.NotChecked = append(v.NotChecked, measure.NotChecked{Fact: "mtu_bytes", Why: noReason})
		}
		for _, nic := range named(pnics, s.Pnic) {
			v.Uplinks = append(v.Uplinks, measure.Uplink{Host: host, NIC: nic})
		}
		if s.Spec.Policy != nil {
			v.Teaming, v.ShapeOut, v.Security = policyParts(*s.Spec.Policy)
		}
		switches = append(switches, v)
	}
	var groups []measure.SwitchPortGroup
	ports, _ := value[types.ArrayOfHostPortGroup](r, "", "config.network.portgroup", "")
	for _, p := range ports.HostPortGroup {
		g := measure.SwitchPortGroup{ID: standardID(host, p.Spec.Name), Name: p.Spec.Name, Switch: standardID(host, p.Spec.VswitchName), Host: host,
			VLAN: new(standardVLAN(p.Spec.VlanId))}
		g.Teaming, g.ShapeOut, g.Security = policyParts(p.ComputedPolicy) // includes what it inherits from its switch
		groups = append(groups, g)
	}
	return switches, groups
}

// standardVLAN returns the VLAN of a standard port group as text: 4095 is
// all.
func standardVLAN(id int32) string {
	if id == 4095 {
		return "trunk 0-4094"
	}
	return fmt.Sprint(id)
}

// policyParts returns the parts of a standard switch's policy that affect
// traffic. It shapes what guests send; rates are in bit/s, the burst in
// bytes.
func policyParts(p types.HostNetworkPolicy) (*measure.Teaming, *measure.Shaping, *measure.PortSecurity) {
	var team *measure.Teaming
	if t := p.NicTeaming; t != nil {
		team = &measure.Teaming{Policy: teamingWord(t.Policy)}
		if t.NicOrder != nil {
			team.Active, team.Standby = t.NicOrder.ActiveNic, t.NicOrder.StandbyNic
		}
	}
	var shape *measure.Shaping
	if s := p.ShapingPolicy; s != nil && s.Enabled != nil {
		shape = &measure.Shaping{Enabled: s.Enabled}
		if *s.Enabled {
			shape.AverageBps, shape.PeakBps, shape.Burst = &s.AverageBandwidth, &s.PeakBandwidth, &s.BurstSize
		}
	}
	var security *measure.PortSecurity
	if s := p.Security; s != nil {
		security = &measure.PortSecurity{Promiscuous: s.AllowPromiscuous, Forged: s.ForgedTransmits, MACChanges: s.MacChanges}
	}
	return team, shape, security
}

// teamingWord returns how uplinks are chosen
// (DistributedVirtualSwitchNicTeamingPolicyMode).
func teamingWord(policy string) string {
	words := map[string]string{"loadbalance_srcid": "originating port", "loadbalance_ip": "ip hash", "loadbalance_srcmac": "mac hash",
		"failover_explicit": "explicit", "loadbalance_loadbased": "load based"}
	return cmp.Or(words[policy], policy)
}

// switchPaths lists the properties of a distributed switch.
func switchPaths() []string { return strings.Fields("name uuid config summary.hostMember") }

// distributed is a distributed switch, with the keys for joining.
type distributed struct {
	measure.VirtualSwitch
	ref    types.ManagedObjectReference
	uuid   string
	groups map[string]bool // keys of its uplinks' port groups
	pvlan  map[int32]int32 // secondary VLAN: primary
}

// convertSwitch converts a distributed switch.
func convertSwitch(o *types.ObjectContent) *distributed {
	r := &reader{object: o}
	d := &distributed{ref: o.Obj, groups: map[string]bool{}, pvlan: map[int32]int32{}}
	d.ID, d.Kind, d.Name = o.Obj.Value, "distributed", unescape(r.text("", "name", ""))
	if id := r.text("", "uuid", ""); id != nil {
		d.uuid = *id
	}
	members, _ := value[types.ArrayOfManagedObjectReference](r, "", "summary.hostMember", "")
	for _, h := range members.ManagedObjectReference {
		d.Hosts = append(d.Hosts, h.Value)
	}
	base, ok := value[any](r, "mtu_bytes", "config", "")
	if ok {
		fillSwitch(d, r, base)
	}
	d.NotChecked = r.gaps
	return d
}

// fillSwitch reads the configuration; VMware's own switches have more than
// others.
func fillSwitch(d *distributed, r *reader, base any) {
	var c types.DVSConfigInfo
	switch v := base.(type) {
	case types.VMwareDVSConfigInfo:
		c = v.DVSConfigInfo
		d.MTU = positive(v.MaxMtu)
		if v.MulticastFilteringMode != "" {
			d.Snooping = new(v.MulticastFilteringMode == "snooping")
		}
		for _, p := range v.PvlanConfig {
			d.pvlan[p.SecondaryVlanId] = p.PrimaryVlanId
		}
	case types.DVSConfigInfo:
		c = v
	}
	if d.MTU == nil {
		r.gap("mtu_bytes", noReason)
	}
	d.Version, d.Ports = word(c.ProductInfo.Version), positive(c.NumPorts)
	d.NIOC, d.NIOCPools = &c.NetworkResourceManagementEnabled, pools(c.InfrastructureTrafficResourceConfig)
	for _, g := range c.UplinkPortgroup {
		d.groups[g.Value] = true
	}
	p := portParts(c.DefaultPortConfig, d.pvlan)
	d.Teaming, d.ShapeIn, d.ShapeOut, d.Security = p.team, p.in, p.out, p.security
	p.missing(r)
	for _, h := range c.Host {
		if h.Config.Host == nil {
			continue
		}
		if id := h.Config.Host.Value; !slices.Contains(d.Hosts, id) {
			d.Hosts = append(d.Hosts, id)
		}
		b, is := h.Config.Backing.(*types.DistributedVirtualSwitchHostMemberPnicBacking)
		if !is {
			continue
		}
		for _, s := range b.PnicSpec {
			d.Uplinks = append(d.Uplinks, measure.Uplink{Host: h.Config.Host.Value, NIC: s.PnicDevice, Name: s.UplinkPortKey})
		}
	}
}

// pools returns the bandwidth settings of each kind of traffic in words
// (Network I/O Control; limit and reservation are in Mb/s).
func pools(list []types.DvsHostInfrastructureTrafficResource) map[string]string {
	if len(list) == 0 {
		return nil
	}
	words := map[string]string{}
	for _, p := range list {
		a := p.AllocationInfo
		var parts []string
		if a.Shares != nil {
			parts = append(parts, fmt.Sprintf("shares %d (%s)", a.Shares.Shares, a.Shares.Level))
		}
		if a.Reservation != nil && *a.Reservation > 0 {
			parts = append(parts, fmt.Sprintf("reservation %d Mb/s", *a.Reservation))
		}
		if a.Limit != nil && *a.Limit >= 0 {
			parts = append(parts, fmt.Sprintf("limit %d Mb/s", *a.Limit))
		} else {
			parts = append(parts, "no limit")
		}
		words[p.Key] = strings.Join(parts, ", ")
	}
	return words
}

// port holds the settings of a distributed switch, a port group or a port.
type port struct {
	vlan     *string
	team     *measure.Teaming
	in, out  *measure.Shaping // of what guests receive and send
	security *measure.PortSecurity
}

// missing notes the missing settings.
func (p port) missing(r *reader) {
	for _, part := range []struct {
		fact   string
		absent bool
	}{{"teaming", p.team == nil}, {"shaping_in", p.in == nil}, {"shaping_out", p.out == nil}, {"security", p.security == nil}} {
		if part.absent {
			r.gap(part.fact, noReason)
		}
	}
}

// portParts reads the settings of a port that affect traffic. The API calls
// "in" what enters the switch, which is what guests send.
func portParts(setting types.BaseDVPortSetting, pvlan map[int32]int32) port {
	if setting == nil {
		return port{}
	}
	base := setting.GetDVPortSetting()
	p := port{in: shaping(base.OutShapingPolicy), out: shaping(base.InShapingPolicy)}
	v, is := setting.(*types.VMwareDVSPortSetting)
	if !is {
		return p
	}
	p.vlan = vlanWord(v.Vlan, pvlan)
	if t := v.UplinkTeamingPolicy; t != nil {
		p.team = &measure.Teaming{}
		if t.Policy != nil {
			p.team.Policy = teamingWord(t.Policy.Value)
		}
		if t.UplinkPortOrder != nil {
			p.team.Active, p.team.Standby = t.UplinkPortOrder.ActiveUplinkPort, t.UplinkPortOrder.StandbyUplinkPort
		}
	}
	if m := v.MacManagementPolicy; m != nil && m.AllowPromiscuous != nil { // since 6.7; overrides the older one
		p.security = &measure.PortSecurity{Promiscuous: m.AllowPromiscuous, Forged: m.ForgedTransmits, MACChanges: m.MacChanges}
	} else if s := v.SecurityPolicy; s != nil {
		p.security = &measure.PortSecurity{Promiscuous: boolOf(s.AllowPromiscuous), Forged: boolOf(s.ForgedTransmits), MACChanges: boolOf(s.MacChanges)}
	}
	return p
}

// boolOf returns the value of a policy.
func boolOf(p *types.BoolPolicy) *bool {
	if p == nil {
		return nil
	}
	return p.Value
}

// shaping reads a traffic shaper: rates in bit/s, the burst in bytes.
func shaping(s *types.DVSTrafficShapingPolicy) *measure.Shaping {
	if s == nil || boolOf(s.Enabled) == nil {
		return nil
	}
	to := &measure.Shaping{Enabled: s.Enabled.Value}
	if !*to.Enabled {
		return to
	}
	for _, part := range []struct {
		of *types.LongPolicy
		to **int64
	}{{s.AverageBandwidth, &to.AverageBps}, {s.PeakBandwidth, &to.PeakBps}, {s.BurstSize, &to.Burst}} {
		if part.of != nil {
			*part.to = &part.of.Value
		}
	}
	return to
}

// vlanWord returns the VLAN of a port as text.
func vlanWord(v types.BaseVmwareDistributedVirtualSwitchVlanSpec, pvlan map[int32]int32) *string {
	switch s := v.(type) {
	case *types.VmwareDistributedVirtualSwitchVlanIdSpec:
		return new(fmt.Sprint(s.VlanId))
	case *types.VmwareDistributedVirtualSwitchPvlanSpec:
		if primary, known := pvlan[s.PvlanId]; known && primary != s.PvlanId {
			return new(fmt.Sprintf("private %d of %d", s.PvlanId, primary))
		}
		return new(fmt.Sprintf("private %d", s.PvlanId))
	case *types.VmwareDistributedVirtualSwitchTrunkVlanSpec:
		var ranges []string
		for _, n := range s.VlanId {
			if n.Start == n.End {
				ranges = append(ranges, fmt.Sprint(n.Start))
				continue
			}
			ranges = append(ranges, fmt.Sprintf("%d-%d", n.Start, n.End))
		}
		return new(strings.TrimSpace("trunk " + strings.Join(ranges, ",")))
	}
	return nil
}

// groupPaths lists the properties of a distributed port group.
func groupPaths() []string { return strings.Fields("name key config") }

// group is a distributed port group, with what its ports are asked for.
type group struct {
	measure.SwitchPortGroup
	overrides bool // its ports may have other settings
}

// convertGroup converts a distributed port group.
func convertGroup(o *types.ObjectContent, switches map[string]*distributed) group {
	r := &reader{object: o}
	g := group{}
	g.ID, g.Name = o.Obj.Value, unescape(r.text("", "name", ""))
	if key := r.text("", "key", ""); key != nil {
		g.ID = *key
	}
	c, ok := value[types.DVPortgroupConfigInfo](r, "vlan", "config", "")
	var pvlan map[int32]int32
	if ok && c.DistributedVirtualSwitch != nil {
		g.Switch = c.DistributedVirtualSwitch.Value
		if d := switches[g.Switch]; d != nil {
			pvlan = d.pvlan
			g.Uplinks = d.groups[o.Obj.Value]
		}
	}
	if c.Uplink != nil {
		g.Uplinks = *c.Uplink
	}
	p := portParts(c.DefaultPortConfig, pvlan)
	g.VLAN, g.Teaming, g.ShapeIn, g.ShapeOut, g.Security = p.vlan, p.team, p.in, p.out, p.security
	if ok {
		p.missing(r)
		if g.VLAN == nil {
			r.gap("vlan", noReason)
		}
	}
	if policy, is := c.Policy.(*types.VMwareDVSPortgroupPolicy); is && !g.Uplinks {
		g.overrides = policy.VlanOverrideAllowed || policy.ShapingOverrideAllowed
	}
	g.NotChecked = r.gaps
	return g
}
