package worker

import (
	"context"
	"errors"
	"io"
	"net"
	"time"

	"thru/internal/engine"
	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/sock"
)

// sampleUntil reads the streams at the mark (the start of the measured time), at every interval and every statistical second, and at the end of the measured
// time.
func (w *worker) sampleUntil(ctx context.Context, duration time.Duration, ended <-chan *stream) error {
	interval := max(time.Duration(w.cmd.Spec.Interval), measure.MinInterval)
	nextInterval := firstInterval(time.Until(w.mark), interval, !w.cmd.Spec.EachStream)
	favourThread()
	w.avoidDataCPUs()
	nextBin := time.Duration(0)
	if w.fromFirstByte() {
		if err := w.markAtZero(); err != nil {
			return err
		}
		nextBin, nextInterval = measure.Bin, interval
	}
	for {
		next := min(nextInterval, nextBin, duration)
		if err := w.sleepTo(ctx, next, ended); errors.Is(err, errAllSent) {
			return w.allSent()
		} else if err != nil {
			return err
		}
		var why byte
		if next >= nextInterval {
			why |= atInterval
			nextInterval = intervalAfter(nextInterval, interval)
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
			return w.tooSlow()
		}
		// A late sampler does not catch up with tiny bins.
		if why&atInterval != 0 {
			nextInterval = after(nextInterval, w.sample.At, interval)
		}
		if why&(atMark|atBin) != 0 {
			nextBin = after(nextBin, w.sample.At, measure.Bin)
		}
	}
}

// tooSlow returns the error for an amount that has not passed within the time limit.
func (w *worker) tooSlow() error {
	if w.cmd.Spec.Amount == 0 {
		return nil
	}
	return fault.Failf("use a smaller amount, or find why the path is slow; an end point may also limit the time (thru serve --max-time)",
		"worker: %d bytes were not transferred within %v", w.cmd.Spec.Amount, time.Duration(w.cmd.Spec.Duration))
}

// markAtZero starts the measured time of a fixed amount at its first byte, which has passed by now.
func (w *worker) markAtZero() error {
	origin := w.mark
	w.take(atMark)
	w.mark, w.sample.At = origin, 0
	for i := range w.sample.Streams {
		x := &w.sample.Streams[i]
		x.Bytes, x.Calls, x.WallNs, x.More = 0, 0, 0, [cCounters]int64{}
		x.RunNs, x.Wait = min(x.RunNs, 0), min(x.Wait, 0)
	}
	return w.flush()
}

// allSent takes the last reading of a fixed amount. Datagrams may still be in flight: its time ends with the last one that arrives.
func (w *worker) allSent() error {
	leads := w.cmd.Adopt != nil && w.cmd.Adopt.Leads // then the far end sends until it is stopped
	if w.cmd.Spec.Protocol != measure.UDP || w.cmd.Sends || leads {
		w.take(atInterval | atBin | atFinish)
		if w.isEnough() && w.cmd.receives() { // waiting for more is not part of the test
			w.sample.At = w.endedAt()
		}
		return w.flush()
	}
	w.flow.stop.Store(true) // the other direction is over too
	w.awaitQuiet()
	w.endDatagrams()
	w.take(atInterval | atBin | atFinish)
	if w.isEnough() {
		w.sample.At = w.endedAt()
		return w.flush()
	}
	last := w.flow.streams[0].lastAt.Load()
	for _, s := range w.flow.streams {
		last = max(last, s.lastAt.Load())
	}
	w.sample.At = max(w.flow.begin.Add(time.Duration(last)).Sub(w.mark), time.Microsecond)
	return w.flush()
}

// after returns the first time from next on, in steps, that is at least half a step after now.
func after(next, now, step time.Duration) time.Duration {
	for next < now+step/2 {
		next += step
	}
	return next
}

// earlyShare is the share of an interval before the mark at which a ramp without a whole interval shows a figure.
const earlyShare = 0.6

// firstInterval returns the first time of the live figures: they run through the ramp so that one of them falls on the mark. A short ramp has an early one,
// where the intervals need not be equal.
func firstInterval(ramp, interval time.Duration, early bool) time.Duration {
	first := -(ramp / interval) * interval
	if at := time.Duration(earlyShare * float64(interval)); early && first == 0 && ramp > at {
		return -at
	}
	return first
}

// intervalAfter returns the next time of the live figures.
func intervalAfter(at, interval time.Duration) time.Duration {
	if at < 0 && at > -interval {
		return 0
	}
	return at + interval
}

// pollEvery is the polling interval of the sleeping sampler. It sleeps in the kernel, on its own thread: with many busy threads a timer of Go would have to
// get a CPU twice.
const pollEvery = 10 * time.Millisecond

// errAllSent ends the measured time of a fixed amount.
var errAllSent = errors.New("worker: the whole amount is transferred")

// sleepTo waits for a time since the mark. A stream that ends meanwhile ends the test, unless its amount has passed; the last such stream returns errAllSent.
func (w *worker) sleepTo(ctx context.Context, at time.Duration, ended <-chan *stream) error {
	for {
		if w.left == 0 { // some streams may have ended before the first byte was noted
			return errAllSent
		}
		select {
		case s := <-ended:
			if w.isEnough() || w.endedSoon(s) { // broken ends the test when the data of the other streams has arrived, too
				continue
			}
			if w.complete(s) {
				w.left--
				continue
			}
			w.take(atInterval | atBin | atFinish)
			return errors.Join(w.early(s), w.flush())
		case <-ctx.Done():
			return context.Cause(ctx)
		default:
		}
		w.giveFeedback()
		if err := w.broken(); errors.Is(err, errAllSent) {
			return err
		} else if err != nil {
			w.take(atInterval | atBin | atFinish)
			return errors.Join(err, w.flush())
		}
		left := time.Until(w.mark.Add(at))
		if left <= 0 {
			return nil
		}
		sleepThread(min(left, pollEvery, w.observe()))
	}
}

