package compare

import (
	"fmt"
	"strings"
	"testing"

	"thru/internal/measure"
)

func TestFactChanges(t *testing.T) {
	peer := func(d *measure.Document) *measure.Facts { return d.EndPoints[1].Facts }
	tests := []struct {
		name   string
		change func(d *measure.Document)
		want   string // "at name: before -> after", minor ones in brackets
	}{
		{"nothing", func(d *measure.Document) {}, ""},
		{"MTU", func(d *measure.Document) { peer(d).Interfaces[0].MTU = new(9000) }, "peer MTU of eth0: 1500 -> 9000"},
		{"an offload", func(d *measure.Document) {
			peer(d).Interfaces[0].Offloads["tcp-segmentation-offload"] = false
		}, "peer tcp-segmentation-offload of eth0: on -> off"},
		{"rings", func(d *measure.Document) { peer(d).Interfaces[0].Rings.RX = 4096 }, "peer receive ring of eth0: 512 -> 4096"},
		{"kernel", func(d *measure.Document) { peer(d).Kernel = new("6.13.0") }, "peer kernel: 6.12.48 -> 6.13.0"},
		{"driver and firmware", func(d *measure.Document) {
			peer(d).Interfaces[0].Driver, peer(d).Interfaces[0].Firmware = new("ice"), new("1.2")
		}, "peer driver of eth0: ixgbe -> ice; peer firmware of eth0: 0x800003e1 -> 1.2"},
		{"a sysctl", func(d *measure.Document) { peer(d).Sysctls["net.core.rmem_max"] = "4194304" }, "peer net.core.rmem_max: 212992 -> 4194304"},
		{"CPUs", func(d *measure.Document) { peer(d).Cores = new(2) }, "peer CPUs: 4 -> 2"},
		{"governor", func(d *measure.Document) {
			peer(d).CPU = &measure.Processors{Governors: []string{"powersave"}}
		}, "peer governor: performance -> powersave"},
		{"a few bytes of memory", func(d *measure.Document) { peer(d).Memory = new(int64(16<<30 - 4096)) }, ""},
		{"noise", func(d *measure.Document) {
			peer(d).Load.CPUPct, peer(d).Interfaces[0].Counters[0].Packets = new(50.0), 99
		}, ""},
		{"an interface that the traffic does not take", func(d *measure.Document) { peer(d).Interfaces[1].MTU = new(9000) }, "(peer MTU of eth1: 1500 -> 9000)"},
		{"an interface that is new", func(d *measure.Document) {
			peer(d).Interfaces = append(peer(d).Interfaces, measure.Interface{Name: "docker0"})
		}, "(peer interface docker0: none -> there)"},
		{"a fact that was not asked for", func(d *measure.Document) { peer(d).Interfaces[0].Rings = nil }, ""},
		{"RPS that is not set any more", func(d *measure.Document) { peer(d).Interfaces[0].RPS = nil }, "peer RPS rx-0 of eth0: 0-3 -> none"},
		{"RPS that was not checked", func(d *measure.Document) {
			peer(d).Interfaces[0].RPS = nil
			peer(d).NotChecked = []measure.NotChecked{{Fact: "interfaces.eth0.rps", Why: "no root"}}
		}, ""},
		{"another machine", func(d *measure.Document) { peer(d).Hostname = new("host-c") }, "peer machine: host-peer -> host-c"},
		{"moved by its hypervisor", func(d *measure.Document) { d.EndPoints[1].Placement.HostName = "esx2" }, "peer host of the virtual machine: esx1 -> esx2"},
		{"in another network", func(d *measure.Document) { d.EndPoints[1].Placement.Network = "storage" }, "peer network of the virtual machine: lan -> storage"},
		{"no hypervisor answers", func(d *measure.Document) { d.EndPoints[1].Placement = nil }, ""},
		{"thru there", func(d *measure.Document) { d.EndPoints[1].Thru = "1.1" }, "peer thru: 1.0 -> 1.1"},
		{"the traffic takes another interface, which is there before too", func(d *measure.Document) {
			d.Cells[0].Runs[0].Flows[0].Receiver.Route.Interface = "eth1"
			peer(d).Interfaces[1].MTU = new(1500)
			peer(d).Interfaces[1].Driver = new("veth")
		}, "peer interface that the traffic takes: eth0 -> eth1; peer RPS rx-0 of the interface in use: 0-3 (eth0) -> none (eth1); peer driver of the interface in use: ixgbe (eth0) -> veth (eth1)"},
		{"the traffic takes a new interface", func(d *measure.Document) {
			d.Cells[0].Runs[0].Flows[0].Receiver.Route.Interface = "va"
			peer(d).Interfaces = append(peer(d).Interfaces, measure.Interface{Name: "va", MTU: new(9000)})
		}, "peer interface that the traffic takes: eth0 -> va; peer MTU of the interface in use: 1500 (eth0) -> 9000 (va); peer RPS rx-0 of the interface in use: 0-3 (eth0) -> none (va)"},
		{"congestion control", func(d *measure.Document) {
			peer(d).Congestion, peer(d).Sysctls["net.ipv4.tcp_congestion_control"] = new("bbr"), "bbr"
		}, "peer congestion control: cubic -> bbr"},
		{"the interface has another name", func(d *measure.Document) {
			peer(d).Interfaces[0].Name = "ens3"
			d.Cells[0].Runs[0].Flows[0].Receiver.Route.Interface = "ens3"
		}, "peer interface that the traffic takes: eth0 -> ens3"},
	}
	for _, tt := range tests {
		before, after := result("local", "peer", 10, 1e9), result("local", "peer", 10, 1e9)
		for _, d := range []*measure.Document{before, after} {
			d.EndPoints[1].Thru = "1.0"
			d.EndPoints[1].Placement = &measure.Placement{Guest: "vm-1", HostName: "esx1", Network: "lan"}
			peer(d).CPU = &measure.Processors{Governors: []string{"performance"}}
			peer(d).Sysctls["net.ipv4.tcp_congestion_control"] = "cubic"
			peer(d).Interfaces[0].RPS = map[string]string{"rx-0": "0-3"}
		}
		tt.change(after)
		var got []string
		for _, f := range Of(one(before), one(after), Options{}).Facts {
			s := fmt.Sprintf("%s %s: %s -> %s", f.Of, f.Name, f.Before, f.After)
			if f.Minor {
				s = "(" + s + ")"
			}
			got = append(got, s)
		}
		if strings.Join(got, "; ") != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, strings.Join(got, "; "), tt.want)
		}
	}
}

