package bus

import (
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// watched looks every second until the peer is taken for gone, as those who have
// a lease do, and says when; 0: it never was, for a minute.
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

// TestLife: a peer is gone when there was no sign of life for a lease, and not before.
func TestLife(t *testing.T) {
	const never = time.Hour
	for _, c := range []struct {
		name     string
		bytes    time.Duration // they come every second, until then
		segments time.Duration // and only the kernel gets these
		uncount  bool          // the kernel counts none
		stopped  time.Duration // this process, after 5 s
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

// TestSegmentsAreCounted: over TCP what the kernel has got is a sign of life
// though nobody reads it.
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
