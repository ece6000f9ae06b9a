package vsphere

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"thru/internal/measure"
)

// The simulator lacks much of what is read. These functions set it in its
// objects, as the vSphere Web Services API Reference describes each property.

// dressGuest sets all properties of the first machine of the model.
func dressGuest(m *simulator.Model) *simulator.VirtualMachine {
	vm := m.Map().Any("VirtualMachine").(*simulator.VirtualMachine)
	vm.Name = "web%2f1"
	vm.Config.GuestFullName = "Debian GNU/Linux 12 (64-bit)"
	vm.Config.Uuid = "4216BEEF-0000-1111-2222-333344445555"
	vm.Config.Firmware, vm.Config.Version = "efi", "vmx-21"
	vm.Config.Hardware.NumCPU, vm.Config.Hardware.MemoryMB = 8, 16384
	vm.Config.Hardware.NumCoresPerSocket = types.NewInt32(4)
	vm.Config.CpuAllocation = &types.ResourceAllocationInfo{Reservation: types.NewInt64(2000), Limit: types.NewInt64(6000),
		Shares: &types.SharesInfo{Shares: 16000, Level: types.SharesLevelHigh}}
	vm.Config.MemoryAllocation = &types.ResourceAllocationInfo{Reservation: types.NewInt64(4096), Limit: types.NewInt64(-1),
		Shares: &types.SharesInfo{Shares: 163840, Level: types.SharesLevelNormal}}
	vm.Config.CpuAffinity = &types.VirtualMachineAffinityInfo{AffinitySet: []int32{2, 3}}
	vm.Config.LatencySensitivity = &types.LatencySensitivity{Level: types.LatencySensitivitySensitivityLevelHigh}
	vm.Config.CpuHotAddEnabled = types.NewBool(false)
	vm.Config.ExtraConfig = []types.BaseOptionValue{
		&types.OptionValue{Key: "ethernet0.ctxPerDev", Value: "3"}, &types.OptionValue{Key: "ethernet0.pnicFeatures", Value: "4"},
		&types.OptionValue{Key: "ethernet0.pciSlotNumber", Value: "192"}, &types.OptionValue{Key: "guestinfo.password", Value: "hush"},
		&types.OptionValue{Key: "numa.nodeAffinity", Value: "0, 1"}, &types.OptionValue{Key: "sched.cpu.latencySensitivity", Value: "high"},
		&types.OptionValue{Key: "monitor_control.halt_desched", Value: "FALSE"}, &types.OptionValue{Key: "sched.swap.derivedName", Value: "/vmfs/x.vswp"},
	}
	vm.Guest.ToolsRunningStatus, vm.Guest.ToolsVersion = string(types.VirtualMachineToolsRunningStatusGuestToolsRunning), "12389"
	vm.Guest.ToolsVersionStatus2 = string(types.VirtualMachineToolsVersionStatusGuestToolsUnmanaged)
	vm.Guest.GuestFullName, vm.Guest.HostName, vm.Guest.IpAddress = "Debian GNU/Linux 12 (bookworm)", "web1.example", "192.0.2.7"
	vm.Config.Hardware.Device = guestDevices(vm.Config.Hardware.Device)
	vm.Guest.Net = []types.GuestNicInfo{
		{DeviceConfigId: 4001, MacAddress: "00:50:56:AA:BB:01", IpAddress: []string{"192.0.2.7", "fe80::1%eth0"}},
		{DeviceConfigId: -1, MacAddress: "02:42:00:00:00:01", IpAddress: []string{"172.17.0.1", "none"}},
	}
	return vm
}

