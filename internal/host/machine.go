package host

import (
	"errors"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"thru/internal/host/tree"
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

// parseOSRelease returns PRETTY_NAME of os-release(5): shell assignments with
// optional quotes.
func parseOSRelease(text string) (string, error) {
	for line := range strings.Lines(text) {
		value, ok := strings.CutPrefix(strings.TrimSpace(line), "PRETTY_NAME=")
		if !ok {
			continue
		}
		if n := len(value); n >= 2 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
			value = value[1 : n-1]
		}
		if value == "" {
			break
		}
		return strings.NewReplacer(`\"`, `"`, `\$`, `$`, `\\`, `\`, "\\`", "`").Replace(value), nil
	}
	return "", errors.New("no PRETTY_NAME")
}

// system returns facts about the host that no file shows.
type system interface {
	rules() (ruleset, error)           // of nftables, in the calling thread's network namespace
	entries(table string) (int, error) // of a table of iptables, "ip filter"
	adjtime() (timex, error)           // state of the clock
	readCost() time.Duration           // of one clock reading
	free(path string) (int64, error)   // bytes of a file system that a user may still fill
	latencyLimit() (usec int, _ error) // longest exit latency of idle states that programs allow
}

// Reasons in words for people.
const (
	onlyLive = "only the running kernel reports it"
	notShown = "this kernel does not show it"
)

// denied reports whether a reason is a lack of rights. Notes hold text, and
// the kernel's errors for a lack of rights end in one of these words.
func denied(why string) bool {
	return strings.Contains(why, tree.OnlyRoot) || strings.HasSuffix(why, syscall.EACCES.Error()) || strings.HasSuffix(why, syscall.EPERM.Error())
}

// rootAdds names the denied facts, each once, for one line for people.
func rootAdds(n notes) []string {
	var all []string
	facts := measure.NewVocabulary()
	for _, note := range n {
		if !denied(note.Why) {
			continue
		}
		if name := facts.Title(note.Fact); !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// timex is the state of the clock by adjtimex(2).
type timex struct {
	synchronised bool
	maxErrorNs   int64
	offsetNs     int64
	driftPPM     float64
}

// clock reads the clock source
// (Documentation/ABI/testing/sysfs-devices-system-clocksource) and, from the
// running kernel, the clock's error and the cost of a reading.
func (h *Host) clock(n *notes) *measure.Clock {
	const dir = "sys/devices/system/clocksource/clocksource0"
	var c measure.Clock
	c.Source = keeper[string](n, "clock.source")(h.fs.Text(path.Join(dir, "current_clocksource")))
	c.Available = strings.Fields(h.fs.Optional(path.Join(dir, "available_clocksource"))) // in the same folder
	if h.system == nil {
		n.add("clock.synchronised", onlyLive)
		n.add("clock.read_cost_ns", onlyLive)
	} else {
		if t := keeper[timex](n, "clock.synchronised")(h.system.adjtime()); t != nil {
			c.Synchronised, c.MaxErrorNs, c.OffsetNs, c.DriftPPM = &t.synchronised, &t.maxErrorNs, &t.offsetNs, &t.driftPPM
		}
		c.ReadNs = new(h.system.readCost().Nanoseconds())
	}
	if c.Source == nil && c.Synchronised == nil && c.ReadNs == nil {
		return nil
	}
	return &c
}

// managers names the programs that configure the interfaces of this host, by
// the files that each leaves while it runs; none in a container. Persistent
// settings must follow the rules of the named program: sd_booted(3),
// systemd-networkd.service(8), NetworkManager(8), netplan(5), interfaces(5).
func (f FS) managers() []string {
	var found []string
	for _, m := range []struct{ name, trace string }{
		{"systemd-networkd", "run/systemd/netif/links"},
		{"NetworkManager", "run/NetworkManager/devices"},
		{"ifupdown", "run/network/ifstate"},
	} {
		if f.Exists(m.trace) {
			found = append(found, m.name)
		}
	}
	if names, err := f.Names("etc/netplan"); err == nil && slices.ContainsFunc(names, func(s string) bool { return strings.HasSuffix(s, ".yaml") }) {
		found = append(found, "netplan")
	}
	switch udev := f.Exists("run/udev/data"); {
	case udev && f.Exists("run/systemd/system"):
		found = append(found, "systemd-udevd")
	case udev:
		found = append(found, "udev")
	}
	return found
}
