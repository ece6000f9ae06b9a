package lab

import (
	"cmp"
	"fmt"
	"net/netip"
	"strconv"
	"testing"
	"time"
)

// The names of the interfaces in both hosts of a Pair.
const (
	DataDev    = "data0"
	ControlDev = "ctl0"
)

// Options of a Pair. The zero value is a fast link of MTU 1500 with cubic.
type Options struct {
	MTU  int   // of the data link; 0 means 1500
	Rate int64 // of the data link in each direction, bit/s of frames without preamble and gap; 0 means no cap
	// Congestion is the congestion control of traffic over the links; empty means cubic. The default of a CI
	// machine is often bbr, which paces and so hides the effects of the link.
	Congestion string
	Control    bool // join the hosts by a second link, only for control
}

// Link is one veth between the hosts of a Pair: the same name at both ends, and an IPv4 and an IPv6 address
// at each.
type Link struct {
	Dev    string
	A4, B4 netip.Addr
	A6, B6 netip.Addr
}

// Pair is two hosts joined by one or two links.
type Pair struct {
	A, B    *Host
	Data    Link
	Control Link // zero without Options.Control
}

// NewPair builds hosts a and b in their own lab.
func NewPair(t testing.TB, o Options) *Pair {
	t.Helper()
	l := New(t)
	p := &Pair{A: l.Host("a"), B: l.Host("b")}
	p.Data = l.join(p.A, p.B, DataDev, 77, o.MTU, o.Congestion)
	if o.Rate > 0 {
		p.A.limit(DataDev, o.Rate)
		p.B.limit(DataDev, o.Rate)
	}
	if o.Control {
		p.Control = l.join(p.A, p.B, ControlDev, 78, 0, o.Congestion)
	}
	return p
}

// join connects two hosts by a veth with the addresses 10.NET.0.1 and .2,
// fd00:NET::1 and ::2.
func (l *Lab) join(a, b *Host, dev string, net, mtu int, congestion string) Link {
	l.t.Helper()
	size := strconv.Itoa(cmp.Or(mtu, 1500))
	l.must("ip", "link", "add", dev, "netns", a.netns, "mtu", size, "type", "veth", "peer", "name", dev, "netns", b.netns, "mtu", size)
	return l.address(a, b, dev, net, congestion)
}

// address brings up the devices of a link and gives them addresses and routes.
func (l *Lab) address(a, b *Host, dev string, net int, congestion string) Link {
	l.t.Helper()
	congestion = cmp.Or(congestion, "cubic")
	v4 := func(host int) string { return fmt.Sprintf("10.%d.0.%d", net, host) }
	v6 := func(host int) string { return fmt.Sprintf("fd00:%d::%d", net, host) }
	for i, h := range []*Host{a, b} {
		h.IP("addr", "add", v4(i+1)+"/24", "dev", dev)
		// No duplicate address detection: it keeps an address unusable for a second.
		h.IP("addr", "add", v6(i+1)+"/64", "dev", dev, "nodad")
		h.IP("link", "set", dev, "up")
		// A child namespace refuses the sysctl, but the kernel applies the attribute of a route.
		h.IP("route", "replace", v4(0)+"/24", "dev", dev, "src", v4(i+1), "congctl", congestion)
		h.IP("-6", "route", "replace", fmt.Sprintf("fd00:%d::/64", net), "dev", dev, "metric", "128", "congctl", congestion) // the kernel's own has 256
	}
	return Link{
		Dev: dev,
		A4:  netip.MustParseAddr(v4(1)), B4: netip.MustParseAddr(v4(2)),
		A6: netip.MustParseAddr(v6(1)), B6: netip.MustParseAddr(v6(2)),
	}
}

// limit limits what an interface sends with a token bucket (tc-tbf(8)), which counts frames without preamble,
// check sum and gap. A bucket below 256 KB reduces the rate: the kernel passes 64 KB at a time.
func (h *Host) limit(dev string, rate int64) {
	h.lab.t.Helper()
	const bucketTime, queueTime = time.Millisecond, 20 * time.Millisecond
	perSecond := rate / 8
	burst := max(256<<10, perSecond*int64(bucketTime)/int64(time.Second))
	queue := burst + perSecond*int64(queueTime)/int64(time.Second)
	h.lab.must("tc", "-netns", h.netns, "qdisc", "replace", "dev", dev, "root", "tbf",
		"rate", fmt.Sprintf("%dbit", rate), "burst", fmt.Sprint(burst), "limit", fmt.Sprint(queue))
}
