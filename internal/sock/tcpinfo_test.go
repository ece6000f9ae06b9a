package sock

import (
	"encoding/binary"
	"testing"
)

// record builds a struct tcp_info of n bytes in which every 32-bit word holds its offset.
func record(n int) []byte {
	b := make([]byte, n)
	for off := 8; off+4 <= n; off += 4 {
		binary.NativeEndian.PutUint32(b[off:], uint32(off))
	}
	if n >= 8 {
		b[0], b[5], b[7] = 1, optTimestamps|optSACK|optWScale, 1
		b[6] = 0x97
		if !littleEndian() {
			b[6], b[7] = 0x79, 0x80
		}
	}
	return b
}

func TestParseTCPInfoOffsets(t *testing.T) {
	i := ParseTCPInfo(record(248))
	for _, c := range []struct {
		name string
		got  any
		off  uint32
	}{
		{"rto", i.RTO, 8}, {"snd_mss", i.SendMSS, 16}, {"rtt", i.RTT, 68}, {"snd_cwnd", i.Cwnd, 80},
		{"total_retrans", i.Retrans, 100}, {"min_rtt", i.MinRTT, 148}, {"delivered", i.Delivered, 192},
		{"snd_wnd", i.SendWnd, 228}, {"rcv_wnd", i.RecvWnd, 232}, {"pmtu", i.PMTU, 60}, {"notsent", i.NotSent, 144},
	} {
		switch got := c.got.(type) {
		case *uint32:
			if got != nil && *got == c.off {
				continue
			}
		case *int64:
			if got != nil && *got == 1000*int64(c.off) {
				continue
			}
		}
		t.Errorf("%s: %v, want the word at %d", c.name, c.got, c.off)
	}
	if *i.State != 1 || !*i.Timestamps || !*i.SACK || !*i.WScaleOK || *i.ECN || !*i.AppLimited {
		t.Errorf("state and options: %+v", i)
	}
	if *i.SendWScale != 7 || *i.RecvWScale != 9 {
		t.Errorf("window scales %d and %d, want 7 and 9", *i.SendWScale, *i.RecvWScale)
	}
	if *i.TotalRTO != binary.NativeEndian.Uint16(record(248)[240:]) {
		t.Errorf("total_rto %d", *i.TotalRTO)
	}
}

// An old kernel's shorter structure reads as not checked, not as zero.
func TestParseTCPInfoShort(t *testing.T) {
	for _, c := range []struct {
		kernel                        string
		n                             int
		retrans, busy, bytesSent, wnd bool
	}{
		{"2.6", 104, true, false, false, false},
		{"4.4", 160, true, false, false, false},
		{"4.18", 192, true, true, false, false},
		{"4.19", 224, true, true, true, false},
		{"6.2", 240, true, true, true, true},
		{"nothing", 0, false, false, false, false},
		{"cut in a field", 103, false, false, false, false},
	} {
		i := ParseTCPInfo(record(c.n))
		if (i.Retrans != nil) != c.retrans || (i.BusyUs != nil) != c.busy || (i.BytesSent != nil) != c.bytesSent || (i.SendWnd != nil) != c.wnd {
			t.Errorf("%s (%d bytes): %+v", c.kernel, c.n, i)
		}
	}
}

// The kernel's "never measured" is not a value.
func TestParseTCPInfoNever(t *testing.T) {
	b := record(248)
	binary.NativeEndian.PutUint32(b[148:], ^uint32(0))
	binary.NativeEndian.PutUint32(b[68:], 0)
	binary.NativeEndian.PutUint32(b[76:], 1<<31-1)
	binary.NativeEndian.PutUint64(b[104:], ^uint64(0))
	binary.NativeEndian.PutUint64(b[112:], ^uint64(0))
	if i := ParseTCPInfo(b); i.MinRTT != nil || i.RTT != nil || i.SSThresh != nil || i.PacingRate != nil || i.MaxPacingRate != nil {
		t.Errorf("%+v, want no min_rtt, rtt, ssthresh and pacing rates", i)
	}
}

func FuzzParseTCPInfo(f *testing.F) {
	f.Add(record(248))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		i := ParseTCPInfo(b)
		if (i.RecvWnd != nil) != (len(b) >= 236) {
			t.Errorf("%d bytes: rcv_wnd %v", len(b), i.RecvWnd)
		}
	})
}
