package measure

import (
	"cmp"
	"slices"
	"strings"
)

// FactRow describes a fact of a host, a path or an inventory, for all reports and comparisons.
type FactRow struct {
	Key   string // key in the JSON document, without names of interfaces and the like: "interfaces.mtu_bytes"; "uplink" is the last part of any key
	Title string // name for people; empty: the words of its key
	Rank  int    // how much it affects a rate, the least number most; 0: it has no rank
	Trait FactTrait
}

// FactTrait is a set of properties of a fact.
type FactTrait int

// Traits of facts.
const (
	Noise     FactTrait = 1 << iota // changes between readings without a cause: counters, loads, temperatures
	Minor                           // hardly affects a rate; the same for nested keys without a row
	ByAbsence                       // absent means not set
	Names                           // the keys nested in it are names
	Whole                           // nested facts are not named separately where they are not known
)

// Is reports whether the fact has a trait.
func (f FactRow) Is(t FactTrait) bool { return f.Trait&t != 0 }

// factRows is the vocabulary of facts. The end of a key is its unit (_bytes, _bps, _ns, _hz).
func factRows() []FactRow {
	rows := []FactRow{
		{"paths.mtu", "path MTU", 2, 0}, {"interfaces.speed_bps", "speed", 3, 0}, {"interfaces.duplex", "duplex", 3, 0},
		{"end_points.placement.host_name", "host of the virtual machine", 1, 0}, {"end_points.placement.network", "network of the virtual machine", 3, 0},
		{"end_points.route.interface", "interface that the traffic takes", 2, 0}, {"paths.gateway", "next hop", 4, 0},
		{"paths.hops", "routers on the path", 4, 0}, {"paths.silent", "larger packets are dropped silently", 3, 0},
		{"paths.seen_as", "own address behind NAT", 6, 0}, {"paths.ways", "paths of source ports", 6, 0},
		{"paths.syn_mss", "MSS in the handshake", 13, 0}, {"paths.window_scale", "window scale in the handshake", 8, 0}, {"paths.sack", "SACK", 4, 0},
		{"paths.timestamps", "TCP timestamps", 6, 0}, {"paths.ecn", "ECN", 7, 0}, {"paths.congestion", "congestion control of the route", 5, 0},
		{"interfaces.qdisc", "qdisc", 5, 0}, {"sysctls", "sysctl", 6, Names}, {"settings_changed", "setting", 6, ByAbsence | Names},
		{"interfaces.offloads", "offload", 7, Names}, {"interfaces.channels.combined", "queues", 8, 0}, {"interfaces.channels.rx", "receive queues", 8, 0},
		{"interfaces.channels.tx", "transmit queues", 8, 0}, {"interfaces.rx_queues", "receive queues in use", 8, 0},
		{"interfaces.tx_queues", "transmit queues in use", 8, 0}, {"interfaces.tx_queue_length_packets", "txqueuelen", 13, 0},
		{"interfaces.rings.rx", "receive ring", 9, 0}, {"interfaces.rings.tx", "transmit ring", 9, 0},
		{"interfaces.coalescing.adaptive_rx", "adaptive receive coalescing", 10, 0},
		{"interfaces.coalescing.adaptive_tx", "adaptive transmit coalescing", 10, 0}, {"interfaces.coalescing.rx_ns", "receive coalescing", 10, 0},
		{"interfaces.coalescing.tx_ns", "transmit coalescing", 10, 0}, {"interfaces.coalescing.rx_frames", "receive coalescing in frames", 10, 0},
		{"interfaces.coalescing.tx_frames", "transmit coalescing in frames", 10, 0}, {"interfaces.pause.rx", "RX pause", 11, 0},
		{"interfaces.pause.tx", "TX pause", 11, 0}, {"interfaces.pause.autonegotiation", "pause autonegotiation", 11, 0},
		{"interfaces.rps", "RPS", 10, ByAbsence | Names}, {"interfaces.xps", "XPS", 10, ByAbsence | Names}, {"interfaces.rfs_flows", "RFS flows", 10, 0},
		{"interfaces.interrupts.cpus_allowed", "CPUs allowed for interrupts", 12, 0}, {"interfaces.rss.hash", "RSS hash", 11, 0},
		{"interfaces.rss.hash_fields", "RSS fields", 11, Names}, {"interfaces.rss.table_entries", "RSS table", 11, 0},
		{"interfaces.rss.entries_by_queue", "RSS entries by queue", 11, 0}, {"kernel", "kernel", 14, 0}, {"interfaces.driver", "driver", 14, 0},
		{"interfaces.driver_version", "driver version", 15, 0}, {"interfaces.driver_of_kernel", "in-kernel driver", 16, 0},
		{"interfaces.kind", "kind", 14, 0}, {"interfaces.up", "up", 3, 0}, {"interfaces.carrier", "carrier", 3, 0},
		{"interfaces.pci.gen", "PCIe generation", 14, 0}, {"interfaces.pci.lanes", "PCIe lanes", 14, 0},
		{"interfaces.pci.usable_bps", "PCIe usable rate", 14, 0}, {"interfaces.numa_node", "NUMA node", 16, 0}, {"interfaces.bond.mode", "bond mode", 10, 0},
		{"interfaces.bond.hash_policy", "bond hash", 10, 0}, {"interfaces.bond.active_member", "active member", 10, 0},
		{"interfaces.bond.members.up", "bond member up", 10, 0}, {"interfaces.tunnel.kind", "tunnel", 10, 0},
		{"interfaces.tunnel.overhead_bytes", "tunnel overhead", 10, 0}, {"interfaces.name", "interface", 17, ByAbsence},
		{"interfaces.master", "belongs to", 16, ByAbsence}, {"end_points.thru_version", "thru", 15, 0}, {"end_points.program", "program", 3, 0},
		{"hostname", "machine", 1, 0}, {"hypervisor", "hypervisor", 13, 0}, {"os", "system", 13, 0}, {"distribution", "system", 21, 0},
		{"cpu_model", "CPU", 13, 0}, {"cores", "CPUs", 13, 0}, {"cpu.usable_cpus", "CPUs that thru may use", 13, 0},
		{"cpu.physical_cores", "physical cores", 17, 0}, {"cpu.sockets", "sockets", 17, 0}, {"cpu.smt_active", "SMT", 17, 0},
		{"cpu.governors", "governor", 13, 0}, {"cpu.energy_preference", "energy preference", 17, 0}, {"cpu.boost", "boost", 15, 0},
		{"cpu.max_hz", "maximum clock", 17, 0}, {"cpu.base_hz", "base clock", 19, 0}, {"cpu.frequency_driver", "frequency driver", 19, 0},
		{"cpu.deepest_idle", "deepest idle state", 19, 0}, {"cpu.isolated_cpus", "isolated CPUs", 17, ByAbsence},
		{"cgroup.quota_cpus", "CPU quota", 9, ByAbsence}, {"cgroup.cpus", "CPUs of the control group", 13, 0},
		{"cgroup.memory_max_bytes", "memory limit", 17, ByAbsence}, {"cgroup.container", "container", 17, 0}, {"machine.product", "machine", 18, 0},
		{"machine.vendor", "maker", 19, 0}, {"machine.bios_version", "firmware of the machine", 20, 0}, {"machine.uuid", "UUID of the machine", 31, 0},
		{"memory_bytes", "memory", 26, 0}, {"ram.transparent_huge", "transparent huge pages", 31, 0},
		{"ram.balloon_bytes", "memory reclaimed by the hypervisor", 21, 0}, {"ram.tcp_memory_max_bytes", "TCP memory limit", 13, 0},
		{"security.cpu_mitigations", "CPU mitigations", 18, 0}, {"security.seccomp", "seccomp", 31, 0}, {"firewall.nft_rules", "nft rules", 21, 0},
		{"firewall.nft_chains", "nft base chains", 23, 0}, {"firewall.conntrack", "connection tracking", 19, 0},
		{"firewall.iptables_rules", "iptables rules", 21, 0}, {"firewall.firewalls", "firewall", 21, Names}, {"clock.source", "clock source", 19, 0},
		{"hypervises.guests", "running guests", 21, 0}, {"hypervises.switches", "virtual switches", 31, 0}, {"arch", "architecture", 13, 0},
		{"congestion_control", "congestion control", 5, 0}, {"interfaces.firmware", "firmware", 15, 0}, {"interfaces.mtu_bytes", "MTU", 2, 0}, {"interfaces.vlan", "VLAN", 16, 0},
		{"load.processes", "other processes", 0, 0}, {"cpu.idle_limit", "limit of idle states", 0, 0}, {"network_managers", "", 0, Minor | ByAbsence},
		{"hypervises", "virtual machines", 0, Whole}, {"firewall", "firewall rules", 0, Whole},
	}
	add := func(trait FactTrait, keys string) {
		for key := range strings.FieldsSeq(keys) {
			rows = append(rows, FactRow{Key: key, Trait: trait})
		}
	}
	add(Minor, `disks boot_device privileged interfaces.mac interfaces.addresses interfaces.offloads_fixed interfaces.bus interfaces.bridge interfaces.pci
		interfaces.interrupts interfaces.mtu_max_bytes interfaces.rss interfaces.tunnel.local interfaces.tunnel.remote congestion_available cpu.governors_known
		clock.sources clock.synchronised machine.chassis machine.board machine.bios_date machine.uefi security firewall.conntrack_max ram.swap_total_bytes`)
	add(Noise, `load not_checked root_would_add commands interfaces.queue_counters interfaces.error_counters interfaces.interrupts.counts interfaces.interrupts.number
		interfaces.interrupts.cpus interfaces.pci.ports_bps interfaces.bond.members.link_failures ram.available_bytes ram.swap_used_bytes
		ram.huge_pages_free ram.tcp_memory_bytes numa_nodes.free_bytes cgroup.path cgroup.periods cgroup.throttled_periods cgroup.throttled_ns
		firewall.conntrack_entries firewall.conntrack_drops clock.max_error_ns clock.offset_ns clock.frequency_ppm clock.read_cost_ns cpu.current_hz
		disks.mounts.free_bytes hypervises.vhost_threads`)
	add(Noise, "cpu.threads ram.total_bytes") // cores and memory_bytes hold the same
	return rows
}

