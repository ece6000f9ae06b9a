package report

import (
	"bytes"
	"encoding/csv"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"thru/internal/measure"
)

func marksOf(v *measure.Inventory) (lines []string, odd map[string]bool) {
	marks, odd := standOut(newEstateIndex(v))
	for _, m := range marks {
		lines = append(lines, m.Line())
	}
	return lines, odd
}

// TestStandsOut: what costs traffic is named with who has it, and what is not
// known or is as it should be is not.
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
		"affinity":      {on(func(g *measure.Guest) { g.Affinity = []int{1} }), "bound to some of the host's: g"},
		"tools":         {on(func(g *measure.Guest) { g.Tools = &measure.GuestTools{Running: new(false)} }), "1 VM has no tools that run"},
		"tools, off":    {on(func(g *measure.Guest) { g.Power, g.Tools = "off", &measure.GuestTools{Running: new(false)} }), ""},
		"not connected": {on(nic(measure.GuestNIC{Connected: new(false)})), "an adapter that is not connected: g"},
		"held":          {on(nic(measure.GuestNIC{Limit: &measure.Shaping{AverageBps: new(int64(1e8))}})), "an adapter that is held to a rate (out 100 Mb/s): g"},
		"no vhost":      {on(nic(measure.GuestNIC{Model: new("virtio"), Vhost: new(false)})), "no vhost"},
		"legacy": {host(func(h *measure.GuestHost) {
			h.Facts.Changed = map[string]string{"VMkernel.Boot.allowLegacyCPU": "true"}
		}), "h (VMkernel.Boot.allowLegacyCPU=true)"},
		"legacy off":       {host(func(h *measure.GuestHost) { h.Facts.Changed = map[string]string{"allowLegacyCPU": "FALSE"} }), ""},
		"maintenance":      {host(func(h *measure.GuestHost) { h.Maintenance = new(true) }), "not in service: h (maintenance)"},
		"gone":             {host(func(h *measure.GuestHost) { h.State = new("not responding") }), "not in service: h (not responding)"},
		"crowded":          {host(func(h *measure.GuestHost) { h.CPUsHanded = new(9) }), "1 host is running guests with more virtual CPUs than it has threads"},
		"two crowded":      {measure.Inventory{Hosts: []measure.GuestHost{{ID: "a", CPUsHanded: new(9), Facts: &measure.Facts{Cores: new(8)}}, {ID: "b", CPUsHanded: new(9), Facts: &measure.Facts{Cores: new(8)}}}}, "2 hosts are running guests with more virtual CPUs than they have threads"},
		"room":             {host(func(h *measure.GuestHost) { h.CPUsHanded, h.MemHanded = new(8), new(int64(16<<30)) }), ""},
		"memory":           {host(func(h *measure.GuestHost) { h.MemHanded = new(int64(17 << 30)) }), "more memory than it has"},
		"clock":            {measure.Inventory{ClockNs: new(int64(-90e9))}, "its clock is 1 min 30 s behind"},
		"port above":       {measure.Inventory{Hosts: []measure.GuestHost{{ID: "h", Name: "h", Ports: []measure.VMkernelPort{{Device: "vmk1", PortGroup: "p", MTU: new(9000)}}}}, PortGroups: []measure.SwitchPortGroup{{ID: "p", Switch: "s"}}, Switches: []measure.VirtualSwitch{{ID: "s", Name: "vSwitch0", MTU: new(1500)}}}, "vSwitch0 (MTU 1500, vmk1 of h has 9000)"},
		"tap above bridge": {measure.Inventory{Guests: []measure.Guest{{Name: "g", NICs: []measure.GuestNIC{{Switch: "b", Device: new("tap0"), MTU: new(9000)}}}}, Switches: []measure.VirtualSwitch{{ID: "b", Name: "br0", MTU: new(1500)}}}, "br0 (MTU 1500, tap0 of g has 9000)"},
	} {
		lines, _ := marksOf(&tt.v)
		if tt.says == "" && len(lines) > 0 || tt.says != "" && !strings.Contains(strings.Join(lines, "\n"), tt.says) {
			t.Errorf("%s: %q, want %q", name, lines, tt.says)
		}
	}
}

// TestRecordIsWhole: the sheets have each line that C-07 and C-08 ask for, with a
// value or why there is none.
func TestRecordIsWhole(t *testing.T) {
	bare := inventoryOf(measure.Inventory{Kind: measure.KindVSphere, Hosts: []measure.GuestHost{{ID: "h", Name: "h"}}, Guests: []measure.Guest{{ID: "g", Name: "g"}}})
	for name, d := range map[string]*measure.Document{"full": clusterDocument(), "bare": bare} {
		x := newEstateIndex(&d.Inventories[0])
		for what, s := range map[string]struct {
			sheet sheet
			lines []string
		}{
			"host": {hostSheet(x, &x.Hosts[0]), []string{"make and model", "firmware", "CPU type", "CPU number", "CPU speed", "RAM", "disks", "disk array, RAID", "network cards",
				"datastores, VMFS version", "version and build", "BIOS, not default", "settings, not default", "unsupported CPU"}},
			"guest": {guestSheet(x, &x.Guests[0]), []string{"vCPUs", "RAM", "storage adapters", "network adapters", "CPU allocation", "memory allocation", "CPU affinity", "OS and service pack"}},
		} {
			for _, line := range s.lines {
				i := slices.IndexFunc(s.sheet.Rows, func(r row) bool { return r.Name == line })
				if i < 0 || s.sheet.Rows[i].Value == "" || s.sheet.Rows[i].Value == notChecked {
					t.Errorf("%s, %s: no line %q, or without a reason: %+v", name, what, line, s.sheet.Rows)
				}
			}
		}
	}
	x := newEstateIndex(&clusterDocument().Inventories[0])
	disk := guestSheet(x, &x.Guests[1]).Rows
	i := slices.IndexFunc(disk, func(r row) bool { return r.Name == "Hard disk 1" })
	for _, part := range []string{"lsilogic", "flat", "60 GiB", "independent nonpersistent", "format not checked (the account may not read it)", "how created not checked", "old (VMFS-5)"} {
		if !strings.Contains(disk[i].Value, part) {
			t.Errorf("the disk %q does not say %q", disk[i].Value, part)
		}
	}
}

