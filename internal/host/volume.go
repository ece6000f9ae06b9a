package host

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"thru/internal/host/tree"
	"thru/internal/measure"
)

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
