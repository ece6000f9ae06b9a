package platform

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"thru/internal/measure"
	"thru/internal/unit"
)

// solaris returns the commands of Solaris 11 and of illumos, which share them
// (dladm(8), ipadm(8), kstat(8), prtconf(8), smbios(8), modinfo(8), svcs(1)).
// A command that only one of them has leaves its facts in not_checked on the
// other.
func solaris() system {
	link := []string{"mtu_bytes", "carrier"}
	return system{finish: finishSolaris, commands: []command{
		{line: run("id -u"), facts: []string{"privileged"}, read: inLines(readID)},
		{line: run("uname -nvrp"), facts: []string{"hostname", "kernel", "arch"}, read: inLines(readUname)},
		{line: run("cat /etc/release"), facts: []string{"distribution"}, read: inLines(readRelease)},
		{line: run("prtconf -m"), facts: []string{"memory_bytes"}, read: inLines(readPrtconf)},
		{line: append(run("kstat -p -m cpu_info -s"), "/^(brand|chip_id|core_id|current_clock_Hz)$/"), read: readCPUStats,
			facts: []string{"cpu_model", "cores", "cpu.sockets", "cpu.physical_cores", "cpu.threads"}},
		{line: run("smbios -t SMB_TYPE_SYSTEM"), facts: []string{"machine"}, read: readSMBIOSSystem},
		{line: run("smbios -t SMB_TYPE_BIOS"), facts: []string{"machine.bios_version"}, read: readSMBIOSBIOS},
		{line: run("dladm show-link -p -o link,class,mtu,state,over"), facts: []string{"interfaces"}, of: everyLink, ports: link, row: readShowLink},
		{line: run("dladm show-phys -p -o link,media,state,speed,duplex,device"), ports: []string{"speed_bps", "duplex", "driver", "speed_is_nominal"}, row: ofPort("link", readShowPhys)},
		{line: run("dladm show-phys -m -p -o link,address"), ports: []string{"mac"}, row: ofPort("link", readShowMAC)},
		{line: run("dladm show-vlan -p -o link,vid,over"), of: kind(vlan), ports: []string{"vlan"}, row: ofPort("link", readShowVLAN)},
		{line: run("dladm show-aggr -p -o link,policy,lacpactivity"), of: kind(bond), ports: []string{"bond"}, row: ofPort("link", readShowAggr)},
		{line: run("dladm show-aggr -x -p -o link,port,state"), of: kind(bond), ports: []string{"bond"}, row: ofPort("link", readShowAggrPorts)},
		{line: run("dladm show-linkprop -c -o link,property,value,default"), ports: []string{"pause"}, row: ofPort("link", readLinkProps)},
		{line: run("ipadm show-addr -p -o addrobj,state,addr"), of: everyLink, ports: []string{"addresses"}, row: readShowAddr, sees: "addresses"},
		{line: run("ipadm show-if -p -o ifname,state"), of: everyLink, ports: []string{"up"}, row: ofPort("ifname", readShowIf)},
		{line: run("ipadm show-prop -c -o proto,property,current,default"), facts: []string{"sysctls", "congestion_control", "congestion_available"}, row: readShowProp},
		{line: run("ipadm show-prop -c -o proto,property,current,default -p _wscale_always,_tstamp_always,_tstamp_if_wscale,_lso_outbound tcp"), facts: []string{"sysctls"}, row: readShowProp},
		{line: run("modinfo"), ports: []string{"driver_version"}, read: inLines(readModinfo)},
		{line: append(run("kstat -p -m link -s"), "/^(ierrors|oerrors|norcvbuf|noxmtbuf)$/"), ports: []string{"error_counters"}, read: readLinkStats},
		{line: run("svcs -H -o state,fmri network/firewall network/ipfilter"), facts: []string{"firewall"}, read: inLines(readSvcs)},
		{line: run("ntpq -pn"), facts: []string{"clock.synchronised"}, read: inLines(readNTP)},
	}}
}

