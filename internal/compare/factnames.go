package compare

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"thru/internal/measure"
	"thru/internal/unit"
)

// isNoise tells of facts that differ from one result to the next although nobody
// has changed anything: counters, loads, temperatures of the moment.
func isNoise(kind string) bool {
	switch kind {
	case "load", "not_checked", "root_would_add", "commands",
		"interfaces.queue_counters", "interfaces.error_counters", "interfaces.interrupts.counts", "interfaces.interrupts.number", "interfaces.interrupts.cpus",
		"ram.available_bytes", "ram.swap_used_bytes", "ram.huge_pages_free", "ram.tcp_memory_bytes", "numa_nodes.free_bytes",
		"cgroup.path", "cgroup.periods", "cgroup.throttled_periods", "cgroup.throttled_ns",
		"firewall.conntrack_entries", "firewall.conntrack_drops",
		"clock.max_error_ns", "clock.offset_ns", "clock.frequency_ppm", "clock.read_cost_ns",
		"cpu.current_hz", "disks.mounts.free_bytes", "bond.members.link_failures", "interfaces.bond.members.link_failures",
		"interfaces.pci.ports_bps", "hypervises.vhost_threads", "cpu.threads", "ram.total_bytes": // the last two are said by cores and memory_bytes
		return true
	}
	return false
}

// factName is a fact for people, and how near it stands to a rate: the least rank
// first.
type factName struct {
	rank int
	name string // of an interface's or another named thing's, what comes before "of eth0"
}

