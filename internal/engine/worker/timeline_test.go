package worker

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"thru/internal/measure"
	"thru/internal/sock"
)

func TestTimelineSumsUp(t *testing.T) {
	mark := time.Now()
	w := worker{mark: mark, timelines: newTimelines(2)}
	w.timelines.last = mark.Add(60 * time.Millisecond)
	c := &w.timelines.of[0]
	for _, m := range []sock.Moment{
		{CAState: 3, MSS: 1000, Unacked: 10, InFlight: 10, Cwnd: 10, NotSent: 500, SendWnd: 90000, RTT: 100, PacingRate: 7},
		{CAState: 4, MSS: 1000, Unacked: 1, InFlight: 1, Cwnd: 20, NotSent: 0, SendWnd: 90000, RTT: 0, PacingRate: sock.NoPacing},
		{CAState: 0, MSS: 1000, Unacked: 4, InFlight: 1, Cwnd: 30, NotSent: 100, SendWnd: 4000, RTT: 400, PacingRate: 9},
		{CAState: 1, MSS: 1000, Unacked: 4, InFlight: 4, Cwnd: 60, NotSent: 0, SendWnd: 90000, RTT: 400, PacingRate: 9},
	} {
		c.Count++
		c.Sender(m)
	}
	want := &measure.Timeline{
		Samples: 4, Every: int64(15 * time.Millisecond),
		InFlight: &measure.Spread{Mean: 4, Min: 1, Max: 10}, Cwnd: &measure.Spread{Mean: 30, Min: 10, Max: 60},
		NotSent: &measure.Spread{Mean: 150, Max: 500}, SendWnd: &measure.Spread{Mean: 68500, Min: 4000, Max: 90000},
		RTT: &measure.Spread{Mean: 300, Min: 100, Max: 400}, Pacing: &measure.Spread{Mean: 25. / 3, Min: 7, Max: 9},
		CwndFull: new(25.), WndFull: new(25.), Recovery: new(50.), Idle: new(50.),
	}
	if d := cmp.Diff(want, w.timeline(0)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if got := w.timeline(1); got != nil {
		t.Errorf("a stream that was not read has %+v", got)
	}
}

// With many streams each is read less often, so that the readings per second do not grow.
func TestTimelineSpreadsManyStreams(t *testing.T) {
	for streams, want := range map[int]time.Duration{1: timelineEvery, 32: timelineEvery, 33: 2 * timelineEvery, 256: 8 * timelineEvery} {
		if got := newTimelines(streams).every; got != want {
			t.Errorf("%d streams: every %v, want %v", streams, got, want)
		}
	}
}
