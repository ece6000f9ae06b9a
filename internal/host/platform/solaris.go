package platform

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"thru/internal/measure"
)

// solaris are the commands of Solaris 11 and of illumos, which share them
// (dladm(8), ipadm(8), kstat(8), prtconf(8), smbios(8), modinfo(8), svcs(1)).
// What only one of them has is in not_checked on the other.
func solaris() system {
	link := []string{"mtu_bytes", "carrier"}
	return system{finish: finishSolaris, commands: []command{
		{line: run("id -u"), facts: []string{"privileged"}, read: readID},
		{line: run("uname -nvrp"), facts: []string{"hostname", "kernel", "arch"}, read: readUname},
		{line: run("cat /etc/release"), facts: []string{"distribution"}, read: readRelease},
		{line: run("prtconf -m"), facts: []string{"memory_bytes"}, read: readPrtconf},
		{line: append(run("kstat -p -m cpu_info -s"), "/^(brand|chip_id|core_id|current_clock_Hz)$/"), read: readCPUStats,
			facts: []string{"cpu_model", "cores", "cpu.sockets", "cpu.physical_cores", "cpu.threads"}},
		{line: run("smbios -t SMB_TYPE_SYSTEM"), facts: []string{"machine"}, read: readSMBIOSSystem},
		{line: run("smbios -t SMB_TYPE_BIOS"), facts: []string{"machine.bios_version"}, read: readSMBIOSBIOS},
		{line: run("dladm show-link -p -o link,class,mtu,state,over"), facts: []string{"interfaces"}, of: everyLink, ports: link, read: readShowLink},
		{line: run("dladm show-phys -p -o link,media,state,speed,duplex,device"), ports: []string{"speed_bps", "duplex", "driver", "speed_is_nominal"}, read: readShowPhys},
		{line: run("dladm show-phys -m -p -o link,address"), ports: []string{"mac"}, read: readShowMAC},
		{line: run("dladm show-vlan -p -o link,vid,over"), of: kind(vlan), ports: []string{"vlan"}, read: readShowVLAN},
		{line: run("dladm show-aggr -p -o link,policy,lacpactivity"), of: kind(bond), ports: []string{"bond"}, read: readShowAggr},
		{line: run("dladm show-aggr -x -p -o link,port,state"), of: kind(bond), ports: []string{"bond"}, read: readShowAggrPorts},
		{line: run("dladm show-linkprop -c -o link,property,value,default"), ports: []string{"pause"}, read: readLinkProps},
		{line: run("ipadm show-addr -p -o addrobj,state,addr"), of: everyLink, ports: []string{"addresses"}, read: readShowAddr},
		{line: run("ipadm show-if -p -o ifname,state"), of: everyLink, ports: []string{"up"}, read: readShowIf},
		{line: run("ipadm show-prop -c -o proto,property,current,default"), facts: []string{"sysctls", "congestion_control", "congestion_available"}, read: readShowProp},
		{line: run("ipadm show-prop -c -o proto,property,current,default -p _wscale_always,_tstamp_always,_tstamp_if_wscale,_lso_outbound tcp"), facts: []string{"sysctls"}, read: readShowProp},
		{line: run("modinfo"), ports: []string{"driver_version"}, read: readModinfo},
		{line: append(run("kstat -p -m link -s"), "/^(ierrors|oerrors|norcvbuf|noxmtbuf)$/"), ports: []string{"error_counters"}, read: readLinkStats},
		{line: run("svcs -H -o state,fmri network/firewall network/ipfilter"), facts: []string{"firewall"}, read: readSvcs},
		{line: run("ntpq -pn"), facts: []string{"clock.synchronised"}, read: readNTP},
	}}
}

// everyLink takes all interfaces but the loopback.
func everyLink(i *measure.Interface) bool { return i.Kind == nil || *i.Kind != loopback }

// kind takes the interfaces of one kind.
func kind(name string) func(*measure.Interface) bool {
	return func(i *measure.Interface) bool { return i.Kind != nil && *i.Kind == name }
}

// readUname takes node, release, version and processor, in this order
// whatever the order of the options is.
func readUname(in io.Reader, r *reading) error {
	all, err := lines(in)
	if err != nil {
		return err
	}
	parts := strings.Fields(all[0])
	if len(parts) != 4 {
		return fmt.Errorf("%.60q is not node, release, version and processor", all[0])
	}
	r.facts.Hostname, r.facts.Kernel, r.facts.Arch = &parts[0], new(parts[1]+" "+parts[2]), &parts[3]
	return nil
}

// readRelease takes the first line of /etc/release.
func readRelease(in io.Reader, r *reading) error {
	all, err := lines(in)
	if err != nil {
		return err
	}
	r.facts.Distro = text(all[0])
	return nil
}

