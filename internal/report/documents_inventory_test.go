package report

import (
	"fmt"
	"time"

	"thru/internal/measure"
)

// inventoryDocuments returns inventories: a cluster with something of everything, a single guest, and a host
// without guests.
func inventoryDocuments() map[string]*measure.Document {
	one := clusterDocument()
	one.Arguments = []string{"inventory", "vsphere://ro@vc.example", "--vm", "web1"}
	v := &one.Inventories[0]
	v.GuestsTotal, v.HostsTotal = new(len(v.Guests)), new(len(v.Hosts))
	v.Guests, v.Hosts = v.Guests[:1], v.Hosts[:1]
	none := inventoryOf(measure.Inventory{Source: "local", Kind: measure.KindKVM, ReadAt: began(), Product: "QEMU 9.2 on Debian GNU/Linux 13",
		Hosts: []measure.GuestHost{{ID: "kvm1", Name: "kvm1", Guests: new(0)}}})
	return map[string]*measure.Document{"inventory": clusterDocument(), "inventory-vm": one, "inventory-none": none}
}

func inventoryOf(v measure.Inventory) *measure.Document {
	return &measure.Document{Schema: measure.Schema, Thru: "0.1.0", Command: "inventory", Arguments: []string{"inventory", v.Source}, StartedAt: began(), ElapsedNs: int64(2 * time.Second),
		EndPoints: []measure.EndPoint{}, Cells: []measure.Cell{}, Inventories: []measure.Inventory{v}}
}

// clusterDocument is two ESXi hosts, one of them badly configured, and five guests.
func clusterDocument() *measure.Document {
	good, bad := esxiHost("esx1"), esxiHost("esx2")
	bad.Facts.Changed = map[string]string{"allowLegacyCPU": "TRUE", "netNetqueueEnabled": "FALSE"}
	bad.Facts.Boot, bad.Maintenance, bad.Datastores = nil, new(true), []string{"ds-1", "ds-2"}
	bad.Facts.NotChecked = append(bad.Facts.NotChecked, measure.NotChecked{Fact: "boot_device", Why: "the account may not read it"})
	return inventoryOf(measure.Inventory{
		Source: "vsphere://ro@vc.example", Kind: measure.KindVSphere, Product: "VMware vCenter Server 8.0.3 build-24022515", ReadAt: began(), ClockNs: new(int64(12_000_000)),
		Guests: []measure.Guest{fullGuest(), oldGuest(), offGuest(), {ID: "vm-4", Name: "template-deb13", Template: true, Power: "off", CPUs: new(2), Memory: new(int64(4 << 30))}, unreadGuest()},
		Hosts:  []measure.GuestHost{good, bad},
		Switches: []measure.VirtualSwitch{
			{ID: "s1", Name: "vSwitch0", Kind: "standard", Host: "esx1", MTU: new(9000), Uplinks: []measure.Uplink{{NIC: "vmnic0"}, {NIC: "vmnic1"}}, Teaming: &measure.Teaming{Policy: "originating port", Active: []string{"vmnic0"}, Standby: []string{"vmnic1"}}},
			{ID: "s2", Name: "vSwitch0", Kind: "standard", Host: "esx2", MTU: new(1500), Uplinks: []measure.Uplink{{NIC: "vmnic0"}}, Security: &measure.PortSecurity{Promiscuous: new(true)}},
			{ID: "dvs-1", Name: "dvs-prod", Kind: "distributed", Hosts: []string{"esx1", "esx2"}, Version: new("8.0.0"), MTU: new(9000), NIOC: new(true), Uplinks: []measure.Uplink{{Host: "esx1", NIC: "vmnic2", Name: "Uplink 1"}, {Host: "esx2", NIC: "vmnic2", Name: "Uplink 1"}}},
		},
		PortGroups: []measure.SwitchPortGroup{
			{ID: "pg-1", Name: "VM Network", Switch: "s1", Host: "esx1", VLAN: new("0")},
			{ID: "pg-2", Name: "VM Network", Switch: "s2", Host: "esx2", VLAN: new("20")},
			{ID: "dvpg-1", Name: "prod-100", Switch: "dvs-1", VLAN: new("100"), ShapeOut: &measure.Shaping{Enabled: new(true), AverageBps: new(int64(1e9)), PeakBps: new(int64(2e9)), Burst: new(int64(1 << 20))}},
			{ID: "dvpg-2", Name: "dvs-prod-uplinks", Switch: "dvs-1", Uplinks: true, VLAN: new("trunk 0-4094")},
		},
		Datastores: []measure.Datastore{
			{ID: "ds-1", Name: "san-a", Site: "fra", Type: new("VMFS-6"), Size: new(int64(2 << 40)), Free: new(int64(1 << 40)), Local: new(false), SSD: new(true), Devices: []string{"naa.6000"}},
			{ID: "ds-2", Name: "old", Type: new("VMFS-5"), Size: new(int64(500 << 30))},
		},
		NotChecked: []measure.NotChecked{{Fact: "switches.network_io_control_pools", Why: "the account may not read it"}},
	})
}

