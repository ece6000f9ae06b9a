package lab

import "testing"

// Routed is two hosts with a router between them, which forwards IPv4.
type Routed struct {
	A, R, B   *Host
	Near, Far Link // A to R, and R to B: on both interfaces DataDev at the hosts, "near" and "far" at the router
}

// Interfaces of the router of a Routed.
const (
	NearDev = "near"
	FarDev  = "far"
)

// NewRouted builds hosts a, r and b in their own lab. Each host reaches the other through r; mtu is that of
// all four interfaces.
func NewRouted(t testing.TB, mtu int) *Routed {
	t.Helper()
	l := New(t)
	x := &Routed{A: l.Host("a"), R: l.Host("r"), B: l.Host("b")}
	x.Near = l.join(x.A, x.R, DataDev, 77, mtu, "cubic")
	x.Far = l.join(x.B, x.R, FarDev, 78, mtu, "cubic")
	x.R.IP("link", "set", DataDev, "name", NearDev)
	x.B.IP("link", "set", FarDev, "name", DataDev)
	x.Far.Dev = DataDev
	for _, end := range []struct {
		h  *Host
		by Link
	}{{x.A, x.Near}, {x.B, x.Far}} {
		end.h.IP("route", "add", "default", "via", end.by.B4.String(), "dev", DataDev, "congctl", "cubic")
	}
	x.R.Sysctl("net.ipv4.ip_forward", "1")
	return x
}

// Addr returns the address of B.
func (x *Routed) Addr() string { return x.Far.A4.String() }
