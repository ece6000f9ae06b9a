//go:build !linux

package worker

import (
	"errors"
)

// paths names the data paths of this end on this system, the best first.
func paths(c openCommand) []path {
	return portablePaths(c)
}

func setPacing(socket, int64) error { return errors.New("this system paces no sockets") }

func defaultDatagram(socket) int64 { return safeDatagram }
