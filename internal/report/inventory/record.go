package inventory

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/report/facts"
	"thru/internal/unit"
)

// Checklists holds the acceptance record of all machines and guests: a row for each line of the checklists
// C-07 (host) and C-08 (guest). An unknown value has its reason.
type Checklists struct {
	Names []string
	Parts []facts.Hosts // one for each checklist
}

// inventoryItem is one line: its name, its value, and why it may be missing.
type inventoryItem struct {
	name    string
	value   func(*measure.Facts) string
	missing []string // facts that it consists of, by the prefix of their keys
	why     func(*measure.Facts) string
	outside func(*hostPlacement) string // its value in an inventory, which comes first: an end point cannot see it
}

// Record returns the lines of all end points side by side.
func Record(d *measure.Document) Checklists {
	points := d.EndPoints[:min(len(d.EndPoints), facts.MostEndPoints)]
	v := Checklists{}
	var placements []*hostPlacement
	for i, p := range points {
		v.Names, placements = append(v.Names, doc.Clean(p.Name)), append(placements, placementAt(d, &points[i]))
	}
	if len(points) == 0 {
		return v
	}
	for _, part := range []struct {
		name  string
		items []inventoryItem
	}{{"Machine", machineItems()}, {"Hypervisor and settings", settingItems()}, {"Guest", guestItems()}} {
		rows := facts.Hosts{Caption: part.name, Names: v.Names}
		for _, item := range part.items {
			r := facts.Row{Name: item.name}
			for i, p := range points {
				r.Values = append(r.Values, item.of(p, placements[i]))
			}
			rows.Rows = append(rows.Rows, r)
		}
		v.Parts = append(v.Parts, rows)
	}
	return v
}

// of returns the value of an item at an end point with a placement, or why it is missing.
func (i inventoryItem) of(p measure.EndPoint, at *hostPlacement) string {
	if i.outside != nil && at != nil {
		if s := i.outside(at); s != "" {
			return s
		}
	}
	if p.Facts == nil {
		return doc.NotChecked + ": this end point reported no facts of its host"
	}
	return i.from(p.Facts, p.Facts.NotChecked, "the system does not report it")
}

// from returns the value of an item from some facts, or why it is missing; otherwise is the reason if none is
// known.
func (i inventoryItem) from(f *measure.Facts, missing []measure.NotChecked, otherwise string) string {
	if s := i.value(f); s != "" {
		return doc.Clean(s)
	}
	for _, m := range missing {
		if slices.ContainsFunc(i.missing, func(key string) bool { return measure.IsPart(m.Fact, key) }) {
			return doc.NotChecked + ": " + doc.Reason(m.Why)
		}
	}
	if i.why != nil {
		return i.why(f)
	}
	return doc.NotChecked + ": " + otherwise
}

func machineItems() []inventoryItem {
	return []inventoryItem{
		{"make and model", func(f *measure.Facts) string { return facts.Machine(f.Machine) }, []string{"machine"}, nil, nil},
		{"firmware", func(f *measure.Facts) string { return facts.Firmware(f.Machine) }, []string{"machine"}, nil, nil},
		{"CPU type", func(f *measure.Facts) string { return measure.Value(f.CPUModel) }, []string{"cpu_model"}, nil, nil},
		{"CPU number", cpuNumber, []string{"cpu.sockets", "cores", "cpu"}, nil, nil},
		{"CPU speed", speedText, []string{"cpu.base_hz", "cpu.max_hz", "cpu.governors", "cpu"}, nil, nil},
		{"RAM", memoryOf, []string{"memory_bytes", "ram"}, nil, nil},
		{"disks", diskNames, []string{"disks"}, nil, nil},
		{"disk array, RAID", func(*measure.Facts) string { return "" }, nil, whyOf("thru does not read the members of an array or a RAID controller; the disks above are those that the system sees"), nil},
		{"file systems", fileSystems, []string{"disks"}, nil, nil},
		{"network cards", cardsText, []string{"interfaces"}, nil, nil},
	}
}

