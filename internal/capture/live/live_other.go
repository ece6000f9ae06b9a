//go:build !linux

package live

import (
	"net/netip"
	"runtime"

	"thru/internal/fault"
)

// Ring is a running capture; this system has none.
type Ring struct{}

// Possible returns why packets cannot be captured here.
func Possible() error {
	return fault.Failf("capture with tcpdump, tshark or the system's own tool, and read the file with thru explain",
		"live: capturing packets: not possible on %s, only on Linux", runtime.GOOS)
}

// Start fails: see Possible.
func Start(Config) (*Ring, error) { return nil, Possible() }

// Stop fails: see Possible.
func (*Ring) Stop(string, netip.AddrPort) (Recording, error) { return Recording{}, Possible() }

// Close does nothing.
func (*Ring) Close() {}
