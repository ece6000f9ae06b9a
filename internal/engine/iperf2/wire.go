// Package iperf2 is the engine for iperf version 2, in both roles: Engine calls its server, Server takes the calls of its clients. The data moves in package
// worker.
//
// iperf2 has no control channel. The client's request is a header in front of its data. Over TCP no end reports anything to the other; over UDP the server
// sends a report when the client signals its end.
//
// Source of the layouts: include/payloads.h of iperf 2.1.8, and its bytes on the wire.
package iperf2

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// Flags of a header's first word. The first three show that there is a header.
const (
	flagVersion1   = 0x80000000 // the server must connect back (-d, -r)
	flagExtended   = 0x40000000 // the extension follows the base
	flagUDPTests   = 0x20000000 // UDP: upper flags have more than the numbering
	flagKey        = 0x10000000 // a key follows that the server must know
	flagNumber64   = 0x08000000 // UDP: datagrams have 64-bit numbers
	flagVersion2   = 0x04000000 // reverse and bidirectional
	flagAsksPeer   = 0x02000000 // TCP: the server must answer with an ack
	flagBounceback = 0x00800000 // alone: another header follows, for requests and responses
	flagLength     = 0x00010000 // the header's length is in lengthMask
	flagRunNow     = 0x00000001 // with flagVersion1: both directions at once

	lengthMask = 0x000001fe // the length times two
)

// Upper flags, in the extension.
const (
	upperNoReport   = 0x0008 // UDP: no final datagram and no report
	upperTripTimes  = 0x0010 // the time of sending follows the extension, and the ack returns it
	upperPackets    = 0x0080 // the rate counts datagrams
	upperReverse    = 0x0400 // the server sends
	upperFullDuplex = 0x0800 // both send on one connection
)

// Sizes in bytes.
const (
	datagramSize  = 16 // low word of the number, seconds, microseconds, high word
	baseSize      = 24
	extensionSize = 36
	startSize     = 20
	headerSize    = baseSize + extensionSize
	flagsSize     = 4
	ackSize       = 28
	ackTimes      = 24 // extra bytes of an ack to a client that measures trip times
	reportBase    = 40
	reportMore    = 60 // transit times, which this package does not read
	reportHigh    = 12
	reportSize    = datagramSize + reportBase + reportMore + reportHigh
	oldDatagram   = 12 // before 2.0.10 a number had no high word
)

// version is the version of an iperf: 2.1.8 is 0x0002000100080003; the last two bytes are the release stage.
type version uint64

// spoken is the version whose wire format this package implements.
const spoken = version(0x0002000100080003)

// firstReverse is the first version that supports reverse and bidirectional tests.
const firstReverse = version(0x00020000000e0000)

// String returns a version such as "2.1.8"; empty where it is not known.
func (v version) String() string {
	if v == 0 {
		return ""
	}
	return fmt.Sprintf("%d.%d.%d", v>>48, v>>32&0xffff, v>>16&0xffff)
}

// program returns the name in results.
func (v version) program() string {
	if v == 0 {
		return "iperf2"
	}
	return "iperf2 " + v.String()
}

// header is the test request of a client.
type header struct {
	flags   uint32
	streams uint32
	port    uint32 // for the server to connect back to
	length  uint32 // of a write or a datagram; 0 where the user set none
	amount  int32  // bytes of each stream; negative: time in amountUnits
	upper   uint16
	version version
	tos     uint8
	rate    uint64        // bit/s of each stream, or datagrams a second
	sent    time.Duration // since 1970, for a client that measures trip times
}

// amountUnit is the unit of a header's time.
const amountUnit = 10 * time.Millisecond

// headerLen returns the length of the header by its first word; ok is false without a header. Plain traffic of a client without a header may begin with any
// bytes.
func headerLen(flags uint32) (n int, ok bool) {
	switch {
	case flags&(flagVersion1|flagExtended|flagVersion2) == 0:
		return 0, false
	case flags&flagLength != 0:
		n = int(flags&lengthMask) >> 1
		return n, n >= baseSize
	}
	if flags&(flagVersion1|flagExtended) != 0 {
		n += baseSize
	}
	if flags&(flagVersion2|flagExtended) != 0 {
		n += extensionSize
	}
	return n, n >= baseSize
}

