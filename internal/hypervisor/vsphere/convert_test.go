package vsphere

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vmware/govmomi/vim25/types"

	"thru/internal/measure"
)

// ref makes a reference.
func ref(kind, id string) types.ManagedObjectReference {
	return types.ManagedObjectReference{Type: kind, Value: id}
}

func TestTree(t *testing.T) {
	root, dc, vm, prod, web := ref("Folder", "group-d1"), ref("Datacenter", "dc-1"), ref("Folder", "group-v3"), ref("Folder", "group-v9"), ref("Folder", "group-v10")
	hosts, cluster, host, alone, other := ref("Folder", "group-h4"), ref("ClusterComputeResource", "domain-c8"), ref("HostSystem", "host-9"), ref("ComputeResource", "domain-s5"), ref("HostSystem", "host-10")
	pool, gold, ring := ref("ResourcePool", "resgroup-8"), ref("ResourcePool", "resgroup-20"), ref("Folder", "group-ring")
	all := tree{root: {"Datacenters", types.ManagedObjectReference{}}, dc: {"fra", root}, vm: {"vm", dc}, prod: {"prod", vm}, web: {"web", prod},
		hosts: {"host", dc}, cluster: {"c1", hosts}, host: {"esx1", cluster}, alone: {"esx2", hosts}, other: {"esx2", alone},
		pool: {"Resources", cluster}, gold: {"gold", pool}, ring: {"ring", ring}}
	for name, got := range map[string][2]string{
		"site of a folder": {all.site(web), "fra"}, "site of a host": {all.site(other), "fra"}, "cluster": {all.cluster(host), "c1"}, "no cluster": {all.cluster(other), ""},
		"path": {all.path(web), "prod/web"}, "no path": {all.path(vm), ""}, "of nothing": {all.path(ref("Folder", "group-x")), ""},
		"pool": {all.pool(gold), "gold"}, "no pool": {all.pool(pool), ""}, "ring": {all.site(ring), ""},
	} {
		if got[0] != got[1] {
			t.Errorf("%s: %q, want %q", name, got[0], got[1])
		}
	}
	if got := all.hosts(); len(got) != 2 || got[0] != host {
		t.Errorf("hosts %v", got)
	}
}