func esxiHost(name string) measure.GuestHost {
	f := &measure.Facts{Hostname: &name, OS: new("esxi"), Distro: new("VMware ESXi (ESXi-8.0U3-standard)"), Kernel: new("8.0.3 build-24022510"), CPUModel: new("Intel(R) Xeon(R) Gold 6338 CPU @ 2.00GHz"),
		Cores: new(64), Memory: new(int64(512 << 30)), Hypervisor: new("none"), Changed: map[string]string{}, Boot: new("mpx.vmhba32:C0:T0:L0"),
		Machine:    &measure.Machine{Vendor: "Dell Inc.", Product: "PowerEdge R650", BIOSVendor: "Dell Inc.", BIOSVersion: "1.6.5", BIOSDate: "04/15/2022"},
		CPU:        &measure.Processors{Sockets: new(2), Cores: new(32), Threads: new(64), SMT: new(true), BaseHz: new(int64(2e9)), Governors: []string{"High performance"}},
		Interfaces: []measure.Interface{{Name: "vmnic0", MTU: new(9000), Kind: new("physical"), Driver: new("i40en"), Version: new("2.8.5.0")}},
		NotChecked: []measure.NotChecked{{Fact: "disks", Why: "the disks of a host are not in its inventory"}}}
	return measure.GuestHost{ID: name, Name: name + ".example", UUID: "4c4c4544-0000-1000-8000-000000000001", Site: "fra", Cluster: "prod", State: new("connected"), Guests: new(2), CPUsHanded: new(12), MemHanded: new(int64(48 << 30)),
		Facts: f, Datastores: []string{"ds-1"},
		Ports: []measure.VMkernelPort{{Device: "vmk0", PortGroup: "pg-1", Network: new("VM Network"), MTU: new(1500), MAC: new("00:50:56:60:00:01"), Addrs: []string{"192.0.2.11/24"}, TSO: new(true), Services: []string{"management", "vmotion"}}}}
}

func fullGuest() measure.Guest {
	return measure.Guest{ID: "vm-1", Name: "web1", Host: "esx1", Site: "fra", Cluster: "prod", Folder: "/fra/vm/web", Pool: "gold", UUID: "42000000-0000-0000-0000-000000000001", InstanceUUID: "50000000-0000-0000-0000-000000000001",
		Power: "on", OS: new("Debian GNU/Linux 12 (64-bit)"), OSRuns: new("Debian GNU/Linux 13 (trixie)"), Hostname: new("web1"), Addrs: []string{"192.0.2.101", "2001:db8::101", "fe80::1"},
		Tools: &measure.GuestTools{Version: new("12.5.0"), Status: new("unmanaged"), Running: new(true)}, Hardware: new("vmx-21"), Firmware: new("efi"), CPUs: new(8), PerSocket: new(4), Memory: new(int64(32 << 30)),
		CPUShare:    &measure.Allocation{Reserved: new(int64(4e9)), Limited: new(true), Limit: new(int64(8e9)), Shares: new(int64(8000)), Level: new("normal")},
		MemoryShare: &measure.Allocation{Reserved: new(int64(0)), Limited: new(false), Shares: new(int64(327680)), Level: new("normal")},
		Latency:     new("normal"), HotAddCPU: new(true),
		Disks: []measure.GuestDisk{{Name: "Hard disk 1", Adapter: new("pvscsi"), Type: new("flat"), Format: new("thin"), Mode: new("persistent"), Size: new(int64(40 << 30)), Created: new("of its own"), Path: new("[san-a] web1/web1.vmdk"), Datastore: "ds-1"}},
		NICs: []measure.GuestNIC{{Name: "Network adapter 1", Key: "4000", Model: new("vmxnet3"), MAC: new("00:50:56:00:00:01"), Connected: new(true), PortGroup: "dvpg-1", Network: new("prod-100"), Port: new("17"), Addrs: []string{"192.0.2.101"}},
			{Name: "Network adapter 2", Key: "4001", Model: new("vmxnet3"), MAC: new("00:50:56:00:00:02"), Connected: new(false), PortGroup: "pg-1", Network: new("VM Network")}},
		Advanced: map[string]string{"ethernet0.ctxPerDev": "3", "ethernet0.pnicFeatures": "4"}}
}

