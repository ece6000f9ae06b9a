package place

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"thru/internal/fault"
	"thru/internal/measure"
)

// Ladder is a proposal of rungs between virtual machines, the lowest first.
type Ladder struct {
	Ends  []End
	Rungs []Rung
	Spare []End // named, and in no rung
}

// End is an end point of a ladder.
type End struct {
	Name string
	At   string // where it is reached; empty: by its name
	What string // description of the machine: "VM web-1 on esx1, prod (VLAN 100), vmxnet3"
}

// Rung is a path of a ladder by the relation of its ends. A rung that cannot be filled has no ends, and Why has
// the reason.
type Rung struct {
	Kind     string // measure.SameMachine, SameHost, SameVLAN (or SameSite), OtherSite
	From, To string
	LinkBps  int64 // of the uplinks that it uses; 0: not known
	Why      string
}

// Filled reports whether the rung has ends.
func (r Rung) Filled() bool { return r.From != "" }

// lain is an end with its host placement, before it has its rung.
type lain struct {
	end End
	Placed
	guest *measure.Guest
}

// Fill assigns end points, the first of which is in every rung, to the rungs that they can fill. Each is found by
// the name, the host name or an address of a virtual machine. reached reports whether a name by itself leads to
// its machine.
func Fill(words []string, all []measure.Inventory, reached func(string) bool) (Ladder, error) {
	var ends []lain
	for _, w := range words {
		e, err := named(w, all, reached)
		if err != nil {
			return Ladder{}, err
		}
		if e.end.At != "" { // it has the hypervisor's name, which may not be valid in a plan
			e.end.Name, e.Subject.Name = plain(e.end.Name), plain(e.end.Name)
		}
		ends = append(ends, e)
	}
	return rungs(ends[0], ends[1:], all, "none of the end points is"), nil
}

// mostFirst limits the machines that are tried as the end of every rung.
const mostFirst = 64

// Propose chooses end points among the running machines with an address: the first machine, by name, with which
// the most rungs can be filled.
func Propose(all []measure.Inventory) (Ladder, error) {
	var ends []lain
	for n := range all {
		for i := range all[n].Guests {
			g := &all[n].Guests[i]
			if c := ofGuest(g); c.runs() && len(c.addrs) > 0 {
				c.in = &all[n]
				ends = append(ends, c.lie(g.Name, c.addrs[0].String()))
			}
		}
	}
	if len(ends) == 0 {
		return Ladder{}, nothingToPropose(all)
	}
	slices.SortStableFunc(ends, func(a, b lain) int { return cmp.Compare(a.guest.Name, b.guest.Name) })
	numberSameNames(ends)
	var best Ladder
	most := -1
	for i := range ends[:min(len(ends), mostFirst)] {
		l := rungs(ends[i], slices.Delete(slices.Clone(ends), i, i+1), all, "no running virtual machine with a known address is")
		if n := l.worth(); n > most {
			best, most = l, n
		}
		if most == fullWorth {
			break
		}
	}
	best.Spare = nil
	return best, nil
}

// nothingToPropose names the running machines without a known address, such as all guests of KVM: a ladder is
// still possible if the user names them.
func nothingToPropose(all []measure.Inventory) error {
	var run []string
	for n := range all {
		for i := range all[n].Guests {
			if g := &all[n].Guests[i]; ofGuest(g).runs() {
				run = append(run, g.Name)
			}
		}
	}
	from := strings.Join(sources(all), ", ")
	if len(run) == 0 {
		return fault.Failf("start a virtual machine", "place: choosing end points: no virtual machine of %s runs", from)
	}
	const most = 5
	some := strings.Join(run[:min(len(run), most)], " ")
	return fault.Failf("name the machines to measure, by plan name or network address: "+some, "place: choosing end points: %s does not report the addresses of its running virtual machines", from)
}

// fullWorth is the worth of a ladder with all rungs, between two hosts in one VLAN.
const fullWorth = 8

// worth counts the filled rungs. One VLAN is worth more than a path with a router.
func (l Ladder) worth() (n int) {
	for _, r := range l.Rungs {
		switch {
		case r.Kind == measure.SameSite:
			n++
		case r.Filled():
			n += 2
		}
	}
	return n
}

