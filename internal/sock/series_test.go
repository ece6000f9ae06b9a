package sock

import (
	"testing"
	"time"

	"thru/internal/measure"
)

// reading returns a reading with its byte counters.
func reading(in, out uint64) Connection {
	return Connection{TCP: measure.TCPInfo{BytesReceived: &in, BytesAcked: &out}, Moment: Moment{Cwnd: 10, SendWnd: 65536, InFlight: 5, MSS: 1000}, Unread: 700,
		Granted: Granted{SendBuffer: 2000, RecvBuffer: 4000, Congestion: "cubic"}}
}

// TestSeries: the summary is of the direction with more data, since the start.
func TestSeries(t *testing.T) {
	at := time.Now()
	for _, tt := range []struct {
		name     string
		later    bool
		readings []Connection
		bytes    int64
		granted  int64
		sends    bool
	}{
		{"it sends", false, []Connection{reading(50, 1000), reading(60, 4000)}, 3000, 2000, true},
		{"it receives", false, []Connection{reading(50, 1000), reading(6050, 1010)}, 6000, 4000, false},
		{"it was made later", true, []Connection{reading(0, 1000), reading(0, 4000)}, 4000, 2000, true},
	} {
		s := Series{Local: "a:1", Peer: "b:2", Asked: 1500}
		s.Add(reading(9, 9), at) // from an earlier run
		s.Begin(tt.later)
		if s.IsRead() {
			t.Error("a series that has begun anew was read")
		}
		for i, c := range tt.readings {
			s.Add(c, at.Add(time.Duration(i)*time.Second))
		}
		x := s.Stream()
		if x.Bytes != tt.bytes || x.Window.Granted != tt.granted || x.Window.Usable != tt.granted/BufferOverhead || x.Window.Cut != (tt.granted/BufferOverhead < 1500) || x.Local != "a:1" || x.Congestion != "cubic" ||
			(*x.TCPStart.BytesAcked == 0) != tt.later || x.Timeline.Samples != len(tt.readings) || (x.Timeline.InFlight != nil) != tt.sends || (x.Timeline.Unread != nil) == tt.sends {
			t.Errorf("%s: %+v", tt.name, x)
		}
	}
}

func TestCarriers(t *testing.T) {
	all := DataStreams([]measure.Stream{{Bytes: 5}, {Bytes: 1000}, {Bytes: 400}, {Bytes: 10}}, 8)
	if len(all) != 3 || all[0].Bytes != 1000 || all[1].Index != 1 || all[2].Bytes != 10 {
		t.Errorf("%+v", all)
	}
	if all = DataStreams(all, 2); len(all) != 2 {
		t.Errorf("%+v", all)
	}
	if all = DataStreams(nil, 2); len(all) != 0 {
		t.Errorf("%+v", all)
	}
}
