// Package mtu holds the causes of packet sizes: jumbo frames, black holes, broken segmentation, clamped segments.
package mtu

import (
	"fmt"
	"math"

	"thru/internal/cause/advise"
	"thru/internal/cause/diagnose"
	"thru/internal/cause/hypervisor"
	"thru/internal/cause/knob"
	"thru/internal/cause/scene"
	"thru/internal/measure"
)

// Sizes of packets in bytes.
const (
	UsualMTU      = 1500
	leastMTU      = 1280  // of IPv6 (RFC 8200): below it the kernel removes the IPv6 addresses
	jumboFrom     = 8000  // an MTU from here on means jumbo frames
	largestPacket = 65535 // of IP (RFC 791): an interface may claim 65536
	vlanTag       = 4     // which an interface may carry beyond its MTU
	tcpHeaders    = 40    // of IPv4 and TCP without options
	udpHeaders    = 28
)

// Crossing is the risk of an MTU change, in addition to the knob's own.
const Crossing = "every switch between must carry this MTU; the path MTU is searched before the change is kept"

// largestThatFits returns the largest packet that passes in both directions; 0 if it was not searched.
func largestThatFits(w *advise.Direction) int {
	least := 0
	for _, o := range []*measure.DirectionFacts{w.There, w.Back} {
		if o != nil && o.MTU != nil && o.MTU.Bytes > 0 && (least == 0 || o.MTU.Bytes < least) {
			least = o.MTU.Bytes
		}
	}
	return untagged(least)
}

// untagged returns an MTU without room for a VLAN tag: 1504 is 1500 with it, which the next interface may not
// have.
func untagged(mtu int) int {
	if (mtu-vlanTag)%100 == 0 {
		return mtu - vlanTag
	}
	return mtu
}

// mtu returns the MTU of the host's interface to the other end, as the route knows it; 0 unknown.
func mtu(h *scene.Host) int {
	if r := h.End.Route; r != nil && r.MTU > 0 {
		return r.MTU
	}
	if i := h.Top(); i != nil && i.MTU != nil && *i.MTU > 0 {
		return *i.MTU
	}
	return 0
}

// MTUAt returns the MTU of the interface by which a host reaches the other; 0 not known.
func MTUAt(w *advise.Direction, h *scene.Host) int { return int(h.State(knob.MTU, w.Face(h)).Number()) }

// SetMTU changes it; ok is false if that changes nothing or is not possible.
func SetMTU(w *advise.Direction, h *scene.Host, bytes int) (d advise.Draft, ok bool) {
	face := w.Face(h)
	s := h.State(knob.MTU, face)
	if face == "" || bytes < leastMTU || int64(bytes) == s.Number() || s.Most() > 0 && int64(bytes) > s.Most() {
		return advise.Draft{}, false
	}
	return advise.Change(h, knob.MTU, face, fmt.Sprint(bytes), "MTU %d at %s", bytes, h.Name).ForDirection(w), true
}

// smaller proposes the MTU that passes. One end's is enough for TCP in both directions, since the other sends no
// larger segments than it accepts; without a router between them both ends have to agree.
func smaller(w *advise.Direction) []advise.Draft {
	fits := largestThatFits(w)
	if fits == 0 {
		return nil
	}
	own, ok := SetMTU(w, w.From, fits)
	if !ok || MTUAt(w, w.From) < fits {
		return nil
	}
	other, too := SetMTU(w, w.To, fits)
	if too && !w.Routed() && !w.Local() && MTUAt(w, w.To) > fits {
		own = own.And(other, "MTU %d at both ends", fits)
	}
	return []advise.Draft{own.Bring(w.Hope(), "RFC 2923; measured: 0 Mb/s with a black hole", "full segments pass: packets of up to %d bytes pass (DF), today %d bytes are sent", fits, MTUAt(w, w.From))}
}

// sized is what is known of the sizes that pass in the data direction.
type sized struct {
	*measure.PathMTU
	peer   int  // MTU that the other end claims; 0 unknown
	routed bool // there is a router between the ends
}