// partWords returns the words for a fact that is not known, by the last part of its key: administrators know these words, not the keys.
func partWords() map[string]string {
	words := map[string]string{
		"*": "other settings", "clock_ahead_ns": "clock offset", "coalescing": "interrupt moderation", "configuration": "configuration file",
		"cpu_affinity": "CPU affinity", "cpu_allocation": "CPU allocation", "cpu_hot_add": "CPU hot add", "cpu_pins": "CPU affinity", "cpu_model": "CPU model",
		"cpu_quota_cpus": "CPU quota", "cpus": "virtual CPUs", "created": "how it was created", "distribution": "version of the system",
		"error_counters": "error counters", "failover": "teaming", "governors": "power policy", "guest_cpus": "virtual CPUs of its VMs",
		"guest_memory_bytes": "memory of its VMs", "guests_running": "running VMs", "hardware_version": "virtual hardware",
		"host_device": "interface of the host", "hostname": "host name", "hypervisor": "kind of machine", "kernel": "build of the system", "limited": "limit",
		"mac": "MAC address", "machine": "make and model", "nics": "adapters", "numa_nodes": "NUMA nodes", "os": "configured system",
		"os_running": "running system", "pause": "flow control", "reserved": "reservation", "rx_queues": "receive queues",
		"rx_ring_drops": "receive ring drops", "settings_changed": "non-default settings", "shaping_in": "shaping of traffic to VMs",
		"shaping_out": "shaping of traffic from VMs", "size_bytes": "size", "synchronised": "synchronisation", "sysctls": "network options",
		"tx_queues": "transmit queues", "uefi": "UEFI", "up": "link state", "uplink": "uplink in use", "uuid": "UUID", "vcpu": "virtual CPUs",
		"vlan_filtering": "VLAN filtering", "vmkernel_ports": "VMkernel ports",
	}
	for part := range strings.FieldsSeq(`addresses boot_device cluster counters disks firewall flow_control format host hosts image_profile latency_sensitivity load memory_allocation
		mode model multicast_snooping network offloads policies port port_groups power queues rings security security_modules shaping shares source state status
		switches teaming threads tools type uplinks`) {
		words[part] = strings.ReplaceAll(part, "_", " ")
	}
	return words
}