// factNames are the facts that have a name of their own; others are called by
// their key.
func factNames() map[string]factName {
	return map[string]factName{
		"interfaces.mtu_bytes": {1, "MTU"}, "paths.mtu": {1, "path MTU"}, "interfaces.speed_bps": {2, "speed"}, "interfaces.duplex": {2, "duplex"},
		"end_points.route.interface": {1, "interface that the traffic takes"}, "paths.gateway": {3, "next hop"}, "paths.hops": {3, "routers on the way"},
		"paths.silent": {2, "larger packets vanish silently"}, "paths.seen_as": {5, "address seen by the other end (NAT)"}, "paths.ways": {5, "ways of source ports"},
		"paths.syn_mss": {12, "MSS in the handshake"}, "paths.window_scale": {7, "window scale in the handshake"}, "paths.sack": {3, "SACK"}, "paths.timestamps": {5, "TCP time stamps"}, "paths.ecn": {6, "ECN"},
		"congestion_control": {4, "congestion control"}, "paths.congestion": {4, "congestion control of the route"}, "interfaces.qdisc": {4, "qdisc"},
		"sysctls": {5, "sysctl"}, "settings_changed": {5, "setting"}, "interfaces.offloads": {6, "offload"},
		"interfaces.channels.combined": {7, "queues"}, "interfaces.channels.rx": {7, "receive queues"}, "interfaces.channels.tx": {7, "transmit queues"},
		"interfaces.rx_queues": {7, "receive queues in use"}, "interfaces.tx_queues": {7, "transmit queues in use"}, "interfaces.tx_queue_length_packets": {12, "txqueuelen"},
		"interfaces.rings.rx": {8, "receive ring"}, "interfaces.rings.tx": {8, "transmit ring"},
		"interfaces.coalescing.adaptive_rx": {9, "adaptive receive coalescing"}, "interfaces.coalescing.adaptive_tx": {9, "adaptive transmit coalescing"},
		"interfaces.coalescing.rx_ns": {9, "receive coalescing"}, "interfaces.coalescing.tx_ns": {9, "transmit coalescing"},
		"interfaces.coalescing.rx_frames": {9, "receive coalescing in frames"}, "interfaces.coalescing.tx_frames": {9, "transmit coalescing in frames"},
		"interfaces.pause.rx": {10, "pause frames obeyed"}, "interfaces.pause.tx": {10, "pause frames sent"}, "interfaces.pause.autonegotiation": {10, "pause negotiated"},
		"interfaces.rps": {9, "RPS"}, "interfaces.xps": {9, "XPS"}, "interfaces.rfs_flows": {9, "RFS flows"}, "interfaces.interrupts.cpus_allowed": {11, "CPUs allowed to interrupt"},
		"interfaces.rss.hash": {10, "RSS hash"}, "interfaces.rss.hash_fields": {10, "RSS fields"}, "interfaces.rss.table_entries": {10, "RSS table"}, "interfaces.rss.entries_by_queue": {10, "RSS entries by queue"},
		"kernel": {13, "kernel"}, "interfaces.driver": {13, "driver"}, "interfaces.driver_version": {14, "driver version"}, "interfaces.firmware": {14, "firmware"},
		"interfaces.driver_of_kernel": {15, "driver came with the kernel"}, "interfaces.kind": {13, "kind"}, "interfaces.up": {2, "up"}, "interfaces.carrier": {2, "carrier"},
		"interfaces.pci.gen": {13, "PCIe generation"}, "interfaces.pci.lanes": {13, "PCIe lanes"}, "interfaces.pci.usable_bps": {13, "PCIe usable rate"}, "interfaces.numa_node": {15, "NUMA node"},
		"interfaces.bond.mode": {9, "bond mode"}, "interfaces.bond.hash_policy": {9, "bond hash"}, "interfaces.bond.active_member": {9, "active member"}, "interfaces.bond.members.up": {9, "bond member up"},
		"interfaces.tunnel.kind": {9, "tunnel"}, "interfaces.tunnel.overhead_bytes": {9, "tunnel overhead"}, "interfaces.vlan": {15, "VLAN"}, "interfaces.name": {16, "interface"}, "interfaces.master": {15, "belongs to"},
		"end_points.thru_version": {14, "thru"}, "end_points.program": {2, "program"},
		"hostname": {0, "machine"}, "hypervisor": {12, "hypervisor"}, "os": {12, "system"}, "distribution": {20, "system"}, "arch": {12, "architecture"},
		"cpu_model": {12, "CPU"}, "cores": {12, "CPUs"}, "cpu.usable_cpus": {12, "CPUs that thru may use"}, "cpu.physical_cores": {16, "physical cores"}, "cpu.sockets": {16, "sockets"}, "cpu.smt_active": {16, "SMT"},
		"cpu.governors": {12, "governor"}, "cpu.energy_preference": {16, "energy preference"}, "cpu.boost": {14, "boost"}, "cpu.max_hz": {16, "highest clock"}, "cpu.base_hz": {18, "base clock"},
		"cpu.frequency_driver": {18, "frequency driver"}, "cpu.deepest_idle": {18, "deepest idle state"}, "cpu.isolated_cpus": {16, "isolated CPUs"},
		"cgroup.quota_cpus": {8, "CPU quota"}, "cgroup.cpus": {12, "CPUs of the control group"}, "cgroup.memory_max_bytes": {16, "memory limit"}, "cgroup.container": {16, "container"},
		"machine.product": {17, "machine"}, "machine.vendor": {18, "maker"}, "machine.bios_version": {19, "firmware of the machine"}, "machine.uuid": {30, "UUID of the machine"}, "memory_bytes": {25, "memory"}, "ram.transparent_huge": {30, "transparent huge pages"},
		"ram.balloon_bytes": {20, "memory taken back by the hypervisor"}, "ram.tcp_memory_max_bytes": {12, "memory that TCP may have"}, "security.cpu_mitigations": {17, "CPU mitigations"}, "security.seccomp": {30, "seccomp"},
		"firewall.nft_rules": {20, "nft rules"}, "firewall.nft_chains": {22, "nft base chains"}, "firewall.conntrack": {18, "connection tracking"}, "firewall.iptables_rules": {20, "iptables rules"}, "firewall.firewalls": {20, "firewall"},
		"clock.source": {18, "clock source"}, "hypervises.guests": {20, "guests that run there"}, "hypervises.switches": {30, "virtual switches"},
	}
}

// isMinor tells of facts that hardly bear on a rate.
func isMinor(kind string) bool {
	for _, prefix := range []string{"disks", "boot_device", "network_managers", "privileged", "interfaces.mac", "interfaces.addresses", "interfaces.offloads_fixed", "interfaces.bus", "interfaces.bridge",
		"congestion_available", "cpu.governors_known", "clock.sources", "clock.synchronised", "machine.chassis", "machine.board", "machine.bios_date", "machine.uefi", "machine.uuid", "security", "firewall.conntrack_max", "ram.swap_total_bytes",
		"interfaces.tunnel.local", "interfaces.tunnel.remote", "interfaces.pci", "interfaces.interrupts", "interfaces.mtu_max_bytes", "interfaces.rss"} {
		if kind == prefix || strings.HasPrefix(kind, prefix+".") {
			return true
		}
	}
	return false
}

