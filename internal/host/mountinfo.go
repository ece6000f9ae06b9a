package host

import (
	"fmt"
	"path"
	"strconv"
	"strings"
	"thru/internal/host/tree"
)

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
