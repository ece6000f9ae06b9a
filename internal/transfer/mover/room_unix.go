//go:build unix

package mover

import (
	"errors"

	"golang.org/x/sys/unix"
)

// isFull tells of a disk, or of a user's part of it, without room.
func isFull(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }
