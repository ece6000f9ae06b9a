package vsphere

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/vmware/govmomi/vim25/types"

	"thru/internal/measure"
)

// Kinds of interfaces of a host, as in package platform.
const (
	physical = "physical"
	vswitch  = "vswitch"
	dvswitch = "dvswitch"
	vmkernel = "vmkernel"
)

// takePhysical reads the physical adapters.
func takePhysical(f *measure.Facts, r *reader) {
	list, _ := value[types.ArrayOfPhysicalNic](r, "interfaces", "config.network.pnic", "")
	cards, _ := value[types.ArrayOfHostPciDevice](r, "", "hardware.pciDevice", "")
	numa, _ := value[types.HostNumaInfo](r, "", "hardware.numaInfo", "")
	for _, p := range list.PhysicalNic {
		i := measure.Interface{Name: p.Device, Kind: new(physical), MAC: word(strings.ToLower(p.Mac)), Driver: word(p.Driver), Bus: word(p.Pci),
			Version: word(p.DriverVersion), Firmware: word(p.FirmwareVersion), Nominal: new(strings.Contains(p.Driver, "vmxnet3"))}
		takeLink(&i, &p)
		if i.Up == nil {
			r.gap("interfaces."+i.Name+".up", "the web service does not report it without a link")
		}
		if i.Firmware == nil && i.Version == nil {
			r.gap("interfaces."+i.Name+".firmware", "only ESXi 8.0 and later report it, if the driver does")
		}
		for _, c := range cards.HostPciDevice {
			if c.Id == p.Pci {
				i.PCI = &measure.PCI{Vendor: fmt.Sprintf("0x%04x", uint16(c.VendorId)), Device: fmt.Sprintf("0x%04x", uint16(c.DeviceId))}
			}
		}
		for _, n := range numa.NumaNode {
			if slices.Contains(n.PciId, p.Pci) {
				i.NUMANode = new(int(n.TypeId))
			}
		}
		f.Interfaces = append(f.Interfaces, i)
	}
}

// takeLink reads the link's state and capabilities.
func takeLink(i *measure.Interface, p *types.PhysicalNic) {
	i.Carrier = new(p.LinkSpeed != nil)
	if p.LinkSpeed != nil {
		i.Up = new(true)
		if p.LinkSpeed.SpeedMb > 0 {
			i.SpeedBps = new(int64(p.LinkSpeed.SpeedMb) * 1_000_000)
		}
		i.Duplex = new("half")
		if p.LinkSpeed.Duplex {
			i.Duplex = new("full")
		}
	}
	i.Autoneg = new(p.Spec.LinkSpeed == nil && (p.AutoNegotiateSupported == nil || *p.AutoNegotiateSupported))
	for _, s := range p.ValidLinkSpecification {
		if bps := int64(s.SpeedMb) * 1_000_000; bps > 0 && (i.MaxBps == nil || *i.MaxBps < bps) {
			i.MaxBps = &bps
		}
	}
}

// takeSwitches adds the host's switches as interfaces.
func takeSwitches(f *measure.Facts, r *reader) {
	standard, _ := value[types.ArrayOfHostVirtualSwitch](r, "", "config.network.vswitch", "")
	pnics := pnicNames(r)
	add := func(name, kind string, mtu int32, keys []string) {
		i := measure.Interface{Name: name, Kind: &kind, MTU: positive(mtu), Nominal: new(true), Lower: named(pnics, keys)}
		i.Bridge = &measure.Bridge{Ports: append([]string{}, i.Lower...)}
		f.Interfaces = append(f.Interfaces, i)
	}
	for _, s := range standard.HostVirtualSwitch {
		add(s.Name, vswitch, s.Mtu, s.Pnic)
	}
	distributed, _ := value[types.ArrayOfHostProxySwitch](r, "", "config.network.proxySwitch", "")
	for _, s := range distributed.HostProxySwitch {
		add(unescape(&s.DvsName), dvswitch, s.Mtu, s.Pnic)
	}
}

