package nic

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"thru/internal/cause/advise"
	"thru/internal/knob"
	"thru/internal/measure"
	"thru/internal/unit"
)

// QueueProposals are for how the packets of an interface come to several CPUs, and
// where they wait.
func QueueProposals() []advise.Rule {
	return []advise.Rule{
		{Cause: "too-few-queues", Propose: moreQueues},
		{Cause: "rss-not-spreading", Propose: spread},
		{Cause: "irq-one-cpu", Propose: interrupts},
		{Cause: "numa-remote", Propose: interrupts},
		{Cause: "receiver-cpu", Propose: steering},
		{Cause: "ring-overflow", Propose: largerRing},
		{Cause: "backlog-overflow", Propose: largerBacklog},
		{Cause: "interrupt-moderation", Propose: moderationProposal},
		{Cause: "pause-frames", Propose: noPause},
		{Cause: "shaper", Propose: longerQueue},
	}
}

// moreQueues gives an interface as many queues as it can have, but no more than
// CPUs.
func moreQueues(r advise.Request) []advise.Draft {
	h := r.Receiving()
	if h.Kind(r.Here(h)) == "veth" {
		return queuesOfPair(r, h)
	}
	if own, ok := channels(r, h, "combined", "rx", "tx"); ok {
		return []advise.Draft{own}
	}
	return steering(r)
}

// queuesOfPair is the same of a veth. What one end receives by comes from the
// other one's transmit queues, which may not be more (veth_set_channels). So
// first the receiving end alone, then with the sending one.
func queuesOfPair(r advise.Request, h *advise.Host) []advise.Draft {
	peer := r.Way.From
	if h == peer {
		peer = r.Way.To
	}
	own, ok := channels(r, h, "rx")
	other, too := channels(r, peer, "tx")
	switch {
	case ok && too && peer != h:
		return []advise.Draft{own, own.And(other, "%s; %s", own.Title, other.Title)}
	case ok:
		return []advise.Draft{own}
	case too && peer != h:
		return []advise.Draft{other}
	}
	return steering(r)
}

// channels raises queues of some kinds of one host; ok is false where it has all.
func channels(r advise.Request, h *advise.Host, kinds ...string) (d advise.Draft, ok bool) {
	face := r.Here(h)
	s := h.State(knob.Channels, face)
	has, most := counts(s.Value), counts(s.Possible)
	if !s.Known || h.CPUs() < 2 {
		return advise.Draft{}, false
	}
	var change, titles []string
	for _, kind := range kinds {
		want := min(most[kind], h.CPUs())
		if want <= has[kind] || kind != "combined" && has["combined"] > 0 {
			continue
		}
		change = append(change, kind, strconv.Itoa(want))
		titles = append(titles, fmt.Sprintf("%d %s instead of %d", want, kind, has[kind]))
	}
	if len(change) == 0 {
		return advise.Draft{}, false
	}
	return advise.Draft{Settings: []measure.Setting{h.Set(knob.Channels, face, advise.With(s.Value, change...))},
		Title: "queues of " + face + " at " + h.Name + ": " + strings.Join(titles, ", ")}, true
}

// counts of queues by kind.
func counts(value string) map[string]int {
	_, values := advise.Pairs(value)
	n := map[string]int{}
	for kind, text := range values {
		if c, err := strconv.Atoi(text); err == nil && c > 0 {
			n[kind] = c
		}
	}
	if len(n) == 0 { // one number stands for queues of both kinds
		n["combined"] = int(knob.Greatest(value))
	}
	return n
}

