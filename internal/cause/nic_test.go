package cause

import (
	"testing"

	"thru/internal/cause/knob"
	"thru/internal/cause/nic"
	"thru/internal/measure"
)

func interruptsOn(counts ...uint64) hostsEdit {
	return func(h *hosts) {
		for core, n := range counts {
			h.receiver.Host.IRQs = append(h.receiver.Host.IRQs, measure.IRQSpan{Core: core, Count: n})
		}
	}
}

func TestOneCPU(t *testing.T) {
	full := core(2, measure.CPU{SoftIRQ: 95, System: 3, Idle: 2})
	many := inStreams(8)
	atOnce := func(h *hosts) { // four more senders to the same receiver
		h.doc.Cells[0].AtOnce = 5
		for _, from := range []string{"c", "d", "e", "f"} {
			c := h.doc.Cells[0]
			c.From = from
			h.doc.Cells = append(h.doc.Cells, c)
		}
	}
	judgeHosts(t, "irq-one-cpu", []hostsRow{
		{"spread", []hostsEdit{many, interruptsOn(5000, 5000, 5000, 5000)}, "no", "25%"},
		{"on one, full", []hostsEdit{many, interruptsOn(100, 0, 60_000, 0), full}, "certain", "(2) takes all its packets"},
		{"on one, with time left", []hostsEdit{many, interruptsOn(100, 0, 60_000, 0), core(2, measure.CPU{SoftIRQ: 70, Idle: 30})}, "no", "70% busy"},
		{"on one, full of other work", []hostsEdit{many, interruptsOn(100, 0, 60_000, 0), core(2, measure.CPU{SoftIRQ: 30, User: 69, Idle: 1})}, "no", ""},
		{"below the share", []hostsEdit{many, interruptsOn(4000, 0, 60_000, 0), full}, "no", "CPU 2 takes 93.8%"},
		{"few", []hostsEdit{many, interruptsOn(0, 0, 900, 0), full}, "no", ""},
		{"by packets alone", []hostsEdit{many, full, func(h *hosts) { h.receiver.Host.Softnet = []measure.Softnet{{Core: 2, Processed: 400_000}} }}, "likely", ""},
		{"the sender is full", []hostsEdit{many, interruptsOn(100, 0, 60_000, 0), full, sending(97, 1)}, "likely", ""},
		{"one CPU in all", []hostsEdit{many, interruptsOn(60_000), atBoth(func(e *measure.Evidence) { e.Host.CPUs = e.Host.CPUs[:1] })}, "no", "only one CPU"},
		{"one kernel", []hostsEdit{many, interruptsOn(0, 0, 60_000), full, sameMachine, full}, "no", ""},
		{"link full", []hostsEdit{many, interruptsOn(0, 0, 60_000), full, linkShare(96)}, "no", ""},
		{"of one flow", []hostsEdit{interruptsOn(100, 0, 60_000, 0), full}, "no", "one flow uses one queue"},
		{"of two flows, by chance", []hostsEdit{inStreams(2), interruptsOn(100, 0, 60_000, 0), full}, "no", "2 flows can share a queue by chance"},
		{"of two flows and one queue", []hostsEdit{inStreams(2), interruptsOn(100, 0, 60_000, 0), full, func(h *hosts) { h.doc.EndPoints[1].Facts.Interfaces[0].Queues = new(1) }}, "certain", ""},
		{"of flows of several pairs", []hostsEdit{interruptsOn(100, 0, 60_000, 0), full, atOnce}, "certain", ""},
		{"in a guest of ESXi", []hostsEdit{many, interruptsOn(100, 0, 60_000, 0), full, func(h *hosts) { h.doc.EndPoints[1].Facts.Hypervisor = new("vmware") }}, "likely", ""},
		{"not read", []hostsEdit{many, atBoth(func(e *measure.Evidence) { e.Host.Softnet = nil })}, "missing", ""},
	})
	h := twoHosts(many, interruptsOn(0, 0, 60_000, 0), full)
	Diagnose(h.doc)
	if f := h.cell.Findings; len(f) < 2 || f[0].Cause != "irq-one-cpu" || f[1].BecauseOf != "irq-one-cpu" || f[0].Fix == nil {
		t.Errorf("interrupts on one CPU: %+v", f)
	}
}

