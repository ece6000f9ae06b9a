package iperf3

import (
	"context"
	"time"

	"thru/internal/engine"
	"thru/internal/engine/worker"
	"thru/internal/fault"
	"thru/internal/measure"
)

// Engine opens sessions with iperf3: at the dialling end as its client, at the other end as the server of a client that has called Server.
type Engine struct {
	Program *worker.Program
	Server  *Server // nil where the engine takes no calls

	adopt  func(worker.Task) (dataSession, error) // in place of a worker, in tests
	bounds *waits                                 // replaces the default, in tests
}

// dataSession moves the data: a *worker.Session.
type dataSession interface {
	engine.Session
	Take(ctx context.Context, conns []worker.Conn) error
	DataSince(at time.Time)
	Stopped() <-chan struct{}
	Enough() error
	Abort(err error)
}

// Name implements engine.Engine.
func (Engine) Name() string { return measure.IPerf3 }

// Open implements engine.Engine. A dialling end is then connected to a server that is ready for it; at the other end Token identifies the client that has
// called.
func (e Engine) Open(ctx context.Context, end engine.End) (engine.Session, error) {
	if err := check(end); err != nil {
		if !end.Dials && e.Server != nil {
			e.Server.refuse(end.Token, refuse(codeParameters, "%w", err))
		}
		return nil, err
	}
	if end.Dials {
		c, err := e.openClient(ctx, end)
		if err != nil {
			return nil, err // not c: a nil *client is no nil engine.Session
		}
		return c, nil
	}
	s, err := e.openServer(end)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// check refuses what the iperf3 protocol cannot express.
func check(end engine.End) error {
	s := end.Spec
	if err := worker.Check(s); err != nil {
		return err
	}
	switch {
	case s.Traffic != measure.Bulk || s.Search || s.Verify:
		return fault.Usagef("use thru at both ends (thru serve)", "iperf3: an iperf3 end point does not support this kind of traffic")
	case s.Protocol == measure.TCP && max(s.Length.Send, s.Length.Recv) > mostLength:
		return fault.Usagef("use -l up to 1M", "iperf3: the length is out of range")
	case s.MSS > mostMSS:
		return fault.Usagef("use an MSS up to 32767", "iperf3: the MSS is out of range")
	case s.BindPort > 0 && s.Duplex && s.BindPort+2*s.Streams > 65536:
		return fault.Usagef("use a smaller --cport", "iperf3: there are not enough source ports from %d on for %d streams", s.BindPort, 2*s.Streams)
	}
	return nil
}

// start returns the data session of a test.
func (e Engine) start(t worker.Task) (dataSession, error) {
	if e.adopt != nil {
		return e.adopt(t)
	}
	s, err := worker.Adopt(e.Program, t)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// waits returns the timeouts for a far end.
func (e Engine) waits() waits {
	if e.bounds != nil {
		return *e.bounds
	}
	return usual()
}