// guestDevices are a vmxnet3 and an SR-IOV adapter, and a linked clone at an
// NVMe adapter.
func guestDevices(had []types.BaseVirtualDevice) []types.BaseVirtualDevice {
	had = slices.DeleteFunc(slices.Clone(had), func(d types.BaseVirtualDevice) bool {
		_, disk := d.(*types.VirtualDisk)
		_, nic := d.(types.BaseVirtualEthernetCard)
		return disk || nic
	})
	fast := &types.VirtualVmxnet3{}
	fast.Key, fast.MacAddress = 4001, "00:50:56:AA:BB:01"
	fast.DeviceInfo = &types.Description{Label: "Network adapter 1"}
	fast.Connectable = &types.VirtualDeviceConnectInfo{Connected: true}
	fast.Backing = &types.VirtualEthernetCardDistributedVirtualPortBackingInfo{Port: types.DistributedVirtualSwitchPortConnection{SwitchUuid: "dvs-uuid", PortgroupKey: "dvportgroup-12", PortKey: "17"}}
	fast.ResourceAllocation = &types.VirtualEthernetCardResourceAllocation{Limit: types.NewInt64(500)}
	passed := &types.VirtualSriovEthernetCard{}
	passed.Key = 4002
	passed.Backing = &types.VirtualEthernetCardNetworkBackingInfo{VirtualDeviceDeviceBackingInfo: types.VirtualDeviceDeviceBackingInfo{DeviceName: "no such network"}}
	nvme := &types.VirtualNVMEController{}
	nvme.Key = 31000
	file := func(name string) types.VirtualDeviceFileBackingInfo {
		return types.VirtualDeviceFileBackingInfo{FileName: name, Datastore: &types.ManagedObjectReference{Type: "Datastore", Value: "datastore-gone"}}
	}
	disk := &types.VirtualDisk{CapacityInKB: 1 << 20, CapacityInBytes: 1 << 30,
		StorageIOAllocation: &types.StorageIOAllocationInfo{Limit: types.NewInt64(1000), Shares: &types.SharesInfo{Shares: 2000}}}
	disk.Key, disk.ControllerKey = 2000, 31000
	disk.DeviceInfo = &types.Description{Label: "Hard disk 1"}
	disk.Backing = &types.VirtualDiskFlatVer2BackingInfo{VirtualDeviceFileBackingInfo: file("[ds] web1/web1.vmdk"), DiskMode: "independent_nonpersistent", ThinProvisioned: types.NewBool(true),
		Parent: &types.VirtualDiskFlatVer2BackingInfo{VirtualDeviceFileBackingInfo: file("[ds] image/image.vmdk")}}
	return append(had, nvme, fast, passed, disk)
}

// dressSwitch sets the properties of a distributed switch and its port group,
// with a port with its own settings.
func dressSwitch(m *simulator.Model) {
	dvs := m.Map().Any("DistributedVirtualSwitch").(*simulator.DistributedVirtualSwitch)
	dvs.Uuid = "dvs-uuid"
	base := dvs.Config.(*types.VMwareDVSConfigInfo)
	base.MaxMtu, base.NumPorts, base.MulticastFilteringMode = 9000, 512, "snooping"
	base.ProductInfo.Version = "8.0.3"
	base.NetworkResourceManagementEnabled = true
	base.InfrastructureTrafficResourceConfig = []types.DvsHostInfrastructureTrafficResource{
		{Key: "virtualMachine", AllocationInfo: types.DvsHostInfrastructureTrafficResourceAllocation{Limit: types.NewInt64(-1), Shares: &types.SharesInfo{Shares: 100, Level: "high"}}},
		{Key: "vmotion", AllocationInfo: types.DvsHostInfrastructureTrafficResourceAllocation{Limit: types.NewInt64(1000), Reservation: types.NewInt64(500), Shares: &types.SharesInfo{Shares: 50, Level: "normal"}}},
	}
	base.PvlanConfig = []types.VMwareDVSPvlanMapEntry{{PrimaryVlanId: 100, SecondaryVlanId: 105, PvlanType: "community"}}
	base.Host = nil
	for _, h := range dvs.Summary.HostMember {
		base.Host = append(base.Host, types.DistributedVirtualSwitchHostMember{Config: types.DistributedVirtualSwitchHostMemberConfigInfo{Host: &h,
			Backing: &types.DistributedVirtualSwitchHostMemberPnicBacking{PnicSpec: []types.DistributedVirtualSwitchHostMemberPnicSpec{{PnicDevice: "vmnic1", UplinkPortKey: "2"}}}}})
	}
	for _, e := range m.Map().All("DistributedVirtualPortgroup") {
		pg := e.(*simulator.DistributedVirtualPortgroup)
		if strings.Contains(pg.Name, "Uplinks") {
			base.UplinkPortgroup = []types.ManagedObjectReference{pg.Self}
			continue
		}
		pg.Key, pg.Config.Key = "dvportgroup-12", "dvportgroup-12"
		pg.Config.Policy = &types.VMwareDVSPortgroupPolicy{VlanOverrideAllowed: true}
		pg.Config.DefaultPortConfig = portSetting()
	}
	own := &types.VMwareDVSPortSetting{Vlan: &types.VmwareDistributedVirtualSwitchVlanIdSpec{VlanId: 42}}
	own.InShapingPolicy = &types.DVSTrafficShapingPolicy{Enabled: policy(true), AverageBandwidth: rate(300_000_000), PeakBandwidth: rate(400_000_000), BurstSize: rate(1 << 20)}
	dvs.FetchDVPortsResponse.Returnval = []types.DistributedVirtualPort{{Key: "17", DvsUuid: "dvs-uuid", PortgroupKey: "dvportgroup-12", Config: types.DVPortConfigInfo{Setting: own}}}
}

