package cause

import (
	"strings"
	"testing"

	"thru/internal/measure"
)

// droppedAt adds packets dropped at the port of a guest, in total.
func droppedAt(guest, counter string, packets float64) func(*measure.Inventory) {
	return counts(guest, "4000", counter, packets/4)
}

// drained makes ports that dropped nothing.
func drained(v *measure.Inventory) {
	droppedAt("vm-a", measure.CounterTxDropped, 0)(v)
	droppedAt("vm-b", measure.CounterRxDropped, 0)(v)
}

func TestHypervisorSwitch(t *testing.T) {
	toward := func(n float64) func(*measure.Inventory) { return droppedAt("vm-b", measure.CounterRxDropped, n) }
	ring := func(n float64) func(*measure.Inventory) { return droppedAt("vm-b", measure.CounterRingFull, n) }
	from := func(n float64) func(*measure.Inventory) { return droppedAt("vm-a", measure.CounterTxDropped, n) }
	vhost := func(pct float64) func(*measure.Inventory) {
		return func(v *measure.Inventory) {
			onKVM(v)
			v.Guests[1].Threads = []measure.GuestThread{{TID: 77, Name: "vhost-70", Role: "vhost"}, {TID: 71, Name: "CPU 0/KVM", Role: "vcpu"}}
			counts("esx2", "vhost-70", measure.CounterThread, pct)(v)
			counts("esx2", "vhost-99", measure.CounterThread, 100)(v) // of another guest
		}
	}
	shaped := func(v *measure.Inventory) {
		v.PortGroups[0].ShapeOut = &measure.Shaping{Enabled: new(true), AverageBps: new(int64(9e9))}
	}
	alone := func(bps float64) hostsEdit {
		return func(h *hosts) {
			c := measure.Cell{From: "a", To: "a", Protocol: measure.TCP, Goodput: &measure.Figure{Value: bps, Runs: 1}, Runs: []measure.Run{{Goodput: &bps}}}
			c.Spec = measure.Spec{From: "a", To: "a", Protocol: measure.TCP}
			h.doc.Cells = append(h.doc.Cells, c)
			h.cell = &h.doc.Cells[0]
		}
	}
	judgeHosts(t, "vswitch", []hostsRow{
		{"nothing dropped", []hostsEdit{belowEnds(drained)}, "no", "no packet was dropped at the sender's port of dvs-prod; no packet was dropped at the receiver's port"},
		{"nothing counted", []hostsEdit{belowEnds()}, "missing", "reported no net.tx_dropped_packets"},
		{"from the guest", []hostsEdit{belowEnds(from(900)), sentAgain(1000)}, "certain", "900 packets from the sender were dropped at dvs-prod"},
		{"from the guest, of which nothing was lost", []hostsEdit{belowEnds(from(900))}, "possible beside", ""},
		{"from the guest, hardly any", []hostsEdit{belowEnds(from(90)), sentAgain(1000)}, "possible", ""},
		{"from the guest, whose port is shaped", []hostsEdit{belowEnds(from(900), shaped), sentAgain(1000)}, "possible", ""},
		{"a share alone", []hostsEdit{belowEnds(counts("vm-a", "4000", measure.CounterTxDropPct, 0.8)), sentAgain(1000)}, "possible", "0.8% of the packets from the sender were dropped at dvs-prod"},
		{"a worker with time", []hostsEdit{belowEnds(drained, vhost(60))}, "no", "vhost-70 took 60% of a CPU"},
		{"a full worker", []hostsEdit{belowEnds(vhost(97))}, "certain", "vhost-70 took 97% of a CPU"},
		{"a name with a percent sign", []hostsEdit{belowEnds(from(900), func(v *measure.Inventory) { v.Switches[0].Name = "50% link" }), sentAgain(1000)}, "certain", "dropped at 50% link"},
		{"a world of ESXi for its port", []hostsEdit{belowEnds(guestB(func(g *measure.Guest) { g.NICs[0].Port = new("67108879") }), counts("esx2", "NetWorld-Dev-67108879-Tx", measure.CounterThread, 99)), sentAgain(0)}, "certain", "NetWorld-Dev-67108879-Tx took 99%"},
		{"a world of ESXi for its guest", []hostsEdit{belowEnds(guestB(func(g *measure.Guest) { g.PID = new(1051275) }), counts("esx2", "NetWorld-VM-1051275", measure.CounterThread, 99)), sentAgain(0)}, "certain", "NetWorld-VM-1051275 took 99%"},
		{"a world of ESXi whose number begins alike", []hostsEdit{belowEnds(drained, guestB(func(g *measure.Guest) { g.NICs[0].Port = new("67108879") }), counts("esx2", "NetWorld-Dev-671088790-Tx", measure.CounterThread, 99))}, "no", ""},
		{"a world of ESXi for a guest whose name begins alike", []hostsEdit{belowEnds(drained, counts("esx2", "99:vm-b2", measure.CounterThread, 99))}, "no", ""},
		{"a world of ESXi of its name", []hostsEdit{belowEnds(counts("esx2", "99:vm-b", measure.CounterThread, 99)), sentAgain(0)}, "certain", "99:vm-b took 99%"},
		{"a world of ESXi for another", []hostsEdit{belowEnds(drained, counts("esx2", "NetWorld-Dev-67108880-Tx", measure.CounterThread, 99))}, "no", ""},
		{"one of several of its name", []hostsEdit{belowEnds(vhost(20), counts("vm-b", "vhost-70:77", measure.CounterThread, 97))}, "certain", "vhost-70:77"},
		{"a thread of its disks", []hostsEdit{belowEnds(vhost(20), drained, counts("vm-b", "IO iothread1", measure.CounterThread, 97))}, "no", "vhost-70 took 20%"},
		{"QEMU moves the packets itself", []hostsEdit{belowEnds(vhost(20), guestB(func(g *measure.Guest) { g.Threads = g.Threads[1:] }), counts("vm-b", "main thread", measure.CounterThread, 97))}, "certain", "main thread took 97%"},
		{"of one of two adapters", []hostsEdit{belowEnds(vhost(97), guestB(func(g *measure.Guest) {
			g.NICs = append(g.NICs, measure.GuestNIC{Name: "Network adapter 2", Key: "4001"})
		}))}, "likely", ""},
		{"nearly full", []hostsEdit{belowEnds(vhost(92))}, "likely", ""},
		{"and a full CPU", []hostsEdit{belowEnds(vhost(97)), reading(97, 1)}, "possible", ""},
		{"link full", []hostsEdit{belowEnds(vhost(97)), linkShare(96)}, "likely beside", ""},
		{"one host, far below one guest", []hostsEdit{belowEnds(drained), sameHost, alone(40e9)}, "possible", "reach only 10% of the rate of one guest to itself"},
		{"one host, not far below", []hostsEdit{belowEnds(drained), sameHost, alone(8e9)}, "no", ""},
		{"two hosts, far below one guest", []hostsEdit{belowEnds(drained), alone(40e9)}, "no", ""},
		{"far below, a CPU full", []hostsEdit{belowEnds(drained), sameHost, alone(40e9), sending(97, 1)}, "no", ""},
		{"absurd", []hostsEdit{belowEnds(from(-5), toward(-5))}, "missing", ""},
		{"toward the guest, its ring had room", []hostsEdit{belowEnds(toward(900), ring(0)), sentAgain(1000)}, "certain", "900 packets toward the receiver"},
		{"toward the guest, nobody tells of its ring", []hostsEdit{belowEnds(toward(900)), sentAgain(1000)}, "possible", ""},
	})
	h := twoHosts(belowEnds(from(900)), sentAgain(1000))
	Diagnose(h.doc)
	if f := h.cell.Findings; len(f) == 0 || f[0].Cause != "vswitch" || f[0].Where.Below != "dvs-prod" || f[0].Where.Place != measure.AtSender {
		t.Errorf("drops at the sender's port: %+v", f)
	}
}