// TestRecordOfAPlacedEndPoint: what a guest cannot see of itself comes from what lies below it.
func TestRecordOfAPlacedEndPoint(t *testing.T) {
	d := clusterDocument()
	d.Command = "test"
	f := linuxFacts("web1", 8)
	f.Hypervisor = new("vmware")
	d.EndPoints = []measure.EndPoint{{Name: "local", Facts: f, Placement: &measure.Placement{Source: d.Inventories[0].Source, Guest: "vm-1", Host: "esx1"}}, {Name: "peer", Facts: f, NoPlace: "no VM has its addresses"}}
	text := map[string][]string{}
	for _, part := range newInventory(d).Parts {
		for _, r := range part.Rows {
			text[r.Name] = r.Values
		}
	}
	for name, want := range map[string]string{"hypervisor, version and build": "VMware ESXi (ESXi-8.0U3-standard), 8.0.3 build-24022510, on esx1.example", "reservations, limits and shares": "CPU: reserved 4.00 GHz, limit 8.00 GHz",
		"CPU affinity of the guest": "any CPU of the host", "virtual disks and their adapters": "Hard disk 1: pvscsi, flat, 40 GiB, thin"} {
		if got := text[name]; !strings.Contains(got[0], want) || strings.Contains(got[1], want) {
			t.Errorf("%s: %q, want %q of the first alone", name, got, want)
		}
	}
	var page bytes.Buffer
	if err := HTML(&page, d, HTMLOptions{}); err != nil || !strings.Contains(page.String(), "Below the end points") {
		t.Errorf("the page does not say what lies below: %v", err)
	}
}

// TestInventoryOfThousands: a page of 5,000 VMs has a row for each, sheets of
// those that stand out first, and says how to see the others; a terminal lists
// some, a file all.
func TestInventoryOfThousands(t *testing.T) {
	d := manyGuests(5000)
	page := pageOf(t, d)
	if len(page) > 4<<20 || strings.Count(page, "guest-") < 5000 || !strings.Contains(page, "4700 more VMs have no sheet here") {
		t.Errorf("a page of %d bytes, %d names", len(page), strings.Count(page, "guest-"))
	}
	if n := strings.Count(page, `<summary>guest-`); n != maxSheets {
		t.Errorf("%d sheets", n)
	}
	d = manyGuests(1000)
	var wide, piped, table bytes.Buffer
	if Text(&wide, d, TextOptions{Width: 120}) != nil || Text(&piped, d, TextOptions{}) != nil || CSV(&table, d) != nil {
		t.Fatal("not printed")
	}
	if n := strings.Count(wide.String(), " guest-"); n > textGuests+100 || !strings.Contains(wide.String(), "and 800 more") {
		t.Errorf("%d VMs on a terminal", n)
	}
	if n := strings.Count(piped.String(), "\n  guest-"); n != 1000 {
		t.Errorf("%d VMs in a file", n)
	}
	rows, err := csv.NewReader(&table).ReadAll()
	if err != nil || len(rows) < 1+100+3*1000 {
		t.Errorf("%d rows of CSV: %v", len(rows), err)
	}
}

// TestInventoryIsHarmless: names of guests are chosen by others.
func TestInventoryIsHarmless(t *testing.T) {
	evil := "=1+1\x1b[31m<script>|`\n@x"
	d := clusterDocument()
	v := &d.Inventories[0]
	v.Guests[0].Name, v.Guests[0].Advanced = evil, map[string]string{evil: evil}
	v.Guests[1].NICs[0].Model, v.Guests[1].Disks[0].Name = new(evil), evil
	v.Hosts[0].Name, v.Switches[0].Name, v.PortGroups[0].Name, v.Datastores[0].Name, v.Product = evil, evil, evil, evil, evil
	v.NotChecked = []measure.NotChecked{{Fact: evil, Why: evil}}
	var text, table, md bytes.Buffer
	if Text(&text, d, TextOptions{}) != nil || CSV(&table, d) != nil || Markdown(&md, d, MarkdownOptions{}) != nil {
		t.Fatal("not printed")
	}
	for name, s := range map[string]string{"text": text.String(), "page": pageOf(t, d), "CSV": table.String(), "Markdown": md.String()} {
		if strings.Contains(s, "\x1b") || (name == "page" || name == "Markdown") && strings.Contains(s, "<script>") {
			t.Errorf("%s has it raw", name)
		}
	}
	rows, err := csv.NewReader(&table).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		for _, c := range r {
			if strings.HasPrefix(c, "=") {
				t.Errorf("a formula: %q", c)
			}
		}
	}
}

// TestInventoryColumnsAreDescribed: docs/inventory.md names every column of the CSV.
func TestInventoryColumnsAreDescribed(t *testing.T) {
	text, err := os.ReadFile("../../docs/inventory.md")
	if err != nil {
		t.Fatal(err)
	}
	_, doc, _ := strings.Cut(string(text), "## CSV")
	var named []string
	for _, m := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(doc, -1) {
		named = append(named, m[1])
	}
	for _, name := range inventoryColumns() {
		if !slices.Contains(named, name) {
			t.Errorf("%s is not described", name)
		}
	}
}
