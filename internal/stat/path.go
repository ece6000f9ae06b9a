package stat

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"

	"thru/internal/measure"
	"thru/internal/unit"
)

// roundTrips fills both round-trip times: idle is the median of the runs' medians, as the dialling end saw it
// before the traffic (the minimum is often a lucky outlier); under load it is the mean of the sender's kernel's
// smoothed values at the end of each second, over all streams.
func (s *summary) roundTrips() {
	var idle, loaded []float64
	for _, p := range s.runs {
		for _, e := range p.ends() {
			if e.Dialled && e.RTTIdle != nil && e.RTTIdle.Samples > 0 && e.RTTIdle.Median > 0 {
				idle = append(idle, float64(e.RTTIdle.Median))
			}
		}
		loaded = append(loaded, loadedRTTs(p.sender)...)
	}
	s.cell.RTTIdle, s.cell.RTTLoaded = whole(Median(idle)), whole(Mean(loaded))
	if s.cell.RTTIdle == nil && !s.asks() { // requests measure it themselves
		s.missing("rtt_idle_ns", "the dialling end measured no round trips before the traffic")
	}
	if s.cell.RTTLoaded == nil && !s.asks() && !s.isUDP() {
		s.missing("rtt_loaded_ns", s.why(senderSide, "streams.tcp", "the sender has no TCP_INFO for any second"))
	}
}

// loadedRTTs returns the sampled round-trip times of one sender in ns.
func loadedRTTs(e *measure.Evidence) []float64 {
	if e == nil {
		return nil
	}
	var rtts []float64
	for _, b := range e.Bins {
		for _, t := range b.TCP {
			if t.RTT != nil && *t.RTT > 0 {
				rtts = append(rtts, float64(*t.RTT))
			}
		}
	}
	return rtts
}

// rtt returns the round-trip time that windows must cover: under load if it is known, since the queue that the
// traffic fills is part of the path. 0 is unknown.
func (s *summary) rtt() int64 {
	return measure.Value(cmp.Or(s.cell.RTTLoaded, s.cell.RTTIdle))
}

// window fills the bandwidth-delay product and the window that one connection needs to carry all of it alone
// (several share it). The rate is that of the link if it is known, else the measured goodput; then the window is
// what this rate took, not what the path could use.
func (s *summary) window() {
	c, rate := s.cell, 0.0
	if c.Ceiling != nil {
		rate = float64(c.Ceiling.LinkBps)
	} else if c.Goodput != nil {
		rate = c.Goodput.Value
	}
	if rate == 0 || s.rtt() == 0 {
		s.missing("bdp_bytes", "it needs a rate and a round trip")
		return
	}
	bdp := BDPBytes(rate, s.rtt())
	if c.BDP = whole(bdp); c.BDP == nil {
		s.missing("bdp_bytes", "rate and round trip are implausible")
		return
	}
	c.NeededWindow = whole(WindowEven(bdp, s.mss()))
	if c.NeededWindow == nil {
		s.missing("required_window_bytes", s.why(senderSide, "streams.mss", "the segment size of the sender is not known"))
	}
}

// mss returns the largest segment size of the sender's streams; 0 is unknown.
func (s *summary) mss() int64 {
	var mss int64
	for _, p := range s.runs {
		for _, x := range streams(p.sender) {
			mss = max(mss, int64(x.MSS))
			if x.TCP != nil && x.TCP.SendMSS != nil {
				mss = max(mss, int64(*x.TCP.SendMSS))
			}
		}
	}
	return mss
}

// streams returns those of an end that may be missing.
func streams(e *measure.Evidence) []measure.Stream {
	if e == nil {
		return nil
	}
	return e.Streams
}

// evidence returns that of all ends of the runs that count.
func (s *summary) evidence() []*measure.Evidence {
	var all []*measure.Evidence
	for _, p := range s.runs {
		all = append(all, p.ends()...)
	}
	return all
}

// stated is the source of a link rate that the user stated.
const stated = "stated"

// ceiling fills the most that the link can carry, if its rate is known.
func (s *summary) ceiling() {
	l := s.link
	rate, from, on, why := s.linkRate()
	if rate <= 0 {
		s.missing("ceiling", why)
		return
	}
	l.RateBps = rate
	if l.Layer != unit.L2 || from != stated {
		l.Layer = unit.L1 // an interface's speed counts everything on the wire
	}
	l.MTU = cmp.Or(l.MTU, s.mtu())
	l.IPv6, l.VLANs, l.EncapBytes = s.isIPv6(), cmp.Or(l.VLANs, on.vlans), cmp.Or(l.EncapBytes, on.bytes)
	if on.unknown != "" {
		s.missing("ceiling.encapsulation_bytes", on.unknown)
	}
	bps := s.most(l)
	if Known(bps) == nil {
		s.missing("ceiling", fmt.Sprintf("the MTU of the path is not known or too small (%d bytes)", l.MTU))
		return
	}
	s.cell.Ceiling = &measure.Ceiling{Bps: bps, LinkBps: rate, LinkFrom: from, LinkLayer: l.Layer, MTU: l.MTU, VLANs: l.VLANs, Encap: l.EncapBytes}
	switch x := s.cell.Search; {
	case s.cell.Spec.Search && x != nil && x.CapacityBps != nil:
		s.cell.Ceiling.SharePct = 100 * *x.CapacityBps / bps
	case s.cell.Goodput != nil:
		s.cell.Ceiling.SharePct = 100 * s.cell.Goodput.Value / bps
	}
}