var errNoHeader = errors.New("iperf2: reading a header: it is missing or truncated")

// parseHeader reads a header of a TCP stream, or what follows the number in a datagram. It returns errNoHeader where it is shorter than its flags require.
func parseHeader(b []byte) (header, error) {
	if len(b) < baseSize {
		return header{}, errNoHeader
	}
	word := func(i int) uint32 { return binary.BigEndian.Uint32(b[4*i:]) }
	h := header{flags: word(0), streams: word(1), port: word(2), length: word(3), amount: int32(word(5))}
	if _, ok := headerLen(h.flags); !ok {
		return header{}, errNoHeader
	}
	if h.flags&(flagExtended|flagVersion2) == 0 {
		return h, nil
	}
	if len(b) < headerSize {
		return header{}, errNoHeader
	}
	h.upper = uint16(word(8) >> 16)
	h.version = version(word(9))<<32 | version(word(10))
	h.tos = uint8(word(11))
	h.rate = uint64(word(12)) | uint64(word(13)>>8)<<32
	if h.upper&upperTripTimes != 0 && len(b) >= headerSize+startSize {
		h.sent = seconds(word(16), word(17))
	}
	return h, nil
}

// append appends the encoded base and extension to b.
func (h header) append(b []byte) []byte {
	for _, w := range [...]uint32{
		h.flags, h.streams, h.port, h.length, 0, uint32(h.amount),
		0, 0, uint32(h.upper) << 16, uint32(h.version >> 32), uint32(h.version), uint32(h.tos),
		uint32(h.rate), uint32(h.rate>>32) << 8, 0,
	} {
		b = binary.BigEndian.AppendUint32(b, w)
	}
	return b
}

// wantsAck reports whether a server answers the header, over TCP.
func (h header) wantsAck() bool {
	return h.flags&flagExtended != 0 && h.flags&flagVersion2 == 0 || h.flags&flagAsksPeer != 0
}

// reverse and fullDuplex report the direction of the data.
func (h header) reverse() bool {
	return h.flags&flagVersion2 != 0 && h.upper&upperReverse != 0 && !h.fullDuplex()
}

// callsBack reports whether the server must connect to the client's port (-d, -r).
func (h header) callsBack() bool { return h.flags&flagVersion1 != 0 && h.flags&flagVersion2 == 0 }

func (h header) fullDuplex() bool { return h.flags&flagVersion2 != 0 && h.upper&upperFullDuplex != 0 }

// seconds returns a time since 1970 from two words of the wire format.
func seconds(s, us uint32) time.Duration {
	return time.Duration(s)*time.Second + time.Duration(us)*time.Microsecond
}

// appendTime appends a time as two words.
func appendTime(b []byte, t time.Duration) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(t/time.Second))
	return binary.BigEndian.AppendUint32(b, uint32(t%time.Second/time.Microsecond))
}

// typeAck is the message type of an ack.
const typeAck = 2

// ack is a server's answer to a header over TCP. To a client that measures trip times it returns the time of the header's sending and arrival, and its own
// time of sending.
type ack struct {
	version            version
	times              bool
	sent, came, leaves time.Duration // since 1970
}

func (a ack) append(b []byte) []byte {
	n := uint32(ackSize)
	if a.times {
		n += ackTimes
	}
	for _, w := range [...]uint32{typeAck, n, 0, uint32(a.version >> 32), uint32(a.version), 0, 0} {
		b = binary.BigEndian.AppendUint32(b, w)
	}
	if !a.times {
		return b
	}
	for _, t := range [...]time.Duration{a.sent, a.came, a.leaves} {
		b = appendTime(b, t)
	}
	return b
}

