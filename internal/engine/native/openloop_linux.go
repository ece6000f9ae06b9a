package native

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// underWay holds the times from which the latency of the requests counts that
// are not answered yet. One thread asks, another one takes the responses.
type underWay struct {
	from  [mostUnderWay]atomic.Int64
	asked atomic.Uint64
}

// mostUnderWay is how many requests may wait for their response at once; the
// next ones wait to be sent, and their time counts.
const mostUnderWay = 1 << 14

// askAtRate sends requests when they are due, whether those before are
// answered or not, so that a slow response holds up no question and a path
// longer than the spacing is measured like any other.
func askAtRate(f *flow, s *stream) error {
	x, w := newExchange(f, s.file.Fd()), &underWay{}
	asking := make(chan error, 1)
	f.sawFirst(s)
	go func() { asking <- w.ask(f, s, x) }()
	err := w.take(f, s, x, asking)
	if err != nil && f.stop.Load() {
		return nil
	}
	return err
}

// ask is the thread that sends.
func (w *underWay) ask(f *flow, s *stream, x *exchange) error {
	runtime.LockOSThread()
	if err := bindThread(s.cpus); err != nil {
		return err
	}
	c := newSchedule(f)
	for n := uint64(1); !f.stop.Load(); n++ {
		from := c.next(int64(time.Since(f.begin)))
		for n-uint64(s.more[cRequests].Load()) > mostUnderWay && !f.udp && !f.stop.Load() {
			sleepThread(time.Millisecond)
		}
		w.from[n%mostUnderWay].Store(from)
		w.asked.Store(n)
		if x.udp {
			putNumber(x.request, n)
		}
		if err := sendAll(x.fd, x.request); err != nil && !f.udp {
			return fmt.Errorf("native: asking: %w", err)
		} // a datagram that is not sent will not be answered
	}
	return nil
}

// take receives the responses until nobody asks any more and none is under
// way, or none has come for long.
func (w *underWay) take(f *flow, s *stream, x *exchange, asking <-chan error) error {
	answered, over := uint64(0), false
	for {
		if !over {
			select {
			case err := <-asking:
				if over = true; err != nil {
					return err
				}
			default:
			}
		}
		if over && answered >= w.asked.Load() {
			return nil
		}
		got, err := recvAll(x.fd, x.response, x.udp)
		now := int64(time.Since(f.begin))
		switch {
		case errors.Is(err, unix.EAGAIN): // none for answerTime
			if f.stop.Load() {
				return w.unanswered(s, answered)
			}
			continue
		case errors.Is(err, io.EOF) || errors.Is(err, unix.ECONNREFUSED):
			return fmt.Errorf("native: asking: the peer ended: %w", err)
		case err != nil:
			return fmt.Errorf("native: asking: %w", err)
		}
		n := answered + 1
		if x.udp {
			n = w.numberOf(x.response[:min(got, len(x.response), len(x.request))], answered)
		}
		if n == 0 || n > w.asked.Load() {
			continue // not of this test, or too old
		}
		if x.udp && f.measuring.Load() && n > answered+1 {
			s.latency.errors += int64(n - answered - 1) // until they come late, which is not an answer in time
		}
		answered = max(answered, n)
		countAnswer(f, s, now-w.from[n%mostUnderWay].Load())
	}
}

// unanswered counts at the end what was asked in vain.
func (w *underWay) unanswered(s *stream, answered uint64) error {
	s.latency.errors += int64(w.asked.Load() - answered)
	return nil
}

// numberOf is the number of a datagram's request, of which short ones carry
// the last byte only; 0 is none that is under way.
func (w *underWay) numberOf(b []byte, answered uint64) uint64 {
	asked := w.asked.Load()
	for n := answered + 1; n <= asked && n <= answered+mostUnderWay; n++ {
		if hasNumber(b, n) {
			return n
		}
	}
	return 0
}