// numberSameNames numbers ends with the same name, and renames those whose name is invalid in a plan.
func numberSameNames(ends []lain) {
	seen := map[string]int{}
	for i := range ends {
		e := &ends[i]
		name := plain(e.end.Name)
		if seen[name]++; seen[name] > 1 {
			name = fmt.Sprintf("%s-%d", name, seen[name])
		}
		e.end.Name, e.Subject.Name = name, name
	}
}

// plain returns a name that is valid in a plan.
func plain(name string) string {
	name = strings.Join(strings.FieldsFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune(`"'{}[],#:&*!|>%@/\`, r) }), "-")
	return cmp.Or(name, "vm")
}

// rungs fills those of a ladder. Of several ends that fit, it takes the first.
func rungs(a lain, others []lain, all []measure.Inventory, nobody string) Ladder {
	l := Ladder{Ends: []End{a.end}, Rungs: []Rung{{Kind: measure.SameMachine, From: a.end.Name, To: a.end.Name, Why: a.end.What}}}
	used := map[string]bool{}
	lies := make([]measure.Relation, len(others))
	for i, o := range others {
		lies[i], _, _ = Relate(a.Placed, o.Placed, all)
	}
	for _, kinds := range [][]string{{measure.SameHost}, {measure.SameVLAN, measure.SameSite}, {measure.OtherSite}} {
		r := Rung{Kind: kinds[0], Why: fmt.Sprintf("%s %s", nobody, whereabouts(kinds[0], a.At))}
		for _, kind := range kinds {
			i := slices.IndexFunc(lies, func(r measure.Relation) bool { return r.Kind == kind })
			if i < 0 {
				continue
			}
			r = Rung{Kind: kind, From: a.end.Name, To: others[i].end.Name, Why: lies[i].Why}
			if kind == measure.SameVLAN || kind == measure.SameSite {
				r.LinkBps = slower(uplinkRate(a.At, all), uplinkRate(others[i].At, all))
			}
			l.Ends, used[others[i].end.Name] = append(l.Ends, others[i].end), true
			break
		}
		l.Rungs = append(l.Rungs, r)
	}
	for i, o := range others {
		if !used[o.end.Name] {
			o.end.What += ": " + cmp.Or(lies[i].Kind, "its relation to "+a.end.Name+" is not known")
			l.Spare = append(l.Spare, o.end)
		}
	}
	return l
}

// whereabouts words where a rung's second end would have to be.
func whereabouts(kind string, a *measure.Placement) string {
	switch kind {
	case measure.SameHost:
		return "on " + hostOf(a) + " too"
	case measure.OtherSite:
		return "in another data center than " + cmp.Or(site(a), "the first")
	}
	return "on another host of its VLAN or data center"
}

// uplinkRate returns the rate of the slowest physical NIC that a guest's switch uses on its host; 0: not known.
// One connection uses one of them.
func uplinkRate(p *measure.Placement, all []measure.Inventory) int64 {
	v := inventory(all, p.Source)
	h, sw := v.Host(p.Host), v.Switch(p.SwitchID)
	if h == nil || sw == nil {
		return 0
	}
	slowest := int64(0)
	for _, u := range sw.Uplinks {
		if u.Host != "" && u.Host != h.ID || !carriesNow(u, sw, v.PortGroup(p.PortGroup)) {
			continue
		}
		i := h.Facts.Interface(u.NIC)
		if i == nil || i.SpeedBps == nil || *i.SpeedBps <= 0 || i.Nominal != nil && *i.Nominal {
			return 0
		}
		slowest = slower(cmp.Or(slowest, *i.SpeedBps), *i.SpeedBps)
	}
	return slowest
}

// carriesNow returns false for an uplink that the teaming keeps in standby.
func carriesNow(u measure.Uplink, sw *measure.VirtualSwitch, g *measure.SwitchPortGroup) bool {
	team := sw.Teaming
	if g != nil && g.Teaming != nil {
		team = g.Teaming
	}
	if team == nil || len(team.Active) == 0 {
		return true
	}
	return slices.Contains(team.Active, u.NIC) || u.Name != "" && slices.Contains(team.Active, u.Name)
}

// slower returns the lower of two rates; 0 if one is not known.
func slower(a, b int64) int64 {
	if a == 0 || b == 0 {
		return 0
	}
	return min(a, b)
}
