//go:build !linux

package wire

import (
	"fmt"
	"runtime"
)

// Wire is a path between two TAP devices, which this system does not have.
type Wire struct{}

// New returns an error: only Linux has TAP devices in namespaces.
func New(Options) (*Wire, error) {
	return nil, fmt.Errorf("wire: a path between namespaces needs Linux, this is %s", runtime.GOOS)
}

// Set changes the impairment of a direction from now on.
func (w *Wire) Set(Direction, Impairment) {}

// Counters returns what has happened in a direction so far.
func (w *Wire) Counters(Direction) Counters { return Counters{} }

// Close ends the path.
func (w *Wire) Close() error { return nil }
