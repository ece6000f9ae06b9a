//go:build !linux

package path

import (
	"context"
	"net/netip"

	"thru/internal/measure"
)

// claimOf returns the MTU of the interface; this system does not report learned values.
func claimOf(r measure.Route, _ netip.Addr) (claim, learned int) { return r.MTU, 0 }

// kernelMTU returns 0: not known on this system.
func kernelMTU(context.Context, string, netip.Addr, netip.AddrPort) int { return 0 }