// spread has all queues get their share: the table, then the fields that flows
// are told apart by.
func spread(r advise.Request) []advise.Draft {
	h := r.Receiving()
	face := r.Here(h)
	var list []advise.Draft
	queues := 0
	for _, n := range counts(h.Value(knob.Channels, face)) {
		queues = max(queues, n)
	}
	table := h.State(knob.RSSTable, face)
	entries := len(strings.Fields(table.Value))
	if i := h.Facts.Interface(face); i != nil && i.RSS != nil && entries == 0 {
		entries = i.RSS.Table
	}
	if queues > 1 && entries >= queues && entries <= 4096 {
		each := make([]string, entries)
		for i := range each {
			each[i] = strconv.Itoa(i % queues)
		}
		if value := strings.Join(each, " "); !knob.Same(value, table.Value) {
			list = append(list, advise.Change(h, knob.RSSTable, face, value, "flows to %s of %s go to all %d queues in turns", face, h.Name, queues))
		}
	}
	hash := h.State(knob.RSSHash, face)
	kinds, fields := advise.Pairs(hash.Value)
	var more []string
	for _, kind := range kinds {
		if fields[kind] != "sdfn" && (strings.HasPrefix(kind, "tcp") || strings.HasPrefix(kind, "udp")) {
			more = append(more, kind, "sdfn")
		}
	}
	if len(more) > 0 {
		list = append(list, advise.Change(h, knob.RSSHash, face, advise.With(hash.Value, more...), "%s of %s tells flows apart by their ports too", face, h.Name))
	}
	return list
}

// interrupts gives each interrupt of an interface a CPU of its own, of the
// adapter's node; where it has only one, software spreads its packets.
func interrupts(r advise.Request) []advise.Draft {
	h := r.Receiving()
	face := r.Here(h)
	s := h.State(knob.IRQAffinity, face)
	irqs, now := advise.Pairs(s.Value)
	cpus := h.Near(face)
	if len(irqs) < 2 || len(cpus) < 2 && r.Cause != "numa-remote" || len(cpus) == 0 {
		return steering(r)
	}
	change := []string{}
	for i, irq := range irqs {
		if cpu := strconv.Itoa(cpus[i%len(cpus)]); now[irq] != cpu {
			change = append(change, irq, cpu)
		}
	}
	if len(change) == 0 {
		return steering(r)
	}
	d := advise.Draft{Settings: []measure.Setting{h.Set(knob.IRQAffinity, face, advise.With(s.Value, change...))},
		Title: fmt.Sprintf("the %d interrupts of %s at %s go to CPUs %s in turns", len(irqs), face, h.Name, unit.List(cpus))}
	if r.Finding != nil {
		d = d.ForWay(r.Way)
	}
	return []advise.Draft{d}
}

// steering spreads the packets of the one queue by software (RPS), over the CPUs
// of the adapter's node without the one that takes its interrupts.
func steering(r advise.Request) []advise.Draft {
	h := r.Receiving()
	if r.At != nil && r.At != r.Way.To && r.Cause == "receiver-cpu" {
		return nil
	}
	face := r.Here(h)
	queues, _ := advise.Pairs(h.Value(knob.RPS, face))
	cpus := h.Near(face)
	if len(queues) != 1 || len(cpus) < 2 || h.Kind(face) == "loopback" || r.Way.Local() {
		return nil
	}
	if taker, known := taker(r, h, face); known && len(cpus) > 1 {
		cpus = slices.DeleteFunc(slices.Clone(cpus), func(c int) bool { return c == taker })
	}
	value := advise.With("", queues[0], knob.Mask(cpus))
	where := "CPUs " + unit.List(cpus) + " share them"
	if len(cpus) == 1 {
		where = fmt.Sprintf("CPU %d takes them", cpus[0])
	}
	return []advise.Draft{advise.Change(h, knob.RPS, face, value, "packets of the one queue of %s at %s: %s (RPS)", face, h.Name, where).ForWay(r.Way)}
}

// taker is the CPU that takes the interrupts of an interface: as found, or as set.
func taker(r advise.Request, h *advise.Host, face string) (cpu int, known bool) {
	if r.Finding != nil && r.Finding.Where.CPU != nil && r.Finding.Where.EndPoint == h.Name {
		return *r.Finding.Where.CPU, true
	}
	if i := h.Facts.Interface(face); i != nil && len(i.IRQs) == 1 && len(i.IRQs[0].Effective) == 1 {
		return i.IRQs[0].Effective[0], true
	}
	return 0, false
}

