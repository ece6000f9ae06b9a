package host

import (
	"cmp"
	"errors"
	"path"
	"strings"

	"thru/internal/host/pcie"
	"thru/internal/host/tree"
	"thru/internal/measure"
)

// bond reads how a bond is set up: from /proc/net/bonding in the calling
// thread's network namespace, or from sysfs where that is masked. /proc shows
// the aggregator to root only, sysfs to everybody.
func (u *subject) bond() (measure.Bond, error) {
	b, err := tree.Parsed(u.fs.net, "bonding/"+u.name, parseBond)
	if u.sysfs != nil {
		return b, err
	}
	dir := path.Join("sys/class/net", u.name, "bonding")
	if err != nil {
		if b, err = u.bondOfSysfs(dir); err != nil {
			return b, err
		}
	}
	if n, err := u.fs.Number(path.Join(dir, "ad_aggregator")); err == nil && b.Mode == "802.3ad" {
		b.Aggregate = &n
	}
	return b, nil
}

// bondOfSysfs reads the files of Documentation/networking/bonding.rst. Each
// holds a name and its number.
func (u *subject) bondOfSysfs(dir string) (measure.Bond, error) {
	mode, err := u.fs.Text(path.Join(dir, "mode"))
	if err != nil {
		return measure.Bond{}, err
	}
	name := func(file string) string {
		s, _, _ := strings.Cut(u.fs.Optional(path.Join(dir, file)), " ")
		return s
	}
	b := measure.Bond{Active: name("active_slave"), Members: []measure.BondMember{}}
	b.Mode, _, _ = strings.Cut(mode, " ")
	if hashes(b.Mode) {
		b.Hash = name("xmit_hash_policy")
	}
	if b.Mode == "802.3ad" {
		b.LACP = name("lacp_rate")
	}
	for member := range strings.FieldsSeq(u.fs.Optional(path.Join(dir, "slaves"))) {
		m := measure.BondMember{Name: member}
		at := path.Join("sys/class/net", member)
		m.Up = u.fs.Optional(path.Join(at, "bonding_slave/mii_status")) == "up"
		if v, err := u.fs.speed(member); err == nil {
			m.SpeedBps = &v
		}
		if n, err := u.fs.Number(path.Join(at, "bonding_slave/ad_aggregator_id")); err == nil {
			m.Aggregate = &n
		}
		if n, err := u.fs.Number(path.Join(at, "bonding_slave/link_failure_count")); err == nil {
			m.Failures = new(int64(n))
		}
		b.Members = append(b.Members, m)
	}
	return b, nil
}

// bridgeFacts adds to a bridge whether the firewall filters its frames:
// br_netfilter, where it is loaded, for all bridges or for this one
// (Documentation/networking/ip-sysctl.rst, bridge-nf-call-iptables).
func (u *subject) bridgeFacts() *measure.Bridge {
	b := *u.link.bridge
	if u.kind != "bridge" {
		return &b // Open vSwitch has its own firewall
	}
	own := b.Netfilter != nil && *b.Netfilter
	b.Netfilter = nil
	all, err := u.fs.Number("proc/sys/net/bridge/bridge-nf-call-iptables")
	switch {
	case err == nil:
		b.Netfilter = new(own || all != 0)
	case u.fs.Exists("proc/sys/net"):
		b.Netfilter = new(false) // not loaded
	default:
		u.miss("bridge.calls_iptables", err)
	}
	return &b
}

// describeSlot sets the slot and the NUMA node of a device. A virtual NIC is
// in no slot, though it may show one. A virtual function has the link of its
// physical function.
func (u *subject) describeSlot() {
	dir := u.fs.pciFolder(u.device)
	if dir == "" {
		dir = u.device
	} else {
		u.out.PCI = &measure.PCI{Vendor: u.fs.Optional(path.Join(dir, "vendor")), Device: u.fs.Optional(path.Join(dir, "device"))}
	}
	if node, err := u.numaNode(dir); err == nil {
		u.out.NUMANode = &node
	} else if u.vnic == "" {
		u.miss("numa_node", err)
	}
	if u.out.PCI == nil || u.vnic != "" {
		return
	}
	if whole := path.Join(dir, "physfn"); u.fs.Exists(whole) {
		dir = u.fs.Target(whole)
	} else if *u.out.Kind == "virtual function" {
		u.miss("pci.usable_bps", errors.New("a virtual function has no PCIe link of its own"))
		return
	}
	u.describePCIe(dir)
}

// describePCIe reads the link of a PCI function, and that of the port above
// it, its slot.
func (u *subject) describePCIe(dir string) {
	p := u.out.PCI
	gen, lanes, err := u.fs.pcieLink(dir, "current")
	if err != nil {
		u.miss("pci.usable_bps", err)
	} else {
		p.Gen, p.Lanes, p.UsableBps = &gen, &lanes, new(pcie.UsableBps(gen, lanes))
	}
	if gen, lanes, err := u.fs.pcieLink(dir, "max"); err != nil {
		u.miss("pci.gen_max", err)
	} else {
		p.MaxGen, p.MaxLanes = &gen, &lanes
	}
	above := path.Dir(dir)
	if u.fs.slotName(above) == "" {
		u.miss("pci.slot_gen_max", errors.New("/sys shows no port above the device"))
		return
	}
	if gen, lanes, err := u.fs.pcieLink(above, "max"); err != nil {
		u.miss("pci.slot_gen_max", err)
	} else {
		p.SlotGen, p.SlotLanes = &gen, &lanes
	}
}

// numaNode returns the NUMA node of a device. Firmware may leave it unset
// (-1) where there is only one.
func (u *subject) numaNode(dir string) (int, error) {
	node, err := u.fs.Number(path.Join(dir, "numa_node"))
	if err == nil && node >= 0 {
		return node, nil
	}
	if nodes, err := u.nodes(); err == nil && len(nodes) == 1 {
		for only := range nodes {
			return only, nil
		}
	}
	return 0, cmp.Or(err, errors.New("the firmware does not report it"))
}

// card identifies the card of a port: the PCI address without the function.
// Virtual functions, whose traffic is that of a port, and virtual NICs belong
// to none.
func (u *subject) card() string {
	if !u.hardware() || u.out.Kind == nil || *u.out.Kind != "physical" {
		return ""
	}
	name := u.fs.slotName(u.fs.pciFolder(u.device))
	card, _, _ := strings.Cut(name, ".")
	return card
}

// joinPorts lists for each port the other ports of its card, and adds up the
// rates of the ports with a link: the others carry nothing.
func joinPorts(all []measure.Interface, cards map[string][]int) {
	for _, ports := range cards {
		var sum int64
		for _, i := range ports {
			if all[i].SpeedBps != nil {
				sum += *all[i].SpeedBps
			}
		}
		for _, i := range ports {
			p := all[i].PCI
			if sum > 0 {
				p.PortsBps = new(sum)
			}
			for _, j := range ports {
				if j != i {
					p.Siblings = append(p.Siblings, all[j].Name)
				}
			}
		}
	}
}
