package vsphere

import (
	"bytes"
	"testing"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"
	"github.com/vmware/govmomi/vim25/xml"
)

// FuzzObjects verifies that no object of a server, whatever it holds, breaks
// the conversion.
func FuzzObjects(f *testing.F) {
	for _, o := range seeds(f) {
		var text bytes.Buffer
		if err := xml.NewEncoder(&text).Encode(o); err != nil {
			f.Fatal(err)
		}
		f.Add(text.Bytes())
	}
	f.Add([]byte(`<ObjectContent><obj type="VirtualMachine">vm-1</obj><propSet><name>config.hardware.device</name><val xmlns:XMLSchema-instance="http://www.w3.org/2001/XMLSchema-instance" XMLSchema-instance:type="ArrayOfVirtualDevice"><VirtualDevice XMLSchema-instance:type="VirtualVmxnet3"><key>1</key></VirtualDevice></val></propSet></ObjectContent>`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var o types.ObjectContent
		d := xml.NewDecoder(bytes.NewReader(text))
		d.TypeFunc = types.TypeFunc()
		if d.Decode(&o) != nil {
			return
		}
		places := tree{o.Obj: place{name: "ring", parent: o.Obj}}
		convertGuest(&o, places, true)
		h := convertHost(&o, places)
		convertHostIdentity(&o)
		standardSwitches(&o)
		s := convertSwitch(&o)
		convertGroup(&o, map[string]*distributed{s.ID: s})
		convertStore(&o, places)
		a := askedOf(&o, "host")
		takeChanged(h.Facts, a.values, nil)
	})
}

// seeds are objects of the simulator.
func seeds(f *testing.F) []types.ObjectContent {
	m := simulator.VPX()
	if err := m.Create(); err != nil {
		f.Fatal(err)
	}
	defer m.Remove()
	vm := dressGuest(m)
	dressSwitch(m)
	host := m.Map().Any("HostSystem").(*simulator.HostSystem)
	dressHost(m, &host.HostSystem)
	prop := func(name string, v any) types.DynamicProperty { return types.DynamicProperty{Name: name, Val: v} }
	return []types.ObjectContent{
		{Obj: vm.Self, PropSet: []types.DynamicProperty{prop("name", vm.Name), prop("config.hardware.device", types.ArrayOfVirtualDevice{VirtualDevice: vm.Config.Hardware.Device}),
			prop("config.extraConfig", types.ArrayOfOptionValue{OptionValue: vm.Config.ExtraConfig}), prop("guest.net", types.ArrayOfGuestNicInfo{GuestNicInfo: vm.Guest.Net}),
			prop("config.cpuAllocation", *vm.Config.CpuAllocation)}},
		{Obj: host.Self, PropSet: []types.DynamicProperty{prop("config.network.pnic", types.ArrayOfPhysicalNic{PhysicalNic: host.Config.Network.Pnic}),
			prop("config.network.vnic", types.ArrayOfHostVirtualNic{HostVirtualNic: host.Config.Network.Vnic}), prop("config.option", types.ArrayOfOptionValue{OptionValue: host.Config.Option}),
			prop("hardware.pciDevice", types.ArrayOfHostPciDevice{HostPciDevice: host.Hardware.PciDevice}), prop("hardware.numaInfo", *host.Hardware.NumaInfo)},
			MissingSet: []types.MissingProperty{{Path: "config", Fault: types.LocalizedMethodFault{Fault: &types.NoPermission{PrivilegeId: "System.Read"}}}}},
	}
}

// FuzzVersions verifies the same for a server's list of versions.
func FuzzVersions(f *testing.F) {
	f.Add([]byte(`<?xml version="1.0"?><namespaces version="1.0"><namespace><name>urn:vim25</name><version>8.0.3.0</version><priorVersions><version>8.0.2.0</version></priorVersions></namespace></namespaces>`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if told, err := readVersions(bytes.NewReader(text)); err == nil {
			if v, err := told.choose(); err == nil && v == "" {
				t.Error("an empty version is chosen")
			}
		}
	})
}
