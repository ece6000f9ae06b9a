package wire

import "encoding/binary"

// Kinds of TCP options.
const (
	optionEnd, optionNone = 0, 1
	optionMSS             = 2
	optionWScale          = 3
	optionSACK            = 4
	optionTimestamps      = 8
)

// rewrite removes or lowers options of a SYN or SYN-ACK in place, and reports whether it changed one. It
// overwrites removed options with no-ops, so lengths stay.
func (w *Impairment) rewrite(f *frame) bool {
	if f.proto != protoTCP || f.transport == 0 || f.raw[f.transport+13]&flagSYN == 0 {
		return false
	}
	h := f.raw[f.transport:f.payload]
	before := sum(0, h)
	for o := h[tcpSize:]; len(o) > 0 && o[0] != optionEnd; {
		if o[0] == optionNone {
			o = o[1:]
			continue
		}
		if len(o) < 2 || int(o[1]) < 2 || int(o[1]) > len(o) {
			break // a malformed option: the next has no known start
		}
		w.rewriteOption(o[:o[1]:o[1]])
		o = o[o[1]:]
	}
	after := sum(0, h)
	if before == after {
		return false
	}
	if f.raw[vnetFlags]&flagNeedsCsum == 0 { // else the checksum is computed after all changes
		c := ^binary.BigEndian.Uint16(h[16:])
		binary.BigEndian.PutUint16(h[16:], ^fold(uint32(c)+uint32(^fold(before))+uint32(fold(after)))) // RFC 1624
	}
	return true
}

// rewriteOption changes one option.
func (w *Impairment) rewriteOption(o []byte) {
	strip := o[0] == optionWScale && w.StripWScale ||
		o[0] == optionSACK && w.StripSACK ||
		o[0] == optionTimestamps && w.StripTimestamps
	switch {
	case strip:
		for i := range o {
			o[i] = optionNone
		}
	case o[0] == optionMSS && len(o) == 4 && w.ClampMSS > 0 && int(binary.BigEndian.Uint16(o[2:])) > w.ClampMSS:
		binary.BigEndian.PutUint16(o[2:], uint16(w.ClampMSS))
	}
}