// readPrtconf takes the memory in MB.
func readPrtconf(in io.Reader, r *reading) error {
	all, err := lines(in)
	if err != nil {
		return err
	}
	if r.facts.Memory = many(all[0], 1<<20); r.facts.Memory == nil {
		return fmt.Errorf("%.40q is no size", all[0])
	}
	at(&r.facts.RAM).Total = r.facts.Memory
	return nil
}

// stats reads lines of kstat -p: "module:instance:name:statistic<tab>value".
func stats(in io.Reader, each func(name, statistic, value string)) error {
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

// readCPUStats counts the processors by their chips and cores.
func readCPUStats(in io.Reader, r *reading) error {
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
			if hz := many(value, 1); hz != nil && *hz > 0 && (at(&r.facts.CPU).CurrentHz == nil || *r.facts.CPU.CurrentHz < *hz) {
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
		if c, ok := core[cpu]; ok { // a core's number is not unique over chips on every release
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

// readSMBIOSSystem takes maker and model.
func readSMBIOSSystem(in io.Reader, r *reading) error {
	v, err := smbios(in)
	m := at(&r.facts.Machine)
	m.Vendor, m.Product, m.Version = said(v["manufacturer"]), said(v["product"]), said(v["version"])
	m.UUID = measure.UUID(v["uuid"])
	return err
}

// readSMBIOSBIOS takes the firmware.
func readSMBIOSBIOS(in io.Reader, r *reading) error {
	v, err := smbios(in)
	m := at(&r.facts.Machine)
	m.BIOSVendor, m.BIOSVersion, m.BIOSDate = said(v["vendor"]), said(v["versionstring"]), said(v["releasedate"])
	return err
}

// smbios reads the "key: value" lines of a structure below their headings.
func smbios(in io.Reader) (row, error) {
	list, err := blocks(in)
	v := row{}
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

// said is the text of a value that says something, or "".
func said(s string) string {
	if p := text(s); p != nil {
		return *p
	}
	return ""
}

// readShowLink takes the links by their classes.
func readShowLink(in io.Reader, r *reading) error {
	rows, err := fields(in, "link", "class", "mtu", "state", "over")
	kinds := map[string]string{"phys": physical, "aggr": bond, "vlan": vlan, "bridge": bridge, "iptun": tunnel}
	for _, w := range rows {
		if !plain(w["link"]) {
			continue
		}
		i := r.port(w["link"])
		class := w["class"]
		if k, ok := kinds[class]; ok {
			class = k
		}
		i.Kind, i.MTU, i.Carrier = text(class), count(w["mtu"]), truth(w["state"])
		if over := said(w["over"]); over != "" {
			i.Lower = strings.Fields(strings.ReplaceAll(over, ",", " "))
		}
		if class != physical && class != bond && class != vlan {
			i.Nominal = new(true)
		}
	}
	return err
}

// deviceName is a driver and the number of its device.
var deviceName = regexp.MustCompile(`^([a-z][a-z0-9_]*?)\d+$`)

// readShowPhys takes speed (Mb/s) and duplex; a speed of 0 is no link.
func readShowPhys(in io.Reader, r *reading) error {
	rows, err := fields(in, "link", "media", "state", "speed", "duplex", "device")
	for _, w := range rows {
		i := r.known(w["link"])
		if i == nil {
			continue
		}
		if bps := many(w["speed"], 1_000_000); bps != nil && *bps > 0 {
			i.SpeedBps = bps
		}
		if d := w["duplex"]; d == "full" || d == "half" {
			i.Duplex = &d
		}
		if m := deviceName.FindStringSubmatch(w["device"]); m != nil {
			i.Driver, i.Nominal = &m[1], new(paravirtual(m[1]))
		}
	}
	return err
}

// readShowMAC takes the factory addresses, the first of each link.
func readShowMAC(in io.Reader, r *reading) error {
	rows, err := fields(in, "link", "address")
	for _, w := range rows {
		if i := r.known(w["link"]); i != nil && i.MAC == nil {
			i.MAC = text(w["address"])
		}
	}
	return err
}

// readShowVLAN takes the numbers of VLANs.
func readShowVLAN(in io.Reader, r *reading) error {
	rows, err := fields(in, "link", "vid", "over")
	for _, w := range rows {
		if i := r.known(w["link"]); i != nil {
			i.VLAN = count(w["vid"])
		}
	}
	return err
}

// readShowAggr takes the policy that chooses a port: L2, L3, L4.
func readShowAggr(in io.Reader, r *reading) error {
	rows, err := fields(in, "link", "policy", "lacpactivity")
	for _, w := range rows {
		if i := r.known(w["link"]); i != nil {
			mode := "static"
			if a := said(w["lacpactivity"]); a != "" && a != "off" && a != "-" {
				mode = "802.3ad"
			}
			i.Bond = &measure.Bond{Mode: mode, Hash: w["policy"], Members: []measure.BondMember{}}
		}
	}
	return err
}

// readShowAggrPorts takes the ports; the row of the link itself has none.
func readShowAggrPorts(in io.Reader, r *reading) error {
	rows, err := fields(in, "link", "port", "state")
	for _, w := range rows {
		i := r.known(w["link"])
		if i == nil || i.Bond == nil || said(w["port"]) == "" {
			continue
		}
		m := measure.BondMember{Name: w["port"], Up: w["state"] == "up"}
		if p := r.known(m.Name); p != nil {
			m.SpeedBps = p.SpeedBps
		}
		i.Bond.Members = append(i.Bond.Members, m)
	}
	return err
}

// readLinkProps takes the properties of links that bear on throughput.
func readLinkProps(in io.Reader, r *reading) error {
	rows, err := fields(in, "link", "property", "value", "default")
	for _, w := range rows {
		i := r.known(w["link"])
		if i == nil || i.Kind == nil || *i.Kind != physical {
			continue
		}
		switch p := w["property"]; p {
		case "flowctrl":
			readFlowctrl(i, w["value"])
		case "rxrings", "txrings", "rxrings-available", "txrings-available", "cpus", "maxbw", "ring_group":
			if said(w["value"]) != "" {
				r.sysctl(w["link"]+"."+p, w["value"])
			}
		}
	}
	return err
}

// readFlowctrl takes no, rx, tx, bi (both) or auto, which leaves it open.
func readFlowctrl(i *measure.Interface, value string) {
	if slices.Contains([]string{"no", "rx", "tx", "bi"}, value) {
		i.Pause = &measure.Pause{RX: value == "rx" || value == "bi", TX: value == "tx" || value == "bi"}
	}
}

// readShowAddr takes addresses: the object "net0/v4" lies on net0.
func readShowAddr(in io.Reader, r *reading) error {
	rows, err := fields(in, "addrobj", "state", "addr")
	for _, w := range rows {
		name, _, _ := strings.Cut(w["addrobj"], "/")
		if i := r.known(name); i != nil {
			a, _, _ := strings.Cut(w["addr"], "->")
			if a = prefix([]string{a, ""}); a == "" {
				continue
			}
			i.Addrs = append(i.Addrs, a)
		}
	}
	if err == nil {
		r.seePorts("addresses")
	}
	return err
}

// readShowIf takes whether IP uses an interface.
func readShowIf(in io.Reader, r *reading) error {
	rows, err := fields(in, "ifname", "state")
	for _, w := range rows {
		if i := r.known(w["ifname"]); i != nil {
			i.Up = new(w["state"] == "ok")
		}
	}
	return err
}

// readShowProp takes the settings of the TCP stack, as "tcp.max_buf".
func readShowProp(in io.Reader, r *reading) error {
	rows, err := fields(in, "proto", "property", "current", "default")
	for _, w := range rows {
		if !slices.Contains([]string{"tcp", "udp", "ip", "ipv4"}, w["proto"]) {
			continue
		}
		value := w["current"]
		if said(value) == "" {
			continue
		}
		r.sysctl(w["proto"]+"."+w["property"], value)
		if w["proto"] != "tcp" {
			continue
		}
		switch w["property"] {
		case "cong_default", "congestion_control": // Solaris; illumos
			r.facts.Congestion = &value
		case "cong_enabled":
			r.facts.CongAvail = strings.Split(value, ",")
		}
	}
	return err
}

// module is a line of modinfo: its last part names the driver and describes it.
var module = regexp.MustCompile(`\s(\S+) \((.*)\)$`)

// versionIn finds a version at the end of a description.
var versionIn = regexp.MustCompile(`\bv?(\d+(?:\.\d+)+\S*)$`)

// readModinfo takes the versions that drivers write into their descriptions.
func readModinfo(in io.Reader, r *reading) error {
	all, err := lines(in)
	if err != nil {
		return err
	}
	for _, line := range all {
		m := module.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		v := versionIn.FindStringSubmatch(strings.TrimSpace(m[2]))
		for n := range r.facts.Interfaces {
			if i := &r.facts.Interfaces[n]; v != nil && i.Driver != nil && *i.Driver == m[1] {
				i.Version = &v[1]
			}
		}
	}
	return nil
}

// readLinkStats takes the errors of links.
func readLinkStats(in io.Reader, r *reading) error {
	return stats(in, func(name, statistic, value string) {
		if i := r.known(name); i != nil {
			r.seen[portFact(name, "error_counters")] = true
			countError(i, statistic, value)
		}
	})
}

// readSvcs takes the states of services: "online svc:/network/firewall:default".
// It ends with 1 where one of them does not exist, and prints the others.
func readSvcs(in io.Reader, r *reading) error {
	all, err := lines(in)
	if err != nil {
		return err
	}
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

// finishSolaris names the hypervisor by what it writes into SMBIOS.
func finishSolaris(r *reading) {
	if m := r.facts.Machine; m != nil {
		r.facts.Hypervisor = byMaker(m.Vendor + " " + m.Product)
	}
}

// byMaker knows the hypervisors that name themselves as the machine's maker;
// nil: it names none, which does not prove that there is none.
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
