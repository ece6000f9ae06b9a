//go:build unix

package iperf3

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"thru/internal/engine"
	"thru/internal/engine/enginetest"
	"thru/internal/engine/worker"
	"thru/internal/host"
	"thru/internal/measure"
)

// The test binary is its own worker, like the program.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == worker.Verb {
		if err := worker.Main(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// limit bounds each step of a test; it does not assert speed.
const limit = 30 * time.Second

func gone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

// bench is a server on loopback, and an engine for both roles.
type bench struct {
	Engine
	t     *testing.T
	calls chan engine.Call
	port  int
}

func newBench(t *testing.T, c ServerConfig) *bench {
	t.Helper()
	d, err := NewServer(c)
	if err != nil {
		t.Fatal(err)
	}
	p, err := worker.Self()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	b := &bench{Engine: Engine{Program: p, Server: d}, t: t, calls: make(chan engine.Call, 64)}
	b.port = serve(t, d, func(c engine.Call) { b.calls <- c })
	return b
}

// anyPort opens a port on loopback.
func anyPort(t testing.TB) *Ports {
	t.Helper()
	ports, err := Listen(context.Background(), []string{"127.0.0.1"}, "", 0)
	for range 20 { // another program may use the same number for UDP
		if !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
		ports, err = Listen(context.Background(), []string{"127.0.0.1"}, "", 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	return ports
}

// serve runs a server on a loopback port until the test ends.
func serve(t *testing.T, d *Server, took func(engine.Call)) (port int) {
	t.Helper()
	ports := anyPort(t)
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() { defer close(over); d.Serve(ctx, ports, took) }()
	t.Cleanup(func() { cancel(); <-over })
	return ports.TCP[0].Addr().(*net.TCPAddr).Port
}

func (b *bench) target() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(b.port)) }

// open opens a session that the test closes, and checks its process.
func (b *bench) open(end engine.End) engine.Session {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), limit)
	defer cancel()
	s, err := b.Open(ctx, end)
	if err != nil {
		b.t.Fatalf("opening: %v", err)
	}
	b.t.Cleanup(func() {
		s.Close()
		if !gone(s.Process()) {
			b.t.Errorf("process %d is still there after Close", s.Process())
		}
	})
	return s
}

// answer takes the next call, as an agent does.
func (b *bench) answer() (engine.Session, engine.Call) {
	b.t.Helper()
	select {
	case c := <-b.calls:
		return b.open(engine.End{Name: "local", Spec: c.Specs[0], Sends: c.Specs[0].From == "local", Token: c.Token}), c
	case <-time.After(limit):
		b.t.Fatal("no call came")
		return nil, engine.Call{}
	}
}

// begin releases the barrier of one end, and returns the result.
func begin(t *testing.T, s engine.Session, ramp time.Duration) <-chan error {
	done := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		done <- s.Start(ctx, ramp, host.PlacementFacts{})
	}()
	return done
}

// finished reads a session to its end, which must succeed.
func finished(t *testing.T, who string, s engine.Session) measure.Evidence {
	t.Helper()
	us := enginetest.Finish(t, s)
	if len(us) == 0 {
		t.Fatalf("%s: no update came", who)
	}
	if last := us[len(us)-1]; last.Kind != engine.Done {
		t.Fatalf("%s: the last update is %+v", who, last)
	}
	return s.Evidence()
}

// short returns a test of one second with this protocol.
func short(protocol string, streams int) measure.Spec {
	s := measure.Spec{From: "a", To: "b", DialFrom: true, Engine: measure.IPerf3, Protocol: protocol, Streams: streams,
		Duration: int64(time.Second), Interval: int64(500 * time.Millisecond), NoRamp: true, Rate: 200e6}
	if protocol == measure.UDP {
		s.Rate, s.Window.Recv = 40e6, 4<<20
	}
	return s
}

// both runs a test of our client with our server; sends is set where the client sends.
func (b *bench) both(spec measure.Spec, sends bool, ramp time.Duration) (client, calledSession engine.Session) {
	b.t.Helper()
	spec.DialFrom = sends
	client = b.open(engine.End{Name: "client", Spec: spec, Sends: sends, Dials: true, Targets: []string{b.target()}})
	asked := begin(b.t, client, ramp)
	calledSession, call := b.answer()
	if err := <-begin(b.t, calledSession, time.Duration(call.Specs[0].Ramp)); err != nil {
		b.t.Fatalf("starting the server: %v", err)
	}
	if err := <-asked; err != nil {
		b.t.Fatalf("starting the client: %v", err)
	}
	return client, calledSession
}

func TestPair(t *testing.T) {
	for _, protocol := range []string{measure.TCP, measure.UDP} {
		for _, direction := range []string{"forward", "reverse", "both ways"} {
			t.Run(protocol+" "+direction, func(t *testing.T) {
				t.Parallel()
				spec := short(protocol, 4)
				spec.Duplex = direction == "both ways"
				judged(t, func(j *judge) { pair(t, j, spec, direction != "reverse") })
			})
		}
	}
}

