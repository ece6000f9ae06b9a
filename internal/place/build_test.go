package place

import (
	"fmt"

	"thru/internal/measure"
)

// UUIDs and MAC addresses of the testbed's guests, by number.
func uuid(n int) string { return fmt.Sprintf("4201%04x-0000-0001-0203-%012x", n, n) }
func mac(n int) string  { return fmt.Sprintf("00:50:56:00:00:%02x", n) }

// guest returns guest number n on a host, with one vmxnet3 in a port group and 10.0.0.n.
func guest(n int, name, host, site, group string) measure.Guest {
	addr := fmt.Sprintf("10.0.0.%d", n)
	return measure.Guest{
		ID: fmt.Sprintf("vm-%d", n), Name: name, Host: host, Site: site, UUID: uuid(n), Power: "on", Hostname: new(name + ".example.net"), Addrs: []string{addr, "fe80::1"},
		NICs: []measure.GuestNIC{{Name: "Network adapter 1", Model: new("vmxnet3"), MAC: new(mac(n)), Connected: new(true), PortGroup: group, Addrs: []string{addr + "/24"}}},
	}
}

func host(n int, site string, bps int64) measure.GuestHost {
	return measure.GuestHost{
		ID: fmt.Sprintf("host-%d", n), Name: fmt.Sprintf("esx%d", n), Site: site, UUID: uuid(100 + n),
		Facts: &measure.Facts{Interfaces: []measure.Interface{{Name: "vmnic0", MAC: new(mac(100 + n)), SpeedBps: new(bps)}, {Name: "vmnic1", SpeedBps: new(int64(1e9))}}},
		Ports: []measure.VMkernelPort{{Device: "vmk0", PortGroup: "pg-mgmt", MAC: new(mac(120 + n)), Addrs: []string{fmt.Sprintf("192.0.2.%d/24", n)}}},
	}
}

// testbed is a vCenter with three hosts in two data centers: two on one network, and one in the other data center.
func testbed() measure.Inventory {
	return measure.Inventory{
		Source: "vsphere://vc1", Kind: measure.KindVSphere,
		Guests: []measure.Guest{
			guest(1, "web-1", "host-1", "east", "pg-100"), guest(2, "web-2", "host-1", "east", "pg-100"), guest(3, "web-3", "host-2", "east", "pg-100"),
			guest(4, "db-1", "host-2", "east", "pg-200"), guest(5, "web-9", "host-3", "west", "pg-900"),
		},
		Hosts: []measure.GuestHost{host(1, "east", 25e9), host(2, "east", 10e9), host(3, "west", 10e9)},
		Switches: []measure.VirtualSwitch{{
			ID: "dvs-1", Name: "dvs-prod", Kind: "distributed", Teaming: &measure.Teaming{Active: []string{"Uplink 1"}, Standby: []string{"Uplink 2"}},
			Uplinks: []measure.Uplink{{Host: "host-1", NIC: "vmnic0", Name: "Uplink 1"}, {Host: "host-1", NIC: "vmnic1", Name: "Uplink 2"}, {Host: "host-2", NIC: "vmnic0", Name: "Uplink 1"}},
		}, {ID: "dvs-2", Name: "dvs-west", Kind: "distributed"}, {ID: "sw-x", Name: "vSwitch9", Host: "host-8"}},
		PortGroups: []measure.SwitchPortGroup{
			{ID: "pg-100", Name: "prod", Switch: "dvs-1", VLAN: new("100")}, {ID: "pg-101", Name: "prod-too", Switch: "dvs-1", VLAN: new("100")},
			{ID: "pg-200", Name: "db", Switch: "dvs-1", VLAN: new("200")}, {ID: "pg-900", Name: "prod", Switch: "dvs-2", VLAN: new("100")},
			{ID: "pg-mgmt", Name: "Management", Switch: "dvs-1", VLAN: new("0")}, {ID: "pg-x", Name: "x", Switch: "sw-x"},
			{ID: "pg-up", Name: "uplinks", Switch: "dvs-1", Uplinks: true}, {ID: "pg-up9", Name: "uplinks", Switch: "sw-x", Uplinks: true},
		},
		Datastores: []measure.Datastore{{ID: "ds-1"}},
	}
}

// subject is what guest n reports of itself when thru runs there as root.
func subject(name string, n int) Subject {
	return Subject{
		Name: name, UUID: uuid(n), MACs: []string{mac(n)}, Via: mac(n),
		Addrs: []string{fmt.Sprintf("10.0.0.%d/24", n), "127.0.0.1/8"}, ViaAddrs: []string{fmt.Sprintf("10.0.0.%d/24", n)},
	}
}

// placed is guest n with its placement in the inventories.
func placed(name string, n int, all ...measure.Inventory) Placed {
	s := subject(name, n)
	at, _ := Match(s, all)
	return Placed{s, at}
}
