package sock

import "testing"

// Which window is full, by the kernel's own rules.
func TestUsedUp(t *testing.T) {
	const mss, wide = 1000, 10_000_000
	for _, c := range []struct {
		name              string
		m                 Moment
		cwnd, wnd, unused bool
	}{
		{"all of cwnd in flight", Moment{Cwnd: 50, InFlight: 50, Unacked: 50, SendWnd: wide, NotSent: 1}, true, false, false},
		{"and nothing more to send", Moment{Cwnd: 50, InFlight: 50, Unacked: 50, SendWnd: wide}, true, false, false},
		{"cwnd cut below what is in flight", Moment{Cwnd: 20, InFlight: 50, Unacked: 50, SendWnd: wide, NotSent: 1}, true, false, false},
		{"a tenth of cwnd is left, deferred", Moment{Cwnd: 50, InFlight: 45, Unacked: 45, SendWnd: wide, NotSent: 9000}, true, false, false},
		{"the same without data that waits", Moment{Cwnd: 50, InFlight: 45, Unacked: 45, SendWnd: wide}, false, false, true},
		{"half of cwnd is left: something else holds it", Moment{Cwnd: 50, InFlight: 25, Unacked: 25, SendWnd: wide, NotSent: 9000}, false, false, false},
		{"room for a whole large packet", Moment{Cwnd: 5000, InFlight: 4900, Unacked: 4900, SendWnd: wide, NotSent: 9000}, false, false, false},
		{"the peer's window is full", Moment{Cwnd: 500, InFlight: 64, Unacked: 64, SendWnd: 64500, NotSent: 9000}, false, true, false},
		{"it has room for one segment", Moment{Cwnd: 500, InFlight: 63, Unacked: 63, SendWnd: 64000, NotSent: 9000}, false, true, false},
		{"an eighth of it is left, deferred", Moment{Cwnd: 500, InFlight: 56, Unacked: 56, SendWnd: 64000, NotSent: 9000}, false, true, false},
		{"a window of zero", Moment{Cwnd: 500, SendWnd: 0, NotSent: 9000}, false, true, false},
		{"segments that arrived out of order still use the window", Moment{Cwnd: 500, InFlight: 10, Unacked: 64, SendWnd: 64000, NotSent: 9000}, false, true, false},
		{"both", Moment{Cwnd: 64, InFlight: 64, Unacked: 64, SendWnd: 64000, NotSent: 9000}, true, true, false},
		{"a part of a segment waits for more", Moment{Cwnd: 500, InFlight: 3, Unacked: 3, SendWnd: wide, NotSent: 700}, false, false, true},
		{"nothing to send", Moment{Cwnd: 500, InFlight: 3, Unacked: 3, SendWnd: wide}, false, false, true},
	} {
		c.m.MSS = mss
		if cwnd, wnd := usedUp(c.m); cwnd != c.cwnd || wnd != c.wnd {
			t.Errorf("%s: cwnd %v, window %v", c.name, cwnd, wnd)
		}
		var sum Readings
		sum.Sender(c.m)
		if idle := *sum.idle.pct() == 100; idle != c.unused {
			t.Errorf("%s: nothing to send %v", c.name, idle)
		}
	}
}

// Figures that an old kernel does not report are absent.
func TestTimelineOfAnOldKernel(t *testing.T) {
	var c Readings
	c.Sender(ParseMoment(make([]byte, 104)))
	c.Receiver(ParseMoment(make([]byte, 104)), 0, false)
	if c.cwnd.spread() == nil || c.inFlight.spread() == nil || c.cwndFull.pct() == nil || c.recovery.pct() == nil {
		t.Error("what it tells is missing")
	}
	if c.sendWnd.spread() != nil || c.notSent.spread() != nil || c.wndFull.pct() != nil || c.idle.pct() != nil || c.recvWnd.spread() != nil || c.unread.spread() != nil {
		t.Errorf("made up: %+v", c)
	}
}
