package kvm

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"thru/internal/measure"
	"thru/internal/unit"
)

// machine is a guest as defined by its command line.
type machine struct {
	measure.Guest
	vmid     string // Proxmox's number
	accel    string // "kvm", "tcg", "xen"
	nics     []nic  // basis of Guest.NICs
	hasNames bool   // threads are named by their purpose
	incoming bool   // it waits for a migration
}

// commandLine is the list of options of a command line.
type commandLine []option

// of returns all options with one of these names, in order.
func (c commandLine) of(names ...string) (all []props) {
	for _, o := range c {
		if slices.Contains(names, o.name) {
			all = append(all, o.props)
		}
	}
	return all
}

// merged returns the settings of an option that may be given in parts.
func (c commandLine) merged(names ...string) (all props) {
	for _, p := range c.of(names...) {
		all = append(all, p...)
	}
	return all
}

// byID finds the option of one kind that has an id.
func (c commandLine) byID(name, key, id string) props {
	for _, p := range c.of(name) {
		if id != "" && p.get(key) == id {
			return p
		}
	}
	return nil
}

// readMachine reads a command line, the program first.
func readMachine(args []string) machine {
	c := commandLine(parseArgs(args[1:]))
	var m machine
	name := c.merged("name")
	m.Name, m.hasNames = clean(name.get("guest")), name.on("debug-threads")
	m.vmid = clean(c.merged("id").get("id"))
	m.UUID = measure.UUID(cmp.Or(c.merged("uuid").get("uuid"), c.merged("smbios").get("uuid")))
	kind := c.merged("machine", "M")
	m.Hardware = known(kind.get("type"))
	m.accel = clean(accelerator(args[0], c, kind))
	m.incoming = len(c.of("incoming")) > 0
	m.Power = "on"
	c.processors(&m)
	c.memory(&m)
	m.Firmware = firmware(c, kind)
	m.Disks = c.disks()
	m.nics = c.adapters()
	m.Advanced = c.advanced(m.accel)
	if files := c.of("readconfig"); len(files) > 0 {
		m.miss("*", "some of its options are in "+unit.Line(files[0].get("file"), maxPath)+" (-readconfig), which thru does not read")
	}
	return m
}

// miss notes a fact of the guest that is not known.
func (m *machine) miss(fact, why string) {
	m.NotChecked = append(m.NotChecked, measure.NotChecked{Fact: fact, Why: why})
}

// none reports whether the program was only started to query its features: it
// has no machine.
func (m *machine) none() bool { return m.Hardware != nil && *m.Hardware == "none" }

// accelerator returns the first accelerator that may be used. Where none is
// given, the program's name decides (system/vl.c, configure_accelerators).
func accelerator(program string, c commandLine, kind props) string {
	switch {
	case len(c.of("enable-kvm")) > 0:
		return "kvm"
	case len(c.of("accel")) > 0:
		return c.of("accel")[0].get("accel")
	case kind.get("accel") != "":
		first, _, _ := strings.Cut(kind.get("accel"), ":")
		return first
	case strings.HasSuffix(program, "kvm"):
		return "kvm"
	}
	return "tcg"
}

// processors reads -smp and -cpu.
func (c commandLine) processors(m *machine) {
	smp := c.merged("smp")
	of := func(key string) int {
		if n, ok := smp.number(key); ok && n > 0 {
			return n
		}
		return 1
	}
	inSocket := of("dies") * of("clusters") * of("modules") * of("cores")
	n, ok := smp.number("cpus")
	switch most, limited := smp.number("maxcpus"); {
	case ok && n > 0:
	case smp.first("sockets", "cores", "threads") == "" && limited && most > 0:
		n = most
	default:
		n = of("sockets") * inSocket * of("threads")
	}
	if n > 0 && n <= unit.MaxCPU {
		m.CPUs = &n
	} else {
		m.miss("cpus", "the command line has no valid number of them")
	}
	if smp.get("cores") != "" && inSocket <= unit.MaxCPU {
		m.PerSocket = &inSocket
	}
	if m.CPUModel = known(c.merged("cpu").get("model")); m.CPUModel == nil {
		m.CPUModel = new("default of the machine type")
	}
}

