package platform

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"thru/internal/measure"
)

// darwin returns the commands of macOS 11 and later (sysctl(8), ifconfig(8),
// netstat(1), system_profiler(8), pmset(1)).
func darwin() system {
	return system{commands: []command{
		{line: run("id -u"), facts: []string{"privileged"}, read: inLines(readID)},
		{line: append(run("sysctl -ie"), darwinSettings()...), read: inPairs(readDarwin),
			facts: []string{"hostname", "kernel", "distribution", "arch", "cpu_model", "cores", "memory_bytes", "hypervisor", "sysctls",
				"congestion_control", "cpu.sockets", "cpu.threads", "cpu.physical_cores", "machine"}},
		{line: run("ifconfig -av"), facts: []string{"interfaces"}, read: inLines(readIfconfig),
			ports: []string{"mac", "mtu_bytes", "speed_bps", "duplex", "offloads", "carrier"}},
		{line: run("netstat -i -d -b -n"), ports: []string{"error_counters"}, read: inLines(readNetstat)},
		{line: run("system_profiler -json SPEthernetDataType"), ports: []string{"driver", "pci"}, read: readProfiler},
		{line: run("pmset -g"), facts: []string{"cpu.energy_preference"}, read: inLines(readPmset)},
		{line: run("socketfilterfw --getglobalstate"), facts: []string{"firewall"}, read: inLines(readSocketFilter)},
		{line: run("pfctl -s info"), facts: []string{"firewall.firewalls.pf"}, read: inLines(readPf)},
		{line: run("systemsetup -getusingnetworktime"), facts: []string{"clock.synchronised"}, read: inLines(readNetworkTime)},
	}}
}

// darwinSettings lists the sysctl names to read; releases differ.
func darwinSettings() []string {
	return strings.Fields(`kern.hostname kern.osrelease kern.osproductversion hw.machine hw.model hw.memsize hw.packages hw.physicalcpu
		hw.logicalcpu hw.cpufrequency hw.cpufrequency_max machdep.cpu.brand_string kern.hv_vmm_present
		kern.ipc.maxsockbuf kern.ipc.somaxconn kern.ipc.nmbclusters net.inet.tcp.sendspace net.inet.tcp.recvspace
		net.inet.tcp.autorcvbufmax net.inet.tcp.autosndbufmax net.inet.tcp.doautorcvbuf net.inet.tcp.doautosndbuf
		net.inet.tcp.win_scale_factor net.inet.tcp.rfc1323 net.inet.tcp.sack net.inet.tcp.ecn net.inet.tcp.ecn_initiate_out
		net.inet.tcp.ecn_negotiate_in net.inet.tcp.mssdflt net.inet.tcp.tso net.inet.tcp.delayed_ack net.inet.tcp.path_mtu_discovery
		net.inet.tcp.use_newreno net.inet.tcp.cubic_minor_fixes net.inet.tcp.use_ledbat net.inet.tcp.background_io_enabled
		net.inet.udp.recvspace net.inet.udp.maxdgram net.inet.ip.forwarding net.link.generic.system.sndq_maxlen`)
}

// readDarwin reads the values of sysctl. macOS does not name the congestion
// control in use.
func readDarwin(v map[string]string, r *reading) error {
	f := &r.facts
	f.Hostname, f.Kernel, f.Arch, f.CPUModel = text(v["kern.hostname"]), text(v["kern.osrelease"]), text(v["hw.machine"]), text(v["machdep.cpu.brand_string"])
	if version := text(v["kern.osproductversion"]); version != nil {
		f.Distro = new("macOS " + *version)
	}
	switch v["kern.hv_vmm_present"] {
	case "0":
		f.Hypervisor = new("none")
	case "1":
		f.Hypervisor = new("unknown hypervisor")
	}
	f.Memory = Many(v["hw.memsize"], 1)
	at(&f.RAM).Total = f.Memory
	if model := text(v["hw.model"]); model != nil {
		f.Machine = &measure.Machine{Vendor: "Apple", Product: *model}
	}
	processors(r, Count(v["hw.packages"]), Count(v["hw.physicalcpu"]), Count(v["hw.logicalcpu"]))
	if hz := Many(v["hw.cpufrequency_max"], 1); hz != nil && *hz > 0 {
		f.CPU.MaxHz = hz
	}
	keep(v, r)
	return nil
}

// readProfiler reads the Ethernet devices of system_profiler.
func readProfiler(in string, r *reading) error {
	var doc struct {
		Devices []struct {
			Name    string `json:"spethernet_BSD_Device_Name"`
			BSD     string `json:"spethernet_BSD_Name"`
			Driver  string `json:"spethernet_driver"`
			Version string `json:"spethernet_driver_version"`
			Vendor  string `json:"spethernet_vendor-id"`
			Device  string `json:"spethernet_device-id"`
			Bus     string `json:"spethernet_bus"`
		} `json:"SPEthernetDataType"`
	}
	if err := json.NewDecoder(strings.NewReader(in)).Decode(&doc); err != nil {
		return fmt.Errorf("not the documented JSON: %w", err)
	}
	for _, d := range doc.Devices {
		i := r.known(cmp.Or(d.Name, d.BSD))
		if i == nil {
			continue
		}
		i.Driver, i.Version, i.Bus = text(d.Driver), text(d.Version), text(d.Bus)
		if d.Vendor != "" {
			p := at(&i.PCI)
			p.Vendor, p.Device = d.Vendor, d.Device
		}
	}
	return nil
}

// readPmset reads " lowpowermode   0".
func readPmset(all []string, r *reading) error {
	for _, line := range all {
		if parts := strings.Fields(line); len(parts) > 1 && (parts[0] == "lowpowermode" || parts[0] == "powermode") {
			modes := map[string]string{"0": "automatic", "1": "low power", "2": "high power"} // pmset(1)
			if m, ok := modes[parts[1]]; ok {
				at(&r.facts.CPU).Preference = &m
			}
		}
	}
	return nil
}

// readSocketFilter reads "Firewall is enabled. (State = 1)"; 2 blocks all
// incoming connections.
func readSocketFilter(all []string, r *reading) error {
	_, state, ok := strings.Cut(all[0], "State = ")
	if n, digit := number(strings.Trim(state, ") ")); ok && digit {
		r.firewall("application firewall", n > 0)
		return nil
	}
	return fmt.Errorf("no state in %.60q", all[0])
}

// readNetworkTime reads "Network Time: On" or Off. Only Off says something
// about the clock: a configured server need not have answered.
func readNetworkTime(all []string, r *reading) error {
	_, state, _ := strings.Cut(all[0], "Network Time:")
	on := Truth(state)
	switch {
	case on == nil: // without root it asks for root, and exits with 0
		return fmt.Errorf("%.100s", all[0])
	case *on:
		return errors.New("network time is on, but the system does not report whether the clock is synchronised")
	}
	at(&r.facts.Clock).Synchronised = new(false)
	return nil
}
