package stamp

import (
	"errors"
	"net/netip"
	"reflect"
	"testing"
	"time"
)

const ms = time.Millisecond

// course drives one session by hand: packet n is sent in second n.
type course struct {
	t     *testing.T
	s     *session
	epoch time.Time
	sent  []Request
	count uint32
}

func newCourse(t *testing.T, target Target) *course {
	c := &course{t: t, epoch: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	target.To, target.Interval = netip.MustParseAddrPort("192.0.2.1:862"), time.Second
	c.s = newSession("x", target, Config{Timeout: 3 * time.Second, Span: 10 * time.Second}, c.at(0))
	return c
}

func (c *course) at(d time.Duration) moment { return moment{d, c.epoch.Add(d)} }

// send sends the next packet at a time.
func (c *course) send(at time.Duration) uint32 {
	c.s.settle(at)
	var b [maxPacket]byte
	p, out := c.s.packet(b[:], c.at(at), 0)
	m, err := ParseRequest(out, c.s.key != nil)
	if err != nil {
		c.t.Fatal(err)
	}
	c.sent = append(c.sent, m)
	return p.sequence - c.s.First
}

// reply answers a packet after the delays of both directions.
func (c *course) reply(n uint32, there, back time.Duration) {
	at := c.s.at(n + c.s.First).sent
	c.raw(c.make(n, at+there, at+there), at+there+back)
}

// said answers a packet after 3 and 5 ms, with what the reflector says of its clock.
func (c *course) said(n uint32, e Error) {
	r := c.make(n, 3*ms, 3*ms)
	r.Error = e
	c.raw(r, 8*ms)
}

func (c *course) make(n uint32, came, went time.Duration) *Reply {
	r := &Reply{Received: StampOf(c.epoch.Add(came)), Of: c.sent[n], SenderTTL: 250}
	r.Request = Request{Sequence: c.count, At: StampOf(c.epoch.Add(went)), Error: Unsynced, SSID: c.sent[n].SSID}
	c.count++
	return r
}

// raw delivers a reply.
func (c *course) raw(r *Reply, at time.Duration) {
	b := make([]byte, SizeOf(c.s.key))
	r.Put(b, c.s.key)
	if c.s.isOf(b, r) {
		c.s.receive(r, c.at(at))
	}
}

// first returns the first summary, after packets were sent until it is complete.
func (c *course) first() Summary {
	c.s.settle(time.Hour)
	done := c.s.end(time.Hour)
	if len(done) == 0 {
		c.t.Fatal("no summary")
	}
	return done[0]
}

// TestOutcomes: each way in which a packet can end is counted by its own name.
func TestOutcomes(t *testing.T) {
	for _, tt := range []struct {
		name   string
		bound  time.Duration
		events func(c *course)
		want   func(s Summary) bool
	}{
		{"answered", 0, func(c *course) { c.reply(c.send(0), 3*ms, 5*ms) }, func(s Summary) bool {
			return s.Sent == 1 && s.Lost == 0 && s.RTT == Delays{1, 8 * ms, 8 * ms, 8 * ms} && s.There.N == 0 && s.TTLThere == 250
		}},
		{"clocks in sync", ms, func(c *course) { c.reply(c.send(0), 3*ms, 5*ms) }, func(s Summary) bool {
			return s.There == Delays{1, 3 * ms, 3 * ms, 3 * ms} && s.Bound == ms
		}},
		{"both hosts say how far their clocks may be off", 0, func(c *course) { c.s.off = 2 * ms; c.said(c.send(0), ErrorOf(ms)) }, func(s Summary) bool {
			return s.There == Delays{1, 3 * ms, 3 * ms, 3 * ms} && s.Bound >= 3*ms && s.Bound < 3100*time.Microsecond
		}},
		{"only this host says it", 0, func(c *course) { c.s.off = ms; c.said(c.send(0), Unsynced) }, func(s Summary) bool { return s.There.N == 0 }},
		{"only the other host says it", 0, func(c *course) { c.said(c.send(0), ErrorOf(ms)) }, func(s Summary) bool { return s.There.N == 0 }},
		{"clocks not as said", ms, func(c *course) { c.reply(c.send(0), -3*ms, 8*ms) }, func(s Summary) bool { return s.There.N == 0 && s.RTT.N == 1 }},
		{"time in the reflector", 0, func(c *course) { n := c.send(0); c.raw(c.make(n, 3*ms, 13*ms), 20*ms) }, func(s Summary) bool { return s.RTT.Min == 10*ms }},
		{"more time in the reflector than passed", 0, func(c *course) { n := c.send(0); c.raw(c.make(n, 3*ms, 130*ms), 20*ms) }, func(s Summary) bool { return s.RTT.Min == 20*ms && s.There.N == 0 }},
		{"sent before it came", 0, func(c *course) { n := c.send(0); c.raw(c.make(n, 13*ms, 3*ms), 20*ms) }, func(s Summary) bool { return s.RTT.Min == 20*ms && s.There.N == 0 }},
		{"lost", 0, func(c *course) { c.send(0) }, func(s Summary) bool { return s.Sent == 1 && s.Lost == 1 && s.RTT.N == 0 }},
		{"late", 0, func(c *course) { c.reply(c.send(0), 2*time.Second, 2*time.Second) }, func(s Summary) bool { return s.Lost == 1 && s.RTT.N == 0 }},
		{"late, after the verdict", 0, func(c *course) { n := c.send(0); c.send(4 * time.Second); c.reply(n, 2*time.Second, 3*time.Second) }, func(s Summary) bool {
			return s.Lost == 2 && s.RTT.N == 0
		}},
		{"twice", 0, func(c *course) { n := c.send(0); c.reply(n, ms, ms); c.reply(n, ms, 2*ms) }, func(s Summary) bool { return s.Sent == 1 && s.RTT == Delays{1, 2 * ms, 2 * ms, 2 * ms} }},
		{"overtaken", 0, func(c *course) { a, b := c.send(0), c.send(time.Second); c.reply(b, ms, ms); c.reply(a, 1100*ms, ms) }, func(s Summary) bool {
			return s.Sent == 2 && s.Lost == 0 && s.RTT.N == 2
		}},
		{"a number that was not sent", 0, func(c *course) { c.send(0); r := c.make(0, ms, ms); r.Of.Sequence = 70; c.raw(r, 2*ms) }, func(s Summary) bool { return s.Lost == 1 && s.RTT.N == 0 }},
		{"another time of sending", 0, func(c *course) { c.send(0); r := c.make(0, ms, ms); r.Of.At++; c.raw(r, 2*ms) }, func(s Summary) bool { return s.Lost == 1 && s.RTT.N == 0 }},
		{"the request itself", 0, func(c *course) { c.send(0); c.raw(&Reply{Request: c.sent[0]}, 2*ms) }, func(s Summary) bool { return s.Lost == 1 && s.RTT.N == 0 }},
		{"suspended", 0, func(c *course) { c.send(0); c.s.abandon(); c.reply(c.send(time.Second), ms, ms) }, func(s Summary) bool {
			return s.Sent == 1 && s.Void == 1 && s.Lost == 0
		}},
		{"not sent", 0, func(c *course) { n := c.send(0); c.s.unsent(c.s.at(n), errors.New("no route")) }, func(s Summary) bool {
			return s.Lost == 1 && s.Err.Error() == "no route"
		}},
	} {
		c := newCourse(t, Target{SSID: 7, Key: []byte("key"), Bound: tt.bound})
		tt.events(c)
		if s := c.first(); !tt.want(s) {
			t.Errorf("%s: %+v", tt.name, s)
		}
	}
}

// TestRuns: an outage has the times of its first lost packet and of the first after it, also across summaries, and each packet is in one summary.
func TestRuns(t *testing.T) {
	c := newCourse(t, Target{})
	lost := func(n int) bool { return n == 3 || n == 4 || n >= 8 && n < 25 || n == 29 }
	for n := range 45 {
		sequence := c.send(time.Duration(n) * time.Second)
		if !lost(n) {
			c.reply(sequence, ms, ms)
		}
	}
	all := c.s.end(45 * time.Second)
	second := func(n int) time.Time { return c.epoch.Add(time.Duration(n) * time.Second) }
	var open time.Time
	want := [][]Run{
		{{second(8), open, 2}}, // the run at 3 s is too short
		{{second(8), open, 12}},
		{{second(8), second(25), 17}, {second(29), open, 1}},
		{{second(29), second(30), 1}}, // it ended here
		nil,
	}
	sent := 0
	for i, s := range all {
		if !reflect.DeepEqual(s.Runs, want[i]) || !s.Begin.Equal(second(10*i)) {
			t.Errorf("summary %d begins %v: %+v", i, s.Begin, s.Runs)
		}
		sent += s.Sent + s.Void
	}
	if len(all) != 5 || sent != 45 || all[1].Lost != 10 || all[4].Span != 5*time.Second {
		t.Errorf("%d summaries of %d packets: %+v", len(all), sent, all)
	}
}

// TestFirstSpan: the first summary may be shorter than the others, and each packet is in one of them.
func TestFirstSpan(t *testing.T) {
	c := newCourse(t, Target{})
	c.s = newSession("x", c.s.Target, Config{Timeout: 3 * time.Second, Span: 10 * time.Second, FirstSpan: 4 * time.Second}, c.at(0))
	for n := range 17 {
		c.reply(c.send(time.Duration(n)*time.Second), ms, ms)
	}
	begins, spans, sent := []time.Duration{0, 4 * time.Second, 14 * time.Second}, []time.Duration{4 * time.Second, 10 * time.Second, 2500 * ms}, []int{4, 10, 3}
	all := c.s.end(16500 * ms)
	if len(all) != 3 {
		t.Fatalf("%+v", all)
	}
	for i, s := range all {
		if s.Begin.Sub(c.epoch) != begins[i] || s.Span != spans[i] || s.Sent != sent[i] {
			t.Errorf("summary %d: %+v", i, s)
		}
	}
}

// TestManyRuns: the list of runs is bounded.
func TestManyRuns(t *testing.T) {
	c := newCourse(t, Target{})
	for n := range 4*(mostRuns+4) + 1 {
		if sequence := c.send(time.Duration(n) * 100 * ms); n%4 == 0 {
			c.reply(sequence, ms, ms)
		}
	}
	if s := c.first(); len(s.Runs) != mostRuns || s.Lost != 3*(mostRuns+4) {
		t.Errorf("%d runs of %d lost packets", len(s.Runs), s.Lost)
	}
}

// TestPause: spans in which nothing was sent have no summary.
func TestPause(t *testing.T) {
	c := newCourse(t, Target{})
	for _, at := range []time.Duration{0, time.Second, 35 * time.Second, 36 * time.Second, 41 * time.Second} {
		c.reply(c.send(at), ms, ms)
	}
	all := c.s.end(42 * time.Second)
	if len(all) != 3 || all[0].Sent != 2 || all[1].Sent != 2 || !all[1].Begin.Equal(c.epoch.Add(35*time.Second)) || all[2].Sent != 1 {
		t.Errorf("%+v", all)
	}
}

// TestMTU: the search finds the exact MTU of a path, with loss, and follows its changes.
func TestMTU(t *testing.T) {
	for _, tt := range []struct {
		name        string
		most        int
		path, later int // MTU of the path, and from the 20th minute on
		loss        int // every so many-th packet is lost; 0: none
		want, after int
	}{
		{"as the interface", 1500, 1500, 1500, 0, 1500, 1500},
		{"jumbo", 9000, 9000, 9000, 0, 9000, 9000},
		{"a tunnel", 1500, 1420, 1420, 0, 1420, 1420},
		{"the least", 1500, 1280, 1280, 0, 1280, 1280},
		{"less than the least", 1500, 1000, 1000, 0, 0, 0},
		{"a tunnel with loss", 9000, 1450, 1450, 5, 1450, 1450},
		{"grows", 9000, 1500, 9000, 0, 1500, 9000},
		{"shrinks", 1500, 1500, 1400, 0, 1500, 1400},
		{"goes down", 1500, 1500, 0, 0, 1500, 0},
		{"no search", 0, 1500, 1500, 0, 0, 0},
	} {
		m := newMTUProbe(tt.most, 0)
		var got [2]int
		count := 0
		for second := range 40 * 60 {
			now, path := time.Duration(second)*time.Second, tt.path
			if second >= 20*60 {
				path = tt.later
			}
			passes := func(size int) bool {
				count++
				return size <= path && (tt.loss == 0 || count%tt.loss != 0)
			}
			if size := m.due(now); size > 0 {
				if passes(size) {
					m.passed(size, now)
				} else {
					m.failed(size)
				}
			}
			m.ordinary(passes(100), now)
			if second%60 == 59 {
				if n := m.found(); second < 20*60 {
					got[0] = n
				} else {
					got[1] = n
				}
			}
		}
		if got != [2]int{tt.want, tt.after} {
			t.Errorf("%s: %v, want %d and %d", tt.name, got, tt.want, tt.after)
		}
	}
}

func TestReplayWindow(t *testing.T) {
	var w replayWindow
	for _, tt := range []struct {
		n    uint32
		want bool
	}{{5, true}, {5, false}, {7, true}, {6, true}, {6, false}, {70, true}, {6, false}, {7, false}, {8, true}, {500, true}, {70, false}, {1<<32 - 1, false}} {
		got := w.isNew(tt.n)
		if got {
			w.add(tt.n)
		}
		if got != tt.want {
			t.Errorf("%d is new: %v", tt.n, got)
		}
	}
	w = replayWindow{}
	w.add(1<<32 - 1)
	if !w.isNew(0) || w.isNew(1<<32-1) {
		t.Error("numbers do not wrap")
	}
}
