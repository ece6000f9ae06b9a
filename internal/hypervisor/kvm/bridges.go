package kvm

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"thru/internal/measure"
)

// Id of the host in its inventory.
const hostID = "host"

// ovsDatapath is the interface that the ports of all Open vSwitch bridges
// belong to (net/openvswitch/vport-internal_dev.c).
const ovsDatapath = "ovs-system"

// kernel reads facts that no file shows.
type kernel struct {
	vlans  func() (map[string]string, error) // VLANs of bridge ports, by interface name
	limits func(name string) (limits, error) // rate limits of an interface
}

// limits are the rate limits of an interface: for what the host sends by it,
// and what the host accepts from it. nil: none. why names what is not known.
type limits struct {
	out, in *measure.Shaping
	why     string
}

// network is the host's network as its guests are connected to it.
type network struct {
	tree   files
	faces  map[string]*measure.Interface
	vlans  map[string]string // of bridge ports; nil: why has the reason
	noVLAN string
	limits func(name string) (limits, error)
}

// newNetwork returns the network of the host's interfaces.
func newNetwork(t files, f *measure.Facts, kernel kernel) *network {
	n := &network{tree: t, limits: kernel.limits, faces: map[string]*measure.Interface{}}
	for i := range f.Interfaces {
		n.faces[f.Interfaces[i].Name] = &f.Interfaces[i]
	}
	var err error
	if n.vlans, err = kernel.vlans(); err != nil {
		n.noVLAN = err.Error()
	}
	return n
}

// switches returns the bridges of the host, and Open vSwitch as one switch.
func (n *network) switches(f *measure.Facts) (all []measure.VirtualSwitch) {
	for i := range f.Interfaces {
		face := &f.Interfaces[i]
		switch {
		case face.Name == ovsDatapath:
			all = append(all, n.openVSwitch(f))
		case face.Bridge != nil:
			all = append(all, n.bridge(face))
		}
	}
	return all
}

// bridge returns one of the kernel's own bridges.
func (n *network) bridge(face *measure.Interface) measure.VirtualSwitch {
	s := measure.VirtualSwitch{
		ID: bridgeID(face.Name), Name: face.Name, Kind: "bridge", Host: hostID, MTU: face.MTU,
		Ports: new(len(face.Bridge.Ports)), VLANs: face.Bridge.VLANs,
	}
	for _, lower := range face.Lower {
		if n.isUplink(lower) {
			s.Uplinks = append(s.Uplinks, measure.Uplink{Host: hostID, NIC: lower})
		}
	}
	if v, err := n.tree.Number(path.Join("sys/class/net", face.Name, "bridge/multicast_snooping")); err == nil {
		s.Snooping = new(v != 0)
	} else {
		s.NotChecked = append(s.NotChecked, measure.NotChecked{Fact: "multicast_snooping", Why: "not in /sys"})
	}
	if n.noVLAN != "" && s.VLANs != nil && *s.VLANs {
		s.NotChecked = append(s.NotChecked, measure.NotChecked{Fact: "vlan", Why: n.noVLAN})
	}
	return s
}

// openVSwitch returns one switch for all of its bridges: its database, not
// the kernel, knows which port is on which bridge.
func (n *network) openVSwitch(f *measure.Facts) measure.VirtualSwitch {
	s := measure.VirtualSwitch{ID: ovsID, Name: "Open vSwitch", Kind: "openvswitch", Host: hostID}
	ports := 0
	for i := range f.Interfaces {
		face := &f.Interfaces[i]
		if face.Master == nil || *face.Master != ovsDatapath {
			continue
		}
		ports++
		if n.isUplink(face.Name) {
			s.Uplinks = append(s.Uplinks, measure.Uplink{Host: hostID, NIC: face.Name})
		}
	}
	s.Ports = &ports
	for _, fact := range []string{"bridges", "vlan", "mtu_bytes", "shaping"} {
		s.NotChecked = append(s.NotChecked, measure.NotChecked{Fact: fact, Why: "thru does not read the database of Open vSwitch: ovs-vsctl show"})
	}
	return s
}

// Ids of switches.
const ovsID = "ovs"

func bridgeID(name string) string { return "bridge:" + name }

// isUplink reports whether frames leave the host by a port: by devices, and
// interfaces on top of them, but not by the ends of guests, of containers and
// of other bridges.
func (n *network) isUplink(name string) bool {
	face := n.faces[name]
	if face == nil || face.Kind == nil {
		return false
	}
	return !slices.Contains([]string{"tun", "tap", "veth", "bridge", "dummy", "loopback", "openvswitch", "macvtap", "ifb"}, *face.Kind)
}

// connect sets where the packets of an adapter go: its interface, the bridge
// of that port, and the bridge's uplinks.
func (n *network) connect(p *process, a *nic) {
	if a.pci != "" {
		n.passThrough(p, a)
		return
	}
	if a.ifname == "" {
		return
	}
	a.Key, a.Device = a.ifname, new(a.ifname)
	face := n.faces[a.ifname]
	if face == nil {
		p.miss("nics."+a.Name+".mtu_bytes", "the host has no interface "+a.ifname+" in this network namespace")
		return
	}
	a.MTU, a.Connected = face.MTU, face.Up
	a.Offloads = map[string]bool{}
	for name, on := range face.Offloads {
		if !slices.Contains(face.Fixed, name) {
			a.Offloads[name] = on
		}
	}
	n.limit(p, a)
	if face.Master == nil {
		n.alone(p, a, face)
		return
	}
	a.VLAN = n.vlanOf(a.ifname, *face.Master)
	a.join(n.outermost(*face.Master))
	if up := n.uplinks(a.Switch); len(up) == 1 {
		a.Uplink = &up[0]
	}
}

