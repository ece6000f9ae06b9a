package tune

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"thru/internal/cause/knob"
	"thru/internal/unit"
)

// maxRoutes limits how many routes are listed, maxRead how many are read.
const maxRoutes, maxRead = 32, 100_000

// route is a kernel route, with its attributes unchanged.
type route struct {
	head  [unix.SizeofRtMsg]byte
	attrs []attribute
}

// attribute is a netlink attribute.
type attribute struct {
	kind  uint16
	value []byte
}

// parseRoute reads an answer of RTM_GETROUTE.
func parseRoute(b []byte) (route, error) {
	var r route
	if len(b) < len(r.head) {
		return r, errors.New("the kernel's answer is too short")
	}
	copy(r.head[:], b)
	var err error
	r.attrs, err = attributes(b[len(r.head):])
	return r, err
}

// attributes parses a sequence of attributes.
func attributes(b []byte) (list []attribute, err error) {
	for len(b) >= unix.SizeofRtAttr {
		size := int(nl.NativeEndian().Uint16(b))
		if size < unix.SizeofRtAttr || size > len(b) {
			return nil, errors.New("the kernel's answer is not a list of attributes")
		}
		list = append(list, attribute{nl.NativeEndian().Uint16(b[2:]), b[unix.SizeofRtAttr:size]})
		b = b[min((size+unix.RTA_ALIGNTO-1)&^(unix.RTA_ALIGNTO-1), len(b)):]
	}
	return list, nil
}

// kindMask removes the flags of an attribute's kind, and nextHop is the kind
// RTA_NH_ID (include/uapi/linux/netlink.h, rtnetlink.h).
const kindMask, nextHop = 0x3fff, 30

// at returns the value of an attribute, nil where there is none.
func at(list []attribute, kind uint16) []byte {
	for _, a := range list {
		if a.kind&kindMask == kind {
			return a.value
		}
	}
	return nil
}

// number returns a 32-bit attribute, 0 where there is none.
func (r route) number(kind uint16) uint32 {
	if v := at(r.attrs, kind); len(v) == 4 {
		return nl.NativeEndian().Uint32(v)
	}
	return 0
}

// Fields of struct rtmsg (rtnetlink(7)).
func (r route) family() byte   { return r.head[0] }
func (r route) protocol() byte { return r.head[5] }
func (r route) kind() byte     { return r.head[7] }
func (r route) flags() uint32  { return nl.NativeEndian().Uint32(r.head[8:]) }
func (r route) table() uint32 {
	if t := r.number(unix.RTA_TABLE); t != 0 {
		return t
	}
	return uint32(r.head[4])
}

// to returns the destination: "10.0.0.0/24"; "0.0.0.0/0" or "::/0" for a
// default route.
func (r route) to() (netip.Prefix, bool) {
	ip := netip.IPv4Unspecified()
	if r.family() == unix.AF_INET6 {
		ip = netip.IPv6Unspecified()
	}
	if v := at(r.attrs, unix.RTA_DST); v != nil {
		var ok bool
		if ip, ok = netip.AddrFromSlice(v); !ok {
			return netip.Prefix{}, false
		}
	}
	p, err := ip.Prefix(int(r.head[1]))
	return p, err == nil
}

// key returns a route in the form of knob.RouteCongestion: "10.0.0.0/24 dev
// eth0 table main metric 0".
func (r route) key(iface string) string {
	to, _ := r.to()
	return fmt.Sprintf("%s dev %s table main metric %d", to, iface, r.number(unix.RTA_PRIORITY))
}

// congestion returns the name of the route's own congestion control.
func (r route) congestion() (string, error) {
	metrics, err := attributes(at(r.attrs, unix.RTA_METRICS))
	return unix.ByteSliceToString(at(metrics, unix.RTAX_CC_ALGO)), err
}

// routeRow returns the row of the congestion control of connections by a
// route.
func routeRow(f files) row {
	return row{
		knob: knob.RouteCongestion, scope: knob.OfInterface,
		form: func(value string) (string, error) {
			if strings.TrimSpace(value) == "" {
				return "", nil
			}
			return word(value)
		},
		names: routeKeys,
		read: func(key string) (string, error) {
			r, err := routeOf(key)
			if err != nil {
				return "", err
			}
			return r.congestion()
		},
		set: func(key, _, value string) error {
			r, err := routeOf(key)
			if err == nil {
				err = r.restorable()
			}
			if err != nil {
				return err
			}
			return r.replace(value)
		},
		states: func(key, _ string) (possible, refused string) {
			possible, _ = f.Text("proc/sys/net/ipv4/tcp_available_congestion_control")
			if r, err := routeOf(key); err != nil {
				refused = err.Error()
			} else if err := r.restorable(); err != nil {
				refused = err.Error()
			} else {
				refused = privilege()
			}
			return possible, refused
		},
	}
}

