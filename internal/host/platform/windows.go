package platform

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"thru/internal/host/pcie"
	"thru/internal/measure"
)

// query is one PowerShell expression and the properties to read of each
// resulting object. Enumerations arrive by their names, which are not
// translated; translated texts are not read.
type query struct {
	name, expression string
	properties       string
	facts, ports     []string
	read             func(*reading, []Row)
}

// windows reads all in one PowerShell process, since its start takes most of
// the time (Windows 10, Server 2016 and later: modules CimCmdlets,
// NetAdapter, NetTCPIP, NetSecurity).
func windows() system {
	c := command{line: []string{"powershell", "-NoProfile", "-NonInteractive", "-ExecutionPolicy", "Bypass", "-Command", script(windowsQueries())},
		facts: []string{"interfaces"}, read: readWindows}
	for _, q := range windowsQueries() {
		c.shows = append(c.shows, "powershell: "+q.expression)
		c.facts = append(c.facts, q.facts...)
		c.ports = append(c.ports, q.ports...)
	}
	return system{commands: []command{c}}
}

// windowsQueries lists the queries; those that list the interfaces come
// before those that add facts to them.
func windowsQueries() []query {
	return []query{
		{"admin", "[Security.Principal.WindowsPrincipal]::new([Security.Principal.WindowsIdentity]::GetCurrent()) | ForEach-Object { [pscustomobject]@{ Admin = $_.IsInRole([Security.Principal.WindowsBuiltInRole]::Administrator) } }",
			"Admin", []string{"privileged"}, nil, winAdmin},
		{"os", "Get-CimInstance Win32_OperatingSystem", "Caption Version BuildNumber TotalVisibleMemorySize FreePhysicalMemory",
			[]string{"distribution", "kernel", "ram.available_bytes"}, nil, winOS},
		{"computer", "Get-CimInstance Win32_ComputerSystem", "DNSHostName Manufacturer Model TotalPhysicalMemory HypervisorPresent",
			[]string{"hostname", "machine", "memory_bytes", "hypervisor"}, nil, winComputer},
		{"bios", "Get-CimInstance Win32_BIOS", "Manufacturer SMBIOSBIOSVersion ReleaseDate", []string{"machine.bios_version"}, nil, winBIOS},
		{"product", "Get-CimInstance Win32_ComputerSystemProduct", "UUID", []string{"machine.uuid"}, nil, winProduct},
		{"cpu", "Get-CimInstance Win32_Processor", "Name NumberOfCores NumberOfLogicalProcessors MaxClockSpeed CurrentClockSpeed Architecture",
			[]string{"cpu_model", "cores", "arch", "cpu.sockets", "cpu.physical_cores", "cpu.threads"}, nil, winCPU},
		{"plan", "[pscustomobject]@{ Text = (powercfg /getactivescheme | Out-String) }", "Text", []string{"cpu.governors"}, nil, winPlan},
		{"clock", "[pscustomobject]@{ Text = (w32tm /query /status | Out-String) }", "Text", []string{"clock.synchronised"}, nil, winClock},
		{"firewall", "Get-NetFirewallProfile -PolicyStore ActiveStore", "Name Enabled", []string{"firewall"}, nil, winFirewall},
		{"tcp", "Get-NetTCPSetting", "SettingName AutoTuningLevelLocal AutoTuningLevelEffective ScalingHeuristics CongestionProvider EcnCapability Timestamps InitialCongestionWindowMss MinRtoMs",
			[]string{"sysctls", "congestion_control"}, nil, winTCP},
		{"global", "Get-NetOffloadGlobalSetting", "ReceiveSideScaling ReceiveSegmentCoalescing Chimney TaskOffload NetworkDirect PacketCoalescingFilter", []string{"sysctls"}, nil, winGlobal},
		{"adapters", "Get-NetAdapter", "Name InterfaceDescription ifIndex MacAddress MtuSize Speed FullDuplex MediaConnectState InterfaceOperationalStatus AdminStatus HardwareInterface Virtual DriverName DriverVersionString VlanID",
			[]string{"interfaces"}, []string{"mac", "mtu_bytes", "up", "carrier", "speed_bps", "duplex", "driver", "driver_version", "speed_is_nominal"}, winAdapters},
		{"addresses", "Get-NetIPAddress", "InterfaceAlias IPAddress PrefixLength", nil, []string{"addresses"}, winAddresses},
		{"advanced", "Get-NetAdapterAdvancedProperty -AllProperties", "Name RegistryKeyword RegistryValue NumericParameterMaxValue ValidRegistryValues", nil, []string{"rings", "pause"}, perPort(winAdvanced)},
		{"rss", "Get-NetAdapterRss", "Name Enabled NumberOfReceiveQueues Profile MaxProcessors", nil, []string{"rx_queues"}, perPort(winRSS)},
		{"rsc", "Get-NetAdapterRsc", "Name IPv4Enabled IPv6Enabled", nil, []string{"offloads.large-receive-offload"}, perPort(winRSC)},
		{"lso", "Get-NetAdapterLso", "Name IPv4Enabled IPv6Enabled V1IPv4Enabled", nil, []string{"offloads.tcp-segmentation-offload"}, perPort(winLSO)},
		{"checksum", "Get-NetAdapterChecksumOffload", "Name TcpIPv4Enabled TcpIPv6Enabled", nil, []string{"offloads.rx-checksumming", "offloads.tx-checksumming"}, perPort(winChecksum)},
		{"hardware", "Get-NetAdapterHardwareInfo", "Name SegmentNumber BusNumber DeviceNumber FunctionNumber NumaNode PciExpressCurrentLinkSpeedEncoded PciExpressCurrentLinkWidth PciExpressMaxLinkSpeedEncoded PciExpressMaxLinkWidth",
			nil, []string{"pci", "pci.usable_bps", "bus"}, perPort(winHardware)},
		{"statistics", "Get-NetAdapterStatistics", "Name ReceivedDiscardedPackets ReceivedPacketErrors OutboundDiscardedPackets OutboundPacketErrors", nil, []string{"error_counters"}, perPort(winStatistics)},
		{"teams", "Get-NetLbfoTeam", "Name TeamNics Members TeamingMode LoadBalancingAlgorithm", nil, nil, winTeams},
		{"switches", "Get-VMSwitch", "Name SwitchType NetAdapterInterfaceDescription", nil, nil, winSwitches},
		{"guests", "Get-VM | Where-Object State -eq Running", "Name", []string{"hypervises"}, nil, winGuests},
	}
}