// wholeWords returns for the lists and parts of an inventory the word for one of them and the word for each of them.
func wholeWords() map[string][2]string {
	return map[string][2]string{
		"guests": {"VM", "VMs"}, "nics": {"", "each adapter"}, "disks": {"", "each virtual disk"},
		"interfaces": {"", "each network card"}, "interface": {"", "each network card"}, "hosts": {"host", "hosts"},
		"switches": {"switch", "each switch"}, "port_groups": {"port group", "each port group"}, "datastores": {"datastore", "each datastore"},
		"cpu": {"", "the CPUs"}, "clock": {"", "the clock"}, "machine": {"", "the machine"}, "distribution": {"", "the system"},
		"tools": {"", "the tools"}, "threads": {"", "the threads"}, "security": {"", "the system"},
		"cpu_allocation": {"", "the CPU allocation"}, "memory_allocation": {"", "the memory allocation"}, "settings_changed": {"", "the non-default settings"},
	}
}

// Vocabulary maps keys of facts to their rows.
type Vocabulary map[string]FactRow

// NewVocabulary returns the rows of all facts.
func NewVocabulary() Vocabulary {
	rows := factRows()
	v := make(Vocabulary, len(rows))
	for _, row := range rows {
		v[row.Key] = row
	}
	return v
}

