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

// mark is something that stands out in an inventory: whose settings are likely
// to cost traffic, or to make its figures hard to explain. It is no finding:
// nothing was measured.
type mark struct {
	Text  string   // "2 VMs have an emulated adapter"
	Names []string // of what
	Why   string   // why it matters
}

// Shown are the first names.
func (m mark) Shown() string {
	names := strings.Join(m.Names[:min(len(m.Names), markNames)], ", ")
	if n := len(m.Names) - markNames; n > 0 {
		names += fmt.Sprintf(" and %d more", n)
	}
	return names
}

// Line is a mark in one line, with the first names.
func (m mark) Line() string {
	s := m.Text
	if names := m.Shown(); names != "" {
		s += ": " + names
	}
	if m.Why != "" {
		s += "; " + m.Why
	}
	return s
}

const (
	markNames = 4  // named for each mark
	maxMarks  = 24 // of an inventory
)

// standOut judges an inventory by itself, and says which guests it named.
func standOut(x *estateIndex) (marks []mark, odd map[string]bool) {
	odd = map[string]bool{}
	for _, rule := range guestMarks(x.Kind) {
		m := mark{Why: rule.why}
		var details []string
		for i := range x.Guests {
			g := &x.Guests[i]
			if g.Template {
				continue
			}
			if detail, ok := rule.is(g); ok {
				m.Names, odd[g.ID] = append(m.Names, doc.Clean(g.Name)), true
				if detail = doc.Clean(detail); detail != "" && !slices.Contains(details, detail) {
					details = append(details, detail)
				}
			}
		}
		if n := len(m.Names); n > 0 {
			slices.Sort(details)
			m.Text = unit.Plural(n, "VM") + doc.Verb(n, " has ", " have ") + rule.what + doc.Spaced(doc.Bracket(strings.Join(details[:min(len(details), markNames)], ", ")))
			marks = append(marks, m)
		}
	}
	if ahead := x.ClockNs; ahead != nil && max(*ahead, -*ahead) > farClock {
		marks = append(marks, mark{Text: "its clock is " + aheadText(*ahead), Why: "thru corrects the times of counters by it"})
	}
	marks = append(marks, hostMarks(x)...)
	marks = append(marks, networkMarks(x)...)
	return marks[:min(len(marks), maxMarks)], odd
}

// farClock is how far a clock may be off before it is said.
const farClock = 2e9 // ns

func aheadText(ns int64) string {
	if ns < 0 {
		return unit.Duration(-ns) + " behind"
	}
	return unit.Duration(ns) + " ahead"
}

// guestMark is a rule about one guest.
type guestMark struct {
	what, why string
	is        func(*measure.Guest) (detail string, yes bool)
}

// guestMarks are those of a kind of hypervisor.
func guestMarks(kind string) []guestMark {
	instead := "vmxnet3"
	if kind == measure.KindKVM {
		instead = "virtio and vhost"
	}
	return []guestMark{
		{"an emulated adapter", "each packet costs far more CPU than with " + instead, func(g *measure.Guest) (string, bool) {
			for _, n := range g.NICs {
				if n.Emulated(kind) {
					return *n.Model, true
				}
			}
			return "", false
		}},
		{"a CPU limit", "it is not run beyond that, also where CPUs are idle", func(g *measure.Guest) (string, bool) {
			return "", isLimited(g.CPUShare) || g.CPUQuota != nil
		}},
		{"a memory limit that is below the memory", "the rest of it is ballooned or swapped", func(g *measure.Guest) (string, bool) {
			m := g.MemoryShare
			return "", isLimited(m) && m.Limit != nil && g.Memory != nil && *m.Limit < *g.Memory
		}},
		{"CPUs bound to some of the host's", "it waits for these while others are idle", func(g *measure.Guest) (string, bool) {
			return "", len(g.Affinity) > 0
		}},
		{"an adapter that is held to a rate", "it carries no more", func(g *measure.Guest) (string, bool) {
			for _, n := range g.NICs {
				if s := nicHeldText(&n); s != "" {
					return s, true
				}
			}
			return "", false
		}},
		{"no tools that run", "what runs there and its addresses are not told, and vmxnet3 may have no driver", func(g *measure.Guest) (string, bool) {
			t := g.Tools
			return "", g.Power == "on" && t != nil && (measure.Value(t.Status) == "not installed" || t.Running != nil && !*t.Running)
		}},
		{"an adapter that is not connected", "", func(g *measure.Guest) (string, bool) {
			return "", g.Power == "on" && slices.ContainsFunc(g.NICs, func(n measure.GuestNIC) bool { return n.Connected != nil && !*n.Connected })
		}},
		{"packets moved by QEMU itself, not in the kernel (no vhost)", "one thread of the program moves all of them", func(g *measure.Guest) (string, bool) {
			return "", g.Power == "on" && slices.ContainsFunc(g.NICs, func(n measure.GuestNIC) bool {
				return n.Vhost != nil && !*n.Vhost && strings.HasPrefix(measure.Value(n.Model), "virtio")
			})
		}},
	}
}

func isLimited(a *measure.Allocation) bool { return a != nil && a.Limited != nil && *a.Limited }