// parseAck reads an ack without times.
func parseAck(b []byte) (ack, error) {
	word := func(i int) uint32 { return binary.BigEndian.Uint32(b[4*i:]) }
	if len(b) < ackSize || word(0) != typeAck || word(1) != ackSize {
		return ack{}, errors.New("iperf2: reading an ack: the format is not valid")
	}
	return ack{version: version(word(3))<<32 | version(word(4))}, nil
}

// report is a server's report of a UDP stream. It counts the client's final datagram and its bytes.
type report struct {
	bytes     int64
	duration  time.Duration
	lost      int64
	reordered int64
	datagrams int64 // the highest number: received plus lost
	jitter    time.Duration
}

// append appends the report as a datagram, for an old client without the high word of its number.
func (r report) append(b []byte, old bool) []byte {
	if old {
		return r.appendBase(append(b, make([]byte, oldDatagram)...), flagVersion1)
	}
	b = r.appendBase(append(b, make([]byte, datagramSize)...), flagVersion1|flagNumber64)
	b = append(b, make([]byte, reportMore)...)
	for _, n := range [...]int64{r.lost, r.reordered, r.datagrams} {
		b = binary.BigEndian.AppendUint32(b, uint32(n>>32))
	}
	return b
}

func (r report) appendBase(b []byte, flags uint32) []byte {
	b = binary.BigEndian.AppendUint32(b, flags)
	b = binary.BigEndian.AppendUint64(b, uint64(r.bytes))
	b = appendTime(b, r.duration)
	for _, n := range [...]int64{r.lost, r.reordered, r.datagrams} {
		b = binary.BigEndian.AppendUint32(b, uint32(n))
	}
	return appendTime(b, r.jitter)
}

// parseReport reads a server's report, also that of a version before 2.0.10. It returns an error for impossible counts.
func parseReport(b []byte) (report, error) {
	bad := errors.New("iperf2: reading a report: the format is not valid")
	at := datagramSize
	if len(b) >= oldDatagram+reportBase && binary.BigEndian.Uint32(b[oldDatagram:]) == flagVersion1 {
		at = oldDatagram
	}
	if len(b) < at+reportBase {
		return report{}, bad
	}
	word := func(i int) uint32 { return binary.BigEndian.Uint32(b[at+4*i:]) }
	if word(0)&flagVersion1 == 0 {
		return report{}, bad
	}
	r := report{
		bytes: int64(word(1))<<32 | int64(word(2)), duration: seconds(word(3), word(4)),
		lost: int64(word(5)), reordered: int64(word(6)), datagrams: int64(word(7)), jitter: seconds(word(8), word(9)),
	}
	if word(0)&flagNumber64 != 0 && len(b) >= reportSize {
		const high = (reportBase + reportMore) / 4
		r.lost |= int64(word(high)) << 32
		r.reordered |= int64(word(high+1)) << 32
		r.datagrams |= int64(word(high+2)) << 32
	}
	if r.bytes < 0 || r.lost < 0 || r.reordered < 0 || r.datagrams < r.lost {
		return report{}, bad
	}
	return r, nil
}

// appendNumber appends the number and the time that a datagram begins with.
func appendNumber(b []byte, number int64, sent time.Duration) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(number))
	b = appendTime(b, sent)
	return binary.BigEndian.AppendUint32(b, uint32(number>>32))
}

// parseNumber reads a datagram's number; negative means a final datagram. A client with 32-bit numbers leaves arbitrary bytes in place of the high word.
func parseNumber(b []byte) (number int64, ok bool) {
	if len(b) < oldDatagram {
		return 0, false
	}
	low := int64(int32(binary.BigEndian.Uint32(b)))
	if len(b) < datagramSize+flagsSize || binary.BigEndian.Uint32(b[datagramSize:])&flagNumber64 == 0 {
		return low, true
	}
	return int64(binary.BigEndian.Uint32(b[oldDatagram:]))<<32 | low&0xffffffff, true
}
