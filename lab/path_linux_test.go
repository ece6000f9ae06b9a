package lab

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"thru/internal/measure"
	"thru/internal/path"
)

// answerProbe is the helper that answers one probe.
func answerProbe() error {
	r, err := path.Open(context.Background(), path.Listen{}, nil)
	if err != nil {
		return err
	}
	fmt.Println(r.Port(), r.Token())
	<-r.Done()
	return nil
}

// probePath is the helper that dials.
func probePath(target, token string, quick bool) error {
	p, err := path.Probe(context.Background(), path.Dial{Targets: []string{target}, Token: token, Quick: quick})
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(p)
}

// probe probes the path from a to an address of b.
func probe(t *testing.T, a, b *Host, addr netip.Addr, how string) measure.Path {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), programTimeout)
	defer cancel()
	cmd := helper(t, ctx, b, "path-answer")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	port, token, ok := strings.Cut(strings.TrimSpace(line), " ")
	if err != nil || !ok {
		t.Fatalf("the answering end says %q: %v", line, err)
	}
	text, err := output(helper(t, ctx, a, "path-probe", net.JoinHostPort(addr.String(), port), token, how))
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the answering end: %v", err)
	}
	var p measure.Path
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		t.Fatal(err)
	}
	return p
}

// chain is host a, some routers, and host b.
type chain struct {
	a, b    *Host
	routers []*Host
	links   []Link
}

// newChain connects them by links with these MTUs, one more than routers.
func newChain(t *testing.T, mtus ...int) *chain {
	t.Helper()
	Require(t, Program("nft"))
	l := New(t)
	c := &chain{a: l.Host("a")}
	hosts := []*Host{c.a}
	for i := range len(mtus) - 1 {
		r := l.Host(fmt.Sprint("r", i))
		r.Sysctl("net.ipv4.ip_forward", "1")
		r.Sysctl("net.ipv6.conf.all.forwarding", "1")
		c.routers, hosts = append(c.routers, r), append(hosts, r)
	}
	c.b = l.Host("b")
	hosts = append(hosts, c.b)
	for _, h := range hosts { // duplicate address detection would delay the first packets by a second
		h.Sysctl("net.ipv6.conf.default.accept_dad", "0")
	}
	for i, mtu := range mtus {
		c.links = append(c.links, l.join(hosts[i], hosts[i+1], fmt.Sprint("n", i), 80+i, mtu, "cubic"))
	}
	for i, h := range hosts {
		if i < len(hosts)-2 {
			right := c.links[i]
			for _, far := range c.links[i+1:] {
				h.IP("route", "add", netip.PrefixFrom(far.A4, 24).Masked().String(), "via", right.B4.String())
			}
			h.IP("-6", "route", "add", "default", "via", right.B6.String())
		}
		if i > 1 {
			left := c.links[i-1]
			for _, far := range c.links[:i-1] {
				h.IP("route", "add", netip.PrefixFrom(far.A4, 24).Masked().String(), "via", left.A4.String())
				h.IP("-6", "route", "add", netip.PrefixFrom(far.A6, 64).Masked().String(), "via", left.A6.String())
			}
		}
	}
	return c
}

// four and six are the far end's addresses.
func (c *chain) four() netip.Addr { return c.links[len(c.links)-1].B4 }
func (c *chain) six() netip.Addr  { return c.links[len(c.links)-1].B6 }

// nearest returns the addresses that the router next to a, and the one next to b, report from to that end.
func (c *chain) nearest(family netip.Addr) (first, last netip.Addr) {
	if family.Is4() {
		return c.links[0].B4, c.links[len(c.links)-1].A4
	}
	return c.links[0].B6, c.links[len(c.links)-1].A6
}

// reportedBy returns the MTU that a router reports, if one does, with its address.
func reportedBy(m measure.PathMTU, router netip.Addr) measure.PathMTU {
	if m.Router != nil {
		m.RouterAddr = router.String()
	}
	return m
}

// rules loads rules into the forward chain of a router, and removes earlier ones.
func (c *chain) rules(router int, rules ...string) {
	c.a.lab.t.Helper()
	c.routers[router].Nft("table inet path\ndelete table inet path\ntable inet path {\nchain forward {\ntype filter hook forward priority 0\n" +
		strings.Join(rules, "\n") + "\n}\n}\n")
}

