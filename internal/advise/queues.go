package advise

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"thru/internal/knob"
	"thru/internal/measure"
	"thru/internal/unit"
)

// queueRules are for how the packets of an interface come to several CPUs, and
// where they wait.
func queueRules() []rule {
	return []rule{
		{"too-few-queues", moreQueues},
		{"rss-not-spreading", spread},
		{"irq-one-cpu", interrupts},
		{"numa-remote", interrupts},
		{"receiver-cpu", steering},
		{"ring-overflow", largerRing},
		{"backlog-overflow", largerBacklog},
		{"interrupt-moderation", moderation},
		{"pause-frames", noPause},
		{"shaper", longerQueue},
	}
}

// receiving is the host whose packets a request is about: its own, else the
// receiver of the direction.
func (r request) receiving() *host {
	if r.at != nil {
		return r.at
	}
	return r.way.to
}

// moreQueues gives an interface as many queues as it can have, but no more than
// CPUs.
func moreQueues(r request) []draft {
	h := r.receiving()
	if h.kind(r.here(h)) == "veth" {
		return r.queuesOfPair(h)
	}
	if own, ok := r.channels(h, "combined", "rx", "tx"); ok {
		return []draft{own}
	}
	return steering(r)
}

// queuesOfPair is the same of a veth. What one end receives by comes from the
// other one's transmit queues, which may not be more (veth_set_channels). So
// first the receiving end alone, then with the sending one.
func (r request) queuesOfPair(h *host) []draft {
	peer := r.way.from
	if h == peer {
		peer = r.way.to
	}
	own, ok := r.channels(h, "rx")
	other, too := r.channels(peer, "tx")
	switch {
	case ok && too && peer != h:
		return []draft{own, own.and(other, "%s; %s", own.title, other.title)}
	case ok:
		return []draft{own}
	case too && peer != h:
		return []draft{other}
	}
	return steering(r)
}

// channels raises queues of some kinds of one host; ok is false where it has all.
func (r request) channels(h *host, kinds ...string) (d draft, ok bool) {
	face := r.here(h)
	s := h.state(knob.Channels, face)
	has, most := counts(s.value), counts(s.possible)
	if !s.known || h.cpus() < 2 {
		return draft{}, false
	}
	var change, titles []string
	for _, kind := range kinds {
		want := min(most[kind], h.cpus())
		if want <= has[kind] || kind != "combined" && has["combined"] > 0 {
			continue
		}
		change = append(change, kind, strconv.Itoa(want))
		titles = append(titles, fmt.Sprintf("%d %s instead of %d", want, kind, has[kind]))
	}
	if len(change) == 0 {
		return draft{}, false
	}
	return draft{settings: []measure.Setting{h.set(knob.Channels, face, with(s.value, change...))},
		title: "queues of " + face + " at " + h.name + ": " + strings.Join(titles, ", ")}, true
}

