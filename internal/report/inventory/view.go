package inventory

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/unit"
)

// Limits of what a page shows of an inventory; the JSON document has all.
const (
	maxInventories = 8
	maxGuestRows   = 5000
	maxFactSheets  = 300 // of guests; those with anomalies come first
	fewGuests      = 60  // up to this number a page shows one table, else one for each host
)

// view is an inventory ready to print: hosts, guests and networks, anomalies, and a fact sheet of each host
// and guest (C-07, C-08).
type view struct {
	Source          string
	Kind            string // "vsphere", "esxi", "kvm"
	Answer          string
	Below           bool // it is the placement of a test's end points
	Hosts           doc.Table
	Groups          []guestGroup
	Networks        doc.Table
	Stores          doc.Table
	Observations    []observation
	HostFactSheets  []factSheet
	GuestFactSheets []factSheet
	Unsheeted       int // guests without a fact sheet
	Gaps            []doc.Gap
}

// guestGroup holds the guests of one host; few guests form a single group.
type guestGroup struct {
	Name      string // host; "" for all
	doc.Table        // with a class of each row, for the filters of a page: "off", "odd"
}

// Count returns the number of guests, and how many of them have anomalies.
func (g guestGroup) Count() string {
	odd := unit.CountFunc(g.Classes, func(c string) bool { return strings.Contains(c, "odd") })
	s := unit.Plural(len(g.Rows), "VM")
	if odd > 0 {
		s += ", " + strconv.Itoa(odd) + doc.Verb(odd, " with an anomaly", " with anomalies")
	}
	return s
}

// filtered reports whether a page has enough guests to need filters.
func (e view) filtered() bool {
	n := 0
	for _, g := range e.Groups {
		n += len(g.Rows)
	}
	return n > fewGuests/4
}

// Is reports whether a document is of `thru inventory` and has inventories.
func Is(d *measure.Document) bool { return d.Command == "inventory" && len(d.Inventories) > 0 }

// newEstates returns the inventories of a document ready to print.
func newEstates(d *measure.Document) (all []view) {
	for i := range d.Inventories[:min(len(d.Inventories), maxInventories)] {
		e := newView(&d.Inventories[i])
		e.Below = !Is(d)
		all = append(all, e)
	}
	return all
}

func newView(v *measure.Inventory) view {
	x := newIndex(v)
	marks, odd := standOut(x)
	e := view{
		Source: doc.Clean(v.Source), Kind: doc.Clean(v.Kind), Answer: inventoryAnswer(v, len(marks)), Observations: marks,
		Hosts: hostGrid(x), Groups: guestGroups(x, odd), Networks: networkGrid(x), Stores: storeGrid(x),
	}
	for i := range v.Hosts[:min(len(v.Hosts), maxFactSheets)] {
		e.HostFactSheets = append(e.HostFactSheets, hostFactSheet(x, &v.Hosts[i]))
	}
	guests := sheeted(v.Guests, odd)
	e.Unsheeted = len(v.Guests) - len(guests)
	for _, g := range guests {
		e.GuestFactSheets = append(e.GuestFactSheets, guestFactSheet(x, g))
	}
	words := measure.NewVocabulary()
	for _, m := range v.NotChecked {
		e.Gaps = doc.AddGap(e.Gaps, words.Words(doc.Clean(m.Fact)), doc.Reason(m.Why))
	}
	return e
}

// sheeted returns the guests with a fact sheet on a page, in order.
func sheeted(guests []measure.Guest, odd map[string]bool) (all []*measure.Guest) {
	room := maxFactSheets
	for i := range guests {
		if odd[guests[i].ID] {
			room--
		}
	}
	for i := range guests {
		if g := &guests[i]; odd[g.ID] && len(all) < maxFactSheets {
			all = append(all, g)
		} else if !odd[g.ID] && room > 0 {
			all, room = append(all, g), room-1
		}
	}
	return all[:min(len(all), maxFactSheets)]
}

// inventoryAnswer returns "3 hosts, 12 VMs (9 on), VMware vCenter Server 8.0.3 at vsphere://ro@vc; 2
// anomalies".
func inventoryAnswer(v *measure.Inventory, marks int) string {
	on := unit.CountFunc(v.Guests, func(g measure.Guest) bool { return g.Power == "on" })
	s := countOf(len(v.Hosts), v.HostsTotal, "host") + ", " + countOf(len(v.Guests), v.GuestsTotal, "VM")
	switch {
	case len(v.Guests) > 0 && on == len(v.Guests):
		s += doc.Verb(on, " (on)", " (all on)")
	case len(v.Guests) > 0:
		s += fmt.Sprintf(" (%d on)", on)
	}
	if len(v.Guests) == 0 && v.Kind == measure.KindKVM {
		s = "QEMU runs no virtual machine"
	} else {
		s = doc.Join(s, doc.Clean(v.Product))
	}
	if v.Source == "local" {
		s += " on this machine"
	} else if v.Source != "" {
		s += " at " + doc.Clean(v.Source)
	}
	if marks > 0 {
		s += "; " + strconv.Itoa(marks) + doc.Verb(marks, " anomaly", " anomalies")
	}
	return s
}