// wantMTU compares the result of a path MTU search.
func wantMTU(t *testing.T, what string, got *measure.PathMTU, want measure.PathMTU) {
	t.Helper()
	if got == nil {
		t.Errorf("%s: no MTU", what)
		return
	}
	g := *got
	if g.Probes == 0 {
		t.Errorf("%s: no probes", what)
	}
	g.Probes = 0
	if !reflect.DeepEqual(g, want) {
		a, _ := json.Marshal(g)
		b, _ := json.Marshal(want)
		t.Errorf("%s: %s, want %s", what, a, b)
	}
}

// missing lists the facts that could not be read.
func missing(p measure.Path) []string {
	var all []string
	for _, m := range p.Missing {
		all = append(all, m.Fact)
	}
	slices.Sort(all)
	return all
}

// TestProbeHealthy: no false alarm on a healthy pair, with no, one and two routers.
func TestProbeHealthy(t *testing.T) {
	t.Parallel()
	for routers := range 3 {
		t.Run(fmt.Sprint(routers, " routers"), func(t *testing.T) {
			t.Parallel()
			c := newChain(t, []int{1500, 1500, 1500}[:routers+1]...)
			for _, addr := range []netip.Addr{c.four(), c.six()} {
				for _, how := range []string{"quick", "full"} {
					wantHealthy(t, probe(t, c.a, c.b, addr, how), routers)
				}
			}
		})
	}
}

// wantHealthy checks that the probe finds nothing wrong.
func wantHealthy(t *testing.T, p measure.Path, routers int) {
	t.Helper()
	for name, w := range map[string]measure.DirectionFacts{"forward": p.Forward, "back": p.Back} {
		wantMTU(t, name, w.MTU, measure.PathMTU{Bytes: 1500, Claimed: 1500, Local: true})
		if w.Hops == nil || *w.Hops != routers {
			t.Errorf("%s: hops %v, want %d", name, w.Hops, routers)
		}
		if w.UDP == nil || w.UDP.Sent == 0 || w.UDP.Got != w.UDP.Sent {
			t.Errorf("%s: UDP %+v", name, w.UDP)
		}
		if len(w.Marks) != 9 {
			t.Errorf("%s: %d marks", name, len(w.Marks))
		}
		for _, m := range w.Marks {
			if m.Sent != m.Seen || m.ECNSent != m.ECNSeen {
				t.Errorf("%s: mark %+v", name, m)
			}
		}
		if w.Route == nil || w.Route.MTU != 1500 {
			t.Errorf("%s: route %+v", name, w.Route)
		}
	}
	if h := p.Handshake; h == nil || h.RTTNs == nil || !reflect.DeepEqual(h.SYNSent, h.SYNSeen) || !reflect.DeepEqual(h.SYNACKSent, h.SYNACKSeen) ||
		h.SYNSeen.MSS == nil || !*h.SYNSeen.HasScale || !*h.SYNSeen.SACK || !*h.SYNSeen.Timestamps {
		b, _ := json.Marshal(h)
		t.Errorf("handshake %s", b)
	}
	if p.Clock == nil || max(p.Clock.OffsetNs, -p.Clock.OffsetNs) > p.Clock.BoundNs {
		t.Errorf("clock offset %+v: it is one clock", p.Clock)
	}
	if p.RTT == nil || p.RTT.Samples < 10 || p.RTT.Min <= 0 || p.RTT.Max < p.RTT.P50 {
		t.Errorf("round trips %+v", p.RTT)
	}
	want := []string(nil)
	if p.Quick {
		want = []string{"source_ports"}
	} else if p.Ports == nil || p.Ports.Directions != 1 || p.Ports.Ports != 16 {
		t.Errorf("source ports %+v", p.Ports)
	}
	if got := missing(p); !slices.Equal(got, want) {
		t.Errorf("not checked: %+v", p.Missing)
	}
}

