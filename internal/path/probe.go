package path

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"slices"
	"time"

	"thru/internal/measure"
	"thru/internal/sock"
)

// Volleys and timeouts of a probe.
const (
	firstSmall, quickSmall, fewSmall = 8, 4, 2
	smallGap                         = 200 * time.Microsecond
	settleTime                       = 40 * time.Millisecond  // in addition to half a round trip, for datagrams that arrive after the request that follows them
	longSettle                       = 300 * time.Millisecond // where none has arrived
	mostVolleys                      = 24
)

// probe is the dialling end of one probe.
type probe struct {
	dial    Dial
	link    *link
	hello   hello
	udp     *socket
	noUDP   string
	stopped string // why the other end cannot answer any more
	path    measure.Path

	forward, back *direction
	round         uint16
	settle        time.Duration
}

// Probe dials the answering end and probes the path. It returns an error where no connection with the token exists; all other failures are in not_checked of
// the path. It takes half a minute at most, on a LAN less than a second.
func Probe(ctx context.Context, d Dial) (measure.Path, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	p, err := newProbe(ctx, d, func(l *link) error { return introduce(l.conn, d.Token) })
	if err != nil {
		return measure.Path{}, err
	}
	defer p.link.conn.Close()
	defer context.AfterFunc(ctx, func() { p.link.conn.Close() })()
	p.meet(ctx)
	defer func() { p.udp.close() }()
	p.handshake()
	p.roundTrips()
	p.datagrams(ctx)
	p.ports(ctx)
	return p.finish(), nil
}

// Look dials any program, such as an iperf3 server, and returns what this end alone sees of the handshake. It returns an error where no target answers.
func Look(ctx context.Context, d Dial) (measure.Path, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	p, err := newProbe(ctx, d, func(*link) error { return nil })
	if err != nil {
		return measure.Path{}, err
	}
	defer p.link.conn.Close()
	p.stopped = "no thru answers there: only this end's view of the handshake is known"
	p.route(ctx)
	p.handshake()
	return p.finish(), nil
}

// newProbe connects.
func newProbe(ctx context.Context, d Dial, greet func(*link) error) (*probe, error) {
	p := &probe{dial: d}
	l, err := connect(ctx, d, greet)
	if err != nil {
		return nil, err
	}
	p.link = l
	p.path.Quick, p.path.ToAddr = d.Quick, bare(l.remote.Addr())
	return p, nil
}

// bare returns an address without its zone.
func bare(a netip.Addr) string { return a.WithZone("").String() }

// note adds a missing fact and its reason.
func (p *probe) note(fact, why string) {
	p.path.Missing = append(p.path.Missing, measure.NotChecked{Fact: fact, Why: why})
}

// route looks up the route of this end to the other one.
func (p *probe) route(ctx context.Context) route {
	w := routeTo(ctx, p.dial.hostOf(), p.dial.Device, p.link.local, p.link.remote)
	if p.path.Forward.Route = w.route; w.route == nil {
		p.note("forward.route", w.why)
	}
	return w
}

// meet reads the other end's hello, and opens this end's socket.
func (p *probe) meet(ctx context.Context) {
	w := p.route(ctx)
	h, cookie, err := p.link.hear()
	if err != nil {
		p.stop(err)
		return
	}
	p.hello = h
	p.path.FromAddr = h.Seen
	if own := bare(p.link.local.Addr()); own != h.Seen {
		p.path.SeenAs = own
	}
	if p.path.Back.Route = h.Route; h.Route == nil {
		p.note("back.route", cmp.Or(h.NoRoute, "the other end does not report it"))
	}
	if h.UDP == 0 {
		p.noUDP = "the other end has no socket for datagrams: " + h.NoUDP
		return
	}
	local := netip.AddrPortFrom(p.link.local.Addr(), 0)
	peer := netip.AddrPortFrom(p.link.remote.Addr(), uint16(h.UDP))
	p.udp, err = openSocket(ctx, local, p.link.remote.Addr(), peer, p.dial.Device, cookie, kindBack)
	if err != nil {
		p.noUDP = err.Error()
		return
	}
	p.directions(w)
}