// most returns the payload that the cell's kind of packets can carry over a link.
func (s *summary) most(l Link) float64 {
	if s.isUDP() {
		return MaxDatagramGoodput(l, s.payload())
	}
	l.Timestamps = s.timestamps()
	return MaxGoodput(l)
}

// linkRate returns the stated rate, else the lowest of the interfaces by which the ends reach each other, and the
// framing on that wire. It is 0 with a reason if none is known.
func (s *summary) linkRate() (bps int64, from string, on wrap, why string) {
	if s.link.RateBps > 0 {
		return s.link.RateBps, stated, s.leastWrap(), ""
	}
	var reasons []string
	for _, e := range s.evidence() {
		if isLoopback(e) {
			return 0, "", on, "the traffic stays within one host, without a link"
		}
		if e.Route == nil {
			continue
		}
		w := wrapOf(s.ends[e.EndPoint], e.Route.Interface)
		if w.face == nil {
			reasons = append(reasons, fmt.Sprintf("interface %s at %s is not described", e.Route.Interface, e.EndPoint))
			continue
		}
		name := fmt.Sprintf("interface %s at %s", w.face.Name, e.EndPoint)
		switch face := w.face; {
		case face.SpeedBps == nil || *face.SpeedBps <= 0:
			reasons = append(reasons, name+" reports no speed")
		case face.Nominal != nil && *face.Nominal:
			reasons = append(reasons, name+" has only a nominal speed")
		case bps == 0 || *face.SpeedBps < bps || *face.SpeedBps == bps && w.add() > on.add():
			bps, from, on = *face.SpeedBps, name, w
		}
	}
	if len(reasons) == 0 {
		reasons = []string{"the route between the ends is not known"}
	}
	return bps, from, on, "the link rate is not known: " + strings.Join(unit.Unique(reasons), "; ")
}

// isLoopback reports whether an end reaches its peer without a link.
func isLoopback(e *measure.Evidence) bool {
	if e.Route != nil && (e.Route.Interface == "lo" || e.Route.Interface == "lo0") {
		return true
	}
	peer, err := netip.ParseAddrPort(e.PeerAddr)
	return err == nil && peer.Addr().Unmap().IsLoopback()
}

// mtu returns the path's MTU: the lowest that a connection found (PMTU of its TCP_INFO), else of the routes, else
// of the interfaces, else of captured handshakes; 0 is unknown.
func (s *summary) mtu() int {
	var paths, routes, faces []int
	for _, e := range s.evidence() {
		for _, x := range e.Streams {
			for _, t := range x.Readings() {
				if t.PMTU != nil {
					paths = append(paths, int(*t.PMTU))
				}
			}
		}
		if e.Route == nil {
			continue
		}
		routes = append(routes, e.Route.MTU)
		if face := s.ends[e.EndPoint].Interface(e.Route.Interface); face != nil && face.MTU != nil {
			faces = append(faces, *face.MTU)
		}
	}
	return cmp.Or(leastPositive(paths), leastPositive(routes), leastPositive(faces), s.offeredMTU())
}

func leastPositive(xs []int) int {
	least := 0
	for _, x := range xs {
		if x > 0 && (least == 0 || x < least) {
			least = x
		}
	}
	return least
}

// isIPv6 returns the version of IP by the address of either end.
func (s *summary) isIPv6() bool {
	for _, e := range s.evidence() {
		for _, text := range []string{e.LocalAddr, e.PeerAddr} {
			if a, err := netip.ParseAddrPort(text); err == nil {
				return a.Addr().Unmap().Is6()
			}
		}
	}
	return s.cell.Spec.Family == 6 || s.link.IPv6
}

// timestamps reports whether segments carry TCP timestamps. If no kernel reports it, the ceiling is the higher one
// without them, unless the link's description has them.
func (s *summary) timestamps() bool {
	for _, e := range s.evidence() {
		for _, x := range e.Streams {
			for _, t := range x.Readings() {
				if t.Timestamps != nil {
					return *t.Timestamps
				}
			}
		}
	}
	s.missing("ceiling.timestamps", "no TCP_INFO shows whether segments carry timestamps; none are assumed unless stated")
	return s.link.Timestamps
}

// offeredMTU returns the smaller of the two ends' MTUs, by the handshakes in captures; 0 is unknown. A device that
// lowers an MSS does not make the link smaller, so each end counts with the highest MSS in any capture. An MSS
// excludes the headers without options (RFC 9293, section 3.7.1).
func (s *summary) offeredMTU() int {
	headers := ipv4Header + tcpHeader
	if s.isIPv6() {
		headers = ipv6Header + tcpHeader
	}
	for _, p := range s.runs {
		f := flowOf(s.cell, p.run)
		if f == nil {
			continue
		}
		var syn, synack int
		for _, c := range f.Captures {
			for _, conn := range c.Conns {
				syn, synack = max(syn, offered(conn.SYN)), max(synack, offered(conn.SYNACK))
			}
		}
		if syn > 0 && synack > 0 {
			return min(syn, synack) + headers
		}
	}
	return 0
}

// offered returns the MSS of a SYN or SYN-ACK; 0: it is missing.
func offered(o *measure.Opening) int {
	if o == nil || o.MSS == nil {
		return 0
	}
	return *o.MSS
}