// everyLink selects all interfaces but the loopback.
func everyLink(i *measure.Interface) bool { return i.Kind == nil || *i.Kind != loopback }

// kind returns a selector of the interfaces of one kind.
func kind(name string) func(*measure.Interface) bool {
	return func(i *measure.Interface) bool { return i.Kind != nil && *i.Kind == name }
}

// readUname reads node, release, version and processor; uname prints them in
// this order whatever the order of its options.
func readUname(all []string, r *reading) error {
	parts := strings.Fields(all[0])
	if len(parts) != 4 {
		return fmt.Errorf("%.60q is not node, release, version and processor", all[0])
	}
	r.facts.Hostname, r.facts.Kernel, r.facts.Arch = &parts[0], new(parts[1]+" "+parts[2]), &parts[3]
	return nil
}

// readRelease reads the first line of /etc/release.
func readRelease(all []string, r *reading) error {
	r.facts.Distro = text(all[0])
	return nil
}

// readPrtconf reads the memory in MB.
func readPrtconf(all []string, r *reading) error {
	if r.facts.Memory = Many(all[0], 1<<20); r.facts.Memory == nil {
		return fmt.Errorf("%.40q is not a size", all[0])
	}
	at(&r.facts.RAM).Total = r.facts.Memory
	return nil
}

// stats reads lines of kstat -p: "module:instance:name:statistic<tab>value".
func stats(in string, each func(name, statistic, value string)) error {
	all, err := lines(in)
	if err != nil {
		return err
	}
	found := false
	for _, line := range all {
		key, value, ok := strings.Cut(line, "\t")
		if parts := strings.Split(key, ":"); ok && len(parts) == 4 {
			each(parts[2], parts[3], strings.TrimSpace(value))
			found = true
		}
	}
	if !found {
		return fmt.Errorf("no statistics in %.60q", all[0])
	}
	return nil
}

// readCPUStats counts chips and cores.
func readCPUStats(in string, r *reading) error {
	chip, core := map[string]string{}, map[string]string{}
	err := stats(in, func(name, statistic, value string) {
		switch statistic {
		case "brand":
			r.facts.CPUModel = text(value)
		case "chip_id":
			chip[name] = value
		case "core_id":
			core[name] = value
		case "current_clock_Hz":
			if hz := Many(value, 1); hz != nil && *hz > 0 && (at(&r.facts.CPU).CurrentHz == nil || *r.facts.CPU.CurrentHz < *hz) {
				r.facts.CPU.CurrentHz = hz
			}
		}
	})
	if err != nil || len(chip) == 0 {
		return err
	}
	chips, cores := map[string]bool{}, map[string]bool{}
	for cpu, id := range chip {
		chips[id] = true
		if c, ok := core[cpu]; ok { // on some releases a core's number is not unique over chips
			cores[id+" "+c] = true
		}
	}
	var physicalCores *int
	if len(core) == len(chip) {
		physicalCores = new(len(cores))
	}
	processors(r, new(len(chips)), physicalCores, new(len(chip)))
	return nil
}

// readSMBIOSSystem reads maker and model.
func readSMBIOSSystem(in string, r *reading) error {
	v, err := smbios(in)
	m := at(&r.facts.Machine)
	m.Vendor, m.Product, m.Version = cleanValue(v["manufacturer"]), cleanValue(v["product"]), cleanValue(v["version"])
	m.UUID = measure.UUID(v["uuid"])
	return err
}

// readSMBIOSBIOS reads the firmware.
func readSMBIOSBIOS(in string, r *reading) error {
	v, err := smbios(in)
	m := at(&r.facts.Machine)
	m.BIOSVendor, m.BIOSVersion, m.BIOSDate = cleanValue(v["vendor"]), cleanValue(v["versionstring"]), cleanValue(v["releasedate"])
	return err
}