// TestProbeMTU: the search finds the path MTU to the byte, and what limits it.
func TestProbeMTU(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name      string
		mtus      []int
		configure func(*chain)
		forward   measure.PathMTU
		back      measure.PathMTU
		how       string
	}{
		{"a router says so", []int{1500, 1400, 1500}, func(*chain) {},
			measure.PathMTU{Bytes: 1400, Claimed: 1500, Router: new(1400)}, measure.PathMTU{Bytes: 1400, Claimed: 1500, Router: new(1400)}, "quick"},
		{"black hole", []int{9000, 1391, 9000}, blackHole,
			measure.PathMTU{Bytes: 1391, Claimed: 9000, Silent: true, Jumbo: new(false)}, measure.PathMTU{Bytes: 1391, Claimed: 9000, Silent: true, Jumbo: new(false)}, "full"},
		{"one direction only", []int{9000, 9000, 9000}, func(c *chain) {
			c.rules(0, "oifname n1 meta length > 1500 drop")
		}, measure.PathMTU{Bytes: 1500, Claimed: 9000, Silent: true, Jumbo: new(false)}, measure.PathMTU{Bytes: 9000, Claimed: 9000, Local: true, Jumbo: new(true)}, "full"},
		{"random loss", []int{1500, 1500, 1500}, func(c *chain) {
			c.rules(0, "ip protocol udp numgen random mod 100 < 1 drop", "meta l4proto udp numgen random mod 100 < 1 drop", "oifname n1 meta l4proto udp meta length > 1453 drop")
		}, measure.PathMTU{Bytes: 1453, Claimed: 1500, Silent: true}, measure.PathMTU{Bytes: 1500, Claimed: 1500, Local: true}, "full"},
		{"route with an MTU", []int{1500}, func(c *chain) {
			c.a.IP("route", "replace", "10.80.0.0/24", "dev", "n0", "mtu", "1380")
			c.a.IP("-6", "route", "replace", "fd00:80::/64", "dev", "n0", "metric", "10", "mtu", "1380")
		}, measure.PathMTU{Bytes: 1380, Claimed: 1380, Local: true}, measure.PathMTU{Bytes: 1500, Claimed: 1500, Local: true}, "quick"},
		// A veth accepts 4 bytes above its MTU, for a VLAN tag (is_skb_forwardable in net/core/dev.c).
		{"peer with a smaller MTU", []int{9000}, func(c *chain) { c.b.IP("link", "set", "n0", "mtu", "1500") },
			measure.PathMTU{Bytes: 1504, Claimed: 9000, Silent: true, Jumbo: new(false)}, measure.PathMTU{Bytes: 1500, Claimed: 1500, Local: true}, "full"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := newChain(t, tt.mtus...)
			tt.configure(c)
			for _, addr := range []netip.Addr{c.four(), c.six()} {
				p := probe(t, c.a, c.b, addr, tt.how)
				first, last := c.nearest(addr)
				wantMTU(t, addr.String()+" forward", p.Forward.MTU, reportedBy(tt.forward, first))
				wantMTU(t, addr.String()+" back", p.Back.MTU, reportedBy(tt.back, last))
			}
		})
	}
}

// blackHole drops the ICMP of the routers.
func blackHole(c *chain) {
	for _, r := range c.routers {
		r.Nft(`table inet silent {
chain output {
type filter hook output priority 0
icmp type destination-unreachable drop
icmpv6 type packet-too-big drop
}
}
`)
	}
}

