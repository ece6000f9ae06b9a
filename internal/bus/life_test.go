package bus

import (
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// watched checks every second until the peer counts as lost, as code with a lease does,
// and returns when; 0: not within a minute.
func watched(l *life, each func(second int)) time.Duration {
	began := time.Now()
	for second := range 60 {
		each(second)
		time.Sleep(time.Second)
		if l.silent() > leaseTime {
			return time.Since(began)
		}
	}
	return 0
}

// TestLife: a peer is lost after a lease without a sign of life, and not earlier.
func TestLife(t *testing.T) {
	const never = time.Hour
	for _, c := range []struct {
		name     string
		bytes    time.Duration // bytes come every second, until then
		segments time.Duration // received by the kernel only
		uncount  bool          // the kernel does not count segments
		stopped  time.Duration // how long this process is stopped, after 5 s
		gone     time.Duration
	}{
		{name: "it says nothing", gone: 11 * time.Second},
		{name: "it speaks", bytes: never},
		{name: "it falls silent", bytes: 20 * time.Second, gone: 30 * time.Second},
		{name: "nothing can be read for a minute behind a lost segment", bytes: 3 * time.Second, segments: never},
		{name: "the kernel hears it no more either", bytes: 3 * time.Second, segments: 15 * time.Second, gone: 27 * time.Second},
		{name: "no counts", bytes: 3 * time.Second, segments: never, uncount: true, gone: 13 * time.Second},
		{name: "this process was stopped", bytes: never, stopped: 50 * time.Second},
		{name: "it was stopped, and the peer is gone", bytes: 4 * time.Second, stopped: 50 * time.Second, gone: 65 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, came := newLife(), uint32(0)
				l.segments = func() (uint32, bool) { return came, !c.uncount }
				gone := watched(l, func(second int) {
					at := time.Duration(second) * time.Second
					if c.stopped > 0 && second == 5 {
						time.Sleep(c.stopped)
					}
					if at <= c.segments && c.segments > 0 {
						came++
					}
					if at < c.bytes && (c.stopped == 0 || second != 6) {
						l.touch()
					}
				})
				if gone != c.gone {
					t.Errorf("gone after %v, want %v", gone, c.gone)
				}
			})
		})
	}
}

// TestSegmentsAreCounted: over TCP a segment received by the kernel is a sign of life even
// if it is not read.
func TestSegmentsAreCounted(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	far, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	near, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	life := lifeOf(near)
	before, ok := life.segments()
	if !ok {
		t.Skip("this kernel does not count them")
	}
	if _, err := far.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	for until := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		if n, _ := life.segments(); n == before+1 {
			break
		}
		if time.Now().After(until) {
			t.Fatal("a segment came and was not counted")
		}
	}
	life.heard = time.Now().Add(-time.Minute)
	if s := life.silent(); s > leaseTime {
		t.Errorf("silent for %v, and a segment came", s)
	}
	if _, err := (pulse{near, life}).Read(make([]byte, 1)); err != nil && !errors.Is(err, net.ErrClosed) {
		t.Fatal(err)
	}
}