// script returns the one program: it prints each query's rows, or its error,
// by the query's name. It holds no double quote, so that Windows' rules for
// arguments do not matter.
func script(queries []query) string {
	var b strings.Builder
	b.WriteString("$ErrorActionPreference='Stop'; $ProgressPreference='SilentlyContinue'; [Console]::OutputEncoding=New-Object Text.UTF8Encoding $false; " +
		"function S($o,$p){ foreach($i in @($o)){ $h=[ordered]@{}; foreach($n in $p){ $v=$i.$n; " +
		"if($v -is [enum]){$v=[string]$v} elseif($v -is [datetime]){$v=$v.ToString('yyyy-MM-dd')} elseif($v -is [array]){$v=$v -join ','}; $h[$n]=$v }; [pscustomobject]$h } }; " +
		"$r=[ordered]@{}; ")
	for _, q := range queries {
		list := "'" + strings.Join(strings.Fields(q.properties), "','") + "'"
		fmt.Fprintf(&b, "try { $r['%s']=@{ rows=@(S (%s) @(%s)) } } catch { $r['%s']=@{ error=[string]$_ } }; ", q.name, q.expression, list, q.name)
	}
	b.WriteString("ConvertTo-Json -InputObject $r -Depth 5 -Compress")
	return b.String()
}

// readWindows reads the results of all queries.
func readWindows(in string, r *reading) error {
	var doc map[string]struct {
		Rows  json.RawMessage `json:"rows"`
		Error string          `json:"error"`
	}
	if err := json.NewDecoder(strings.NewReader(in)).Decode(&doc); err != nil {
		return fmt.Errorf("not the requested JSON: %w", err)
	}
	for _, q := range windowsQueries() {
		answer, ok := doc[q.name]
		rows, err := jsonRows(answer.Rows)
		switch {
		case !ok:
			err = errors.New("no answer")
		case answer.Error != "":
			err = errors.New(answer.Error)
		}
		if err != nil {
			r.fail(job{command: command{line: []string{"powershell: " + q.expression}, facts: q.facts, ports: q.ports}}, err)
			continue
		}
		q.read(r, rows)
	}
	return nil
}

// jsonRows converts objects to rows: a list, a single object, or the
// {"value":[...],"Count":n} that PowerShell 5 makes of some lists.
func jsonRows(raw json.RawMessage) ([]Row, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber() // 64 bits
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("not the requested JSON: %w", err)
	}
	if o, ok := v.(map[string]any); ok {
		if list, ok := o["value"].([]any); ok {
			v = list
		} else {
			v = []any{o}
		}
	}
	list, _ := v.([]any)
	var rows []Row
	for _, item := range list {
		o, _ := item.(map[string]any)
		w := Row{}
		for key, value := range o {
			if value != nil {
				w[key] = strings.TrimSpace(fmt.Sprint(value))
			}
		}
		rows = append(rows, w)
	}
	return rows, nil
}

