package platform

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"thru/internal/host/pcie"
	"thru/internal/measure"
	"thru/internal/unit"
)

// freebsd returns the commands of FreeBSD 12 and later (sysctl(8),
// ifconfig(8), kenv(1), pciconf(8), netstat(1), vmstat(8), pfctl(8)).
func freebsd() system {
	return system{commands: []command{
		{line: run("id -u"), facts: []string{"privileged"}, read: inLines(readID)},
		{line: append(run("sysctl -ie"), freebsdSettings()...), read: readFreeBSD,
			facts: []string{"hostname", "kernel", "distribution", "arch", "cpu_model", "cores", "memory_bytes", "hypervisor", "sysctls",
				"congestion_control", "congestion_available", "cpu.threads", "cpu.physical_cores", "clock.source", "ram.available_bytes"}},
		{line: run("kenv"), facts: []string{"machine"}, read: inPairs(readKenv)},
		{line: run("ifconfig -am"), facts: []string{"interfaces"}, read: inLines(readIfconfig),
			ports: []string{"mac", "mtu_bytes", "speed_bps", "duplex", "offloads", "carrier", "pause"}},
		{line: run("netstat -i -d -b -n"), ports: []string{"error_counters"}, read: inLines(readNetstat)},
		{line: run("pciconf -lcv"), ports: []string{"pci", "pci.usable_bps", "bus"}, read: inLines(readPciconf)},
		{line: run("vmstat -ai"), ports: []string{"interrupts"}, read: inLines(readVmstat)},
		{line: run("pfctl -s info"), facts: []string{"firewall.firewalls.pf"}, read: inLines(readPf)},
		{line: run("ntpq -pn"), facts: []string{"clock.synchronised"}, read: inLines(readNTP)},
		{line: run("sysctl -ie dev.UNIT"), ports: []string{"driver", "driver_version", "firmware", "rx_queues", "tx_queues", "speed_is_nominal"}, read: inPairs(readDevice)},
	}}
}

// freebsdSettings lists the sysctl names to read. Option -i skips those that
// a release does not have.
func freebsdSettings() []string {
	return strings.Fields(`kern.hostname kern.ostype kern.osrelease kern.version hw.machine_arch hw.model hw.ncpu hw.physmem hw.pagesize
		vm.stats.vm.v_free_count vm.stats.vm.v_inactive_count kern.vm_guest kern.smp.cpus kern.smp.cores kern.smp.threads_per_core
		kern.timecounter.hardware kern.timecounter.choice dev.cpu.0.freq dev.cpu.0.freq_levels dev.cpu.0.cx_lowest hw.acpi.cpu.cx_lowest
		dev.cpufreq.0.freq_driver vm.ndomains net.inet.ip.fw.enable net.inet.ip.forwarding
		kern.ipc.maxsockbuf kern.ipc.nmbclusters kern.ipc.nmbjumbop kern.ipc.nmbjumbo9 kern.ipc.somaxconn
		net.inet.tcp.sendspace net.inet.tcp.recvspace net.inet.tcp.sendbuf_max net.inet.tcp.recvbuf_max net.inet.tcp.sendbuf_auto
		net.inet.tcp.recvbuf_auto net.inet.tcp.sendbuf_inc net.inet.tcp.recvbuf_inc net.inet.tcp.rfc1323 net.inet.tcp.sack.enable
		net.inet.tcp.cc.algorithm net.inet.tcp.cc.available net.inet.tcp.ecn.enable net.inet.tcp.tso net.inet.tcp.mssdflt
		net.inet.tcp.path_mtu_discovery net.inet.tcp.delayed_ack net.inet.tcp.initcwnd_segments net.inet.tcp.abc_l_var
		net.inet.tcp.minmss net.inet.tcp.syncookies net.inet.tcp.functions_default net.inet.tcp.hostcache.enable net.inet.udp.recvspace
		net.inet.udp.maxdgram net.isr.dispatch net.isr.maxthreads net.isr.bindthreads net.isr.defaultqlimit net.inet.rss.enabled
		net.inet.rss.bits net.link.ifqmaxlen hw.ix.enable_aim`)
}

