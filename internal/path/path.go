// Package path probes what lies between two end points: TCP options as they
// left one end and came to the other, idle round trips and the offset of the
// clocks, whether UDP passes, what becomes of its marks, how many routers
// there are, the MTU in band (RFC 8899 in spirit, so it needs neither ICMP nor
// root), and whether source ports take different ways.
//
// One end answers (Open), the other one dials (Probe). Nothing but a greeting
// is sent before both have shown their half of a token over TCP, and datagrams
// go only to an address that has done so over TCP and by a datagram, so nobody
// can be made to send to a stranger. A probe sends some hundred small packets.
//
// The search for the MTU (mtu.go) and the grouping of source ports (groups.go)
// are pure. Linux is complete; other systems have round trips, clock and the
// reach of UDP, and say what they lack.
//
// The SYN is read at the end where it arrived (TCP_SAVE_SYN) and compared with what the other end's stack sends: no capture, no root.
package path

import (
	"net/netip"

	"thru/internal/host"
)

// Listen says where the answering end accepts.
type Listen struct {
	Addrs               []string // addresses of this host; empty: all
	First, Last, Offset int      // range of ports, and where in it to begin; 0, 0: any
	Device              string   // interface or VRF
}

// Dial describes the dialling end.
type Dial struct {
	Targets        []string // HOST:PORT, in the order in which they are tried
	Token          string   // of the Responder
	Quick          bool     // only what a few round trips tell
	Source, Device string   // address and interface or VRF of this end; empty: the kernel's choice
	Family         int      // 4, 6, or 0 for either
	Host           *host.Host
}

// plain is an address with IPv4 as such, where a socket of both families maps it.
func plain(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) }
