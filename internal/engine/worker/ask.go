package worker

import (
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"thru/internal/sock"
)

// portableAsk moves requests and responses through the language's own sockets.
type portableAsk struct{ portablePath }

func (portableAsk) finish(f *flow, s *stream) {
	if !f.udp && f.crr == nil {
		portablePath{}.finish(f, s)
	}
}

func (portableAsk) interrupt(s *stream) {
	if s.listener != nil {
		s.listener.SetDeadline(time.Unix(1, 0))
	}
	portablePath{}.interrupt(s)
}

func (portableAsk) prepare(f *flow, s *stream) error {
	if f.crr != nil && !s.sends {
		s.listener = f.crr.listener
	}
	return nil
}

func (portableAsk) move(f *flow, s *stream) error {
	if s.sends {
		return askPortable(f, s)
	}
	if f.crr != nil {
		return answerEachPortable(f, s)
	}
	return answerPortable(f, s, s.sock)
}

func askPortable(f *flow, s *stream) error {
	c, request, response := newSchedule(f), pattern(f.length), make([]byte, f.answer)
	f.sawFirst(s)
	now := int64(time.Since(f.begin))
	for n := uint64(1); !f.stop.Load(); n++ {
		from := c.next(now)
		err := askOnce(f, s, n, request, response)
		now = int64(time.Since(f.begin))
		switch {
		case err == nil:
			countAnswer(f, s, now-from)
		case f.stop.Load():
			return nil
		case !f.udp && f.crr == nil:
			return fmt.Errorf("worker: sending requests: %w", sock.Cause(err))
		default:
			if err := s.latency.failed(sock.Cause(err), f.measuring.Load()); err != nil {
				return err
			}
		}
	}
	return nil
}

// askOnce sends one request and receives its response, in CRR traffic on its own connection.
func askOnce(f *flow, s *stream, n uint64, request, response []byte) error {
	var conn net.Conn = s.sock
	switch {
	case f.crr != nil:
		c, err := f.dialer.Dial("tcp", s.sock.RemoteAddr().String())
		if err != nil {
			return err
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(answerTime))
		conn = c
	case f.udp:
		putNumber(request[:numberSize(len(request), len(response))], n)
		conn.SetReadDeadline(time.Now().Add(answerTime))
	}
	if _, err := conn.Write(request); err != nil {
		return err
	}
	if !f.udp {
		_, err := io.ReadFull(conn, response)
		if err == nil && f.crr != nil { // the responding end closes first: see askEach
			_, err = io.Copy(io.Discard, conn)
		}
		return err
	}
	for {
		got, err := conn.Read(response)
		if err != nil {
			return err
		}
		if hasNumber(response[:got], numberSize(len(request), len(response)), n) {
			return nil
		}
	}
}

func answerPortable(f *flow, s *stream, conn net.Conn) error {
	request, response := make([]byte, f.length), pattern(f.answer)
	for {
		got, err := readMessage(conn, request, f.udp)
		if f.ending.Load() || errors.Is(err, io.EOF) {
			return io.EOF
		}
		if err != nil {
			return fmt.Errorf("worker: answering: %w", sock.Cause(err))
		}
		if s.firstAt.Load() == 0 {
			f.sawFirst(s)
		}
		if f.udp {
			copy(response[:numberSize(len(request), len(response))], request[:min(got, numberSize(len(request), len(response)))])
		}
		if _, err := conn.Write(response); err != nil && !f.udp {
			return fmt.Errorf("worker: answering: %w", sock.Cause(err))
		}
		s.moved(got)
		s.more[cRequests].Add(1)
		s.hold(len(response))
		if f.crr != nil {
			return nil
		}
	}
}

func readMessage(conn net.Conn, b []byte, datagram bool) (int, error) {
	if datagram {
		return conn.Read(b)
	}
	return io.ReadFull(conn, b)
}

func answerEachPortable(f *flow, s *stream) error {
	peer := s.sock.RemoteAddr().(*net.TCPAddr).IP
	for {
		c, err := s.listener.Accept()
		if f.ending.Load() {
			return io.EOF
		}
		if err != nil {
			sleepThread(time.Millisecond)
			continue
		}
		c.SetDeadline(time.Now().Add(answerTime))
		if c.RemoteAddr().(*net.TCPAddr).IP.Equal(peer) {
			answerPortable(f, s, c)
		}
		c.Close()
	}
}

// countAnswer counts one transaction.
func countAnswer(f *flow, s *stream, took int64) {
	s.moved(f.length)
	s.more[cRequests].Add(1)
	if f.measuring.Load() {
		s.answered(took)
	}
	s.hold(f.length)
}
