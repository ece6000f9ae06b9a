package kvm

import (
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
)

// TestLimitsOf: limits by libvirt's <bandwidth>, Proxmox's rate= and manual
// tc.
func TestLimitsOf(t *testing.T) {
	root := netlink.QdiscAttrs{Parent: netlink.HANDLE_ROOT}
	htb := &netlink.Htb{QdiscAttrs: root}
	class := &netlink.HtbClass{Rate: 125_000_000, Ceil: 250_000_000}
	police := func(rate uint32) *netlink.PoliceAction { return &netlink.PoliceAction{Rate: rate} }
	for name, tt := range map[string]struct {
		queues  []netlink.Qdisc
		classes []netlink.Class
		filters []netlink.Filter
		out, in any // bits a second
		peak    any
		why     string
	}{
		"none":           {queues: []netlink.Qdisc{&netlink.FqCodel{QdiscAttrs: root}}},
		"nothing at all": {},
		"bucket":         {queues: []netlink.Qdisc{&netlink.Tbf{QdiscAttrs: root, Rate: 12_500_000}}, out: int64(100e6)},
		"bucket below":   {queues: []netlink.Qdisc{&netlink.Tbf{QdiscAttrs: netlink.QdiscAttrs{Parent: 0x10001}, Rate: 12_500_000}}},
		"libvirt": {[]netlink.Qdisc{htb, &netlink.Ingress{}}, []netlink.Class{class}, []netlink.Filter{&netlink.U32{Police: police(1_250_000)}},
			int64(1e9), int64(10e6), int64(2e9), ""},
		"several classes": {queues: []netlink.Qdisc{htb}, classes: []netlink.Class{class, class}, why: "2 classes"},
		"matchall":        {filters: []netlink.Filter{&netlink.MatchAll{Actions: []netlink.Action{police(5000), police(250)}}, &netlink.U32{Police: police(0)}}, in: int64(2000)},
		"Proxmox":         {[]netlink.Qdisc{htb}, []netlink.Class{&netlink.HtbClass{Rate: 1000, Ceil: 1000}}, []netlink.Filter{&netlink.GenericFilter{FilterType: "basic"}}, int64(8000), nil, nil, "parent ffff:"},
		"another":         {queues: []netlink.Qdisc{&netlink.GenericQdisc{QdiscAttrs: root, QdiscType: "hfsc"}}, why: "hfsc"},
		"absurd":          {queues: []netlink.Qdisc{&netlink.Tbf{QdiscAttrs: root, Rate: 1 << 63}}},
	} {
		l := limitsOf("tap0", tt.queues, tt.classes, tt.filters)
		var out, in, peak any
		if l.out != nil {
			out, peak = show(l.out.AverageBps), show(l.out.PeakBps)
		}
		if l.in != nil {
			in = show(l.in.AverageBps)
		}
		check(t, name, []any{out, in, peak}, []any{tt.out, tt.in, tt.peak})
		if !strings.Contains(l.why, tt.why) || (l.why == "") != (tt.why == "") {
			t.Errorf("%s: %q", name, l.why)
		}
	}
}
