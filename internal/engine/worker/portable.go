package worker

import (
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/sock"
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
			return fmt.Errorf("worker: sending: %w", sock.Cause(err))
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
			return fmt.Errorf("worker: receiving: %w", sock.Cause(err))
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

// portableUDP sends and receives one datagram per call, which works on every system.
type portableUDP struct{ portablePath }

func (portableUDP) finish(*flow, *stream) {}

func (portableUDP) move(f *flow, s *stream) error {
	if s.sends {
		return sendDatagrams(f, s)
	}
	return recvDatagrams(f, s)
}

func sendDatagrams(f *flow, s *stream) error {
	buf, all := pattern(f.length), []byte(nil)
	copy(buf[min(len(buf), f.numbering.size()):], f.behind)
	if s.check != nil {
		all = verifiable(f.length)
	}
	f.sawFirst(s)
	refused, port := 0, reopening{}
	for n := s.early.after(f.firstNumber); !f.stop.Load() && (s.quota == noQuota || s.bytes.Load() < s.quota); n++ {
		f.numbering.put(buf, n, f.stamp())
		if all != nil {
			copy(buf[datagramHeader:], patternOf(all, n, len(buf)-datagramHeader))
		}
		_, err := s.sock.Write(buf)
		switch {
		case err == nil:
		case sock.Is(err, syscall.ENOBUFS):
			s.more[cSendErrors].Add(1)
		case f.stop.Load():
			return nil
		case port.explains(f.numbering, err):
			n--
			continue
		case sock.Is(err, syscall.EMSGSIZE) && !f.dontFragment && refused < 10:
			refused++ // reported once when the path MTU has shrunk
			n--
			continue
		case sock.Is(err, syscall.EMSGSIZE):
			return fault.Failf("try a smaller -l", "worker: sending: datagrams of %d bytes exceed the path's MTU", f.length)
		default:
			return fmt.Errorf("worker: sending: %w", sock.Cause(err))
		}
		s.more[cPackets].Add(1)
		s.moved(len(buf))
		s.hold(len(buf))
	}
	return nil
}

func recvDatagrams(f *flow, s *stream) error {
	buf, all, q := make([]byte, 65536), []byte(nil), newSequence()
	if s.check != nil {
		all = verifiable(len(buf))
	}
	q.begin(f.firstNumber, s.early)
	s.delays = q.delays
	if q.packets > 0 { // the engine has received the first
		f.sawFirst(s)
	}
	if s.early.Last != 0 {
		q.publish(s)
		return io.EOF
	}
	for first := q.packets == 0; ; {
		n, err := s.sock.Read(buf)
		if f.ending.Load() {
			q.publish(s)
			return io.EOF
		}
		if err != nil {
			if sock.Is(err, syscall.ECONNREFUSED) {
				continue
			}
			return fmt.Errorf("worker: receiving: %w", sock.Cause(err))
		}
		if n < f.numbering.size() {
			q.stray(n)
			continue
		}
		number, sent, last := f.numbering.get(buf, q.next)
		if last {
			q.end(number)
			q.publish(s)
			return io.EOF
		}
		counted := 0
		if q.take(number) {
			counted = n
		}
		if number < foreignNumber {
			q.arrived(sent, int64(time.Since(f.begin)), f.measuring.Load())
			if all != nil {
				s.check.compare(all, buf[datagramHeader:n], int64(number%period), int64(number))
			}
		}
		s.moved(counted)
		s.lastAt.Store(int64(time.Since(f.begin)))
		q.publish(s)
		if first && q.packets > 0 {
			f.sawFirst(s)
			first = false
		}
	}
}
