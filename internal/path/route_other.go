//go:build !linux

package path

import (
	"context"
	"net/netip"

	"thru/internal/measure"
)

// claimOf is the MTU of the interface; what was learned is not known here.
func claimOf(r measure.Route, _ netip.Addr) (claim, learned int) { return r.MTU, 0 }

// kernelMTU is not known here.
func kernelMTU(context.Context, string, netip.Addr, netip.AddrPort) int { return 0 }