// oldGuest has every setting that slows a guest down.
func oldGuest() measure.Guest {
	return measure.Guest{ID: "vm-2", Name: "legacy-db", Host: "esx2", Site: "fra", Cluster: "prod", Power: "on", OS: new("Microsoft Windows Server 2012 (64-bit)"), CPUs: new(2), PerSocket: new(1), Memory: new(int64(8 << 30)),
		Tools: &measure.GuestTools{Status: new("not installed"), Running: new(false)}, Hardware: new("vmx-07"), Firmware: new("bios"), Affinity: []int{0, 1},
		CPUShare:    &measure.Allocation{Reserved: new(int64(0)), Limited: new(false), Shares: new(int64(500)), Level: new("low")},
		MemoryShare: &measure.Allocation{Reserved: new(int64(0)), Limited: new(true), Limit: new(int64(4 << 30)), Shares: new(int64(81920)), Level: new("normal")},
		Disks:       []measure.GuestDisk{{Name: "Hard disk 1", Adapter: new("lsilogic"), Type: new("flat"), Mode: new("independent nonpersistent"), Size: new(int64(60 << 30)), Datastore: "ds-2"}},
		NICs:        []measure.GuestNIC{{Name: "Network adapter 1", Key: "4000", Model: new("e1000"), MAC: new("00:50:56:00:00:03"), Connected: new(true), PortGroup: "pg-2", Network: new("VM Network")}},
		NotChecked:  []measure.NotChecked{{Fact: "os_running", Why: "its tools are not installed"}, {Fact: "addresses", Why: "its tools are not installed"}, {Fact: "disks.format", Why: "the account may not read it"}}}
}

func offGuest() measure.Guest {
	return measure.Guest{ID: "vm-3", Name: "spare", Host: "esx2", Power: "off", OS: new("Debian GNU/Linux 12 (64-bit)"), CPUs: new(4), Memory: new(int64(16 << 30)),
		NICs: []measure.GuestNIC{{Name: "Network adapter 1", Model: new("vmxnet3"), Connected: new(false), PortGroup: "dvpg-1", Network: new("prod-100")}, {Name: "Network adapter 2", Model: new("e1000e"), Connected: new(false), PortGroup: "pg-2", Network: new("VM Network")}}}
}

// unreadGuest is a guest whose configuration could not be read.
func unreadGuest() measure.Guest {
	return measure.Guest{ID: "vm-5", Name: "a guest <b>with</b> | a name\x1b[31m", Host: "esx1", Power: "on",
		NotChecked: []measure.NotChecked{{Fact: "cpus", Why: "it is inaccessible"}, {Fact: "memory_bytes", Why: "it is inaccessible"}, {Fact: "nics", Why: "it is inaccessible"}, {Fact: "disks", Why: "it is inaccessible"}}}
}

// manyGuests is a data center with n guests on 100 hosts, with full fact sheets.
func manyGuests(n int) *measure.Document {
	d := clusterDocument()
	v := &d.Inventories[0]
	v.Hosts, v.Guests = nil, nil
	for i := range 100 {
		h := esxiHost(fmt.Sprintf("esx%03d", i))
		v.Hosts = append(v.Hosts, h)
	}
	for i := range n {
		g := fullGuest()
		if i%50 == 7 {
			g = oldGuest()
		}
		g.ID, g.Name, g.Host = fmt.Sprintf("vm-%d", i), fmt.Sprintf("guest-%04d.prod.example", i), fmt.Sprintf("esx%03d", i%100)
		g.CPUShare, g.NICs = nil, g.NICs[:1]
		v.Guests = append(v.Guests, g)
	}
	return d
}
