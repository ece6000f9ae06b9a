package facts

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/unit"
)

// interfaceRows returns the facts of an interface.
func interfaceRows(i *measure.Interface) []doc.Row {
	rows := []doc.Row{
		{Name: "kind", Value: measure.Value(i.Kind)}, {Name: "driver", Value: doc.Join(strings.TrimSpace(measure.Value(i.Driver)+" "+measure.Value(i.Version)), doc.Prefixed("firmware ", measure.Value(i.Firmware)))},
		{Name: "link", Value: Link(i)}, {Name: "MTU", Value: doc.Number(i.MTU)}, {Name: "slot", Value: slotText(i.PCI)}, {Name: "queues", Value: channelsText(i)}, {Name: "rings", Value: ringsText(i.Rings)},
		{Name: "coalescing", Value: coalesceText(i.Coalesce)}, {Name: "offloads", Value: offloadsText(i.Offloads)}, {Name: "pause", Value: pauseText(i.Pause)}, {Name: "RSS", Value: rssText(i.RSS)},
		{Name: "RPS", Value: mapText(i.RPS)}, {Name: "XPS", Value: mapText(i.XPS)}, {Name: "interrupts", Value: irqsText(i.IRQs)}, {Name: "queue packets", Value: queuesText(i.Counters)},
		{Name: "errors", Value: errorsText(i.Errors)}, {Name: "qdisc", Value: measure.Value(i.Qdisc)}, {Name: "NUMA node", Value: doc.Number(i.NUMANode)}, {Name: "bond", Value: bondText(i.Bond)},
		{Name: "bridge", Value: bridgeText(i.Bridge)}, {Name: "tunnel", Value: tunnelText(i.Tunnel)}, {Name: "member of", Value: measure.Value(i.Master)}, {Name: "lower devices", Value: strings.Join(i.Lower, ", ")},
		{Name: "addresses", Value: strings.Join(i.Addrs, ", ")},
	}
	return slices.DeleteFunc(rows, func(r doc.Row) bool { return r.Value == "" })
}

// Link returns the speed, the duplex and the state of a link.
func Link(i *measure.Interface) string {
	var all []string
	if i.SpeedBps != nil {
		s := unit.Rate(float64(*i.SpeedBps))
		if i.Nominal != nil && *i.Nominal {
			s += " nominal"
		}
		all = append(all, s)
	}
	all = said(all, i.Duplex, func(s string) string { return s + " duplex" })
	if i.MaxBps != nil && i.SpeedBps != nil && *i.MaxBps > *i.SpeedBps {
		all = append(all, "supports "+unit.Rate(float64(*i.MaxBps)))
	}
	all = said(all, i.Autoneg, func(on bool) string { return "autonegotiation " + doc.OnOff(on) })
	all = said(all, i.Port, bare)
	switch {
	case i.Up != nil && !*i.Up:
		all = append(all, "down")
	case i.Carrier != nil && !*i.Carrier:
		all = append(all, "no carrier")
	}
	return strings.Join(all, ", ")
}

func slotText(p *measure.PCI) string {
	if p == nil || p.Gen == nil || p.Lanes == nil {
		return ""
	}
	s := fmt.Sprintf("PCIe gen %d x%d", *p.Gen, *p.Lanes)
	if p.UsableBps != nil {
		s += ", usable " + unit.Rate(float64(*p.UsableBps))
	}
	if p.PortsBps != nil {
		s += ", ports " + unit.Rate(float64(*p.PortsBps))
	}
	if p.MaxGen != nil && p.MaxLanes != nil {
		s += fmt.Sprintf("; the card supports gen %d x%d", *p.MaxGen, *p.MaxLanes)
	}
	if p.SlotGen != nil && p.SlotLanes != nil {
		s += fmt.Sprintf(", the slot supports gen %d x%d", *p.SlotGen, *p.SlotLanes)
	}
	return s
}

func channelsText(i *measure.Interface) string {
	if c := i.Channels; c != nil {
		var all []string
		for _, x := range []struct {
			name      string
			now, most int
		}{{"combined", c.Combined, c.CombinedMax}, {"receive", c.RX, c.RXMax}, {"transmit", c.TX, c.TXMax}} {
			if x.most > 0 || x.now > 0 {
				all = append(all, fmt.Sprintf("%d of %d %s", x.now, x.most, x.name))
			}
		}
		return strings.Join(all, ", ")
	}
	if i.Queues == nil {
		return ""
	}
	return fmt.Sprintf("%d receive", *i.Queues)
}

func ringsText(r *measure.Rings) string {
	if r == nil {
		return ""
	}
	return fmt.Sprintf("receive %d of %d, transmit %d of %d", r.RX, r.RXMax, r.TX, r.TXMax)
}

func coalesceText(c *measure.Coalesce) string {
	if c == nil {
		return ""
	}
	one := func(adaptive bool, ns int64, frames int) string {
		s := unit.Duration(ns)
		if frames > 0 {
			s += " or " + unit.Plural(frames, "frame")
		}
		if adaptive {
			s = "adaptive"
		}
		return s
	}
	return "receive " + one(c.AdaptiveRX, c.RXNs, c.RXFrames) + ", transmit " + one(c.AdaptiveTX, c.TXNs, c.TXFrames)
}

// offloadsText names the offloads that are off, then those that are on: readers look for the first.
func offloadsText(o map[string]bool) string {
	var on, off []string
	for _, name := range slices.Sorted(maps.Keys(o)) {
		if o[name] {
			on = append(on, name)
		} else {
			off = append(off, name)
		}
	}
	return strings.Join(doc.NonEmpty(doc.Prefixed("off: ", strings.Join(off, ", ")), doc.Prefixed("on: ", strings.Join(on, ", "))), "; ")
}

