package stat

import (
	"fmt"

	"thru/internal/measure"
)

// wrap is what an interface and those under it add to each packet on the wire, and the interface that has a speed.
type wrap struct {
	vlans, bytes int
	unknown      string // what else they add, of unknown size; empty: nothing
	face         *measure.Interface
}

// mostStacked limits how many interfaces are stacked.
const mostStacked = 8

// wrapOf walks from an interface down to the port by which its frames leave. It ends at a bridge, behind which the
// peer may be on this host.
func wrapOf(host *measure.Facts, name string) (w wrap) {
	for range mostStacked {
		face := host.Interface(name)
		if face == nil {
			break
		}
		if w.face == nil || isSilent(w.face) {
			w.face = face
		}
		if face.VLAN != nil {
			w.vlans++
		}
		if t := face.Tunnel; t != nil {
			n, why := overheadOf(t)
			w.bytes += n
			w.unknown = why
			name = t.Lower
		} else if face.Bridge == nil && len(face.Lower) == 1 {
			name = face.Lower[0]
		} else {
			break
		}
	}
	return w
}

// isSilent reports whether an interface has no speed because it is only a name for others.
func isSilent(face *measure.Interface) bool {
	hasNone := face.SpeedBps == nil || *face.SpeedBps <= 0 || face.Nominal != nil && *face.Nominal
	return hasNone && (face.Tunnel != nil || face.VLAN != nil)
}

// leastWireGuard is what WireGuard adds to a packet over IPv4: IP 20, UDP 8, its header 16 and its tag 16; over
// IPv6 it is 20 more.
const leastWireGuard = 60

// overheadOf returns how many bytes a tunnel adds, at least, and what is not known of it.
func overheadOf(t *measure.Tunnel) (bytes int, unknown string) {
	switch {
	case t.Overhead > 0:
		return t.Overhead, ""
	case t.Kind == "wireguard":
		return leastWireGuard, "WireGuard adds 60 bytes over IPv4, which are counted, but 80 over IPv6"
	}
	return 0, "the overhead of the tunnel (" + t.Kind + ") is not known and not counted"
}

// add returns the total number of bytes.
func (w wrap) add() int { return vlanTag*w.vlans + w.bytes }

// leastWrap returns the smallest framing on the wire of any described end: a stated rate may refer to any of them.
func (s *summary) leastWrap() (least wrap) {
	for _, e := range s.evidence() {
		if e.Route == nil {
			continue
		}
		w := wrapOf(s.ends[e.EndPoint], e.Route.Interface)
		if w.face != nil && (least.face == nil || w.add() < least.add()) {
			least = w
		}
	}
	return least
}

// OnWire words what frames have in addition to the headers of the payload: ", + 4 bytes VLAN".
func OnWire(c *measure.Ceiling) string {
	text := ""
	if c.VLANs > 0 {
		text = fmt.Sprintf(", + %d bytes VLAN", vlanTag*c.VLANs)
	}
	if c.Encap > 0 {
		text += fmt.Sprintf(", + %d bytes tunnel", c.Encap)
	}
	return text
}