// counts of queues by kind.
func counts(value string) map[string]int {
	_, values := pairs(value)
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
func spread(r request) []draft {
	h := r.receiving()
	face := r.here(h)
	var list []draft
	queues := 0
	for _, n := range counts(h.value(knob.Channels, face)) {
		queues = max(queues, n)
	}
	table := h.state(knob.RSSTable, face)
	entries := len(strings.Fields(table.value))
	if i := h.facts.Interface(face); i != nil && i.RSS != nil && entries == 0 {
		entries = i.RSS.Table
	}
	if queues > 1 && entries >= queues && entries <= 4096 {
		each := make([]string, entries)
		for i := range each {
			each[i] = strconv.Itoa(i % queues)
		}
		if value := strings.Join(each, " "); !knob.Same(value, table.value) {
			list = append(list, change(h, knob.RSSTable, face, value, "flows to %s of %s go to all %d queues in turns", face, h.name, queues))
		}
	}
	hash := h.state(knob.RSSHash, face)
	kinds, fields := pairs(hash.value)
	var more []string
	for _, kind := range kinds {
		if fields[kind] != "sdfn" && (strings.HasPrefix(kind, "tcp") || strings.HasPrefix(kind, "udp")) {
			more = append(more, kind, "sdfn")
		}
	}
	if len(more) > 0 {
		list = append(list, change(h, knob.RSSHash, face, with(hash.value, more...), "%s of %s tells flows apart by their ports too", face, h.name))
	}
	return list
}

// interrupts gives each interrupt of an interface a CPU of its own, of the
// adapter's node; where it has only one, software spreads its packets.
func interrupts(r request) []draft {
	h := r.receiving()
	face := r.here(h)
	s := h.state(knob.IRQAffinity, face)
	irqs, now := pairs(s.value)
	cpus := h.near(face)
	if len(irqs) < 2 || len(cpus) < 2 && r.cause != "numa-remote" || len(cpus) == 0 {
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
	d := draft{settings: []measure.Setting{h.set(knob.IRQAffinity, face, with(s.value, change...))},
		title: fmt.Sprintf("the %d interrupts of %s at %s go to CPUs %s in turns", len(irqs), face, h.name, unit.List(cpus))}
	if r.finding != nil {
		d = d.forWay(r.way)
	}
	return []draft{d}
}

// steering spreads the packets of the one queue by software (RPS), over the CPUs
// of the adapter's node without the one that takes its interrupts.
func steering(r request) []draft {
	h := r.receiving()
	if r.at != nil && r.at != r.way.to && r.cause == "receiver-cpu" {
		return nil
	}
	face := r.here(h)
	queues, _ := pairs(h.value(knob.RPS, face))
	cpus := h.near(face)
	if len(queues) != 1 || len(cpus) < 2 || h.kind(face) == "loopback" || r.way.local() {
		return nil
	}
	if taker, known := r.taker(h, face); known && len(cpus) > 1 {
		cpus = slices.DeleteFunc(slices.Clone(cpus), func(c int) bool { return c == taker })
	}
	value := with("", queues[0], knob.Mask(cpus))
	where := "CPUs " + unit.List(cpus) + " share them"
	if len(cpus) == 1 {
		where = fmt.Sprintf("CPU %d takes them", cpus[0])
	}
	return []draft{change(h, knob.RPS, face, value, "packets of the one queue of %s at %s: %s (RPS)", face, h.name, where).forWay(r.way)}
}

// taker is the CPU that takes the interrupts of an interface: as found, or as set.
func (r request) taker(h *host, face string) (cpu int, known bool) {
	if r.finding != nil && r.finding.Where.CPU != nil && r.finding.Where.EndPoint == h.name {
		return *r.finding.Where.CPU, true
	}
	if i := h.facts.Interface(face); i != nil && len(i.IRQs) == 1 && len(i.IRQs[0].Effective) == 1 {
		return i.IRQs[0].Effective[0], true
	}
	return 0, false
}

func largerRing(r request) []draft {
	h := r.receiving()
	face := r.here(h)
	s := h.state(knob.RXRing, face)
	if !s.known || s.most() <= s.number() {
		return nil
	}
	return []draft{change(h, knob.RXRing, face, fmt.Sprint(s.most()), "receive ring of %d descriptors at %s of %s, instead of %d", s.most(), face, h.name, s.number())}
}

// mostBacklog is the most packets that are proposed: more is more delay than use.
const mostBacklog = 1 << 20

func largerBacklog(r request) []draft {
	h := r.receiving()
	has := h.state(knob.Backlog, "").number()
	if has == 0 || has >= mostBacklog {
		return nil
	}
	return []draft{change(h, knob.Backlog, "", fmt.Sprint(2*has), "up to %d received packets wait for a CPU of %s, instead of %d", 2*has, h.name, has)}
}

// moderation has the driver choose how long it gathers packets, and where it can
// or does not help, has a fixed time that is shorter. They are proposals of their
// own: a driver that cannot choose says so only when it is told to.
func moderation(r request) []draft {
	h := r.receiving()
	face := r.here(h)
	s := h.state(knob.Coalescing, face)
	_, now := pairs(s.value)
	const wait = 50 // us: of 10 Gb/s some 40 full packets
	var list []draft
	if now["adaptive-rx"] == "off" {
		list = append(list, change(h, knob.Coalescing, face, with(s.value, "adaptive-rx", "on"), "%s of %s chooses how long it gathers packets", face, h.name))
	}
	if has, err := strconv.Atoi(now["rx-usecs"]); err == nil && has > wait {
		fixed := []string{"rx-usecs", strconv.Itoa(wait)}
		if now["adaptive-rx"] == "on" { // which would choose another
			fixed = append(fixed, "adaptive-rx", "off")
		}
		d := change(h, knob.Coalescing, face, with(s.value, fixed...), "%s of %s interrupts %d us after a packet at the latest", face, h.name, wait)
		d.id = fmt.Sprintf("%s=%d", d.name(), wait)
		list = append(list, d)
	}
	return list
}

// noPause has the port no longer stop for its partner.
func noPause(r request) []draft {
	h := r.at
	if h == nil {
		return nil
	}
	face := r.here(h)
	s := h.state(knob.Pause, face)
	_, now := pairs(s.value)
	if now["rx"] != "on" {
		return nil
	}
	d := change(h, knob.Pause, face, with(s.value, "autoneg", "off", "rx", "off"), "%s of %s does not stop for pause frames", face, h.name)
	d.risk = "packets are dropped where they had to wait; never on a network for storage (FCoE, RoCE)"
	return []draft{d}
}

// longerQueue is for datagrams for which the sender's own host has no room: in
// the queue of the interface, or in the ring of its adapter.
func longerQueue(r request) []draft {
	c, h := r.way.cell, r.way.from
	if c == nil || r.at != h {
		return nil
	}
	face := r.here(h)
	var list []draft
	for _, x := range []struct{ place, knob, title string }{
		{measure.LossQdisc, knob.TxQueueLen, "up to %s packets wait for %s at %s, instead of %d"},
		{measure.LossSendNIC, knob.TXRing, "transmit ring of %s descriptors at %s of %s, instead of %d"},
	} {
		s := h.state(x.knob, face)
		want := min(2*s.number(), mostBacklog)
		if s.most() > 0 {
			want = s.most()
		}
		lost := slices.ContainsFunc(c.LossPlaces, func(p measure.LossPlace) bool { return p.Place == x.place && p.Packets > 0 })
		if lost && s.number() > 0 && want > s.number() {
			list = append(list, change(h, x.knob, face, fmt.Sprint(want), x.title, fmt.Sprint(want), face, h.name, s.number()).forWay(r.way))
		}
	}
	return list
}
