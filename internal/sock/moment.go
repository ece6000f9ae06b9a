package sock

import "encoding/binary"

// Moment is the state of a connection's windows at one time: the part of struct tcp_info that is read many times a second. A field that the kernel's structure
// does not include is negative.
type Moment struct {
	CAState    int64 // TCP_CA_OPEN 0, DISORDER 1, CWR 2, RECOVERY 3, LOSS 4
	MSS        int64 // bytes that a segment sent carries
	Unacked    int64 // segments sent and not acknowledged as a whole
	InFlight   int64 // unacknowledged and retransmitted segments that are probably still in the network
	Cwnd       int64 // segments
	NotSent    int64 // unsent bytes in the socket
	SendWnd    int64 // bytes, as the peer advertises
	RecvWnd    int64 // bytes, as this end advertises
	SegsIn     int64 // segments received, including empty and duplicate ones; the low 32 bits
	RTT        int64 // smoothed, ns; 0: never measured
	PacingRate int64 // bytes/s; NoPacing: none was ever set
}

// NoPacing is the pacing rate of a connection without a rate limit.
const NoPacing = int64(^uint64(0) >> 1)

// ParseMoment reads struct tcp_info as the kernel returned it. Unlike ParseTCPInfo it allocates nothing.
//
// In flight is what the kernel's tcp_packets_in_flight computes: unacknowledged segments, minus those selectively acknowledged or considered lost, plus
// retransmissions (include/net/tcp.h).
func ParseMoment(b []byte) Moment {
	r := momentReader{b}
	m := Moment{
		CAState: -1, InFlight: -1, MSS: r.u32(16), Unacked: r.u32(24), Cwnd: r.u32(80), RTT: microsecond * r.u32(68),
		PacingRate: r.u64(104), SegsIn: r.u32(140), NotSent: r.u32(144), SendWnd: r.u32(228), RecvWnd: r.u32(232),
	}
	if len(b) > 1 {
		m.CAState = int64(b[1])
	}
	if retrans := r.u32(36); retrans >= 0 {
		m.InFlight = max(m.Unacked-r.u32(28)-r.u32(32)+retrans, 0)
	}
	return m
}

type momentReader struct{ b []byte }

func (r momentReader) u32(off int) int64 {
	if off+4 > len(r.b) {
		return -1
	}
	return int64(binary.NativeEndian.Uint32(r.b[off:]))
}

// u64 limits larger numbers to the greatest int64.
func (r momentReader) u64(off int) int64 {
	if off+8 > len(r.b) {
		return -1
	}
	return int64(min(binary.NativeEndian.Uint64(r.b[off:]), uint64(NoPacing)))
}
