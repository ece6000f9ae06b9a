package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/unit"
)

// whereabouts holds the placement of a test's end points, and the load of their hosts meanwhile.
type whereabouts struct {
	Ends     doc.Table
	Lies     []string // relations of the pairs
	Counters doc.Table
	Charts   []doc.Chart
	Notes    []string
}

// newPlacement returns the placement; nil if no hypervisor was asked.
func newPlacement(d *measure.Document) *whereabouts {
	if !slices.ContainsFunc(d.EndPoints, func(e measure.EndPoint) bool { return e.Placement != nil || e.NoPlace != "" }) {
		return nil
	}
	p := &whereabouts{Lies: relationLines(d), Ends: doc.Table{Caption: "Placement of the end points", Columns: []doc.Column{
		{Name: "end point", Least: 8}, {Name: "machine", Least: 10}, {Name: "host", Least: 8}, {Name: "network", Least: 8}, {Name: "adapter", Least: 8}, {Name: "uplink", Least: 6},
		{Name: "cluster", Least: 8}, {Name: "data center", Least: 8}, {Name: "known by", Least: 8}}}}
	for _, e := range d.EndPoints {
		if e.Placement == nil {
			if e.NoPlace != "" && e.NoPlaceCode != measure.NoHypervisorRead {
				p.Notes = append(p.Notes, doc.Clean(e.Name)+": not found: "+doc.CleanUpTo(e.NoPlace, maxReason))
			}
			continue
		}
		p.Ends.Rows = append(p.Ends.Rows, placeCells(d, e))
	}
	if len(p.Ends.Rows)+len(p.Notes)+len(p.Lies) == 0 {
		return nil
	}
	p.Ends = p.Ends.WithoutEmpty().First(mostPlacements)
	if n := len(p.Notes) - mostPlacements; n > 0 {
		p.Notes = append(p.Notes[:mostPlacements], fmt.Sprintf("and %d more not found", n))
	}
	below := hypervisorRuns(d)
	p.Counters = counterGrid(below)
	p.Charts = counterCharts(below)
	return p
}

// maxReason limits a reason, in characters.
const maxReason = 240

// placeCells returns the row of an end point.
func placeCells(d *measure.Document, e measure.EndPoint) []string {
	p := e.Placement
	machine, model, uplink := doc.Clean(p.GuestName), "", ""
	if p.Guest == "" {
		machine = "the host itself"
	}
	if v := inventoryBySource(d, p.Source); v != nil {
		if g := v.Guest(p.Guest); g != nil {
			for _, n := range g.NICs {
				if n.Name == p.NIC {
					model, uplink = doc.Clean(measure.Value(n.Model)), doc.Clean(measure.Value(n.Uplink))
				}
			}
		}
	}
	model = cmp.Or(model, doc.Clean(p.NIC))
	return []string{doc.Clean(e.Name), doc.OrDash(machine), doc.OrDash(doc.Clean(p.HostName)), doc.OrDash(networkText(p)), doc.OrDash(model), doc.OrDash(uplink), doc.OrDash(doc.Clean(p.Cluster)),
		doc.OrDash(doc.Clean(p.Site)), doc.OrDash(strings.Join(doc.CleanAll(p.By), ", "))}
}

// networkText returns "prod, VLAN 100".
func networkText(p *measure.Placement) string {
	vlan := doc.Clean(p.VLAN)
	if vlan == "" || vlan == "0" {
		return doc.Clean(p.Network)
	}
	return doc.Join(doc.Clean(p.Network), "VLAN "+vlan)
}

func inventoryBySource(d *measure.Document, source string) *measure.Inventory {
	for i := range d.Inventories {
		if d.Inventories[i].Source == source {
			return &d.Inventories[i]
		}
	}
	return nil
}

// relationLines words the relation of each pair, with its rung if it is one.
func relationLines(d *measure.Document) (all []string) {
	for _, r := range d.Relations {
		rung, line := rungOf(d, r), doc.Clean(r.From)+" and "+doc.Clean(r.To)+": "
		if r.From == r.To {
			line = doc.Clean(r.From) + " with itself: "
		}
		switch {
		case rung != "":
			line = rung + ", " + line
		case r.From == r.To: // the relation of a machine to itself is trivial
			continue
		}
		all = append(all, line+doc.Clean(r.Kind)+" ("+doc.CleanUpTo(r.Why, maxReason)+")")
	}
	if n := len(all) - mostPlacements; n > 0 {
		all = append(all[:mostPlacements], unit.Plural(n, "more pair")+", see the JSON document")
	}
	return all
}

// rungOf returns the rung of a ladder that a pair forms.
func rungOf(d *measure.Document, r measure.Relation) string {
	for _, c := range d.Cells {
		if c.Rung != "" && (c.From == r.From && c.To == r.To || c.From == r.To && c.To == r.From) {
			return doc.Clean(c.Rung)
		}
	}
	return ""
}

// blocks returns the placement of a test's end points, and the load of their hosts.
func (x *whereabouts) blocks() []doc.Block {
	if x == nil {
		return nil
	}
	return []doc.Block{doc.Titled("Host placement and load", x.Ends, doc.List{Lines: slices.Concat(x.Lies, x.Notes), Notes: true}, x.Counters, doc.Charts{Charts: x.Charts})}
}