func pauseText(p *measure.Pause) string {
	if p == nil {
		return ""
	}
	return fmt.Sprintf("receive %s, transmit %s, negotiated %s", doc.OnOff(p.RX), doc.OnOff(p.TX), doc.OnOff(p.Autoneg))
}

func rssText(r *measure.RSS) string {
	if r == nil {
		return ""
	}
	var all []string
	if r.Hash != "" {
		all = append(all, r.Hash)
	}
	if r.Table > 0 {
		all = append(all, fmt.Sprintf("%d entries over %s", r.Table, unit.Plural(len(r.Queues), "queue")))
	}
	for _, flow := range slices.Sorted(maps.Keys(r.Fields)) {
		all = append(all, flow+" by "+strings.Join(r.Fields[flow], "+"))
	}
	return strings.Join(all, ", ")
}

func mapText(m map[string]string) string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(m))[:min(len(m), MostInterfaces)] {
		all = append(all, key+": "+m[key])
	}
	return strings.Join(all, ", ")
}

func irqsText(irqs []measure.IRQ) string {
	cpus := map[int]bool{}
	shared := 0
	for _, i := range irqs {
		for _, c := range i.Effective {
			cpus[c] = true
		}
		if len(i.Shared) > 0 {
			shared++
		}
	}
	if len(irqs) == 0 {
		return ""
	}
	s := unit.Plural(len(irqs), "interrupt")
	if len(cpus) > 0 {
		s += " on CPUs " + unit.List(slices.Sorted(maps.Keys(cpus)))
	}
	if shared > 0 {
		s += fmt.Sprintf(", %d shared", shared)
	}
	return s
}

// queuesText names the queues with the most packets.
func queuesText(qs []measure.QueueCounter) string {
	packets := func(q measure.QueueCounter) string { return fmt.Sprintf("%s %d", q.Queue, q.Packets) }
	return strings.Join(unit.Mapped(qs[:min(len(qs), MostInterfaces)], packets), ", ")
}

func errorsText(m map[string]uint64) string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(m))[:min(len(m), MostInterfaces)] {
		all = append(all, fmt.Sprintf("%s %d", key, m[key]))
	}
	return strings.Join(all, ", ")
}

func bondText(b *measure.Bond) string {
	if b == nil {
		return ""
	}
	var members []string
	for _, m := range b.Members {
		s := m.Name
		if !m.Up {
			s += " (down)"
		}
		members = append(members, s)
	}
	return doc.Join(strings.TrimSpace(b.Mode+" "+doc.Bracket(b.Hash)), "members "+strings.Join(members, ", "))
}

func bridgeText(b *measure.Bridge) string {
	if b == nil {
		return ""
	}
	s := "ports " + strings.Join(b.Ports, ", ")
	if b.Netfilter != nil && *b.Netfilter {
		s += "; its frames pass the firewall"
	}
	return s
}

func tunnelText(t *measure.Tunnel) string {
	if t == nil {
		return ""
	}
	s := t.Kind
	if t.Local != "" || t.Remote != "" {
		s += " " + t.Local + " -> " + t.Remote
	}
	if t.Overhead > 0 {
		s += fmt.Sprintf(", adds %d bytes", t.Overhead)
	}
	return s
}

// longestList limits a list of an interface, in characters: it has room for all of some 60 offloads, since
// readers look for the one that is off.
const longestList = 4000

// Interfaces returns a table for each interface of each host.
func Interfaces(d *measure.Document) []doc.Pairs {
	var all []doc.Pairs
	onlyPaths := d.Ladder != nil && len(d.Paths) > 0 // the other interfaces carried no traffic of the ladder
	for _, e := range d.EndPoints[:min(len(d.EndPoints), MostEndPoints)] {
		if e.Facts == nil {
			continue
		}
		for n := range e.Facts.Interfaces[:min(len(e.Facts.Interfaces), MostInterfaces)] {
			i := &e.Facts.Interfaces[n]
			if onlyPaths && !slices.Contains(onPath(d, e.Name), i.Name) {
				continue
			}
			t := doc.Pairs{Name: doc.Clean(i.Name + " at " + e.Name), Rows: interfaceRows(i)}
			for k := range t.Rows {
				t.Rows[k].Value = doc.CleanUpTo(t.Rows[k].Value, longestList)
			}
			like := slices.IndexFunc(all, func(x doc.Pairs) bool { return slices.Equal(x.Rows, t.Rows) })
			if like < 0 {
				all = append(all, t)
			} else if len(all[like].Name) < longestList { // usually loopbacks
				all[like].Name += "; " + t.Name
			}
		}
	}
	return all
}

// onPath names the interfaces that the paths of an end point leave by; without a path those that are up and
// have an address or a wire, except loopback.
func onPath(d *measure.Document, name string) []string {
	var all []string
	for _, p := range d.Paths {
		for end, w := range map[string]measure.DirectionFacts{p.From: p.Forward, p.To: p.Back} {
			if end == name && w.Route != nil {
				all = append(all, w.Route.Interface)
			}
		}
	}
	if len(all) > 0 {
		return all
	}
	for _, e := range d.EndPoints {
		if e.Name != name || e.Facts == nil {
			continue
		}
		for _, i := range e.Facts.Interfaces {
			device := i.Kind != nil && *i.Kind == "physical" // a hypervisor's interface has no address
			if i.Name != "lo" && i.Up != nil && *i.Up && (len(i.Addrs) > 0 || device) && len(all) < MostInterfaces {
				all = append(all, i.Name)
			}
		}
	}
	return all
}
