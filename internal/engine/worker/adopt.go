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

// Task is the work of a worker whose connections an engine makes itself, by
// another protocol than thru's.
type Task struct {
	End engine.End
	// Leads: the clock of this end is the test's: when its measured time or its
	// amount is over, the worker stops, and Stopped tells the engine. Else the
	// test goes on until the engine calls Enough.
	Leads bool
	// EndOfStream: the end of a TCP stream, or its last datagram, ends the test
	// as it should (iperf2), and Enough is not waited for. Else such an end is an
	// error before the test is over (iperf3).
	EndOfStream bool
	// Datagrams is how the datagrams of a UDP test are numbered.
	Datagrams Numbering
	// FirstNumber is that of the first datagram.
	FirstNumber uint64
	// Behind is what follows the numbering in every datagram that is sent.
	Behind []byte
	// Conclude is called once when the worker is done and the evidence has the
	// counts of the whole test, before the session tells of Done: for the last
	// words with the far end. Its error makes the test fail. It must end by itself.
	Conclude func() error
}

// adoption is what the worker is told of its Task.
type adoption struct {
	Leads       bool      `json:"leads,omitempty"`
	Limited     bool      `json:"limited,omitempty"` // the duration is no more than a limit, at an end that does not lead
	EndOfStream bool      `json:"end_of_stream,omitempty"`
	Datagrams   Numbering `json:"datagrams,omitzero"`
	FirstNumber uint64    `json:"first_number,omitzero"`
	Behind      []byte    `json:"behind,omitempty"`
}

// Conn is a connection that an engine has made.
type Conn struct {
	Conn  net.Conn // *net.TCPConn or *net.UDPConn, connected
	Early Early    // what the engine has read of it or written to it, and that counts
}

// Early is what an engine has moved of a stream itself before handing it over.
type Early struct {
	Packets int64  `json:"packets,omitzero"` // datagrams
	Bytes   int64  `json:"bytes,omitzero"`
	Highest uint64 `json:"highest,omitzero"` // number of a datagram
	// Since and Until are when the first and the last of it came, in nanoseconds
	// since 1970, so that the clock of this end does not begin late; 0 leaves
	// that to the worker.
	Since int64 `json:"since_ns,omitzero"`
	Until int64 `json:"until_ns,omitzero"`
	// Last is the number of a stream's last datagram, where that has come already.
	Last uint64 `json:"last,omitzero"`
}

// after is the number that follows, where first is that of the first datagram.
func (e Early) after(first uint64) uint64 {
	if e.Packets == 0 {
		return first
	}
	return max(e.Highest+1, first)
}

// takeCommand tells the worker what comes along the socket beside the pipe.
type takeCommand struct {
	Early []Early `json:"early"`
}

// Adopt starts a worker that waits for its connections.
func Adopt(p *Program, t Task) (*Session, error) {
	if err := Check(t.End.Spec); err != nil {
		return nil, err
	}
	limited := !t.Leads && t.End.Spec.Amount > 0
	if !t.Leads { // what ends the test is the far end's to say
		t.End.Spec.Amount = 0
	}
	handOver, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	proc, err := p.start(threads(t.End.Spec), theirs)
	theirs.Close()
	if err != nil {
		handOver.Close()
		return nil, err
	}
	s := newSession(t.End, proc, "", nil)
	s.handOver, s.conclude = handOver, t.Conclude
	cmd := s.command()
	cmd.Adopt = &adoption{Leads: t.Leads, Limited: limited, EndOfStream: t.EndOfStream, Datagrams: t.Datagrams, FirstNumber: t.FirstNumber, Behind: t.Behind}
	if err := s.out.json(frameOpen, cmd); err != nil {
		err = errors.Join(err, s.proc.death())
		s.Close()
		return nil, err
	}
	return s, nil
}

// Take hands the connections over, those of the flow's own direction first,
// then, where Spec.Duplex is set, as many of the other one. They are closed
// here, also on error. It returns when the worker is ready for Start.
func (s *Session) Take(ctx context.Context, conns []Conn) error {
	cmd := takeCommand{}
	var cs []net.Conn
	for _, c := range conns {
		cmd.Early = append(cmd.Early, c.Early)
		cs = append(cs, c.Conn)
		defer c.Conn.Close()
	}
	err := s.out.json(frameTake, cmd)
	if err == nil {
		err = sendConns(s.handOver, cs)
	}
	if err != nil {
		return s.reason(fmt.Errorf("worker: handing over %d connections: %w", len(conns), err))
	}
	return s.answered(ctx)
}

// DataSince tells, before Start, when the far end was let send: a receiver's clock begins
// then, since what the far end has sent meanwhile waits for the worker in its sockets.
func (s *Session) DataSince(at time.Time) { s.since = at.UnixNano() }

// Stopped is closed when a worker that leads has stopped sending, and the far
// end's kernel has what was sent. The engine then tells the far end, and calls Enough.
func (s *Session) Stopped() <-chan struct{} { return s.stopped }

// Enough tells the worker that the test is over at the far end too: it takes
// what is still under way, and ends.
func (s *Session) Enough() error { return s.out.raw(frameEnough, nil) }

// Abort ends the session as failed, for a reason that the worker cannot know.
func (s *Session) Abort(err error) {
	s.mu.Lock()
	s.aborted = cmp.Or(s.aborted, err)
	s.mu.Unlock()
	s.proc.in.Close() // on which the worker ends
	time.AfterFunc(abortTime, func() { s.proc.cmd.Process.Kill() })
}

// abortTime is what a worker is given to end by itself.
const abortTime = 500 * time.Millisecond
