package host

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"thru/internal/measure"
)

// disks lists the block devices that a file test could use, with their file
// systems (Documentation/ABI/stable/sysfs-block). It leaves out RAM disks,
// optical drives and empty slots.
func (h *Host) disks(n *notes) []measure.Disk {
	f := h.fs
	const dir = "sys/block"
	names, err := f.Names(dir)
	if err != nil {
		n.add("disks", err.Error())
		return nil
	}
	mounts := map[string][]measure.Mount{}
	list, err := f.mounts()
	if err != nil {
		n.add("disks.mounts", err.Error())
	} else {
		mounts = h.mountsOf(n, list)
	}
	var all []measure.Disk
	for _, name := range names {
		if noDisk(name) {
			continue
		}
		at := path.Join(dir, name)
		sectors, err := f.Number64(path.Join(at, "size"))
		if err == nil && (sectors <= 0 || sectors > 1<<53) {
			continue
		}
		fact := "disks." + name
		d := measure.Disk{Name: name, Model: f.diskModel(at), Driver: f.diskDriver(name, at)}
		d.SizeBytes = keeper[int64](n, fact+".size_bytes")(sectors*512, err) // always in units of 512 bytes
		d.Rotational = keeper[bool](n, fact+".rotational")(f.flag(path.Join(at, "queue/rotational")))
		d.Scheduler = keeper[string](n, fact+".scheduler")(f.choice(path.Join(at, "queue/scheduler")))
		d.Queue = keeper[int](n, fact+".queue_requests")(f.Number(path.Join(at, "queue/nr_requests")))
		d.Mounts = f.mountsOn(at, mounts)
		all = append(all, d)
	}
	return all
}

// noDisk reports by its name whether a device is unsuitable for file tests
// (Documentation/admin-guide/devices.txt).
func noDisk(name string) bool {
	return slices.ContainsFunc([]string{"loop", "ram", "zram", "sr", "fd"}, func(prefix string) bool {
		rest, ok := strings.CutPrefix(name, prefix)
		return ok && rest != "" && strings.Trim(rest, "0123456789") == ""
	})
}

// flag reads a file that holds 0 or 1.
func (f FS) flag(name string) (bool, error) {
	i, err := f.Number(name)
	return i == 1, err
}

// diskModel returns maker and model. The maker of a virtual PCI device is a
// number.
func (f FS) diskModel(at string) string {
	maker, model := f.Optional(path.Join(at, "device/vendor")), f.Optional(path.Join(at, "device/model"))
	if strings.HasPrefix(maker, "0x") || maker == "ATA" || strings.HasPrefix(model, maker) {
		maker = ""
	}
	return strings.Join(strings.Fields(maker+" "+model), " ")
}

// diskDriver returns the driver by the kernel's link: of the device, or of
// its controller (NVMe).
func (f FS) diskDriver(name, at string) string {
	for _, link := range []string{"device/driver", "device/device/driver"} {
		if to, err := os.Readlink(filepath.Join(f.Root, at, link)); err == nil {
			return filepath.Base(to)
		}
	}
	switch {
	case f.Exists(path.Join(at, "dm")):
		return "device-mapper"
	case f.Exists(path.Join(at, "md")):
		return "md"
	case strings.HasPrefix(name, "nvme"):
		return "nvme"
	}
	return ""
}

// mountsOn lists the mounts of a disk and of its partitions, which are
// folders below it.
func (f FS) mountsOn(at string, mounts map[string][]measure.Mount) []measure.Mount {
	all := mounts[f.Optional(path.Join(at, "dev"))]
	relativeTo, err := f.Names(at)
	if err != nil {
		return all
	}
	for _, part := range relativeTo {
		if strings.HasPrefix(part, path.Base(at)) {
			all = append(all, mounts[f.Optional(path.Join(at, part, "dev"))]...)
		}
	}
	return all
}

// mountsOf lists the local file systems by device number, each once,
// preferably with the mount of its root. It asks only these for their free
// space, since a dead file server would block the call for ever.
func (h *Host) mountsOf(n *notes, list []mount) map[string][]measure.Mount {
	chosen, slow := map[string]mount{}, waiting(list)
	var order []string
	for _, m := range list {
		device := h.fs.deviceOf(m)
		local := device != "" && strings.HasPrefix(m.source, "/dev/") && !over(slow, m.point)
		// A container's runtime mounts single files: /etc/hosts, /dev/termination-log.
		if !local || m.root != "/" && (strings.HasPrefix(m.point, "/etc/") || strings.HasPrefix(m.point, "/dev/")) {
			continue
		}
		old, twice := chosen[device]
		if !twice {
			order = append(order, device)
		}
		if !twice || old.root != "/" && m.root == "/" {
			chosen[device] = m
		}
	}
	if h.system == nil && len(order) > 0 {
		n.add("disks.free_bytes", onlyLive)
	}
	all := map[string][]measure.Mount{}
	for _, device := range order {
		m := chosen[device]
		v := measure.Mount{Path: m.point, Type: m.kind}
		if h.system != nil {
			v.FreeBytes = keeper[int64](n, "disks.mounts."+m.point+".free_bytes")(h.system.free(m.point))
		}
		all[device] = append(all[device], v)
	}
	return all
}

// waiting lists the mount points of file systems that may block: file
// servers, FUSE, automounters.
func waiting(list []mount) []string {
	kinds := []string{"nfs", "nfs4", "cifs", "smb3", "smbfs", "ceph", "afs", "9p", "virtiofs", "glusterfs", "lustre", "gpfs", "autofs", "ocfs2", "gfs2",
		"orangefs", "coda", "ncpfs", "beegfs"}
	var all []string
	for _, m := range list {
		if slices.Contains(kinds, m.kind) || strings.HasPrefix(m.kind, "fuse") {
			all = append(all, strings.TrimSuffix(m.point, "/")+"/")
		}
	}
	return all
}

// over reports whether a path leads through one of these mount points.
func over(places []string, point string) bool {
	return slices.ContainsFunc(places, func(place string) bool { return strings.HasPrefix(point+"/", place) })
}