// judgeFact names a fact, and says whether it hardly bears on a rate: what is of
// an interface that the traffic does not take.
func judgeFact(c *measure.FactChange, used []string) {
	kind, thing := KindOfFact(c.Fact), nameIn(c.Fact)
	known, found := factNames()[kind]
	c.Name = known.name
	if !found {
		c.Name = plainName(kind)
	}
	switch {
	case strings.HasPrefix(kind, "interfaces."):
		c.Name = interfaceName(c.Name, kind, c.Fact, thing)
		part := kind == "interfaces.offloads" && strings.HasPrefix(innerName(c.Fact), "tx-tcp") // of TSO, which is told
		c.Minor = part || len(used) > 0 && !slices.Contains(used, thing)
	case kind == "sysctls" || kind == "settings_changed":
		c.Name = thing
	case thing != "":
		c.Name += " of " + thing
	}
	c.Minor = c.Minor || !found && isMinor(kind)
}

// interfaceName is "MTU of eth0", "tcp-segmentation-offload of eth0", "RPS rx-0 of eth0".
func interfaceName(name, kind, key, thing string) string {
	inner := innerName(key)
	switch {
	case kind == "interfaces.name":
		return "interface " + thing
	case kind == "interfaces.offloads":
		return inner + " of " + thing
	case inner != "":
		return name + " " + inner + " of " + thing
	}
	return name + " of " + thing
}

// innerName is what of the thing a key is about: "rx-0" of "interfaces[eth0].rps[rx-0]".
func innerName(key string) string {
	_, rest, _ := strings.Cut(key, "].")
	_, rest, _ = strings.Cut(rest, "[")
	name, _, _ := strings.Cut(rest, "]")
	return name
}

// plainName makes words of a key: "interfaces.pci.gen_max" is "pci gen max".
func plainName(kind string) string {
	kind = strings.TrimPrefix(kind, "interfaces.")
	for _, suffix := range []string{"_bytes", "_bps", "_ns", "_hz", "_packets"} {
		kind = strings.TrimSuffix(kind, suffix)
	}
	return strings.NewReplacer("_", " ", ".", " ").Replace(kind)
}

// sortFacts has what bears on a rate first, of paths those of the first flow.
func sortFacts(all []measure.FactChange, pairs []matched) {
	names := factNames()
	first := ""
	if len(pairs) > 0 {
		first = measure.PairName(pairs[0].after.from, pairs[0].after.to)
	}
	rank := func(c measure.FactChange) int {
		r := 80
		kind := KindOfFact(c.Fact)
		if known, found := names[kind]; found {
			r = 2 * known.rank
		}
		if c.Minor {
			r += 200
		}
		if measure.IsPart(kind, "paths") && c.Of != first {
			r++
		}
		return r
	}
	slices.SortStableFunc(all, func(a, b measure.FactChange) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Of, b.Of), cmp.Compare(a.Fact, b.Fact))
	})
}

// valueText is a value for people, in the unit that its key names.
func valueText(key string, value any) string {
	switch v := value.(type) {
	case bool:
		return map[bool]string{true: "on", false: "off"}[v]
	case json.Number:
		return numberText(KindOfFact(key), v)
	case string:
		return strings.Join(strings.Fields(v), " ")
	}
	return fmt.Sprint(value)
}

func numberText(kind string, number json.Number) string {
	n, err := strconv.ParseInt(number.String(), 10, 64)
	switch {
	case err != nil:
		return number.String()
	case strings.HasSuffix(kind, "mtu_bytes") || strings.HasSuffix(kind, "mtu_max_bytes") || strings.HasSuffix(kind, "overhead_bytes"):
		return number.String()
	case strings.HasSuffix(kind, "_bytes"):
		return unit.Size(n) // so that a few pages more or less are no change
	case strings.HasSuffix(kind, "_bps"):
		return unit.Rate(float64(n))
	case strings.HasSuffix(kind, "_ns"):
		return unit.Duration(n)
	case strings.HasSuffix(kind, "_hz"):
		return fmt.Sprintf("%.3g GHz", float64(n)/1e9)
	}
	return number.String()
}

// listText is a list as one value; CPUs as ranges.
func listText(words []string) string {
	numbers := make([]int, 0, len(words))
	for _, w := range words {
		n, err := strconv.Atoi(w)
		if err != nil {
			return strings.Join(words, ", ")
		}
		numbers = append(numbers, n)
	}
	if slices.IsSorted(numbers) {
		return unit.List(numbers)
	}
	return strings.Join(words, ", ")
}