// pnicNames returns the names of the physical adapters by their keys in the
// API.
func pnicNames(r *reader) map[string]string {
	names := map[string]string{}
	list, _ := value[types.ArrayOfPhysicalNic](r, "", "config.network.pnic", "")
	for _, p := range list.PhysicalNic {
		names[p.Key] = p.Device
	}
	return names
}

// named converts keys of adapters ("key-vim.host.PhysicalNic-vmnic0") to
// names.
func named(names map[string]string, keys []string) []string {
	var all []string
	for _, k := range keys {
		all = append(all, cmp.Or(names[k], strings.TrimPrefix(k, "key-vim.host.PhysicalNic-")))
	}
	return all
}

// nameMasters sets the switch of each physical adapter.
func nameMasters(f *measure.Facts) {
	for n := range f.Interfaces {
		for _, lower := range f.Interfaces[n].Lower {
			if l := f.Interface(lower); l != nil {
				l.Master = &f.Interfaces[n].Name
			}
		}
	}
}

// vmks returns the VMkernel ports of the host.
func vmks(r *reader, fact string) []types.HostVirtualNic {
	list, _ := value[types.ArrayOfHostVirtualNic](r, fact, "config.network.vnic", "")
	console, _ := value[types.ArrayOfHostVirtualNic](r, "", "config.network.consoleVnic", "")
	return append(list.HostVirtualNic, console.HostVirtualNic...)
}

// takeVmk adds the VMkernel ports as interfaces.
func takeVmk(f *measure.Facts, r *reader) {
	for _, v := range vmks(r, "") {
		i := measure.Interface{Name: v.Device, Kind: new(vmkernel), MTU: positive(v.Spec.Mtu), MAC: word(strings.ToLower(v.Spec.Mac)),
			Nominal: new(true), Addrs: vmkAddrs(v.Spec.Ip), Master: switchOfVmk(r, &v)}
		if v.Spec.TsoEnabled != nil {
			i.Offloads = map[string]bool{"tcp-segmentation-offload": *v.Spec.TsoEnabled}
		}
		f.Interfaces = append(f.Interfaces, i)
	}
}

// switchOfVmk returns the switch of a VMkernel port.
func switchOfVmk(r *reader, v *types.HostVirtualNic) *string {
	if d := v.Spec.DistributedVirtualPort; d != nil {
		list, _ := value[types.ArrayOfHostProxySwitch](r, "", "config.network.proxySwitch", "")
		for _, s := range list.HostProxySwitch {
			if s.DvsUuid == d.SwitchUuid {
				return word(unescape(&s.DvsName))
			}
		}
		return nil
	}
	list, _ := value[types.ArrayOfHostPortGroup](r, "", "config.network.portgroup", "")
	for _, p := range list.HostPortGroup {
		if v.Portgroup != "" && p.Spec.Name == v.Portgroup {
			return word(p.Spec.VswitchName)
		}
	}
	return nil
}

// vmkAddrs returns the addresses with their prefix lengths.
func vmkAddrs(ip *types.HostIpConfig) []string {
	if ip == nil {
		return nil
	}
	var all []string
	if a, err := netip.ParseAddr(ip.IpAddress); err == nil && a.Is4() && !a.IsUnspecified() {
		if m := net.ParseIP(ip.SubnetMask).To4(); m != nil {
			if ones, bits := net.IPMask(m).Size(); bits == 32 {
				all = append(all, netip.PrefixFrom(a, ones).String())
			}
		}
	}
	if ip.IpV6Config == nil {
		return all
	}
	for _, v6 := range ip.IpV6Config.IpV6Address {
		if a, err := netip.ParseAddr(v6.IpAddress); err == nil && a.Is6() && v6.PrefixLength >= 0 && v6.PrefixLength <= 128 {
			all = append(all, netip.PrefixFrom(a.WithZone(""), int(v6.PrefixLength)).String())
		}
	}
	return all
}

