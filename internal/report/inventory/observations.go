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
		marks = append(marks, observation{Text: "the clock is " + aheadText(ahead), Why: "thru corrects the counter times for it"})
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
		{"a CPU limit", "the VM gets no more CPU, even if CPUs are idle", nil},
		{"a memory limit below its memory size", "the rest is ballooned or swapped", nil},
		{"CPU affinity to some of the host's CPUs", "the VM waits for these while others are idle", nil},
		{"an adapter with a rate limit", "the adapter carries no more", nicLimitText},
		{"no running VMware Tools", "the running system and its addresses are not known, and the vmxnet3 driver may be missing", nil},
		{"a disconnected adapter", "", nil},
		{"packets forwarded by QEMU instead of the kernel (no vhost)", "one QEMU thread forwards all packets", nil},
	}
}

// hostWords returns the words of place's traits of hosts, in order.
func hostWords() []traitWords {
	return []traitWords{
		{"not in service", "its facts may be outdated", nil},
		{"running on a CPU that its version does not support", "its figures are no reference", nil},
		{"running without NetQueue (netNetqueueEnabled)", "one queue and one CPU handle all received packets of a NIC", nil},
		{"running guests with more virtual CPUs than it has threads", "guests may wait for a CPU", nil},
		{"running guests with more memory than it has", "guests may be ballooned or swapped", nil},
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
	shaped := observation{Why: "guests on it cannot exceed the rate"}
	for _, p := range place.LimitedNetworks(x.Inventory) {
		shaped.Names = onceMore(shaped.Names, doc.Clean(p.Name)+" ("+shapingText(p.ShapeIn, p.ShapeOut)+")")
	}
	if n := len(shaped.Names); n > 0 {
		shaped.Text = unit.Plural(n, "network") + doc.Verb(n, " has", " have") + " a rate limit"
		all = append(all, shaped)
	}
	all = append(all, smallerMTU(x)...)
	return append(all, unequalObservations(x)...)
}

// smallerMTU finds switches with a smaller MTU than a device connected to them.
func smallerMTU(x *index) (all []observation) {
	m := observation{Why: "the switch drops larger packets"}
	for _, o := range place.SmallerMTUs(x.Inventory, x.switches, x.groups) {
		m.Names = onceMore(m.Names, doc.Clean(fmt.Sprintf("%s (MTU %d, %s has %d)", o.Switch.Name, *o.Switch.MTU, o.Of, o.MTU)))
	}
	if n := len(m.Names); n > 0 {
		m.Text = strconv.Itoa(n) + doc.Verb(n, " switch has a smaller MTU", " switches have a smaller MTU") + " than a connected device"
		all = append(all, m)
	}
	return all
}