// hostMarks are about hosts.
func hostMarks(x *estateIndex) (all []mark) {
	for _, rule := range []struct {
		what, why string
		is        func(*measure.GuestHost) (detail string, yes bool)
	}{
		{"not in service", "what is said of it may be old", func(h *measure.GuestHost) (string, bool) { return hostState(h), hostState(h) != "" }},
		{"set to run on a CPU that its version does not support", "no figure of it is a reference", func(h *measure.GuestHost) (string, bool) {
			s := legacyCPU(h)
			return s, s != ""
		}},
		{"running without NetQueue (netNetqueueEnabled)", "one queue and one CPU take all that a card receives", func(h *measure.GuestHost) (string, bool) { return "", netQueueOff(h) }},
		{"running guests with more virtual CPUs than it has threads", "they may wait for a CPU", func(h *measure.GuestHost) (string, bool) {
			return "", h.CPUsHanded != nil && h.Facts != nil && threadsOf(h.Facts) != nil && *h.CPUsHanded > *threadsOf(h.Facts)
		}},
		{"running guests that are shown more memory than it has", "they may be ballooned or swapped", func(h *measure.GuestHost) (string, bool) {
			return "", h.MemHanded != nil && h.Facts != nil && h.Facts.Memory != nil && *h.MemHanded > *h.Facts.Memory
		}},
	} {
		m := mark{Why: rule.why}
		for i := range x.Hosts {
			if detail, ok := rule.is(&x.Hosts[i]); ok {
				m.Names = append(m.Names, doc.Clean(x.Hosts[i].Name)+doc.Spaced(doc.Bracket(doc.Clean(detail))))
			}
		}
		if n := len(m.Names); n > 0 {
			what := rule.what
			if n > 1 {
				what = strings.NewReplacer("it has", "they have", "its version", "their version").Replace(what)
			}
			m.Text = unit.Plural(n, "host") + doc.Verb(n, " is ", " are ") + what
			all = append(all, m)
		}
	}
	return all
}

// legacyCPU is the setting that lets ESXi run on a CPU that it no longer
// supports (the boot option allowLegacyCPU), with its value; "" where it is not set.
func legacyCPU(h *measure.GuestHost) string {
	if h.Facts == nil {
		return ""
	}
	for name, v := range h.Facts.Changed {
		if isLegacyCPU(name) && !slices.Contains([]string{"", "0", "false"}, strings.ToLower(v)) {
			return name + "=" + v
		}
	}
	return ""
}

func isLegacyCPU(setting string) bool {
	return strings.HasSuffix(strings.ToLower(setting), "allowlegacycpu")
}

// netQueueOff tells that the boot option of ESXi's receive queues is not its default, which is on.
func netQueueOff(h *measure.GuestHost) bool {
	if h.Facts == nil {
		return false
	}
	for name, v := range h.Facts.Changed {
		if now, _, _ := strings.Cut(strings.ToLower(v), " "); strings.HasSuffix(strings.ToLower(name), "netnetqueueenabled") && (now == "false" || now == "0") {
			return true
		}
	}
	return false
}

// networkMarks are about switches and networks.
func networkMarks(x *estateIndex) (all []mark) {
	shaped := mark{Why: "guests there receive and send no more"}
	for i := range x.PortGroups {
		p := &x.PortGroups[i]
		if s := shapingText(p.ShapeIn, p.ShapeOut); s != "" {
			shaped.Names = onceMore(shaped.Names, doc.Clean(p.Name)+" ("+s+")")
		}
	}
	if n := len(shaped.Names); n > 0 {
		shaped.Text = unit.Plural(n, "network") + doc.Verb(n, " is", " are") + " held to a rate"
		all = append(all, shaped)
	}
	all = append(all, smallerMTU(x)...)
	return append(all, unlikeMarks(x)...)
}

func onceMore(all []string, s string) []string {
	if slices.Contains(all, s) {
		return all
	}
	return append(all, s)
}

// smallerMTU finds switches whose MTU is below that of what is connected to them.
func smallerMTU(x *estateIndex) (all []mark) {
	m := mark{Why: "larger packets vanish there"}
	small := func(s *measure.VirtualSwitch, mtu *int, what string) {
		if s != nil && s.MTU != nil && mtu != nil && *s.MTU > 0 && *mtu > *s.MTU {
			m.Names = onceMore(m.Names, doc.Clean(fmt.Sprintf("%s (MTU %d, %s has %d)", s.Name, *s.MTU, what, *mtu)))
		}
	}
	switchOf := func(group, direct string) *measure.VirtualSwitch {
		if p := x.groups[group]; p != nil {
			return x.switches[p.Switch]
		}
		return x.switches[direct]
	}
	for i := range x.Hosts {
		for _, p := range x.Hosts[i].Ports {
			small(switchOf(p.PortGroup, ""), p.MTU, p.Device+" of "+x.Hosts[i].Name)
		}
	}
	for i := range x.Guests {
		for _, n := range x.Guests[i].NICs {
			small(switchOf(n.PortGroup, n.Switch), n.MTU, cmp.Or(measure.Value(n.Device), n.Name)+" of "+x.Guests[i].Name)
		}
	}
	if n := len(m.Names); n > 0 {
		m.Text = strconv.Itoa(n) + doc.Verb(n, " switch has a smaller MTU", " switches have a smaller MTU") + " than what is connected to it"
		all = append(all, m)
	}
	return all
}
