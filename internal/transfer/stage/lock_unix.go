//go:build unix && !solaris

package stage

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Lock locks an open file or folder until it is closed, or this process ends
// in any way; false where another process has locked it (ErrLocked), or the
// file system has no locks.
func Lock(f *os.File) (held bool, err error) {
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		return false, ErrLocked
	case errors.Is(err, unix.ENOLCK) || errors.Is(err, unix.EOPNOTSUPP):
		return false, nil // a file system without locks
	}
	return err == nil, err
}

// mine reports whether only this user may change a folder.
func mine(info os.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.IsDir() && int(s.Uid) == os.Geteuid() && info.Mode().Perm() == 0o700
}