// TestPortOfTwoSources: a vCenter and the host itself name one adapter each in its own way, and drops at another
// adapter of the guest are not the test's.
func TestPortOfTwoSources(t *testing.T) {
	second := func(named bool, adapters ...measure.GuestNIC) hostsEdit {
		return func(h *hosts) {
			v := &h.doc.Inventories[0]
			v.Guests[1].UUID, v.Guests[1].NICs[0].MAC = "42010001-0000-0001-0203-000000000001", new("00:50:56:00:00:01")
			v.Guests[1].NICs = append(v.Guests[1].NICs, measure.GuestNIC{Name: "Network adapter 2", Key: "4001", MAC: new("00:50:56:00:00:02")})
			if !named {
				h.doc.EndPoints[1].Placement.NIC = ""
			}
			esx := measure.Inventory{Source: "ssh://root@esx2", Kind: measure.KindESXi, Hosts: []measure.GuestHost{{ID: "self", Name: "esx2"}},
				Guests: []measure.Guest{{ID: "7", Name: "vm-b", Host: "self", UUID: v.Guests[1].UUID, NICs: adapters}}}
			counts("7", "33554439", measure.CounterRxDropped, 0)(&esx)
			counts("7", "33554440", measure.CounterRxDropped, 250)(&esx)
			counts("7", "33554439", measure.CounterRxDropPct, 0)(&esx)
			counts("7", "33554440", measure.CounterRxDropPct, 5)(&esx)
			counts("7", "33554439", measure.CounterRingFull, 0)(&esx)
			counts("7", "33554440", measure.CounterRingFull, 250)(&esx)
			h.doc.Inventories = append(h.doc.Inventories, esx)
		}
	}
	test := measure.GuestNIC{Name: "ethernet0", Key: "33554439", MAC: new("00:50:56:00:00:01")}
	backup := measure.GuestNIC{Name: "ethernet1", Key: "33554440", MAC: new("00:50:56:00:00:02")}
	judgeHosts(t, "ring-overflow", []hostsRow{
		{"another adapter lost packets", []hostsEdit{belowEnds(), second(true, test, backup), sentAgain(1000)}, "no", "never reported a full ring"},
		{"the test's lost them", []hostsEdit{belowEnds(), second(true, func() measure.GuestNIC { n := test; n.Key = backup.Key; return n }(), backup), sentAgain(1000)}, "certain", "reported it full 1000 times"},
		{"which adapter it is is not known", []hostsEdit{belowEnds(), second(false, test, backup), sentAgain(1000), func(h *hosts) { h.receiver.Host.NIC = nil }}, "missing", "ssh://root@esx2 does not show which of its adapters carries the test"},
	})
}