// TestProbeOptions: an option that the path strips from a SYN or a SYN-ACK shows as a difference between the
// ends, in that direction only.
func TestProbeOptions(t *testing.T) {
	t.Parallel()
	c := newChain(t, 1500, 1500)
	strip := func(flags, dev string) []string {
		var rules []string
		for _, o := range []string{"reset tcp option sack-perm", "reset tcp option window", "reset tcp option timestamp", "tcp option maxseg size set 1360"} {
			rules = append(rules, "oifname "+dev+" tcp flags & (syn | ack) == "+flags+" "+o)
		}
		return rules
	}
	for _, addr := range []netip.Addr{c.four(), c.six()} {
		mss := 1460
		if addr.Is6() {
			mss = 1440
		}
		c.rules(0, strip("syn", "n1")...)
		h := probe(t, c.a, c.b, addr, "quick").Handshake
		wantSYN(t, "SYN sent", h.SYNSent, mss, true)
		wantSYN(t, "SYN seen", h.SYNSeen, 1360, false)
		wantSYN(t, "SYN-ACK sent", h.SYNACKSent, mss, false)
		wantSYN(t, "SYN-ACK seen", h.SYNACKSeen, mss, false)
		c.rules(0, strip("(syn | ack)", "n0")...)
		h = probe(t, c.a, c.b, addr, "quick").Handshake
		wantSYN(t, "SYN sent", h.SYNSent, mss, true)
		wantSYN(t, "SYN seen", h.SYNSeen, mss, true)
		wantSYN(t, "SYN-ACK sent", h.SYNACKSent, mss, true)
		wantSYN(t, "SYN-ACK seen", h.SYNACKSeen, 1360, false)
	}
}

// wantSYN checks the MSS, and the presence of all other options.
func wantSYN(t *testing.T, what string, s *measure.SYN, mss int, options bool) {
	t.Helper()
	if s == nil || s.MSS == nil || *s.MSS != mss || s.HasScale == nil || *s.HasScale != options || *s.SACK != options || *s.Timestamps != options {
		b, _ := json.Marshal(s)
		t.Errorf("%s: %s, want an MSS of %d, options: %v", what, b, mss, options)
	}
}

// TestProbeOptionsOff: an option that an end does not offer does not count as stripped.
func TestProbeOptionsOff(t *testing.T) {
	t.Parallel()
	c := newChain(t, 1500)
	for _, end := range []*Host{c.a, c.b} {
		set := func(value string) {
			for _, name := range []string{"tcp_window_scaling", "tcp_sack", "tcp_timestamps"} {
				end.Sysctl("net.ipv4."+name, value)
			}
		}
		set("0")
		h := probe(t, c.a, c.b, c.four(), "quick").Handshake
		wantSYN(t, "SYN sent", h.SYNSent, 1460, end == c.b)
		wantSYN(t, "SYN seen", h.SYNSeen, 1460, end == c.b)
		wantSYN(t, "SYN-ACK sent", h.SYNACKSent, 1460, false)
		wantSYN(t, "SYN-ACK seen", h.SYNACKSeen, 1460, false)
		set("1")
	}
	c.a.Sysctl("net.ipv4.tcp_ecn", "1")
	h := probe(t, c.a, c.b, c.four(), "quick").Handshake
	for what, s := range map[string]*measure.SYN{"SYN sent": h.SYNSent, "SYN seen": h.SYNSeen, "SYN-ACK sent": h.SYNACKSent, "SYN-ACK seen": h.SYNACKSeen} {
		if s.ECN == nil || !*s.ECN {
			t.Errorf("%s: ECN %v, want it", what, s.ECN)
		}
	}
}

// TestProbeMTUsDiffer: different MTUs at the ends are no sign of a middlebox.
func TestProbeMTUsDiffer(t *testing.T) {
	t.Parallel()
	c := newChain(t, 1500, 9000)
	p := probe(t, c.a, c.b, c.four(), "quick")
	if s := p.Handshake.SYNACKSeen; s.MSS != nil || *p.Handshake.SYNACKSent.MSS != 8960 {
		t.Errorf("SYN-ACK seen with MSS %v: this end cannot tell", *s.MSS)
	}
	if !slices.Contains(missing(p), "handshake.synack_seen.mss_bytes") {
		t.Errorf("not checked: %+v", p.Missing)
	}
	wantMTU(t, "back", p.Back.MTU, measure.PathMTU{Bytes: 1500, Claimed: 9000, Router: new(1500), RouterAddr: "10.81.0.1", Jumbo: new(false)})
	wantMTU(t, "forward", p.Forward.MTU, measure.PathMTU{Bytes: 1500, Claimed: 1500, Local: true})
	// The kernel has now cached the path MTU of the router's ICMP; that must not count as the interface's
	// MTU.
	p = probe(t, c.a, c.b, c.four(), "quick")
	wantMTU(t, "back, again", p.Back.MTU, measure.PathMTU{Bytes: 1500, Claimed: 9000, Router: new(1500), RouterAddr: "10.81.0.1", Jumbo: new(false)})
}

