package inventory

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/place"
	"thru/internal/unit"
)

const maxObservations = 24 // of an inventory

// standOut words package place's observations of an inventory; odd holds the ids of the guests with any.
func standOut(x *index) (marks []observation, odd map[string]bool) {
	odd = map[string]bool{}
	seen := make([][]place.Observation, len(x.Guests))
	for i := range x.Guests {
		if g := &x.Guests[i]; !g.Template {
			seen[i] = place.ObserveGuest(x.Kind, g)
			if len(seen[i]) > 0 {
				odd[g.ID] = true
			}
		}
	}
	for trait, words := range guestWords(x.Kind) {
		m := observation{Why: words.why}
		var details []string
		for i, all := range seen {
			n := slices.IndexFunc(all, func(o place.Observation) bool { return o.Trait == place.Trait(trait) })
			if n < 0 {
				continue
			}
			m.Names = append(m.Names, doc.Clean(x.Guests[i].Name))
			if words.detail == nil {
				continue
			}
			if detail := doc.Clean(words.detail(all[n].NIC)); detail != "" && !slices.Contains(details, detail) {
				details = append(details, detail)
			}
		}
		if n := len(m.Names); n > 0 {
			slices.Sort(details)
			m.Text = unit.Plural(n, "VM") + doc.Verb(n, " has ", " have ") + words.what + doc.Spaced(doc.Bracket(strings.Join(details[:min(len(details), observationNames)], ", ")))
			marks = append(marks, m)
		}
	}
	if ahead, off := place.ClockOff(x.Inventory); off {
		marks = append(marks, observation{Text: "its clock is " + aheadText(ahead), Why: "thru corrects the times of counters by it"})
	}
	marks = append(marks, hostObservations(x)...)
	marks = append(marks, networkObservations(x)...)
	return marks[:min(len(marks), maxObservations)], odd
}

func aheadText(ns int64) string {
	if ns < 0 {
		return unit.Duration(-ns) + " behind"
	}
	return unit.Duration(ns) + " ahead"
}

// traitWords describe an anomaly, and why it matters.
type traitWords struct {
	what, why string
	detail    func(*measure.GuestNIC) string
}

// guestWords returns the words of place's traits of guests, in order.
func guestWords(kind string) []traitWords {
	instead := "vmxnet3"
	if kind == measure.KindKVM {
		instead = "virtio and vhost"
	}
	return []traitWords{
		{"an emulated adapter", "each packet costs far more CPU than with " + instead, func(n *measure.GuestNIC) string { return *n.Model }},
		{"a CPU limit", "it is not run beyond that, also where CPUs are idle", nil},
		{"a memory limit that is below the memory", "the rest of it is ballooned or swapped", nil},
		{"CPUs bound to some of the host's", "it waits for these while others are idle", nil},
		{"an adapter that is held to a rate", "it carries no more", nicLimitText},
		{"no tools that run", "what runs there and its addresses are not told, and vmxnet3 may have no driver", nil},
		{"an adapter that is not connected", "", nil},
		{"packets moved by QEMU itself, not in the kernel (no vhost)", "one thread of the program moves all of them", nil},
	}
}

// hostWords returns the words of place's traits of hosts, in order.
func hostWords() []traitWords {
	return []traitWords{
		{"not in service", "what is said of it may be old", nil},
		{"set to run on a CPU that its version does not support", "no figure of it is a reference", nil},
		{"running without NetQueue (netNetqueueEnabled)", "one queue and one CPU take all that a card receives", nil},
		{"running guests with more virtual CPUs than it has threads", "they may wait for a CPU", nil},
		{"running guests that are shown more memory than it has", "they may be ballooned or swapped", nil},
	}
}

// hostObservations returns the observations about hosts.
func hostObservations(x *index) (all []observation) {
	named := make([][]string, len(hostWords()))
	for i := range x.Hosts {
		for _, o := range place.ObserveHost(&x.Hosts[i]) {
			detail := ""
			switch o.Trait {
			case place.OutOfService:
				detail = hostState(&x.Hosts[i])
			case place.LegacyCPU:
				detail = o.Setting
			}
			named[o.Trait] = append(named[o.Trait], doc.Clean(x.Hosts[i].Name)+doc.Spaced(doc.Bracket(doc.Clean(detail))))
		}
	}
	for trait, words := range hostWords() {
		n, what := len(named[trait]), words.what
		if n > 1 {
			what = strings.NewReplacer("it has", "they have", "its version", "their version").Replace(what)
		}
		if n > 0 {
			all = append(all, observation{Names: named[trait], Why: words.why, Text: unit.Plural(n, "host") + doc.Verb(n, " is ", " are ") + what})
		}
	}
	return all
}

// networkObservations returns the observations about switches and networks.
func networkObservations(x *index) (all []observation) {
	shaped := observation{Why: "guests there receive and send no more"}
	for _, p := range place.LimitedNetworks(x.Inventory) {
		shaped.Names = onceMore(shaped.Names, doc.Clean(p.Name)+" ("+shapingText(p.ShapeIn, p.ShapeOut)+")")
	}
	if n := len(shaped.Names); n > 0 {
		shaped.Text = unit.Plural(n, "network") + doc.Verb(n, " is", " are") + " held to a rate"
		all = append(all, shaped)
	}
	all = append(all, smallerMTU(x)...)
	return append(all, unequalObservations(x)...)
}

// smallerMTU finds switches with a smaller MTU than a device connected to them.
func smallerMTU(x *index) (all []observation) {
	m := observation{Why: "larger packets vanish there"}
	for _, o := range place.SmallerMTUs(x.Inventory, x.switches, x.groups) {
		m.Names = onceMore(m.Names, doc.Clean(fmt.Sprintf("%s (MTU %d, %s has %d)", o.Switch.Name, *o.Switch.MTU, o.Of, o.MTU)))
	}
	if n := len(m.Names); n > 0 {
		m.Text = strconv.Itoa(n) + doc.Verb(n, " switch has a smaller MTU", " switches have a smaller MTU") + " than what is connected to it"
		all = append(all, m)
	}
	return all
}