// One change is named once, where it was made.
func TestSayOnce(t *testing.T) {
	d := func(name string) *measure.Document {
		x := result("local", "peer", 10, 1e9)
		f := x.EndPoints[0].Facts
		f.Congestion, f.Sysctls["net.ipv4.tcp_congestion_control"] = &name, name
		x.Paths = []measure.Path{{From: "local", To: "peer", Forward: measure.DirectionFacts{Congestion: &name}, Back: measure.DirectionFacts{Congestion: new("cubic")}}}
		x.Cells[0].Runs[0].Flows[0].Sender.Streams[0].Congestion = name
		return x
	}
	x := Of(one(d("bbr")), one(d("reno")), Options{})
	if len(x.Facts) != 1 || x.Facts[0].Name != "congestion control" || x.Facts[0].Of != "local" || len(x.Cells[0].Settings) > 0 {
		t.Errorf("%+v, %+v", x.Facts, x.Cells[0].Settings)
	}
	route := d("bbr")
	route.Paths[0].Forward.Congestion = new("reno")
	if x := Of(one(d("bbr")), one(route), Options{}); len(x.Facts) != 1 || x.Facts[0].Fact != "paths.congestion" {
		t.Errorf("%+v", x.Facts)
	}
}

// Facts that affect a rate most come first, and those that hardly do last.
func TestFactOrder(t *testing.T) {
	before, after := result("local", "peer", 10, 1e9), result("local", "peer", 10, 1e9)
	f := after.EndPoints[1].Facts
	f.Kernel, f.Boot, f.Interfaces[0].MTU, f.Interfaces[1].MTU = new("7"), new("sdb"), new(9000), new(9000)
	before.EndPoints[1].Facts.Boot = new("sda")
	var names []string
	for _, c := range Of(one(before), one(after), Options{}).Facts {
		names = append(names, c.Name)
	}
	if got := strings.Join(names, ", "); got != "MTU of eth0, kernel, MTU of eth1, boot device" && got != "MTU of eth0, kernel, boot device, MTU of eth1" {
		t.Error(got)
	}
}

