// Package stamp sends and answers the small packets of a watch, in the format of STAMP (RFC 8762) with the session identifier of RFC 8972. A Sender has many
// sessions on one socket, a packet a second each, and sums them up: loss, delay, TTL, MTU. A Reflector answers packets of sessions that it
// has agreed to, each with a packet of the same size, so that it amplifies nothing.
//
// Packets of a session with a key are authenticated (HMAC-SHA-256, the first 16 bytes); others are dropped. Of the extensions of RFC 8972 it has the session
// identifier and the extra padding; others are answered as not recognized.
package stamp

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"hash"
)

// Sizes of packets in bytes, without IP and UDP headers. A larger packet has an extra padding TLV, which needs its own header.
const (
	PlainSize         = 44
	AuthenticatedSize = 112
	maxPacket         = 9216
)

// Request is the packet of a sender (RFC 8762, 4.2).
type Request struct {
	Sequence uint32
	At       Timestamp // when it was sent
	Error    Error
	SSID     uint16 // session identifier (RFC 8972, 3); 0: the sender does not use it
}

// Reply is the packet of a reflector (RFC 8762, 4.3): its own fields as in a Request, and a copy of the request's.
type Reply struct {
	Request
	Received  Timestamp // when the request arrived, in the format of At
	Of        Request   // its SSID is the reply's
	SenderTTL uint8     // TTL, or hop limit, with which the request arrived; 0: not known
}

// layout has the offsets of fields. All others must be zero (MBZ).
type layout struct {
	at, error, ssid, received, sequence2, at2, error2, ttl, size int
}

func layoutOf(authenticated bool) layout {
	if authenticated {
		return layout{at: 16, error: 24, ssid: 26, received: 32, sequence2: 48, at2: 64, error2: 72, ttl: 80, size: AuthenticatedSize}
	}
	return layout{at: 4, error: 12, ssid: 14, received: 16, sequence2: 24, at2: 28, error2: 36, ttl: 40, size: PlainSize}
}

// macSize is the size of the HMAC, which ends an authenticated packet.
const macSize = 16

// Key authenticates the packets of a session. It is not safe for concurrent use. A nil Key stands for the unauthenticated mode.
type Key struct {
	mac hash.Hash
	sum [sha256.Size]byte
}

// NewKey returns the key of these bytes; nil without bytes.
func NewKey(key []byte) *Key {
	if len(key) == 0 {
		return nil
	}
	return &Key{mac: hmac.New(sha256.New, key)}
}

// of returns the HMAC of the packet's first 96 bytes (RFC 8762, 4.4). It is valid until the next call.
func (k *Key) of(b []byte) []byte {
	k.mac.Reset()
	k.mac.Write(b[:AuthenticatedSize-macSize])
	return k.mac.Sum(k.sum[:0])[:macSize]
}

func (k *Key) sign(b []byte) {
	if k != nil {
		copy(b[AuthenticatedSize-macSize:AuthenticatedSize], k.of(b))
	}
}

// Verify reports whether a packet has the key's HMAC. Every packet passes a nil key.
func (k *Key) Verify(b []byte) bool {
	return k == nil ||
		len(b) >= AuthenticatedSize && subtle.ConstantTimeCompare(k.of(b), b[AuthenticatedSize-macSize:AuthenticatedSize]) == 1
}

// SizeOf returns the size of the smallest packet with that key.
func SizeOf(k *Key) int { return layoutOf(k != nil).size }

// Put fills b, whose size is SizeOf, or at least a TLV more.
func (r Request) Put(b []byte, k *Key) {
	clear(b)
	l := layoutOf(k != nil)
	r.put(b, l)
	pad(b[l.size:])
	k.sign(b)
}

func (r Request) put(b []byte, l layout) {
	binary.BigEndian.PutUint32(b, r.Sequence)
	binary.BigEndian.PutUint64(b[l.at:], uint64(r.At))
	binary.BigEndian.PutUint16(b[l.error:], uint16(r.Error))
	binary.BigEndian.PutUint16(b[l.ssid:], r.SSID)
}

// Put turns the request in b into its reply, which has the same size and the same TLVs.
func (r Reply) Put(b []byte, k *Key) {
	l := layoutOf(k != nil)
	clear(b[:l.size])
	r.Request.put(b, l)
	binary.BigEndian.PutUint64(b[l.received:], uint64(r.Received))
	binary.BigEndian.PutUint32(b[l.sequence2:], r.Of.Sequence)
	binary.BigEndian.PutUint64(b[l.at2:], uint64(r.Of.At))
	binary.BigEndian.PutUint16(b[l.error2:], uint16(r.Of.Error))
	b[l.ttl] = r.SenderTTL
	answerTLVs(b[l.size:])
	k.sign(b)
}

var errShort = errors.New("stamp: reading a packet: it is too short")

// ParseRequest reads a sender's packet. Its key must be verified separately.
func ParseRequest(b []byte, authenticated bool) (Request, error) {
	l := layoutOf(authenticated)
	if len(b) < l.size {
		return Request{}, errShort
	}
	return parse(b, l), nil
}

func parse(b []byte, l layout) Request {
	return Request{
		Sequence: binary.BigEndian.Uint32(b), At: Timestamp(binary.BigEndian.Uint64(b[l.at:])),
		Error: Error(binary.BigEndian.Uint16(b[l.error:])), SSID: binary.BigEndian.Uint16(b[l.ssid:]),
	}
}

// ParseReply reads a reflector's packet. Its key must be verified separately.
func ParseReply(b []byte, authenticated bool) (Reply, error) {
	l := layoutOf(authenticated)
	if len(b) < l.size {
		return Reply{}, errShort
	}
	r := Reply{Request: parse(b, l), Received: Timestamp(binary.BigEndian.Uint64(b[l.received:])), SenderTTL: b[l.ttl]}
	r.Of = Request{
		Sequence: binary.BigEndian.Uint32(b[l.sequence2:]), At: Timestamp(binary.BigEndian.Uint64(b[l.at2:])),
		Error: Error(binary.BigEndian.Uint16(b[l.error2:])), SSID: r.SSID,
	}
	return r, nil
}

// isReply reports whether a packet with the length of a request has the fields that only replies have. Both are signed by the same key, so a
// reflector that answered replies could be made to answer another.
func isReply(b []byte, authenticated bool) bool {
	l := layoutOf(authenticated)
	return binary.BigEndian.Uint64(b[l.received:]) != 0 || binary.BigEndian.Uint64(b[l.at2:]) != 0
}

// TLVs of RFC 8972, 4: a byte of flags, one for the type, two for the length.
const (
	tlvHeader       = 4
	tlvUnrecognized = 0x80 // set by senders, and cleared by reflectors that know the type
	tlvMalformed    = 0x40
	tlvPadding      = 1
)

// pad makes one extra padding TLV of zeros.
func pad(b []byte) {
	if len(b) < tlvHeader {
		return
	}
	b[0], b[1] = tlvUnrecognized, tlvPadding
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)-tlvHeader))
}

// answerTLVs sets the flags of a reflector.
func answerTLVs(b []byte) {
	for len(b) >= tlvHeader {
		b[0] = 0
		if b[1] != tlvPadding {
			b[0] = tlvUnrecognized
		}
		n := tlvHeader + int(binary.BigEndian.Uint16(b[2:]))
		if n > len(b) {
			b[0] |= tlvMalformed
			return
		}
		b = b[n:]
	}
}
