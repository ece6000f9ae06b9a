// Package sock sets and reads options of TCP sockets: buffers, congestion control, MSS, DSCP, device, and the kernel's TCP_INFO.
//
// Linux is complete; other systems have the options that they share with it, and return an error for the others.
package sock

import (
	"encoding/binary"
	"unsafe"

	"thru/internal/measure"
)

// TCPInfoSize is the buffer size for struct tcp_info: more than any released kernel fills, so that the returned length is the kernel's own.
const TCPInfoSize = 320

// Bits of tcpi_options (include/uapi/linux/tcp.h).
const (
	optTimestamps = 1
	optSACK       = 2
	optWScale     = 4
	optECN        = 8
)

// ParseTCPInfo reads struct tcp_info as the kernel returned it, in the
// machine's byte order. A field beyond the returned length stays nil.
func ParseTCPInfo(b []byte) measure.TCPInfo {
	r := infoReader{b}
	t := measure.TCPInfo{
		State: r.u8(0), CAState: r.u8(1), Backoff: r.u8(4),
		RTO: r.span(8), SendMSS: r.u32(16), RecvMSS: r.u32(20),
		Unacked: r.u32(24), Lost: r.u32(32), PMTU: r.u32(60),
		RTT: r.span(68), RTTVar: r.span(72), SSThresh: r.u32(76), Cwnd: r.u32(80),
		AdvMSS: r.u32(84), Reordering: r.u32(88), RecvRTT: r.span(92), RecvSpace: r.u32(96),
		Retrans: r.u32(100), PacingRate: r.u64(104), MaxPacingRate: r.u64(112),
		BytesAcked: r.u64(120), BytesReceived: r.u64(128),
		SegsOut: r.u32(136), SegsIn: r.u32(140), NotSent: r.u32(144), MinRTT: r.span(148),
		DataSegsIn: r.u32(152), DataSegsOut: r.u32(156), DeliveryRate: r.u64(160),
		BusyUs: r.u64(168), RwndLimitedUs: r.u64(176), SndbufLimUs: r.u64(184),
		Delivered: r.u32(192), DeliveredCE: r.u32(196),
		BytesSent: r.u64(200), BytesRetrans: r.u64(208),
		DSACKDups: r.u32(216), ReordSeen: r.u32(220), RecvOOO: r.u32(224),
		SendWnd: r.u32(228), RecvWnd: r.u32(232), TotalRTO: r.u16(240),
	}
	if o := r.u8(5); o != nil {
		t.Timestamps = new(*o&optTimestamps != 0)
		t.SACK = new(*o&optSACK != 0)
		t.WScaleOK = new(*o&optWScale != 0)
		t.ECN = new(*o&optECN != 0)
	}
	if w := r.u8(6); w != nil {
		t.SendWScale, t.RecvWScale = nibbles(*w)
	}
	// The kernel fills byte 7 since delivery_rate came (4.9); before, it is padding.
	if f := r.u8(7); f != nil && len(b) >= 168 {
		t.AppLimited = new(firstBit(*f))
	}
	dropUnknown(&t)
	return t
}

// dropUnknown removes the values that mean "never measured" or "none".
func dropUnknown(t *measure.TCPInfo) {
	const never = int64(^uint32(0)) * microsecond
	if t.MinRTT != nil && (*t.MinRTT == never || *t.MinRTT == 0) {
		t.MinRTT = nil
	}
	if t.RTT != nil && *t.RTT == 0 {
		t.RTT = nil
	}
	t.WithoutSentinels()
}

type infoReader struct{ b []byte }

func (r infoReader) u8(off int) *uint8 {
	if off+1 > len(r.b) {
		return nil
	}
	return new(r.b[off])
}

func (r infoReader) u16(off int) *uint16 {
	if off+2 > len(r.b) {
		return nil
	}
	return new(binary.NativeEndian.Uint16(r.b[off:]))
}

func (r infoReader) u32(off int) *uint32 {
	if off+4 > len(r.b) {
		return nil
	}
	return new(binary.NativeEndian.Uint32(r.b[off:]))
}

// microsecond is the unit of the kernel's times, in ns.
const microsecond = 1000

// span returns a 32-bit time in microseconds as ns.
func (r infoReader) span(off int) *int64 {
	us := r.u32(off)
	if us == nil {
		return nil
	}
	return new(int64(*us) * microsecond)
}

func (r infoReader) u64(off int) *uint64 {
	if off+8 > len(r.b) {
		return nil
	}
	return new(binary.NativeEndian.Uint64(r.b[off:]))
}

// nibbles splits a byte with two 4-bit fields: C puts the first field in the low half on little-endian machines and in the high half on others.
func nibbles(b uint8) (first, second *uint8) {
	if littleEndian() {
		return new(b & 15), new(b >> 4)
	}
	return new(b >> 4), new(b & 15)
}

func firstBit(b uint8) bool {
	if littleEndian() {
		return b&1 != 0
	}
	return b&0x80 != 0
}

func littleEndian() bool {
	one := uint16(1)
	return *(*uint8)(unsafe.Pointer(&one)) == 1
}
