package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"thru/internal/measure"
	"thru/internal/unit"
)

// unlike is what one name has at the hosts of one cluster, or data center: the
// hosts by each value. Elsewhere the same name is another thing: every ESXi host
// begins with a vSwitch0 and a VM Network.
type unlike map[unlikeName]map[string][]string

type unlikeName struct{ site, cluster, name string }

func (u unlike) add(h *measure.GuestHost, name, value string) {
	if h == nil {
		return
	}
	n := unlikeName{h.Site, h.Cluster, name}
	if u[n] == nil {
		u[n] = map[string][]string{}
	}
	u[n][value] = onceMore(u[n][value], clean(h.Name))
}

// names are those that have several values, with the hosts that have each.
func (u unlike) names() (all []string) {
	for n, values := range u {
		if len(values) < 2 {
			continue
		}
		var parts []string
		for _, v := range slices.Sorted(maps.Keys(values)) {
			hosts := values[v]
			at := hosts[0]
			if more := len(hosts) - 1; more > 0 {
				at += fmt.Sprintf(" and %d more", more)
			}
			parts = append(parts, clean(v)+" at "+at)
		}
		all = append(all, clean(n.name)+" ("+strings.Join(parts[:min(len(parts), markNames)], ", ")+")")
	}
	slices.Sort(all)
	return all
}

// unlikeMarks find what has one name and is not the same on all hosts of a cluster.
func unlikeMarks(x *estateIndex) (all []mark) {
	mtus, vlans := unlike{}, unlike{}
	for i := range x.Switches {
		if s := &x.Switches[i]; s.MTU != nil {
			mtus.add(x.hosts[s.Host], s.Name, strconv.Itoa(*s.MTU))
		}
	}
	for i := range x.PortGroups {
		if p := &x.PortGroups[i]; p.VLAN != nil {
			vlans.add(x.hosts[cmp.Or(p.Host, hostOfSwitch(x, p.Switch))], p.Name, *p.VLAN)
		}
	}
	for _, u := range []struct {
		names           []string
		noun, what, why string
	}{
		{mtus.names(), "switch name", "MTU", "jumbo frames pass between some of them only"},
		{vlans.names(), "network", "VLAN", "guests that move there are cut off"},
	} {
		if n := len(u.names); n > 0 {
			all = append(all, mark{Names: u.names, Why: u.why,
				Text: unit.Plural(n, u.noun) + verb(n, " does", " do") + " not have the same " + u.what + " on all hosts of a cluster"})
		}
	}
	return all
}
