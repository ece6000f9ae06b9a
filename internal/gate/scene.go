package gate

import (
	"net/netip"
	"slices"

	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// scene is a subject with what several rules ask of it.
type scene struct {
	subject Subject
	hosts   []*host
}

func newScene(s Subject) *scene {
	sc := &scene{subject: s}
	for i := range s.Ends {
		sc.hosts = append(sc.hosts, newHost(sc, &s.Ends[i]))
	}
	return sc
}

// judged are the hosts whose own facts are judged: a machine that is at both
// ends counts once.
func (sc *scene) judged() []*host {
	var list []*host
	shared := false
	for _, h := range sc.hosts {
		if h.end.Shared && shared {
			continue
		}
		shared = shared || h.end.Shared
		list = append(list, h)
	}
	return list
}

// onOneMachine tells that no wire lies between the ends.
func (sc *scene) onOneMachine() bool {
	return slices.ContainsFunc(sc.subject.Ends, func(e End) bool { return e.Shared })
}

// host named by a path.
func (sc *scene) host(name string) *host {
	for _, h := range sc.hosts {
		if h.name == name {
			return h
		}
	}
	return nil
}

// rtt is the median round trip of the idle path in ns; 0 where it is not known.
func (sc *scene) rtt() int64 {
	if p := sc.subject.Path; p != nil && p.RTT != nil && p.RTT.P50 > 0 {
		return p.RTT.P50
	}
	return 0
}

// rate is what the path should carry: the rate that is wanted, else the lowest
// real speed of the interfaces that the ends reach each other by. 0: not known.
func (sc *scene) rate() int64 {
	if sc.subject.LinkBps > 0 {
		return sc.subject.LinkBps
	}
	var least int64
	for _, h := range sc.hosts {
		if i := h.top(); i != nil && i.speed() > 0 && (least == 0 || i.speed() < least) {
			least = i.speed()
		}
	}
	return least
}

// bdp is the bandwidth-delay product in bytes; 0 where it is not known, and
// then why says what is missing.
func (sc *scene) bdp() (bytes float64, why string) {
	switch {
	case sc.rtt() == 0:
		return 0, "the round trip of the path is not known"
	case sc.rate() == 0 && sc.onOneMachine():
		return 0, "no link lies between the ends"
	case sc.rate() == 0:
		return 0, "--link-rate states the rate"
	}
	return stat.BDPBytes(float64(sc.rate()), sc.rtt()), ""
}

// Bounds of a TCP window.
const (
	plainWindow = 65535       // the most without window scaling (RFC 9293)
	mostWindow  = 65535 << 14 // the most with it (RFC 7323)
	usualMSS    = 1448        // of MTU 1500 with timestamps
	leastMSS    = 88          // the least that Linux takes (TCP_MIN_MSS)
	timestamps  = 12          // bytes of the option with its padding
)

// window is the least even number of segments that holds the product (C-14).
func (sc *scene) window(bdp float64) int64 {
	return int64(min(stat.WindowEven(bdp, sc.mss()), mostWindow))
}

// mss is the payload of a full segment: the lesser that the ends told each
// other, less the timestamps; else that of the usual MTU.
func (sc *scene) mss() int64 {
	least := 0
	hs := sc.handshake()
	for _, s := range []*measure.SYN{hs.SYNSeen, hs.SYNACKSeen} {
		if s != nil && s.MSS != nil && *s.MSS >= leastMSS && (least == 0 || *s.MSS < least) {
			least = *s.MSS
		}
	}
	if least == 0 {
		return usualMSS
	}
	if s := hs.SYNACKSeen; s != nil && s.Timestamps != nil && *s.Timestamps {
		least -= timestamps
	}
	return int64(least)
}

// handshake is never nil.
func (sc *scene) handshake() measure.Handshake {
	if p := sc.subject.Path; p != nil && p.Handshake != nil {
		return *p.Handshake
	}
	return measure.Handshake{}
}

// headers of IP and TCP without options, in bytes, by the family of the path.
func (sc *scene) headers() int {
	if p := sc.subject.Path; p != nil {
		for _, text := range []string{p.FromAddr, p.ToAddr} {
			if a, ok := address(text); ok {
				if a.Is6() {
					return 60
				}
				return 40
			}
		}
	}
	return 40
}

// address reads an address with or without a port.
func address(text string) (netip.Addr, bool) {
	if p, err := netip.ParseAddrPort(text); err == nil {
		return p.Addr().Unmap(), true
	}
	a, err := netip.ParseAddr(text)
	return a.Unmap(), err == nil
}

// streams is how many connections share the work; at least 1.
func (sc *scene) streams() int64 { return max(1, int64(sc.subject.Streams)) }

// way is one direction of the path.
type way struct {
	*scene
	back     bool // what To sends
	from, to string
	measure.OneWay
	sent, seen *measure.SYN // the segment of the handshake that went this way
}

// ways are both directions.
func (sc *scene) ways() []*way {
	p, hs := sc.subject.Path, sc.handshake()
	if p == nil {
		return nil
	}
	return []*way{
		{sc, false, p.From, p.To, p.Forward, hs.SYNSent, hs.SYNSeen},
		{sc, true, p.To, p.From, p.Back, hs.SYNACKSent, hs.SYNACKSeen},
	}
}

// other is the direction against this one.
func (w *way) other() *way {
	all := w.ways()
	if w.back {
		return all[0]
	}
	return all[1]
}

// sender is the host that this direction starts from; nil where it is no end
// that is judged.
func (w *way) sender() *host { return w.scene.host(w.from) }

// missing is a gate for a fact of the path that could not be had. Keys stand
// alone or below their direction ("forward.mtu").
func (w *way) missing(what, fact string) *finding {
	dir := "forward"
	if w.back {
		dir = "back"
	}
	return notChecked(what, reason(w.subject.Path.Missing, dir+"."+fact, dir, fact))
}

// missing is the same of what belongs to no direction.
func (sc *scene) missing(what string, facts ...string) *finding {
	return notChecked(what, reason(sc.subject.Path.Missing, facts...))
}

// reason of the first of the facts that says why it is missing.
func reason(missing []measure.NotChecked, facts ...string) string {
	for _, fact := range facts {
		for _, m := range missing {
			if m.Fact == fact && m.Why != "" {
				return m.Why
			}
		}
	}
	return notRead
}

// notRead is the reason of a fact that has none.
const notRead = "not read"

// rate and size in words.
func rate[N int64 | float64](bps N) string   { return unit.Rate(float64(bps)) }
func size[N int64 | float64](bytes N) string { return unit.Size(int64(bytes)) }
func span(ns int64) string                   { return unit.Duration(ns) }
func percent(pct float64) string             { return unit.Percent(pct) }
