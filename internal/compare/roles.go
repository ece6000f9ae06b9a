package compare

import (
	"fmt"
	"slices"
	"strings"

	"thru/internal/measure"
)

// role is the function of an interface that traffic used before and another that it uses after. Facts are compared
// by role, in addition to each interface's own name.
type role struct {
	id            string // in keys; no interface has such a name
	before, after string
}

// roles are those of one end point.
type roles []role

// rolesOf pairs the interfaces that only one side's traffic uses, in their order.
func rolesOf(before, after []string) (all roles) {
	without := func(all, of []string) []string {
		return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return slices.Contains(of, s) })
	}
	was, is := without(before, after), without(after, before)
	for i := range min(len(was), len(is)) {
		all = append(all, role{fmt.Sprintf("in use, %d", i), was[i], is[i]})
	}
	return all
}

// name judges a fact and names it; false for one that a role has reported otherwise: a renamed interface that
// appears to be gone, and hardware addresses.
func (all roles) name(c *measure.FactChange, used []string) bool {
	thing, kind := nameIn(c.Fact), KindOfFact(c.Fact)
	for _, r := range all {
		switch {
		case kind == "interfaces.name" && (thing == r.before || thing == r.after):
			return false
		case thing == r.id && strings.HasPrefix(kind, "interfaces."):
			c.Fact = renamed(c.Fact, r.id, r.after)
			judgeFact(c, used)
			c.Name = strings.TrimSuffix(c.Name, " of "+r.after) + " of the interface in use"
			c.Before, c.After = c.Before+" ("+r.before+")", c.After+" ("+r.after+")"
			return !measure.NewVocabulary().Row(kind).Is(measure.Minor)
		}
	}
	judgeFact(c, used)
	return true
}

// repeats reports whether another key of the same end point has reported the change.
func repeats(all []measure.FactChange, c *measure.FactChange) bool {
	return slices.ContainsFunc(all, func(x measure.FactChange) bool {
		return x.Of == c.Of && x.Before == c.Before && x.After == c.After && (x.Name == c.Name || isCongestion(x.Fact) && isCongestion(c.Fact))
	})
}

// isCongestion reports whether a key names the congestion control of a host, or of its sent data.
func isCongestion(key string) bool {
	return slices.Contains([]string{"congestion_control", "sysctls[net.ipv4.tcp_congestion_control]", "settings_changed[net.ipv4.tcp_congestion_control]", "paths.congestion"}, key)
}

// dropRepeated removes from paths what the sending host has reported, and from settings what a fact has: each
// change is named once.
func dropRepeated(x *measure.Compared) {
	alike := func(f measure.FactChange, before, after string) bool { return f.Before == before && f.After == after }
	hosts := slices.Clone(x.Facts)
	x.Facts = slices.DeleteFunc(x.Facts, func(p measure.FactChange) bool {
		from, _, isPath := strings.Cut(p.Of, " -> ")
		return isPath && isCongestion(p.Fact) && slices.ContainsFunc(hosts, func(f measure.FactChange) bool {
			return f.Of == from && isCongestion(f.Fact) && alike(f, p.Before, p.After)
		})
	})
	for i := range x.Cells {
		c := &x.Cells[i]
		c.Settings = slices.DeleteFunc(c.Settings, func(s measure.SettingDiff) bool {
			return !s.Refuses && slices.ContainsFunc(x.Facts, func(f measure.FactChange) bool {
				at := f.Of == c.From || f.Of == measure.PairName(c.From, c.To)
				return at && strings.HasPrefix(f.Name, s.Name) && alike(f, s.Before, s.After)
			})
		})
	}
}
