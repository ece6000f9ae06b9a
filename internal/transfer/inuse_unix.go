//go:build unix

package transfer

import (
	"errors"
	"syscall"
)

// inUse reports whether an error means that another port may be free.
func inUse(err error) bool {
	return errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, syscall.EADDRNOTAVAIL)
}
