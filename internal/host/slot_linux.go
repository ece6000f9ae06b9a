package host

import (
	"cmp"
	"errors"
	"path"
	"strings"

	"thru/internal/host/pcie"
	"thru/internal/measure"
)

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
