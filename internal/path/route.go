package path

import (
	"context"
	"fmt"
	"net/netip"

	"thru/internal/host"
	"thru/internal/measure"
)

// route is the route of an end to the other one, by its own system.
type route struct {
	route   *measure.Route
	why     string // why it is not known
	claim   int    // MTU by the settings of this host; 0: not known
	learned int    // MTU that routers have reported to the kernel before; 0: none
}

// routeTo reads the route from the host and the kernel.
func routeTo(ctx context.Context, h *host.Host, device string, local, remote netip.AddrPort) route {
	r, err := h.RouteFrom(remote.Addr(), local.Addr(), device)
	if err != nil {
		return route{why: err.Error(), claim: kernelMTU(ctx, device, local.Addr(), remote)}
	}
	w := route{route: &r}
	w.claim, w.learned = claimOf(r, remote.Addr())
	return w
}

// ofMTU returns TCP's view of the MTU, in words; "" where the kernel does not report it.
func (t tcpState) ofMTU() string {
	if t.info.PMTU == nil || t.info.SendMSS == nil {
		return ""
	}
	return fmt.Sprintf("TCP there assumes a path MTU of %d bytes, and sends segments of %d", *t.info.PMTU, *t.info.SendMSS)
}