// pair runs a test between our own two ends.
func pair(t *testing.T, j *judge, spec measure.Spec, sends bool) {
	t.Helper()
	client, calledSession := newBench(t, ServerConfig{}).both(spec, sends, 0)
	a, b := finished(t, "client", client), finished(t, "server", calledSession)
	checkPair(t, j, a, b)
	far, farBack := client.Far()
	checkFar(t, "server", far, b)
	testRecord, _ := calledSession.Far()
	checkFar(t, "client", testRecord, a)
	if spec.Duplex {
		x, _ := client.Back()
		y, _ := calledSession.Back()
		checkPair(t, j, x, y)
		checkFar(t, "server back", farBack, y)
	}
}

// checkPair compares what both ends saw of one direction.
func checkPair(t *testing.T, j *judge, a, b measure.Evidence) {
	t.Helper()
	if a.Sends == b.Sends || a.Dialled == b.Dialled {
		t.Errorf("roles: %v/%v and %v/%v", a.Sends, a.Dialled, b.Sends, b.Dialled)
	}
	if a.Bytes <= 0 || b.Bytes <= 0 || len(a.Streams) != len(b.Streams) {
		t.Fatalf("%d and %d bytes, %d and %d streams", a.Bytes, b.Bytes, len(a.Streams), len(b.Streams))
	}
	for i, x := range a.Streams {
		if y := b.Streams[i]; x.Local != y.Peer || x.Peer != y.Local {
			t.Errorf("stream %d: ends %s>%s and %s>%s do not meet", i, x.Local, x.Peer, y.Local, y.Peer)
		}
	}
	j.near("bytes", float64(a.TotalBytes), float64(b.TotalBytes))
	j.near("rates", rate(a), rate(b))
}

func rate(e measure.Evidence) float64 { return float64(e.Bytes) * 8e9 / float64(e.MeasuredNs) }

// judge compares figures, which a busy machine may disturb: it repeats a failed comparison. It distinguishes only counted from uncounted data; `make interop`
// checks how well the ends agree.
type judge struct{ wrong []string }

// near requires two figures to agree within a quarter.
func (j *judge) near(what string, a, b float64) {
	if d := a - b; d > 0.25*a || d < -0.25*a {
		j.wrong = append(j.wrong, fmt.Sprintf("%s: %.4g and %.4g differ by %.1f %%", what, a, b, 100*d/a))
	}
}

// few requires that less than a quarter of the datagrams is lost.
func (j *judge) few(lost, all int64) {
	if 4*lost > all {
		j.wrong = append(j.wrong, fmt.Sprintf("%d of %d datagrams were lost", lost, all))
	}
}

// judged runs a comparison up to three times until the figures agree.
func judged(t *testing.T, compare func(j *judge)) {
	t.Helper()
	j := &judge{}
	for range 3 {
		j.wrong = nil
		if compare(j); len(j.wrong) == 0 || t.Failed() {
			break
		}
		t.Logf("once more: %q", j.wrong)
	}
	for _, w := range j.wrong {
		t.Error(w)
	}
}

// checkFar compares an end's report of the other one with the other's own evidence.
func checkFar(t *testing.T, who string, far *measure.Evidence, saw measure.Evidence) {
	t.Helper()
	if far == nil {
		t.Fatalf("the %s has reported nothing", who)
	}
	if far.Sends != saw.Sends || far.Dialled != saw.Dialled || len(far.Streams) != len(saw.Streams) || far.Reported == "" {
		t.Fatalf("%s reported %+v and saw %d bytes", who, far, saw.Bytes)
	}
	if d := far.MeasuredNs - saw.MeasuredNs; d < -1 || d > 1 { // it is sent as a decimal fraction
		t.Errorf("the %s reported %d ns and measured %d", who, far.MeasuredNs, saw.MeasuredNs)
	}
	bytes := int64(0)
	for i, x := range saw.Streams {
		y := far.Streams[i]
		if saw.Sends && x.DatagramsAll != nil { // it reports all datagrams, including those of the last call
			x.Bytes = x.TotalBytes
		}
		bytes += x.Bytes
		if x.Bytes != y.Bytes || x.Local != y.Local || x.Peer != y.Peer {
			t.Errorf("%s: stream %d: reported %+v", who, i, y)
		}
		if x.DatagramsAll != nil && (y.DatagramsAll.Packets-x.DatagramsAll.Packets != 0 || y.DatagramsAll.Lost != x.DatagramsAll.Lost) {
			t.Errorf("%s: stream %d: reported %+v, saw %+v", who, i, *y.DatagramsAll, *x.DatagramsAll)
		}
	}
	if far.Bytes != bytes {
		t.Errorf("%s reported %d bytes and saw %d", who, far.Bytes, bytes)
	}
}
