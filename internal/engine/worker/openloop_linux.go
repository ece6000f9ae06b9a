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

// inFlight holds the unanswered requests. One thread sends requests, another one receives the responses.
type inFlight struct {
	// Each slot holds the start of a request's latency, doubled, plus one for a request in the measured time; 0: empty or answered.
	slots   [mostInFlight]atomic.Int64
	asked   atomic.Uint64 // number of the last request
	counted atomic.Int64  // requests sent in the measured time
}

// mostInFlight is how many requests may wait for their response at once; further ones wait to be sent, and that time counts.
const mostInFlight = 1 << 14

// askAtRate sends requests when they are due, even before the responses to earlier ones, so that a slow response delays no request and a path longer than the
// request spacing is measured correctly.
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

// ask is the sending thread.
func (w *inFlight) ask(f *flow, s *stream, x *exchange) error {
	runtime.LockOSThread()
	if err := bindThread(s.cpus); err != nil {
		return err
	}
	c := newSchedule(f)
	for n := uint64(1); !f.stop.Load(); n++ {
		from := c.next(int64(time.Since(f.begin)))
		for !f.udp && w.slots[n%mostInFlight].Load() != 0 && !f.stop.Load() {
			sleepThread(time.Millisecond) // too many requests are in flight
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
			return fmt.Errorf("worker: sending requests: %w", err)
		} // a datagram that is not sent gets no response
		s.hold(len(x.request))
	}
	return nil
}

// take receives the responses until all requests are sent and answered, or no response has arrived for a long time.
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
			have += got // a message of a stream may arrive in parts
			continue
		case errors.Is(err, io.EOF) || errors.Is(err, unix.ECONNREFUSED):
			return fault.Because(fault.PeerGone, fmt.Errorf("worker: sending requests: the peer ended: %w", err))
		case err != nil:
			return fmt.Errorf("worker: sending requests: %w", err)
		}
		have = 0
		n := w.numberOf(x, got, answered)
		slot := w.slots[n%mostInFlight].Swap(0)
		if n == 0 || slot == 0 {
			continue // not a response of this test, or answered already
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

// numberOf returns the number of the request that a response belongs to: on a stream the next one; for a datagram the number in it, of which short datagrams
// hold only the last byte. It returns 0 where no request in flight matches.
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