func settingItems() []inventoryItem {
	return []inventoryItem{
		{"kind of machine", machineKind, []string{"hypervisor"}, nil, nil},
		{"hypervisor, version and build", hypervisorText, []string{"hypervisor"}, outsideOnly("its version and build"), (*hostPlacement).version},
		{"system", func(f *measure.Facts) string {
			return doc.Join(measure.Value(f.Distro), doc.Prefixed("kernel ", measure.Value(f.Kernel)), measure.Value(f.Arch))
		}, []string{"distribution", "kernel"}, nil, nil},
		{"BIOS settings that are not default", func(*measure.Facts) string { return "" }, nil, whyOf("the firmware does not expose its settings to the system; turbo, SMT, idle states and NUMA are below as the system sees them"), nil},
		{"system settings that are not default", changedText, []string{"settings_changed"}, whyOf("this system does not report which settings are defaults; the settings that limit TCP are below with their values"), nil},
		{"boot device", func(f *measure.Facts) string { return measure.Value(f.Boot) }, []string{"boot_device"}, nil, nil},
	}
}

func guestItems() []inventoryItem {
	guest := func(of func(*measure.Facts) string) func(*measure.Facts) string {
		return func(f *measure.Facts) string {
			if isGuest(f) {
				return of(f)
			}
			return ""
		}
	}
	return []inventoryItem{
		{"vCPUs", guest(func(f *measure.Facts) string { return facts.Cores(f.Cores) }), []string{"cores"}, noGuest(""), nil},
		{"RAM of the guest", guest(memoryOf), []string{"memory_bytes"}, noGuest(""), nil},
		{"virtual disks and their adapters", guest(diskNames), []string{"disks"}, noGuest(""), ofGuest((*factSheet).diskTexts)},
		{"virtual network cards", guest(virtualCards), []string{"interfaces"}, noGuest(""), nil},
		{"reservations, limits and shares", func(*measure.Facts) string { return "" }, nil, noGuest("reservations, limits and shares"), ofGuest((*factSheet).allocations)},
		{"CPU affinity of the guest", func(*measure.Facts) string { return "" }, nil, noGuest("its CPU affinity"), ofGuest((*factSheet).affinity)},
		{"limits seen in the guest", func(f *measure.Facts) string { return facts.Cgroup(f.Cgroup) }, []string{"cgroup"}, nil, nil},
	}
}

// whyOf returns a reason that is the same for every host.
func whyOf(why string) func(*measure.Facts) string {
	return func(*measure.Facts) string { return doc.NotChecked + ": " + why }
}

// isGuest reports whether facts are of a virtual machine.
func isGuest(f *measure.Facts) bool { return f.Hypervisor != nil && *f.Hypervisor != "none" }

// noGuest returns the reason for a missing line about guests: the host is no guest, or only its host knows.
func noGuest(what string) func(*measure.Facts) string {
	return func(f *measure.Facts) string {
		switch {
		case f.Hypervisor == nil:
			return doc.NotChecked + ": it is not known whether this is a guest"
		case !isGuest(f):
			return "not a guest"
		case what == "":
			return doc.NotChecked + ": the system does not report it"
		}
		return outsideOnly(what)(f)
	}
}

// outsideOnly returns the reason for what a guest cannot see.
func outsideOnly(what string) func(*measure.Facts) string {
	return func(f *measure.Facts) string {
		if !isGuest(f) {
			return doc.NotChecked + ": the system does not report it"
		}
		return doc.NotChecked + ": a guest cannot see " + what + ", only its host can"
	}
}

func machineKind(f *measure.Facts) string {
	switch {
	case f.Hypervisor == nil:
		return ""
	case *f.Hypervisor == "none":
		return "physical"
	}
	return "virtual, on " + *f.Hypervisor
}

// hypervisorText returns the hypervisor of the host, or "none".
func hypervisorText(f *measure.Facts) string {
	switch own := strings.ToLower(measure.Value(f.OS)); {
	case own == "esxi" || own == "vmkernel":
		return doc.Join(measure.Value(f.Distro), measure.Value(f.Kernel))
	case f.Hypervisor == nil:
		return ""
	case !isGuest(f):
		return doc.Join("none", doc.Prefixed("runs ", facts.Hypervises(f.Hypervises)))
	}
	return ""
}

func cpuNumber(f *measure.Facts) string {
	if s := facts.Processors(f.CPU); s != "" {
		return s
	}
	return facts.Cores(f.Cores)
}