func policy(v bool) *types.BoolPolicy { return &types.BoolPolicy{Value: &v} }
func rate(v int64) *types.LongPolicy  { return &types.LongPolicy{Value: v} }

// portSetting shapes what guests receive, on a private VLAN.
func portSetting() *types.VMwareDVSPortSetting {
	s := &types.VMwareDVSPortSetting{Vlan: &types.VmwareDistributedVirtualSwitchPvlanSpec{PvlanId: 105},
		SecurityPolicy: &types.DVSSecurityPolicy{AllowPromiscuous: policy(false), ForgedTransmits: policy(true), MacChanges: policy(false)},
		UplinkTeamingPolicy: &types.VmwareUplinkPortTeamingPolicy{Policy: &types.StringPolicy{Value: "loadbalance_loadbased"},
			UplinkPortOrder: &types.VMwareUplinkPortOrderPolicy{ActiveUplinkPort: []string{"Uplink 1"}, StandbyUplinkPort: []string{"Uplink 2"}}}}
	s.InShapingPolicy = &types.DVSTrafficShapingPolicy{Enabled: policy(false)}
	s.OutShapingPolicy = &types.DVSTrafficShapingPolicy{Enabled: policy(true), AverageBandwidth: rate(100_000_000), PeakBandwidth: rate(200_000_000), BurstSize: rate(1 << 16)}
	return s
}

