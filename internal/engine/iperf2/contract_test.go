//go:build unix

package iperf2

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"sync"
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
	flag.Parse()
	flag.Set("test.parallel", "16") // parallel tests mostly wait, and do not compute
	goleak.VerifyTestMain(m)
}

func gone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

// limit bounds each step of a test; it does not assert speed.
const limit = 30 * time.Second

func program(t *testing.T) *worker.Program {
	t.Helper()
	p, err := worker.Self()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// stubServer is a running server with an engine that answers each call at once.
type stubServer struct {
	engine  Engine
	port    int
	answers chan *answered
	refused chan error
}

// answered is a call and its session, or its error.
type answered struct {
	call    engine.Call
	session engine.Session
	err     error
}

// serve starts a server on loopback; take handles each call.
func serve(t *testing.T, c ServerConfig) *stubServer {
	t.Helper()
	s := &stubServer{answers: make(chan *answered, 64), refused: make(chan error, 64)}
	c.Refused = func(_ string, reason error) {
		select {
		case s.refused <- reason:
		default:
		}
	}
	s.engine = Engine{Program: program(t), Server: NewServer(c)}
	ctx, cancel := context.WithCancel(context.Background())
	for s.port = 36500; ; s.port++ {
		tcp, udp, err := Listen(ctx, []string{"127.0.0.1"}, s.port, "")
		if err == nil {
			over := make(chan error, 1)
			var calls sync.WaitGroup
			go func() {
				over <- s.engine.Server.Serve(ctx, tcp, udp, func(c engine.Call) { calls.Go(func() { s.answer(t, c) }) })
			}()
			t.Cleanup(func() {
				cancel()
				if err := <-over; err != nil {
					t.Error(err)
				}
				calls.Wait()
			})
			return s
		}
		closeListeners(tcp, udp)
		if s.port > 36700 {
			t.Fatal(err)
		}
	}
}

func closeListeners(tcp []net.Listener, udp []*net.UDPConn) {
	for _, l := range tcp {
		l.Close()
	}
	for _, u := range udp {
		u.Close()
	}
}

// answer runs the first flow of a call.
func (s *stubServer) answer(t *testing.T, c engine.Call) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	x := c.Specs[0]
	a := &answered{call: c}
	a.session, a.err = s.engine.Open(ctx, engine.End{Name: "local", Spec: x, Sends: x.From == "local", Token: c.Token})
	if a.err == nil {
		t.Cleanup(func() { closeGone(t, a.session) })
		a.err = a.session.Start(ctx, 0, host.PlacementFacts{})
	}
	s.answers <- a
}

func closeGone(t *testing.T, x engine.Session) {
	x.Close()
	if !gone(x.Process()) {
		t.Errorf("process %d is still there after Close", x.Process())
	}
}

// next returns the next answered call.
func (s *stubServer) next(t *testing.T) *answered {
	t.Helper()
	select {
	case a := <-s.answers:
		if a.err != nil {
			t.Fatalf("answering %+v: %v", a.call, a.err)
		}
		return a
	case err := <-s.refused:
		t.Fatalf("the call was refused: %v", err)
	case <-time.After(limit):
		t.Fatal("no call came")
	}
	return nil
}

// spec returns a short test.
func spec(protocol string, streams int) measure.Spec {
	s := measure.Spec{From: "local", To: "iperf2://127.0.0.1", DialFrom: true, Engine: measure.IPerf2, Protocol: protocol, Streams: streams,
		Duration: int64(400 * time.Millisecond), Interval: int64(100 * time.Millisecond), NoRamp: true, Rate: 100e6}
	return s
}

// reversed returns the other direction of a test.
func reversed(s measure.Spec) measure.Spec {
	s.From, s.To, s.DialFrom = s.To, s.From, false
	return s
}

// dial opens a test from this end and starts it.
func dial(t *testing.T, p *worker.Program, x measure.Spec, port int, ramp time.Duration) engine.Session {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	s, err := Engine{Program: p}.Open(ctx, engine.End{Name: "local", Spec: x, Sends: x.From == "local", Dials: true, Targets: []string{fmt.Sprintf("127.0.0.1:%d", port)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeGone(t, s) })
	if err := s.Start(ctx, ramp, host.PlacementFacts{}); err != nil {
		t.Fatal(err)
	}
	return s
}

// finished waits for the end of a session, which must succeed.
func finished(t *testing.T, s engine.Session) measure.Evidence {
	t.Helper()
	us := enginetest.Finish(t, s)
	if len(us) == 0 || us[len(us)-1].Kind != engine.Done {
		t.Fatalf("the last update is %+v", us[max(0, len(us)-1):])
	}
	return s.Evidence()
}
