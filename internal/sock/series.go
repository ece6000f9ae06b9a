package sock

import (
	"cmp"
	"slices"
	"time"

	"thru/internal/measure"
)

// Series holds the readings of one connection of another program: the first, the latest, and the distributions between them. The zero value has none.
type Series struct {
	Local, Peer string // HOST:PORT, seen from this end
	Asked       int64  // requested buffer size in bytes; 0: none

	first, latest measure.TCPInfo
	granted       Granted
	begun, last   time.Time
	send, receive Readings
	full          portion // readings in which the send buffer is full
	fromBirth     bool
}

// Begin discards all readings. The counters then count from the next reading on, or from the start of the connection where that is after this call.
func (s *Series) Begin(bornLater bool) {
	*s = Series{Local: s.Local, Peer: s.Peer, Asked: s.Asked, fromBirth: bornLater}
}

// A program waits until a third of the used send buffer is free again (include/net/sock.h, sk_stream_min_wspace).
const fullPart = 3

// Add adds one reading.
func (s *Series) Add(c Connection, at time.Time) {
	if s.begun.IsZero() {
		s.first, s.begun = c.TCP, at
	}
	s.latest, s.last, s.granted = c.TCP, at, c.Granted
	s.send.Count++
	s.send.Sender(c.Moment)
	s.full.add(fullPart*c.Queued >= (fullPart-1)*int64(c.Granted.SendBuffer), c.Queued >= 0 && c.Granted.SendBuffer > 0)
	s.receive.Count++
	s.receive.Receiver(c.Moment, c.Unread, c.Unread >= 0)
}

// IsRead reports whether there is any reading.
func (s *Series) IsRead() bool { return !s.begun.IsZero() }

// Stream returns the summary of the readings, for the direction with more data.
func (s *Series) Stream() measure.Stream {
	start := &s.first
	if s.fromBirth {
		start = s.latest.AtBirth()
	}
	moved := func(of measure.Counter) int64 { return int64(start.DeltaTo(&s.latest, of).N) }
	in, out := moved(measure.BytesReceived), moved(measure.BytesAcked)
	window := measure.Buffer{Asked: s.Asked, Granted: int64(s.granted.SendBuffer)}
	timeline := s.send.Timeline(s.last.Sub(s.begun))
	if timeline != nil {
		timeline.BufferFull = s.full.pct()
	}
	if in > out {
		window.Granted = int64(s.granted.RecvBuffer)
		timeline = s.receive.Timeline(s.last.Sub(s.begun))
	}
	if s.Asked > 0 {
		window.Usable = window.Granted / BufferOverhead
		window.Cut = window.Usable < s.Asked
	}
	return measure.Stream{
		Local: s.Local, Peer: s.Peer, Bytes: max(in, out), TotalBytes: max(in, out), Window: window,
		Congestion: s.granted.Congestion, MSS: s.granted.MSS, TCPStart: new(*start), TCP: new(s.latest), Timeline: timeline,
	}
}

// DataStreams returns the streams that carried data, those with the most first, at most that many. It leaves out streams with less than a hundredth of the
// most, which carried commands.
func DataStreams(all []measure.Stream, most int) []measure.Stream {
	slices.SortStableFunc(all, func(a, b measure.Stream) int { return cmp.Compare(b.Bytes, a.Bytes) })
	for i := range all {
		all[i].Index = i
		if i == most || all[i].Bytes*100 < all[0].Bytes {
			return all[:i]
		}
	}
	return all
}
