package host

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"thru/internal/fault"
	"thru/internal/measure"
)

// Route returns the kernel's route to dst (`ip route get`). The MTU is that
// of the interface, or the path MTU that the route knows where that is less.
// An error means that there is no route.
func (h *Host) Route(dst netip.Addr) (measure.Route, error) {
	return h.RouteFrom(dst, netip.Addr{}, "")
}

// RouteFrom is Route for a socket that is bound to a source address, to a
// device, or to both; an invalid src and an empty device mean unbound.
func (h *Host) RouteFrom(dst, src netip.Addr, device string) (measure.Route, error) {
	if !dst.IsValid() {
		return measure.Route{}, errors.New("host: looking up a route: no address given")
	}
	dst = dst.Unmap()
	device = cmp.Or(device, dst.Zone())
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
		out.Source = src.Unmap().String() // the kernel does not repeat a given source
	}
	out.NextHops, out.Hash = h.nextHops(dst, src, device)
	return out, nil
}

// nextHops returns the next hops of the routing table entry that dst matches,
// where it has several, and the hash policy that chooses one. Kernels before
// 4.13 report no next hops.
func (h *Host) nextHops(dst, src netip.Addr, device string) (all []measure.NextHop, hash string) {
	o := routeOptions(src, device)
	o.FIBMatch = true
	routes, err := netlink.RouteGetWithOptions(net.IP(dst.WithZone("").AsSlice()), &o)
	if err != nil || len(routes) == 0 || len(routes[0].MultiPath) < 2 {
		return nil, ""
	}
	for _, n := range routes[0].MultiPath {
		x := measure.NextHop{Weight: n.Hops + 1}
		if l, err := netlink.LinkByIndex(n.LinkIndex); err == nil {
			x.Interface = l.Attrs().Name
		}
		if n.Gw != nil {
			x.Gateway = n.Gw.String()
		} else if via, ok := n.Via.(*netlink.Via); ok {
			x.Gateway = via.Addr.String()
		}
		all = append(all, x)
	}
	family := "ipv4"
	if dst.Is6() {
		family = "ipv6"
	}
	policy, err := h.fs.Number("proc/sys/net/" + family + "/fib_multipath_hash_policy")
	if policies := []string{measure.HashLayer3, measure.HashLayer4, measure.HashInner, measure.HashCustom}; err == nil && policy >= 0 && int(policy) < len(policies) {
		hash = policies[policy]
	}
	return all, hash
}

// running is the kernel that this program runs on. It asks drivers by ethtool
// and the rest by rtnetlink, which answers for the calling thread's network
// namespace (rtnetlink(7)). Each request opens and closes a socket.
type running struct{ ethtool }

func runningKernel() kernel { return running{} }

// rxRing requests the statistics of one interface. It leaves out the virtual
// functions of a NIC, which take long to list, by not asking for them
// (IFLA_EXT_MASK).
func (running) rxRing(name string) (uint64, error) {
	req := nl.NewNetlinkRequest(unix.RTM_GETLINK, 0)
	req.AddData(nl.NewIfInfomsg(unix.AF_UNSPEC))
	req.AddData(nl.NewRtAttr(unix.IFLA_IFNAME, nl.ZeroTerminated(name)))
	answers, err := req.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWLINK)
	if err != nil {
		return 0, fmt.Errorf("host: reading the kernel's counters of %s: %w", name, err)
	}
	if len(answers) == 0 {
		return 0, errors.New("the kernel does not answer")
	}
	return parseRxRing(answers[0])
}

// qdisc adds up the queueing disciplines of one interface.
func (r running) qdisc(name string) (measure.Qdisc, error) {
	index, err := r.index(name)
	if err != nil {
		return measure.Qdisc{}, err
	}
	own, err := listQdiscs(index)
	if err != nil {
		return measure.Qdisc{}, fmt.Errorf("host: reading the queueing discipline of %s: %w", name, err)
	}
	return queueing(own)
}

// index returns the number of an interface (netdevice(7), SIOCGIFINDEX).
func (r running) index(name string) (index int32, err error) {
	err = withSocket(func(fd int) error {
		i, err := unix.NewIfreq(name)
		if err != nil {
			return err
		}
		if err := unix.IoctlIfreq(fd, unix.SIOCGIFINDEX, i); err != nil {
			return err
		}
		index = int32(i.Uint32())
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("host: looking up the index of interface %s: %w", name, err)
	}
	return index, nil
}
