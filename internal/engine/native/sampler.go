package native

import (
	"context"
	"errors"
	"io"
	"net"
	"time"

	"thru/internal/measure"
	"thru/internal/sock"
)

// sampleUntil reads the streams at the mark, at every interval and every
// statistical second, and at the end of the measured time.
func (w *worker) sampleUntil(ctx context.Context, duration time.Duration, ended <-chan *stream) error {
	interval := max(time.Duration(w.cmd.Spec.Interval), measure.MinInterval)
	nextInterval := w.intervalBefore(interval)
	favourThread()
	nextBin := time.Duration(0)
	for {
		next := min(nextInterval, nextBin, duration)
		if err := w.sleepTo(ctx, next, ended); err != nil {
			return err
		}
		var why byte
		if next >= nextInterval {
			why |= atInterval
			nextInterval += interval
		}
		switch {
		case next == 0:
			why |= atMark
			nextBin = measure.Bin
		case next >= duration:
			why |= atFinish | atBin | atInterval
		case next >= nextBin:
			why |= atBin
			nextBin += measure.Bin
		}
		w.take(why)
		if err := w.flush(); err != nil {
			return err
		}
		if next >= duration {
			return nil
		}
		// A sampler that came late does not make up for it by tiny bins.
		nextInterval = after(nextInterval, w.sample.At, interval)
		if nextBin > 0 {
			nextBin = after(nextBin, w.sample.At, measure.Bin)
		}
	}
}

// after is the first time at or behind next that lies half a step ahead of now.
func after(next, now, step time.Duration) time.Duration {
	for next < now+step/2 {
		next += step
	}
	return next
}

// intervalBefore is the first time of the live figures: they run through the
// ramp so that one of them falls on the mark.
func (w *worker) intervalBefore(interval time.Duration) time.Duration {
	return -(time.Until(w.mark) / interval) * interval
}

// pollEvery is how often the sleeping sampler looks up. It sleeps in the
// kernel, on its own thread: with many busy threads a timer of the language
// would have to win a CPU twice.
const pollEvery = 10 * time.Millisecond

// sleepTo waits for a time since the mark. A stream that ends meanwhile ends the test.
func (w *worker) sleepTo(ctx context.Context, at time.Duration, ended <-chan *stream) error {
	for {
		select {
		case s := <-ended:
			w.take(atInterval | atBin | atFinish)
			return errors.Join(w.early(s), w.flush())
		case <-ctx.Done():
			return context.Cause(ctx)
		default:
		}
		if err := w.stalled(stallWait); err != nil {
			w.take(atInterval | atBin | atFinish)
			return errors.Join(err, w.flush())
		}
		left := time.Until(w.mark.Add(at))
		if left <= 0 {
			return nil
		}
		sleepThread(min(left, pollEvery))
	}
}

// take reads every stream into the one sample that is used again and again.
func (w *worker) take(why byte) {
	now := time.Now()
	if why&atMark != 0 {
		w.mark = now // the measured time begins when its first reading is taken
	}
	w.sample.Why, w.sample.At = why, now.Sub(w.mark)
	w.sample.Usage.read()
	for i, s := range w.flow.streams {
		x := &w.sample.Streams[i]
		x.Bytes, x.Calls = s.bytes.Load(), s.calls.Load()
		x.WallNs = int64(time.Since(w.flow.begin))
		x.RunNs, x.Wait = s.clock.read()
		x.Info = w.readInfo(s, x.Info)
	}
}

func (w *worker) readInfo(s *stream, room []byte) []byte {
	room = room[:sock.TCPInfoSize]
	if s.file != nil {
		return room[:sock.ReadTCPInfo(s.file.Fd(), room)]
	}
	n := 0
	if raw, err := s.conn.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) { n = sock.ReadTCPInfo(fd, room) })
	}
	return room[:n]
}

func (w *worker) flush() error {
	w.buf = w.sample.append(w.buf[:0])
	return w.out.raw(frameSample, w.buf)
}

// describe is what is known of a stream beside its counters.
func (w *worker) describe(s *stream) measure.Stream {
	asked := w.cmd.options()
	d := measure.Stream{
		Index: s.index, Length: int64(w.flow.length), CPU: s.cpu,
		Local: addrString(s.conn.LocalAddr()), Peer: addrString(s.conn.RemoteAddr()),
	}
	select {
	case <-s.done:
		if s.err != nil && !errors.Is(s.err, io.EOF) {
			d.Error = s.err.Error()
		}
	default: // its thread still moves data
	}
	var g sock.Granted
	if raw, err := s.conn.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) { g = sock.ReadGranted(fd) })
	}
	granted, want := g.RecvBuffer, asked.RecvBuffer
	if w.cmd.Sends {
		granted, want = g.SendBuffer, asked.SendBuffer
	}
	d.Congestion, d.MSS = g.Congestion, g.MSS
	d.Window = measure.Buffer{Asked: want, Set: want, Granted: int64(granted), Usable: int64(granted) / sock.BufferOverhead}
	d.Window.Cut = want > 0 && d.Window.Granted > 0 && d.Window.Usable < want
	return d
}

func addrString(a net.Addr) string {
	if a == nil {
		return ""
	}
	return a.String()
}
