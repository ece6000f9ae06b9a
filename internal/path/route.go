package path

import (
	"context"
	"fmt"
	"net/netip"

	"thru/internal/host"
	"thru/internal/measure"
)

// route is how an end reaches the other one, by its own account.
type route struct {
	route   *measure.Route
	why     string // it is not known
	claim   int    // MTU by the settings of this host; 0: not known
	learned int    // MTU that routers have told the kernel of before; 0: none
}

// routeTo asks the host and the kernel.
func routeTo(ctx context.Context, h *host.Host, device string, local, remote netip.AddrPort) route {
	r, err := h.RouteFrom(remote.Addr(), local.Addr(), device)
	if err != nil {
		return route{why: err.Error(), claim: kernelMTU(ctx, device, local.Addr(), remote)}
	}
	w := route{route: &r}
	w.claim, w.learned = claimOf(r, remote.Addr())
	return w
}

// ofMTU is what TCP takes for the MTU, in words; "" where the kernel does not say.
func (t tcpState) ofMTU() string {
	if t.info.PMTU == nil || t.info.SendMSS == nil {
		return ""
	}
	return fmt.Sprintf("TCP there takes the path for %d bytes, and sends segments of %d", *t.info.PMTU, *t.info.SendMSS)
}
