//go:build unix && !solaris

package mover

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lock holds a file until it is closed, or this process ends in whatever way.
func lock(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return errLocked
	}
	if errors.Is(err, unix.ENOLCK) || errors.Is(err, unix.EOPNOTSUPP) {
		return nil // a file system without locks
	}
	return err
}
