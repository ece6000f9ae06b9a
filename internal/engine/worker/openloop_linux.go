package worker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"thru/internal/fault"
)

// inFlight holds the requests that are not answered yet. One thread asks,
// another one takes the responses.
type inFlight struct {
	// Each slot has the time from which a request's latency counts, doubled, plus
	// one where it was asked in the measured time; 0 is none, or answered.
	slots   [mostInFlight]atomic.Int64
	asked   atomic.Uint64 // number of the last request
	counted atomic.Int64  // requests asked in the measured time
}

// mostInFlight is how many requests may wait for their response at once; the
// next ones wait to be sent, and their time counts.
const mostInFlight = 1 << 14

// askAtRate sends requests when they are due, whether those before are
// answered or not, so that a slow response holds up no question and a path
// longer than the spacing is measured like any other.
func askAtRate(f *flow, s *stream) error {
	x, w := newExchange(f, s.file.Fd()), &inFlight{}
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
func (w *inFlight) ask(f *flow, s *stream, x *exchange) error {
	runtime.LockOSThread()
	if err := bindThread(s.cpus); err != nil {
		return err
	}
	c := newSchedule(f)
	for n := uint64(1); !f.stop.Load(); n++ {
		from := c.next(int64(time.Since(f.begin)))
		for !f.udp && w.slots[n%mostInFlight].Load() != 0 && !f.stop.Load() {
			sleepThread(time.Millisecond) // so many are under way already
		}
		slot := from << 1
		if f.measuring.Load() {
			slot |= 1
			w.counted.Add(1)
		}
		w.slots[n%mostInFlight].Store(slot)
		w.asked.Store(n)
		if x.udp {
			putNumber(x.request[:x.number], n)
		}
		if err := sendAll(x.fd, x.request); err != nil && !f.udp {
			return fmt.Errorf("worker: asking: %w", err)
		} // a datagram that is not sent will not be answered
		s.hold(len(x.request))
	}
	return nil
}

// take receives the responses until nobody asks any more and none is under
// way, or none has come for long.
func (w *inFlight) take(f *flow, s *stream, x *exchange, asking <-chan error) error {
	answered, measured, have, over := uint64(0), int64(0), 0, false
	defer func() { s.latency.errors += max(w.counted.Load()-measured, 0) }()
	for {
		select {
		case err := <-asking:
			if over = true; err != nil {
				return err
			}
		default:
		}
		if over && answered >= w.asked.Load() {
			return nil
		}
		got, err := recvAll(x.fd, x.response[have:], x.udp)
		now := int64(time.Since(f.begin))
		switch {
		case errors.Is(err, unix.EAGAIN): // none for answerTime
			if over {
				return nil
			}
			have += got // a message of a stream may come in parts
			continue
		case errors.Is(err, io.EOF) || errors.Is(err, unix.ECONNREFUSED):
			return fault.Because(fault.PeerGone, fmt.Errorf("worker: asking: the peer ended: %w", err))
		case err != nil:
			return fmt.Errorf("worker: asking: %w", err)
		}
		have = 0
		n := w.numberOf(x, got, answered)
		slot := w.slots[n%mostInFlight].Swap(0)
		if n == 0 || slot == 0 {
			continue // none of this test's, or answered already
		}
		answered++
		s.moved(f.length)
		s.more[cRequests].Add(1)
		if slot&1 != 0 {
			measured++
			s.answered(now - slot>>1)
		}
	}
}

// numberOf is the number of the request that a response belongs to: of a
// stream the next one, of a datagram what it says, of which short ones have
// the last byte only. 0 is none that is under way.
func (w *inFlight) numberOf(x *exchange, got int, answered uint64) uint64 {
	asked := w.asked.Load()
	switch {
	case !x.udp:
		return answered + 1
	case got < x.number:
		return 0
	case x.number > 1:
		if n := binary.BigEndian.Uint64(x.response); n > 0 && n <= asked && asked-n < mostInFlight {
			return n
		}
		return 0
	}
	n := asked - uint64(byte(asked)-x.response[0]) // the last one with that byte
	if n > asked {
		return 0
	}
	return n
}