func memoryOf(f *measure.Facts) string {
	switch {
	case f.Memory != nil:
		return unit.Size(*f.Memory)
	case f.RAM != nil && f.RAM.Total != nil:
		return unit.Size(*f.RAM.Total)
	}
	return ""
}

// fileSystems names the file systems with their types, including VMFS with its version.
func fileSystems(f *measure.Facts) string {
	var all []string
	for _, d := range f.Disks[:min(len(f.Disks), facts.MostInterfaces)] {
		for _, m := range d.Mounts[:min(len(d.Mounts), facts.MostInterfaces)] {
			all = append(all, m.Path+" "+m.Type+doc.Known(", %s free", m.FreeBytes, unit.Size))
		}
	}
	return strings.Join(all, "; ")
}

// cardsText names the physical network cards with driver, firmware and speed.
func cardsText(f *measure.Facts) string {
	return interfacesOf(f, func(i *measure.Interface) bool {
		return i.Kind != nil && (*i.Kind == "physical" || *i.Kind == "virtual function") || i.Kind == nil && i.Driver != nil
	}, isGuest(f))
}

// virtualCards names the virtual network cards.
func virtualCards(f *measure.Facts) string {
	return interfacesOf(f, func(i *measure.Interface) bool {
		return i.Kind != nil && (*i.Kind == "paravirtual" || *i.Kind == "emulated" || *i.Kind == "virtual function") || i.Kind == nil && i.Driver != nil
	}, false)
}

func interfacesOf(f *measure.Facts, want func(*measure.Interface) bool, ofGuest bool) string {
	var all []string
	for n := range f.Interfaces {
		i := &f.Interfaces[n]
		if !want(i) || len(all) == facts.MostInterfaces {
			continue
		}
		kind := measure.Value(i.Kind)
		if i.Nominal != nil && *i.Nominal && kind == "physical" { // a nested host reports it as physical
			kind = ""
		}
		about := doc.Join(kind, measure.Value(i.Driver), doc.Prefixed("version ", measure.Value(i.Version)), doc.Prefixed("firmware ", measure.Value(i.Firmware)), facts.Link(i))
		all = append(all, strings.TrimSpace(i.Name+" "+doc.Bracket(about)))
	}
	if len(all) == 0 && len(f.Interfaces) > 0 {
		if ofGuest {
			return "no physical ones: the guest has virtual ones: " + interfaceKinds(f)
		}
		return "none: " + interfaceKinds(f)
	}
	return strings.Join(all, "; ")
}

// interfaceKinds counts the kinds of interfaces.
func interfaceKinds(f *measure.Facts) string {
	kinds := map[string]int{}
	for _, i := range f.Interfaces {
		if i.Kind != nil {
			kinds[*i.Kind]++
		}
	}
	var all []string
	for _, k := range slices.Sorted(maps.Keys(kinds)) {
		all = append(all, fmt.Sprintf("%d %s", kinds[k], k))
	}
	return strings.Join(all[:min(len(all), facts.MostInterfaces)], ", ")
}

// speedText returns the clock rate of the CPUs and its control, which ESXi calls power policy.
func speedText(f *measure.Facts) string {
	s := facts.Frequency(f.CPU)
	if strings.EqualFold(measure.Value(f.OS), "esxi") {
		s = strings.Replace(s, "governor ", "power policy ", 1)
	}
	return s
}

// diskNames names disks with the driver of their adapter.
func diskNames(f *measure.Facts) string {
	var all []string
	for _, d := range f.Disks[:min(len(f.Disks), facts.MostInterfaces)] {
		all = append(all, strings.TrimSpace(d.Name+" "+doc.Bracket(doc.Join(d.Driver, d.Model, bytesText(d.SizeBytes)))))
	}
	return strings.Join(all, "; ")
}

// changedText returns the changed settings, with the system's own names.
func changedText(f *measure.Facts) string {
	var all []string
	for _, k := range slices.Sorted(maps.Keys(f.Changed)) {
		all = append(all, k+"="+f.Changed[k])
	}
	return strings.Join(all[:min(len(all), doc.MostLines)], ", ")
}