// smbios reads the "key: value" lines of a structure below their headings.
func smbios(in string) (Row, error) {
	list, err := Blocks(in)
	v := Row{}
	for _, w := range list {
		for key, value := range w {
			if _, ok := v[key]; !ok {
				v[key] = value
			}
		}
	}
	if err == nil && len(v) < 2 {
		err = fmt.Errorf("no structure in %.40q", v[""])
	}
	return v, err
}

// cleanValue returns the text of a value, or "" for a placeholder.
func cleanValue(s string) string {
	if p := text(s); p != nil {
		return *p
	}
	return ""
}

// readShowLink reads the links and their classes.
func readShowLink(w Row, r *reading) {
	if !Plain(w["link"]) {
		return
	}
	i := r.port(w["link"])
	class := w["class"]
	if k, ok := map[string]string{"phys": physical, "aggr": bond, "vlan": vlan, "bridge": bridge, "iptun": tunnel}[class]; ok {
		class = k
	}
	i.Kind, i.MTU, i.Carrier = text(class), Count(w["mtu"]), Truth(w["state"])
	if over := cleanValue(w["over"]); over != "" {
		i.Lower = Words(over)
	}
	if class != physical && class != bond && class != vlan {
		i.Nominal = new(true)
	}
}

// deviceName matches a driver name and the device's number.
var deviceName = unit.Pattern(`^([a-z][a-z0-9_]*?)\d+$`)

// readShowPhys reads speed (Mb/s) and duplex; a speed of 0 is no link.
func readShowPhys(i *measure.Interface, w Row, _ *reading) {
	if bps := Many(w["speed"], 1_000_000); bps != nil && *bps > 0 {
		i.SpeedBps = bps
	}
	if d := w["duplex"]; d == "full" || d == "half" {
		i.Duplex = &d
	}
	if m := deviceName().FindStringSubmatch(w["device"]); m != nil {
		i.Driver, i.Nominal = &m[1], new(measure.ParavirtualDriver(m[1]))
	}
}

// readShowMAC reads the factory address of each link, which comes first.
func readShowMAC(i *measure.Interface, w Row, _ *reading) {
	i.MAC = cmp.Or(i.MAC, text(w["address"]))
}

// readShowVLAN reads the VLAN numbers.
func readShowVLAN(i *measure.Interface, w Row, _ *reading) { i.VLAN = Count(w["vid"]) }

// readShowAggr reads the policy that chooses a port: L2, L3, L4.
func readShowAggr(i *measure.Interface, w Row, _ *reading) {
	mode := "static"
	if a := cleanValue(w["lacpactivity"]); a != "" && a != "off" && a != "-" {
		mode = "802.3ad"
	}
	i.Bond = &measure.Bond{Mode: mode, Hash: w["policy"], Members: []measure.BondMember{}}
}

// readShowAggrPorts reads the ports; the row of the link itself has none.
func readShowAggrPorts(i *measure.Interface, w Row, r *reading) {
	if i.Bond == nil || cleanValue(w["port"]) == "" {
		return
	}
	m := measure.BondMember{Name: w["port"], Up: w["state"] == "up"}
	if p := r.known(m.Name); p != nil {
		m.SpeedBps = p.SpeedBps
	}
	i.Bond.Members = append(i.Bond.Members, m)
}

// readLinkProps reads the link properties that affect throughput.
func readLinkProps(i *measure.Interface, w Row, r *reading) {
	if i.Kind == nil || *i.Kind != physical {
		return
	}
	value := w["value"]
	switch p := w["property"]; p {
	case "flowctrl": // bi means both; auto is undecided
		if slices.Contains([]string{"no", "rx", "tx", "bi"}, value) {
			i.Pause = &measure.Pause{RX: value == "rx" || value == "bi", TX: value == "tx" || value == "bi"}
		}
	case "rxrings", "txrings", "rxrings-available", "txrings-available", "cpus", "maxbw", "ring_group":
		if cleanValue(value) != "" {
			r.sysctl(w["link"]+"."+p, value)
		}
	}
}

