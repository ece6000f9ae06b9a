package platform

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"thru/internal/measure"
	"thru/internal/unit"
)

// esxi returns the commands of ESXi 6.7 and later (ESXCLI reference;
// vim-cmd). They only read. Their text is the same in every language; tables
// and "key: value" blocks are as the references print them.
func esxi() system {
	return system{finish: finishESXi, commands: []command{
		{line: run("esxcli system version get"), facts: []string{"kernel", "distribution"}, read: inBlock(readVersion)},
		{line: run("esxcli software profile get"), facts: []string{"distribution"}, read: inBlock(readProfile)},
		{line: run("esxcli system hostname get"), facts: []string{"hostname"}, read: inBlock(readHostname)},
		{line: run("uname -m"), facts: []string{"arch"}, read: inLines(readArch)},
		{line: run("esxcli hardware platform get"), facts: []string{"machine", "hypervisor"}, read: inBlock(readPlatform)},
		{line: run("vim-cmd hostsvc/hosthardware"), facts: []string{"cpu_model", "machine.bios_version", "cpu.max_hz"}, read: inLines(readHostHardware)},
		{line: run("esxcli hardware cpu global get"), facts: []string{"cores", "cpu.sockets", "cpu.physical_cores", "cpu.threads", "cpu.smt_active"}, read: inBlock(readCPUGlobal)},
		{line: run("esxcli hardware memory get"), facts: []string{"memory_bytes"}, read: inBlock(readHardwareMemory)},
		{line: run("esxcli system boot device get"), facts: []string{"boot_device"}, read: inBlock(readBoot)},
		{line: run("esxcli system settings kernel list -d"), facts: []string{"settings_changed"}, read: readKernelChanged},
		{line: run("esxcli system settings kernel list -o netNetqueueEnabled"), facts: []string{"sysctls.netNetqueueEnabled"}, read: eachRow(Table, readKernelOption)},
		{line: run("esxcli system settings advanced list -t /Net"), facts: []string{"sysctls"}, read: eachRow(Blocks, readAdvanced)},
		{line: run("esxcli system settings advanced list -o /Power/CpuPolicy"), facts: []string{"cpu.governors"}, read: eachRow(Blocks, readAdvanced)},
		{line: run("esxcli network ip netstack get -N defaultTcpipStack"), facts: []string{"congestion_control"}, read: inBlock(readNetstack)},
		{line: run("esxcli network firewall get"), facts: []string{"firewall"}, read: inBlock(readFirewall)},
		{line: run("esxcli storage filesystem list"), facts: []string{"disks"}, read: eachRow(Table, readFilesystems)},
		{line: run("esxcli vm process list"), facts: []string{"hypervises"}, read: readGuests},
		{line: run("esxcli network nic list"), facts: []string{"interfaces"}, read: readNICList,
			ports: []string{"mac", "mtu_bytes", "up", "carrier", "driver", "bus", "speed_bps", "duplex", "speed_is_nominal"}},
		{line: run("esxcli hardware pci list"), ports: []string{"pci"}, read: eachRow(Blocks, ofPort("vmkernelname", readPCIList))},
		{line: run("esxcli network nic queue count get"), ports: []string{"rx_queues", "tx_queues"}, read: nics(readQueueCount)},
		{line: run("esxcli network nic coalesce get"), ports: []string{"coalescing"}, read: nics(readCoalesce)},
		{line: run("esxcli network nic pauseParams list"), ports: []string{"pause"}, read: nics(readPause)},
		{line: run("esxcli network nic tso get"), ports: []string{"offloads.tcp-segmentation-offload"}, read: nics(nicOffload("tcp-segmentation-offload", "value"))},
		{line: run("esxcli network nic cso get"), ports: []string{"offloads.tx-checksumming"}, read: nics(nicChecksum)},
		{line: run("esxcli network nic sg get"), ports: []string{"offloads.scatter-gather"}, read: nics(nicOffload("scatter-gather", "value"))},
		{line: run("esxcli network vswitch standard list"), facts: []string{"interfaces"}, read: readSwitches("vswitch")},
		{line: run("esxcli network vswitch dvs vmware list"), read: readSwitches("dvswitch")},
		{line: run("esxcli network ip interface list"), of: kind("vmkernel"), ports: []string{"mtu_bytes", "up", "mac"}, read: eachRow(Blocks, readVmk)},
		{line: run("esxcli network ip interface ipv4 get"), of: kind("vmkernel"), ports: []string{"addresses"}, read: eachRow(Table, readVmkAddrs), sees: "addresses"},
		{line: run("ntpq -pn"), facts: []string{"clock.synchronised"}, read: inLines(readNTP)},
		{line: run("esxcli network nic get -n NIC"), ports: []string{"driver_version", "firmware", "autonegotiation"}, read: inBlock(readNIC)},
		{line: run("esxcli network nic ring current get -n NIC"), ports: []string{"rings"}, read: inBlock(readRings)},
		{line: run("esxcli network nic ring preset get -n NIC"), ports: []string{"rings"}, read: inBlock(readRingsMax)},
		{line: run("esxcli network nic stats get -n NIC"), ports: []string{"error_counters"}, read: inLines(readNICStats)},
		{line: run("esxcli system module parameters list -m DRIVER"), facts: []string{"settings_changed"}, read: readParameters},
	}}
}

