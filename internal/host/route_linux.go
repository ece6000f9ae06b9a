package host

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"github.com/vishvananda/netlink"

	"thru/internal/fault"
	"thru/internal/measure"
)

// Route is how the kernel would send a packet to dst (`ip route get`). The
// MTU is that of the interface, or what the route knows of the path where
// that is less. An error means that there is no way.
func (h *Host) Route(dst netip.Addr) (measure.Route, error) {
	if !dst.IsValid() {
		return measure.Route{}, errors.New("host: looking up a route: no address given")
	}
	dst = dst.Unmap()
	routes, err := netlink.RouteGetWithOptions(net.IP(dst.AsSlice()), &netlink.RouteGetOptions{Oif: dst.Zone()})
	if err == nil && len(routes) == 0 {
		err = syscall.ENETUNREACH
	}
	if err != nil {
		return measure.Route{}, fault.Failf("see `ip route get "+dst.WithZone("").String()+"`", "host: looking up the route to %s: %w", dst, err)
	}
	r := routes[0]
	l, err := netlink.LinkByIndex(r.LinkIndex)
	if err != nil {
		return measure.Route{}, fmt.Errorf("host: looking up interface %d of the route to %s: %w", r.LinkIndex, dst, err)
	}
	out := measure.Route{Interface: l.Attrs().Name, MTU: l.Attrs().MTU}
	if r.MTU > 0 {
		out.MTU = min(out.MTU, r.MTU)
	}
	if r.Gw != nil {
		out.Gateway = r.Gw.String()
	} else if via, ok := r.Via.(*netlink.Via); ok {
		out.Gateway = via.Addr.String() // IPv4 over an IPv6 gateway (RFC 8950)
	}
	if r.Src != nil {
		out.Source = r.Src.String()
	}
	return out, nil
}