// TestProbeDatagrams: DSCP that the path rewrites, and datagrams that it drops.
func TestProbeDatagrams(t *testing.T) {
	t.Parallel()
	c := newChain(t, 1500, 1500)
	for _, addr := range []netip.Addr{c.four(), c.six()} {
		c.rules(0, "oifname n1 ip dscp set 0", "oifname n1 ip6 dscp set 0")
		p := probe(t, c.a, c.b, addr, "quick")
		for _, m := range p.Forward.Marks {
			if m.Seen != 0 || m.ECNSeen != m.ECNSent {
				t.Errorf("forward: mark %+v", m)
			}
		}
		for _, m := range p.Back.Marks {
			if m.Seen != m.Sent || m.ECNSeen != m.ECNSent {
				t.Errorf("back: mark %+v", m)
			}
		}
		if len(p.Forward.Marks) != 9 || len(p.Back.Marks) != 9 {
			t.Errorf("%d and %d marks", len(p.Forward.Marks), len(p.Back.Marks))
		}

		c.rules(0, "oifname n0 meta l4proto udp drop")
		p = probe(t, c.a, c.b, addr, "full")
		if u := p.Forward.UDP; u == nil || u.Got != u.Sent || p.Forward.MTU == nil || p.Forward.MTU.Bytes != 1500 {
			t.Errorf("forward: UDP %+v, MTU %+v", u, p.Forward.MTU)
		}
		if u := p.Back.UDP; u == nil || u.Got != 0 || u.Sent == 0 || p.Back.MTU != nil || p.Back.Hops != nil || p.Back.Marks != nil || p.Ports != nil {
			t.Errorf("back: UDP %+v, MTU %+v", u, p.Back.MTU)
		}
		if got := missing(p); !slices.Equal(got, []string{"back.dscp", "back.hops", "back.mtu", "source_ports"}) {
			t.Errorf("not checked: %+v", p.Missing)
		}

		c.rules(0, "meta l4proto udp drop")
		p = probe(t, c.a, c.b, addr, "full")
		if u := p.Forward.UDP; u == nil || u.Got != 0 || p.Back.UDP != nil || p.RTT == nil || p.Handshake == nil {
			t.Errorf("nothing passes: %+v", p)
		}
		if got := missing(p); !slices.Equal(got, []string{"back.dscp", "back.hops", "back.mtu", "back.udp", "forward.dscp", "forward.hops", "forward.mtu", "source_ports"}) {
			t.Errorf("not checked: %+v", p.Missing)
		}
	}
}

// TestProbeFragments: a packet that arrives only because the path cleared "don't fragment" does not count as
// passed.
func TestProbeFragments(t *testing.T) {
	t.Parallel()
	c := newChain(t, 1500, 1400, 1500)
	c.routers[0].Nft("table ip clear {\nchain pre {\ntype filter hook prerouting priority 0\niifname n0 meta l4proto udp ip frag-off set 0\n}\n}\n")
	p := probe(t, c.a, c.b, c.four(), "quick")
	wantMTU(t, "forward", p.Forward.MTU, measure.PathMTU{Bytes: 1400, Claimed: 1500, Silent: true})
	wantMTU(t, "back", p.Back.MTU, measure.PathMTU{Bytes: 1400, Claimed: 1500, Router: new(1400), RouterAddr: "10.82.0.1"})
}

// TestProbeOwnFirewall: thru names a host that refuses its own datagrams.
func TestProbeOwnFirewall(t *testing.T) {
	t.Parallel()
	c := newChain(t, 1500)
	c.a.Nft("table inet own {\nchain out {\ntype filter hook output priority 0\nmeta l4proto udp drop\n}\n}\n")
	p := probe(t, c.a, c.b, c.six(), "quick")
	i := slices.IndexFunc(p.Missing, func(m measure.NotChecked) bool { return m.Fact == "forward.udp" })
	if i < 0 || !strings.Contains(p.Missing[i].Why, "own host") || p.Forward.UDP == nil || p.Forward.UDP.Got != 0 {
		t.Errorf("UDP %+v, not checked: %+v", p.Forward.UDP, p.Missing)
	}
}