// readFreeBSD reads the values of sysctl.
func readFreeBSD(in string, r *reading) error {
	v, err := pairs(in)
	if err != nil {
		return err
	}
	f := &r.facts
	f.Hostname, f.Kernel, f.Arch, f.CPUModel = text(v["kern.hostname"]), text(v["kern.osrelease"]), text(v["hw.machine_arch"]), text(v["hw.model"])
	if f.Kernel != nil {
		f.Distro = new("FreeBSD " + *f.Kernel)
	}
	if name := v["kern.vm_guest"]; name != "" {
		f.Hypervisor = guestName(name)
	}
	f.Memory = Many(v["hw.physmem"], 1)
	at(&f.RAM).Total = f.Memory
	if page, ok := number(v["hw.pagesize"]); ok && page > 0 && page <= 1<<20 {
		free, inactive := Many(v["vm.stats.vm.v_free_count"], page), Many(v["vm.stats.vm.v_inactive_count"], page)
		if free != nil && inactive != nil {
			f.RAM.Available = new(*free + *inactive)
		}
	}
	processors(r, nil, Count(v["kern.smp.cores"]), Count(v["hw.ncpu"]))
	if mhz := Many(v["dev.cpu.0.freq"], 1_000_000); mhz != nil && *mhz > 0 {
		f.CPU.CurrentHz = mhz
	}
	f.CPU.Driver, f.CPU.IdleState = text(v["dev.cpufreq.0.freq_driver"]), text(v["dev.cpu.0.cx_lowest"])
	at(&f.Clock).Source = text(v["kern.timecounter.hardware"])
	for _, c := range strings.Fields(v["kern.timecounter.choice"]) {
		name, _, _ := strings.Cut(c, "(")
		f.Clock.Available = append(f.Clock.Available, name)
	}
	f.Congestion, f.CongAvail = text(v["net.inet.tcp.cc.algorithm"]), available(in)
	keep(v, r)
	delete(r.facts.Sysctls, "net.inet.tcp.cc.available") // a table, parsed above
	if on := Truth(v["net.inet.ip.fw.enable"]); on != nil {
		r.firewall("ipfw", *on)
	}
	return nil
}

// guestName maps kern.vm_guest to the name that Linux hosts report.
func guestName(name string) *string {
	other := map[string]string{"hv": "hyperv", "vbox": "virtualbox", "generic": "unknown hypervisor"}
	if n, ok := other[name]; ok {
		name = n
	}
	return &name
}

// available reads the congestion controls: "newreno, cubic" on one line, or,
// since FreeBSD 13, a table with a star at the one in use and a count of
// connections.
func available(text string) []string {
	_, rest, ok := strings.Cut(text, "net.inet.tcp.cc.available=")
	if !ok {
		return nil
	}
	var list []string
	for n, line := range strings.Split(rest, "\n") {
		parts := strings.Fields(strings.ReplaceAll(line, ",", " "))
		switch {
		case n == 0:
			list = append(list, parts...)
		case strings.Contains(line, "=") || len(parts) == 0:
			return list
		case parts[0] != "CCmod" && len(parts) <= 3:
			list = append(list, parts[0])
		}
		if n == 0 && len(parts) > 0 && parts[0] == "CCmod" {
			list = nil
		}
	}
	return list
}

// readKenv reads the SMBIOS variables of the kernel's environment.
func readKenv(v map[string]string, r *reading) error {
	value := func(key string) string { return cleanValue(v["smbios."+key]) }
	*at(&r.facts.Machine) = measure.Machine{
		Vendor: value("system.maker"), Product: value("system.product"), Version: value("system.version"),
		Board:   strings.TrimSpace(value("planar.maker") + " " + value("planar.product")),
		Chassis: value("chassis.type"), BIOSVendor: value("bios.vendor"), BIOSVersion: value("bios.version"), BIOSDate: value("bios.reldate"),
		UUID: measure.UUID(v["smbios.system.uuid"]),
	}
	if n := Count(v["smbios.socket.populated"]); n != nil && *n > 0 {
		at(&r.facts.CPU).Sockets = n
	}
	return nil
}

// The formats of pciconf and vmstat, and the queues in sysctl names.
var (
	pciHead  = unit.Pattern(`^([a-z_]+\d+)@(pci\d+:\d+:\d+:\d+):.*?(?:\svendor=(0x[0-9a-f]+) device=(0x[0-9a-f]+)|\schip=(0x[0-9a-f]{4})([0-9a-f]{4}))`)
	pciLink  = unit.Pattern(`link x(\d+)\(x(\d+)\)`)
	pciSpeed = unit.Pattern(`speed ([\d.]+)\(([\d.]+)\)`)
	irqLine  = unit.Pattern(`^irq(\d+): ([a-z_]+\d+)(\S*)\s+(\d+)\s+\d+$`)
	rxQueue  = unit.Pattern(`\.(?:iflib\.)?(?:rxq|rx_?queue|rxqueue|queue|rxstat)(\d+)\.`)
	txQueue  = unit.Pattern(`\.(?:iflib\.)?(?:txq|tx_?queue|txqueue|queue|txstat)(\d+)\.`)
)

