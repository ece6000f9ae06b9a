package worker

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"thru/internal/measure"
)

// portablePaths returns the paths that every system has.
func portablePaths(c openCommand) []path {
	switch {
	case c.Spec.Traffic != measure.Bulk:
		return []path{{name: measure.IOPortable, io: portableAsk{}}}
	case c.Spec.Protocol == measure.UDP:
		return []path{{name: measure.IOPortable, io: portableUDP{}}}
	default:
		return []path{{name: measure.IOPortable, io: portablePath{}}}
	}
}

// portablePath moves data through Go's own sockets, which work on every system.
type portablePath struct{}

func (portablePath) prepare(*flow, *stream) error { return nil }

func (portablePath) move(f *flow, s *stream) error {
	if s.sends {
		return sendPortable(f, s)
	}
	return recvPortable(f, s)
}

func sendPortable(f *flow, s *stream) error {
	buf, sent := pattern(f.length), int64(0)
	if s.check != nil {
		buf = verifiable(f.length)
	}
	f.sawFirst(s)
	for !f.stop.Load() {
		want := s.left(f.length)
		if want == 0 {
			break
		}
		part := buf[:want]
		if s.check != nil {
			part = at(buf, sent, want)
		}
		n, err := s.sock.Write(part)
		sent += int64(n)
		s.moved(n)
		if err != nil {
			if f.stop.Load() {
				return nil
			}
			return fmt.Errorf("worker: sending: %w", cause(err))
		}
		s.hold(n)
	}
	return nil
}

func recvPortable(f *flow, s *stream) error {
	buf, got := make([]byte, f.length), int64(0)
	var all []byte
	if s.check != nil {
		all = verifiable(f.length)
	}
	for {
		n, err := s.sock.Read(buf)
		if n > 0 {
			if got == 0 {
				f.sawFirst(s)
			}
			if s.check != nil {
				s.check.compare(all, buf[:n], got, -1)
			}
			got += int64(n)
			s.moved(n)
		}
		if errors.Is(err, io.EOF) || err != nil && f.ending.Load() {
			return io.EOF
		}
		if err != nil {
			return fmt.Errorf("worker: receiving: %w", cause(err))
		}
		s.hold(n)
	}
}

func (portablePath) sendEnough(f *flow) {
	if f.side != nil {
		f.side.sendEnough()
		return
	}
	f.streams[0].sock.Write([]byte{enough})
}

func (portablePath) heardEnough(f *flow) bool {
	if f.side != nil {
		return closed(f.side.enough) || closed(f.side.gone)
	}
	s := f.streams[0].sock
	var b [1]byte
	s.SetReadDeadline(time.Now().Add(time.Millisecond))
	defer s.SetReadDeadline(time.Time{})
	n, err := s.Read(b[:])
	return n == 1 || errors.Is(err, io.EOF)
}

func (portablePath) finish(f *flow, s *stream) {
	if err := s.sock.(*net.TCPConn).CloseWrite(); err != nil || f.isDuplex() {
		return // already closed, or its other direction reads the socket
	}
	io.Copy(io.Discard, s.sock) // ends when the peer closes, or by interrupt
}

func (portablePath) interrupt(s *stream) { s.sock.SetDeadline(time.Unix(1, 0)) }

// cause returns the system's error without the addresses that net.OpError repeats.
func cause(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err
	}
	if sys, ok := errors.AsType[*os.SyscallError](err); ok {
		err = sys.Err
	}
	return err
}

// pattern returns a sender's data: bytes that a compressing link cannot shrink (xorshift64*, Marsaglia 2003).
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
