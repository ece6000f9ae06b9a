package host

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"thru/internal/measure"
)

// pciDevices is where the devices of PCI are, whatever the network namespace.
const pciDevices = "sys/bus/pci/devices/"

// pcieGen is the generation of PCI Express with that rate of a lane in GT/s;
// 0: none that we know.
func pcieGen(rate float64) int {
	return 1 + slices.Index([]float64{2.5, 5, 8, 16, 32, 64}, rate)
}

// pcieUsable is what a link of PCI Express carries in each direction, in bit/s
// (methods.md, formula 7); 0 for a link that does not exist.
//
// Encoding takes 2 of 10 bits up to generation 2 and 2 of 130 up to 5. Then
// each packet of 256 bytes has 24 bytes around it, and 5% are allowed for the
// packets of the link itself. Generation 6 sends flits of 256 bytes, of which
// 242 carry packets and what the link needs; the bytes around a packet are 16.
func pcieUsable(gen, lanes int) int64 {
	const payload = 256.0
	perLane := 0.0 // bit/s
	switch gen {
	case 1, 2:
		perLane = 2.5e9 * float64(gen) * 8 / 10 * payload / (payload + 24) * 0.95
	case 3, 4, 5:
		perLane = 8e9 * float64(int(1)<<(gen-3)) * 128 / 130 * payload / (payload + 24) * 0.95
	case 6:
		perLane = 64e9 * 242 / 256 * payload / (payload + 16)
	}
	return int64(perLane * float64(max(lanes, 0)))
}

// parsePCIeSpeed reads a rate such as "8.0 GT/s PCIe" (drivers/pci/pci-sysfs.c)
// and gives its generation. A virtual function shows "Unknown".
func parsePCIeSpeed(s string) (int, error) {
	number, unit, _ := strings.Cut(strings.TrimSpace(s), " ")
	rate, err := strconv.ParseFloat(number, 64)
	if gen := pcieGen(rate); err == nil && gen > 0 && strings.HasPrefix(unit, "GT/s") {
		return gen, nil
	}
	return 0, fmt.Errorf("the device does not tell (/sys has %.40q)", s)
}

// pcieLink reads generation and lanes of one port: "current" is what was
// agreed on, "max" what the port could.
func (f FS) pcieLink(dir, which string) (gen, lanes int, err error) {
	speed, err := f.text(path.Join(dir, which+"_link_speed"))
	if err != nil {
		return 0, 0, err
	}
	if gen, err = parsePCIeSpeed(speed); err != nil {
		return 0, 0, err
	}
	lanes, err = f.number(path.Join(dir, which+"_link_width"))
	if err == nil && (lanes < 1 || lanes > 32) { // 0 and 255: not known
		err = fmt.Errorf("the device does not tell its lanes (/sys has %d)", lanes)
	}
	return gen, lanes, err
}

// pciFolder is the folder of the PCI function that a device is, or that a
// virtio device belongs to; empty where it is on another bus.
func (f FS) pciFolder(device string) string {
	if strings.HasPrefix(path.Base(device), "virtio") {
		device = path.Dir(device)
	}
	if f.slotName(device) == "" {
		return ""
	}
	return device
}

// slotName is the address of a PCI function: "0000:17:00.0".
func (f FS) slotName(dir string) string {
	return uevent(f.optional(path.Join(dir, "uevent")), "PCI_SLOT_NAME")
}

// describeSlot fills in the slot and the NUMA node of a device. What a
// hypervisor offers is in no slot, though it may show one. A virtual function
// has the link of the physical one.
func (u *subject) describeSlot() {
	dir := u.fs.pciFolder(u.device)
	if dir == "" {
		dir = u.device
	} else {
		u.out.PCI = &measure.PCI{Vendor: u.fs.optional(path.Join(dir, "vendor")), Device: u.fs.optional(path.Join(dir, "device"))}
	}
	if node, err := u.numaNode(dir); err == nil {
		u.out.NUMANode = &node
	} else if u.vnic == "" {
		u.miss("numa_node", err)
	}
	if u.out.PCI == nil || u.vnic != "" {
		return
	}
	if whole := path.Join(dir, "physfn"); u.fs.exists(whole) {
		dir = u.fs.target(whole)
	} else if *u.out.Kind == "virtual function" {
		u.miss("pci.usable_bps", errors.New("a virtual function shows no link of its own"))
		return
	}
	u.describePCIe(dir)
}

// describePCIe reads the link of a function, and of the port above it, its slot.
func (u *subject) describePCIe(dir string) {
	p := u.out.PCI
	gen, lanes, err := u.fs.pcieLink(dir, "current")
	if err != nil {
		u.miss("pci.usable_bps", err)
	} else {
		p.Gen, p.Lanes, p.UsableBps = &gen, &lanes, new(pcieUsable(gen, lanes))
	}
	if gen, lanes, err := u.fs.pcieLink(dir, "max"); err != nil {
		u.miss("pci.gen_max", err)
	} else {
		p.MaxGen, p.MaxLanes = &gen, &lanes
	}
	above := path.Dir(dir)
	if u.fs.slotName(above) == "" {
		u.miss("pci.slot_gen_max", errors.New("no port is shown above the device"))
		return
	}
	if gen, lanes, err := u.fs.pcieLink(above, "max"); err != nil {
		u.miss("pci.slot_gen_max", err)
	} else {
		p.SlotGen, p.SlotLanes = &gen, &lanes
	}
}

// numaNode is the node of a device. Firmware need not tell it (-1) where there
// is only one.
func (u *subject) numaNode(dir string) (int, error) {
	node, err := u.fs.number(path.Join(dir, "numa_node"))
	if err == nil && node >= 0 {
		return node, nil
	}
	if nodes, err := u.nodes(); err == nil && len(nodes) == 1 {
		for only := range nodes {
			return only, nil
		}
	}
	if err == nil {
		err = errors.New("the firmware does not tell")
	}
	return 0, err
}

// card names the card that a port is on: the address without its function.
// Virtual functions, whose traffic is that of a port, and what a hypervisor
// offers belong to none.
func (u *subject) card() string {
	if !u.hardware() || u.out.Kind == nil || *u.out.Kind != "physical" {
		return ""
	}
	name := u.fs.slotName(u.fs.pciFolder(u.device))
	card, _, _ := strings.Cut(name, ".")
	return card
}

// joinPorts tells the ports of each card of each other, and adds up the rates
// of those that have a link: the others carry nothing.
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
