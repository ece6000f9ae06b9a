package worker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"testing"
	"time"

	"thru/internal/engine"
	"thru/internal/engine/enginetest"
	"thru/internal/fault"
	"thru/internal/host"
	"thru/internal/measure"
	"thru/internal/unit"
)

// limit bounds each step of a test; it does not assert speed.
const limit = 30 * time.Second

// suite describes the engine under test.
type suite struct {
	Engine engine.Engine
	IO     string             // data path to force; empty for the default
	Gone   func(pid int) bool // true when the process is no more
}

// runTCP runs the contract.
func (s suite) runTCP(t *testing.T) {
	t.Run("forward", func(t *testing.T) { s.moves(t, 1, true, measure.Pair{}) })
	t.Run("reverse", func(t *testing.T) { s.moves(t, 1, false, measure.Pair{}) })
	t.Run("streams", func(t *testing.T) { s.moves(t, 4, true, measure.Pair{}) })
	// Small windows: 64 large ones may take longer to drain than the engine waits.
	t.Run("many streams", func(t *testing.T) { s.moves(t, 64, false, measure.Pair{Send: 128 << 10, Recv: 128 << 10}) })
	t.Run("closes at any time", func(t *testing.T) { s.closes(t, s.spec(2)) })
	t.Run("peer dies", s.peerDies)
	t.Run("rate is held", s.rateHeld)
	t.Run("strangers", s.strangers)
	t.Run("wrong token", s.wrongToken)
	t.Run("bad requests", s.badRequests)
	t.Run("amount", s.amount)
	t.Run("confined", s.confined)
	t.Run("two ways", s.twoWays)
	if s.IO == measure.IOCopy || s.IO == measure.IOPortable {
		t.Run("verified", func(t *testing.T) { s.verified(t, s.spec(2)) })
	}
}

// What most tests measure, and the ramp before it: the shortest time that has live figures. Loopback at its full rate uses
// two CPUs.
const (
	briefly = measure.MinInterval
	ramp    = 30 * time.Millisecond
)

// spec returns a short test of this suite.
func (s suite) spec(streams int) measure.Spec {
	return measure.Spec{
		From: "a", To: "b", Engine: s.Engine.Name(), Protocol: measure.TCP, IO: s.IO, Streams: streams,
		Duration: int64(briefly), Interval: int64(measure.MinInterval), IOForced: s.IO != "",
	}
}

// pair opens both ends of a flow on loopback and closes them with the test.
func (s suite) pair(t *testing.T, spec measure.Spec, dialFrom bool) (sender, receiver engine.Session) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	listen := s.open(t, ctx, engine.End{Name: "listen", Spec: spec, Sends: !dialFrom, Listen: loopback()})
	dial := s.open(t, ctx, engine.End{
		Name: "dial", Spec: spec, Sends: dialFrom, Dials: true, Token: listen.Ready().Token,
		Targets: []string{target(listen)}, Listen: loopback(),
	})
	if dialFrom {
		return dial, listen
	}
	return listen, dial
}

func loopback() engine.Listen {
	return engine.Listen{Addrs: []string{"127.0.0.1"}, First: 35200, Last: 35400}
}

func target(s engine.Session) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Ready().Port))
}

func (s suite) open(t *testing.T, ctx context.Context, e engine.End) engine.Session {
	t.Helper()
	x, err := s.Engine.Open(ctx, e)
	if err != nil {
		t.Fatalf("opening %s: %v", e.Name, err)
	}
	t.Cleanup(func() {
		x.Close()
		if !s.Gone(x.Process()) {
			t.Errorf("%s: process %d is still there after Close", e.Name, x.Process())
		}
	})
	return x
}

// start releases the barrier, the receiver first.
func start(t *testing.T, ramp time.Duration, sender, receiver engine.Session) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	for _, x := range []engine.Session{receiver, sender} {
		if err := x.Start(ctx, ramp, host.PlacementFacts{}); err != nil {
			t.Fatalf("starting: %v", err)
		}
	}
}

func (s suite) moves(t *testing.T, streams int, dialFrom bool, window measure.Pair) {
	spec := s.spec(streams)
	spec.Window = window
	var a, b measure.Evidence
	inOneOfSome(t, func() error {
		a, b = s.run(t, spec, dialFrom)
		return moved(a, b)
	})
	checkEvidence(t, a, spec)
	checkEvidence(t, b, spec)
	if a.TotalBytes != b.TotalBytes {
		t.Errorf("sent %d bytes in all, received %d", a.TotalBytes, b.TotalBytes)
	}
	if !a.Sends || b.Sends || a.Dialled != dialFrom || b.Dialled == dialFrom {
		t.Errorf("roles: sender %v/%v, receiver %v/%v", a.Sends, a.Dialled, b.Sends, b.Dialled)
	}
	dialler := a
	if !dialFrom {
		dialler = b
	}
	if r := dialler.RTTIdle; r == nil || r.Min <= 0 || r.Median < r.Min || r.Max < r.Median {
		t.Errorf("idle RTT %+v", r)
	}
	for i, x := range a.Streams {
		if y := b.Streams[i]; x.Local != y.Peer || x.Peer != y.Local {
			t.Errorf("stream %d: ends %s>%s and %s>%s do not meet", i, x.Local, x.Peer, y.Local, y.Peer)
		}
	}
}

