//go:build unix

package agent

import (
	"errors"
	"syscall"
)

// isNoFolder tells of a path that is something else.
func isNoFolder(err error) bool { return errors.Is(err, syscall.ENOTDIR) }
