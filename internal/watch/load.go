package watch

import (
	"context"
	"fmt"
	"net"
	"slices"
	"time"

	"thru/internal/bus"
	"thru/internal/control"
	"thru/internal/measure"
	"thru/internal/unit"
	"thru/internal/watch/record"
	"thru/internal/watch/schedule"
)

// loadTime is how long the other traffic of a path is measured before and after a turn.
const loadTime = time.Second

// load is the other traffic at one end of a path, in the direction of the pair.
type load struct {
	end   string
	sends bool
	bps   float64
	share float64 // of the rate of the link
	bar   float64 // above which a turn is deferred; 0: none
	err   error   // why it is not known
}

// load measures the other traffic of a path, without probes: that of the busier end. It is not known if that of one end is not, and the other one is idle.
func (h *Hosts) load(ctx context.Context, p record.Pair, ends map[string]*control.EndPoint) load {
	if h.Link.RateBps == 0 {
		return load{err: fmt.Errorf("the rate of the link is not known")}
	}
	both := make([]load, 2)
	unit.AtMost(2, 2, func(i int) {
		names := []string{p.From, p.To}
		l := load{end: names[i], sends: i == 0, bar: h.Bar}
		l.bps, l.err = traffic(ctx, ends[names[i]], ends[names[1-i]], l.sends)
		l.bps = max(0, l.bps-h.probesAt(l.end))
		l.share = l.bps / float64(h.Link.RateBps)
		both[i] = l
	})
	a, b := both[0], both[1]
	switch {
	case a.isOver() && !b.isOver(), a.err != nil && !b.isOver(), a.err == nil && b.err == nil && a.share >= b.share:
		return a
	}
	return b
}

// isOver reports whether the other traffic is above the bar.
func (l load) isOver() bool { return l.err == nil && l.bar > 0 && l.share > l.bar }

// Error implements error, for a load above the bar.
func (l load) Error() string {
	return fmt.Sprintf("%s %s %s of other traffic, %s of the link; the bar is %s", l.end, map[bool]string{true: "sends", false: "receives"}[l.sends], unit.Rate(l.bps), unit.Percent(100*l.share), unit.Percent(100*l.bar))
}

// probesAt returns what the probes of this watch make an end send, and receive, in bit/s.
func (h *Hosts) probesAt(end string) float64 {
	if h.ProbeEvery == 0 {
		return 0
	}
	n := len(unit.Filtered(h.probed(), func(p record.Pair) bool { return p.From == end || p.To == end }))
	return float64(n) * 8 * schedule.ProbeBytes / 2 / h.ProbeEvery.Seconds()
}

// traffic returns what an end sends to, or receives from, the network of another end, by the counters of its interface, in bit/s.
func traffic(ctx context.Context, e, other *control.EndPoint, sends bool) (float64, error) {
	m := bus.FactsRequest{LoadNs: int64(loadTime)}
	if other.Name != control.Local || e.Name == control.Local { // nobody dials this machine from elsewhere
		m.Peer = other.DataHosts[0]
	}
	r, err := bus.Call(ctx, e, bus.Facts, m)
	if err != nil {
		return 0, err
	}
	name := interfaceOf(r, e.DataHosts[0])
	unread := slices.ContainsFunc(r.Facts.NotChecked, func(n measure.NotChecked) bool { return n.Covers("load.interfaces") })
	if name == "" || r.Facts.Load == nil || unread {
		return 0, fmt.Errorf("the interface of %s to %s, or its counters, are not known", e.Name, other.Name)
	}
	for _, i := range r.Facts.Load.Interfaces { // those that carried anything
		switch {
		case i.Name == name && sends:
			return i.TxBps, nil
		case i.Name == name:
			return i.RxBps, nil
		}
	}
	return 0, nil
}

// interfaceOf returns the interface of the route, else that with the address at which the end is dialled; empty: it is not known.
func interfaceOf(r bus.FactsReply, addr string) string {
	if r.Route != nil {
		return r.Route.Interface
	}
	i := slices.IndexFunc(r.Facts.Interfaces, func(i measure.Interface) bool {
		return slices.ContainsFunc(i.Addrs, func(a string) bool {
			ip, _, err := net.ParseCIDR(a)
			return err == nil && ip.Equal(net.ParseIP(addr))
		})
	})
	if i < 0 {
		return ""
	}
	return r.Facts.Interfaces[i].Name
}
