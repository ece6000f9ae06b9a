package host

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"

	"thru/internal/fault"
	"thru/internal/measure"
)

// Route is how the kernel would send a packet to dst (`ip route get`). The
// MTU is that of the interface, or what the route knows of the path where
// that is less. An error means that there is no way.
func (h *Host) Route(dst netip.Addr) (measure.Route, error) {
	return h.RouteFrom(dst, netip.Addr{}, "")
}

// RouteFrom is Route for a socket that is bound to a source address, to a
// device, or to both; invalid and empty: it is not.
func (h *Host) RouteFrom(dst, src netip.Addr, device string) (measure.Route, error) {
	if !dst.IsValid() {
		return measure.Route{}, errors.New("host: looking up a route: no address given")
	}
	dst = dst.Unmap()
	if device == "" {
		device = dst.Zone()
	}
	command := "ip route get " + dst.WithZone("").String()
	if src.IsValid() {
		command += " from " + src.Unmap().WithZone("").String()
	}
	if device != "" {
		command += " oif " + device
	}
	r, err := lookup(dst, src, device)
	if err != nil {
		return measure.Route{}, fault.Failf("see `"+command+"`", "host: looking up the route to %s: %w", dst, err)
	}
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
	} else if src.IsValid() {
		out.Source = src.Unmap().String() // the kernel does not repeat what it was told
	}
	return out, nil
}
