package worker

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"thru/internal/measure"
	"thru/internal/sock"
)

// Which window a sender has used up, by the kernel's own rules.
func TestUsedUp(t *testing.T) {
	const mss, wide = 1000, 10_000_000
	for _, c := range []struct {
		name              string
		m                 sock.Moment
		cwnd, wnd, unused bool
	}{
		{"all of cwnd in flight", sock.Moment{Cwnd: 50, InFlight: 50, Unacked: 50, SendWnd: wide, NotSent: 1}, true, false, false},
		{"and nothing more to send", sock.Moment{Cwnd: 50, InFlight: 50, Unacked: 50, SendWnd: wide}, true, false, false},
		{"cwnd cut below what is in flight", sock.Moment{Cwnd: 20, InFlight: 50, Unacked: 50, SendWnd: wide, NotSent: 1}, true, false, false},
		{"a tenth of cwnd is left, deferred", sock.Moment{Cwnd: 50, InFlight: 45, Unacked: 45, SendWnd: wide, NotSent: 9000}, true, false, false},
		{"the same without data that waits", sock.Moment{Cwnd: 50, InFlight: 45, Unacked: 45, SendWnd: wide}, false, false, true},
		{"half of cwnd is left: something else holds it", sock.Moment{Cwnd: 50, InFlight: 25, Unacked: 25, SendWnd: wide, NotSent: 9000}, false, false, false},
		{"room for a whole large packet", sock.Moment{Cwnd: 5000, InFlight: 4900, Unacked: 4900, SendWnd: wide, NotSent: 9000}, false, false, false},
		{"the peer's window is full", sock.Moment{Cwnd: 500, InFlight: 64, Unacked: 64, SendWnd: 64500, NotSent: 9000}, false, true, false},
		{"it has room for one segment", sock.Moment{Cwnd: 500, InFlight: 63, Unacked: 63, SendWnd: 64000, NotSent: 9000}, false, true, false},
		{"an eighth of it is left, deferred", sock.Moment{Cwnd: 500, InFlight: 56, Unacked: 56, SendWnd: 64000, NotSent: 9000}, false, true, false},
		{"a window of zero", sock.Moment{Cwnd: 500, SendWnd: 0, NotSent: 9000}, false, true, false},
		{"segments that arrived out of order still use the window", sock.Moment{Cwnd: 500, InFlight: 10, Unacked: 64, SendWnd: 64000, NotSent: 9000}, false, true, false},
		{"both", sock.Moment{Cwnd: 64, InFlight: 64, Unacked: 64, SendWnd: 64000, NotSent: 9000}, true, true, false},
		{"a part of a segment waits for more", sock.Moment{Cwnd: 500, InFlight: 3, Unacked: 3, SendWnd: wide, NotSent: 700}, false, false, true},
		{"nothing to send", sock.Moment{Cwnd: 500, InFlight: 3, Unacked: 3, SendWnd: wide}, false, false, true},
	} {
		c.m.MSS = mss
		if cwnd, wnd := usedUp(c.m); cwnd != c.cwnd || wnd != c.wnd {
			t.Errorf("%s: cwnd %v, window %v", c.name, cwnd, wnd)
		}
		var sum course
		sum.addSender(c.m)
		if idle := *sum.idle.pct() == 100; idle != c.unused {
			t.Errorf("%s: nothing to send %v", c.name, idle)
		}
	}
}

func TestCourseSumsUp(t *testing.T) {
	mark := time.Now()
	w := worker{mark: mark, courses: newCourses(2)}
	w.courses.last = mark.Add(60 * time.Millisecond)
	c := &w.courses.of[0]
	for _, m := range []sock.Moment{
		{CAState: caRecovery, MSS: 1000, Unacked: 10, InFlight: 10, Cwnd: 10, NotSent: 500, SendWnd: 90000, RTTUs: 100, PacingRate: 7},
		{CAState: caLoss, MSS: 1000, Unacked: 1, InFlight: 1, Cwnd: 20, NotSent: 0, SendWnd: 90000, RTTUs: 0, PacingRate: sock.NoPacing},
		{CAState: 0, MSS: 1000, Unacked: 4, InFlight: 1, Cwnd: 30, NotSent: 100, SendWnd: 4000, RTTUs: 400, PacingRate: 9},
		{CAState: 1, MSS: 1000, Unacked: 4, InFlight: 4, Cwnd: 60, NotSent: 0, SendWnd: 90000, RTTUs: 400, PacingRate: 9},
	} {
		c.readings++
		c.addSender(m)
	}
	want := &measure.Course{
		Samples: 4, Every: int64(15 * time.Millisecond),
		InFlight: &measure.Spread{Mean: 4, Min: 1, Max: 10}, Cwnd: &measure.Spread{Mean: 30, Min: 10, Max: 60},
		NotSent: &measure.Spread{Mean: 150, Max: 500}, SendWnd: &measure.Spread{Mean: 68500, Min: 4000, Max: 90000},
		RTT: &measure.Spread{Mean: 300, Min: 100, Max: 400}, Pacing: &measure.Spread{Mean: 25. / 3, Min: 7, Max: 9},
		CwndFull: new(25.), WndFull: new(25.), Recovery: new(50.), Idle: new(50.),
	}
	if d := cmp.Diff(want, w.course(0)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if got := w.course(1); got != nil {
		t.Errorf("a stream that was not read has %+v", got)
	}
}

// What the kernel is too old to tell is absent.
func TestCourseOfAnOldKernel(t *testing.T) {
	var c course
	c.addSender(sock.ParseMoment(make([]byte, 104)))
	c.addReceiver(sock.ParseMoment(make([]byte, 104)), 0, false)
	if c.cwnd.spread() == nil || c.inFlight.spread() == nil || c.cwndFull.pct() == nil || c.recovery.pct() == nil {
		t.Error("what it tells is missing")
	}
	if c.sendWnd.spread() != nil || c.notSent.spread() != nil || c.wndFull.pct() != nil || c.idle.pct() != nil || c.recvWnd.spread() != nil || c.unread.spread() != nil {
		t.Errorf("made up: %+v", c)
	}
}

// With many streams each is read less often, so that the readings a second do not grow.
func TestCourseSpreadsManyStreams(t *testing.T) {
	for streams, want := range map[int]time.Duration{1: courseEvery, 32: courseEvery, 33: 2 * courseEvery, 256: 8 * courseEvery} {
		if got := newCourses(streams).every; got != want {
			t.Errorf("%d streams: every %v, want %v", streams, got, want)
		}
	}
}