func TestHypervisorRing(t *testing.T) {
	toward := func(n float64) func(*measure.Inventory) { return droppedAt("vm-b", measure.CounterRxDropped, n) }
	ring := func(n float64) func(*measure.Inventory) { return droppedAt("vm-b", measure.CounterRingFull, n) }
	unseen := func(h *hosts) { h.receiver.Host.NIC = nil }
	judgeHosts(t, "ring-overflow", []hostsRow{
		{"had room", []hostsEdit{belowEnds(toward(900), ring(0)), sentAgain(1000)}, "no", "the receiver's virtual port never reported a full ring"},
		{"no room", []hostsEdit{belowEnds(toward(900), ring(880)), sentAgain(1000)}, "certain", "its port at dvs-prod reported it full 880 times"},
		{"its first ring was full, and nothing dropped", []hostsEdit{belowEnds(toward(0), ring(880)), sentAgain(1000)}, "no", "never reported a full ring"},
		{"two commands count the same", []hostsEdit{belowEnds(ring(880), ring(860)), sentAgain(1000)}, "certain", "880 times"},
		{"no buffer", []hostsEdit{belowEnds(ring(100), droppedAt("vm-b", measure.CounterNoBuffer, 700)), sentAgain(1000)}, "certain", "700 packets"},
		{"nothing was lost of the test", []hostsEdit{belowEnds(ring(880))}, "possible beside", ""},
		{"dropped, nobody tells why", []hostsEdit{belowEnds(toward(900)), sentAgain(1000)}, "likely", "usually because the ring is full"},
		{"a share alone (%DRPRX)", []hostsEdit{belowEnds(counts("vm-b", "4000", measure.CounterRxDropPct, 1.5)), sentAgain(1000)}, "possible", ""},
		{"nothing dropped", []hostsEdit{belowEnds(drained), unseen}, "no", "the receiver's virtual port dropped no packet"},
		{"nothing counted", []hostsEdit{belowEnds(), unseen}, "missing", ""},
		{"UDP", []hostsEdit{belowEnds(ring(15_000)), overUDP(20_000)}, "certain", ""},
	})
	h := twoHosts(belowEnds(toward(900), ring(880)), sentAgain(1000))
	Diagnose(h.doc)
	f := h.cell.Findings
	if len(f) == 0 || f[0].Cause != "ring-overflow" || f[0].Fix == nil || !strings.Contains(f[0].Fix.Commands[0], "ethtool -G eth0 rx 4096") || f[0].Where.Below != "dvs-prod" {
		t.Errorf("a ring that the host found full: %+v", f)
	}
	if outcomeOf(h.cell.Diagnosis, "vswitch") == measure.Certain {
		t.Errorf("the switch is named, too: %+v", f)
	}
}

