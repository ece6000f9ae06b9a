package inventory

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"thru/internal/doc"
	"thru/internal/place"
	"thru/internal/unit"
)

// unequalObservations returns what differs between hosts that guests move between.
func unequalObservations(x *index) (all []observation) {
	for _, u := range []struct {
		found           []place.Unlike
		noun, what, why string
	}{
		{place.UnlikeMTUs(x.Inventory, x.hosts), "switch name", "MTU", "jumbo frames pass between some hosts only"},
		{place.UnlikeVLANs(x.Inventory, x.hosts, x.switches), "network", "VLAN", "a guest that moves there loses its network"},
	} {
		m := observation{Why: u.why}
		for _, o := range u.found {
			where := strings.TrimSpace(o.Name + " " + doc.Prefixed("in ", cmp.Or(o.Cluster, o.Site)))
			m.Names = append(m.Names, doc.Clean(where+" ("+valuesText(o.Values)+")"))
		}
		if n := len(m.Names); n > 0 {
			slices.Sort(m.Names)
			m.Text = unit.Plural(n, u.noun) + doc.Verb(n, " does", " do") + " not have the same " + u.what + " on all hosts of a cluster or data center"
			all = append(all, m)
		}
	}
	return all
}

// unlikeHosts is how many hosts are named for each value.
const unlikeHosts = 2

// valuesText returns "1500 on esx1; 9000 on esx2, esx3 and 4 more".
func valuesText(values map[string][]string) string {
	var all []string
	for value, hosts := range values {
		if value == "0" {
			value = "no tag"
		}
		s := value + " on " + strings.Join(hosts[:min(len(hosts), unlikeHosts)], ", ")
		if n := len(hosts) - unlikeHosts; n > 0 {
			s += fmt.Sprintf(" and %d more", n)
		}
		all = append(all, s)
	}
	slices.Sort(all)
	return strings.Join(all[:min(len(all), observationNames)], "; ")
}
