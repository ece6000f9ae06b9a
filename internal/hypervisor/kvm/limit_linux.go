package kvm

import (
	"fmt"

	"github.com/vishvananda/netlink"

	"thru/internal/measure"
)

// ingressParent is the parent of the ingress filters (tc(8), "ffff:").
const ingressParent = 0xFFFF0000

// portLimits requests the rate limits of an interface by its queueing
// disciplines, such as libvirt's <bandwidth> and Proxmox's rate=.
func portLimits(name string) (l limits, err error) {
	fail := func(err error) (limits, error) {
		return l, fmt.Errorf("kvm: asking the kernel for the limits of %s: %w", name, err)
	}
	link, err := netlink.LinkByName(name)
	if err != nil {
		return fail(err)
	}
	queues, err := netlink.QdiscList(link)
	if err != nil {
		return fail(err)
	}
	var classes []netlink.Class
	var filters []netlink.Filter
	for _, q := range queues {
		switch q.Type() {
		case "htb":
			classes, err = netlink.ClassList(link, netlink.HANDLE_NONE)
		case "ingress":
			filters, err = netlink.FilterList(link, ingressParent)
		case "clsact":
			filters, err = netlink.FilterList(link, netlink.HANDLE_MIN_INGRESS)
		}
		if err != nil {
			return fail(err)
		}
	}
	return limitsOf(name, queues, classes, filters), nil
}

// limitsOf returns the rates in the kernel's answers about one interface.
func limitsOf(name string, queues []netlink.Qdisc, classes []netlink.Class, filters []netlink.Filter) (l limits) {
	for _, q := range queues {
		if q.Attrs().Parent != netlink.HANDLE_ROOT {
			continue
		}
		switch x := q.(type) {
		case *netlink.Tbf:
			l.out = shaped(x.Rate, x.Peakrate)
		case *netlink.Htb:
			if c, ok := only(classes); ok {
				l.out = shaped(c.Rate, c.Ceil)
			} else {
				l.why = fmt.Sprintf("%s has %d classes of HTB: tc class show dev %s", name, len(classes), name)
			}
		default:
			if isLimiter(q.Type()) {
				l.why = fmt.Sprintf("thru does not read the rate of %s: tc qdisc show dev %s", q.Type(), name)
			}
		}
	}
	for _, f := range filters {
		switch p, isRead := policeOf(f); {
		case !isRead:
			l.why = fmt.Sprintf("thru does not read the ingress filters of %s: tc filter show dev %s parent ffff:", name, name)
		case p != nil && (l.in == nil || int64(p.Rate)*8 < *l.in.AverageBps):
			l.in = shaped(uint64(p.Rate), uint64(p.PeakRate))
		}
	}
	return l
}

// only returns the class of a discipline that has exactly one.
func only(classes []netlink.Class) (*netlink.HtbClass, bool) {
	if len(classes) != 1 {
		return nil, false
	}
	c, ok := classes[0].(*netlink.HtbClass)
	return c, ok
}

// isLimiter reports whether another kind of discipline limits a rate (tc(8)).
func isLimiter(kind string) bool {
	return map[string]bool{"hfsc": true, "cbq": true, "cake": true, "netem": true, "taprio": true}[kind]
}

// policeOf returns the policer of a filter; nil where there is none.
func policeOf(f netlink.Filter) (p *netlink.PoliceAction, isRead bool) {
	var actions []netlink.Action
	switch x := f.(type) {
	case *netlink.U32:
		p, actions = x.Police, x.Actions
	case *netlink.MatchAll:
		actions = x.Actions
	default:
		return nil, false
	}
	for _, a := range actions {
		if police, ok := a.(*netlink.PoliceAction); ok {
			p = police
		}
	}
	if p != nil && p.Rate == 0 {
		p = nil
	}
	return p, true
}

// shaped converts the kernel's rates in bytes; nil where there is none.
func shaped(rate, peak uint64) *measure.Shaping {
	const most = 1 << 50
	if rate == 0 || rate > most {
		return nil
	}
	s := &measure.Shaping{Enabled: new(true), AverageBps: new(int64(rate * 8))}
	if peak > rate && peak < most {
		s.PeakBps = new(int64(peak * 8))
	}
	return s
}
