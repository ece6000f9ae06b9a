package frame

import "encoding/binary"

// tcp decodes a segment (RFC 9293).
func tcp(f part, p *Packet) Verdict {
	if v, lacks := f.lacks(20); lacks {
		return v
	}
	b := f.data[:20]
	header := int(b[12]>>4) * 4
	if header < 20 || header > f.wire && !p.Fragment {
		return IsBroken
	}
	p.Source.Port, p.Target.Port = binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
	p.Seq, p.Ack = binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint32(b[8:])
	p.Flags, p.Window = b[13], binary.BigEndian.Uint16(b[14:])
	p.Payload = max(f.wire-header, 0) // a first fragment may end within the options
	if header > 20 {
		p.Options.Bytes = uint8(header - 20)
		p.Options.Cut = len(f.data) < header
		p.Options.decode(f.data[20:min(header, len(f.data))])
	}
	return IsTCP
}

// Kinds of options (IANA: TCP Option Kind Numbers).
const (
	optionEnd        = 0
	optionNop        = 1
	optionMSS        = 2
	optionScale      = 3
	optionSACKOK     = 4
	optionSACK       = 5
	optionTimestamps = 8
	optionMultipath  = 30
	optionFastOpen   = 34
	optionTrial      = 254 // shared by experiments (RFC 6994), formerly also by fast open
)

// decode reads the options one by one, as far as they are valid.
func (o *Options) decode(b []byte) {
	for i := 0; len(b) > 0 && b[0] != optionEnd; i++ {
		if i < len(o.Kinds) {
			o.Kinds[i] = b[0]
		}
		n := 1
		if b[0] != optionNop {
			if len(b) < 2 || b[1] < 2 || int(b[1]) > len(b) {
				return
			}
			n = int(b[1])
			o.take(b[0], b[2:n])
		}
		b = b[n:]
	}
}

// take reads the value of one option. It skips an option of a length that its
// kind does not have, as TCP stacks do.
func (o *Options) take(kind uint8, value []byte) {
	switch {
	case kind == optionTimestamps && len(value) == 8:
		o.Timestamps = true
		o.TSVal, o.TSEcr = binary.BigEndian.Uint32(value), binary.BigEndian.Uint32(value[4:])
	case kind == optionMSS && len(value) == 2:
		o.HasMSS, o.MSS = true, binary.BigEndian.Uint16(value)
	case kind == optionScale && len(value) == 1:
		o.HasScale, o.Scale = true, value[0]
	case kind == optionSACKOK && len(value) == 0:
		o.SACKOK = true
	case kind == optionSACK:
		for o.SACKs = 0; len(value) >= 8 && int(o.SACKs) < len(o.SACK); o.SACKs++ {
			o.SACK[o.SACKs] = [2]uint32{binary.BigEndian.Uint32(value), binary.BigEndian.Uint32(value[4:])}
			value = value[8:]
		}
	case kind == optionMultipath:
		o.Multipath = true
	case kind == optionFastOpen, kind == optionTrial && len(value) >= 2 && value[0] == 0xf9 && value[1] == 0x89:
		o.FastOpen = true
	}
}
