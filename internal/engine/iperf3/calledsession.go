package iperf3

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"thru/internal/engine"
	"thru/internal/engine/worker"
	"thru/internal/fault"
	"thru/internal/host"
	"thru/internal/measure"
	"thru/internal/sock"
)

// calledSession is the session of the end that a client has called.
type calledSession struct {
	testRecord
	call *call
	end  engine.End

	join    sync.Once
	joinErr error
	closed  chan struct{} // closed by Close
	once    sync.Once
	task    sync.WaitGroup

	missing []measure.NotChecked // options that could not be set; under mu
}

func (e Engine) openServer(end engine.End) (*calledSession, error) {
	if e.Server == nil {
		return nil, fault.Failf("start the server with thru serve --iperf", "iperf3: answering a client: the iperf server is off")
	}
	c, err := e.Server.claim(end.Token)
	if err != nil {
		return nil, err
	}
	s := &calledSession{call: c, end: end, closed: make(chan struct{})}
	numbers := worker.StampNumber32
	if c.params.Counters64 != 0 {
		numbers = worker.StampNumber64
	}
	s.dataSession, err = e.start(worker.Task{End: end, Datagrams: numbers, FirstNumber: 1, Conclude: s.conclude})
	if err != nil {
		c.leave(serverTerminate)
		return nil, err
	}
	return s, nil
}

// Ready implements engine.Session.
func (s *calledSession) Ready() engine.Ready {
	return engine.Ready{
		Token: s.call.token, Local: s.call.talk.conn.LocalAddr().String(), Peer: s.call.talk.conn.RemoteAddr().String(), Conns: s.dataSession.Ready().Conns,
	}
}

// Joined implements engine.Session: it waits for the data connections.
func (s *calledSession) Joined(ctx context.Context) error {
	s.join.Do(func() {
		s.joinErr = s.collect(ctx)
		if _, ok := codeOf(s.joinErr); ok {
			s.call.dismiss(s.joinErr)
		}
	})
	return s.joinErr
}

func (s *calledSession) collect(ctx context.Context) error {
	n := s.end.Spec.Streams
	if s.end.Spec.Duplex {
		n *= 2
	}
	gather := func() ([]net.Conn, error) { return s.call.collectTCP(ctx, n) }
	if s.end.Spec.Protocol == measure.UDP {
		if err := s.call.server.beginOpening(ctx, s.call); err != nil {
			return err
		}
		defer s.call.server.endOpening(s.call)
		gather = func() ([]net.Conn, error) { return s.call.collectUDP(ctx, n, s.end.Spec, s.sends) }
	}
	if err := s.call.talk.sendStates(createStreams); err != nil {
		return err
	}
	conns, err := gather()
	if err != nil {
		return err
	}
	var own, other []worker.Conn
	for i, c := range conns {
		if s.end.Spec.Protocol == measure.TCP {
			s.set(c, s.sends(i))
		}
		if s.sends(i) == s.end.Sends {
			own = append(own, worker.Conn{Conn: c})
		} else {
			other = append(other, worker.Conn{Conn: c})
		}
	}
	if err := s.Take(ctx, append(own, other...)); err != nil {
		return err
	}
	return s.call.talk.sendStates(testStart)
}

// sends reports whether this end sends on the stream that arrived as number i: a client opens its sending streams first.
func (s *calledSession) sends(i int) bool {
	if s.end.Spec.Duplex {
		return i >= s.end.Spec.Streams
	}
	return s.end.Sends
}