// vmkernelPorts returns the VMkernel ports with their purposes.
func vmkernelPorts(r *reader, host string) []measure.VMkernelPort {
	services := map[string][]string{}
	nets, _ := value[types.ArrayOfVirtualNicManagerNetConfig](r, "vmkernel_ports.services", "config.virtualNicManagerInfo.netConfig", "")
	for _, n := range nets.VirtualNicManagerNetConfig {
		for _, key := range n.SelectedVnic { // "management.key-vim.host.VirtualNic-vmk0"
			for _, c := range n.CandidateVnic {
				if c.Key != "" && (key == c.Key || strings.HasSuffix(key, "."+c.Key)) {
					services[c.Device] = append(services[c.Device], n.NicType)
				}
			}
		}
	}
	var all []measure.VMkernelPort
	for _, v := range vmks(r, "vmkernel_ports") {
		p := measure.VMkernelPort{Device: v.Device, MTU: positive(v.Spec.Mtu), MAC: word(strings.ToLower(v.Spec.Mac)), Addrs: vmkAddrs(v.Spec.Ip),
			Stack: word(v.Spec.NetStackInstanceKey), TSO: v.Spec.TsoEnabled, Services: compact(services[v.Device])}
		if d := v.Spec.DistributedVirtualPort; d != nil {
			p.PortGroup = d.PortgroupKey
		} else if v.Portgroup != "" {
			p.PortGroup, p.Network = standardID(host, v.Portgroup), word(v.Portgroup)
		}
		all = append(all, p)
	}
	return all
}

// takeVolumes reads the disks, and the volumes with the version of VMFS.
func takeVolumes(f *measure.Facts, r *reader) {
	luns, _ := value[types.ArrayOfScsiLun](r, "disks", "config.storageDevice.scsiLun", "")
	for _, l := range luns.ScsiLun {
		d, is := l.(*types.HostScsiDisk)
		if !is {
			continue
		}
		disk := measure.Disk{Name: d.CanonicalName, Model: strings.Join(strings.Fields(d.Vendor+" "+d.Model), " ")}
		if size := d.Capacity.Block * int64(d.Capacity.BlockSize); size > 0 {
			disk.SizeBytes = &size
		}
		if d.Ssd != nil {
			disk.Rotational = new(!*d.Ssd)
		}
		if d.QueueDepth > 0 {
			disk.Queue = new(int(d.QueueDepth))
		}
		f.Disks = append(f.Disks, disk)
	}
	volumes, _ := value[types.ArrayOfHostFileSystemMountInfo](r, "disks.mounts", "config.fileSystemVolume.mountInfo", "")
	for _, m := range volumes.HostFileSystemMountInfo {
		if m.Volume == nil {
			continue
		}
		v := m.Volume.GetHostFileSystemVolume()
		kind := volumeKind(m.Volume)
		if kind == "" || v.Name == "" {
			continue
		}
		disk := measure.Disk{Name: v.Name, Mounts: []measure.Mount{{Path: m.MountInfo.Path, Type: kind}}}
		if v.Capacity > 0 {
			disk.SizeBytes = &v.Capacity
		}
		f.Disks = append(f.Disks, disk)
	}
}

// volumeKind returns the file system of a volume for machines, in esxcli's
// names: "VMFS-6", "NFS", "vsan"; "" for the system's own.
func volumeKind(volume types.BaseHostFileSystemVolume) string {
	switch v := volume.(type) {
	case *types.HostVmfsVolume:
		if v.Type != string(types.HostFileSystemVolumeFileSystemTypeVMFS) {
			return "" // VMFS-L, which holds the system's own files
		}
		return fmt.Sprintf("VMFS-%d", v.MajorVersion)
	case *types.HostNasVolume:
		if v.Type == string(types.HostFileSystemVolumeFileSystemTypeNFS41) {
			return "NFS-4.1"
		}
		return "NFS"
	}
	if v := volume.GetHostFileSystemVolume(); v.Type == string(types.HostFileSystemVolumeFileSystemTypeVsan) {
		return "vsan"
	}
	return ""
}