// perPort passes on the rows of known interfaces.
func perPort(read func(*reading, *measure.Interface, Row)) func(*reading, []Row) {
	return func(r *reading, rows []Row) {
		for _, w := range rows {
			if i := r.known(w["Name"]); i != nil {
				read(r, i, w)
			}
		}
	}
}

// one returns the first row, or an empty row where there is none.
func one(rows []Row) Row {
	if len(rows) == 0 {
		return Row{}
	}
	return rows[0]
}

func winAdmin(r *reading, rows []Row) { r.facts.Privileged = Truth(one(rows)["Admin"]) }

func winOS(r *reading, rows []Row) {
	w := one(rows)
	r.facts.Distro = text(w["Caption"])
	if v := cleanValue(w["Version"]); v != "" {
		r.facts.Kernel = &v
	}
	at(&r.facts.RAM).Available = Many(w["FreePhysicalMemory"], 1024) // in kB
}

func winComputer(r *reading, rows []Row) {
	w := one(rows)
	r.facts.Hostname, r.facts.Memory = text(w["DNSHostName"]), Many(w["TotalPhysicalMemory"], 1)
	at(&r.facts.RAM).Total = r.facts.Memory
	m := at(&r.facts.Machine)
	m.Vendor, m.Product = cleanValue(w["Manufacturer"]), cleanValue(w["Model"])
	// HypervisorPresent is also true on a host that runs Hyper-V itself.
	r.facts.Hypervisor = byMaker(m.Vendor + " " + m.Product)
	if on := Truth(w["HypervisorPresent"]); on != nil && !*on && r.facts.Hypervisor == nil {
		r.facts.Hypervisor = new("none")
	}
}

func winBIOS(r *reading, rows []Row) {
	w := one(rows)
	m := at(&r.facts.Machine)
	m.BIOSVendor, m.BIOSVersion, m.BIOSDate = cleanValue(w["Manufacturer"]), cleanValue(w["SMBIOSBIOSVersion"]), cleanValue(w["ReleaseDate"])
}

func winProduct(r *reading, rows []Row) {
	if uuid := measure.UUID(one(rows)["UUID"]); uuid != "" {
		at(&r.facts.Machine).UUID = uuid
	}
}

// winCPU reads one row for each socket. The architectures are those of
// Win32_Processor.
func winCPU(r *reading, rows []Row) {
	if len(rows) == 0 {
		return
	}
	w := rows[0]
	r.facts.CPUModel = text(w["Name"])
	if a, ok := map[string]string{"0": "386", "9": "amd64", "12": "arm64"}[w["Architecture"]]; ok {
		r.facts.Arch = &a
	}
	cores, threads := new(int), new(int)
	for _, w := range rows {
		c, t := Count(w["NumberOfCores"]), Count(w["NumberOfLogicalProcessors"])
		if c == nil || t == nil {
			return
		}
		*cores, *threads = *cores+*c, *threads+*t
	}
	processors(r, new(len(rows)), cores, threads)
	if hz := Many(w["MaxClockSpeed"], 1_000_000); hz != nil && *hz > 0 {
		r.facts.CPU.MaxHz = hz
	}
}

// winPlan identifies the power plan by its number, since its name is
// translated.
func winPlan(r *reading, rows []Row) {
	scheme := strings.ToLower(one(rows)["Text"])
	for id, name := range map[string]string{
		"381b4222-f694-41f0-9685-ff5bb260df2e": "balanced",
		"8c5e7fda-e8bf-4a96-9a85-a6e23a8c635c": "high performance",
		"a1841308-3541-4fab-bc81-f71556f20b4a": "power saver",
		"e9a42b02-d5df-448d-aa00-03f14749eb61": "ultimate performance",
	} {
		if strings.Contains(scheme, id) {
			at(&r.facts.CPU).Governors = []string{name}
		}
	}
}

// winClock reads the first line of w32tm, the leap indicator, by its number:
// 3 means a clock that is not synchronised (RFC 5905, figure 9).
func winClock(r *reading, rows []Row) {
	first, _, _ := strings.Cut(one(rows)["Text"], "\n")
	_, value, ok := strings.Cut(first, ":")
	value = strings.TrimSpace(value)
	if ok && len(value) > 1 && value[1] == '(' && value[0] >= '0' && value[0] <= '3' {
		at(&r.facts.Clock).Synchronised = new(value[0] != '3')
	}
}