// countOf returns "3 hosts", or "3 of 40 hosts" if only some were chosen.
func countOf(n int, total *int, noun string) string {
	if total == nil || *total <= n {
		return unit.Plural(n, noun)
	}
	return strconv.Itoa(n) + " of " + unit.Plural(*total, noun)
}

// Answers returns a line for each inventory.
func Answers(d *measure.Document) (all []string) {
	for i := range d.Inventories[:min(len(d.Inventories), maxInventories)] {
		v := &d.Inventories[i]
		marks, _ := standOut(newIndex(v))
		s := inventoryAnswer(v, len(marks))
		if d.Error != nil {
			s += " (partial: ended early)"
		}
		all = append(all, s)
	}
	return all
}

func hostGrid(x *index) doc.Table {
	// A terminal leaves out the last columns that have no room.
	g := doc.Table{Fit: true, Caption: "Hosts", Columns: []doc.Column{{Name: "host", Least: 12}, {Name: "state", Least: 9}, {Name: "cluster", Least: 8}, {Name: "threads", Right: true}, {Name: "memory", Right: true},
		{Name: "running VMs", Right: true}, {Name: "their vCPUs", Right: true}, {Name: "version", Least: 12, Detail: true}, {Name: "model", Least: 12, Detail: true}, {Name: "CPU", Least: 14, Detail: true}}}
	for i := range x.Hosts {
		h := &x.Hosts[i]
		f := h.Facts
		if f == nil {
			f = &measure.Facts{}
		}
		g.Rows = append(g.Rows, dashed(h.Name, hostState(h), h.Cluster, doc.Number(f.ThreadCount()), memoryOf(f), doc.Number(h.Guests), doc.Number(h.CPUsHanded),
			shortProduct(hostVersion(f)), machineModel(f.Machine), shortCPU(measure.Value(f.CPUModel))))
	}
	return g.WithoutEmpty().First(maxRows)
}

// shortCPU returns the name of a processor without generic words.
func shortCPU(model string) string {
	for _, noise := range []string{"(R)", "(TM)", "(r)", "(tm)", " CPU", " Processor"} {
		model = strings.ReplaceAll(model, noise, "")
	}
	return strings.Join(strings.Fields(model), " ")
}

// guestColumns returns the columns of the table of guests. A terminal omits the last ones that do not fit.
func guestColumns() []doc.Column {
	return []doc.Column{{Name: "VM", Least: 10}, {Name: "power"}, {Name: "vCPUs", Right: true}, {Name: "memory", Right: true}, {Name: "adapter", Least: 8},
		{Name: "network", Least: 12}, {Name: "host", Least: 10}, {Name: "addresses", Least: 15, Detail: true}, {Name: "system", Least: 12, Detail: true}}
}

func guestRow(x *index, g *measure.Guest) []string {
	host := ""
	if h := x.hosts[g.Host]; h != nil {
		host = h.Name
	}
	power := g.Power
	if g.Template {
		power = "template"
	}
	return dashed(g.Name, power, doc.Number(g.CPUs), bytesText(g.Memory), adaptersText(g), networksText(x, g), cmp.Or(host, g.Host), addressesText(g.Addrs), cmp.Or(measure.Value(g.OSRuns), measure.Value(g.OS)))
}

// shownAddrs is how many addresses of a guest a table shows.
const shownAddrs = 2

func addressesText(addrs []string) string {
	s := strings.Join(addrs[:min(len(addrs), shownAddrs)], ", ")
	if n := len(addrs) - shownAddrs; n > 0 {
		s += fmt.Sprintf(" and %d more", n)
	}
	return s
}

// guestGroups returns the tables of guests: one, or one for each host if there are many.
func guestGroups(x *index, odd map[string]bool) []guestGroup {
	var order []string
	groups := map[string]*guestGroup{}
	many := len(x.Guests) > fewGuests && len(x.Hosts) > 1
	for i := range x.Guests[:min(len(x.Guests), maxGuestRows)] {
		g := &x.Guests[i]
		key := ""
		if many {
			key = g.Host
		}
		if groups[key] == nil {
			groups[key] = &guestGroup{Table: doc.Table{Columns: guestColumns()}}
			order = append(order, key)
		}
		class := ""
		if g.Power != "on" {
			class = "off"
		}
		if odd[g.ID] {
			class = strings.TrimSpace(class + " odd")
		}
		groups[key].Rows, groups[key].Classes = append(groups[key].Rows, guestRow(x, g)), append(groups[key].Classes, class)
	}
	var all []guestGroup
	for _, key := range order {
		if h := x.hosts[key]; h != nil {
			groups[key].Name = doc.Clean(h.Name)
		} else if many {
			groups[key].Name = "unknown host"
		}
		all = append(all, *groups[key])
	}
	slices.SortStableFunc(all, func(a, b guestGroup) int { return strings.Compare(a.Name, b.Name) })
	if n := len(x.Guests) - maxGuestRows; n > 0 {
		all[len(all)-1].More = fmt.Sprintf("and %d more VMs, see the JSON document", n)
	}
	return all
}
