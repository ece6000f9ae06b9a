package report

import (
	"bytes"
	"encoding/csv"
	"strings"
	"testing"

	"thru/internal/measure"
	"thru/internal/report/inventory"
)

// TestRecordOfAPlacedEndPoint: facts that a guest cannot see come from its hypervisor.
func TestRecordOfAPlacedEndPoint(t *testing.T) {
	d := clusterDocument()
	d.Command = "test"
	f := linuxFacts("web1", 8)
	f.Hypervisor = new("vmware")
	d.EndPoints = []measure.EndPoint{{Name: "local", Facts: f, Placement: &measure.Placement{Source: d.Inventories[0].Source, Guest: "vm-1", Host: "esx1"}}, {Name: "peer", Facts: f, NoPlace: "no VM has its addresses"}}
	text := map[string][]string{}
	for _, part := range inventory.Record(d).Parts {
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
	if err := HTML(&page, d, HTMLOptions{}); err != nil || !strings.Contains(page.String(), "Hypervisors of the end points") {
		t.Errorf("the page does not name the hypervisors: %v", err)
	}
}

// TestInventoryOfThousands: a page of 5,000 VMs has a row for each, fact sheets of those with anomalies
// first, and explains how to see the others; a terminal lists some, a file all.
func TestInventoryOfThousands(t *testing.T) {
	d := manyGuests(5000)
	page := pageOf(t, d)
	if len(page) > 4<<20 || strings.Count(page, "guest-") < 5000 || !strings.Contains(page, "4700 more VMs have no fact sheet here") {
		t.Errorf("a page of %d bytes, %d names", len(page), strings.Count(page, "guest-"))
	}
	if n := strings.Count(page, `<summary>guest-`); n != 300 {
		t.Errorf("%d sheets", n)
	}
	d = manyGuests(1000)
	var wide, piped, table bytes.Buffer
	if Text(&wide, d, TextOptions{Width: 120}) != nil || Text(&piped, d, TextOptions{}) != nil || CSV(&table, d) != nil {
		t.Fatal("not printed")
	}
	if n := strings.Count(wide.String(), " guest-"); n > 300 || !strings.Contains(wide.String(), "and 800 more") {
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

// TestInventoryIsHarmless: other people choose the names of guests.
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
