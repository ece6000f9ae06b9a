//go:build unix

package transfer

import (
	"errors"
	"syscall"
)

// inUse reports whether another port may be free.
func inUse(err error) bool {
	return errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, syscall.EADDRNOTAVAIL)
}