// readVersion reads version and build.
func readVersion(w Row, r *reading) error {
	if product, version := cleanValue(w["product"]), cleanValue(w["version"]); product != "" && version != "" {
		name := product + " " + version
		if update := cleanValue(w["update"]); update != "" && update != "0" {
			name += " Update " + update
		}
		r.facts.Distro = &name
	}
	if version, build := cleanValue(w["version"]), cleanValue(w["build"]); version != "" && build != "" {
		r.facts.Kernel = new(version + " " + build)
	}
	return nil
}

// readProfile reads the image that the host was installed from.
func readProfile(w Row, r *reading) error {
	if name := cleanValue(w["name"]); name != "" && r.facts.Distro != nil {
		r.facts.Distro = new(*r.facts.Distro + " (" + name + ")")
	}
	return nil
}

// readHostname reads the full name where there is one.
func readHostname(w Row, r *reading) error {
	if r.facts.Hostname = text(w["fullyqualifieddomainname"]); r.facts.Hostname == nil {
		r.facts.Hostname = text(w["hostname"])
	}
	return nil
}

// readArch reads the output of `uname -m`.
func readArch(all []string, r *reading) error {
	r.facts.Arch = text(all[0])
	return nil
}

// readPlatform reads maker and model; some makers are hypervisors.
func readPlatform(w Row, r *reading) error {
	m := at(&r.facts.Machine)
	m.Vendor, m.Product, m.UUID = cleanValue(w["vendorname"]), cleanValue(w["productname"]), measure.UUID(w["uuid"])
	r.facts.Hypervisor = byMaker(m.Vendor + " " + m.Product)
	if r.facts.Hypervisor == nil {
		return fmt.Errorf("thru knows no hypervisor of this manufacturer (%.40q)", m.Vendor)
	}
	return nil
}

// readHostHardware reads three values of vim-cmd's tree, whose lines are
// "name = value,": the firmware, the processor model, and the power policy.
func readHostHardware(all []string, r *reading) error {
	v, part := map[string]string{}, ""
	for _, line := range all {
		name, value, ok := strings.Cut(strings.TrimSpace(line), " = ")
		if !ok {
			if name == "(vim.host.CpuPackage) {" {
				part = "cpuPkg"
			}
			continue
		}
		if strings.HasSuffix(value, "{") || strings.HasSuffix(value, "[") {
			part = name
			continue
		}
		value = strings.Trim(strings.TrimSuffix(strings.TrimSpace(value), ","), `"`)
		if key := part + "." + name; v[key] == "" && value != "<unset>" {
			v[key] = value
		}
	}
	if len(v) == 0 {
		return fmt.Errorf("no values in %.60q", all[0])
	}
	r.facts.CPUModel = text(strings.Join(strings.Fields(v["cpuPkg.description"]), " "))
	if hz := Many(v["cpuPkg.hz"], 1); hz != nil && *hz > 0 {
		at(&r.facts.CPU).BaseHz = hz
	}
	m := at(&r.facts.Machine)
	m.BIOSVendor, m.BIOSVersion = cleanValue(v["biosInfo.vendor"]), cleanValue(v["biosInfo.biosVersion"])
	m.BIOSDate, _, _ = strings.Cut(cleanValue(v["biosInfo.releaseDate"]), "T")
	return nil
}

// readCPUGlobal reads the counts of processors.
func readCPUGlobal(w Row, r *reading) error {
	processors(r, Count(w["cpupackages"]), Count(w["cpucores"]), Count(w["cputhreads"]))
	if active := Truth(w["hyperthreadingactive"]); active != nil {
		r.facts.CPU.SMT = active
	}
	return nil
}

