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

// claimOf returns the MTU of a route by this host's own settings: of the interface, and of the route where it has one. learned is a smaller MTU that routers
// have reported to the kernel before (ICMP); 0: none.
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
		claim = min(claim, 65535) // of the packet: loopback reports 65536
	}
	if r.MTU > 0 && r.MTU < claim {
		learned = r.MTU
	}
	return claim, learned
}

// lesser returns the smaller of two; 0 means unknown.
func lesser(a, b int) int {
	if b > 0 && (a == 0 || b < a) {
		return b
	}
	return a
}

// configuredMTU returns the attribute `mtu` of the route itself, without learned values; 0: none.
func configuredMTU(dst netip.Addr) int {
	routes, err := netlink.RouteGetWithOptions(net.IP(dst.AsSlice()), &netlink.RouteGetOptions{Oif: dst.Zone(), FIBMatch: true})
	if err != nil || len(routes) == 0 {
		return 0
	}
	return routes[0].MTU
}

// kernelMTU returns the path MTU that the kernel assumes, from a socket that sends nothing: unlike a route look-up, it respects a VRF. 0: unknown.
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
