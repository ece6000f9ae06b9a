package cause

import (
	"math"
	"strings"
	"testing"

	"thru/internal/cause/diagnose"
	"thru/internal/cause/mtu"
	"thru/internal/measure"
)

func TestHypervisorAdapter(t *testing.T) {
	model := func(name string) func(*measure.Inventory) {
		return guestB(func(g *measure.Guest) { g.NICs[0].Model = &name })
	}
	full := reading(97, 1)
	judgeHosts(t, "emulated-nic", []hostsRow{
		{"paravirtual", []hostsEdit{belowEnds(), full}, "no", "the hypervisor gives the sender a vmxnet3; the hypervisor gives the receiver a vmxnet3"},
		{"emulated", []hostsEdit{belowEnds(model("e1000"))}, "possible beside", "Network adapter 1 of vm-b is emulated (e1000)"},
		{"emulated, CPU full", []hostsEdit{belowEnds(model("E1000E")), full}, "likely", ""},
		{"of KVM", []hostsEdit{belowEnds(onKVM, model("rtl8139")), full}, "likely", ""},
		{"a name that nobody knows", []hostsEdit{belowEnds(model("sriov")), full}, "no", "sriov"},
		{"not told", []hostsEdit{belowEnds(guestB(func(g *measure.Guest) { g.NICs[0].Model = nil })), full}, "no", ""},
		{"the guest sees it, too", []hostsEdit{belowEnds(model("e1000")), full, warns("nic-model", "emulated-nic", "b", "eth0 is emulated by vmware (e1000)")}, "likely", "vm-b"},
		{"the guest alone sees it", []hostsEdit{full, warns("nic-model", "emulated-nic", "b", "eth0 is emulated by vmware (e1000)")}, "likely", "eth0"},
	})
	h := twoHosts(belowEnds(model("e1000")), full, warns("nic-model", "emulated-nic", "b", "eth0 is emulated by vmware (e1000)"))
	r, _ := diagnose.RuleOf(theCatalogue(), "emulated-nic")
	o := r.Apply(diagnose.NewFlow(theCatalogue(), h.doc, h.cell))
	if len(o.Evidence) != 2 || o.Fix.EndPoint != "esx2" || !strings.Contains(o.Fix.Advice, "replace Network adapter 1 of vm-b with a VMXNET 3 adapter") {
		t.Errorf("an adapter that both name: %+v", o)
	}
}

