package pcapfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"testing"
)

// byteOrder is the byte order of the tests' files.
type byteOrder interface {
	binary.ByteOrder
	binary.AppendByteOrder
}

// maker makes parts of files in a byte order.
type maker struct{ byteOrder }

var (
	little = maker{binary.LittleEndian}
	big    = maker{binary.BigEndian}
)

// join concatenates numbers in the maker's order, bytes, and strings.
func (m maker) join(parts ...any) []byte {
	var b []byte
	for _, p := range parts {
		switch p := p.(type) {
		case uint16:
			b = m.AppendUint16(b, p)
		case uint32:
			b = m.AppendUint32(b, p)
		case uint64:
			b = m.AppendUint64(b, p)
		case []byte:
			b = append(b, p...)
		case string:
			b = append(b, p...)
		}
	}
	return b
}

// pcapOf is a pcap file of Ethernet.
func (m maker) pcapOf(magic uint32, major, minor uint16, packets ...[]byte) []byte {
	return m.join(magic, major, minor, uint32(0), uint32(0), uint32(100), uint32(1), slices.Concat(packets...))
}

// old is a packet of a pcap file.
func (m maker) old(seconds, rest, captured, wire uint32, data string) []byte {
	return m.join(seconds, rest, captured, wire, data)
}

// block is a block of pcapng.
func (m maker) block(kind uint32, parts ...any) []byte {
	body := m.join(parts...)
	body = append(body, make([]byte, -len(body)&3)...)
	length := uint32(len(body) + 12)
	return m.join(kind, length, body, length)
}

// section is a section header.
func (m maker) section() []byte {
	return m.block(sectionBlock, uint32(orderMagic), uint16(1), uint16(0), ^uint64(0))
}

// nic is an interface description.
func (m maker) nic(link uint16, snap uint32, options ...[]byte) []byte {
	return m.block(interfaceBlock, link, uint16(0), snap, slices.Concat(options...))
}

// option is an option.
func (m maker) option(code uint16, value string) []byte {
	return m.join(code, uint16(len(value)), value, make([]byte, -len(value)&3))
}

// packet is an enhanced packet block.
func (m maker) packet(nic uint32, time uint64, wire uint32, data string) []byte {
	return m.block(packetBlock, nic, m.time(time), uint32(len(data)), wire, data)
}

// time is a time: its upper half comes first in both byte orders.
func (m maker) time(time uint64) []byte { return m.join(uint32(time>>32), uint32(time)) }

// all reads a file to its end.
func all(in io.Reader) ([]Record, *Reader, error) {
	r, err := NewReader(in)
	if err != nil {
		return nil, nil, err
	}
	var records []Record
	for {
		record, err := r.Next()
		if errors.Is(err, io.EOF) {
			return records, r, nil
		}
		if err != nil {
			return records, r, err
		}
		record.Data = bytes.Clone(record.Data)
		records = append(records, record)
	}
}

// want fails the test where records differ.
func want(t *testing.T, got, want []Record) {
	t.Helper()
	if !slices.EqualFunc(got, want, same) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// same reports whether two records are equal.
func same(a, b Record) bool {
	return a.Number == b.Number && a.TimeNs == b.TimeNs && a.Interface == b.Interface && a.WireBytes == b.WireBytes && bytes.Equal(a.Data, b.Data)
}
