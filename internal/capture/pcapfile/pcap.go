package pcapfile

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"thru/internal/capture/frame"
)

// Magic numbers of a pcap file, in the byte order of the host that wrote it.
const (
	microMagic = 0xa1b2c3d4
	nanoMagic  = 0xa1b23c4d
	extraMagic = 0xa1b2cd34 // "modified" pcap of old Linux: packets have a longer header
)

// pcap reads a file of the old format: a header, then packets of one
// interface.
type pcap struct {
	order   order
	unitNs  int64 // of the second half of a time
	header  int   // bytes of a packet's header
	swapped swap  // order of the two lengths of a packet
}

// swap says whether the two lengths of a packet are swapped, as in files of
// 1990s programs.
type swap uint8

const (
	never swap = iota
	always
	whereItShows // swapped where the captured length is the larger one
)

// newPcap reads the header of the file.
func newPcap(r *Reader, magic []byte) (*pcap, error) {
	p := &pcap{unitNs: 1000, header: 16}
	number := binary.LittleEndian.Uint32(magic)
	if number&0xff == 0xa1 {
		p.order.big, number = true, binary.BigEndian.Uint32(magic)
	}
	switch number {
	case microMagic:
	case nanoMagic:
		p.unitNs = 1
	case extraMagic:
		p.header = 24 // interface, protocol and direction follow
	default:
		begin, _ := r.in.peek(16)
		return nil, unknown(begin)
	}
	b, err := r.in.peek(24)
	if err != nil {
		return nil, cut(err)
	}
	major, minor := p.order.u16(b[4:]), p.order.u16(b[6:])
	switch {
	case major == 543, major == 2 && minor < 3:
		p.swapped = always
	case major == 2 && minor == 3:
		p.swapped = whereItShows
	case major != 2:
		return nil, fmt.Errorf("%w: version %d.%d of pcap", ErrDamaged, major, minor)
	}
	r.in.skip(24)
	// The upper half of the link type holds the length of the check sequence.
	r.interfaces = []Interface{{Link: frame.LinkType(p.order.u32(b[20:]) & 0xffff), Snap: snap(p.order.u32(b[16:]))}}
	return p, nil
}

// snap returns the snap length, 0 where it has no effect in practice.
func snap(bytes uint32) int {
	if bytes >= mostData {
		return 0
	}
	return int(bytes)
}

// next reads a packet.
func (p *pcap) next(r *Reader, record *Record) error {
	b, err := r.in.peek(p.header)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(b, func(x byte) bool { return x != 0 }) { // zeros, as a crash leaves them at the end of a file
		return fmt.Errorf("%w: zeros where a packet begins", ErrDamaged)
	}
	record.TimeNs = int64(p.order.u32(b))*1e9 + int64(p.order.u32(b[4:]))*p.unitNs
	captured, wire := p.order.u32(b[8:]), p.order.u32(b[12:])
	if p.swapped == always || p.swapped == whereItShows && captured > wire {
		captured, wire = wire, captured
	}
	if err := record.sized(captured, wire); err != nil {
		return err
	}
	kept := min(int(captured), mostData)
	b, err = r.in.peek(p.header + kept)
	if err != nil {
		return cut(err)
	}
	record.Data = b[p.header:]
	r.in.skip(int64(p.header) + int64(captured))
	return nil
}

// cut returns the error for an end of file where more must follow.
func cut(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
