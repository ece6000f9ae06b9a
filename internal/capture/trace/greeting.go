package trace

import (
	"strconv"

	"thru/internal/capture/frame"
	"thru/internal/measure"
)

// mostScale limits the shift count of a window (RFC 7323, section 2.3).
const mostScale = 14

// greeting holds facts about a SYN or SYN-ACK.
type greeting struct {
	has     bool
	number  int64
	at      int64
	flags   uint8
	ttl     uint8
	id      uint16
	window  uint16
	options frame.Options
	again   measure.Count // its copies

	elsewhere bool // it was captured at another place too
}

func greetingOf(p *frame.Packet, at int64) greeting {
	return greeting{has: true, number: p.Number, at: at, flags: p.Flags, ttl: p.TTL, id: p.ID, window: p.Window, options: p.Options}
}

// optionNames are from IANA's registry "TCP Option Kind Numbers".
var optionNames = map[uint8]string{
	1: "nop", 2: "mss", 3: "window-scale", 4: "sack-permitted", 5: "sack", 8: "timestamps",
	19: "md5", 28: "user-timeout", 29: "tcp-ao", 30: "mptcp", 34: "fast-open", 69: "encryption", 253: "experiment", 254: "experiment",
}

// opening returns its contents; nil: it is not in the capture.
func (g *greeting) opening() *measure.Opening {
	if !g.has {
		return nil
	}
	x := &g.options
	o := &measure.Opening{
		Packet: g.number, Window: int(g.window), TTL: int(g.ttl), Again: g.again, FastTFO: x.FastOpen, MPTCP: x.Multipath,
	}
	o.HasScale, o.SACK, o.Timestamps = g.found(x.HasScale), g.found(x.SACKOK), g.found(x.Timestamps)
	if x.HasMSS {
		o.MSS = new(int(x.MSS))
	}
	if x.HasScale {
		o.WindowScale = new(int(x.Scale))
	}
	// RFC 3168, section 6.1.1: a SYN requests ECN by ECE and CWR, a SYN-ACK
	// grants it by ECE.
	ecn, answers := g.flags&(frame.ECE|frame.CWR), g.flags&frame.ACK != 0
	o.ECN = new(!answers && ecn == frame.ECE|frame.CWR || answers && ecn == frame.ECE)
	for _, kind := range x.Kinds {
		if kind == 0 {
			break
		}
		name, ok := optionNames[kind]
		if !ok {
			name = "kind " + strconv.Itoa(int(kind))
		}
		o.Options = append(o.Options, name)
	}
	return o
}

// found returns whether an option is there; nil: it may be in the part of the
// options that was not captured.
func (g *greeting) found(there bool) *bool {
	if g.options.Cut && !there {
		return nil
	}
	return &there
}
