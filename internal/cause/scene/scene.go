// Package scene holds what is known of the hosts of a result and of the path between them, in the form that all
// causes use: one set of accessors for facts, interface counters and settings, and the commands that change them
// (Fix).
package scene

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// Subject is what to judge.
type Subject struct {
	Ends    []End         // the end that runs the command first
	Path    *measure.Path // between the first two, if it was probed
	NoPath  string        // why it was not probed, if known
	LinkBps int64         // requested or stated rate in bit/s; 0: none
	LinkL2  bool          // that rate counts frames without preamble and gap (see stat.Link)
	Streams int           // planned concurrent connections; 0: not known
	UDP     bool          // datagrams are planned, and no TCP
}

// End is one host.
type End struct {
	Name       string                  // "local", "host2"
	Facts      *measure.Facts          // nil: no agent runs there, which one gate reports
	Route      *measure.Route          // to the other end; nil: all interfaces that could carry the traffic are judged
	Costs      []Cost                  // CPU costs of earlier tests at this host
	Shared     bool                    // all ends are this same machine: its facts are judged once
	Placements []measure.HostPlacement // of this guest, one for each hypervisor that knows it; none: no hypervisor was queried
}

// Cost is the CPU cost of moving data at a host in an earlier result.
type Cost struct {
	Sends      bool      // it sent; else it received
	Protocol   string    // "tcp" or "udp"
	IO         string    // data path, as in measure.Spec
	Bps        float64   // goodput
	Cores      float64   // CPUs used, minus those of the idle host
	BusiestPct float64   // of the busiest CPU
	Streams    int       // concurrent connections
	CPUModel   string    // of the host then
	At         time.Time // only passed on
}

// Scene is a subject with the data that several rules need.
type Scene struct {
	Subject Subject
	hosts   []*Host
}

// NewScene returns the scene of a subject.
func NewScene(s Subject) *Scene {
	sc := &Scene{Subject: s}
	for i := range s.Ends {
		sc.hosts = append(sc.hosts, NewHost(sc, &s.Ends[i]))
	}
	return sc
}

// OfDocument returns the scene of a result's end points.
func OfDocument(doc *measure.Document) *Scene {
	sc := &Scene{}
	for i := range doc.EndPoints {
		if e := &doc.EndPoints[i]; sc.Host(e.Name) == nil {
			sc.hosts = append(sc.hosts, Of(e))
		}
	}
	return sc
}

// Judged returns the hosts whose own facts are judged: a machine that is both ends counts once.
func (sc *Scene) Judged() []*Host {
	var list []*Host
	shared := false
	for _, h := range sc.hosts {
		if h.End.Shared && shared {
			continue
		}
		shared = shared || h.End.Shared
		list = append(list, h)
	}
	return list
}

// OnOneMachine reports whether there is no wire between the ends.
func (sc *Scene) OnOneMachine() bool {
	return slices.ContainsFunc(sc.Subject.Ends, func(e End) bool { return e.Shared })
}

// Host returns the host of that name; nil if there is none.
func (sc *Scene) Host(name string) *Host {
	i := slices.IndexFunc(sc.hosts, func(h *Host) bool { return h.Name == name })
	if i < 0 {
		return nil
	}
	return sc.hosts[i]
}

// Named is like Host, but never nil: for an end point without description it holds only the name.
func (sc *Scene) Named(name string) *Host {
	h := sc.Host(name)
	if h == nil {
		h = Of(&measure.EndPoint{Name: name})
		sc.hosts = append(sc.hosts, h)
	}
	return h
}

// IsOurs reports whether the command runs at this host, which is the first one.
func (sc *Scene) IsOurs(h *Host) bool { return len(sc.hosts) > 0 && sc.hosts[0] == h }

// RTT returns the median round-trip time of the idle path in ns; 0 if not known.
func (sc *Scene) RTT() int64 {
	if p := sc.Subject.Path; p != nil && p.RTT != nil && p.RTT.P50 > 0 {
		return p.RTT.P50
	}
	return 0
}

// Rate returns the rate that the path should carry: the requested one, else the lowest real speed of the
// interfaces between the ends. 0: not known.
func (sc *Scene) Rate() int64 {
	if sc.Subject.LinkBps > 0 {
		return sc.Subject.LinkBps
	}
	var least int64
	for _, h := range sc.hosts {
		if i := h.Top(); i != nil && i.Speed() > 0 && (least == 0 || i.Speed() < least) {
			least = i.Speed()
		}
	}
	return least
}

// BDP returns the bandwidth-delay product in bytes; 0 if it is not known, and why says what is missing.
func (sc *Scene) BDP() (bytes float64, why string) {
	switch {
	case sc.RTT() == 0:
		return 0, "the round trip of the path is not known"
	case sc.Rate() == 0 && sc.OnOneMachine():
		return 0, "both ends are on one host"
	case sc.Rate() == 0:
		return 0, "no link rate (--link-rate)"
	}
	return stat.BDPBytes(float64(sc.Rate()), sc.RTT()), ""
}

