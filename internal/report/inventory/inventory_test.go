package inventory

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"thru/internal/doc"
	"thru/internal/measure"
)

func marksOf(v *measure.Inventory) (lines []string, odd map[string]bool) {
	marks, odd := standOut(newIndex(v))
	for _, m := range marks {
		lines = append(lines, m.Line())
	}
	return lines, odd
}

// TestStandsOut: settings that cost throughput are named with their objects; unknown and proper ones are not.
func TestStandsOut(t *testing.T) {
	on := func(change func(*measure.Guest)) measure.Inventory {
		g := measure.Guest{ID: "1", Name: "g", Power: "on", Memory: new(int64(8 << 30))}
		change(&g)
		return measure.Inventory{Guests: []measure.Guest{g}}
	}
	nic := func(n measure.GuestNIC) func(*measure.Guest) {
		return func(g *measure.Guest) { g.NICs = []measure.GuestNIC{n} }
	}
	host := func(change func(*measure.GuestHost)) measure.Inventory {
		h := measure.GuestHost{ID: "h", Name: "h", Facts: &measure.Facts{Cores: new(8), Memory: new(int64(16 << 30))}}
		change(&h)
		return measure.Inventory{Hosts: []measure.GuestHost{h}}
	}
	for name, tt := range map[string]struct {
		v    measure.Inventory
		says string // "": nothing
	}{
		"nothing":         {on(func(*measure.Guest) {}), ""},
		"emulated":        {on(nic(measure.GuestNIC{Model: new("E1000e")})), "1 VM has an emulated adapter (E1000e): g"},
		"paravirtual":     {on(nic(measure.GuestNIC{Model: new("vmxnet3"), Connected: new(true)})), ""},
		"model not known": {on(nic(measure.GuestNIC{})), ""},
		"template":        {on(func(g *measure.Guest) { g.Template = true; g.NICs = []measure.GuestNIC{{Model: new("e1000")}} }), ""},
		"CPU limit":       {on(func(g *measure.Guest) { g.CPUShare = &measure.Allocation{Limited: new(true)} }), "1 VM has a CPU limit: g"},
		"no CPU limit":    {on(func(g *measure.Guest) { g.CPUShare = &measure.Allocation{Limited: new(false)} }), ""},
		"quota":           {on(func(g *measure.Guest) { g.CPUQuota = new(1.5) }), "1 VM has a CPU limit: g"},
		"memory limit": {on(func(g *measure.Guest) {
			g.MemoryShare = &measure.Allocation{Limited: new(true), Limit: new(int64(4 << 30))}
		}), "1 VM has a memory limit"},
		"roomy limit": {on(func(g *measure.Guest) {
			g.MemoryShare = &measure.Allocation{Limited: new(true), Limit: new(int64(9 << 30))}
		}), ""},
		"affinity":         {on(func(g *measure.Guest) { g.Affinity = []int{1} }), "CPU affinity to some of the host's CPUs: g"},
		"tools":            {on(func(g *measure.Guest) { g.Tools = &measure.GuestTools{Running: new(false)} }), "1 VM has no running VMware Tools"},
		"tools, off":       {on(func(g *measure.Guest) { g.Power, g.Tools = "off", &measure.GuestTools{Running: new(false)} }), ""},
		"not connected":    {on(nic(measure.GuestNIC{Connected: new(false)})), "a disconnected adapter: g"},
		"held":             {on(nic(measure.GuestNIC{Limit: &measure.Shaping{AverageBps: new(int64(1e8))}})), "an adapter with a rate limit (sending 100 Mb/s): g"},
		"I/O control":      {on(nic(measure.GuestNIC{IOLimit: &measure.Shaping{AverageBps: new(int64(1e8))}})), "(100 Mb/s by Network I/O Control): g"},
		"emulated by QEMU": {measure.Inventory{Kind: measure.KindKVM, Guests: []measure.Guest{{Name: "g", NICs: []measure.GuestNIC{{Model: new("vmxnet3")}}}}}, "an emulated adapter (vmxnet3): g; each packet costs far more CPU than with virtio and vhost"},
		"NetQueue off": {host(func(h *measure.GuestHost) {
			h.Facts.Changed = map[string]string{"VMkernel.Boot.netNetqueueEnabled": "FALSE (default TRUE, configured FALSE)"}
		}), "1 host is running without NetQueue (netNetqueueEnabled): h"},
		"NetQueue on": {host(func(h *measure.GuestHost) { h.Facts.Changed = map[string]string{"netNetqueueEnabled": "TRUE"} }), ""},
		"no vhost":    {on(nic(measure.GuestNIC{Model: new("virtio"), Vhost: new(false)})), "no vhost"},
		"legacy": {host(func(h *measure.GuestHost) {
			h.Facts.Changed = map[string]string{"VMkernel.Boot.allowLegacyCPU": "true"}
		}), "h (VMkernel.Boot.allowLegacyCPU=true)"},
		"legacy off":  {host(func(h *measure.GuestHost) { h.Facts.Changed = map[string]string{"allowLegacyCPU": "FALSE"} }), ""},
		"maintenance": {host(func(h *measure.GuestHost) { h.Maintenance = new(true) }), "not in service: h (maintenance)"},
		"gone":        {host(func(h *measure.GuestHost) { h.State = new("not responding") }), "not in service: h (not responding)"},
		"crowded":     {host(func(h *measure.GuestHost) { h.CPUsHanded = new(9) }), "1 host is running guests with more virtual CPUs than it has threads"},
		"two crowded": {measure.Inventory{Hosts: []measure.GuestHost{{ID: "a", CPUsHanded: new(9), Facts: &measure.Facts{Cores: new(8)}}, {ID: "b", CPUsHanded: new(9), Facts: &measure.Facts{Cores: new(8)}}}}, "2 hosts are running guests with more virtual CPUs than they have threads"},
		"room":        {host(func(h *measure.GuestHost) { h.CPUsHanded, h.MemHanded = new(8), new(int64(16<<30)) }), ""},
		"memory":      {host(func(h *measure.GuestHost) { h.MemHanded = new(int64(17 << 30)) }), "more memory than it has"},
		"clock":       {measure.Inventory{ClockNs: new(int64(-90e9))}, "the clock is 1 min 30 s behind"},
		"VLANs":       {measure.Inventory{Hosts: []measure.GuestHost{{ID: "a", Name: "a", Site: "east"}, {ID: "b", Name: "b", Site: "east"}}, PortGroups: []measure.SwitchPortGroup{{Name: "p", Host: "a", VLAN: new("10")}, {Name: "p", Host: "b", VLAN: new("20")}}}, "1 network does not have the same VLAN on all hosts of a cluster or data center: p in east (10 on a; 20 on b)"},
		"other sites": {measure.Inventory{Hosts: []measure.GuestHost{{ID: "a", Name: "a", Site: "east"}, {ID: "b", Name: "b", Site: "west"}}, PortGroups: []measure.SwitchPortGroup{{Name: "p", Host: "a", VLAN: new("10")}, {Name: "p", Host: "b", VLAN: new("20")}},
			Switches: []measure.VirtualSwitch{{ID: "1", Name: "vSwitch0", Host: "a", MTU: new(1500)}, {ID: "2", Name: "vSwitch0", Host: "b", MTU: new(9000)}}}, ""},
		"port above":       {measure.Inventory{Hosts: []measure.GuestHost{{ID: "h", Name: "h", Ports: []measure.VMkernelPort{{Device: "vmk1", PortGroup: "p", MTU: new(9000)}}}}, PortGroups: []measure.SwitchPortGroup{{ID: "p", Switch: "s"}}, Switches: []measure.VirtualSwitch{{ID: "s", Name: "vSwitch0", MTU: new(1500)}}}, "vSwitch0 (MTU 1500, vmk1 of h has 9000)"},
		"tap above bridge": {measure.Inventory{Guests: []measure.Guest{{Name: "g", NICs: []measure.GuestNIC{{Switch: "b", Device: new("tap0"), MTU: new(9000)}}}}, Switches: []measure.VirtualSwitch{{ID: "b", Name: "br0", MTU: new(1500)}}}, "br0 (MTU 1500, tap0 of g has 9000)"},
	} {
		lines, _ := marksOf(&tt.v)
		if tt.says == "" && len(lines) > 0 || tt.says != "" && !strings.Contains(strings.Join(lines, "\n"), tt.says) {
			t.Errorf("%s: %q, want %q", name, lines, tt.says)
		}
	}
}