func TestPortShaper(t *testing.T) {
	const at = 4.2e9 // while 4 Gb/s pass
	shaping := func(on bool, bps float64) *measure.Shaping {
		return &measure.Shaping{Enabled: &on, AverageBps: new(int64(bps))}
	}
	group := func(in, out *measure.Shaping) func(*measure.Inventory) {
		return func(v *measure.Inventory) { v.PortGroups[0].ShapeIn, v.PortGroups[0].ShapeOut = in, out }
	}
	sw := func(out *measure.Shaping) func(*measure.Inventory) {
		return func(v *measure.Inventory) { v.Switches[0].ShapeOut = out }
	}
	own := func(s *measure.Shaping) func(*measure.Inventory) {
		return guestB(func(g *measure.Guest) { g.NICs[0].LimitIn = s })
	}
	sent := func(s *measure.Shaping) func(*measure.Inventory) {
		return guestB(func(g *measure.Guest) { g.NICs[0].Limit = s })
	}
	even := func(gbps ...float64) hostsEdit {
		return func(h *hosts) {
			for i, g := range gbps {
				h.receiver.Bins = append(h.receiver.Bins, measure.StreamBin{At: int64(i) * 1e9, Span: 1e9, Bytes: int64(g * 1e9 / 8)})
			}
		}
	}
	flat := even(4, 4, 4.02, 3.99)
	judgeHosts(t, "shaper", []hostsRow{
		{"none", []hostsEdit{belowEnds(), flat}, "missing", ""},
		{"of the port group, outwards", []hostsEdit{belowEnds(group(nil, shaping(true, at))), flat}, "certain", "port group prod limits what the sender sends to 4.20 Gb/s, and the flow is at this limit"},
		{"of the port group, inwards", []hostsEdit{belowEnds(group(shaping(true, at), nil)), flat}, "certain", "the receiver receives"},
		{"of the switch", []hostsEdit{belowEnds(sw(shaping(true, at))), flat}, "certain", "switch dvs-prod"},
		{"of the port alone", []hostsEdit{belowEnds(own(shaping(true, at))), flat}, "certain", "Network adapter 1 of vm-b"},
		{"of what the receiver's port sends", []hostsEdit{belowEnds(sent(shaping(true, at))), flat}, "missing", ""},
		{"off at the port group, on at the switch", []hostsEdit{belowEnds(group(nil, shaping(false, at)), sw(shaping(true, at))), flat}, "missing", ""},
		{"far above the rate", []hostsEdit{belowEnds(group(nil, shaping(true, 9e9))), flat}, "missing", ""},
		{"below the rate, of the time", []hostsEdit{belowEnds(group(nil, shaping(true, 2e9))), flat}, "missing", ""},
		{"with what others of the guest send", []hostsEdit{belowEnds(group(nil, shaping(true, 9e9)), counts("vm-a", "4000", measure.CounterTxBps, 8.9e9)), flat}, "certain", ""},
		{"a course that is not even", []hostsEdit{belowEnds(group(nil, shaping(true, at))), even(5, 3, 6, 2)}, "possible", ""},
		{"a course that is not known", []hostsEdit{belowEnds(group(nil, shaping(true, at)))}, "likely", ""},
		{"a CPU is full", []hostsEdit{belowEnds(group(nil, shaping(true, at))), flat, sending(97, 1)}, "possible", ""},
		{"link full", []hostsEdit{belowEnds(group(nil, shaping(true, at))), flat, linkShare(96)}, "missing", ""},
		{"UDP", []hostsEdit{belowEnds(group(nil, shaping(true, at))), flat, overUDP(5000)}, "certain", ""},
		{"no rate", []hostsEdit{belowEnds(group(nil, &measure.Shaping{Enabled: new(true)})), flat}, "missing", ""},
		{"an absurd rate", []hostsEdit{belowEnds(group(nil, shaping(true, -1))), flat}, "missing", ""},
	})
}

func TestHypervisorMTU(t *testing.T) {
	jumbo := func(h *hosts) {
		for i := range h.doc.EndPoints {
			h.doc.EndPoints[i].Facts.Interfaces[0].MTU = new(9000)
		}
	}
	found := func(bytes int) hostsEdit {
		return func(h *hosts) {
			direction := func() measure.DirectionFacts {
				return measure.DirectionFacts{Route: &measure.Route{Interface: "eth0"}, MTU: &measure.PathMTU{Bytes: bytes, Claimed: 9000, Silent: true}, Hops: new(0)}
			}
			h.doc.Paths = []measure.Path{{From: "a", To: "b", Forward: direction(), Back: direction()}}
		}
	}
	small := func(v *measure.Inventory) { v.Switches[0].MTU = new(1500) }
	tap := guestB(func(g *measure.Guest) { g.NICs[0].Device, g.NICs[0].MTU = new("tap3"), new(1500) })
	uplink := bedB(func(h *measure.GuestHost) { h.Facts.Interfaces[0].MTU = new(1500) })
	judgeHosts(t, "jumbo-mismatch", []hostsRow{
		{"MTU 1500 in the guests", []hostsEdit{belowEnds(small), found(1500), func(h *hosts) { h.doc.Paths[0].Forward.MTU.Claimed = 1500 }}, "no", "no jumbo frames"},
		{"jumbo frames pass", []hostsEdit{belowEnds(), jumbo, found(9000)}, "no", "9000 bytes pass"},
		{"the switch takes less", []hostsEdit{belowEnds(small), jumbo, found(1500)}, "certain beside", "the switch dvs-prod passes only 1500"},
		{"the tap takes less", []hostsEdit{belowEnds(onKVM, tap), jumbo, found(1500)}, "certain beside", "the interface tap3 of esx2 passes only 1500"},
		{"the uplink takes less", []hostsEdit{belowEnds(uplink), jumbo, found(1500)}, "certain beside", "the uplink vmnic0 of esx2 passes only 1500"},
		{"inside one host no uplink counts", []hostsEdit{belowEnds(uplink), sameHost, jumbo, found(1500)}, "certain beside", "pass of 9000"},
		{"something else takes less", []hostsEdit{belowEnds(func(v *measure.Inventory) { v.Switches[0].MTU = new(8000) }), jumbo, found(9000)}, "no", ""},
		{"not searched", []hostsEdit{belowEnds(small), jumbo}, "possible beside", "the switch dvs-prod passes only packets of 1500 bytes, but the sender has an MTU of 9000"},
		{"not searched, all take it", []hostsEdit{belowEnds(), jumbo}, "missing", ""},
		{"nobody asked, not searched", []hostsEdit{jumbo}, "missing", ""},
		{"an absurd MTU", []hostsEdit{belowEnds(func(v *measure.Inventory) { v.Switches[0].MTU = new(math.MinInt32) }), jumbo}, "missing", ""},
	})
	h := twoHosts(belowEnds(small), jumbo, found(1500))
	r, _ := diagnose.RuleOf(theCatalogue(), "jumbo-mismatch")
	if o := r.Apply(diagnose.NewFlow(theCatalogue(), h.doc, h.cell)); o.Where.Below != "the switch dvs-prod" || o.Fix == nil || !strings.Contains(o.Fix.Advice, "MTU 9000 at the switch dvs-prod") {
		t.Errorf("a switch that takes less: %+v %+v", o.Where, o.Fix)
	}
}