// routeKeys lists the routes by these interfaces that a connection may take:
// of the main table, to one host or network, without link-local destinations.
func routeKeys(interfaces []string) []string {
	var keys []string
	for _, iface := range interfaces {
		a, _, err := linkOf(iface)
		if err != nil {
			continue
		}
		all, err := mainRoutes()
		if err != nil {
			return nil
		}
		for _, r := range all {
			to, ok := r.to()
			if key := r.key(iface); ok && r.number(unix.RTA_OIF) == uint32(a.Index) && !to.Addr().IsLinkLocalUnicast() && !slices.Contains(keys, key) && len(keys) < maxRoutes {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// mainRoutes requests the unicast routes of the main table with one next hop.
func mainRoutes() ([]route, error) {
	var list []route
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		req := nl.NewNetlinkRequest(unix.RTM_GETROUTE, unix.NLM_F_DUMP)
		req.AddData(nl.NewIfInfomsg(family))
		var broken error
		err := req.ExecuteIter(unix.NETLINK_ROUTE, unix.RTM_NEWROUTE, func(b []byte) bool {
			r, err := parseRoute(b)
			if err == nil && r.table() == unix.RT_TABLE_MAIN && r.kind() == unix.RTN_UNICAST && r.flags()&unix.RTM_F_CLONED == 0 {
				list = append(list, r)
			}
			if len(list) > maxRead {
				err = fmt.Errorf("there are more than %d routes", maxRead)
			}
			broken = errors.Join(broken, err)
			return broken == nil
		})
		if err = errors.Join(err, broken); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// routeOf returns the route of a key.
func routeOf(key string) (route, error) {
	words := strings.Fields(key)
	if len(words) != 7 || words[1] != "dev" {
		return route{}, fmt.Errorf("%.120q is not a route: %w", key, errNone)
	}
	a, _, err := linkOf(words[2])
	if err != nil {
		return route{}, err
	}
	all, err := mainRoutes()
	if err != nil {
		return route{}, err
	}
	found := unit.Filtered(all, func(r route) bool { return r.number(unix.RTA_OIF) == uint32(a.Index) && r.key(words[2]) == key })
	switch len(found) {
	case 0:
		return route{}, fmt.Errorf("there is no route %s: %w", key, errNone)
	case 1:
		return found[0], found[0].alone(all)
	}
	return route{}, fmt.Errorf("%w: there are %d routes %s", errRefused, len(found), key)
}

// alone refuses a route that shares destination and metric with others: the
// kernel would replace the first of them.
func (r route) alone(all []route) error {
	to, _ := r.to()
	n := 0
	for _, o := range all {
		if t, _ := o.to(); t == to && o.number(unix.RTA_PRIORITY) == r.number(unix.RTA_PRIORITY) && o.head[3] == r.head[3] {
			n++
		}
	}
	if n != 1 {
		return fmt.Errorf("%w: there are %d routes to %s of the same metric", errRefused, n, to)
	}
	return nil
}

// restorable refuses a route that a replacement could not restore: it has
// several next hops, or was learned from a router and expires.
func (r route) restorable() error {
	expires := false
	if c := at(r.attrs, unix.RTA_CACHEINFO); len(c) >= 12 { // struct rta_cacheinfo: clntref, lastuse, expires
		expires = nl.NativeEndian().Uint32(c[8:]) != 0
	}
	switch {
	case at(r.attrs, unix.RTA_MULTIPATH) != nil:
		return fmt.Errorf("%w: the route has several next hops", errRefused)
	case r.protocol() == unix.RTPROT_RA || expires:
		return fmt.Errorf("%w: the route comes from a router advertisement and expires", errRefused)
	}
	return nil
}

// message is a part of a netlink message, passed on unchanged.
type message []byte

func (m message) Len() int          { return len(m) }
func (m message) Serialize() []byte { return m }

// replace sets the congestion control of a route, or removes it for "", and
// keeps all else: the route goes back to the kernel as it was read.
func (r route) replace(congestion string) error {
	old, err := attributes(at(r.attrs, unix.RTA_METRICS))
	if err != nil {
		return err
	}
	metrics := nl.NewRtAttr(unix.RTA_METRICS, nil)
	some := congestion != ""
	for _, m := range old {
		if m.kind != unix.RTAX_CC_ALGO {
			metrics.AddRtAttr(int(m.kind), m.value)
			some = true
		}
	}
	if congestion != "" {
		metrics.AddRtAttr(unix.RTAX_CC_ALGO, nl.ZeroTerminated(congestion))
	}
	req := nl.NewNetlinkRequest(unix.RTM_NEWROUTE, unix.NLM_F_ACK|unix.NLM_F_REPLACE)
	head := r.head
	nl.NativeEndian().PutUint32(head[8:], r.flags()&unix.RTNH_F_ONLINK) // the other flags are set by the kernel
	req.AddData(message(head[:]))
	object := at(r.attrs, nextHop) != nil
	for _, a := range r.attrs {
		switch {
		case a.kind == unix.RTA_METRICS, a.kind == unix.RTA_CACHEINFO:
		case object && (a.kind == unix.RTA_OIF || a.kind == unix.RTA_GATEWAY || a.kind == unix.RTA_VIA): // the next hop object has them
		default:
			req.AddData(nl.NewRtAttr(int(a.kind), a.value))
		}
	}
	if some {
		req.AddData(metrics)
	}
	_, err = req.Execute(unix.NETLINK_ROUTE, 0)
	return err
}
