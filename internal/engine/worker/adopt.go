package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"thru/internal/engine"
)

// Task is the work of a worker whose connections an engine makes itself, with another protocol than thru's.
type Task struct {
	End engine.End
	// Leads: this end's clock controls the test. When its measured time or its amount is over, the worker stops, and Stopped informs the engine. Else the test
	// continues until the engine calls Enough.
	Leads bool
	// EndOfStream: the end of a TCP stream, or its last datagram, ends the test normally (iperf2), without Enough. Else such an end during the test is an
	// error (iperf3).
	EndOfStream bool
	// Datagrams is how the datagrams of a UDP test are numbered.
	Datagrams Numbering
	// FirstNumber is the number of the first datagram.
	FirstNumber uint64
	// Behind follows the numbering in every datagram sent.
	Behind []byte
	// Conclude is called once when the worker is done and the evidence has the counts of the whole test, before the session sends Done: for the final exchange
	// with the far end. Its error makes the test fail. It must end by itself.
	Conclude func() error
}

// adoption is the part of a Task that the worker receives.
type adoption struct {
	Leads       bool      `json:"leads,omitempty"`
	Limited     bool      `json:"limited,omitempty"` // the duration is only a limit, at an end that does not lead
	EndOfStream bool      `json:"end_of_stream,omitempty"`
	Datagrams   Numbering `json:"datagrams,omitzero"`
	FirstNumber uint64    `json:"first_number,omitzero"`
	Behind      []byte    `json:"behind,omitempty"`
}

// Conn is a connection that an engine has made.
type Conn struct {
	Conn  net.Conn // *net.TCPConn or *net.UDPConn, connected
	Early Early    // data that the engine has read or written on it, and that counts
}

// Early is the part of a stream that an engine has moved before the hand-over.
type Early struct {
	Packets int64  `json:"packets,omitzero"` // datagrams
	Bytes   int64  `json:"bytes,omitzero"`
	Highest uint64 `json:"highest,omitzero"` // number of a datagram
	// Since and Until are when the first and the last of it arrived, in nanoseconds since 1970, so that this end's clock does not start late; with 0 the
	// worker's own clock counts.
	Since int64 `json:"since_ns,omitzero"`
	Until int64 `json:"until_ns,omitzero"`
	// Last is the number of a stream's last datagram, where that has arrived already.
	Last uint64 `json:"last,omitzero"`
}

// after returns the next number; first is that of the first datagram.
func (e Early) after(first uint64) uint64 {
	if e.Packets == 0 {
		return first
	}
	return max(e.Highest+1, first)
}

// takeCommand announces its connections to the worker.
type takeCommand struct {
	Early   []Early  `json:"early"`
	Sockets [][]byte `json:"sockets,omitempty"` // Windows: what describes them; elsewhere they come over a socket
}

// Adopt starts a worker that waits for its connections.
func Adopt(p *Program, t Task) (*Session, error) {
	if err := Check(t.End.Spec); err != nil {
		return nil, err
	}
	limited := !t.Leads && t.End.Spec.Amount > 0
	if !t.Leads { // the far end ends the test
		t.End.Spec.Amount = 0
	}
	carrier, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	proc, err := p.start(threads(t.End.Spec), theirs...)
	engine.CloseAll(theirs)
	if err != nil {
		carrier.Close()
		return nil, err
	}
	s := newSession(t.End, proc, "", nil)
	s.adopts, s.carrier, s.conclude = true, carrier, t.Conclude
	cmd := s.command()
	cmd.Adopt = &adoption{Leads: t.Leads, Limited: limited, EndOfStream: t.EndOfStream, Datagrams: t.Datagrams, FirstNumber: t.FirstNumber, Behind: t.Behind}
	if err := s.out.json(frameOpen, cmd); err != nil {
		err = errors.Join(err, s.proc.death())
		s.Close()
		return nil, err
	}
	return s, nil
}

// Take hands the connections over: those of the flow's own direction first, then, where Spec.Duplex is set, as many of the other one. It closes them in this
// process, also on error. It returns when the worker is ready for Start.
func (s *Session) Take(ctx context.Context, conns []Conn) error {
	cmd := takeCommand{}
	var cs []net.Conn
	for _, c := range conns {
		cmd.Early = append(cmd.Early, c.Early)
		cs = append(cs, c.Conn)
		defer c.Conn.Close()
	}
	if err := s.handOver(cmd, cs); err != nil {
		return s.reason(fmt.Errorf("worker: handing over %d connections: %w", len(conns), err))
	}
	return s.answered(ctx)
}

// DataSince sets, before Start, when the far end was allowed to send. A receiver's clock begins then, because data that the far end sends meanwhile waits in
// the sockets for the worker.
func (s *Session) DataSince(at time.Time) { s.since = at.UnixNano() }

// Stopped is closed when a worker that leads has stopped sending, and the far end's kernel has all sent data. The engine then informs the far end, and calls
// Enough.
func (s *Session) Stopped() <-chan struct{} { return s.stopped }

// Enough tells the worker that the test is over at the far end too: it receives the data in flight, and ends.
func (s *Session) Enough() error { return s.out.raw(frameEnough, nil) }

// Abort makes the session fail, for a reason that the worker cannot know.
func (s *Session) Abort(err error) {
	s.mu.Lock()
	s.aborted = cmp.Or(s.aborted, err)
	s.mu.Unlock()
	s.proc.in.Close() // makes the worker end
	time.AfterFunc(abortTime, func() { s.proc.cmd.Process.Kill() })
}

// abortTime is how long a worker may take to end by itself.
const abortTime = 500 * time.Millisecond
