package control

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"thru/internal/bus"
	"thru/internal/measure"
)

// slowClock answers with delays in both directions, one pair of delays for each
// request.
type slowClock struct {
	Client
	zero   time.Time
	ahead  time.Duration
	delays [][2]time.Duration
	asked  int
	err    error
	fails  []int // numbers of the requests that fail, from 1
}

func (s *slowClock) Ask(ctx context.Context, q bus.Question, reply any) error {
	return bus.On(bus.Clock, s.Clock).Answer(ctx, "", q.Message, reply)
}

func (s *slowClock) Clock(context.Context, string, bus.Empty) (bus.ClockReply, error) {
	d := s.delays[s.asked%len(s.delays)]
	s.asked++
	time.Sleep(d[0])
	now := time.Now()
	time.Sleep(d[1])
	err := s.err
	if slices.Contains(s.fails, s.asked) {
		err = errors.New("once")
	}
	return bus.ClockReply{NowNs: int64(now.Sub(s.zero) + s.ahead), WallNs: now.Add(s.ahead).UnixNano()}, err
}

// The true offset is within the error bound, however the delay is split.
func TestReadClock(t *testing.T) {
	const ms = time.Millisecond
	for name, delays := range map[string][][2]time.Duration{
		"no delay":           {{0, 0}},
		"slow there":         {{8 * ms, 0}},
		"slow back":          {{0, 8 * ms}},
		"one quick exchange": {{20 * ms, 1 * ms}, {30 * ms, 0}, {0, 0}, {9 * ms, 0}},
	} {
		zero := time.Now()
		c := &slowClock{zero: zero, ahead: -3 * time.Hour, delays: delays}
		x, err := readClock(t.Context(), c, zero)
		if err != nil {
			t.Fatal(err)
		}
		if off := (x.ahead + 3*time.Hour).Abs(); off > x.bound {
			t.Errorf("%s: %v off, and the bound is %v", name, off, x.bound)
		}
		if off := (x.wall + 3*time.Hour).Abs(); off > x.bound+ms {
			t.Errorf("%s: the wall clock is %v off", name, off)
		}
		if name == "one quick exchange" && x.bound > 9*ms {
			t.Errorf("the quickest exchange does not count: the bound is %v", x.bound)
		}
	}
	if _, err := readClock(t.Context(), &slowClock{delays: [][2]time.Duration{{0, 0}}, err: errors.New("no")}, time.Now()); err == nil {
		t.Error("a clock that is not reported was read")
	}
}

// One failed request is tolerated, whichever it is; two are not.
func TestReadClockPastAnError(t *testing.T) {
	for _, tt := range []struct {
		fails []int
		asked int
	}{{nil, exchanges}, {[]int{1}, exchanges}, {[]int{4}, exchanges}, {[]int{2, 4}, 4}} {
		c := &slowClock{zero: time.Now(), delays: [][2]time.Duration{{0, 0}}, fails: tt.fails}
		if _, err := readClock(t.Context(), c, c.zero); err != nil || c.asked != tt.asked {
			t.Errorf("%v fail: asked %d times, %v", tt.fails, c.asked, err)
		}
	}
}

// Between two comparisons a clock drifts evenly; after only one its bound grows.
func TestClocksMeet(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	e := &EndPoint{Name: "a"}
	for name, c := range map[string]struct {
		before, after reading
		at            time.Duration // on the agent's clock
		here, bound   time.Duration
	}{
		"no drift":      {reading{here: 1 * s, ahead: 60 * s, bound: 2 * ms}, reading{here: 11 * s, ahead: 60 * s, bound: ms}, 66 * s, 6 * s, 2 * ms},
		"drift":         {reading{here: 1 * s, ahead: 60 * s, bound: ms}, reading{here: 11 * s, ahead: 60*s + 10*ms, bound: 3 * ms}, 66*s + 5*ms, 6 * s, 3 * ms},
		"slower clock":  {reading{here: 1 * s, ahead: -60 * s, bound: ms}, reading{here: 11 * s, ahead: -60*s - 10*ms, bound: ms}, -54*s - 5*ms, 6 * s, ms},
		"compared once": {reading{here: 1 * s, ahead: 60 * s, bound: ms}, reading{}, 71 * s, 11 * s, 2 * ms},
	} {
		k := clocks{before: map[*EndPoint]reading{e: c.before}, after: map[*EndPoint]reading{e: c.after}}
		here, bound := k.here(e, c.at)
		if (here-c.here).Abs() > 10*time.Microsecond || bound != c.bound { // drift during the drift itself
			t.Errorf("%s: %v with bound %v, want %v with %v", name, here, bound, c.here, c.bound)
		}
	}
}

// All agents get the same start time, each on its clock; receivers are ready before
// senders can send, as far as the bounds show.
func TestStartOf(t *testing.T) {
	client := &slowClock{}
	from, to, old := &EndPoint{Name: "from", Client: client}, &EndPoint{Name: "to", Client: client}, &EndPoint{Name: "old", Client: client}
	zero := time.Now()
	c := clocks{zero: zero, start: zero.Add(time.Second), before: map[*EndPoint]reading{
		from: {here: 1, ahead: 5 * time.Second, bound: time.Millisecond}, to: {here: 1, ahead: -500 * time.Millisecond, bound: 3 * time.Millisecond},
	}}
	f := &flow{sender: side{end: from, sends: true}, receiver: side{end: to}}
	f.sender.flow, f.receiver.flow = f, f
	if at := c.startOf(&f.sender); at != int64(6*time.Second) {
		t.Errorf("the sender starts at %v", time.Duration(at))
	}
	if at := c.startOf(&f.receiver); at != int64(476*time.Millisecond) {
		t.Errorf("the receiver starts at %v", time.Duration(at))
	}
	f.receiver.end = old
	if at := c.startOf(&f.receiver); at != 0 {
		t.Errorf("an agent that knows no moment gets %d", at)
	}
	if at := c.startOf(&f.sender); at != 0 {
		t.Errorf("the other end of an agent that knows no moment gets %d", at)
	}
	f.receiver.end = &EndPoint{Name: "iperf3://to", Foreign: true}
	if at := c.startOf(&f.sender); at != int64(6*time.Second) {
		t.Errorf("towards an end without an agent the sender starts at %v", time.Duration(at))
	}
	c.setStart(1000)
	if lead := time.Until(c.start); lead < leastLead || lead > mostLead {
		t.Errorf("the start is %v ahead", lead)
	}
}

func TestWallWarning(t *testing.T) {
	end := func(name string, ahead time.Duration) measure.EndPoint {
		return measure.EndPoint{Name: name, ClockNs: new(int64(ahead))}
	}
	if w := wallWarning([]measure.EndPoint{end("a", 900*time.Millisecond), end("b", -time.Millisecond), {Name: "c"}}); w != "" {
		t.Errorf("clocks that agree: %q", w)
	}
	w := wallWarning([]measure.EndPoint{end("a", 2*time.Second), end("b", -3*time.Minute), {Name: "c"}})
	if !strings.Contains(w, "b is 3 min behind") || !strings.Contains(w, "a is 2 s ahead of") || strings.Index(w, "b is") > strings.Index(w, "a is") {
		t.Errorf("%q", w)
	}
}