// dressHost sets a host's options, NUMA nodes and distributed switch.
func dressHost(m *simulator.Model, h *mo.HostSystem) {
	h.Config.Option = []types.BaseOptionValue{
		&types.OptionValue{Key: "Net.UseHwTSO", Value: int64(0)}, &types.OptionValue{Key: "Net.TcpipHeapMax", Value: int64(1024)},
		&types.OptionValue{Key: "Net.TcpipDefLROEnabled", Value: int64(1)}, &types.OptionValue{Key: "VMkernel.Boot.netNetqueueEnabled", Value: false},
		&types.OptionValue{Key: "VMkernel.Boot.hyperthreading", Value: true}, &types.OptionValue{Key: "Misc.HostAgentUpdateLevel", Value: "3"},
		&types.OptionValue{Key: "UserVars.ProxyPassword", Value: "hush"}, &types.OptionValue{Key: "Mem.AllocGuestLargePage", Value: int64(0)},
	}
	options := m.Map().Get(*h.ConfigManager.AdvancedOption).(*simulator.OptionManager)
	long := func(v int64) types.BaseOptionType { return &types.LongOption{DefaultValue: v} }
	for key, usual := range map[string]types.BaseOptionType{"Net.UseHwTSO": long(1), "Net.TcpipHeapMax": long(1024), "VMkernel.Boot.netNetqueueEnabled": &types.BoolOption{DefaultValue: true},
		"VMkernel.Boot.hyperthreading": &types.BoolOption{DefaultValue: true}, "UserVars.ProxyPassword": &types.StringOption{}, "Mem.AllocGuestLargePage": long(1)} {
		d := types.OptionDef{OptionType: usual}
		d.Key = key
		options.SupportedOption = append(options.SupportedOption, d)
	}
	h.Config.Network.ProxySwitch = []types.HostProxySwitch{{DvsUuid: "dvs-uuid", DvsName: "DVS0", Key: "DvsPortset-0", NumPorts: 2048, Mtu: 9000,
		Pnic: []string{"key-vim.host.PhysicalNic-vmnic1"}, UplinkPort: []types.KeyValue{{Key: "2", Value: "Uplink 1"}}}}
	vmk := types.HostVirtualNic{Device: "vmk1", Key: "key-vim.host.VirtualNic-vmk1", Spec: types.HostVirtualNicSpec{Mtu: 9000, Mac: "00:50:56:6A:00:01", NetStackInstanceKey: "vmotion",
		TsoEnabled: types.NewBool(true), DistributedVirtualPort: &types.DistributedVirtualSwitchPortConnection{SwitchUuid: "dvs-uuid", PortgroupKey: "dvportgroup-12"},
		Ip: &types.HostIpConfig{IpAddress: "198.51.100.4", SubnetMask: "255.255.255.0", IpV6Config: &types.HostIpConfigIpV6AddressConfiguration{
			IpV6Address: []types.HostIpConfigIpV6Address{{IpAddress: "2001:db8::4", PrefixLength: 64}}}}}}
	h.Config.Network.Vnic = append(slices.Clone(h.Config.Network.Vnic), vmk)
	h.Config.VirtualNicManagerInfo = &types.HostVirtualNicManagerInfo{NetConfig: []types.VirtualNicManagerNetConfig{
		{NicType: "vmotion", CandidateVnic: []types.HostVirtualNic{vmk}, SelectedVnic: []string{"vmotion." + vmk.Key}}}}
	up := types.PhysicalNicLinkInfo{SpeedMb: 25000, Duplex: true}
	h.Config.Network.Pnic = []types.PhysicalNic{
		{Key: "key-vim.host.PhysicalNic-vmnic0", Device: "vmnic0", Driver: "ntg3", Pci: "0000:01:00.0", Mac: "B4:96:91:00:00:01", ValidLinkSpecification: []types.PhysicalNicLinkInfo{{SpeedMb: 1000, Duplex: true}}},
		{Key: "key-vim.host.PhysicalNic-vmnic1", Device: "vmnic1", Driver: "nmlx5_core", DriverVersion: "4.23.6.2", FirmwareVersion: "16.35.3006", Pci: "0000:3b:00.0", Mac: "B4:96:91:00:00:02",
			LinkSpeed: &up, Spec: types.PhysicalNicSpec{LinkSpeed: &up}, ValidLinkSpecification: []types.PhysicalNicLinkInfo{{SpeedMb: 10000, Duplex: true}, up}},
	}
	released := time.Date(2024, 5, 6, 0, 0, 0, 0, time.UTC)
	h.Hardware.SystemInfo = types.HostSystemInfo{Vendor: "Dell Inc.", Model: "PowerEdge R650", Uuid: "4C4C4544-0042-3510-8052-B4C04F4E3533", BootCommandLine: "/jumpstrt.gz vmbTrustedBoot=false allowLegacyCPU=true"}
	h.Hardware.BiosInfo = &types.HostBIOSInfo{Vendor: "Dell Inc.", BiosVersion: "1.13.2", ReleaseDate: &released, FirmwareType: "UEFI"}
	h.Hardware.PciDevice = []types.HostPciDevice{{Id: "0000:3b:00.0", ClassId: 0x200, VendorId: 0x15b3, DeviceId: 0x1017, VendorName: "Mellanox Technologies", DeviceName: "MT27800 Family [ConnectX-5]"},
		{Id: "0000:00:00.0", ClassId: 0x600, DeviceName: "host bridge"}, {Id: "0000:af:00.0", ClassId: -0x7e00 + 0x1000}}
	h.Hardware.NumaInfo = &types.HostNumaInfo{NumNodes: 2, NumaNode: []types.HostNumaNode{{TypeId: 0, CpuID: []int16{1, 0}, MemorySize: 1 << 36},
		{TypeId: 1, CpuID: []int16{2, 3}, MemorySize: 1 << 36, PciId: []string{"0000:3b:00.0"}}}}
	h.Hardware.CpuPowerManagementInfo = &types.HostCpuPowerManagementInfo{CurrentPolicy: "High performance"}
}

