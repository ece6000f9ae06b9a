package inventory

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/unit"
)

// among is a name within the hosts that guests move between: those of one
// cluster, or without one those of one data center. Between others nothing moves,
// and what each fresh host has ("vSwitch0", "VM Network") may well differ.
type among struct{ site, cluster, name string }

// of names where it is: "vSwitch0 in prod".
func (a among) of() string {
	return strings.TrimSpace(a.name + " " + doc.Prefixed("in ", cmp.Or(a.cluster, a.site)))
}

// unlike are the values of names, each with the hosts that have it.
type unlike map[among]map[string][]string

func (u unlike) add(h *measure.GuestHost, name, value string) {
	if h == nil {
		return
	}
	key := among{h.Site, h.Cluster, name}
	if u[key] == nil {
		u[key] = map[string][]string{}
	}
	u[key][value] = onceMore(u[key][value], cmp.Or(h.Name, h.ID))
}

// unlikeMarks find what has one name and is not the same on all hosts that guests
// move between.
func unlikeMarks(x *estateIndex) (all []mark) {
	mtus, vlans := unlike{}, unlike{}
	for i := range x.Switches {
		if s := &x.Switches[i]; s.Host != "" && s.MTU != nil {
			mtus.add(x.hosts[s.Host], s.Name, strconv.Itoa(*s.MTU))
		}
	}
	for i := range x.PortGroups {
		if p := &x.PortGroups[i]; p.VLAN != nil {
			vlan := *p.VLAN
			if vlan == "0" {
				vlan = "no tag"
			}
			vlans.add(x.hosts[cmp.Or(p.Host, hostOfSwitch(x, p.Switch))], p.Name, vlan)
		}
	}
	for _, u := range []struct {
		values          unlike
		noun, what, why string
	}{
		{mtus, "switch name", "MTU", "jumbo frames pass between some of them only"},
		{vlans, "network", "VLAN", "guests that move there are cut off"},
	} {
		m := mark{Why: u.why}
		for key, values := range u.values {
			if len(values) > 1 {
				m.Names = append(m.Names, doc.Clean(key.of()+" ("+valuesText(values)+")"))
			}
		}
		if n := len(m.Names); n > 0 {
			slices.Sort(m.Names)
			m.Text = unit.Plural(n, u.noun) + doc.Verb(n, " does", " do") + " not have the same " + u.what + " on all hosts of a cluster or data center"
			all = append(all, m)
		}
	}
	return all
}

// unlikeHosts are named for each value.
const unlikeHosts = 2

// valuesText is "1500 on esx1; 9000 on esx2, esx3 and 4 more".
func valuesText(values map[string][]string) string {
	var all []string
	for _, v := range slices.Sorted(maps.Keys(values)) {
		hosts := values[v]
		s := v + " on " + strings.Join(hosts[:min(len(hosts), unlikeHosts)], ", ")
		if n := len(hosts) - unlikeHosts; n > 0 {
			s += fmt.Sprintf(" and %d more", n)
		}
		all = append(all, s)
	}
	return strings.Join(all[:min(len(all), markNames)], "; ")
}