// sizes returns those of the direction; false if it was not searched, or no probe of the search was answered.
func sizes(f *diagnose.Flow) (sized, bool) {
	direction, back := f.Direction()
	if direction == nil || direction.MTU == nil || direction.MTU.Bytes <= 0 {
		return sized{}, false
	}
	s := sized{PathMTU: direction.MTU, routed: direction.Hops != nil && *direction.Hops > 0 || direction.Route != nil && direction.Route.Gateway != ""}
	if back.MTU != nil {
		s.peer = max(0, back.MTU.Claimed)
	}
	return s, true
}

// passes reports whether everything up to the sender's claimed MTU gets through.
func (s sized) passes() bool {
	return s.Local || s.Claimed <= 0 || s.Bytes >= min(s.Claimed, largestPacket)
}

// proof returns the size that passes as evidence.
func (s sized) proof(f *diagnose.Flow) measure.Proof {
	p := measure.Proof{EndPoint: f.Sender.Name, Counter: "largest packet that passes with DF", Value: float64(s.Bytes), Unit: "bytes"}
	if s.Claimed > 0 {
		return diagnose.UnderBar(p, float64(s.Claimed))
	}
	return p
}

// packet returns the largest packet that this flow sends, in bytes; 0 unknown.
func packet(f *diagnose.Flow, s sized) float64 {
	if d := f.Cell.Datagrams; f.IsUDP() && d != nil && d.Bytes > 0 {
		n := float64(d.Bytes) + udpHeaders
		if s.Claimed > 0 {
			n = min(n, float64(s.Claimed)) // the kernel fragments larger ones
		}
		return n
	}
	if mss := f.MSS(); mss > 0 {
		return mss + tcpHeaders
	}
	return 0
}

// stall describes how a flow came to carry nothing, or almost nothing.
type stall struct {
	Timeouts float64 // of retransmission, over the life of the connections
	backoff  float64 // how often in a row the timer has doubled
	cwnd     float64 // segments, at the end of the measured time
	bps      float64
	dead     bool // nothing or almost nothing came through
}

// Stalled reads the state of the sender's connections; false if its kernel does not report it.
func Stalled(f *diagnose.Flow) (stall, bool) {
	s, known := stall{cwnd: math.Inf(1)}, false
	for _, x := range f.Sender.Streams() {
		for _, t := range []*measure.TCPInfo{x.TCP, x.TCPEnd} {
			if t == nil || t.Cwnd == nil {
				continue
			}
			known = true
			s.cwnd = min(s.cwnd, float64(*t.Cwnd))
			if t.Backoff != nil {
				s.backoff = max(s.backoff, float64(*t.Backoff))
			}
			if t.TotalRTO != nil {
				s.Timeouts = max(s.Timeouts, float64(*t.TotalRTO))
			}
		}
	}
	if n, ok := f.Sender.Counter("TcpExt.TCPTimeouts"); ok {
		s.Timeouts = max(s.Timeouts, n)
	}
	s.bps, _ = f.Goodput()
	s.dead = s.Timeouts+s.backoff > 0 && s.cwnd <= 2 && s.bps < deadRate
	return s, known
}

// deadRate is above what a stalled connection still carries, in bit/s.
const deadRate = 100_000

// fixSize returns the fix of the size gates, if they have one.
func fixSize(f *diagnose.Flow, cause string, otherwise *measure.Fix) *measure.Fix {
	for _, g := range hypervisor.JudgedGates(f) {
		if g.ID == "mtu-path" && g.From == f.Cell.From && g.To == f.Cell.To && (len(g.Fix) > 0 || g.Advice != "") && g.Status != measure.GatePass {
			return f.Sender.FixOf(g)
		}
	}
	return hypervisor.Fix(f.Sender, hypervisor.Conditions(f, cause, ""), otherwise)
}

// sizeBinds reports whether this flow carries nothing because its packets are larger than what passes.
func sizeBinds(f *diagnose.Flow, s sized) bool {
	if packet(f, s) <= float64(s.Bytes) {
		return false
	}
	if f.IsUDP() {
		d := f.Cell.Datagrams
		return d != nil && d.LossPct > 50
	}
	x, ok := Stalled(f)
	return ok && x.dead
}

// ClampBar is by how many bytes a segment may be smaller before it is reported.
const ClampBar = 20

// Thresholds of packets that do not arrive. A share is in percent.
const (
	swallowBar = 90 // above it a size does not pass
	passBar    = 10 // below it a size passes
)