// dressed is a vCenter of one machine and one host with all properties.
func dressed(t *testing.T) Config {
	t.Helper()
	m := simulator.VPX()
	m.Host, m.Cluster, m.ClusterHost, m.Machine, m.Pool = 0, 1, 1, 1, 1
	return simulated(t, m, func(m *simulator.Model) {
		dressGuest(m)
		dressSwitch(m)
		dressHost(m, &m.Map().Any("HostSystem").(*simulator.HostSystem).HostSystem)
	})
}

func TestGuest(t *testing.T) {
	v, err := dial(t, dressed(t)).Inventory(t.Context(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	g := v.Guest(v.Guests[0].ID)
	host := v.Hosts[0].ID
	want := measure.Guest{ID: g.ID, Name: "web/1", Host: host, Site: "DC0", Cluster: "DC0_C0", Pool: g.Pool, InstanceUUID: g.InstanceUUID,
		UUID: "4216beef-0000-1111-2222-333344445555", Power: "on", OS: new("Debian GNU/Linux 12 (64-bit)"), OSRuns: new("Debian GNU/Linux 12 (bookworm)"),
		Hostname: new("web1.example"), Addrs: []string{"192.0.2.7", "fe80::1", "172.17.0.1"},
		Tools:    &measure.GuestTools{Version: new("12.3.5 (12389)"), Status: new("unmanaged"), Running: new(true)},
		Hardware: new("vmx-21"), Firmware: new("efi"), CPUs: new(8), PerSocket: new(4), Memory: new(int64(16 << 30)),
		CPUShare:    &measure.Allocation{Reserved: new(int64(2e9)), Limited: new(true), Limit: new(int64(6e9)), Shares: new(int64(16000)), Level: new("high")},
		MemoryShare: &measure.Allocation{Reserved: new(int64(4 << 30)), Limited: new(false), Shares: new(int64(163840)), Level: new("normal")},
		Affinity:    []int{2, 3}, Latency: new("high"), HotAddCPU: new(false), NUMANodes: []int{0, 1},
		Advanced: map[string]string{"ethernet0.ctxPerDev": "3", "ethernet0.pnicFeatures": "4", "numa.nodeAffinity": "0, 1", "sched.cpu.latencySensitivity": "high", "monitor_control.halt_desched": "FALSE"},
		Disks: []measure.GuestDisk{{Name: "Hard disk 1", Adapter: new("nvme"), Type: new("flat"), Format: new("thin"), Mode: new("independent nonpersistent"), Size: new(int64(1 << 30)),
			Created: new("clone of [ds] image/image.vmdk"), Path: new("[ds] web1/web1.vmdk"), LimitIOPS: new(int64(1000)), Shares: new(int64(2000))}},
		NICs: []measure.GuestNIC{
			{Name: "Network adapter 1", Key: "4001", Model: new("vmxnet3"), MAC: new("00:50:56:aa:bb:01"), Connected: new(true), AtStart: new(false), PortGroup: "dvportgroup-12",
				Network: new("DC0_DVPG0"), VLAN: new("42"), Port: new("17"), Addrs: []string{"192.0.2.7", "fe80::1"},
				Limit:   &measure.Shaping{Enabled: new(true), AverageBps: new(int64(3e8)), PeakBps: new(int64(4e8)), Burst: new(int64(1 << 20))},
				IOLimit: &measure.Shaping{Enabled: new(true), AverageBps: new(int64(5e8))}},
			{Name: "device 4002", Key: "4002", Model: new("sriov"), Network: new("no such network")},
		},
		NotChecked: []measure.NotChecked{
			{Fact: "nics.device 4002.mac", Why: "the server does not report it"},
			{Fact: "nics.device 4002.port_group", Why: "the account may not see " + host + "/no such network"},
			{Fact: "disks.Hard disk 1.datastore", Why: "the account may not see datastore-gone"},
		}}
	if diff := cmp.Diff(want, *g); diff != "" {
		t.Error(diff)
	}
}

func TestNetworks(t *testing.T) {
	v, err := dial(t, dressed(t)).Inventory(t.Context(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	host := v.Hosts[0].ID
	want := measure.VirtualSwitch{ID: v.Switches[0].ID, Name: "DVS0", Kind: "distributed", Hosts: []string{host}, Version: new("8.0.3"), MTU: new(9000), Ports: new(512),
		Uplinks: []measure.Uplink{{Host: host, NIC: "vmnic1", Name: "Uplink 1"}}, NIOC: new(true), Snooping: new(true),
		NIOCPools: map[string]string{"virtualMachine": "shares 100 (high), no limit", "vmotion": "shares 50 (normal), reservation 500 Mb/s, limit 1000 Mb/s"}}
	got := v.Switches[0]
	got.Teaming, got.NotChecked = nil, nil // the simulator's own
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	group := measure.SwitchPortGroup{ID: "dvportgroup-12", Name: "DC0_DVPG0", Switch: got.ID, VLAN: new("private 105 of 100"),
		Teaming:  &measure.Teaming{Policy: "load based", Active: []string{"Uplink 1"}, Standby: []string{"Uplink 2"}},
		ShapeIn:  &measure.Shaping{Enabled: new(true), AverageBps: new(int64(1e8)), PeakBps: new(int64(2e8)), Burst: new(int64(1 << 16))},
		ShapeOut: &measure.Shaping{Enabled: new(false)}, Security: &measure.PortSecurity{Promiscuous: new(false), Forged: new(true), MACChanges: new(false)}}
	if diff := cmp.Diff(&group, v.PortGroup("dvportgroup-12")); diff != "" {
		t.Error(diff)
	}
	uplinks := slices.IndexFunc(v.PortGroups, func(p measure.SwitchPortGroup) bool { return p.Uplinks })
	if uplinks < 0 || *v.PortGroups[uplinks].VLAN != "trunk 0-4094" {
		t.Errorf("port group of uplinks: %d of %+v", uplinks, v.PortGroups)
	}
	ports := []measure.VMkernelPort{v.Hosts[0].Ports[0], {Device: "vmk1", PortGroup: "dvportgroup-12", Network: new("DC0_DVPG0"), MTU: new(9000), MAC: new("00:50:56:6a:00:01"),
		Addrs: []string{"198.51.100.4/24", "2001:db8::4/64"}, Stack: new("vmotion"), TSO: new(true), Services: []string{"vmotion"}}}
	if diff := cmp.Diff(ports, v.Hosts[0].Ports); diff != "" {
		t.Error(diff)
	}
}

func TestHost(t *testing.T) {
	v, err := dial(t, dressed(t)).Inventory(t.Context(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	h := v.Hosts[0]
	f := h.Facts
	if h.UUID != "4c4c4544-0042-3510-8052-b4c04f4e3533" || h.Cluster != "DC0_C0" || *h.Guests != 1 || *h.CPUsHanded != 8 || *h.MemHanded != 16<<30 {
		t.Errorf("%+v", h)
	}
	for name, got := range map[string][2]any{
		"distribution": {*f.Distro, "VMware ESXi 8.0.2 Update 3"}, "kernel": {*f.Kernel, "8.0.2 Releasebuild-21997540"}, "hypervisor": {f.Hypervisor, (*string)(nil)},
		"machine":   {*f.Machine, measure.Machine{Vendor: "Dell Inc.", Product: "PowerEdge R650", UUID: h.UUID, BIOSVendor: "Dell Inc.", BIOSVersion: "1.13.2", BIOSDate: "2024-05-06", UEFI: new(true)}},
		"governors": {f.CPU.Governors, []string{"High performance"}},
		"sysctls":   {f.Sysctls, map[string]string{"/Net/UseHwTSO": "0", "/Net/TcpipHeapMax": "1024", "/Net/TcpipDefLROEnabled": "1", "netNetqueueEnabled": "FALSE"}},
		"changed": {f.Changed, map[string]string{"/Net/UseHwTSO": "0 (default 1)", "netNetqueueEnabled": "FALSE (default TRUE)",
			"/Mem/AllocGuestLargePage": "0 (default 1)", "allowLegacyCPU": "TRUE (default FALSE)"}},
		"numa": {f.NUMA, []measure.NUMANode{{Node: 0, CPUs: []int{0, 1}, Total: new(int64(1 << 36))}, {Node: 1, CPUs: []int{2, 3}, Total: new(int64(1 << 36))}}},
		"pci":  {h.PCI, []measure.PCIDevice{{Slot: "0000:3b:00.0", Vendor: "Mellanox Technologies", Name: "MT27800 Family [ConnectX-5]", Class: "network"}}},
		"link": {*f.Interface("vmnic1"), measure.Interface{Name: "vmnic1", Kind: new("physical"), MAC: new("b4:96:91:00:00:02"), Up: new(true), Carrier: new(true), Driver: new("nmlx5_core"),
			Version: new("4.23.6.2"), Firmware: new("16.35.3006"), Bus: new("0000:3b:00.0"), PCI: &measure.PCI{Vendor: "0x15b3", Device: "0x1017"}, SpeedBps: new(int64(25e9)), MaxBps: new(int64(25e9)),
			Autoneg: new(false), Duplex: new("full"), Nominal: new(false), NUMANode: new(1), Master: new("DVS0")}},
		"no link": {*f.Interface("vmnic0"), measure.Interface{Name: "vmnic0", Kind: new("physical"), MAC: new("b4:96:91:00:00:01"), Carrier: new(false), Driver: new("ntg3"), Bus: new("0000:01:00.0"),
			MaxBps: new(int64(1e9)), Autoneg: new(true), Nominal: new(false), Master: new("vSwitch0")}},
		"switch": {*f.Interface("DVS0"), measure.Interface{Name: "DVS0", Kind: new("dvswitch"), MTU: new(9000), Nominal: new(true), Lower: []string{"vmnic1"}, Bridge: &measure.Bridge{Ports: []string{"vmnic1"}}}},
		"vmk": {*f.Interface("vmk1"), measure.Interface{Name: "vmk1", Kind: new("vmkernel"), MTU: new(9000), MAC: new("00:50:56:6a:00:01"), Nominal: new(true), Master: new("DVS0"),
			Addrs: []string{"198.51.100.4/24", "2001:db8::4/64"}, Offloads: map[string]bool{"tcp-segmentation-offload": true}}},
	} {
		if diff := cmp.Diff(got[1], got[0]); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	for _, fact := range []string{"hypervisor", "interfaces.vmnic0.up", "interfaces.vmnic0.firmware", "interfaces.vmnic1.rx_queues", "clock.synchronised", "distribution.image_profile"} {
		if reasonOf(f.NotChecked, fact) == "" {
			t.Errorf("no reason for %s in %+v", fact, f.NotChecked)
		}
	}
}

func TestStores(t *testing.T) {
	for _, tc := range []struct {
		info types.BaseDatastoreInfo
		want measure.Datastore
	}{
		{&types.VmfsDatastoreInfo{Vmfs: &types.HostVmfsVolume{HostFileSystemVolume: types.HostFileSystemVolume{Type: "VMFS"}, MajorVersion: 6, Local: types.NewBool(true), Ssd: types.NewBool(true),
			Extent: []types.HostScsiDiskPartition{{DiskName: "naa.600508b1", Partition: 3}}}},
			measure.Datastore{Type: new("VMFS-6"), Local: new(true), SSD: new(true), Devices: []string{"naa.600508b1:3"}}},
		{&types.NasDatastoreInfo{Nas: &types.HostNasVolume{HostFileSystemVolume: types.HostFileSystemVolume{Type: "NFS41"}, RemoteHost: "nas.example", RemotePath: "/vol1"}},
			measure.Datastore{Type: new("NFS-4.1"), Local: new(false), Devices: []string{"nas.example:/vol1"}}},
		{&types.VsanDatastoreInfo{}, measure.Datastore{Type: new("vsan"), Local: new(false)}},
	} {
		o := &types.ObjectContent{Obj: types.ManagedObjectReference{Type: "Datastore", Value: "datastore-1"}, PropSet: []types.DynamicProperty{
			{Name: "name", Val: "ds1"}, {Name: "info", Val: tc.info},
			{Name: "summary", Val: types.DatastoreSummary{Type: "vsan", Capacity: 100, FreeSpace: 40, Accessible: true, MultipleHostAccess: types.NewBool(true)}}}}
		tc.want.ID, tc.want.Name, tc.want.Size, tc.want.Free = "datastore-1", "ds1", new(int64(100)), new(int64(40))
		if diff := cmp.Diff(tc.want, convertStore(o, tree{})); diff != "" {
			t.Error(diff)
		}
	}
}
