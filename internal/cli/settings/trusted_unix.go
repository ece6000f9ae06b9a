//go:build unix

package settings

import (
	"io/fs"
	"os"
	"syscall"

	"thru/internal/fault"
)

// trusted refuses a file that another user can change: as root thru would grant what that user writes there. With
// sudo -E, root reads the files of the user who calls it.
func trusted(path string, info fs.FileInfo) error {
	if info.Mode().Perm()&0o022 != 0 {
		return fault.Failf("run: chmod go-w "+path, "%s can be changed by other users (mode %04o)", path, info.Mode().Perm())
	}
	if s, ok := info.Sys().(*syscall.Stat_t); ok && s.Uid != 0 && int(s.Uid) != os.Geteuid() {
		return fault.Failf("read no such file: "+Only+"=/dev/null thru ..., or let root own it: chown root "+path, "%s belongs to another user (uid %d)", path, s.Uid)
	}
	return nil
}
