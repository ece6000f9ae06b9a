package worker

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"thru/internal/engine"
	"thru/internal/engine/enginetest"
	"thru/internal/fault"
	"thru/internal/host"
	"thru/internal/measure"
)

// adoptable returns n pairs of connected sockets on loopback.
func adoptable(t *testing.T, protocol string, n int) (a, b []Conn) {
	t.Helper()
	for range n {
		x, y := systemPair(t, protocol)
		switch {
		case x != nil:
		case protocol == measure.UDP:
			x, y = udpPair(t)
		default:
			x, y = tcpPair(t)
		}
		a, b = append(a, Conn{Conn: x}), append(b, Conn{Conn: y})
	}
	return a, b
}

func tcpPair(t *testing.T) (a, b net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if a, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if b, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	return a, b
}

func udpPair(t *testing.T) (a, b net.Conn) {
	t.Helper()
	ends := [2]*net.UDPAddr{}
	for i := range ends {
		c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			t.Fatal(err)
		}
		ends[i] = c.LocalAddr().(*net.UDPAddr)
		c.Close()
	}
	a, errA := net.DialUDP("udp", ends[0], ends[1])
	b, errB := net.DialUDP("udp", ends[1], ends[0])
	if errA != nil || errB != nil {
		t.Fatal(errA, errB)
	}
	return a, b
}