// directions prepares both directions with the abilities and MTUs of the ends.
func (p *probe) directions(w route) {
	small := headers(p.link.remote.Addr()) + datagramSize
	here, there := p.udp.headers, p.hello.Headers
	p.forward = newDirection("forward", w.claim, w.learned, small)
	p.forward.noDF, p.forward.noMTU, p.forward.tcp = here, w.why, p.link.tcp.ofMTU()
	p.back = newDirection("back", p.hello.Claim, p.hello.Learned, small)
	p.back.noDF, p.back.noMTU, p.back.tcp = there, p.hello.NoRoute, p.hello.TCP
	if why := cmp.Or(here, there); why != "" {
		p.forward.header, p.back.header = why, why
	}
}

// stop stores why the other end cannot answer any more; the first reason counts.
func (p *probe) stop(err error) {
	p.stopped = cmp.Or(p.stopped, "the connection of the probe ended early: "+err.Error())
}

// handshake fills in the TCP options at both ends.
func (p *probe) handshake() {
	stack, tcp := sock.ReadStack(), p.link.tcp
	p.path.Forward.Congestion, p.path.Back.Congestion = said(tcp.congestion), said(p.hello.Control)
	if !tcp.known() && p.hello.SYNSeen == nil && p.hello.Answered == nil {
		p.note("handshake", "neither end's system reports TCP options")
		return
	}
	h := &measure.Handshake{SYNSent: tcp.synSent(stack), SYNSeen: p.hello.SYNSeen, SYNACKSent: p.hello.Answered}
	var why string
	if h.SYNACKSeen, why = tcp.synackSeen(stack, p.hello.Answered); why != "" {
		p.note("handshake.synack_seen.mss_bytes", why)
	}
	if h.SYNSent != nil && h.SYNSent.WindowScale == nil && h.SYNSent.HasScale != nil && *h.SYNSent.HasScale {
		p.note("handshake.syn_sent.window_scale", "the kernel forgets it where the two ends have not agreed")
	}
	if tcp.info.RTT != nil && (tcp.info.Retrans == nil || *tcp.info.Retrans == 0) {
		h.RTTNs = new(*tcp.info.RTT)
	}
	p.path.Handshake = h
}

// said returns nil for an empty word.
func said(word string) *string {
	if word == "" {
		return nil
	}
	return &word
}

// roundTrips measures the round trips and the clock offset.
func (p *probe) roundTrips() {
	p.settle = settleTime
	if p.stopped != "" {
		return
	}
	n, every := pings, pingEvery
	if p.dial.Quick {
		n, every = quickPings, quickEvery
	}
	trips, err := p.link.roundTrips(n, every)
	if err != nil {
		p.stop(err)
		return
	}
	p.path.RTT, p.path.Clock = distribution(trips), clockOffset(trips)
	if p.path.Clock == nil {
		p.note("clock_offset", "the other end's clock was set during the probe")
	}
	p.settle += min(time.Duration(p.path.RTT.P90)/2, time.Second)
}

// datagrams sends volleys in both directions until nothing more can be learned.
func (p *probe) datagrams(ctx context.Context) {
	if p.udp == nil || p.stopped != "" {
		return
	}
	small := firstSmall
	if p.dial.Quick {
		small = quickSmall
	}
	ok := p.volley(ctx, small, p.settle)
	if ok && (p.forward.got == 0 || p.back.got == 0) {
		ok = p.volley(ctx, small, p.settle+longSettle)
	}
	p.forward.blocked, p.back.blocked = p.forward.got == 0, p.back.got == 0
	for ok && (p.forward.searching() || p.back.searching()) && p.round < mostVolleys {
		ok = p.volley(ctx, fewSmall, p.settle)
	}
	if full := !p.dial.Quick; ok && (full || p.forward.unmarked() || p.back.unmarked()) && !(p.forward.blocked && p.back.blocked) {
		p.volley(ctx, small, p.settle+longSettle/2)
	}
	if p.forward.sent == 0 {
		return // there is no report of the first volley
	}
	p.forward.stopped, p.back.stopped = p.stopped, p.stopped
	p.forward.facts(&p.path.Forward, p.note)
	p.back.facts(&p.path.Back, p.note)
}

