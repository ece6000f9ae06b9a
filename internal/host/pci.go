package host

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"path"
	"strconv"
	"strings"

	"thru/internal/host/pcie"
)

// pciDevices is the folder of the PCI devices; it does not depend on the
// network namespace.
const pciDevices = "sys/bus/pci/devices/"

// parsePCIeSpeed returns the PCIe generation of a rate such as "8.0 GT/s
// PCIe" (drivers/pci/pci-sysfs.c). A virtual function shows "Unknown".
func parsePCIeSpeed(s string) (int, error) {
	number, unit, _ := strings.Cut(strings.TrimSpace(s), " ")
	rate, err := strconv.ParseFloat(number, 64)
	if gen := pcie.Generation(rate); err == nil && gen > 0 && strings.HasPrefix(unit, "GT/s") {
		return gen, nil
	}
	return 0, fmt.Errorf("the device does not report it (/sys has %.40q)", s)
}

// pcieLink reads generation and lanes of one port: "current" is the
// negotiated link, "max" the port's capability.
func (f FS) pcieLink(dir, which string) (gen, lanes int, err error) {
	speed, err := f.Text(path.Join(dir, which+"_link_speed"))
	if err != nil {
		return 0, 0, err
	}
	if gen, err = parsePCIeSpeed(speed); err != nil {
		return 0, 0, err
	}
	lanes, err = f.Number(path.Join(dir, which+"_link_width"))
	if err == nil && (lanes < 1 || lanes > pcie.MostLanes) { // 0 and 255: not known
		err = fmt.Errorf("the device does not report its lanes (/sys has %d)", lanes)
	}
	return gen, lanes, err
}

// pciFolder returns the folder of a device's PCI function, or of the function
// that a virtio device belongs to; empty for another bus.
func (f FS) pciFolder(device string) string {
	if strings.HasPrefix(path.Base(device), "virtio") {
		device = path.Dir(device)
	}
	if f.slotName(device) == "" {
		return ""
	}
	return device
}

// slotName returns the address of a PCI function: "0000:17:00.0".
func (f FS) slotName(dir string) string {
	return uevent(f.Optional(path.Join(dir, "uevent")), "PCI_SLOT_NAME")
}

// attrs iterates over the attributes of a netlink message (netlink(7),
// rtnetlink(7)): a length and a type of 16 bits each, then the value, padded
// to 4 bytes. It stops where the bytes are no attributes.
func attrs(b []byte) iter.Seq2[uint16, []byte] {
	const head = 4
	const flags = 1<<15 | 1<<14 // nested, network byte order
	return func(yield func(uint16, []byte) bool) {
		for len(b) >= head {
			n := int(binary.NativeEndian.Uint16(b))
			if n < head || n > len(b) {
				return
			}
			if !yield(binary.NativeEndian.Uint16(b[2:])&^flags, b[head:n]) {
				return
			}
			b = b[min((n+3)&^3, len(b)):]
		}
	}
}

// attr returns the first attribute of a type, or nil.
func attr(b []byte, want uint16) []byte {
	for kind, value := range attrs(b) {
		if kind == want {
			return value
		}
	}
	return nil
}

// errShort means that a message ends too early.
var errShort = errors.New("the kernel's answer is too short")
