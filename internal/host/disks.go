package host

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"thru/internal/host/tree"
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

// Volume describes the file system and disk of a file. A fact that could not
// be read is empty, and named in Missing with the key of measure.DiskTest.
type Volume struct {
	FileSystem string // "ext4"
	Mount      string // mount point
	Options    string // "rw,relatime,discard"
	Device     string // the whole disk: "nvme0n1", also where the file system is on a part of it
	Model      string // as reported by the disk; also empty where it reports none
	Scheduler  string
	Rotational *bool
	Missing    []measure.NotChecked
}

// Volume returns the volume of an open file of this process, by its
// descriptor: the kernel names its mount (proc_pid_fdinfo(5)), so links and
// mounts over a path cannot mislead.
func (h *Host) Volume(fd uintptr) Volume {
	var n notes
	v := h.volume(&n, fd)
	v.Missing = n
	return v
}

func (h *Host) volume(n *notes, fd uintptr) (v Volume) {
	id, err := tree.Parsed(h.fs.Read, fmt.Sprintf("proc/self/fdinfo/%d", fd), parseMountID)
	if err != nil {
		n.add("file_system", err.Error())
		return v
	}
	list, err := h.fs.mounts()
	i := slices.IndexFunc(list, func(m mount) bool { return m.id == id })
	switch {
	case err != nil:
		n.add("file_system", err.Error())
		return v
	case i < 0:
		n.add("file_system", fmt.Sprintf("/proc/self/mountinfo has no mount %d", id))
		return v
	}
	m := list[i]
	v.FileSystem, v.Mount, v.Options = m.kind, m.point, joinOptions(m.own, m.options)
	at, err := h.diskOf(m)
	if err != nil {
		n.add("device", err.Error())
		return v
	}
	v.Device, v.Model = path.Base(at), h.fs.diskModel(at)
	v.Scheduler = orNote[string](n, "scheduler")(h.fs.choice(path.Join(at, "queue/scheduler")))
	v.Rotational = keeper[bool](n, "rotational")(h.fs.flag(path.Join(at, "queue/rotational")))
	return v
}

// diskOf returns the folder of the disk that a mount is on
// (Documentation/ABI/stable/sysfs-block).
func (h *Host) diskOf(m mount) (string, error) {
	device := h.fs.deviceOf(m)
	if device == "" || !strings.HasPrefix(m.source, "/dev/") {
		return "", fmt.Errorf("%s has no block device", m.kind)
	}
	at := h.fs.Target(path.Join("sys/dev/block", device))
	if h.fs.Exists(path.Join(at, "partition")) {
		at = path.Dir(at)
	}
	if !h.fs.Exists(path.Join(at, "queue")) {
		return "", fmt.Errorf("/sys/dev/block/%s is not a disk", device)
	}
	return at, nil
}

// joinOptions lists each option of the mount and of the file system once.
func joinOptions(lists ...string) string {
	var all []string
	for _, word := range strings.Split(strings.Join(lists, ","), ",") {
		if word != "" && !slices.Contains(all, word) {
			all = append(all, word)
		}
	}
	return strings.Join(all, ",")
}

// parseMountID reads the line "mnt_id:" of /proc/PID/fdinfo/FD.
func parseMountID(text string) (int, error) {
	all, err := tree.Fields(text)
	if id, ok := all["mnt_id"]; ok {
		return strconv.Atoi(id)
	}
	return 0, cmp.Or(err, errors.New("no line mnt_id"))
}

// DiskBusy returns how long a disk has been busy since boot: field 10 of its
// line in /proc/diskstats (Documentation/admin-guide/iostats.rst).
func (h *Host) DiskBusy(device string) (time.Duration, error) {
	return tree.Parsed(h.fs.Read, "proc/diskstats", func(text string) (time.Duration, error) { return parseDiskBusy(text, device) })
}

// parseDiskBusy reads one device's line: major, minor, name, then the fields.
func parseDiskBusy(text, device string) (time.Duration, error) {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 13 || f[2] != device {
			continue
		}
		ms, err := strconv.ParseUint(f[12], 10, 43)
		if err != nil {
			return 0, fmt.Errorf("%s: %.40q is not a time", device, f[12])
		}
		return time.Duration(ms) * time.Millisecond, nil
	}
	return 0, fmt.Errorf("no line of %.40q", device)
}

// mount is a line of /proc/self/mountinfo.
type mount struct {
	id      int
	device  string // "8:1"
	root    string // what of the file system is mounted: "/", or the source of a bind mount
	point   string // mount point
	kind    string // "ext4"
	source  string // "/dev/sda1"
	options string // of the file system: "rw,cpu,cpuacct"
	own     string // of this mount: "rw,relatime"
}

// parseMountInfo reads /proc/self/mountinfo (proc_pid_mountinfo(5)). The
// optional fields end with a dash.
func parseMountInfo(text string) ([]mount, error) {
	var all []mount
	for line := range tree.Lines(text) {
		before, after, ok := strings.Cut(line, " - ")
		b, a := strings.Fields(before), strings.Fields(after)
		if !ok || len(b) < 6 || len(a) < 1 {
			return nil, fmt.Errorf("%s is not a mount", quoted(line))
		}
		id, err := strconv.Atoi(b[0])
		if err != nil {
			return nil, fmt.Errorf("%s is not a mount", quoted(line))
		}
		m := mount{id: id, own: b[5], device: b[2], root: unescaped(b[3]), point: unescaped(b[4]), kind: a[0]}
		if len(a) >= 3 { // the source may be empty
			m.source, m.options = unescaped(a[len(a)-2]), a[len(a)-1]
		}
		all = append(all, m)
	}
	return all, tree.UnlessEmpty(len(all), "no mounts")
}

// mounts lists the mounts that this process sees.
func (f FS) mounts() ([]mount, error) {
	return tree.Parsed(f.Read, "proc/self/mountinfo", parseMountInfo)
}

// deviceOf returns the device number of a mount.
func (f FS) deviceOf(m mount) string {
	if strings.HasPrefix(m.device, "0:") { // btrfs has its own numbers: use the source
		return f.Optional(path.Join("sys/class/block", path.Base(m.source), "dev"))
	}
	return m.device
}

// unescaped decodes the kernel's octal escapes such as "\040"
// (fs/proc_namespace.c, mangle).
func unescaped(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if c, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(c))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