func winFirewall(r *reading, rows []Row) {
	for _, w := range rows {
		if on := Truth(w["Enabled"]); on != nil && cleanValue(w["Name"]) != "" {
			r.firewall("Windows "+w["Name"]+" profile", *on)
		}
	}
}

// winTCP reads the TCP templates; connections use "Internet" unless a filter
// or a short RTT selects another one.
func winTCP(r *reading, rows []Row) {
	for _, w := range rows {
		name := cleanValue(w["SettingName"])
		for key, value := range w {
			if key != "SettingName" && name != "" {
				r.sysctl(name+"."+key, value)
			}
		}
		if provider := cleanValue(w["CongestionProvider"]); provider != "" {
			provider = strings.ToLower(provider)
			if name == "Internet" {
				r.facts.Congestion = &provider
			}
		}
	}
}

func winGlobal(r *reading, rows []Row) {
	for key, value := range one(rows) {
		r.sysctl(key, value)
	}
}

func winAdapters(r *reading, rows []Row) {
	for _, w := range rows {
		name := cleanValue(w["Name"])
		if name == "" {
			continue
		}
		i := r.port(name)
		i.Kind, i.MTU, i.Version = new(physical), Count(w["MtuSize"]), text(w["DriverVersionString"])
		if on, ok := w.flag("Virtual"); ok && on {
			i.Kind, i.Nominal = new("virtual"), new(true)
		}
		if mac := strings.ToLower(strings.ReplaceAll(w["MacAddress"], "-", ":")); mac != "" {
			i.MAC = &mac
		}
		if n, ok := w.number("Speed"); ok && n > 0 {
			i.SpeedBps = &n
		}
		if full, ok := w.flag("FullDuplex"); ok && i.SpeedBps != nil {
			i.Duplex = new(map[bool]string{true: "full", false: "half"}[full])
		}
		i.Up, i.Carrier = Truth(w["AdminStatus"]), connected(w["MediaConnectState"])
		if v := Count(w["VlanID"]); v != nil && *v > 0 {
			i.VLAN = v
		}
		if d := cleanValue(w["DriverName"]); d != "" {
			d = strings.TrimSuffix(strings.ToLower(path.Base(strings.ReplaceAll(d, `\`, "/"))), ".sys")
			i.Driver = &d
			if i.Nominal == nil {
				i.Nominal = new(measure.ParavirtualDriver(d))
			}
		}
	}
}

// connected parses MediaConnectState by its name or number (NDIS).
func connected(state string) *bool {
	switch state {
	case "1", "Connected":
		return new(true)
	case "2", "Disconnected":
		return new(false)
	}
	return nil
}

func winAddresses(r *reading, rows []Row) {
	for _, w := range rows {
		i := r.known(w["InterfaceAlias"])
		if i != nil {
			addAddr(i, w["IPAddress"], "prefixlen", w["PrefixLength"])
		}
	}
	r.seePorts("addresses")
}

// winAdvanced reads driver settings by their keywords, which are not
// translated; those without a star are vmxnet3's.
func winAdvanced(r *reading, i *measure.Interface, w Row) {
	value, most := Count(w["RegistryValue"]), Count(w["NumericParameterMaxValue"])
	for v := range strings.SplitSeq(w["ValidRegistryValues"], ",") {
		if n := Count(v); n != nil && (most == nil || *most < *n) {
			most = n
		}
	}
	g := r.ringsOf(i.Name)
	switch key := w["RegistryKeyword"]; key {
	case "*ReceiveBuffers", "MaxRxRing1Length":
		if value != nil && most != nil {
			g.RX, g.RXMax = *value, *most
		}
	case "*TransmitBuffers", "MaxTxRingLength":
		if value != nil && most != nil {
			g.TX, g.TXMax = *value, *most
		}
	case "*FlowControl":
		if value != nil && *value <= 4 { // 4: negotiated
			i.Pause = &measure.Pause{Autoneg: *value == 4, TX: *value == 1 || *value >= 3, RX: *value >= 2}
		}
	case "*JumboPacket", "*InterruptModeration", "*RSS", "*NumRssQueues", "*RscIPv4", "*SpeedDuplex", "*EncapsulatedPacketTaskOffload":
		r.sysctl(i.Name+"."+key, w["RegistryValue"])
	}
	if g.RX > 0 && g.TX > 0 {
		i.Rings = g
	}
}

func winRSS(_ *reading, i *measure.Interface, w Row) {
	on := Truth(w["Enabled"])
	if on == nil {
		return
	}
	offload(i, "receive-hashing", *on)
	if n := Count(w["NumberOfReceiveQueues"]); *on && n != nil && *n > 0 {
		i.Queues = n
	} else if !*on {
		i.Queues = new(1)
	}
}

func winRSC(_ *reading, i *measure.Interface, w Row) {
	either(i, "large-receive-offload", w["IPv4Enabled"], w["IPv6Enabled"])
}

func winLSO(_ *reading, i *measure.Interface, w Row) {
	either(i, "tcp-segmentation-offload", w["IPv4Enabled"], w["IPv6Enabled"], w["V1IPv4Enabled"])
	either(i, "tx-tcp-segmentation", w["IPv4Enabled"], w["V1IPv4Enabled"])
	either(i, "tx-tcp6-segmentation", w["IPv6Enabled"])
}

// either stores an offload as on where one of the values is yes, as off where
// all are no, and otherwise not at all.
func either(i *measure.Interface, name string, values ...string) {
	known := 0
	for _, v := range values {
		on := Truth(v)
		if on == nil {
			continue
		}
		known++
		if *on {
			offload(i, name, true)
			return
		}
	}
	if known == len(values) {
		offload(i, name, false)
	}
}

// winChecksum reads Disabled, TxEnabled, RxEnabled, RxTxEnabled, by name or
// by number.
func winChecksum(_ *reading, i *measure.Interface, w Row) {
	states := []string{"Disabled", "TxEnabled", "RxEnabled", "RxTxEnabled"}
	state := w["TcpIPv4Enabled"]
	if n, err := strconv.Atoi(state); err == nil && n >= 0 && n < len(states) {
		state = states[n]
	}
	if slices.Contains(states, state) {
		offload(i, "rx-checksumming", strings.HasPrefix(state, "Rx"))
		offload(i, "tx-checksumming", strings.Contains(state, "Tx"))
	}
}

func winHardware(_ *reading, i *measure.Interface, w Row) {
	bus, device, function := Count(w["BusNumber"]), Count(w["DeviceNumber"]), Count(w["FunctionNumber"])
	segment := cmp.Or(Count(w["SegmentNumber"]), new(0))
	if bus != nil && device != nil && function != nil {
		i.Bus = new(fmt.Sprintf("%04x:%02x:%02x.%d", *segment, *bus, *device, *function))
	}
	if n := Count(w["NumaNode"]); n != nil && *n < 65535 {
		i.NUMANode = n
	}
	p := at(&i.PCI)
	p.Gen, p.MaxGen = between(w["PciExpressCurrentLinkSpeedEncoded"], 6), between(w["PciExpressMaxLinkSpeedEncoded"], 6)
	p.Lanes, p.MaxLanes = between(w["PciExpressCurrentLinkWidth"], pcie.MostLanes), between(w["PciExpressMaxLinkWidth"], pcie.MostLanes)
}

// between returns a pointer to a number from 1 to most, or nil.
func between(s string, most int) *int {
	if n := Count(s); n != nil && *n >= 1 && *n <= most {
		return n
	}
	return nil
}

func winStatistics(r *reading, i *measure.Interface, w Row) {
	r.seen[portFact(i.Name, "error_counters")] = true
	for key, value := range w {
		if key != "Name" {
			countError(i, key, value)
		}
	}
}

// winTeams reads the LBFO teams; a member is up where its link is.
func winTeams(r *reading, rows []Row) {
	for _, w := range rows {
		i := r.known(w["Name"])
		if nic := r.known(w["TeamNics"]); nic != nil {
			i = nic
		}
		if i == nil {
			continue
		}
		i.Kind, i.Nominal = new(bond), nil
		i.Lower = strings.FieldsFunc(w["Members"], func(c rune) bool { return c == ',' })
		i.Bond = &measure.Bond{Mode: w["TeamingMode"], Hash: w["LoadBalancingAlgorithm"], Members: []measure.BondMember{}}
		for _, name := range i.Lower {
			m := measure.BondMember{Name: name}
			if p := r.known(name); p != nil {
				m.Up, m.SpeedBps = p.Carrier != nil && *p.Carrier, p.SpeedBps
			}
			i.Bond.Members = append(i.Bond.Members, m)
		}
	}
}

func winSwitches(r *reading, rows []Row) {
	for _, w := range rows {
		if name := cleanValue(w["Name"]); name != "" {
			r.switches = append(r.switches, "vswitch "+name)
		}
	}
}

func winGuests(r *reading, rows []Row) { r.guests = new(len(rows)) }