// Bounds of a TCP window.
const (
	PlainWindow = 65535   // the most without window scaling (RFC 9293)
	UsualMSS    = 1448    // of MTU 1500 with timestamps
	leastMSS    = 88      // the least that Linux takes (TCP_MIN_MSS)
	mostWindow  = 1 << 40 // beyond any path
	timestamps  = 12      // bytes of the option with its padding
)

// NeededWindow returns the window, in bytes, that each of the connections of a path needs (C-14): its share of the
// bandwidth-delay product as an even number of segments. It may be more than a connection can have: see Beyond. 0 if
// the rate or the round-trip time is not known.
func NeededWindow(bps float64, rttNs int64, connections int, mss int64) int64 {
	if !(bps > 0) || rttNs <= 0 {
		return 0
	}
	share := stat.BDPBytes(bps, rttNs) / float64(max(1, connections))
	return int64(min(stat.WindowEven(share, mss), mostWindow))
}

// Beyond says what to do if a connection needs a larger window than thru sets; "" for other windows.
func Beyond(window int64) string {
	if window <= measure.MaxWindow {
		return ""
	}
	return fmt.Sprintf("thru sets at most %s for a connection: use %d times as many streams", unit.Size(measure.MaxWindow), (window-1)/measure.MaxWindow+1)
}

// NeededWindow returns the window that each connection of the test needs.
func (sc *Scene) NeededWindow() int64 {
	return NeededWindow(float64(sc.Rate()), sc.RTT(), sc.Subject.Streams, sc.mss())
}

// mss returns the payload of a full segment: the smaller MSS of the two ends, minus the timestamps; else that of
// the usual MTU.
func (sc *Scene) mss() int64 {
	least := 0
	hs := sc.Handshake()
	for _, s := range []*measure.SYN{hs.SYNSeen, hs.SYNACKSeen} {
		if s != nil && s.MSS != nil && *s.MSS >= leastMSS && (least == 0 || *s.MSS < least) {
			least = *s.MSS
		}
	}
	if least == 0 {
		return UsualMSS
	}
	if s := hs.SYNACKSeen; s != nil && s.Timestamps != nil && *s.Timestamps {
		least -= timestamps
	}
	return int64(least)
}

// Handshake returns the handshake of the probe; never nil.
func (sc *Scene) Handshake() measure.Handshake {
	if p := sc.Subject.Path; p != nil && p.Handshake != nil {
		return *p.Handshake
	}
	return measure.Handshake{}
}

// Headers returns the length of the IP and TCP headers without options, in bytes, for the path's address family.
func (sc *Scene) Headers() int {
	if p := sc.Subject.Path; p != nil {
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

// address parses an address with or without a port.
func address(text string) (netip.Addr, bool) {
	if p, err := netip.ParseAddrPort(text); err == nil {
		return p.Addr().Unmap(), true
	}
	a, err := netip.ParseAddr(text)
	return a.Unmap(), err == nil
}

// Streams returns the number of concurrent connections; at least 1.
func (sc *Scene) Streams() int64 { return max(1, int64(sc.Subject.Streams)) }

// Direction is one direction of the path.
type Direction struct {
	*Scene
	Back     bool // data sent by To
	From, To string
	measure.DirectionFacts
	Sent, Seen *measure.SYN // the SYN or SYN-ACK of this direction
}

// Directions returns both directions.
func (sc *Scene) Directions() []*Direction {
	p, hs := sc.Subject.Path, sc.Handshake()
	if p == nil {
		return nil
	}
	return []*Direction{
		{sc, false, p.From, p.To, p.Forward, hs.SYNSent, hs.SYNSeen},
		{sc, true, p.To, p.From, p.Back, hs.SYNACKSent, hs.SYNACKSeen},
	}
}

// Other returns the opposite direction.
func (w *Direction) Other() *Direction {
	all := w.Directions()
	if w.Back {
		return all[0]
	}
	return all[1]
}

// Sender returns the host that sends in this direction; nil if it is no judged end.
func (w *Direction) Sender() *Host { return w.Scene.Host(w.From) }

// WhyNot returns why a fact of the path is missing. Keys are either plain or have the direction as prefix
// ("forward.mtu").
func (w *Direction) WhyNot(facts ...string) (why string, reported bool) {
	dir := "forward"
	if w.Back {
		dir = "back"
	}
	return Reason(w.Subject.Path.Missing, dir+"."+facts[0], dir, facts[0]), true
}

// WhyNot returns why a fact without a direction is missing.
func (sc *Scene) WhyNot(facts ...string) (why string, reported bool) {
	return Reason(sc.Subject.Path.Missing, facts...), true
}

// Reason returns the reason of the first of the facts that has one.
func Reason(missing []measure.NotChecked, facts ...string) string {
	for _, fact := range facts {
		for _, m := range missing {
			if m.Fact == fact && m.Why != "" {
				return m.Why
			}
		}
	}
	return NotRead
}

// NotRead is the reason of a fact without a reason.
const NotRead = "not read"

// LanRTT is the round-trip time in ns below which a connection counts as within one site.
const LanRTT = 1e6