func TestHypervisorNetQueue(t *testing.T) {
	off := bedB(func(h *measure.GuestHost) { h.Facts.Changed["VMkernel.Boot.netNetqueueEnabled"] = "false" })
	esxcli := bedB(func(h *measure.GuestHost) {
		h.Facts.Changed["netNetqueueEnabled"] = "FALSE (default TRUE, configured FALSE)"
	})
	queues := func(each ...float64) func(*measure.Inventory) {
		return func(v *measure.Inventory) {
			for i, pps := range each {
				counts("esx2", "vmnic0:"+string(rune('0'+i)), measure.CounterQueueRx, pps)(v)
				counts("esx2", "vmnic7:"+string(rune('0'+i)), measure.CounterQueueRx, 1e9)(v) // no uplink of the guest
			}
		}
	}
	judgeHosts(t, "netqueue-off", []hostsRow{
		{"on", []hostsEdit{belowEnds()}, "no", "netNetqueueEnabled of esx1 has its default; netNetqueueEnabled of esx2 has its default"},
		{"off", []hostsEdit{belowEnds(off)}, "possible beside", "NetQueue of esx2 is off"},
		{"off, as esxcli has it", []hostsEdit{belowEnds(esxcli)}, "possible beside", "NetQueue of esx2 is off"},
		{"off, all in queue 0", []hostsEdit{belowEnds(off, queues(80_000, 0, 0, 0))}, "likely", ""},
		{"off, link full", []hostsEdit{belowEnds(off, queues(80_000, 0, 0, 0)), linkShare(96)}, "possible beside", ""},
		{"all in queue 0", []hostsEdit{belowEnds(queues(80_000, 10, 0, 0))}, "possible", "arrive in queue 0 of 4"},
		{"spread", []hostsEdit{belowEnds(queues(40_000, 30_000, 9_000, 8_000))}, "no", ""},
		{"few packets", []hostsEdit{belowEnds(queues(500, 0, 0, 0))}, "no", ""},
		{"one host", []hostsEdit{belowEnds(off, queues(80_000, 0)), sameHost}, "no", "does not leave esx2"},
		{"only what is set of drivers was told", []hostsEdit{belowEnds(func(v *measure.Inventory) {
			for i := range v.Hosts {
				v.Hosts[i].Facts.Changed["ixgben.RSS"] = "4"
				v.Hosts[i].Facts.NotChecked = []measure.NotChecked{{Fact: "settings_changed", Why: "refused"}}
			}
		})}, "missing", "did not report it"},
		{"not told", []hostsEdit{belowEnds(func(v *measure.Inventory) { v.Hosts[0].Facts, v.Hosts[1].Facts = nil, nil })}, "missing", "did not report it"},
		{"KVM", []hostsEdit{belowEnds(onKVM), func(h *hosts) {
			h.doc.EndPoints[0].Facts.Hypervisor, h.doc.EndPoints[1].Facts.Hypervisor = new("kvm"), new("kvm")
		}}, "none", ""},
	})
}

