package report

import (
	"cmp"
	"slices"
	"strings"
)

// partWords are what people call a fact of an inventory or a host, by the last
// part of its key in the JSON document. Administrators know these words, not the keys.
func partWords() map[string]string {
	return map[string]string{
		"*": "other settings", "addresses": "addresses", "arch": "architecture", "boot_device": "boot device", "clock_ahead_ns": "clock there", "cluster": "cluster",
		"coalescing": "interrupt moderation", "configuration": "configuration file", "congestion_control": "congestion control", "counters": "counters", "cpu_affinity": "CPU affinity", "cpu_allocation": "CPU allocation", "cpu_hot_add": "CPU hot add",
		"cpu_pins": "CPU affinity", "cpu_model": "CPU model", "cpu_quota_cpus": "CPU quota", "cpus": "virtual CPUs", "created": "how it was created", "disks": "disks",
		"distribution": "version of the system", "error_counters": "counters of errors", "failover": "teaming", "firewall": "firewall", "firmware": "firmware", "flow_control": "flow control",
		"format": "format", "governors": "power policy", "guest_cpus": "virtual CPUs of its VMs", "guest_memory_bytes": "memory of its VMs", "guests_running": "VMs that run",
		"hardware_version": "virtual hardware", "host": "host", "host_device": "interface of the host", "hostname": "host name", "hosts": "hosts", "hypervisor": "kind of machine",
		"image_profile": "image profile", "kernel": "build of the system", "latency_sensitivity": "latency sensitivity", "limited": "limit", "load": "load", "mac": "MAC address",
		"machine": "make and model", "memory_allocation": "memory allocation", "memory_bytes": "memory", "mode": "mode", "model": "model", "mtu_bytes": "MTU",
		"multicast_snooping": "multicast snooping", "network": "network", "nics": "adapters", "numa_nodes": "NUMA nodes", "offloads": "offloads", "os": "configured system",
		"os_running": "system that runs", "pause": "flow control", "policies": "policies", "port": "port", "port_groups": "port groups", "power": "power", "queues": "queues",
		"reserved": "reservation", "rings": "rings", "rx_queues": "receive queues", "rx_ring_drops": "drops of the receive ring", "security": "security", "security_modules": "security modules", "settings_changed": "settings that are not default",
		"shaping": "shaping", "shaping_in": "shaping of what VMs receive", "shaping_out": "shaping of what VMs send", "shares": "shares", "size_bytes": "size", "source": "source", "state": "state", "status": "status",
		"switches": "switches", "synchronised": "synchronisation", "sysctls": "network options", "teaming": "teaming", "threads": "threads", "tools": "tools", "tx_queues": "transmit queues",
		"type": "type", "uefi": "UEFI", "up": "link state", "uplink": "uplink in use", "uplinks": "uplinks", "uuid": "UUID", "vcpu": "virtual CPUs", "vlan": "VLAN", "vlan_filtering": "VLAN filtering", "vmkernel_ports": "VMkernel ports",
	}
}

// wholeWords are the lists and parts of an inventory: what one of them is called,
// and what each of them is.
func wholeWords() map[string][2]string {
	return map[string][2]string{
		"guests": {"VM", "VMs"}, "nics": {"", "each adapter"}, "disks": {"", "each virtual disk"}, "interfaces": {"", "each network card"}, "interface": {"", "each network card"}, "hosts": {"host", "hosts"},
		"switches": {"switch", "each switch"}, "port_groups": {"port group", "each port group"}, "datastores": {"datastore", "each datastore"},
		"cpu": {"", "the CPUs"}, "clock": {"", "the clock"}, "machine": {"", "the machine"}, "distribution": {"", "the system"}, "tools": {"", "the tools"}, "threads": {"", "the threads"}, "security": {"", "the system"},
		"cpu_allocation": {"", "the CPU allocation"}, "memory_allocation": {"", "the memory allocation"}, "settings_changed": {"", "the settings that are not default"},
	}
}

// factWords is what people call a fact of an inventory or a host by its key:
// "guests.nics.uplink" is "uplink in use of each adapter", "port_groups.lab.failover"
// is "teaming of port group lab". Keys of something else stay as they are.
func factWords(key string) string {
	parts, wholes := partWords(), wholeWords()
	head, rest, below := strings.Cut(key, ".")
	if !below {
		if head == "guests" {
			return "VMs"
		}
		return cmp.Or(parts[head], head)
	}
	whole, known := wholes[head]
	if !known {
		return key
	}
	if head == "guests" { // what is said of all of them
		if inner := factWords(rest); inner != rest || parts[rest] != "" {
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
	word, ok := parts[part]
	switch {
	case !ok && slices.Contains([]string{"settings_changed", "distribution"}, head):
		return part + " of " + whole[1]
	case !ok:
		return key
	case name != "":
		return word + " of " + strings.TrimSpace(whole[0]+" "+name)
	}
	return word + " of " + whole[1]
}