// TestUnlike: settings of each host are compared only between hosts that guests move between, and these hosts
// are named.
func TestUnlike(t *testing.T) {
	of := func(places ...[2]string) *measure.Inventory {
		v := &measure.Inventory{}
		for i, place := range places {
			id := fmt.Sprintf("esx%d", i+1)
			v.Hosts = append(v.Hosts, measure.GuestHost{ID: id, Name: id, Site: place[0], Cluster: place[1]})
			v.Switches = append(v.Switches, measure.VirtualSwitch{ID: "s" + id, Name: "vSwitch0", Host: id, MTU: new(1500 + 7500*min(i, 1))})
			v.PortGroups = append(v.PortGroups, measure.SwitchPortGroup{ID: "p" + id, Name: "VM Network", Switch: "s" + id, VLAN: new(strconv.Itoa(20 * min(i, 1)))})
		}
		return v
	}
	mtu, vlan := "1 switch name does not have the same MTU on all hosts of a cluster or data center: vSwitch0 in ", "1 network does not have the same VLAN on all hosts of a cluster or data center: VM Network in "
	for name, tt := range map[string]struct {
		v    *measure.Inventory
		says []string
	}{
		"two data centers": {of([2]string{"fra", ""}, [2]string{"ber", ""}), nil},
		"two clusters":     {of([2]string{"fra", "prod"}, [2]string{"fra", "test"}), nil},
		"one cluster": {of([2]string{"fra", "prod"}, [2]string{"fra", "prod"}, [2]string{"fra", "prod"}, [2]string{"fra", "prod"}),
			[]string{mtu + "prod (1500 on esx1; 9000 on esx2, esx3 and 1 more);", vlan + "prod (20 on esx2, esx3 and 1 more; no tag on esx1);"}},
		"no cluster": {of([2]string{"fra", ""}, [2]string{"fra", ""}), []string{mtu + "fra (1500 on esx1; 9000 on esx2);", vlan + "fra (20 on esx2; no tag on esx1);"}},
	} {
		lines, _ := marksOf(tt.v)
		if len(lines) != len(tt.says) {
			t.Errorf("%s: %q", name, lines)
			continue
		}
		for i, want := range tt.says {
			if !strings.HasPrefix(lines[i], want) {
				t.Errorf("%s: %q, want %q", name, lines[i], want)
			}
		}
	}
}