// readHardwareMemory reads "137386909696 Bytes".
func readHardwareMemory(w Row, r *reading) error {
	r.facts.Memory = Many(strings.TrimSuffix(w["physicalmemory"], " Bytes"), 1)
	at(&r.facts.RAM).Total = r.facts.Memory
	return nil
}

// readBoot reads the boot device of the host: a volume, or an interface.
func readBoot(w Row, r *reading) error {
	for _, key := range []string{"bootfilesystemuuid", "bootnic", "statelessbootnic"} {
		r.facts.Boot = cmp.Or(r.facts.Boot, text(w[key]))
	}
	return nil
}

// changed stores a setting that differs from the system's default.
func (r *reading) changed(name, value string) {
	measure.Put(&r.facts.Changed, name, value)
}

// readKernelChanged reads the kernel options that differ from the default:
// allowLegacyCPU is the option that admits an unsupported processor.
func readKernelChanged(in string, r *reading) error {
	rows, err := Table(in)
	if err != nil {
		return err
	}
	r.seen["settings_changed"] = true // there may be none
	for _, w := range rows {
		if name := cleanValue(w["name"]); name != "" {
			r.changed(name, w["runtime"]+" (default "+w["default"]+", configured "+w["configured"]+")")
		}
	}
	return nil
}

// readKernelOption reads the effective value of one kernel option.
func readKernelOption(w Row, r *reading) {
	if name, value := cleanValue(w["name"]), cleanValue(w["runtime"]); name != "" && value != "" {
		r.sysctl(name, value)
	}
}

// readAdvanced reads the advanced settings of the network and of the power
// policy, and stores those that differ from the default.
func readAdvanced(w Row, r *reading) {
	path := cleanValue(w["path"])
	value, usual := w["intvalue"], w["defaultintvalue"]
	if w["type"] == "string" {
		value, usual = w["stringvalue"], w["defaultstringvalue"]
	}
	if path == "" || value == "" {
		return
	}
	if strings.HasPrefix(path, "/Net/") {
		r.sysctl(path, value)
	}
	if path == "/Power/CpuPolicy" {
		at(&r.facts.CPU).Governors = []string{value}
	}
	if value != usual {
		r.changed(path, value+" (default "+usual+")")
	}
}

// readNetstack reads the congestion control of the VMkernel's own traffic.
func readNetstack(w Row, r *reading) error {
	r.facts.Congestion = text(w["congestioncontrolalgorithm"])
	return nil
}

// readFirewall reads whether the host's firewall filters the host's own
// traffic.
func readFirewall(w Row, r *reading) error {
	enabled, loaded := Truth(w["enabled"]), Truth(w["loaded"])
	if enabled == nil || loaded == nil {
		return fmt.Errorf("neither enabled nor loaded in %d values", len(w))
	}
	r.firewall("ESXi firewall", *enabled && *loaded)
	return nil
}

// readFilesystems reads the volumes with the version of VMFS.
func readFilesystems(w Row, r *reading) {
	name := cmp.Or(cleanValue(w["volumename"]), w["uuid"])
	if kind := cleanValue(w["type"]); strings.HasPrefix(kind, "VMFS-") || strings.HasPrefix(kind, "NFS") || kind == "vsan" {
		r.facts.Disks = append(r.facts.Disks, measure.Disk{Name: name, SizeBytes: Many(w["size"], 1),
			Mounts: []measure.Mount{{Path: w["mountpoint"], Type: kind, FreeBytes: Many(w["free"], 1)}}})
	}
}

// readGuests counts the running virtual machines: one block each. Without any
// the command prints nothing.
func readGuests(in string, r *reading) error {
	list, err := Blocks(in)
	if err != nil && !errors.Is(err, errNothing) {
		return err
	}
	n := unit.CountFunc(list, func(w Row) bool { return w["worldid"] != "" })
	r.guests = &n
	return nil
}

// finishESXi sets the rings whose two halves are both known, and the switch
// of each uplink.
func finishESXi(r *reading) {
	for n := range r.facts.Interfaces {
		i := &r.facts.Interfaces[n]
		if g := r.rings[i.Name]; g != nil && g.RX > 0 && g.TX > 0 && g.RXMax > 0 && g.TXMax > 0 {
			i.Rings = g
		}
		for _, p := range i.Lower {
			if l := r.known(p); l != nil && i.Kind != nil && slices.Contains([]string{"vswitch", "dvswitch"}, *i.Kind) {
				l.Master = &i.Name
			}
		}
	}
}