// TestVMkernelMTU: an ESXi host that is itself an end has the MTU of its VMkernel port.
func TestVMkernelMTU(t *testing.T) {
	h := twoHosts(belowEnds(func(v *measure.Inventory) {
		v.Switches[0].MTU = new(1500)
		v.Hosts[1].Ports = []measure.VMkernelPort{{Device: "vmk0", Addrs: []string{"192.0.2.9/24"}, MTU: new(1500), PortGroup: "pg-1"}, {Device: "vmk1", Addrs: []string{"192.0.2.2/24"}, MTU: new(9000), PortGroup: "pg-1"}}
	}), func(h *hosts) {
		e := &h.doc.EndPoints[1]
		e.Placement, e.Addr, e.Facts.Interfaces = &measure.Placement{Source: "vsphere://vc", Host: "esx2"}, "192.0.2.2", nil
	})
	f := diagnose.NewFlow(theCatalogue(), h.doc, h.cell)
	if n := mtu.Narrowest(f); n == nil || n.End != f.Receiver || n.Wants != 9000 || n.MTU != 1500 || n.Name != "the switch dvs-prod" {
		t.Errorf("the narrowest is %+v", n)
	}
}

func TestHostOffloads(t *testing.T) {
	off := bedB(func(h *measure.GuestHost) { h.Facts.Changed["Net.Vmxnet3HwLRO"] = "0" })
	tso := func(v *measure.Inventory) { v.Hosts[0].Facts.Changed["/Net/UseHwTSO"] = "0 (default 1)" }
	judgeHosts(t, "offloads-off", []hostsRow{
		{"on", []hostsEdit{belowEnds()}, "none", ""},
		{"LRO off at the receiver's host", []hostsEdit{belowEnds(off)}, "possible beside", "an offload of esx2 is off: Vmxnet3HwLRO"},
		{"TSO off at the sender's host", []hostsEdit{belowEnds(tso)}, "possible beside", "an offload of esx1 is off: UseHwTSO"},
		{"TSO off where the receiver is", []hostsEdit{belowEnds(bedB(func(h *measure.GuestHost) { h.Facts.Changed["Net.UseHwTSO"] = "0" }))}, "none", ""},
	})
}

func TestOldTools(t *testing.T) {
	tools := func(os, status string, running bool) func(*measure.Inventory) {
		return guestB(func(g *measure.Guest) {
			g.OSRuns, g.Tools = &os, &measure.GuestTools{Status: &status, Running: &running}
		})
	}
	osUnknown := func(h *hosts) { h.doc.EndPoints[1].Facts.OS = nil }
	judgeHosts(t, "wrong-driver", []hostsRow{
		{"Windows, old", []hostsEdit{belowEnds(tools("Microsoft Windows Server 2022", "old", true)), osUnknown}, "possible beside", "in vm-b, which include the network driver, are old"},
		{"Windows, not running", []hostsEdit{belowEnds(tools("windows2019srv_64Guest", "current", false)), osUnknown}, "possible beside", "not running"},
		{"Windows, current", []hostsEdit{belowEnds(tools("windows2019srv_64Guest", "current", true)), osUnknown}, "none", ""},
		{"Linux has its own drivers", []hostsEdit{belowEnds(tools("Debian GNU/Linux 13", "not installed", false))}, "none", ""},
	})
}

