package stage

import (
	"cmp"

	"golang.org/x/sys/unix"
)

// Room returns how many bytes an unprivileged user may still write to the
// file system of a folder; false where it is not known.
func Room(dir string) (int64, bool) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, false
	}
	return int64(s.Bavail) * int64(cmp.Or(s.Frsize, s.Bsize)), true // f_bavail counts fragments (statvfs(3))
}
