package native

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

// path is one way to move data; every path of a system passes the contract suite.
type path struct {
	name string
	io   mover
}

// enough is the one byte that a receiver ever sends.
const enough = 'E'

// mover moves the data of one stream in its own goroutine.
type mover interface {
	// prepare readies the connection before the barrier.
	prepare(s *stream) error
	// move sends until f.stop, or receives until io.EOF.
	move(f *flow, s *stream) error
	// sayEnough, at the receiver, tells the sender that the measured time is over.
	sayEnough(s *stream)
	// heardEnough, at the sender, is true once the receiver has said so. It does not block.
	heardEnough(s *stream) bool
	// finish, at the sender, ends the stream and waits for the peer to close it.
	finish(s *stream)
	// interrupt ends a blocked call of the stream from another goroutine.
	interrupt(s *stream)
}

// portablePath moves data through the language's own sockets, as every
// system has them.
type portablePath struct{}

func (portablePath) prepare(*stream) error { return nil }

func (portablePath) move(f *flow, s *stream) error {
	if f.sends {
		return sendPortable(f, s)
	}
	return recvPortable(f, s)
}

func sendPortable(f *flow, s *stream) error {
	buf := pattern(f.length)
	f.sawFirst(s)
	for !f.stop.Load() {
		n, err := s.conn.Write(buf)
		s.bytes.Add(int64(n))
		s.calls.Add(1)
		if err != nil {
			if f.stop.Load() {
				return nil
			}
			return fmt.Errorf("native: sending: %w", cause(err))
		}
		if s.pace != nil {
			s.pace.after(n)
		}
	}
	return nil
}

func recvPortable(f *flow, s *stream) error {
	buf := make([]byte, f.length)
	for first := true; ; {
		n, err := s.conn.Read(buf)
		if n > 0 {
			if first {
				f.sawFirst(s)
				first = false
			}
			s.bytes.Add(int64(n))
			s.calls.Add(1)
		}
		if errors.Is(err, io.EOF) {
			return io.EOF
		}
		if err != nil {
			return fmt.Errorf("native: receiving: %w", cause(err))
		}
		if s.pace != nil {
			s.pace.after(n)
		}
	}
}

func (portablePath) sayEnough(s *stream) { s.conn.Write([]byte{enough}) }

func (portablePath) heardEnough(s *stream) bool {
	var b [1]byte
	s.conn.SetReadDeadline(time.Now().Add(time.Millisecond))
	defer s.conn.SetReadDeadline(time.Time{})
	n, err := s.conn.Read(b[:])
	return n == 1 || errors.Is(err, io.EOF)
}

func (portablePath) finish(s *stream) {
	if err := s.conn.CloseWrite(); err != nil {
		return // already gone: there is nothing to wait for
	}
	io.Copy(io.Discard, s.conn) // ends when the peer closes, or by interrupt
}

func (portablePath) interrupt(s *stream) { s.conn.SetDeadline(time.Unix(1, 0)) }

// cause is the system's word without the addresses that net.OpError repeats.
func cause(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	var sys *os.SyscallError
	if errors.As(err, &sys) {
		err = sys.Err
	}
	return err
}

// pattern is what a sender sends: bytes that a link which compresses cannot
// shrink to nothing (xorshift64*, Marsaglia 2003).
func pattern(n int) []byte {
	b := make([]byte, n)
	x := uint64(0x9E3779B97F4A7C15)
	for i := range b {
		x ^= x >> 12
		x ^= x << 25
		x ^= x >> 27
		b[i] = byte((x * 0x2545F4914F6CDD1D) >> 56)
	}
	return b
}
