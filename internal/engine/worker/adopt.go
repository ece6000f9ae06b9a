package worker

import (
	"context"
	"errors"
	"net"

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
	// as it should (iperf2). Else it is an error before the test is over (iperf3).
	EndOfStream bool
	// Datagrams is how the datagrams of a UDP test are numbered.
	Datagrams Numbering
	// FirstNumber is that of the first datagram.
	FirstNumber uint64
	// Behind is what follows the numbering in every datagram that is sent.
	Behind []byte
	// Conclude is called once when the worker is done and has the counts of
	// the whole test, before the session tells of Done: for the last words with
	// the far end. Its error makes the test fail. It may take its time, in bounds.
	Conclude func() error
}

// Numbering is how a datagram carries its number and the time of its sending.
type Numbering int

// Numberings. All are big-endian; a stamp is seconds and microseconds of 32 bits each.
const (
	OfThru          Numbering = iota // number 64 bits, nanoseconds 64 bits
	StampNumber32                    // stamp, number of 32 bits
	StampNumber64                    // stamp, number of 64 bits
	NumberStamp                      // signed number of 32 bits, stamp; a negative number is the last
	NumberStampHigh                  // low 32 bits of a signed number, stamp, high 32 bits; a negative number is the last
)

// Conn is a connection that an engine has made.
type Conn struct {
	Conn  net.Conn // *net.TCPConn or *net.UDPConn, connected
	Sends bool     // this end sends on it
	Early Early    // of UDP: what was read of it before it was handed over
}

// Early is what an engine has read of a UDP stream itself.
type Early struct {
	Packets int64  `json:"packets,omitzero"`
	Bytes   int64  `json:"bytes,omitzero"`
	Highest uint64 `json:"highest,omitzero"` // number
}

// Adopt starts a worker that waits for its connections.
func Adopt(p *Program, t Task) (*Session, error) { return nil, errors.New("worker: adopting: not yet") }

// Take hands the connections over, those of the flow's own direction first,
// then, where Spec.Duplex is set, as many of the other one. They are closed
// here, also on error. It returns when the worker is ready for Start.
func (s *Session) Take(ctx context.Context, conns []Conn) error { return nil }

// Stopped is closed when a worker that leads has stopped sending, and the far
// end's kernel has what was sent. The engine then tells the far end, and calls Enough.
func (s *Session) Stopped() <-chan struct{} { return nil }

// Enough tells the worker that the test is over at the far end too: it takes
// what is still under way, and ends.
func (s *Session) Enough() error { return nil }

// Abort ends the session as failed, for a reason that the worker cannot know.
func (s *Session) Abort(err error) {}