// leading returns a session of TCP that waits for its connections.
func leading(t *testing.T) *Session {
	t.Helper()
	p, err := Self()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	spec := measure.Spec{From: "a", To: "b", Engine: "test", Protocol: measure.TCP, Streams: 1, Duration: int64(time.Second), Interval: int64(100 * time.Millisecond)}
	s, err := Adopt(p, Task{Leads: true, End: engine.End{Name: "lead", Spec: spec, Sends: true, Dials: true}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// TestTakesResetConnection: a connection that the far end resets during the hand-over leaves a socket without a peer: the error says so.
func TestTakesResetConnection(t *testing.T) {
	t.Parallel()
	a, b := adoptable(t, measure.TCP, 1)
	far, ok := b[0].Conn.(*net.TCPConn)
	if !ok {
		t.Skip("a socket of the system has no SetLinger")
	}
	far.SetLinger(0)
	far.Close()
	s := leading(t)
	if err := s.Take(t.Context(), a); err == nil || !strings.Contains(err.Error(), "closed the connection") || fault.Hint(err) == "" {
		t.Errorf("%v; hint %q", err, fault.Hint(err))
	}
}

// TestClockBeginsWithData: data that arrives between the engine's permission to send and the start of a receiver does not count as its first moment.
func TestClockBeginsWithData(t *testing.T) {
	t.Parallel()
	p, err := Self()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for _, c := range []struct{ protocol, io string }{{measure.TCP, ""}, {measure.UDP, ""}, {measure.UDP, measure.IOPortable}} {
		t.Run(c.protocol+" "+c.io, func(t *testing.T) {
			near, far := adoptable(t, c.protocol, 1)
			defer far[0].Conn.Close()
			spec := measure.Spec{From: "a", To: "b", Engine: "test", Protocol: c.protocol, Streams: 1, Duration: int64(time.Second),
				Interval: int64(100 * time.Millisecond), NoRamp: true, IO: c.io, IOForced: c.io != ""}
			s, err := Adopt(p, Task{End: engine.End{Name: "b", Spec: spec}, Datagrams: StampNumber64, FirstNumber: 1})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if err := s.Take(t.Context(), near); err != nil {
				t.Fatal(err)
			}
			since := time.Now()
			for number := range byte(3) {
				b := make([]byte, 100)
				b[15] = number + 1 // as iperf3 numbers its datagrams
				if _, err := far[0].Conn.Write(b); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(10 * time.Millisecond)
			s.DataSince(since)
			if err := s.Start(t.Context(), 0, host.PlacementFacts{}); err != nil {
				t.Fatal(err)
			}
			var began time.Time
			for u := range s.Updates() {
				if u.Kind == engine.Mark {
					began = time.Unix(0, u.Began)
					break
				}
			}
			if d := began.Sub(since.Round(0)); d.Abs() > time.Millisecond {
				t.Errorf("the clock begins %v after the far end was let send", d)
			}
			s.Enough()
			if enginetest.Finish(t, s); s.Evidence().TotalBytes != 300 {
				t.Errorf("%d bytes in all", s.Evidence().TotalBytes)
			}
		})
	}
}

// adopts opens both ends on connections that the test has made, and acts as the engines: when the leading end has stopped, it calls Enough at both.
func adopts(t *testing.T, p *Program, spec measure.Spec, lead, follow Task, ramp time.Duration) (sender, receiver *Session) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	n := spec.Streams
	if spec.Duplex {
		n *= 2
	}
	a, b := adoptable(t, spec.Protocol, n)
	lead.Leads, lead.End = true, engine.End{Name: "lead", Spec: spec, Sends: lead.End.Sends, Dials: true}
	follow.End = engine.End{Name: "follow", Spec: spec, Sends: !lead.End.Sends}
	var ss [2]*Session
	for i, task := range []Task{lead, follow} {
		s, err := Adopt(p, task)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		if err := s.Take(ctx, [][]Conn{a, b}[i]); err != nil {
			t.Fatal(err)
		}
		ss[i] = s
	}
	for _, s := range []*Session{ss[1], ss[0]} {
		if err := s.Start(ctx, ramp, host.PlacementFacts{}); err != nil {
			t.Fatal(err)
		}
	}
	go func() {
		select {
		case <-ss[0].Stopped():
		case <-t.Context().Done():
			return
		}
		if !follow.EndOfStream { // which needs no signal, and it may overtake the data
			ss[0].Enough()
			ss[1].Enough()
		}
	}()
	if lead.End.Sends {
		return ss[0], ss[1]
	}
	return ss[1], ss[0]
}

func finished(t *testing.T, s *Session) measure.Evidence {
	t.Helper()
	us := enginetest.Finish(t, s)
	if len(us) == 0 || us[len(us)-1].Kind != engine.Done {
		t.Fatalf("the last update is %+v", us[max(0, len(us)-1):])
	}
	return s.Evidence()
}

func TestAdopted(t *testing.T) {
	p, err := Self()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	plain := measure.Spec{From: "a", To: "b", Engine: "test", Protocol: measure.TCP, Streams: 2, Duration: int64(briefly), Interval: int64(measure.MinInterval), NoRamp: true}
	udp := plain
	// So slow that even a receiver that is not scheduled finds everything in its buffer.
	udp.Protocol, udp.Rate, udp.Length.Send, udp.Duration = measure.UDP, 2e6, 1000, int64(300*time.Millisecond)
	portable := udp
	portable.IO, portable.IOForced = measure.IOPortable, true
	amount := plain
	amount.Amount, amount.Duration = 5_000_001, int64(time.Minute) // the time is only a limit
	for _, c := range []struct {
		name   string
		spec   measure.Spec
		task   Task // of both ends
		sender bool // leads
		ramp   time.Duration
	}{
		{"tcp", plain, Task{}, true, 0},
		{"tcp ramp", plain, Task{}, true, 200 * time.Millisecond},
		{"tcp reverse", plain, Task{}, false, 0},
		{"tcp end of stream", plain, Task{EndOfStream: true}, true, 0},
		{"tcp amount", amount, Task{}, true, 0},
		{"tcp amount end of stream", amount, Task{EndOfStream: true}, true, 0},
		{"udp", udp, Task{Datagrams: StampNumber64, FirstNumber: 1}, true, 0},
		{"udp reverse", udp, Task{Datagrams: StampNumber32, FirstNumber: 1}, false, 0},
		{"udp portable", portable, Task{Datagrams: NumberStampHigh, FirstNumber: 1, Behind: []byte("behind")}, true, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			lead := c.task
			lead.End.Sends = c.sender
			var a, b measure.Evidence
			inOneOfSome(t, func() error { // where the end has a signal, a receiver stops after 30 ms without a byte
				s, r := adopts(t, p, c.spec, lead, c.task, c.ramp)
				if a, b = finished(t, s), finished(t, r); c.sender && !c.task.EndOfStream && a.TotalBytes != b.TotalBytes {
					return fmt.Errorf("sent %d bytes in all, received %d", a.TotalBytes, b.TotalBytes)
				}
				return moved(a, b)
			})
			if a.Bytes <= 0 || b.Bytes <= 0 || b.TotalBytes > a.TotalBytes {
				t.Errorf("sent %d of %d bytes, received %d of %d", a.Bytes, a.TotalBytes, b.Bytes, b.TotalBytes)
			}
			if c.sender && a.TotalBytes != b.TotalBytes {
				t.Errorf("sent %d bytes in all, received %d", a.TotalBytes, b.TotalBytes)
			}
			if want := c.spec.Amount; want > 0 && (a.Bytes != want || b.Bytes != want) {
				t.Errorf("sent %d and received %d of an amount of %d in the measured time", a.Bytes, b.Bytes, want)
			}
			for i, x := range b.Streams {
				if x.CPU != nil { // over loopback the other end may not be thru's
					t.Errorf("stream %d is bound to CPU %d", i, *x.CPU)
				}
				if d := x.DatagramsAll; c.spec.Protocol == measure.UDP && (d == nil || d.Lost != 0 || d.Packets == 0 || d.Foreign != 0) {
					t.Errorf("stream %d: %+v", i, d)
				}
			}
		})
	}
}

// Two-way traffic has connections for each direction.
func TestAdoptedBothDirections(t *testing.T) {
	p, err := Self()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for _, protocol := range []string{measure.TCP, measure.UDP} {
		spec := measure.Spec{From: "a", To: "b", Engine: "test", Protocol: protocol, Streams: 2, Duplex: true, EachStream: true,
			Duration: int64(300 * time.Millisecond), Interval: int64(100 * time.Millisecond), NoRamp: true, Rate: 40e6}
		s, r := adopts(t, p, spec, Task{End: engine.End{Sends: true}, Datagrams: StampNumber64, FirstNumber: 1}, Task{Datagrams: StampNumber64, FirstNumber: 1}, 0)
		a, b := finished(t, s), finished(t, r)
		backA, _ := s.Back()
		backB, _ := r.Back()
		for name, e := range map[string]measure.Evidence{"there sent": a, "there received": b, "back received": backA, "back sent": backB} {
			if len(e.Streams) != 2 || e.Bytes <= 0 {
				t.Errorf("%s %s: %d streams, %d bytes", protocol, name, len(e.Streams), e.Bytes)
			}
		}
		if !a.Sends || b.Sends || backA.Sends || !backB.Sends {
			t.Errorf("%s: directions %v %v %v %v", protocol, a.Sends, b.Sends, backA.Sends, backB.Sends)
		}
	}
}

// An engine that aborts gives the reason; nothing of the worker stays.
func TestAdoptedAborts(t *testing.T) {
	p, err := Self()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	spec := measure.Spec{Protocol: measure.TCP, Streams: 1, Duration: int64(time.Minute), Interval: int64(100 * time.Millisecond), NoRamp: true}
	s, _ := adopts(t, p, spec, Task{End: engine.End{Sends: true}}, Task{}, 0)
	<-s.Updates()
	s.Abort(context.DeadlineExceeded)
	us := enginetest.Finish(t, s)
	if u := us[len(us)-1]; u.Kind != engine.Failed || u.Err != context.DeadlineExceeded {
		t.Errorf("the last update is %+v", u)
	}
	s.Close()
	if !gone(s.Process()) {
		t.Error("the worker is still there")
	}
}

// The clock begins with what the engine has seen, and ended streams are not waited for.
func TestAdoptedEarly(t *testing.T) {
	p, err := Self()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	spec := measure.Spec{Protocol: measure.UDP, Streams: 1, Duration: int64(time.Minute), Interval: int64(100 * time.Millisecond), NoRamp: true}
	s, err := Adopt(p, Task{End: engine.End{Name: "listen", Spec: spec}, EndOfStream: true, Datagrams: NumberStampHigh, FirstNumber: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	a, b := adoptable(t, measure.UDP, 1)
	defer a[0].Conn.Close()
	const ago = 5 * time.Second
	early := Early{Packets: 90, Bytes: 90_000, Highest: 95, Since: time.Now().Add(-ago).UnixNano(), Until: time.Now().Add(time.Second - ago).UnixNano(), Last: ^uint64(0) - 100}
	if err := s.Take(ctx, []Conn{{Conn: b[0].Conn, Early: early}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Start(ctx, 0, host.PlacementFacts{}); err != nil {
		t.Fatal(err)
	}
	e := finished(t, s)
	d := e.Streams[0].DatagramsAll
	if span := time.Duration(e.MeasuredNs); span < 900*time.Millisecond || span > 1100*time.Millisecond {
		t.Errorf("measured %v of the second in which they came", span)
	}
	if e.Bytes != 90_000 || d == nil || d.Packets != 90 || d.Lost != 10 {
		t.Errorf("%d bytes, %+v", e.Bytes, d)
	}
}