// moved returns an error if no data passed in the measured time: all threads of an end may wait for a CPU that long.
func moved(es ...measure.Evidence) error {
	for _, e := range es {
		if e.Bytes == 0 {
			return fmt.Errorf("%s: 0 bytes in the measured time", e.EndPoint)
		}
	}
	return nil
}

// checkTimeline: one Mark, then one Finish, then Done as the last.
func checkTimeline(t *testing.T, who string, us []engine.Update) {
	t.Helper()
	count := map[engine.Kind]int{}
	for _, u := range us {
		count[u.Kind]++
		if u.Kind == engine.Failed {
			t.Errorf("%s failed: %v", who, u.Err)
		}
	}
	if count[engine.Mark] != 1 || count[engine.Finish] != 1 || count[engine.Progress] == 0 {
		t.Errorf("%s: course %v", who, count)
	}
	if len(us) == 0 || us[len(us)-1].Kind != engine.Done {
		t.Errorf("%s: the last update is not Done", who)
	}
}

func checkEvidence(t *testing.T, e measure.Evidence, spec measure.Spec) {
	t.Helper()
	if len(e.Streams) != spec.Streams {
		t.Fatalf("%s: %d streams of %d", e.EndPoint, len(e.Streams), spec.Streams)
	}
	if e.Bytes <= 0 || e.TotalBytes < e.Bytes || e.IO == "" || e.Error != "" {
		t.Errorf("%s: bytes %d of %d, path %q, error %q", e.EndPoint, e.Bytes, e.TotalBytes, e.IO, e.Error)
	}
	if e.MeasuredNs < spec.Duration || len(e.Bins) != 1 || e.MeasuredNs != e.Bins[0].Span {
		t.Errorf("%s: measured %v in %d bins", e.EndPoint, time.Duration(e.MeasuredNs), len(e.Bins))
	}
	var bins, parts int64
	for _, b := range e.Bins {
		bins += b.Bytes
	}
	seen := map[string]bool{}
	for _, x := range e.Streams {
		parts += x.Bytes
		seen[x.Local+x.Peer] = true
	}
	if bins != e.Bytes || parts != e.Bytes {
		t.Errorf("%s: %d bytes, but %d in its bins and %d in its streams", e.EndPoint, e.Bytes, bins, parts)
	}
	if len(seen) != spec.Streams {
		t.Errorf("%s: %d streams share %d connections", e.EndPoint, spec.Streams, len(seen))
	}
}

func (s suite) closes(t *testing.T, spec measure.Spec) {
	spec.Duration = int64(time.Minute)
	for _, running := range []bool{false, true} {
		sender, receiver := s.pair(t, spec, true)
		if running {
			start(t, 0, sender, receiver)
			<-receiver.Updates()
		}
		for range 2 {
			if err := errors.Join(sender.Close(), receiver.Close()); err != nil {
				t.Error(err)
			}
		}
	}
}

// peerDies: the surviving end fails soon, and keeps its measurement.
func (s suite) peerDies(t *testing.T) {
	spec := s.spec(2)
	spec.Duration = int64(time.Minute)
	for _, senderDies := range []bool{false, true} {
		sender, receiver := s.pair(t, spec, true)
		start(t, 0, sender, receiver)
		dies, lives := receiver, sender
		if senderDies {
			dies, lives = sender, receiver
		}
		for u := range lives.Updates() {
			if u.Kind == engine.Progress && !u.Ramp && u.Bytes > 0 {
				break
			}
		}
		if p, err := os.FindProcess(dies.Process()); err != nil || p.Kill() != nil {
			t.Fatalf("cannot kill process %d", dies.Process())
		}
		us := enginetest.Finish(t, lives)
		if len(us) == 0 || us[len(us)-1].Kind != engine.Failed || us[len(us)-1].Err == nil {
			t.Errorf("sender dies %v: the other end says %+v", senderDies, us)
		}
		if e := lives.Evidence(); e.Bytes == 0 || e.Error == "" {
			t.Errorf("sender dies %v: kept %d bytes, error %q", senderDies, e.Bytes, e.Error)
		}
	}
}

// rateHeld: a limit of either end applies to the whole flow.
func (s suite) rateHeld(t *testing.T) {
	const rate = 80e6 // 10 MB/s: 3 MB in the measured 0.3 s
	spec := s.spec(4)
	spec.Duration = int64(300 * time.Millisecond)
	spec.Length = measure.Pair{Send: 8 << 10, Recv: 8 << 10}
	spec.MaxRate = rate
	inOneOfSome(t, func() error {
		_, e := s.run(t, spec, true)
		if got := float64(e.Bytes) * 8e9 / float64(e.MeasuredNs); got > rate*1.25 || got < rate*0.5 {
			return fmt.Errorf("%.0f bit/s with a bound of %.0f", got, float64(rate))
		}
		return nil
	})
}

