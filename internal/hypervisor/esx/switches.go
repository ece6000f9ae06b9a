package esx

import (
	"cmp"
	"strings"

	"thru/internal/host/platform"
	"thru/internal/measure"
)

// mostNets limits how many virtual switches and port groups are asked for
// their policies.
const mostNets = 64

// switches reads the virtual switches of the host with their port groups.
func (r *reading) switches() {
	for _, w := range r.blocks("switches", "esxcli", "network", "vswitch", "standard", "list") {
		if s := switchOf(w, "standard"); s != nil {
			r.Switches = append(r.Switches, *s)
		}
	}
	each(min(len(r.Switches), mostNets), func(i int) { r.policies(&r.Switches[i]) })
	for _, w := range r.blocks("switches", "esxcli", "network", "vswitch", "dvs", "vmware", "list") {
		if s := switchOf(w, "distributed"); s != nil {
			s.NotChecked = append(s.NotChecked, measure.NotChecked{Fact: "port_groups", Why: "only vCenter reports those of a distributed switch"})
			r.Switches = append(r.Switches, *s)
		}
	}
	for _, w := range r.table("port_groups", "esxcli", "network", "vswitch", "standard", "portgroup", "list") {
		name := strings.TrimSpace(w["name"])
		if name == "" {
			continue
		}
		r.PortGroups = append(r.PortGroups, measure.SwitchPortGroup{ID: groupID(name), Name: name, Switch: switchID(w["virtualswitch"]), Host: hostID, VLAN: vlan(w["vlanid"])})
	}
	each(min(len(r.PortGroups), mostNets), func(i int) { r.groupPolicies(&r.PortGroups[i]) })
}

func switchID(name string) string { return "switch " + name }
func groupID(name string) string  { return "port group " + name }

// portGroup returns the id of the port group of a name; "" where there is
// none.
func (r *reading) portGroup(name string) string {
	if g := (&r.Inventory).PortGroup(groupID(name)); g != nil {
		return g.ID
	}
	return ""
}

// switchOf converts a block of a list of switches.
func switchOf(w platform.Row, kind string) *measure.VirtualSwitch {
	name := w["name"]
	if name == "" || w["mtu"] == "" && w["uplinks"] == "" {
		return nil // continues the previous block
	}
	s := &measure.VirtualSwitch{ID: switchID(name), Name: name, Kind: kind, MTU: platform.Count(w["mtu"]), Ports: platform.Count(w["configuredports"]), Version: said(w["version"])}
	if s.Host = hostID; kind == "distributed" {
		s.Host, s.Hosts = "", []string{hostID}
	}
	for _, nic := range platform.Words(w["uplinks"]) {
		s.Uplinks = append(s.Uplinks, measure.Uplink{Host: hostID, NIC: nic})
	}
	return s
}

// vlan returns a VLAN id of ESXi as text: 4095 passes all tags to the guest.
func vlan(id string) *string {
	if id == "4095" {
		return new("trunk 0-4094")
	}
	return said(id)
}

// policies reads the policies of a virtual switch for all of its ports.
func (r *reading) policies(s *measure.VirtualSwitch) {
	ask := func(what string) platform.Row {
		return r.block("switches."+s.Name+"."+what, "esxcli", "network", "vswitch", "standard", "policy", what, "get", "-v", s.Name)
	}
	s.Teaming, s.ShapeOut, s.Security = teaming(ask("failover")), shaping(ask("shaping")), security(ask("security"))
}

// groupPolicies reads the effective policies of a port group: its own, or the
// switch's.
func (r *reading) groupPolicies(p *measure.SwitchPortGroup) {
	ask := func(what string) platform.Row {
		return r.block("port_groups."+p.Name+"."+what, "esxcli", "network", "vswitch", "standard", "portgroup", "policy", what, "get", "-p", p.Name)
	}
	p.Teaming, p.ShapeOut, p.Security = teaming(ask("failover")), shaping(ask("shaping")), security(ask("security"))
}

// teaming reads "policy failover get".
func teaming(w platform.Row) *measure.Teaming {
	if w["loadbalancing"] == "" {
		return nil
	}
	name := map[string]string{"srcport": "originating port", "iphash": "ip hash", "mac": "mac hash"}[w["loadbalancing"]]
	return &measure.Teaming{
		Policy: cmp.Or(name, w["loadbalancing"]), Active: platform.Words(w["activeadapters"]), Standby: platform.Words(w["standbyadapters"]),
	}
}

// shaping reads "policy shaping get": Kb/s of 1000 bits, KB of 1024 bytes, -1
// where it is off.
func shaping(w platform.Row) *measure.Shaping {
	s := &measure.Shaping{Enabled: platform.Truth(w["enabled"])}
	if s.Enabled == nil {
		return nil
	}
	if *s.Enabled {
		s.AverageBps, s.PeakBps, s.Burst = amount(w["averagebandwidth"], 1000), amount(w["peakbandwidth"], 1000), amount(w["burstsize"], 1024)
	}
	return s
}

// security reads "policy security get".
func security(w platform.Row) *measure.PortSecurity {
	s := measure.PortSecurity{
		Promiscuous: platform.Truth(w["allowpromiscuous"]), Forged: platform.Truth(w["allowforgedtransmits"]), MACChanges: platform.Truth(w["allowmacaddresschange"]),
	}
	if s == (measure.PortSecurity{}) {
		return nil
	}
	return &s
}

// amount returns the number before the unit in "102400 Kbps".
func amount(text string, unit int64) *int64 {
	number, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	return platform.Many(number, unit)
}