// readShowAddr reads addresses: the object "net0/v4" belongs to net0.
func readShowAddr(w Row, r *reading) {
	name, _, _ := strings.Cut(w["addrobj"], "/")
	if i := r.known(name); i != nil {
		a, _, _ := strings.Cut(w["addr"], "->")
		addAddr(i, a, "")
	}
}

// readShowIf reads whether IP uses an interface.
func readShowIf(i *measure.Interface, w Row, _ *reading) { i.Up = new(w["state"] == "ok") }

// readShowProp reads the settings of the TCP stack, as "tcp.max_buf".
func readShowProp(w Row, r *reading) {
	value := w["current"]
	if !slices.Contains([]string{"tcp", "udp", "ip", "ipv4"}, w["proto"]) || cleanValue(value) == "" {
		return
	}
	name := w["proto"] + "." + w["property"]
	r.sysctl(name, value)
	switch name {
	case "tcp.cong_default", "tcp.congestion_control": // Solaris; illumos
		r.facts.Congestion = &value
	case "tcp.cong_enabled":
		r.facts.CongAvail = strings.Split(value, ",")
	}
}

// module matches a line of modinfo: the driver's name and description come
// last.
var module = unit.Pattern(`\s(\S+) \((.*)\)$`)

// versionIn matches a version at the end of a description.
var versionIn = unit.Pattern(`\bv?(\d+(?:\.\d+)+\S*)$`)

// readModinfo reads the versions that drivers write into their descriptions.
func readModinfo(all []string, r *reading) error {
	for _, line := range all {
		m := module().FindStringSubmatch(line)
		if m == nil {
			continue
		}
		v := versionIn().FindStringSubmatch(strings.TrimSpace(m[2]))
		for n := range r.facts.Interfaces {
			if i := &r.facts.Interfaces[n]; v != nil && i.Driver != nil && *i.Driver == m[1] {
				i.Version = &v[1]
			}
		}
	}
	return nil
}

// readLinkStats reads the errors of links.
func readLinkStats(in string, r *reading) error {
	return stats(in, func(name, statistic, value string) {
		if i := r.known(name); i != nil {
			r.seen[portFact(name, "error_counters")] = true
			countError(i, statistic, value)
		}
	})
}

// readSvcs reads the states of services: "online
// svc:/network/firewall:default". The command exits with 1 where a service
// does not exist, and prints the others.
func readSvcs(all []string, r *reading) error {
	for _, line := range all {
		parts := strings.Fields(line)
		if len(parts) != 2 || !strings.HasPrefix(parts[1], "svc:/") {
			continue
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(parts[1], "svc:/network/"), ":")
		switch parts[0] {
		case "online":
			r.firewall(name, true)
		case "disabled", "offline", "uninitialized":
			r.firewall(name, false)
		}
	}
	return nil
}

// finishSolaris sets the hypervisor by its SMBIOS strings.
func finishSolaris(r *reading) {
	if m := r.facts.Machine; m != nil {
		r.facts.Hypervisor = byMaker(m.Vendor + " " + m.Product)
	}
}

// byMaker returns the hypervisor by the machine's maker; nil for another
// maker, which does not prove that there is no hypervisor.
func byMaker(machine string) *string {
	for _, n := range [][2]string{{"VMware", "vmware"}, {"VirtualBox", "virtualbox"}, {"innotek", "virtualbox"},
		{"Microsoft Corporation Virtual Machine", "hyperv"}, {"BHYVE", "bhyve"}, {"Parallels", "parallels"},
		{"KVM", "kvm"}, {"Amazon EC2", "kvm"}, {"Google Compute Engine", "kvm"}, {"OpenStack", "kvm"},
		{"Joyent", "kvm"}, {"Xen", "xen"}, {"QEMU", "qemu"}} {
		if strings.Contains(machine, n[0]) {
			return &n[1]
		}
	}
	return nil
}