func TestOffloadsOff(t *testing.T) {
	off := lacksOffloads("a", "TSO, GSO of eth0: off", knob.TSO, knob.GSO)
	sent := func(bytes, packets uint64) hostsEdit {
		return func(h *hosts) { h.sender.Host.NIC.TxBytes, h.sender.Host.NIC.TxPackets = bytes, packets }
	}
	judgeHosts(t, "offloads-off", []hostsRow{
		{"CPU full, packets of the MTU", []hostsEdit{off, sending(97, 1), sent(1514e6, 1e6)}, "certain", "TSO, GSO"},
		{"CPU full, packets not counted", []hostsEdit{off, sending(97, 1)}, "likely", ""},
		{"CPU full, long packets", []hostsEdit{off, sending(97, 1), sent(50_000e6, 1e6)}, "no", "48.8 KiB"},
		{"CPU free", []hostsEdit{off, sent(1514e6, 1e6)}, "possible beside", ""},
		{"GRO alone, of the sender", []hostsEdit{lacksOffloads("a", "GRO of eth0: off", knob.GRO), sending(97, 1), sent(1514e6, 1e6)}, "possible beside", ""},
		{"GRO alone, of the receiver", []hostsEdit{lacksOffloads("b", "GRO of eth0: off", knob.GRO), reading(97, 1)}, "likely", ""},
		{"the driver has none", []hostsEdit{lacksOffloads("a", "TSO of eth0: off, and its driver has none", knob.TSO), func(h *hosts) { h.doc.Gates[len(h.doc.Gates)-1].Fixed = true }, sending(97, 1), sent(1514e6, 1e6)}, "likely", ""},
		{"one kernel, the reader full", []hostsEdit{off, reading(97, 1), sameMachine, sent(1514e6, 1e6)}, "certain", ""},
	})
}

func TestQueues(t *testing.T) {
	packets := core(1, measure.CPU{SoftIRQ: 93, System: 6, Idle: 1})
	one := warns("queues", "too-few-queues", "b", "eth0 has 1 queue of 8 possible, for 4 CPUs")
	judgeHosts(t, "too-few-queues", []hostsRow{
		{"a CPU full of packets", []hostsEdit{inStreams(2), one, packets}, "likely", "1 queue of 8"},
		{"a CPU full of packets of one flow", []hostsEdit{one, packets}, "possible beside", ""},
		{"a CPU full of other work", []hostsEdit{one, core(1, measure.CPU{User: 99})}, "possible beside", ""},
	})
	byQueue := func(counts map[string]uint64) hostsEdit {
		return func(h *hosts) { h.receiver.Host.NIC.Driver = counts }
	}
	uneven := byQueue(map[string]uint64{"rx_queue_0_packets": 990_000, "rx_queue_3_packets": 2000, "rx_queue_0_drops": 5})
	judgeHosts(t, "rss-not-spreading", []hostsRow{
		{"one queue, a CPU full", []hostsEdit{inStreams(8), uneven, packets}, "certain", "99.8% of the receiver's packets arrived in one of 4 queues"},
		{"one queue, CPUs free", []hostsEdit{inStreams(8), uneven}, "possible beside", ""},
		{"two streams", []hostsEdit{inStreams(2), uneven, packets}, "no", "can share a queue by chance"},
		{"spread", []hostsEdit{inStreams(8), packets, byQueue(map[string]uint64{"rx-0.packets": 500_000, "rx-1.packets": 480_000})}, "no", "51%"},
		{"few packets", []hostsEdit{inStreams(8), packets, byQueue(map[string]uint64{"rx0_packets": 9000})}, "no", ""},
		{"no counters", []hostsEdit{inStreams(8), packets}, "none", ""},
	})
	for name, want := range map[string]int{"rx_queue_12_packets": 12, "rx-3.packets": 3, "rx7_packets": 7, "rx_queue_x_packets": -1, "tx_queue_1_packets": -1, "rx_queue_1_packets_dropped": -1, "rx-1.packets ": -1, "rx+1_packets": -1} {
		if q, ok := nic.QueueOf(name); ok != (want >= 0) || ok && q != want {
			t.Errorf("%q: queue %d, %v", name, q, ok)
		}
	}
}