func largerRing(r advise.Request) []advise.Draft {
	h := r.Receiving()
	face := r.Here(h)
	s := h.State(knob.RXRing, face)
	if !s.Known || s.Most() <= s.Number() {
		return nil
	}
	return []advise.Draft{advise.Change(h, knob.RXRing, face, fmt.Sprint(s.Most()), "receive ring of %d descriptors at %s of %s, instead of %d", s.Most(), face, h.Name, s.Number())}
}

// mostBacklog is the most packets that are proposed: more is more delay than use.
const mostBacklog = 1 << 20

func largerBacklog(r advise.Request) []advise.Draft {
	h := r.Receiving()
	has := h.State(knob.Backlog, "").Number()
	if has == 0 || has >= mostBacklog {
		return nil
	}
	return []advise.Draft{advise.Change(h, knob.Backlog, "", fmt.Sprint(2*has), "up to %d received packets wait for a CPU of %s, instead of %d", 2*has, h.Name, has)}
}

// moderationProposal has the driver choose how long it gathers packets, and where it can
// or does not help, has a fixed time that is shorter. They are proposals of their
// own: a driver that cannot choose says so only when it is told to.
func moderationProposal(r advise.Request) []advise.Draft {
	h := r.Receiving()
	face := r.Here(h)
	s := h.State(knob.Coalescing, face)
	_, now := advise.Pairs(s.Value)
	const wait = 50 // us: of 10 Gb/s some 40 full packets
	var list []advise.Draft
	if now["adaptive-rx"] == "off" {
		list = append(list, advise.Change(h, knob.Coalescing, face, advise.With(s.Value, "adaptive-rx", "on"), "%s of %s chooses how long it gathers packets", face, h.Name))
	}
	if has, err := strconv.Atoi(now["rx-usecs"]); err == nil && has > wait {
		fixed := []string{"rx-usecs", strconv.Itoa(wait)}
		if now["adaptive-rx"] == "on" { // which would choose another
			fixed = append(fixed, "adaptive-rx", "off")
		}
		d := advise.Change(h, knob.Coalescing, face, advise.With(s.Value, fixed...), "%s of %s interrupts %d us after a packet at the latest", face, h.Name, wait)
		d.Id = fmt.Sprintf("%s=%d", d.Name(), wait)
		list = append(list, d)
	}
	return list
}

// noPause has the port no longer stop for its partner.
func noPause(r advise.Request) []advise.Draft {
	h := r.At
	if h == nil {
		return nil
	}
	face := r.Here(h)
	s := h.State(knob.Pause, face)
	_, now := advise.Pairs(s.Value)
	if now["rx"] != "on" {
		return nil
	}
	d := advise.Change(h, knob.Pause, face, advise.With(s.Value, "autoneg", "off", "rx", "off"), "%s of %s does not stop for pause frames", face, h.Name)
	d.Risk = "packets are dropped where they had to wait; never on a network for storage (FCoE, RoCE)"
	return []advise.Draft{d}
}

// longerQueue is for datagrams for which the sender's own host has no room: in
// the queue of the interface, or in the ring of its adapter.
func longerQueue(r advise.Request) []advise.Draft {
	c, h := r.Way.Cell, r.Way.From
	if c == nil || r.At != h {
		return nil
	}
	face := r.Here(h)
	var list []advise.Draft
	for _, x := range []struct{ place, knob, title string }{
		{measure.LossQdisc, knob.TxQueueLen, "up to %s packets wait for %s at %s, instead of %d"},
		{measure.LossSendNIC, knob.TXRing, "transmit ring of %s descriptors at %s of %s, instead of %d"},
	} {
		s := h.State(x.knob, face)
		want := min(2*s.Number(), mostBacklog)
		if s.Most() > 0 {
			want = s.Most()
		}
		lost := slices.ContainsFunc(c.LossPlaces, func(p measure.LossPlace) bool { return p.Place == x.place && p.Packets > 0 })
		if lost && s.Number() > 0 && want > s.Number() {
			list = append(list, advise.Change(h, x.knob, face, fmt.Sprint(want), x.title, fmt.Sprint(want), face, h.Name, s.Number()).ForWay(r.Way))
		}
	}
	return list
}