// readPciconf reads devices by driver and unit, which form the interface's
// name, with "cap 10" (PCI Express) for root.
func readPciconf(all []string, r *reading) error {
	var i *measure.Interface
	for _, line := range all {
		if m := pciHead().FindStringSubmatch(line); m != nil {
			if i = r.known(m[1]); i != nil {
				i.Bus = &m[2]
				p := at(&i.PCI)
				p.Vendor, p.Device = m[3], m[4]
				if r.facts.Privileged == nil || !*r.facts.Privileged {
					r.blame(portFact(i.Name, "pci.usable_bps"), onlyRoot) // only root gets the lines below
				}
				if m[5] != "" { // before FreeBSD 13: chip=0xDDDDVVVV
					p.Vendor, p.Device = "0x"+m[6], m[5]
				}
			}
		} else if strings.HasPrefix(line, "\t") || strings.HasPrefix(line, " ") {
			if i == nil {
				continue
			}
			if m := pciLink().FindStringSubmatch(line); m != nil && m[1] != "0" {
				i.PCI.Lanes, i.PCI.MaxLanes = between(m[1], pcie.MostLanes), between(m[2], pcie.MostLanes)
			}
			if m := pciSpeed().FindStringSubmatch(line); m != nil {
				i.PCI.Gen, i.PCI.MaxGen = generation(m[1]), generation(m[2])
			}
		} else {
			i = nil
		}
	}
	return nil
}

// generation returns the PCI Express generation of a rate in GT/s.
func generation(rate string) *int {
	if r, err := strconv.ParseFloat(rate, 64); err == nil && pcie.Generation(r) > 0 {
		return new(pcie.Generation(r))
	}
	return nil
}

// readVmstat reads the interrupts: "irq256: ix0:rxq0   1234   5".
func readVmstat(all []string, r *reading) error {
	for _, line := range all {
		m := irqLine().FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		if i, n := r.known(m[2]), Count(m[1]); i != nil && n != nil {
			i.IRQs = append(i.IRQs, measure.IRQ{Number: *n, Name: m[2] + m[3]})
		}
	}
	return nil
}

// readPf reads "Status: Enabled for 1 days".
func readPf(all []string, r *reading) error {
	for _, line := range all {
		if parts := strings.Fields(line); len(parts) > 1 && parts[0] == "Status:" {
			if on := Truth(parts[1]); on != nil {
				r.firewall("pf", *on)
			}
		}
	}
	return nil
}

// readDevice reads the sysctl tree of one device: "dev.ix.0.%driver=ix".
func readDevice(v map[string]string, r *reading) error {
	i := r.known(r.nic)
	if i == nil {
		return nil
	}
	unit := "dev." + unitOf(r.nic) + "."
	value := func(keys ...string) *string {
		for _, k := range keys {
			if p := text(v[unit+k]); p != nil {
				return p
			}
		}
		return nil
	}
	i.Driver = value("%driver")
	i.Version = value("iflib.driver_version", "driver_version", "version")
	i.Firmware = value("fw_version", "firmware_version", "hw.fw_version", "fw_ver", "nvm_version")
	if n := value("%domain"); n != nil {
		i.NUMANode = Count(*n)
	}
	if p := value("%pnpinfo"); p != nil {
		for _, word := range strings.Fields(*p) {
			key, id, _ := strings.Cut(word, "=")
			switch key {
			case "vendor":
				at(&i.PCI).Vendor = id
			case "device":
				at(&i.PCI).Device = id
			}
		}
	}
	i.Queues, i.TxQueues = numbered(v, rxQueue()), numbered(v, txQueue())
	if i.Driver != nil {
		i.Nominal = new(measure.ParavirtualDriver(*i.Driver))
	}
	for _, k := range []string{"fc", "iflib.override_nrxds", "iflib.override_ntxds", "iflib.override_nrxqs", "iflib.override_ntxqs", "enable_aim", "rx_itr", "tx_itr", "rx_processing_limit"} {
		if value, ok := v[unit+k]; ok {
			r.sysctl(unit+k, value)
		}
	}
	return nil
}

// numbered counts the distinct numbers that the names of values have at a
// place; nil where no name has one.
func numbered(values map[string]string, place *regexp.Regexp) *int {
	var seen []int
	for name := range values {
		if m := place.FindStringSubmatch(name); m != nil {
			if n, err := strconv.Atoi(m[1]); err == nil && !slices.Contains(seen, n) && len(seen) < maxQueues {
				seen = append(seen, n)
			}
		}
	}
	if len(seen) == 0 {
		return nil
	}
	return new(len(seen))
}

// maxQueues is more than any interface has.
const maxQueues = 4096