// TestFallsByNetQueue: an aggregate that falls as guests are added is attributed to NetQueue if the
// receiver's host has it off.
func TestFallsByNetQueue(t *testing.T) {
	for want, off := range map[string]bool{"netqueue-off likely": true, "too-few-queues possible": false} {
		free := cpus(30, 30, 30, 30)
		d := planOf(team(1, 4, made{bps: 2.2e9}, free), team(2, 8, made{bps: 0.7e9}, free))
		v := vcenter()
		if off {
			v.Hosts[1].Facts.Changed["netNetqueueEnabled"] = "FALSE"
		}
		d.Inventories = []measure.Inventory{v}
		for i := range d.EndPoints {
			d.EndPoints[i].Placement = &measure.Placement{Source: v.Source, Guest: v.Guests[i].ID, Host: v.Guests[i].Host, NIC: "Network adapter 1"}
		}
		Diagnose(d)
		if len(d.Findings) == 0 || d.Findings[0].Cause+" "+d.Findings[0].Confidence != want || !strings.Contains(d.Findings[0].Summary, "8 end points a host 5.60 Gb/s") {
			t.Errorf("NetQueue off %v: %+v, want %s", off, d.Findings, want)
		}
	}
}

func TestNeighbours(t *testing.T) {
	usage := func(pct float64) func(*measure.Inventory) { return counts("esx2", "", measure.CounterUsage, pct) }
	used := func(pct float64) func(*measure.Inventory) { return counts("vm-b", "", measure.CounterUsed, pct) }
	cores := func(n int) func(*measure.Inventory) {
		return bedB(func(h *measure.GuestHost) { h.Facts.CPU = &measure.Processors{Cores: &n} })
	}
	uplink := func(all, ours float64) func(*measure.Inventory) {
		return func(v *measure.Inventory) {
			counts("esx2", "vmnic0", measure.CounterRxBps, all)(v)
			counts("vm-b", "", measure.CounterRxBps, ours)(v)
		}
	}
	even := func(h *hosts) {
		for i := range int64(4) {
			h.receiver.Bins = append(h.receiver.Bins, measure.StreamBin{At: i * 1e9, Span: 1e9, Bytes: 5e8})
		}
	}
	judgeHosts(t, "noisy-neighbour", []hostsRow{
		{"others fill the host, and the guest waits", []hostsEdit{even, belowEnds(usage(97), used(120), ready(12))}, "likely", "other guests fill the CPUs of esx2: they take 94%, of 97% in use"},
		{"others fill the host, the guest gets its CPUs", []hostsEdit{even, belowEnds(usage(97), used(120), ready(1))}, "possible beside", ""},
		{"others fill the host, how the guest fares is not known", []hostsEdit{even, belowEnds(usage(97), used(120))}, "possible", ""},
		{"our own guest fills it", []hostsEdit{even, belowEnds(usage(97), used(3000), ready(12))}, "no", ""},
		{"our own guest fills its cores, of two threads each", []hostsEdit{even, belowEnds(usage(100), used(2000), ready(12), cores(20))}, "no", ""},
		{"the host has time", []hostsEdit{even, belowEnds(usage(60), used(120))}, "no", "fill neither the CPUs of the hosts nor the uplinks"},
		{"what our guest takes is not known", []hostsEdit{even, belowEnds(usage(97))}, "no", "the rate varies by only 0% from second to second"},
		{"others fill the uplink", []hostsEdit{even, belowEnds(uplink(9.3e9, 4.2e9))}, "likely", "other traffic fills the uplink vmnic0 of esx2: 5.10 Gb/s of its 10.0 Gb/s"},
		{"they fill all of it", []hostsEdit{even, belowEnds(uplink(9.8e9, 4.2e9))}, "certain", ""},
		{"all of it, and a CPU is full", []hostsEdit{even, belowEnds(uplink(9.8e9, 4.2e9)), sending(97, 1)}, "likely", ""},
		{"we fill the uplink", []hostsEdit{even, belowEnds(uplink(9.8e9, 9.6e9))}, "no", ""},
		{"inside one host", []hostsEdit{even, belowEnds(uplink(9.8e9, 4.2e9)), sameHost}, "no", ""},
		{"nobody asked", []hostsEdit{even}, "no", "the rate varies by only 0% from second to second"},
	})
}
