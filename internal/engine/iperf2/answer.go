package iperf2

import (
	"cmp"
	"context"
	"net"
	"time"

	"thru/internal/engine"
	"thru/internal/engine/worker"
	"thru/internal/fault"
	"thru/internal/measure"
)

// streams returns the largest number of streams in one call.
func (l Limits) streams() int { return cmp.Or(l.Streams, measure.MaxStreams) }

// overrun is how much longer than announced a client may send: its clock differs from ours, and its last data has to arrive.
const overrun = 5 * time.Second

// answer opens the listening end: it takes the call of the token.
func (g Engine) answer(_ context.Context, e engine.End) (*session, error) {
	var c *caller
	if g.Server != nil {
		c = g.Server.claim(e.Token)
	}
	if c == nil {
		return nil, fault.Failf("start the client again: it was rejected or waited too long", "iperf2: answering a client: no client with this token")
	}
	s, err := g.answerTo(c, e)
	if err != nil {
		c.close()
		return nil, err
	}
	return s, nil
}

func (g Engine) answerTo(c *caller, e engine.End) (*session, error) {
	if e.Spec.Streams != len(c.streams) || e.Spec.Protocol != c.test.protocol {
		return nil, fault.Usagef("", "iperf2: answering a client: it has %d %s streams, not %d %s", len(c.streams), c.test.protocol, e.Spec.Streams, e.Spec.Protocol)
	}
	backward := e.Sends || e.Spec.Duplex
	s := newSession(e)
	s.peer = c.test.header.version
	for _, x := range c.streams {
		s.conns = append(s.conns, x.connection())
	}
	task := worker.Task{End: e, Leads: backward, EndOfStream: true, Conclude: s.conclude}
	if !backward {
		task.End.Spec.Duration = int64(min(cmp.Or(g.Server.conf.Limits.Duration, measure.MaxDuration), time.Duration(e.Spec.Duration)*11/10+overrun))
	}
	task.Datagrams, task.FirstNumber = c.test.numbering, c.test.firstNumber
	s.first, s.old = int64(c.test.firstNumber), c.test.numbering == worker.NumberStamp
	s.take = func(context.Context, []net.Conn, time.Duration) ([]worker.Conn, error) { return handOver(c, e) }
	s.release = c.close
	if e.Spec.Protocol == measure.UDP && !e.Sends {
		s.guard = func() { s.holdClient(c) }
	}
	return s, s.adopt(g.Program, task)
}

// handOver lists the connections of a call for the worker.
func handOver(c *caller, e engine.End) ([]worker.Conn, error) {
	var given []worker.Conn
	for _, x := range c.streams {
		g := x.handOver()
		if e.Sends {
			g.Early = worker.Early{} // the header went in the other direction
		}
		given = append(given, g)
	}
	if !e.Spec.Duplex {
		return given, nil
	}
	return bothDirections(given)
}