// volley sends this end's datagrams, makes the other end send its own, and processes both reports. It returns false where no further volley is possible.
func (p *probe) volley(ctx context.Context, small int, settle time.Duration) bool {
	p.round++
	there, back := p.forward.load(small), p.back.load(small)
	own := p.udp.fire(ctx, p.round, there, smallGap)
	v := volley{Number: p.round, Sent: own.Sent, Send: back, GapUs: int(smallGap.Microseconds()), SettleUs: settle.Microseconds()}
	r, err := p.link.ask(request{Volley: &v}, 2*settle+time.Second)
	switch {
	case err == nil && (r.Unknown || r.Report == nil):
		err = errors.New("the thru version there is too old for it")
	case err == nil:
		err = r.Report.check(there, back)
	}
	if err != nil {
		p.stop(err)
		return false
	}
	own.routers = p.udp.routersSaid()
	p.forward.take(own, r.Report.Got)
	if r.Report.NoPeer {
		p.back.unasked = "the other end sends datagrams only in reply, and none arrived there"
		return true
	}
	p.back.unasked = ""
	got := p.udp.await(ctx, p.round, r.Report.Sent, settle-time.Duration(r.Report.Waited)*time.Microsecond)
	if slices.ContainsFunc(got, func(a arrival) bool { return a.Shot >= len(back) }) {
		got = nil // not the requested datagrams
	}
	p.back.take(*r.Report, got)
	return true
}

// ports tests whether source ports take different paths.
func (p *probe) ports(ctx context.Context) {
	const fact = "source_ports"
	switch {
	case p.dial.Quick:
		p.note(fact, "a quick probe omits it")
	case p.udp == nil || p.stopped != "":
	case p.forward.blocked || p.back.blocked:
		p.note(fact, "datagrams (UDP) do not arrive in both directions")
	default:
		s, err := probePorts(ctx, p.udp, p.link.local.Addr(), p.dial.Device, 2*p.settle) // an echo takes a full round trip
		if p.path.Ports = s; err != nil {
			p.note(fact, err.Error())
		} else if s == nil {
			p.note(fact, "too few datagrams of other source ports were returned")
		}
	}
}

// finish adds a reason to each missing fact that has none yet.
func (p *probe) finish() measure.Path {
	p.path.TakenAt = time.Now().UnixNano()
	h := p.path.Handshake
	h = cmp.Or(h, &measure.Handshake{})
	facts := []struct {
		name  string
		known bool
		why   string
	}{
		{"handshake", p.path.Handshake != nil, ""},
		{"handshake.syn_sent", h.SYNSent != nil, "this system does not report TCP options"},
		{"handshake.syn_seen", h.SYNSeen != nil, p.hello.NoSYN},
		{"handshake.synack_sent", h.SYNACKSent != nil, "the other end's system does not report TCP options"},
		{"handshake.synack_seen", h.SYNACKSeen != nil, "this system does not report TCP options"},
		{"handshake.rtt_ns", h.RTTNs != nil, "the kernel does not report it, or the first SYN was lost"},
		{"rtt_idle", p.path.RTT != nil, ""}, {"clock_offset", p.path.Clock != nil, ""}, {"source_ports", p.path.Ports != nil, p.noUDP},
	}
	for _, f := range facts {
		p.absent(f.name, f.known, cmp.Or(f.why, p.stopped))
	}
	p.absentOf("forward", p.path.Forward)
	p.absentOf("back", p.path.Back)
	return p.path
}

// absentOf does so for one direction.
func (p *probe) absentOf(name string, w measure.DirectionFacts) {
	why := cmp.Or(p.noUDP, p.stopped)
	p.absent(name+".route", w.Route != nil, p.stopped)
	p.absent(name+".mtu", w.MTU != nil, why)
	p.absent(name+".hops", w.Hops != nil, why)
	p.absent(name+".dscp", w.Marks != nil, why)
	p.absent(name+".udp", w.UDP != nil, why)
}

// absent adds a note for a fact that is not known, unless the fact or its parent has one already.
func (p *probe) absent(fact string, known bool, why string) {
	if known {
		return
	}
	if slices.ContainsFunc(p.path.Missing, func(m measure.NotChecked) bool { return m.Covers(fact) }) {
		return
	}
	p.note(fact, cmp.Or(why, "it was not reported"))
}