// Row returns the row of a fact. Without a row, the fact gets the words of its key as the title, and the trait Minor where a key above it has that trait.
func (v Vocabulary) Row(key string) FactRow {
	row, known := v[key]
	row.Key = key
	for at := key; !known && row.Trait == 0 && at != ""; {
		at = at[:max(0, strings.LastIndexByte(at, '.'))]
		row.Trait = v[at].Trait & Minor
	}
	row.Title = cmp.Or(row.Title, plainTitle(key))
	return row
}

// plainTitle turns a key into words: "interfaces.pci.gen_max" is "pci gen max".
func plainTitle(key string) string {
	key = strings.TrimPrefix(key, "interfaces.")
	for _, unit := range []string{"_bytes", "_bps", "_ns", "_hz", "_packets"} {
		key = strings.TrimSuffix(key, unit)
	}
	return strings.NewReplacer("_", " ", ".", " ").Replace(key)
}

// Title returns the name for people of a fact, by its key, whichever interface the key names.
func (v Vocabulary) Title(key string) string {
	head, rest, _ := strings.Cut(key, ".")
	if v[head].Is(Whole) {
		return v[head].Title
	}
	for head == "interfaces" && strings.Contains(rest, ".") { // names of interfaces may contain dots
		_, rest, _ = strings.Cut(rest, ".")
		if key = "interfaces." + rest; v[key].Title != "" {
			break
		}
	}
	return cmp.Or(v[key].Title, partWords()[key], v.Row(key).Title)
}

// Words returns the words for a fact of an inventory or a host that is not known, by its key: "guests.nics.uplink" is "uplink in use of each adapter",
// "port_groups.lab.failover" is "teaming of port group lab". It returns other keys as they are.
func (v Vocabulary) Words(key string) string {
	parts, wholes := partWords(), wholeWords()
	word := func(part string) string { return cmp.Or(parts[part], v[part].Title, v["interfaces."+part].Title) }
	head, rest, below := strings.Cut(key, ".")
	if !below {
		if head == "guests" {
			return "VMs"
		}
		return cmp.Or(word(head), head)
	}
	whole, known := wholes[head]
	if !known {
		return cmp.Or(v[key].Title, key)
	}
	if head == "guests" { // a fact of all guests
		if inner := v.Words(rest); inner != rest || word(rest) != "" {
			return inner
		} else if strings.Contains(rest, ".") {
			return key
		}
		return "VM " + rest
	}
	name, part := "", rest
	if i := strings.LastIndexByte(rest, '.'); i >= 0 {
		name, part = rest[:i], rest[i+1:]
	}
	switch of := word(part); {
	case of == "" && slices.Contains([]string{"settings_changed", "distribution"}, head):
		return part + " of " + whole[1]
	case of == "":
		return cmp.Or(v[key].Title, key)
	case name != "":
		return of + " of " + strings.TrimSpace(whole[0]+" "+name)
	default:
		return of + " of " + whole[1]
	}
}