// TestUnnamedPortGroups: a host knows its guests' ports of a distributed switch, but not the names of its
// port groups. The table shows the names that the guests have.
func TestUnnamedPortGroups(t *testing.T) {
	nic := measure.GuestNIC{Switch: "d", Network: new("dvportgroup-12")}
	v := &measure.Inventory{Hosts: []measure.GuestHost{{ID: "h", Name: "esx1"}}, Switches: []measure.VirtualSwitch{{ID: "d", Name: "dvs-prod", Hosts: []string{"h"}}, {ID: "e", Name: "dvs-empty", Hosts: []string{"h"}}},
		Guests: []measure.Guest{{Name: "a", NICs: []measure.GuestNIC{nic, nic}}, {Name: "b", NICs: []measure.GuestNIC{nic}}}}
	var rows []string
	for _, r := range networkGrid(newIndex(v)).Rows {
		rows = append(rows, strings.Join(r, "|"))
	}
	if want := []string{"dvportgroup-12|dvs-prod|2|esx1", "dvs-empty|dvs-empty|0|esx1"}; !slices.Equal(rows, want) {
		t.Errorf("%q, want %q", rows, want)
	}
}

// TestSettingsChanged: unreadable settings do not hide those that were read.
func TestSettingsChanged(t *testing.T) {
	x := newIndex(&measure.Inventory{Kind: measure.KindVSphere})
	part := func(what string) measure.NotChecked {
		return measure.NotChecked{Fact: "settings_changed" + what, Why: "refused"}
	}
	for name, tt := range map[string]struct {
		changed map[string]string
		missing []measure.NotChecked
		want    string
	}{
		"all read":     {nil, nil, "none"},
		"changed":      {map[string]string{"a": "1"}, nil, "a=1"},
		"nothing read": {nil, []measure.NotChecked{part("")}, ""},
		"parts":        {nil, []measure.NotChecked{part(".drivers"), part(".allowLegacyCPU")}, "none among those read; drivers not checked (refused); allowLegacyCPU not checked (refused)"},
		"some":         {map[string]string{"a": "1"}, []measure.NotChecked{part("")}, "a=1; others not checked (refused)"},
	} {
		h := &measure.GuestHost{Facts: &measure.Facts{Changed: tt.changed}}
		if got := settingsChanged(x, h, tt.missing); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// TestReasonOfAll: a fact that is unknown for all guests has its reason in each fact sheet.
func TestReasonOfAll(t *testing.T) {
	v := &measure.Inventory{Kind: measure.KindKVM, Guests: []measure.Guest{{ID: "g", Name: "g", NotChecked: []measure.NotChecked{{Fact: "cpu_quota_cpus", Why: "no control group"}}}}, NotChecked: []measure.NotChecked{{Fact: "guests.tools", Why: "nobody asked inside"}}}
	for _, r := range guestFactSheet(newIndex(v), &v.Guests[0]).Rows {
		want := map[string]string{"tools": doc.NotChecked + ": nobody asked inside", "CPU allocation": doc.NotChecked + ": no control group", "latency sensitivity": "no such line"}[r.Name]
		if want != "" && r.Value != want {
			t.Errorf("%s: %q, want %q", r.Name, r.Value, want)
		}
	}
}

// TestRecordIsWhole: the fact sheets have each line of C-07 and C-08, with a value or the reason why it is
// missing.
func TestRecordIsWhole(t *testing.T) {
	bare := (&measure.Document{Command: "inventory", Inventories: []measure.Inventory{{Kind: measure.KindVSphere, Hosts: []measure.GuestHost{{ID: "h", Name: "h"}}, Guests: []measure.Guest{{ID: "g", Name: "g"}}}}})
	for name, d := range map[string]*measure.Document{"full": clusterDocument(t), "bare": bare} {
		x := newIndex(&d.Inventories[0])
		for what, s := range map[string]struct {
			factSheet factSheet
			lines     []string
		}{
			"host": {hostFactSheet(x, &x.Hosts[0]), []string{"make and model", "firmware", "CPU type", "CPU number", "CPU speed", "RAM", "disks", "disk array, RAID", "network cards",
				"datastores, VMFS version", "version and build", "BIOS, not default", "settings, not default", "unsupported CPU"}},
			"guest": {guestFactSheet(x, &x.Guests[0]), []string{"vCPUs", "RAM", "storage adapters", "network adapters", "CPU allocation", "memory allocation", "CPU affinity", "OS and service pack"}},
		} {
			for _, line := range s.lines {
				i := slices.IndexFunc(s.factSheet.Rows, func(r doc.Row) bool { return r.Name == line })
				if i < 0 || s.factSheet.Rows[i].Value == "" || s.factSheet.Rows[i].Value == doc.NotChecked {
					t.Errorf("%s, %s: no line %q, or without a reason: %+v", name, what, line, s.factSheet.Rows)
				}
			}
		}
	}
	x := newIndex(&clusterDocument(t).Inventories[0])
	disk := guestFactSheet(x, &x.Guests[1]).Rows
	i := slices.IndexFunc(disk, func(r doc.Row) bool { return r.Name == "Hard disk 1" })
	for _, part := range []string{"lsilogic", "flat", "60 GiB", "independent nonpersistent", "format not checked (the account may not read it)", "origin not checked", "old (VMFS-5)"} {
		if !strings.Contains(disk[i].Value, part) {
			t.Errorf("the disk %q does not say %q", disk[i].Value, part)
		}
	}
}

// TestInventoryColumnsAreDescribed: docs/inventory.md names every column of the CSV.
func TestInventoryColumnsAreDescribed(t *testing.T) {
	text, err := os.ReadFile("../../../docs/inventory.md")
	if err != nil {
		t.Fatal(err)
	}
	_, columns, _ := strings.Cut(string(text), "## CSV")
	var named []string
	for _, m := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(columns, -1) {
		named = append(named, m[1])
	}
	for _, name := range inventoryColumns() {
		if !slices.Contains(named, name) {
			t.Errorf("%s is not described", name)
		}
	}
}

// clusterDocument returns the inventory of report's golden files.
func clusterDocument(t *testing.T) *measure.Document {
	t.Helper()
	data, err := os.ReadFile("../testdata/inventory.json.golden")
	d := &measure.Document{}
	if err == nil {
		err = json.Unmarshal(data, d)
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}
