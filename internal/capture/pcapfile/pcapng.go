package pcapfile

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"thru/internal/capture/frame"
)

// Block types of pcapng.
const (
	sectionBlock    = 0x0a0d0d0a // equal in both byte orders
	sectionMagic    = "\x0a\x0d\x0d\x0a"
	interfaceBlock  = 1
	obsoleteBlock   = 2 // packet block of early files
	simpleBlock     = 3
	statisticsBlock = 5
	packetBlock     = 6
)

// orderMagic shows the byte order of a section.
const orderMagic = 0x1a2b3c4d

// pcapng reads a file of blocks. Each section has its own byte order and
// interfaces.
type pcapng struct {
	order  order
	first  int // index of the section's first interface among those of the file
	clocks []clock
	beyond uint32 // interfaces of the section beyond the limit
}

// order is the byte order of a section. Go's binary.ByteOrder would cost a
// call for each number.
type order struct{ big bool }

func (o order) u16(b []byte) uint16 {
	if o.big {
		return binary.BigEndian.Uint16(b)
	}
	return binary.LittleEndian.Uint16(b)
}

func (o order) u32(b []byte) uint32 {
	if o.big {
		return binary.BigEndian.Uint32(b)
	}
	return binary.LittleEndian.Uint32(b)
}

// u64 reads a 64-bit number.
func (o order) u64(b []byte) uint64 {
	if o.big {
		return binary.BigEndian.Uint64(b)
	}
	return binary.LittleEndian.Uint64(b)
}

// halves reads a time as pcapng stores it: the upper half first.
func (o order) halves(b []byte) uint64 { return uint64(o.u32(b))<<32 | uint64(o.u32(b[4:])) }

// block is one block of the file: its type, and its contents between the two
// length fields, as far as they fit in the buffer.
type block struct {
	kind uint32
	body []byte
}

// next reads blocks up to the next one with a packet.
func (g *pcapng) next(r *Reader, record *Record) error {
	for {
		b, err := g.block(r.in)
		if err != nil {
			return err
		}
		switch b.kind {
		case packetBlock:
			return g.packet(r, b.body, record)
		case obsoleteBlock:
			return g.obsolete(r, b.body, record)
		case simpleBlock:
			return g.simple(r, b.body, record)
		case sectionBlock:
			err = g.section(r, b.body)
		case interfaceBlock:
			err = g.describe(r, b.body)
		case statisticsBlock:
			err = g.statistics(r, b.body)
		}
		if err != nil {
			return err
		}
	}
}

// block reads one block.
func (g *pcapng) block(in *source) (block, error) {
	const header, trailer = 8, 4
	b, err := in.peek(12) // the minimum length of a block
	if err != nil {
		return block{}, err
	}
	if string(b[:4]) == sectionMagic { // its byte order may differ from that of the section before
		g.order.big = b[8] == orderMagic>>24
		if g.order.u32(b[8:]) != orderMagic {
			return block{}, fmt.Errorf("%w: a section of no byte order", ErrDamaged)
		}
	}
	kind, length := g.order.u32(b), g.order.u32(b[4:])
	if length < header+trailer || length%4 != 0 {
		return block{}, fmt.Errorf("%w: a block of type %#x and length %d", ErrDamaged, kind, length)
	}
	if length > mostRecord && kind <= packetBlock {
		return block{}, fmt.Errorf("%w: a block of type %#x and length %d", ErrDamaged, kind, length)
	}
	kept := int(min(length, bufferBytes))
	b, err = in.peek(kept)
	if err != nil {
		return block{}, cut(err)
	}
	if uint32(kept) < length {
		in.skip(int64(length))
		return block{kind, b[header:]}, nil
	}
	if again := g.order.u32(b[kept-trailer:]); again != length {
		return block{}, fmt.Errorf("%w: a block of type %#x has length %d at its begin and %d at its end", ErrDamaged, kind, length, again)
	}
	in.skip(int64(length))
	return block{kind, b[header : kept-trailer]}, nil
}

// packet reads an enhanced packet block.
func (g *pcapng) packet(r *Reader, b []byte, record *Record) error {
	if len(b) < 20 {
		return fmt.Errorf("%w: a packet block of %d bytes", ErrDamaged, len(b))
	}
	return g.fill(r, record, g.order.u32(b), g.order.halves(b[4:]), b[12:])
}

// obsolete reads a packet block of early files: the interface number has 16
// bits, and the count of packets dropped since the last one follows.
func (g *pcapng) obsolete(r *Reader, b []byte, record *Record) error {
	if len(b) < 20 {
		return fmt.Errorf("%w: a packet block of %d bytes", ErrDamaged, len(b))
	}
	return g.fill(r, record, uint32(g.order.u16(b)), g.order.halves(b[4:]), b[12:])
}

