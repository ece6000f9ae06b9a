package gate

import (
	"fmt"
	"slices"
	"strings"

	"thru/internal/knob"
	"thru/internal/measure"
)

// Bounds of queues and their counters.
const (
	fastRate    = 10_000_000_000 // from here on one queue, that is one CPU, does not do
	enoughTold  = 100_000        // packets from which the counters of queues tell something
	otherShare  = 1e-4           // of the packets: what the queues beside the first have at least
	unevenTimes = 4              // a queue with so many times the entries of another
)

// queueRules judge how the packets of an interface come to several CPUs.
func queueRules() []Rule {
	return []Rule{
		{ID: "queues", Title: "Queues", About: "the receive queues that are set against those that are possible, and against the CPUs",
			Warns:  "one queue is set and more are possible, with more than one CPU; or the device has only one and 10 Gb/s or more are wanted",
			Why:    "one queue is one CPU: the rate grows with the queues until it is the CPUs that are full",
			Source: "C-22: queues = cores; Linux scaling.rst", Remedy: "as many queues as CPUs", Cause: "too-few-queues", Checklist: []string{"C-22", "C-27", "C-28", "B-19"}, face: queuesOf},
		{ID: "queue-spread", Title: "Traffic over the queues", About: "the packets of each receive queue since the driver was loaded",
			Warns:  "of 100 000 packets or more, all but one in 10 000 came by queue 0 of several",
			Why:    "with all traffic in queue 0 one CPU takes it all: 5 to 6 of 9.5 Gb/s",
			Source: "C-27, A-02", Remedy: "RSS over all queues", Cause: "rss-not-spreading", Checklist: []string{"C-27", "C-35"}, face: queueSpread},
		{ID: "rss", Title: "Receive side scaling", About: "the table that spreads flows over queues, and whether UDP flows are told apart by ports",
			Warns:  "all entries lead to one queue of several, or one queue has four times the entries of another",
			Why:    "flows follow the table: a queue with four times the entries gets four times the flows",
			Source: "Linux scaling.rst", Remedy: "equal shares (`ethtool -X equal`)", Cause: "rss-not-spreading", Checklist: []string{"C-22", "C-27"}, face: rss},
	}
}

// rxQueues is how many receive queues are set; 0 where it is not known.
func (f *face) rxQueues() int {
	if c := f.Channels; c != nil && c.Combined+c.RX > 0 {
		return max(c.Combined, 0) + max(c.RX, 0)
	}
	if f.Queues != nil && *f.Queues > 0 {
		return *f.Queues
	}
	return 0
}

func queuesOf(f *face) *finding {
	if !f.device() {
		return f.queuesOfSoftware()
	}
	set, cpus := f.rxQueues(), f.host.cpus()
	if set == 0 {
		return f.missing("queues of "+f.Name, "channels")
	}
	return f.queuesSet(set, cpus)
}

// queuesSet compares what is set with what is possible.
func (f *face) queuesSet(set, cpus int) *finding {
	want := max(f.wanted(), f.speed())
	switch c := f.Channels; {
	case set == 1 && cpus > 1 && c != nil && max(c.CombinedMax, c.RXMax) > 1:
		kind, most := "combined", c.CombinedMax
		if most <= 1 {
			kind, most = "rx", c.RXMax
		}
		return warn("%s has 1 queue of %d possible, for %d CPUs", f.Name, most, cpus).do(setQueues(f, kind, min(most, cpus)))
	case set == 1 && cpus > 1 && want >= fastRate && len(f.RPS) == 0:
		return warn("%s has only 1 queue, for %d CPUs and %s", f.Name, cpus, rate(want)).
			because("one CPU takes every packet; RPS or a device with several queues spreads them").do(packetSteering(f))
	case c == nil:
		return pass("%s: receive queues %d, CPUs %d", f.Name, set, cpus)
	}
	return pass("%s: queues %d of %d possible, CPUs %d", f.Name, set, max(f.Channels.CombinedMax, f.Channels.RXMax, set), cpus)
}

// queuesOfSoftware: a veth moves packets on the CPU that sends them, whatever
// its queues, which is told and not judged; but with GRO each queue takes its
// packets itself, on one CPU, as a NIC's does (drivers/net/veth.c, veth_xmit).
func (f *face) queuesOfSoftware() *finding {
	if f.kind() != "veth" || f.rxQueues() == 0 {
		return nil
	}
	if f.Offloads["generic-receive-offload"] && f.Channels != nil {
		return f.queuesSet(f.rxQueues(), f.host.cpus())
	}
	return pass("%s: receive queues %d; packets stay on the CPU that sends them", f.Name, f.rxQueues())
}

// packetSteering spreads the packets of a queue over all CPUs by software.
func packetSteering(f *face) remedy {
	n := f.host.cpus()
	if f.host.os != "linux" || n <= 0 || n > 32 {
		return remedy{}
	}
	mask := uint64(1)<<n - 1
	return commands(linkLasts, f.typed(knob.RPS, fmt.Sprintf("rx-0 %x", mask))...)
}

// perQueue are the packets of the receive queues by name, in the order of the facts.
func (f *face) perQueue() (list []measure.QueueCounter) {
	for _, c := range f.Counters {
		if strings.HasPrefix(c.Queue, "rx") {
			list = append(list, c)
		}
	}
	return list
}

func queueSpread(f *face) *finding {
	if !f.device() || f.rxQueues() <= 1 {
		return nil
	}
	queues := f.perQueue()
	if len(queues) < 2 {
		return f.missing("packets of each queue of "+f.Name, "queue_counters")
	}
	total := f.received()
	if total < enoughTold {
		return notChecked("whether traffic spreads over the queues of "+f.Name, "too few packets so far to tell")
	}
	first := slices.IndexFunc(queues, func(c measure.QueueCounter) bool { return c.Queue == "rx-0" })
	if first >= 0 && float64(total)-float64(queues[first].Packets) < otherShare*float64(total) {
		return warn("%d of %d packets came by queue 0 of the %d of %s", queues[first].Packets, total, len(queues), f.Name).
			do(spread(f, len(queues)))
	}
	used := 0
	for _, c := range queues {
		if c.Packets > 0 {
			used++
		}
	}
	return pass("%d of the %d queues of %s have received packets", used, len(queues), f.Name)
}

func rss(f *face) *finding {
	if !f.device() || f.rxQueues() <= 1 {
		return nil
	}
	if f.RSS == nil || len(f.RSS.Queues) == 0 {
		if isTrue(f.Nominal) {
			return nil // the hypervisor spreads, and does not say how
		}
		return f.missing("how "+f.Name+" spreads flows", "rss")
	}
	least, most, used := 0, 0, 0
	for _, n := range f.RSS.Queues {
		if n <= 0 {
			continue
		}
		used++
		if most = max(most, n); least == 0 || n < least {
			least = n
		}
	}
	switch {
	case used <= 1:
		return warn("all flows to %s go to one queue of %d", f.Name, f.rxQueues()).do(spread(f, f.rxQueues()))
	case most >= unevenTimes*least:
		return warn("a queue of %s has %d entries of the table, another %d", f.Name, most, least).do(spread(f, f.rxQueues()))
	}
	return pass("%s spreads flows evenly over %d queues%s", f.Name, used, f.udpByAddress())
}

// udpByAddress tells where UDP flows between two hosts all go to one queue.
func (f *face) udpByAddress() string {
	fields, ok := f.RSS.Fields["udp4"]
	if !ok || slices.ContainsFunc(fields, func(s string) bool { return strings.Contains(s, "port") }) {
		return ""
	}
	return "; UDP over IPv4 by address only"
}
