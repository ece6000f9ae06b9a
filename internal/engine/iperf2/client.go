package iperf2

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"thru/internal/engine"
	"thru/internal/engine/worker"
	"thru/internal/fault"
	"thru/internal/host"
	"thru/internal/measure"
	"thru/internal/sock"
)

// Engine opens sessions with an iperf2 at the other end, whose data moves in worker processes of Program. Server provides the calls that it answers; without a
// Server it only calls.
type Engine struct {
	Program *worker.Program
	Server  *Server
}

// Name implements engine.Engine.
func (Engine) Name() string { return measure.IPerf2 }

// Open implements engine.Engine. A dialling end is then connected; a listening end takes the call of its Token.
func (g Engine) Open(ctx context.Context, e engine.End) (engine.Session, error) {
	open := g.call
	if !e.Dials {
		open = g.answer
	}
	s, err := open(ctx, e)
	if err != nil {
		return nil, err // not s: a nil *session is no nil engine.Session
	}
	return s, nil
}

// session is one end of a test with an iperf2.
type session struct {
	*worker.Session
	end   engine.End
	ready engine.Ready
	peer  version // version of the program at the other end; 0: not reported

	life context.Context // ends with Close
	over context.CancelFunc

	release func()       // for an answered call: makes the server forget it
	guard   func()       // limits a UDP client to the rate that this end allows; nil for others
	first   int64        // for an answered UDP call: number of the first datagram
	old     bool         // its datagrams have 32-bit numbers
	kept    []*sock.Kept // UDP: by stream, for the final exchange

	mu    sync.Mutex
	take  taker       // makes what Start hands over
	conns []net.Conn  // until the worker has them
	words []lastWords // UDP: by stream
}

// taker prepares connections and lists them for the worker.
type taker func(ctx context.Context, conns []net.Conn, ramp time.Duration) ([]worker.Conn, error)

func newSession(e engine.End) *session {
	s := &session{end: e}
	s.life, s.over = context.WithCancel(context.Background())
	return s
}

// call opens the dialling end.
func (g Engine) call(ctx context.Context, e engine.End) (*session, error) {
	udp := e.Spec.Protocol == measure.UDP
	if udp && e.Spec.Duplex {
		return nil, fault.Usagef("use TCP, or test one direction after the other", "iperf2: both directions at once require TCP")
	}
	if udp && e.Spec.Length.Send == 0 {
		e.Spec.Length = measure.Pair{Send: defaultDatagram, Recv: defaultDatagram}
	}
	h, err := headerOf(e.Spec, e.Sends, time.Duration(e.Spec.Ramp))
	if err != nil {
		return nil, err
	}
	s := newSession(e)
	s.take = s.introduce
	task := worker.Task{End: e, Leads: true, EndOfStream: true, Conclude: s.conclude}
	if udp {
		task.Datagrams, task.FirstNumber, task.Behind = worker.NumberStampHigh, 1, h.append(nil)
	}
	if s.conns, s.ready.Skipped, err = dialAll(ctx, e); err != nil {
		return nil, err
	}
	if err := s.adopt(g.Program, task); err != nil {
		engine.CloseAll(s.conns)
		return nil, err
	}
	return s, nil
}

// adopt starts the worker, and keeps what the end of the test needs.
func (s *session) adopt(p *worker.Program, task worker.Task) (err error) {
	s.ready.Local, s.ready.Peer = s.conns[0].LocalAddr().String(), s.conns[0].RemoteAddr().String()
	s.ready.RTTIdle = engine.IdleRTT(s.conns[0])
	for _, c := range s.conns {
		u, ok := c.(*net.UDPConn)
		if !ok {
			break
		}
		k, err := sock.Keep(u)
		if err != nil {
			s.letGo()
			return err
		}
		s.kept = append(s.kept, k)
	}
	s.words = make([]lastWords, len(s.conns))
	if s.Session, err = worker.Adopt(p, task); err != nil {
		s.letGo()
	}
	return err
}

func (s *session) letGo() {
	for _, k := range s.kept {
		k.Close()
	}
}

// Ready implements engine.Session.
func (s *session) Ready() engine.Ready { return s.ready }

// Evidence implements engine.Session.
func (s *session) Evidence() measure.Evidence {
	e := s.Session.Evidence()
	if s.end.Dials {
		e.RTTIdle = s.ready.RTTIdle
	}
	return e
}

// Start implements engine.Session. It sends the header only now, because the header names the time of the test, and a server that sends starts at once.
func (s *session) Start(ctx context.Context, ramp time.Duration, near host.PlacementFacts) error {
	s.mu.Lock()
	conns := s.conns
	s.conns = nil
	s.mu.Unlock()
	if conns == nil {
		return errors.New("iperf2: starting: the session has already started or ended")
	}
	given, err := s.take(ctx, conns, ramp)
	if err != nil {
		engine.CloseAll(conns)
		return err
	}
	if err := s.Take(ctx, given); err != nil {
		return err
	}
	if s.guard != nil {
		go s.guard()
	}
	return s.Session.Start(ctx, ramp, near)
}

// Close implements engine.Session.
func (s *session) Close() error {
	s.mu.Lock()
	conns := s.conns
	s.conns = nil
	s.mu.Unlock()
	s.over()
	engine.CloseAll(conns)
	err := s.Session.Close()
	s.letGo()
	if s.release != nil {
		s.release()
	}
	return err
}