func TestDisks(t *testing.T) {
	file := func(name string) types.VirtualDeviceFileBackingInfo {
		return types.VirtualDeviceFileBackingInfo{FileName: name}
	}
	for name, tc := range map[string]struct {
		from types.BaseVirtualDeviceBackingInfo
		want measure.GuestDisk
	}{
		"thick": {&types.VirtualDiskFlatVer2BackingInfo{VirtualDeviceFileBackingInfo: file("[ds] a/a.vmdk"), DiskMode: "persistent", ThinProvisioned: types.NewBool(false)},
			measure.GuestDisk{Type: new("flat"), Format: new("thick"), Mode: new("persistent"), Created: new("of its own"), Path: new("[ds] a/a.vmdk")}},
		"eager": {&types.VirtualDiskFlatVer2BackingInfo{VirtualDeviceFileBackingInfo: file("[ds] a/a.vmdk"), EagerlyScrub: types.NewBool(true)},
			measure.GuestDisk{Type: new("flat"), Format: new("thick eager zeroed"), Created: new("of its own"), Path: new("[ds] a/a.vmdk")}},
		"untold": {&types.VirtualDiskFlatVer2BackingInfo{VirtualDeviceFileBackingInfo: file("[ds] a/a.vmdk")},
			measure.GuestDisk{Type: new("flat"), Created: new("of its own"), Path: new("[ds] a/a.vmdk")}},
		"snapshot": {&types.VirtualDiskSeSparseBackingInfo{VirtualDeviceFileBackingInfo: file("[ds] a/a-000001.vmdk"), Parent: &types.VirtualDiskSeSparseBackingInfo{VirtualDeviceFileBackingInfo: file("[ds] a/a.vmdk")}},
			measure.GuestDisk{Type: new("sparse"), Format: new("space-efficient sparse"), Created: new("snapshot of [ds] a/a.vmdk"), Path: new("[ds] a/a-000001.vmdk")}},
		"clone of a snapshot": {&types.VirtualDiskSparseVer2BackingInfo{VirtualDeviceFileBackingInfo: file("[ds] b/b.vmdk"), Parent: &types.VirtualDiskSparseVer2BackingInfo{VirtualDeviceFileBackingInfo: file("[ds] a/a-000001.vmdk"),
			Parent: &types.VirtualDiskSparseVer2BackingInfo{VirtualDeviceFileBackingInfo: file("[ds] a/a.vmdk")}}},
			measure.GuestDisk{Type: new("sparse"), Format: new("thin"), Created: new("clone of [ds] a/a.vmdk"), Path: new("[ds] b/b.vmdk")}},
		"raw": {&types.VirtualDiskRawDiskMappingVer1BackingInfo{VirtualDeviceFileBackingInfo: file("[ds] a/r.vmdk"), CompatibilityMode: "physicalMode", DiskMode: "independent_persistent"},
			measure.GuestDisk{Type: new("raw device"), Format: new("physical"), Mode: new("independent persistent"), Created: new("of its own"), Path: new("[ds] a/r.vmdk")}},
		"other": {&types.VirtualDiskLocalPMemBackingInfo{VirtualDeviceFileBackingInfo: file("[pmem] a/p.vmdk")},
			measure.GuestDisk{Type: new("file"), Created: new("of its own"), Path: new("[pmem] a/p.vmdk")}},
		"none": {nil, measure.GuestDisk{}},
	} {
		var got measure.GuestDisk
		takeFile(&got, tc.from)
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestAdapters(t *testing.T) {
	for _, tc := range []struct {
		card types.BaseVirtualEthernetCard
		want string
	}{{&types.VirtualVmxnet3{}, "vmxnet3"}, {&types.VirtualE1000{}, "e1000"}, {&types.VirtualE1000e{}, "e1000e"}, {&types.VirtualPCNet32{}, "pcnet32"}, {&types.VirtualVmxnet2{}, "vmxnet2"},
		{&types.VirtualVmxnet{}, "vmxnet"}, {&types.VirtualVmxnet3Vrdma{}, "vrdma"}, {&types.VirtualSriovEthernetCard{}, "sriov"}, {&types.VirtualEthernetCard{}, "ethernetcard"}} {
		if got := *nicModel(tc.card); got != tc.want {
			t.Errorf("%T: %s, want %s", tc.card, got, tc.want)
		}
	}
	for _, tc := range []struct {
		card types.BaseVirtualDevice
		want string
	}{{&types.ParaVirtualSCSIController{}, "pvscsi"}, {&types.VirtualLsiLogicController{}, "lsilogic"}, {&types.VirtualLsiLogicSASController{}, "lsilogic-sas"},
		{&types.VirtualBusLogicController{}, "buslogic"}, {&types.VirtualNVMEController{}, "nvme"}, {&types.VirtualAHCIController{}, "sata"}, {&types.VirtualIDEController{}, "ide"}, {&types.VirtualPS2Controller{}, ""}} {
		if got := adapterName(tc.card); got != tc.want {
			t.Errorf("%T: %s, want %s", tc.card, got, tc.want)
		}
	}
}

func TestWords(t *testing.T) {
	pvlan := map[int32]int32{100: 100, 105: 100}
	vlan := func(v types.BaseVmwareDistributedVirtualSwitchVlanSpec) string {
		if w := vlanWord(v, pvlan); w != nil {
			return *w
		}
		return "nothing"
	}
	text := func(s *string) string {
		if s == nil {
			return "nothing"
		}
		return *s
	}
	for name, got := range map[string][2]string{
		"vlan":    {vlan(&types.VmwareDistributedVirtualSwitchVlanIdSpec{VlanId: 0}), "0"},
		"trunk":   {vlan(&types.VmwareDistributedVirtualSwitchTrunkVlanSpec{VlanId: []types.NumericRange{{Start: 1, End: 10}, {Start: 42, End: 42}}}), "trunk 1-10,42"},
		"nothing": {vlan(&types.VmwareDistributedVirtualSwitchTrunkVlanSpec{}), "trunk"},
		"primary": {vlan(&types.VmwareDistributedVirtualSwitchPvlanSpec{PvlanId: 100}), "private 100"}, "private": {vlan(&types.VmwareDistributedVirtualSwitchPvlanSpec{PvlanId: 105}), "private 105 of 100"},
		"none": {vlan(nil), "nothing"}, "all": {standardVLAN(4095), "trunk 0-4094"}, "one": {standardVLAN(7), "7"},
		"tools 10": {text(toolsVersion("10346")), "10.3.10 (10346)"}, "tools old": {text(toolsVersion("7302")), "7302"}, "open-vm-tools": {text(toolsVersion("2147483647")), "2147483647"}, "no tools": {text(toolsVersion("0")), "nothing"},
		"old": {text(toolsStatus("guestToolsSupportedOld")), "old"}, "new to us": {text(toolsStatus("guestToolsOdd")), "guestToolsOdd"},
		"hash": {teamingWord("loadbalance_ip"), "ip hash"}, "odd": {teamingWord("loadbalance_odd"), "loadbalance_odd"},
		"nested": {volumeKind(&types.HostVmfsVolume{HostFileSystemVolume: types.HostFileSystemVolume{Type: "VMFS"}, MajorVersion: 5}), "VMFS-5"},
		"own":    {volumeKind(&types.HostVmfsVolume{HostFileSystemVolume: types.HostFileSystemVolume{Type: "OTHER"}, MajorVersion: 1}), ""},
		"nfs":    {volumeKind(&types.HostNasVolume{HostFileSystemVolume: types.HostFileSystemVolume{Type: "NFS"}}), "NFS"},
		"escape": {unescape(new("a%2fb%")), "a%2fb%"},
	} {
		if got[0] != got[1] {
			t.Errorf("%s: %q, want %q", name, got[0], got[1])
		}
	}
	for key, want := range map[string]bool{"ethernet3.ctxPerDev": true, "Ethernet0.pciSlotNumber": false, "ethernetX": false, "sched.mem.max": true, "sched.swap.derivedName": false,
		"numa.vcpu.preferHT": true, "monitor.phys_bits_used": true, "guestinfo.x": false, "svga.present": false, "mainMem.useNamedFile": true} {
		if got := trafficKey(key); got != want {
			t.Errorf("%s bears on traffic: %t", key, got)
		}
	}
}

// TestForms verifies the conversion of special value types, and that the
// refusal of a whole refuses its parts.
func TestForms(t *testing.T) {
	r := &reader{object: &types.ObjectContent{PropSet: []types.DynamicProperty{{Name: "name", Val: int32(7)}, {Name: "empty", Val: " "}},
		MissingSet: []types.MissingProperty{{Path: "config", Fault: types.LocalizedMethodFault{Fault: &types.NoPermission{}}},
			{Path: "guest", Fault: types.LocalizedMethodFault{Fault: &types.SystemError{}, LocalizedMessage: "a general error"}},
			{Path: "odd", Fault: types.LocalizedMethodFault{Fault: &types.InvalidProperty{}}}}}}
	if v, ok := value[bool](r, "a", "name", ""); ok || v {
		t.Error("a number is taken for a truth")
	}
	r.text("b", "config.uuid", "")
	r.text("c", "guest.hostName", "it is off")
	r.text("d", "odd", "")
	r.text("e", "empty", "it is off")
	r.text("f", "configs", "")
	r.text("", "absent", "")
	want := []measure.NotChecked{{Fact: "a", Why: "the server reports name in an undocumented form (int32)"}, {Fact: "b", Why: "no permission"},
		{Fact: "c", Why: "the server refuses it: a general error"}, {Fact: "d", Why: "the server refuses it: InvalidProperty"}, {Fact: "e", Why: "it is off"}, {Fact: "f", Why: noReason}}
	if diff := cmp.Diff(want, r.gaps); diff != "" {
		t.Error(diff)
	}
}

// TestLegacyCPU verifies that an admitted unsupported processor is detected
// where the host reports its boot options, and not checked where it does not.
func TestLegacyCPU(t *testing.T) {
	for name, tc := range map[string]struct {
		line, set string
		want, gap bool
	}{
		"in boot.cfg":     {line: "vmbTrustedBoot=false allowLegacyCPU=TRUE", want: true},
		"by an option":    {set: "true", want: true},
		"not in line":     {line: "vmbTrustedBoot=false"},
		"not by option":   {set: "false"},
		"nothing is told": {gap: true},
	} {
		o := &types.ObjectContent{PropSet: []types.DynamicProperty{{Name: "hardware.systemInfo", Val: types.HostSystemInfo{Vendor: "Dell Inc.", BootCommandLine: tc.line}}}}
		if tc.set != "" {
			o.PropSet = append(o.PropSet, types.DynamicProperty{Name: "config.option", Val: types.ArrayOfOptionValue{OptionValue: []types.BaseOptionValue{&types.OptionValue{Key: "VMkernel.Boot.allowLegacyCPU", Value: tc.set}}}})
		}
		r, f := &reader{object: o}, &measure.Facts{}
		takeLegacyCPU(f, r)
		if got := f.Changed["allowLegacyCPU"] != ""; got != tc.want || (len(r.gaps) > 0) != tc.gap {
			t.Errorf("%s: %v, %+v", name, f.Changed, r.gaps)
		}
	}
}

// TestControlled verifies that an adapter's limit applies only where its
// switch has Network I/O Control.
func TestControlled(t *testing.T) {
	for name, tc := range map[string]struct {
		s    *measure.VirtualSwitch
		want bool
	}{
		"on":       {&measure.VirtualSwitch{Kind: "distributed", NIOC: new(true)}, true},
		"off":      {&measure.VirtualSwitch{Kind: "distributed", NIOC: new(false)}, false},
		"untold":   {&measure.VirtualSwitch{Kind: "distributed"}, true},
		"standard": {&measure.VirtualSwitch{Kind: "standard"}, false},
		"unseen":   {nil, true},
	} {
		nic := measure.GuestNIC{IOLimit: &measure.Shaping{Enabled: new(true)}}
		if controlled(&nic, tc.s); *nic.IOLimit.Enabled != tc.want {
			t.Errorf("%s: %v", name, *nic.IOLimit.Enabled)
		}
	}
	controlled(&measure.GuestNIC{}, &measure.VirtualSwitch{Kind: "standard"})
}
