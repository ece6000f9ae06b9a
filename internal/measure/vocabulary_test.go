package measure

import (
	"reflect"
	"strings"
	"testing"
)

// TestWords: administrators read words instead of keys, and a name stays whole.
func TestWords(t *testing.T) {
	v := NewVocabulary()
	for key, want := range map[string]string{
		"guests.nics.uplink": "uplink in use of each adapter", "guests.disks.size_bytes": "size of each virtual disk", "clock_ahead_ns": "clock offset",
		"port_groups.lab net.failover": "teaming of port group lab net", "interface.rx_ring_drops": "receive ring drops of each network card", "interfaces.vmnic0.rings": "rings of vmnic0",
		"nics.Network adapter 1.mac": "MAC address of Network adapter 1", "guests": "VMs", "guests.web.xml": "guests.web.xml", "guests.web": "VM web", "guests.tools": "tools",
		"settings_changed.drivers": "drivers of the non-default settings", "hosts.vmkernel_ports": "VMkernel ports of hosts", "what nobody knows": "what nobody knows", "bins": "bins", "security.security_modules": "security modules of the system", "cgroup.quota_cpus": "CPU quota", "interfaces.eth0.speed_bps": "speed of eth0", "cpu.max_hz": "maximum clock", "clock.synchronised": "synchronisation of the clock", "a.b": "a.b", "": "",
	} {
		if got := v.Words(key); got != want {
			t.Errorf("%q: %q, want %q", key, got, want)
		}
	}
}

// TestVocabulary: each row names an existing fact, once.
func TestVocabulary(t *testing.T) {
	known := map[string]bool{"load.processes": true, "cpu.idle_limit": true} // reasons alone have these
	keysOf(reflect.TypeFor[Facts](), "", known)
	seen := map[string]bool{}
	for _, row := range factRows() {
		if head, _, _ := strings.Cut(row.Key, "."); seen[row.Key] || !known[row.Key] && head != "paths" && head != "end_points" {
			t.Errorf("%s is twice there, or no fact", row.Key)
		}
		seen[row.Key] = true
	}
}

// keysOf adds the keys of a type's fields, and of the types nested in it.
func keysOf(x reflect.Type, at string, keys map[string]bool) {
	for x.Kind() == reflect.Pointer || x.Kind() == reflect.Slice {
		x = x.Elem()
	}
	if x.Kind() != reflect.Struct {
		return
	}
	for _, f := range reflect.VisibleFields(x) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		keys[at+name] = true
		keysOf(f.Type, at+name+".", keys)
	}
}

func TestVocabularyRow(t *testing.T) {
	v := NewVocabulary()
	for key, want := range map[string]FactRow{
		"interfaces.mtu_bytes":   {Title: "MTU", Rank: 2},
		"interfaces.pci.gen":     {Title: "PCIe generation", Rank: 14},
		"interfaces.pci.gen_max": {Title: "pci gen max", Trait: Minor}, // below one that is
		"disks.size_bytes":       {Title: "disks size", Trait: Minor},
		"load":                   {Title: "load", Trait: Noise},
		"interfaces.queues_of_x": {Title: "queues of x"},
	} {
		if want.Key = key; v.Row(key) != want {
			t.Errorf("%+v, want %+v", v.Row(key), want)
		}
	}
	for key, want := range map[string]string{
		"firewall.nft_tables": "firewall rules", "machine.uuid": "UUID of the machine", "machine": "make and model", "load.processes": "other processes",
		"interfaces.bond0.100.rings.rx": "receive ring", "interfaces.eth0.pci.usable_bps": "PCIe usable rate", "interfaces.eth0.port": "port", "ram.huge_pages": "ram huge pages",
	} {
		if got := v.Title(key); got != want {
			t.Errorf("%s: %q, want %q", key, got, want)
		}
	}
}
