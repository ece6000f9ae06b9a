package vsphere

import (
	"fmt"
	"path"
	"strings"

	"github.com/vmware/govmomi/vim25/types"

	"thru/internal/measure"
)

// takeDisks reads a machine's virtual disks, with the adapter of each.
func takeDisks(g *measure.Guest, devices []types.BaseVirtualDevice) {
	adapters := map[int32]string{}
	for _, d := range devices {
		if _, is := d.(types.BaseVirtualController); is {
			adapters[d.GetVirtualDevice().Key] = adapterName(d)
		}
	}
	for _, d := range devices {
		v, is := d.(*types.VirtualDisk)
		if !is {
			continue
		}
		disk := measure.GuestDisk{Name: label(&v.VirtualDevice), Adapter: word(adapters[v.ControllerKey])}
		switch {
		case v.CapacityInBytes > 0:
			disk.Size = &v.CapacityInBytes
		case v.CapacityInKB > 0:
			disk.Size = new(v.CapacityInKB << 10)
		}
		if s := v.StorageIOAllocation; s != nil {
			if s.Limit != nil && *s.Limit >= 0 {
				disk.LimitIOPS = s.Limit
			}
			if s.Shares != nil {
				disk.Shares = new(int64(s.Shares.Shares))
			}
		}
		takeFile(&disk, v.Backing)
		g.Disks = append(g.Disks, disk)
	}
}

// adapterName returns the kind of a controller.
func adapterName(d types.BaseVirtualDevice) string {
	return map[string]string{
		"ParaVirtualSCSI": "pvscsi", "VirtualLsiLogic": "lsilogic", "VirtualLsiLogicSAS": "lsilogic-sas", "VirtualBusLogic": "buslogic",
		"VirtualNVME": "nvme", "VirtualAHCI": "sata", "VirtualSATA": "sata", "VirtualIDE": "ide",
	}[strings.TrimSuffix(kindOf(d), "Controller")]
}

// kindOf returns the API's name of a device type.
func kindOf(d any) string { return strings.TrimPrefix(fmt.Sprintf("%T", d), "*types.") }

// backing has the common properties of disk backings.
type backing struct {
	kind, format, mode string
	file               types.VirtualDeviceFileBackingInfo
	above              []string // files that it is based on, the next one first
}

// takeFile reads location and format of a disk.
func takeFile(disk *measure.GuestDisk, from types.BaseVirtualDeviceBackingInfo) {
	b := backingOf(from)
	disk.Type, disk.Format, disk.Mode, disk.Path = word(b.kind), word(b.format), word(strings.ReplaceAll(b.mode, "_", " ")), word(b.file.FileName)
	if b.file.Datastore != nil {
		disk.Datastore = b.file.Datastore.Value
	}
	switch {
	case b.file.FileName == "":
	case len(b.above) == 0:
		disk.Created = new("of its own")
	case path.Dir(b.above[len(b.above)-1]) == path.Dir(b.file.FileName): // "[datastore] folder/file.vmdk"
		disk.Created = new("snapshot of " + b.above[0])
	default:
		disk.Created = new("clone of " + b.above[len(b.above)-1])
	}
}

// backingOf converts the kinds of backings (VirtualDiskFlatVer2BackingInfo
// ...).
func backingOf(from types.BaseVirtualDeviceBackingInfo) backing {
	switch b := from.(type) {
	case *types.VirtualDiskFlatVer2BackingInfo:
		return backing{"flat", flatFormat(b), b.DiskMode, b.VirtualDeviceFileBackingInfo,
			chain(b.Parent, func(p *types.VirtualDiskFlatVer2BackingInfo) (string, *types.VirtualDiskFlatVer2BackingInfo) {
				return p.FileName, p.Parent
			})}
	case *types.VirtualDiskSeSparseBackingInfo:
		return backing{"sparse", "space-efficient sparse", b.DiskMode, b.VirtualDeviceFileBackingInfo,
			chain(b.Parent, func(p *types.VirtualDiskSeSparseBackingInfo) (string, *types.VirtualDiskSeSparseBackingInfo) {
				return p.FileName, p.Parent
			})}
	case *types.VirtualDiskSparseVer2BackingInfo:
		return backing{"sparse", "thin", b.DiskMode, b.VirtualDeviceFileBackingInfo,
			chain(b.Parent, func(p *types.VirtualDiskSparseVer2BackingInfo) (string, *types.VirtualDiskSparseVer2BackingInfo) {
				return p.FileName, p.Parent
			})}
	case *types.VirtualDiskRawDiskMappingVer1BackingInfo:
		return backing{"raw device", rawFormat(b.CompatibilityMode), b.DiskMode, b.VirtualDeviceFileBackingInfo,
			chain(b.Parent, func(p *types.VirtualDiskRawDiskMappingVer1BackingInfo) (string, *types.VirtualDiskRawDiskMappingVer1BackingInfo) {
				return p.FileName, p.Parent
			})}
	}
	if b, is := from.(types.BaseVirtualDeviceFileBackingInfo); is {
		return backing{kind: "file", file: *b.GetVirtualDeviceFileBackingInfo()}
	}
	return backing{}
}

// chain lists the parent files of a disk.
func chain[T any](at *T, next func(*T) (string, *T)) []string {
	var files []string
	for at != nil && len(files) < depth {
		var name string
		name, at = next(at)
		files = append(files, name)
	}
	return files
}

// flatFormat returns how a flat file is allocated.
func flatFormat(b *types.VirtualDiskFlatVer2BackingInfo) string {
	switch {
	case b.ThinProvisioned != nil && *b.ThinProvisioned:
		return "thin"
	case b.EagerlyScrub != nil && *b.EagerlyScrub:
		return "thick eager zeroed"
	case b.ThinProvisioned == nil && b.EagerlyScrub == nil:
		return ""
	}
	return "thick"
}

// rawFormat returns how a raw device is presented to a guest.
func rawFormat(mode string) string {
	switch mode {
	case string(types.VirtualDiskCompatibilityModePhysicalMode):
		return "physical"
	case string(types.VirtualDiskCompatibilityModeVirtualMode):
		return "virtual"
	}
	return mode
}