// limit sets the rate limit of the adapter's own interface. What the host
// sends to a tap the guest receives; a macvtap is the guest's own end.
func (n *network) limit(p *process, a *nic) {
	l, err := n.limits(a.ifname)
	if err != nil {
		l.why = err.Error()
	}
	if l.why != "" {
		p.miss("nics."+a.Name+".limit", l.why)
	}
	if a.LimitIn, a.Limit = l.out, l.in; n.tree.isMacvtap(a.ifname) {
		a.LimitIn, a.Limit = l.in, l.out
	}
}

// join connects an adapter to a bridge by its name.
func (a *nic) join(bridge string) {
	if bridge == ovsDatapath {
		a.Switch = ovsID
		return
	}
	a.Switch, a.Network = bridgeID(bridge), &bridge
}

// alone describes an adapter whose interface is no port: a macvtap is on a
// device; for others the host itself routes the packets.
func (n *network) alone(p *process, a *nic, face *measure.Interface) {
	switch {
	case face.Kind != nil && *face.Kind == "macvtap" && len(face.Lower) > 0:
		a.Network, a.Uplink = new("macvtap on "+face.Lower[0]), new(face.Lower[0])
	default:
		p.miss("nics."+a.Name+".network", a.ifname+" is not a port of a bridge: the host routes or drops its packets")
	}
}

// outermost returns the bridge behind Proxmox's firewall bridge of one
// adapter: that bridge's other port is one end of a veth pair, whose other
// end is a port of the bridge behind it.
func (n *network) outermost(bridge string) string {
	passed := []string{bridge}
	for {
		face := n.faces[bridge]
		if face == nil || face.Bridge == nil || len(face.Bridge.Ports) != 2 || len(n.uplinks(bridgeID(bridge))) > 0 {
			return bridge
		}
		next := ""
		for _, port := range face.Bridge.Ports {
			if far := n.otherEnd(port); far != nil && far.Master != nil && !slices.Contains(passed, *far.Master) {
				next = *far.Master
			}
		}
		if next == "" {
			return bridge
		}
		bridge, passed = next, append(passed, next)
	}
}

// otherEnd returns the other end of a pair in this network namespace.
func (n *network) otherEnd(name string) *measure.Interface {
	face := n.faces[name]
	if face == nil || face.Kind == nil || *face.Kind != "veth" {
		return nil
	}
	far := n.tree.Optional(path.Join("sys/class/net", name, "iflink"))
	return n.faces[n.tree.interfaceOf(far)]
}

// uplinks returns the ports of a switch by which frames leave the host.
func (n *network) uplinks(id string) (all []string) {
	name, ok := strings.CutPrefix(id, "bridge:")
	if !ok || n.faces[name] == nil {
		return nil
	}
	for _, lower := range n.faces[name].Lower {
		if n.isUplink(lower) {
			all = append(all, lower)
		}
	}
	return all
}

// vlanOf returns the VLANs of a port of a VLAN-aware bridge.
func (n *network) vlanOf(port, bridge string) *string {
	face := n.faces[bridge]
	if face == nil || face.Bridge == nil || face.Bridge.VLANs == nil || !*face.Bridge.VLANs {
		return nil
	}
	if v := n.vlans[port]; v != "" {
		return &v
	}
	return nil
}

// passThrough looks up a device that is passed through to the guest.
func (n *network) passThrough(p *process, a *nic) {
	dir := path.Join("sys/bus/pci/devices", path.Base(a.pci))
	a.Key, a.Port = a.pci, new(a.pci)
	p.miss("nics."+a.Name+".mac", "the guest owns the device")
	if !n.tree.Exists(path.Join(dir, "physfn")) {
		a.Model = new("passthrough")
		return
	}
	a.Model = new("sriov")
	if names, err := n.tree.Names(path.Join(dir, "physfn/net")); err == nil && len(names) > 0 {
		a.Uplink = &names[0]
	}
}

// isNetwork reports whether a PCI device is a network device by its class
// (PCI code and ID assignment, class 02).
func (t files) isNetwork(pci string) bool {
	return strings.HasPrefix(t.Optional(path.Join("sys/bus/pci/devices", path.Base(pci), "class")), "0x02")
}

// vlanText returns the VLANs that a bridge port admits: "100" untagged,
// "trunk 10-20,30", or both.
func vlanText(untagged int, tagged []int) string {
	slices.Sort(tagged)
	var parts []string
	for i := 0; i < len(tagged); {
		j := i
		for j+1 < len(tagged) && tagged[j+1] == tagged[j]+1 {
			j++
		}
		part := strconv.Itoa(tagged[i])
		if j > i {
			part = fmt.Sprintf("%d-%d", tagged[i], tagged[j])
		}
		parts, i = append(parts, part), j+1
	}
	trunk := strings.Join(parts, ",")
	switch {
	case trunk == "" && untagged == 0:
		return ""
	case trunk == "":
		return strconv.Itoa(untagged)
	case untagged == 0:
		return "trunk " + trunk
	}
	return fmt.Sprintf("%d, trunk %s", untagged, trunk)
}
