//go:build !linux

package host

import (
	"net/netip"

	"thru/internal/measure"
)

// runningKernel is absent: it is asked on Linux only.
func runningKernel() kernel { return nil }

// Facts reads what this host is, now, as far as this system tells.
func (h *Host) Facts() measure.Facts { return portableFacts() }

// Route is the interface and the source address towards dst. An error means
// that there is no way.
func (h *Host) Route(dst netip.Addr) (measure.Route, error) { return portableRoute(dst) }

// Read reads the counters of this host and of one interface; an empty name
// leaves it out. What this system does not tell is in Missing.
func (h *Host) Read(iface string, pid int) Snapshot { return portableRead(iface, pid) }