// crammed is a flow with complete hypervisor data, most of it faulty.
func crammed() *measure.Document {
	return twoHosts(belowEnds(func(v *measure.Inventory) {
		for _, c := range []string{measure.CounterReady, measure.CounterCoStop, measure.CounterLimited, measure.CounterUsed, measure.CounterMemWait, measure.CounterSwapIn,
			measure.CounterSwapped, measure.CounterBalloon, measure.CounterRxDropped, measure.CounterTxDropped, measure.CounterRxDropPct, measure.CounterTxDropPct,
			measure.CounterRingFull, measure.CounterNoBuffer, measure.CounterRxBps, measure.CounterTxBps, measure.CounterThread} {
			counts("vm-a", "", c, 50)(v)
			counts("vm-b", "", c, 60)(v)
		}
		for _, host := range []string{"esx1", "esx2"} {
			counts(host, "", measure.CounterUsage, 97)(v)
			counts(host, "vmnic0", measure.CounterRxBps, 9.9e9)(v)
			counts(host, "vmnic0:0", measure.CounterQueueRx, 90_000)(v)
			counts(host, "vmnic0:1", measure.CounterQueueRx, 0)(v)
		}
		for i := range v.Guests {
			v.Guests[i].CPUQuota, v.Guests[i].NICs[0].Model = new(0.5), new("e1000")
			v.Guests[i].NICs[0].Device, v.Guests[i].NICs[0].MTU = new("tap0"), new(1400)
			v.Guests[i].Tools = &measure.GuestTools{Status: new("old")}
			v.Hosts[i].Facts.Changed["netNetqueueEnabled"] = "FALSE"
		}
		v.PortGroups[0].ShapeOut = &measure.Shaping{Enabled: new(true), AverageBps: new(int64(4.2e9))}
	}), sentAgain(900)).doc
}

// TestCrammed: all concurrent faults are reported, and each finding is complete.
func TestCrammed(t *testing.T) {
	d := crammed()
	Diagnose(d)
	for _, cause := range []string{"cpu-limit", "cpu-steal", "memory-pressure", "vswitch", "ring-overflow", "shaper", "emulated-nic", "jumbo-mismatch"} {
		if got := outcomeOf(d.Cells[0].Diagnosis, cause); got == "" || got == "no" || got == "?" {
			t.Errorf("%s: %q", cause, got)
		}
	}
	holdSound(t, "crammed", d)
	for _, x := range d.Cells[0].Findings {
		if x.Where.Below != "" && (x.Fix == nil || x.Fix.Advice == "" && len(x.Fix.Commands) == 0) {
			t.Errorf("%s has no remedy: %+v", x.Cause, x)
		}
	}
}

// TestNoHypervisor: a hypervisor without information changes nothing.
func TestNoHypervisor(t *testing.T) {
	of := func(edits ...hostsEdit) measure.Diagnosis {
		h := twoHosts(append(edits, reading(97, 1), waitsUnread(8<<20))...)
		Diagnose(h.doc)
		return h.cell.Diagnosis
	}
	plain := of()
	empty := of(func(h *hosts) {
		h.doc.Inventories = []measure.Inventory{{Source: "vsphere://vc", Kind: measure.KindVSphere}}
	})
	for i := range plain.Findings {
		if i >= len(empty.Findings) || plain.Findings[i].Summary != empty.Findings[i].Summary {
			t.Fatalf("findings differ: %+v and %+v", plain.Findings, empty.Findings)
		}
	}
	if len(plain.RuledOut) != len(empty.RuledOut) || len(plain.NotChecked) != len(empty.NotChecked) {
		t.Errorf("%d and %d ruled out, %d and %d not checked", len(plain.RuledOut), len(empty.RuledOut), len(plain.NotChecked), len(empty.NotChecked))
	}
}