func TestDropsOfTheReceiver(t *testing.T) {
	ring := func(n uint64) hostsEdit { return func(h *hosts) { h.receiver.Host.NIC.RxRing = &n } }
	backlog := func(n uint64) hostsEdit { return func(h *hosts) { h.receiver.Host.Softnet[1].Dropped = n } }
	place := func(where string, n int64) hostsEdit {
		return func(h *hosts) { h.cell.LossPlaces = []measure.LossPlace{{Place: where, Packets: n}} }
	}
	for cause, drop := range map[string]func(uint64) hostsEdit{"ring-overflow": ring, "backlog-overflow": backlog} {
		judgeHosts(t, cause, []hostsRow{
			{"none", nil, "no", ""},
			{"most of what was lost", []hostsEdit{drop(600), sentAgain(1000)}, "certain", "dropped 600 packets"},
			{"some of it", []hostsEdit{drop(300), sentAgain(1000)}, "likely", ""},
			{"hardly any of it", []hostsEdit{drop(50), sentAgain(1000)}, "possible", ""},
			{"nothing was sent again", []hostsEdit{drop(600)}, "possible beside", ""},
			{"the sender is full", []hostsEdit{drop(600), sentAgain(1000), sending(97, 1)}, "possible beside", ""},
			{"the link is full", []hostsEdit{drop(600), sentAgain(1000), linkShare(96)}, "possible beside", ""},
			{"UDP, nothing lost", []hostsEdit{drop(600), overUDP(0)}, "possible beside", ""},
			{"UDP, lost elsewhere", []hostsEdit{drop(600), overUDP(20_000), place(measure.LossPath, 19_000)}, "likely", ""},
			{"not read", []hostsEdit{func(h *hosts) { h.receiver.Host = nil }}, "missing", ""},
		})
	}
	judgeHosts(t, "ring-overflow", []hostsRow{
		{"UDP, lost there", []hostsEdit{ring(20_000), overUDP(20_000), place(measure.LossRing, 19_000)}, "certain", ""},
		{"a driver's counter", []hostsEdit{sentAgain(1000), func(h *hosts) {
			h.receiver.Host.NIC.Driver = map[string]uint64{"rx_out_of_buffer": 700, "rx_packets": 1e9}
		}}, "certain", "700"},
		{"vmxnet3", []hostsEdit{sentAgain(1000), func(h *hosts) { h.receiver.Host.NIC.Driver = map[string]uint64{"  pkts rx OOB": 700} }}, "certain", "700"},
	})
}

func TestModeration(t *testing.T) {
	full := core(2, measure.CPU{SoftIRQ: 60, IRQ: 35, System: 3, Idle: 2})
	judgeHosts(t, "interrupt-moderation", []hostsRow{
		{"one kernel", []hostsEdit{sameMachine}, "no", ""},
		{"very many", []hostsEdit{interruptsOn(0, 0, 240_000), full}, "likely", "120000 interrupts per second"},
		{"very many, little of the CPU", []hostsEdit{interruptsOn(0, 0, 240_000), core(2, measure.CPU{SoftIRQ: 90, IRQ: 5, System: 4})}, "possible", ""},
		{"very many, time left", []hostsEdit{interruptsOn(0, 0, 240_000), core(2, measure.CPU{IRQ: 35, Idle: 65})}, "none", ""},
		{"many", []hostsEdit{interruptsOn(0, 0, 90_000), full}, "none", ""},
		{"a long wait, and the window binds", []hostsEdit{warns("interrupt-moderation", "interrupt-moderation", "b", "eth0 waits 1 ms"),
			func(h *hosts) { h.sender.Streams[0].TCP.RwndLimitedUs = new(uint64(1_600_000)) }}, "likely", "1 ms"},
	})
}
