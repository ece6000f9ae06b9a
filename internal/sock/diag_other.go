//go:build !linux

package sock

import (
	"fmt"
	"net/netip"
	"runtime"
)

// Diag is not offered: other systems have ways of their own.
type Diag struct{}

// OpenDiag is not offered: other systems have ways of their own.
func OpenDiag() (*Diag, error) {
	return nil, fmt.Errorf("sock: connections of other programs are not read on %s", runtime.GOOS)
}

// Find finds nothing here.
func (*Diag) Find(_, _ netip.AddrPort) (Connection, error) { return Connection{}, ErrNoConnection }

// Close does nothing here.
func (*Diag) Close() error { return nil }