// memory reads -m, and the host nodes that the memory is bound to.
func (c commandLine) memory(m *machine) {
	text := c.merged("m").get("size")
	if n, ok := size(cmp.Or(text, "128"), "M"); ok {
		m.Memory = &n
	} else {
		m.miss("memory_bytes", "-m "+clean(text)+" is not a size")
	}
	for _, o := range c.of("object") {
		if !strings.HasPrefix(o.get("qom-type"), "memory-backend-") || o.get("policy") != "bind" {
			continue
		}
		for _, list := range o.all("host-nodes") {
			nodes, err := unit.ParseList(list, unit.MaxCPU)
			if err != nil {
				continue
			}
			m.NUMANodes = append(m.NUMANodes, nodes...)
		}
	}
	slices.Sort(m.NUMANodes)
	m.NUMANodes = slices.Compact(m.NUMANodes)
}

// firmware returns UEFI or BIOS: UEFI is in flash memory, or in a file of its
// name.
func firmware(c commandLine, kind props) *string {
	image := strings.ToLower(path.Base(c.merged("bios").get("file")))
	flash := kind.get("pflash0") != ""
	for _, d := range c.of("drive") {
		flash = flash || d.get("if") == "pflash"
	}
	switch {
	case flash || strings.Contains(image, "ovmf") || strings.Contains(image, "edk2") || strings.Contains(image, "aavmf"):
		return new("efi")
	case strings.HasPrefix(kind.get("type"), "pc") || strings.HasPrefix(kind.get("type"), "q35") || kind.get("type") == "":
		return new("bios")
	}
	return nil
}

// advanced returns settings that affect traffic, by QEMU's names.
func (c commandLine) advanced(accel string) map[string]string {
	all := map[string]string{"accel": accel}
	for _, d := range c.of("device") {
		id := cmp.Or(d.get("id"), d.get("netdev"))
		if d.get("netdev") == "" || id == "" {
			continue
		}
		for _, x := range d {
			if tunes(x.key) {
				all[clean(id+"."+x.key)] = clean(x.value)
			}
		}
	}
	c.pages(all)
	return all
}

// pages adds the settings of guest memory with huge pages: in a folder
// (-mem-path, memory-backend-file), or by hugetlb (memory-backend-memfd).
func (c commandLine) pages(all map[string]string) {
	if dir := c.merged("mem-path").get("path"); dir != "" {
		all["mem-path"] = unit.Line(dir, maxPath)
	}
	for _, o := range c.of("object") {
		id := o.get("id")
		switch kind := o.get("qom-type"); {
		case kind == "memory-backend-file" && o.get("mem-path") != "":
			all[clean(id+".mem-path")] = unit.Line(o.get("mem-path"), maxPath)
		case kind == "memory-backend-memfd" && o.on("hugetlb"):
			all[clean(id+".hugetlb")] = cmp.Or(clean(o.get("hugetlbsize")), "on")
		}
	}
}

// tunes reports whether a setting of an adapter affects its traffic
// (hw/net/virtio-net.c, virtio_net_properties).
func tunes(key string) bool {
	return slices.Contains([]string{
		"mq", "vectors", "mrg_rxbuf", "rx_queue_size", "tx_queue_size", "host_mtu", "csum", "guest_csum", "gso", "packed", "rss", "hash",
		"host_tso4", "host_tso6", "host_ecn", "host_ufo", "host_uso", "guest_tso4", "guest_tso6", "guest_ecn", "guest_ufo", "guest_uso4", "guest_uso6",
		"event_idx", "indirect_desc", "iommu_platform", "ioeventfd", "tx", "x-txtimer", "x-txburst", "page-per-vq", "failover", "disable-legacy", "disable-modern",
	}, key)
}
