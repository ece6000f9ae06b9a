package inventory

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/report/facts"
	"thru/internal/unit"
)

// networkGrid returns a row for each port group, and for each switch without port groups. Equal networks of
// several hosts share a row.
func networkGrid(x *index) doc.Table {
	g := doc.Table{Fit: true, Caption: "Networks", Columns: []doc.Column{{Name: "network", Least: 12}, {Name: "VLAN", Least: 6}, {Name: "switch", Least: 10}, {Name: "MTU", Right: true}, {Name: "VMs", Right: true}, {Name: "of host", Least: 8},
		{Name: "uplinks", Least: 8}, {Name: "shaping", Least: 10}, {Name: "teaming", Least: 10}}}
	if x.GuestsTotal != nil && *x.GuestsTotal > len(x.Guests) {
		g.Columns[4].Name = "VMs listed"
	}
	guests := map[string]int{}
	for i := range x.Guests {
		seen := map[string]bool{}
		for _, n := range x.Guests[i].NICs {
			if id := n.PortGroup; id != "" && !seen[id] {
				seen[id] = true
				guests[id]++
			}
		}
	}
	var rows netRows
	used := map[string]bool{}
	for i := range x.PortGroups {
		p := &x.PortGroups[i]
		if used[p.Switch] = true; p.Uplinks {
			continue
		}
		rows.add(x, p.Name, p, x.switches[p.Switch], cmp.Or(p.Host, hostOfSwitch(x, p.Switch)), guests[p.ID])
	}
	for i := range x.Switches {
		s := &x.Switches[i]
		if used[s.ID] {
			continue
		}
		host := s.Host
		if len(s.Hosts) == 1 {
			host = s.Hosts[0]
		}
		named := guestsOfSwitch(x, s.ID)
		for _, network := range slices.Sorted(maps.Keys(named)) {
			rows.add(x, cmp.Or(network, s.Name), &measure.SwitchPortGroup{}, s, host, named[network])
		}
	}
	for _, r := range rows.all {
		g.Rows = append(g.Rows, dashed(slices.Concat(r.cells[:4], []string{strconv.Itoa(r.guests), r.where()}, r.cells[4:])...))
	}
	return g.WithoutEmpty().First(maxRows)
}

// guestsOfSwitch counts the guests of a switch with unknown port groups, by the network names of their
// adapters; it returns only the switch if no guest uses it.
func guestsOfSwitch(x *index, id string) map[string]int {
	all := map[string]int{}
	for i := range x.Guests {
		seen := map[string]bool{}
		for _, n := range x.Guests[i].NICs {
			if name := measure.Value(n.Network); n.PortGroup == "" && n.Switch == id && !seen[name] {
				seen[name] = true
				all[name]++
			}
		}
	}
	if len(all) == 0 {
		all[""] = 0
	}
	return all
}

func hostOfSwitch(x *index, id string) string {
	if s := x.switches[id]; s != nil {
		return s.Host
	}
	return ""
}

// netRow is a network with the hosts that have it.
type netRow struct {
	cells  []string
	guests int
	hosts  []string
}

type netRows struct {
	all []*netRow
	by  map[string]*netRow
}

func (r *netRows) add(x *index, name string, p *measure.SwitchPortGroup, s *measure.VirtualSwitch, host string, guests int) {
	if s == nil {
		s = &measure.VirtualSwitch{}
	}
	team, shape := p.Teaming, shapingText(p.ShapeIn, p.ShapeOut)
	if team == nil {
		team = s.Teaming
	}
	if p.ShapeIn == nil && p.ShapeOut == nil {
		shape = shapingText(s.ShapeIn, s.ShapeOut)
	}
	cells := []string{name, strings.TrimPrefix(vlanText(measure.Value(p.VLAN)), "VLAN "), s.Name, doc.Number(s.MTU), uplinksText(s, team), shape, teamingText(team)}
	key := strings.Join(cells, "\x00")
	if r.by == nil {
		r.by = map[string]*netRow{}
	}
	if r.by[key] == nil {
		r.by[key] = &netRow{cells: cells}
		r.all = append(r.all, r.by[key])
	}
	row := r.by[key]
	row.guests += guests
	if h := x.hosts[host]; h != nil && !slices.Contains(row.hosts, h.Name) {
		row.hosts = append(row.hosts, h.Name)
	}
}

// where returns the host of a network, or the number of hosts; "" for a distributed one.
func (r *netRow) where() string {
	if len(r.hosts) > 1 {
		return unit.Plural(len(r.hosts), "host")
	}
	return strings.Join(r.hosts, "")
}

func teamingText(t *measure.Teaming) string {
	if t == nil {
		return ""
	}
	return t.Policy
}

// uplinksText returns the physical NICs of a switch; for a distributed one each name once.
func uplinksText(s *measure.VirtualSwitch, t *measure.Teaming) string {
	var all []string
	for _, u := range s.Uplinks {
		name := u.NIC
		if t != nil && slices.Contains(t.Standby, u.NIC) {
			name += " (standby)"
		}
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return strings.Join(all[:min(len(all), facts.MostInterfaces)], ", ")
}

// shapingText returns "receiving 1.00 Gb/s, sending 2.00 Gb/s" from the guests' point of view; vSphere's
// ingress is what a guest sends. It is "" without a limit.
func shapingText(in, out *measure.Shaping) string {
	receive, send := shapeText(in), shapeText(out)
	if receive == send && receive != "" {
		return receive + " in each direction"
	}
	return doc.Join(doc.Prefixed("receiving ", receive), doc.Prefixed("sending ", send))
}

// shapeText returns the rate limit of a port; "" if there is none.
func shapeText(s *measure.Shaping) string {
	switch {
	case !s.Holds():
		return ""
	case s.AverageBps == nil:
		return "at an unknown rate"
	}
	return unit.Rate(float64(*s.AverageBps))
}

func storeGrid(x *index) doc.Table {
	g := doc.Table{Fit: true, Caption: "Datastores", Columns: []doc.Column{{Name: "datastore", Least: 12}, {Name: "type"}, {Name: "size", Right: true}, {Name: "free", Right: true}, {Name: "local"}, {Name: "flash"}, {Name: "on", Least: 16}}}
	for i := range x.Datastores {
		s := &x.Datastores[i]
		g.Rows = append(g.Rows, dashed(s.Name, measure.Value(s.Type), bytesText(s.Size), bytesText(s.Free), yesNo(s.Local), yesNo(s.SSD), strings.Join(s.Devices, ", ")))
	}
	return g.WithoutEmpty().First(maxRows)
}

func yesNo(b *bool) string {
	switch {
	case b == nil:
		return ""
	case *b:
		return "yes"
	}
	return "no"
}
