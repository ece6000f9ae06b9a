//go:build unix && !solaris

package bus

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// ErrLocked is the error of a file that another process has locked.
var ErrLocked = errors.New("another thru process is using it")

// LockFile locks a file until it is unlocked, or this process ends for any reason.
// The error is ErrLocked where another process has the lock.
func LockFile(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = ErrLocked
		}
		return nil, err
	}
	return func() { f.Close() }, nil
}