// TestProbeNAT: thru reports a translated address, and datagrams arrive.
func TestProbeNAT(t *testing.T) {
	t.Parallel()
	c := newChain(t, 1500, 1500)
	c.routers[0].Nft("table ip nat {\nchain post {\ntype nat hook postrouting priority 100\noifname n1 masquerade\n}\n}\n")
	p := probe(t, c.a, c.b, c.four(), "full")
	if p.SeenAs != c.links[0].A4.String() || p.FromAddr != c.links[1].A4.String() || p.ToAddr != c.four().String() {
		t.Errorf("from %s, seen as %s, to %s", p.FromAddr, p.SeenAs, p.ToAddr)
	}
	if u := p.Back.UDP; u == nil || u.Got != u.Sent || p.Back.MTU == nil || !p.Back.MTU.Local || p.Ports == nil || p.Ports.Directions != 1 {
		t.Errorf("back %+v, ports %+v", p.Back, p.Ports)
	}
}

// TestProbeDirections: two routes of different length, selected by the source port.
func TestProbeDirections(t *testing.T) {
	t.Parallel()
	l := New(t)
	a, near, far, extra, b := l.Host("a"), l.Host("near"), l.Host("far"), l.Host("extra"), l.Host("b")
	an, nb := l.join(a, near, "an", 90, 1500, "cubic"), l.join(near, b, "nb", 91, 1500, "cubic")
	af, fe, eb := l.join(a, far, "af", 92, 1500, "cubic"), l.join(far, extra, "fe", 93, 1500, "cubic"), l.join(extra, b, "eb", 94, 1500, "cubic")
	for _, h := range []*Host{a, near, far, extra, b} {
		h.Sysctl("net.ipv4.ip_forward", "1")
		h.Sysctl("net.ipv4.fib_multipath_hash_policy", "1")
	}
	a.IP("addr", "add", "10.1.1.1/32", "dev", "lo")
	b.IP("addr", "add", "10.1.1.2/32", "dev", "lo")
	a.IP("route", "add", "10.1.1.2", "src", "10.1.1.1", "nexthop", "via", an.B4.String(), "nexthop", "via", af.B4.String())
	b.IP("route", "add", "10.1.1.1", "src", "10.1.1.2", "via", nb.A4.String())
	near.IP("route", "add", "10.1.1.2", "via", nb.B4.String())
	near.IP("route", "add", "10.1.1.1", "via", an.A4.String())
	far.IP("route", "add", "10.1.1.2", "via", fe.B4.String())
	extra.IP("route", "add", "10.1.1.2", "via", eb.B4.String())
	p := probe(t, a, b, netip.MustParseAddr("10.1.1.2"), "full")
	s := p.Ports
	if s == nil || s.Directions != 2 || s.By != "hops" || len(s.Groups) != 2 || *s.Groups[0].Hops != 1 || *s.Groups[1].Hops != 2 {
		j, _ := json.Marshal(p)
		t.Errorf("source ports %+v: %s", s, j)
	}
	want := []measure.NextHop{{Interface: "an", Gateway: an.B4.String(), Weight: 1}, {Interface: "af", Gateway: af.B4.String(), Weight: 1}}
	if r := p.Forward.Route; r == nil || !slices.Equal(r.NextHops, want) || r.Hash != measure.HashLayer4 || p.Back.Route == nil || len(p.Back.Route.NextHops) > 0 {
		t.Errorf("routes %+v and %+v, want the next hops %+v", p.Forward.Route, p.Back.Route, want)
	}
	a.Sysctl("net.ipv4.fib_multipath_hash_policy", "0")
	p = probe(t, a, b, netip.MustParseAddr("10.1.1.2"), "full")
	if r := p.Forward.Route; r == nil || len(r.NextHops) != 2 || r.Hash != measure.HashLayer3 || p.Ports == nil || p.Ports.Directions != 1 {
		t.Errorf("by addresses alone: route %+v, source ports %+v", r, p.Ports)
	}
}
