package cause

import (
	"testing"
	"time"

	"thru/internal/cause/diagnose"
	"thru/internal/measure"
)

// TestStanding: the delay of datagrams of 1400 bytes, at a rate and over a time, by two clocks.
func TestStanding(t *testing.T) {
	const stands, clear, open = "stands", "clear", "open"
	us := time.Microsecond
	for _, x := range []struct {
		name       string
		bps        float64
		span       time.Duration
		mean, most time.Duration // most 0: not known
		want       string
	}{
		{"a port of 10 Gb/s with 0.5 MB", 9450 * mb, 5 * time.Second, 380 * us, 430 * us, stands},
		{"the same, behind which a host stood still for once", 9450 * mb, 5 * time.Second, 380 * us, 5 * ms, open},
		{"interrupts and batches of a fast host", 9450 * mb, 5 * time.Second, 60 * us, 90 * us, clear},
		{"1 ms at 10 Mb/s is one packet", 10 * mb, 2 * time.Second, ms, 1200 * us, clear},
		{"the same at 1 Gb/s is 90", 1000 * mb, 2 * time.Second, ms, 1200 * us, stands},
		{"20 packets at 10 Mb/s", 10 * mb, 2 * time.Second, 22 * ms, 25 * ms, stands},
		{"clocks 50 ppm apart for a minute", 1000 * mb, time.Minute, 1500 * us, 3050 * us, open},
		{"a full queue, by such clocks", 1000 * mb, time.Minute, 2500 * us, 3500 * us, stands},
		{"more than clocks make", 1000 * mb, time.Minute, 8 * ms, 12 * ms, stands},
		{"a policer of 400 Mb/s at a noisy host", 389 * mb, 2 * time.Second, 290 * us, 11 * ms, clear},
		{"a little longer at one that stood still now and then", 389 * mb, 2 * time.Second, 800 * us, 11 * ms, clear},
		{"a short wait, whose greatest is not known", 3500 * mb, 5 * time.Second, 700 * us, 0, open},
		{"a long one", 94 * mb, 5 * time.Second, 80 * ms, 0, stands},
	} {
		c := datagramTrial(diagnose.UdpAbove, x.bps, 0, x.mean)
		c.Spec.Duration = int64(x.span)
		if x.most > 0 {
			c = late(c, x.most)
		}
		w, got := diagnose.WaitOf(&c), open
		switch {
		case w.Stands() && w.IsClear():
			got = "both"
		case w.Stands():
			got = stands
		case w.IsClear():
			got = clear
		}
		if got != x.want {
			t.Errorf("%s: %s, want %s", x.name, got, x.want)
		}
	}
	if w := diagnose.WaitOf(&measure.Cell{}); w.Stands() || w.IsClear() {
		t.Error("what is not known was told")
	}
}

// TestHasQueue: the round-trip time of TCP, at a rate.
func TestHasQueue(t *testing.T) {
	for _, x := range []struct {
		name      string
		bps       float64
		rtt, base time.Duration
		want      bool
	}{
		{"5 ms at 1 Mb/s are half a packet", 1 * mb, 15 * ms, 10 * ms, false},
		{"60 ms at 1 Mb/s are five, on a path of 20 ms", 1 * mb, 80 * ms, 20 * ms, true},
		{"the same at 0.5 Mb/s are two", 0.5 * mb, 80 * ms, 20 * ms, false},
		{"2 ms at 470 Mb/s", 470 * mb, 2500 * time.Microsecond, 500 * time.Microsecond, true},
		{"0.4 ms at 10 Gb/s are 345", 10_000 * mb, 500 * time.Microsecond, 100 * time.Microsecond, true},
		{"0.4 ms at 1 Gb/s may be the hosts'", 1000 * mb, 500 * time.Microsecond, 100 * time.Microsecond, false},
		{"a path that is not longer under load", 1000 * mb, 20 * ms, 20 * ms, false},
	} {
		d := made{bps: x.bps, rtt: x.rtt, base: x.base}.document()
		f := diagnose.NewFlow(theCatalogue(), d, &d.Cells[0])
		if got := f.HasQueue(); got != x.want {
			t.Errorf("%s: %v", x.name, got)
		}
		f.Sender.Seen.Streams[0].Timeline.RTT.Max = float64((x.base + 5*(x.rtt-x.base)).Nanoseconds())
		if f.HasQueue() {
			t.Errorf("%s: a host stood still for once", x.name)
		}
	}
}
