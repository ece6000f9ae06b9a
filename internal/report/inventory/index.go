package inventory

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/unit"
)

// observation is an anomaly in an inventory: settings that are likely to cost throughput, or to make figures
// hard to explain. It is no finding, since nothing was measured.
type observation struct {
	Text  string   // "2 VMs have an emulated adapter"
	Names []string // affected objects
	Why   string   // why it matters
}

// Shown returns the first names.
func (m observation) Shown() string {
	names := strings.Join(m.Names[:min(len(m.Names), observationNames)], ", ")
	if n := len(m.Names) - observationNames; n > 0 {
		names += fmt.Sprintf(" and %d more", n)
	}
	return names
}

// Line returns an observation in one line, with the first names.
func (m observation) Line() string {
	s := m.Text
	if names := m.Shown(); names != "" {
		s += ": " + names
	}
	if m.Why != "" {
		s += "; " + m.Why
	}
	return s
}

const observationNames = 4 // named for each observation

func onceMore(all []string, s string) []string {
	if slices.Contains(all, s) {
		return all
	}
	return append(all, s)
}

// hostVersion returns "VMware ESXi 8.0.3, build-24022510" and does not repeat a version that both fields
// have.
func hostVersion(f *measure.Facts) string {
	name, kernel := measure.Value(f.Distro), measure.Value(f.Kernel)
	if version, build, ok := strings.Cut(kernel, " "); ok && strings.Contains(" "+name+" ", " "+version+" ") {
		kernel = build
	}
	return doc.Join(name, kernel)
}

func switchName(x *index, n *measure.GuestNIC) string {
	if p := x.groups[n.PortGroup]; p != nil {
		if w := x.switches[p.Switch]; w != nil {
			return w.Name
		}
	}
	return ""
}

const maxRows = 500 // of hosts, networks, datastores

// factSheet holds all facts of one host or guest.
type factSheet struct {
	Name  string
	About string // in a few words
	Rows  []doc.Row

	x       *index               // of a guest's sheet
	missing []measure.NotChecked // what could not be read
	ofAll   []measure.NotChecked // what could not be read of any of its kind; an inventory lists it once
	said    []string             // keys that a line has named
}

// index finds the objects of an inventory by id.
type index struct {
	*measure.Inventory
	hosts    map[string]*measure.GuestHost
	switches map[string]*measure.VirtualSwitch
	groups   map[string]*measure.SwitchPortGroup
	stores   map[string]*measure.Datastore
}

func newIndex(v *measure.Inventory) *index {
	return &index{Inventory: v,
		hosts:    indexed(v.Hosts, func(h *measure.GuestHost) string { return h.ID }),
		switches: indexed(v.Switches, func(s *measure.VirtualSwitch) string { return s.ID }),
		groups:   indexed(v.PortGroups, func(g *measure.SwitchPortGroup) string { return g.ID }),
		stores:   indexed(v.Datastores, func(s *measure.Datastore) string { return s.ID }),
	}
}

func indexed[T any](all []T, id func(*T) string) map[string]*T {
	found := make(map[string]*T, len(all))
	for i := range all {
		found[id(&all[i])] = &all[i]
	}
	return found
}

// dashed makes cells safe to print; an empty one becomes "-".
func dashed(cells ...string) []string {
	for i, c := range cells {
		cells[i] = doc.OrDash(doc.Clean(c))
	}
	return cells
}

// hostState returns the state of a host; "" if it is in service.
func hostState(h *measure.GuestHost) string {
	s := measure.Value(h.State)
	if s == "connected" {
		s = ""
	}
	if h.Maintenance != nil && *h.Maintenance {
		s = doc.Join(s, "maintenance")
	}
	return s
}

func machineModel(m *measure.Machine) string {
	if m == nil {
		return ""
	}
	return strings.TrimSpace(m.Vendor + " " + m.Product)
}

// shortProduct returns the name of a system without the image profile in brackets.
func shortProduct(name string) string {
	before, after, cut := strings.Cut(name, " (")
	if _, rest, ok := strings.Cut(after, ")"); cut && ok {
		before += rest
	}
	return strings.ReplaceAll(strings.TrimPrefix(before, "VMware "), "Releasebuild-", "build ")
}

func bytesText(n *int64) string { return doc.Known("%s", n, unit.Size) }

// adaptersText returns the models of a guest's adapters: "vmxnet3", "e1000, 2 vmxnet3".
func adaptersText(g *measure.Guest) string {
	return counted(g.NICs, func(n *measure.GuestNIC) string { return cmp.Or(measure.Value(n.Model), doc.NotChecked) })
}

// counted returns the distinct words of a list, with their counts.
func counted[T any](list []T, word func(*T) string) string {
	times := map[string]int{}
	var words []string
	for i := range list {
		w := word(&list[i])
		if times[w]++; times[w] == 1 && w != "" {
			words = append(words, w)
		}
	}
	slices.Sort(words)
	for i, w := range words {
		if times[w] > 1 {
			words[i] = fmt.Sprintf("%d %s", times[w], w)
		}
	}
	return strings.Join(words, ", ")
}

// networksText returns the networks of a guest, each once, with the VLAN.
func networksText(x *index, g *measure.Guest) string {
	var all []string
	for i := range g.NICs {
		if s := networkName(x, &g.NICs[i]); s != "" && !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return strings.Join(all, ", ")
}

// networkName returns "prod (VLAN 100)".
func networkName(x *index, n *measure.GuestNIC) string {
	name, vlan := measure.Value(n.Network), measure.Value(n.VLAN)
	if p := x.groups[n.PortGroup]; p != nil {
		name, vlan = cmp.Or(name, p.Name), cmp.Or(vlan, measure.Value(p.VLAN))
	}
	if s := x.switches[n.Switch]; s != nil {
		name = cmp.Or(name, s.Name)
	}
	return strings.TrimSpace(name + " " + doc.Bracket(vlanText(vlan)))
}

// vlanText returns "VLAN 100"; "" without a tag.
func vlanText(vlan string) string {
	if vlan == "" || vlan == "0" {
		return ""
	}
	return "VLAN " + vlan
}
