package worker

import (
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"

	"thru/internal/fault"
)

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
	refused := 0
	for n := s.early.after(f.firstNumber); !f.stop.Load() && (s.quota == noQuota || s.bytes.Load() < s.quota); n++ {
		f.numbering.put(buf, n, f.stamp())
		if all != nil {
			copy(buf[datagramHeader:], patternOf(all, n, len(buf)-datagramHeader))
		}
		_, err := s.sock.Write(buf)
		switch {
		case err == nil:
		case errors.Is(err, syscall.ENOBUFS):
			s.more[cSendErrors].Add(1)
		case f.stop.Load():
			return nil
		case errors.Is(err, syscall.EMSGSIZE) && !f.dontFragment && refused < 10:
			refused++ // reported once when the path MTU has shrunk
			n--
			continue
		case errors.Is(err, syscall.EMSGSIZE):
			return fault.Failf("try a smaller -l", "worker: sending: datagrams of %d bytes exceed the path's MTU", f.length)
		default:
			return fmt.Errorf("worker: sending: %w", cause(err))
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
			if errors.Is(err, syscall.ECONNREFUSED) {
				continue
			}
			return fmt.Errorf("worker: receiving: %w", cause(err))
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
