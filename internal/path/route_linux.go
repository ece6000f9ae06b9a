package path

import (
	"context"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"

	"thru/internal/measure"
	"thru/internal/sock"
)

// claimOf is the MTU that this host has for a route by its own settings: of
// the interface, and of the route where it has one. learned is what routers
// have told the kernel of the path before (ICMP), where that is less; 0: nothing.
func claimOf(r measure.Route, dst netip.Addr) (claim, learned int) {
	claim = r.MTU
	if i, err := net.InterfaceByName(r.Interface); err == nil {
		claim = i.MTU
	}
	claim = lesser(claim, configuredMTU(dst))
	if dst.Is6() { // a router's advertisement may lower it (RFC 4861)
		b, _ := os.ReadFile("/proc/sys/net/ipv6/conf/" + r.Interface + "/mtu")
		n, _ := strconv.Atoi(strings.TrimSpace(string(b)))
		claim = lesser(claim, n)
	} else {
		claim = min(claim, 65535) // of the packet: loopback says 65536
	}
	if r.MTU > 0 && r.MTU < claim {
		learned = r.MTU
	}
	return claim, learned
}

// lesser is the less of two of which 0 says nothing.
func lesser(a, b int) int {
	if b > 0 && (a == 0 || b < a) {
		return b
	}
	return a
}

// configuredMTU is the attribute `mtu` of the route itself, without what was
// learned; 0 is none.
func configuredMTU(dst netip.Addr) int {
	routes, err := netlink.RouteGetWithOptions(net.IP(dst.AsSlice()), &netlink.RouteGetOptions{Oif: dst.Zone(), FIBMatch: true})
	if err != nil || len(routes) == 0 {
		return 0
	}
	return routes[0].MTU
}

// kernelMTU is what the kernel takes for the path's MTU, of a socket of its
// own that sends nothing: it obeys a VRF, which the look-up of a route does
// not. 0 is unknown.
func kernelMTU(ctx context.Context, device string, local netip.Addr, remote netip.AddrPort) int {
	d := net.Dialer{Control: sock.Options{Device: device}.Control, LocalAddr: net.UDPAddrFromAddrPort(netip.AddrPortFrom(local, 0))}
	c, err := d.DialContext(ctx, "udp", remote.String())
	if err != nil {
		return 0
	}
	defer c.Close()
	mtu := sock.Read(c, sock.PathMTU)
	if local.Is4() {
		mtu = min(mtu, 65535)
	}
	return mtu
}
