//go:build !linux

package sock

import (
	"net"
	"net/netip"
)

// DestinationRoom is none: nothing comes beside a datagram.
const DestinationRoom = 0

// WantDestination is not offered: each system has an option of its own for it.
func WantDestination(*net.UDPConn) error { return unsupported("the destination of datagrams") }

// Destination returns false: it is not known here.
func Destination([]byte) (netip.Addr, bool) { return netip.Addr{}, false }