// fill makes a record from the interface, the time, and the rest: two lengths
// and the data.
func (g *pcapng) fill(r *Reader, record *Record, nic uint32, time uint64, b []byte) error {
	if nic >= uint32(len(g.clocks)) {
		return g.noInterface("a packet", nic)
	}
	captured, wire := g.order.u32(b), g.order.u32(b[4:])
	if err := record.sized(captured, wire); err != nil {
		return err
	}
	data := b[8:]
	if int(captured) > len(data) && len(data) < mostData {
		return fmt.Errorf("%w: %d captured bytes in a block that holds %d", ErrDamaged, captured, len(data))
	}
	record.Interface = g.first + int(nic)
	record.TimeNs = g.clocks[nic].ns(time)
	record.Data = data[:min(int(captured), len(data), mostData)]
	return nil
}

// simple reads a simple packet block: of the first interface, without a time,
// cut at the interface's snap length.
func (g *pcapng) simple(r *Reader, b []byte, record *Record) error {
	if len(b) >= 4 && len(g.clocks) == 0 && g.beyond > 0 {
		return g.noInterface("a packet", 0)
	}
	if len(b) < 4 || len(g.clocks) == 0 {
		return fmt.Errorf("%w: a simple packet block of %d bytes, %d interfaces", ErrDamaged, len(b), len(g.clocks))
	}
	wire, data := g.order.u32(b), b[4:]
	captured := int(min(wire, mostWire))
	if snap := r.interfaces[g.first].Snap; snap > 0 {
		captured = min(captured, snap)
	}
	captured = min(captured, len(data), mostData)
	record.Interface = g.first
	record.Data = data[:captured]
	return record.sized(uint32(captured), wire)
}

// section starts a new section, without the interfaces of the last one.
func (g *pcapng) section(r *Reader, b []byte) error {
	if len(b) < 16 {
		return fmt.Errorf("%w: a section header of %d bytes", ErrDamaged, len(b))
	}
	if major := g.order.u16(b[4:]); major != 1 {
		return fmt.Errorf("%w: version %d of pcapng", ErrDamaged, major)
	}
	g.first, g.clocks, g.beyond = len(r.interfaces), g.clocks[:0], 0
	return nil
}

// Options of an interface and of its statistics.
const (
	optionName        = 2
	optionDescription = 3
	optionResolution  = 9
	optionOffset      = 14
	optionLost        = 5 // isb_ifdrop: by the interface
	optionLostSystem  = 7 // isb_osdrop: by the operating system
)

// describe adds an interface.
func (g *pcapng) describe(r *Reader, b []byte) error {
	if len(b) < 8 {
		return fmt.Errorf("%w: an interface block of %d bytes", ErrDamaged, len(b))
	}
	if len(r.interfaces) == mostInterfaces {
		g.beyond = min(g.beyond, math.MaxInt32) + 1
		return nil
	}
	nic := Interface{Link: frame.LinkType(g.order.u16(b)), Snap: snap(g.order.u32(b[4:]))}
	resolution, offset := byte(microseconds), int64(0)
	g.options(b[8:], func(code uint16, value []byte) {
		switch {
		case code == optionName:
			nic.Name = text(value)
		case code == optionDescription:
			nic.Description = text(value)
		case code == optionResolution && len(value) == 1:
			resolution = value[0]
		case code == optionOffset && len(value) == 8:
			offset = int64(g.order.u64(value))
		}
	})
	g.clocks = append(g.clocks, newClock(resolution, offset))
	r.interfaces = append(r.interfaces, nic)
	return nil
}

// noInterface returns the error for a packet, or what, of an unknown
// interface.
func (g *pcapng) noInterface(what string, nic uint32) error {
	if nic-uint32(len(g.clocks)) < g.beyond {
		return fmt.Errorf("%w: %s of an interface after the first %d of all", ErrLimit, what, mostInterfaces)
	}
	return fmt.Errorf("%w: %s of interface %d of %d", ErrDamaged, what, nic, uint32(len(g.clocks))+g.beyond)
}

// statistics stores the drop counts of an interface. Each block counts from
// the beginning.
func (g *pcapng) statistics(r *Reader, b []byte) error {
	if len(b) >= 12 && g.order.u32(b)-uint32(len(g.clocks)) < g.beyond {
		return nil // the interface is beyond the limit
	}
	if len(b) < 12 || g.order.u32(b) >= uint32(len(g.clocks)) {
		return fmt.Errorf("%w: statistics of no interface", ErrDamaged)
	}
	nic := &r.interfaces[g.first+int(g.order.u32(b))]
	var dropped int64
	var told bool
	g.options(b[12:], func(code uint16, value []byte) {
		if (code == optionLost || code == optionLostSystem) && len(value) == 8 {
			dropped += int64(min(g.order.u64(value), 1<<60))
			told = true
		}
	})
	if told {
		nic.Dropped = &dropped
	}
	return nil
}

// options calls take for each option. A list that is cut ends there.
func (g *pcapng) options(b []byte, take func(code uint16, value []byte)) {
	for len(b) >= 4 {
		code, n := g.order.u16(b), int(g.order.u16(b[2:]))
		padded := (n + 3) &^ 3
		if code == 0 || len(b) < 4+padded {
			return
		}
		take(code, b[4:4+n])
		b = b[4+padded:]
	}
}

// text returns a name that is safe to show: limited, and valid UTF-8.
func text(b []byte) string {
	return strings.ToValidUTF8(strings.TrimRight(string(b[:min(len(b), mostText)]), "\x00"), "?")
}
