package host

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
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
