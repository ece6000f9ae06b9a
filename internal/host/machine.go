package host

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"thru/internal/measure"
)

// machine reads the firmware's facts about the hardware: SMBIOS
// (Documentation/ABI/testing/sysfs-firmware-dmi-tables,
// drivers/firmware/dmi-id.c) or, without it, the device tree. It leaves out
// serial numbers. The UUID identifies a guest to its hypervisor; an agent
// sends it only on request.
func (f FS) machine(n *notes) *measure.Machine {
	const dir = "sys/class/dmi/id"
	if _, err := f.Names(dir); err != nil {
		model := strings.TrimRight(f.Optional("proc/device-tree/model"), "\x00")
		if model == "" {
			n.add("machine", "the firmware has no SMBIOS tables: "+err.Error())
			return nil
		}
		return &measure.Machine{Product: model, UEFI: keeper[bool](n, "machine.uefi")(f.uefi())}
	}
	var m measure.Machine
	for _, v := range []struct {
		key, file string
		to        *string
	}{
		{"vendor", "sys_vendor", &m.Vendor}, {"product", "product_name", &m.Product}, {"version", "product_version", &m.Version},
		{"board", "board_vendor", &m.Board}, {"bios_vendor", "bios_vendor", &m.BIOSVendor},
		{"bios_version", "bios_version", &m.BIOSVersion}, {"bios_date", "bios_date", &m.BIOSDate},
	} {
		s, err := f.Text(path.Join(dir, v.file))
		if err != nil {
			n.add("machine."+v.key, err.Error())
			continue
		}
		if *v.to = firmwareText(s); *v.to == "" {
			n.add("machine."+v.key, blankSMBIOS)
		}
	}
	m.Board = strings.TrimSpace(m.Board + " " + firmwareText(f.Optional(path.Join(dir, "board_name"))))
	if m.Chassis = chassis(f.Optional(path.Join(dir, "chassis_type"))); m.Chassis == "" {
		n.add("machine.chassis", blankSMBIOS)
	}
	m.UEFI = keeper[bool](n, "machine.uefi")(f.uefi())
	m.UUID = f.machineUUID(n, path.Join(dir, "product_uuid"))
	return &m
}

// machineUUID reads the UUID, which needs root.
func (f FS) machineUUID(n *notes, file string) string {
	s, err := f.Text(file)
	if err != nil {
		n.add("machine.uuid", err.Error())
		return ""
	}
	uuid := measure.UUID(s)
	if uuid == "" {
		n.add("machine.uuid", blankSMBIOS)
	}
	return uuid
}

// blankSMBIOS is the reason for an absent SMBIOS text.
const blankSMBIOS = "the firmware does not report it"

// firmwareText returns an SMBIOS text, or "" for a maker's placeholder.
func firmwareText(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	for _, blank := range []string{"to be filled by o.e.m.", "default string", "not specified", "not applicable", "none", "n/a",
		"o.e.m.", "system product name", "system manufacturer", "system version", "unknown", "undefined", "0", "........"} {
		if strings.EqualFold(s, blank) {
			return ""
		}
	}
	return s
}

// chassis returns the chassis type of an SMBIOS number (specification 3.7,
// table 17); "" for "other", "unknown" and numbers not listed here.
func chassis(s string) string {
	kinds := map[int]string{
		3: "desktop", 4: "desktop", 5: "desktop", 6: "tower", 7: "tower", 8: "portable", 9: "notebook", 10: "notebook",
		11: "hand held", 13: "all in one", 14: "notebook", 17: "main server", 22: "RAID", 23: "rack mount", 24: "sealed PC",
		25: "multi-system", 28: "blade", 29: "blade enclosure", 30: "tablet", 31: "notebook", 32: "notebook", 33: "IoT gateway",
		34: "embedded", 35: "mini PC", 36: "stick PC",
	}
	number, err := strconv.Atoi(s)
	if err != nil {
		return ""
	}
	return kinds[number&0x7f] // the upper bit means that it has a lock
}

// uefi reports whether UEFI started the kernel. Containers hide all of
// /sys/firmware, so an empty folder proves nothing.
func (f FS) uefi() (bool, error) {
	names, err := f.Names("sys/firmware")
	if err != nil {
		return false, err
	}
	if len(names) == 0 {
		return false, errHidden("/sys/firmware")
	}
	return slices.Contains(names, "efi"), nil
}