// complete reports whether a stream has ended because its share of the amount has passed.
func (w *worker) complete(s *stream) bool {
	ended := s.err == nil || errors.Is(s.err, io.EOF)
	return ended && (w.cmd.Spec.Amount > 0 || w.cmd.Adopt != nil && w.cmd.Adopt.EndOfStream)
}

// broken returns why a test cannot continue although no stream has ended.
func (w *worker) broken() error {
	f := w.flow
	if a := w.cmd.Adopt; a != nil {
		limit := stallWait
		if !a.Leads { // a foreign client may pause, and its control connection shows when it leaves
			limit = pauseWait
		}
		err := w.stalled(limit)
		if w.isEnough() {
			w.hearEnd()
		}
		if w.isEnough() && w.isCalm() || a.Leads && w.receivedAll() {
			return errAllSent
		}
		return err
	}
	if w.cmd.connectionless() && closed(f.side.gone) && !closed(f.side.enough) {
		if w.cmd.Spec.Amount > 0 && !w.cmd.Sends {
			return errAllSent // the sender has signalled that all is sent
		}
		return peerClosed("worker: the peer closed the connection early")
	}
	return w.stopped(stallWait)
}

// take reads every stream into the one sample that is reused.
func (w *worker) take(why byte) {
	now := time.Now()
	if why&atMark != 0 {
		w.mark = now // the measured time begins when its first reading is taken
		w.flow.measuring.Store(true)
	}
	if why&atFinish != 0 {
		w.flow.measuring.Store(false)
	}
	w.sample.Why, w.sample.At = why, now.Sub(w.mark)
	w.sample.Usage.read()
	for i, s := range w.flow.streams {
		x := &w.sample.Streams[i]
		x.Bytes, x.Calls = s.bytes.Load(), s.calls.Load()
		x.WallNs = int64(time.Since(w.flow.begin))
		x.RunNs, x.Wait = s.clock.read()
		for k := range x.More {
			x.More[k] = s.more[k].Load()
		}
		if why&(atMark|atBin) != 0 {
			s.more[cDelayMaxNs].Store(0)
			s.more[cTookMaxNs].Store(0)
		}
		w.readSocket(s, x)
	}
}

// readSocket reads the kernel's figures of a stream's socket. On the raw paths it allocates nothing: a worker collects no garbage.
func (w *worker) readSocket(s *stream, x *streamSample) {
	x.Info = x.Info[:0]
	x.More[cSocketDrops] = notKnown
	if s.file != nil {
		w.readDescriptor(s.file.Fd(), x)
	} else if raw, err := s.sock.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) { w.readDescriptor(fd, x) })
	}
}

func (w *worker) readDescriptor(fd uintptr, x *streamSample) {
	if w.cmd.Spec.Protocol == measure.UDP {
		if n, ok := sock.Drops(fd); ok {
			x.More[cSocketDrops] = n
		}
	} else if w.cmd.Spec.Traffic != measure.CRR {
		x.Info = x.Info[:sock.TCPInfoSize]
		x.Info = x.Info[:sock.ReadTCPInfo(fd, x.Info)]
	}
}

func (w *worker) flush() error {
	w.sample.Mark = w.mark.UnixNano()
	w.buf = w.sample.append(w.buf[:0])
	return w.out.raw(frameSample, w.buf)
}

// describe returns the description of a stream, without its counters.
func (w *worker) describe(s *stream) measure.Stream {
	asked := w.cmd.options()
	d := measure.Stream{
		Index: s.index % w.cmd.Spec.Streams, Length: int64(w.flow.length), Placed: s.placementReason, PacedBy: s.pacedBy,
		Local: addrString(s.sock.LocalAddr()), Peer: addrString(s.sock.RemoteAddr()),
	}
	if len(s.cpus) == 1 {
		d.CPU = new(s.cpus[0])
	}
	if closed(s.done) && s.err != nil && !errors.Is(s.err, io.EOF) {
		d.Error = s.err.Error()
	}
	if s.check != nil && !s.sends {
		d.Checked = s.check.result()
	}
	g := sock.Read(s.sock, sock.ReadGranted)
	granted, want := g.RecvBuffer, asked.RecvBuffer
	if s.sends {
		granted, want = g.SendBuffer, asked.SendBuffer
	}
	d.Congestion, d.MSS = g.Congestion, g.MSS
	set := want
	if w.cmd.Spec.Protocol == measure.UDP && set == 0 && (!s.sends || w.cmd.Spec.Rate > 0 || w.cmd.Spec.Search) {
		set = engine.DatagramBuffer
	}
	d.Window = measure.Buffer{Asked: want, Set: set, Granted: int64(granted), Usable: int64(granted) / sock.BufferOverhead}
	d.Window.Cut = want > 0 && d.Window.Granted > 0 && d.Window.Usable < want
	return d
}

func addrString(a net.Addr) string {
	if a == nil {
		return ""
	}
	return a.String()
}
