// Package path probes the path between two end points: TCP options as sent and as received, idle round-trip times and the clock offset, whether UDP passes,
// what happens to its DSCP and ECN marks, the number of routers, the MTU in band (RFC 8899 in spirit, so it needs neither ICMP nor root), and whether source
// ports take different paths.
//
// One end answers (Open), the other one dials (Probe). Only a greeting is sent before both have presented their half of a token over TCP, and datagrams go
// only to an address that has done so over TCP and by a datagram, so nobody can make an end send to a stranger. A probe sends some hundred small packets.
//
// The search for the MTU (mtu.go) and the grouping of source ports (groups.go) do no I/O. Linux is complete; other systems have round trips, clock and UDP
// reachability, and report what they lack.
//
// The SYN is read at the end where it arrived (TCP_SAVE_SYN) and compared with what the other end's stack sends: no capture, no root.
package path

import (
	"net/netip"

	"thru/internal/host"
)

// Listen is where the answering end accepts.
type Listen struct {
	Addrs               []string // addresses of this host; empty: all
	First, Last, Offset int      // range of ports, and where in it to start; 0, 0: any
	Device              string   // interface or VRF
}

// Dial describes the dialling end.
type Dial struct {
	Targets        []string // HOST:PORT, in the order of the tries
	Token          string   // of the Responder
	Quick          bool     // only what a few round trips show
	Source, Device string   // address and interface or VRF of this end; empty: the kernel's choice
	Family         int      // 4, 6, or 0 for either
	Host           *host.Host
}

// plain returns an address with mapped IPv4 as plain IPv4.
func plain(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) }