// For a range all values of a fact are named, and a fact that varied equally before and after is no change.
func TestFactsOfRange(t *testing.T) {
	before, after := docs("local", "peer", 1e9, 1e9), docs("local", "peer", 1e9, 1e9)
	before[1].EndPoints[1].Facts.Kernel = new("6.13")
	after[0].EndPoints[1].Facts.Kernel = new("6.13")
	before[0].EndPoints[1].Facts.Interfaces[0].MTU = new(9000)
	all := Of(before, after, Options{}).Facts
	if len(all) != 1 || all[0].Before != "9000 / 1500" || all[0].After != "1500" {
		t.Errorf("%+v", all)
	}
}

func TestPathChanges(t *testing.T) {
	path := func(mtu, hops int, sack bool) *measure.Document {
		d := result("local", "peer", 10, 1e9)
		d.Paths = []measure.Path{{From: "local", To: "peer", Handshake: &measure.Handshake{SYNSeen: &measure.SYN{SACK: &sack}},
			Forward: measure.DirectionFacts{MTU: &measure.PathMTU{Bytes: mtu}, Hops: &hops, Route: &measure.Route{Interface: "eth0"}},
			Back:    measure.DirectionFacts{MTU: &measure.PathMTU{Bytes: 1500}}}}
		return d
	}
	var got []string
	for _, f := range Of(one(path(9000, 0, true)), one(path(1500, 1, false)), Options{}).Facts {
		got = append(got, fmt.Sprintf("%s %s: %s -> %s", f.Of, f.Name, f.Before, f.After))
	}
	want := "local -> peer path MTU: 9000 -> 1500; local -> peer routers on the path: 0 -> 1; local -> peer SACK: on -> off"
	if strings.Join(got, "; ") != want {
		t.Errorf("%q, want %q", strings.Join(got, "; "), want)
	}
}

func TestCausesAndGates(t *testing.T) {
	d := func(cause, status string) *measure.Document {
		x := result("local", "peer", 10, 1e9)
		x.Cells[0].Findings = []measure.Finding{{Cause: cause, Where: measure.Where{Place: measure.AtReceiver}, Summary: "it is so"}}
		x.Gates = []measure.Gate{{ID: "mtu-path", From: "local", To: "peer", Status: status, Fact: "1500"}, {ID: "clock", EndPoint: "peer", Status: measure.GatePass}}
		return x
	}
	x := Of(one(d("link-rate", measure.GatePass)), one(d("receiver-cpu", measure.GateWarn)), Options{})
	if len(x.Causes) != 1 || x.Causes[0].Before != "link-rate (receiver)" || x.Causes[0].After != "receiver-cpu (receiver)" || x.Causes[0].Summary != "it is so" {
		t.Errorf("%+v", x.Causes)
	}
	if len(x.Gates) != 1 || x.Gates[0].Of != "local -> peer" || x.Gates[0].Before != "pass" || x.Gates[0].After != "warn" {
		t.Errorf("%+v", x.Gates)
	}
	if y := Of(one(d("link-rate", measure.GateWarn)), one(d("link-rate", measure.GateWarn)), Options{}); len(y.Causes)+len(y.Gates) > 0 {
		t.Errorf("%+v, %+v", y.Causes, y.Gates)
	}
}