// set applies the requested options to an accepted connection. All clients share the port, so the listening socket could not have them before.
func (s *calledSession) set(c net.Conn, sends bool) {
	spec := s.end.Spec
	asked := engine.SocketOptions(spec, measure.TCP, sends)
	for fact, o := range map[string]sock.Options{
		"streams.window":     {SendBuffer: asked.SendBuffer, RecvBuffer: asked.RecvBuffer},
		"streams.mss":        {MSS: spec.MSS},
		"streams.congestion": {Congestion: spec.Congestion},
		"streams.dscp":       {DSCP: spec.DSCP},
	} {
		family := "tcp4"
		if addrOf(c.LocalAddr()).Is6() {
			family = "tcp6"
		}
		raw, err := c.(*net.TCPConn).SyscallConn()
		if err == nil {
			err = o.Control(family, "", raw)
		}
		if err != nil {
			s.note(fact, fmt.Sprintf("the requested option could not be set: %v", err))
		}
	}
	const late = "set after the handshake, because clients share the port"
	if spec.MSS > 0 {
		s.note("streams.mss", late)
	}
	if spec.Window.Recv > 0 {
		s.note("streams.window.scale", late)
	}
	if s.call.params.TOS&3 != 0 {
		s.note("streams.ecn", "only the kernel sets the two lowest bits of the TOS")
	}
}

// note adds an unavailable fact once.
func (s *calledSession) note(fact, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := (measure.NotChecked{Fact: fact, Why: why}); !slices.Contains(s.missing, m) {
		s.missing = append(s.missing, m)
	}
}

// Start implements engine.Session. The worker must run before data arrives; the client's must run before this end sends.
func (s *calledSession) Start(ctx context.Context, ramp time.Duration, near host.PlacementFacts) error {
	if err := s.Joined(ctx); err != nil {
		return err
	}
	s.begins(ramp)
	onlySends := s.end.Sends && !s.end.Spec.Duplex
	s.call.running.Store(true)
	if onlySends {
		if err := s.call.talk.sendStates(testRunning); err != nil {
			return err
		}
	}
	if err := s.dataSession.Start(ctx, ramp, near); err != nil {
		return err
	}
	s.task.Go(func() { s.follow(ramp + time.Duration(s.end.Spec.Duration) + s.call.server.wait.grace) })
	if onlySends {
		return nil
	}
	return s.call.talk.sendStates(testRunning)
}

// follow waits for the end of the test, which the client signals.
func (s *calledSession) follow(limit time.Duration) {
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case <-s.call.ended:
		s.Enough() // a worker that has ended reports its own error
	case <-s.call.gone:
		s.Abort(s.call.why)
	case <-s.closed:
	case <-late.C:
		s.call.talk.sendError(codeExpired)
		s.Abort(fault.Failf("", "iperf3: the client did not end its test in time"))
	}
}

// conclude exchanges the results.
func (s *calledSession) conclude() error {
	select {
	case <-s.call.ended:
	default:
		return errors.New("iperf3: the test ended before the client reported it")
	}
	t := s.call.talk
	directions := s.directions(s.end.Spec, s, s.call.program())
	if err := t.sendStates(exchangeResults); err != nil {
		return err
	}
	ids := idsOf(directions)
	b, err := t.hearJSON(mostResultBytes(len(ids)))
	if err != nil {
		return err
	}
	r, err := readResults(b, ids, 0)
	if err != nil {
		return err
	}
	s.keep(directions, r)
	output := ""
	if s.call.params.Output != 0 {
		output = serverOutput(s.call, directions)
	}
	if err := t.sendJSON(describe(directions, output).json()); err != nil {
		return err
	}
	if err := t.sendStates(displayResults); err != nil {
		return err
	}
	t.hear(t.wait) // its last state; a client that leaves without it has the results all the same
	s.call.leave(0)
	return nil
}

// Evidence implements engine.Session.
func (s *calledSession) Evidence() measure.Evidence {
	e := s.dataSession.Evidence()
	s.mu.Lock()
	defer s.mu.Unlock()
	e.Missing = append(e.Missing, s.missing...)
	return e
}

// Close implements engine.Session. Before the end of the test it makes the client give up.
func (s *calledSession) Close() error {
	s.once.Do(func() {
		close(s.closed)
		s.call.leave(serverTerminate)
	})
	err := s.dataSession.Close()
	s.task.Wait()
	s.call.tasks.Wait()
	return err
}