// inOneOfSome measures until the timing of a run is right. A machine that is busy elsewhere may delay any run; a
// fault of the code shows in all of them.
func inOneOfSome(t *testing.T, run func() error) {
	t.Helper()
	var err error
	for range 10 {
		if err = run(); err == nil || t.Failed() {
			return
		}
	}
	t.Errorf("in each of 10 runs, at last: %v", err)
}

// confined: each end's process stays on the CPUs of the request, and reports them; a forbidden CPU is refused.
func (s suite) confined(t *testing.T) {
	allowed := host.Allowed()
	spec := s.spec(2)
	if len(allowed) == 0 { // not supported on this system
		spec.SenderCPUs = "0"
		s.refuses(t, spec)
		return
	}
	first, last := unit.List(allowed[:1]), unit.List(allowed[len(allowed)-1:])
	spec.SenderCPUs, spec.ReceiverCPUs = first, last
	sender, receiver := s.pair(t, spec, true)
	start(t, ramp, sender, receiver)
	enginetest.Finish(t, sender)
	enginetest.Finish(t, receiver)
	if a, b := sender.Evidence(), receiver.Evidence(); a.CPUs != first || b.CPUs != last || b.TotalBytes == 0 {
		t.Errorf("confined to %q and %q, want %q and %q; %d bytes", a.CPUs, b.CPUs, first, last, b.TotalBytes)
	}
	spec.SenderCPUs = strconv.Itoa(unit.MaxCPU)
	s.refuses(t, spec)
	spec.SenderCPUs, spec.SenderCPU = first, new(allowed[0]+1)
	s.refuses(t, spec)
}

// refuses: the sender cannot be opened, and the error has a hint.
func (s suite) refuses(t *testing.T, spec measure.Spec) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	x, err := s.Engine.Open(ctx, engine.End{Name: "refused", Spec: spec, Sends: true, Listen: loopback()})
	if err == nil {
		x.Close()
	}
	if fault.Code(err) != fault.Usage || fault.Hint(err) == "" {
		t.Errorf("CPUs %q: %v, hint %q", spec.SenderCPUs, err, fault.Hint(err))
	}
}

// strangers: programs that send junk or nothing to the data port have no effect.
func (s suite) strangers(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	spec := s.spec(2)
	listen := s.open(t, ctx, engine.End{Name: "listen", Spec: spec, Listen: loopback()})
	for _, say := range []string{"", "GET / HTTP/1.0\r\n\r\n0123456789012345678901234567", "thru-d1\n", "thru-d2\n"} {
		c, err := net.Dial("tcp", target(listen))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.Write([]byte(say))
	}
	dial := s.open(t, ctx, engine.End{Name: "dial", Spec: spec, Sends: true, Dials: true,
		Token: listen.Ready().Token, Targets: []string{target(listen)}})
	start(t, 0, dial, listen)
	checkTimeline(t, "sender", enginetest.Finish(t, dial))
	checkTimeline(t, "receiver", enginetest.Finish(t, listen))
}

func (s suite) wrongToken(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	spec := s.spec(1)
	a := s.open(t, ctx, engine.End{Name: "a", Spec: spec, Listen: loopback()})
	b := s.open(t, ctx, engine.End{Name: "b", Spec: spec, Listen: loopback()})
	x, err := s.Engine.Open(ctx, engine.End{Name: "dial", Spec: spec, Sends: true, Dials: true,
		Token: a.Ready().Token, Targets: []string{target(b)}})
	if err == nil {
		x.Close()
		t.Error("traffic would go to an end point that did not return the token")
	}
}

func (s suite) badRequests(t *testing.T) {
	for name, change := range map[string]func(*measure.Spec){
		"no streams":   func(s *measure.Spec) { s.Streams = 0 },
		"many streams": func(s *measure.Spec) { s.Streams = measure.MaxStreams + 1 },
		"length":       func(s *measure.Spec) { s.Length.Send = -1 },
		"window":       func(s *measure.Spec) { s.Window.Recv = measure.MaxWindow + 1 },
		"duration":     func(s *measure.Spec) { s.Duration = 0 },
		"protocol":     func(s *measure.Spec) { s.Protocol = "sctp" },
		"path":         func(s *measure.Spec) { s.IO = "no such path" },
		"dscp":         func(s *measure.Spec) { s.DSCP = 64 },
		"family":       func(s *measure.Spec) { s.Family = 5 },
	} {
		spec := s.spec(1)
		change(&spec)
		x, err := s.Engine.Open(t.Context(), engine.End{Name: "bad", Spec: spec, Listen: loopback()})
		if err == nil {
			x.Close()
			t.Errorf("%s: was accepted", name)
		}
	}
}
