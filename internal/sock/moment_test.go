package sock

import (
	"encoding/binary"
	"testing"
)

// A Moment agrees with ParseTCPInfo on the same structure.
func TestParseMomentOffsets(t *testing.T) {
	b := record(248)
	m, i := ParseMoment(b), ParseTCPInfo(b)
	for _, c := range []struct {
		name      string
		got, want int64
	}{
		{"ca_state", m.CAState, int64(*i.CAState)}, {"snd_mss", m.MSS, int64(*i.SendMSS)}, {"unacked", m.Unacked, int64(*i.Unacked)},
		{"snd_cwnd", m.Cwnd, int64(*i.Cwnd)}, {"rtt", m.RTT, int64(*i.RTT)}, {"pacing_rate", m.PacingRate, int64(*i.PacingRate)},
		{"notsent", m.NotSent, int64(*i.NotSent)}, {"snd_wnd", m.SendWnd, int64(*i.SendWnd)}, {"rcv_wnd", m.RecvWnd, int64(*i.RecvWnd)},
	} {
		if c.got != c.want {
			t.Errorf("%s is %d, want %d", c.name, c.got, c.want)
		}
	}
}

// In flight includes retransmissions, and leaves out segments that have arrived or are lost.
func TestInFlight(t *testing.T) {
	for _, c := range []struct {
		unacked, sacked, lost, retrans uint32
		want                           int64
	}{
		{10, 0, 0, 0, 10},
		{10, 3, 2, 1, 6},
		{10, 8, 3, 0, 0}, // the counters are from different moments
	} {
		b := record(248)
		for off, v := range map[int]uint32{24: c.unacked, 28: c.sacked, 32: c.lost, 36: c.retrans} {
			binary.NativeEndian.PutUint32(b[off:], v)
		}
		if m := ParseMoment(b); m.InFlight != c.want {
			t.Errorf("%+v: %d in flight", c, m.InFlight)
		}
	}
}

// A field that an old kernel's shorter structure lacks is not zero.
func TestParseMomentShort(t *testing.T) {
	for _, c := range []struct {
		n                          int
		cwnd, pacing, notSent, wnd bool
	}{
		{0, false, false, false, false}, {104, true, false, false, false}, {144, true, true, false, false},
		{192, true, true, true, false}, {240, true, true, true, true},
	} {
		m := ParseMoment(record(c.n))
		if m.Cwnd >= 0 != c.cwnd || m.InFlight >= 0 != c.cwnd || m.PacingRate >= 0 != c.pacing || m.NotSent >= 0 != c.notSent || m.SendWnd >= 0 != c.wnd {
			t.Errorf("%d bytes: %+v", c.n, m)
		}
	}
	b := record(248)
	binary.NativeEndian.PutUint64(b[104:], ^uint64(0))
	if m := ParseMoment(b); m.PacingRate != NoPacing {
		t.Errorf("no pacing reads %d", m.PacingRate)
	}
}
