//go:build unix && !solaris

package cli

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lockFile holds a file until it is unlocked, or this process ends in whatever
// way. The error is errLocked where another one holds it.
func lockFile(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = errLocked
		}
		return nil, err
	}
	return func() { f.Close() }, nil
}
