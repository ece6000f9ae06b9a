package worker

import (
	"context"
	"errors"
	"io"
	"net"
	"time"

	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/sock"
)

// The worker's side of an adoption: the engine provides its connections and reports the far end's messages, because the worker knows no protocol but thru's.

// Timeouts at the end of an adopted test.
const (
	takeWait     = 60 * time.Second       // for the connections to arrive
	sentWait     = 2 * time.Second        // for sent data to reach the far end's kernel
	farewellWait = 15 * time.Second       // for the far end to signal the end of the test
	closeWait    = time.Second            // for the far end to close its sending side
	calmWait     = 30 * time.Millisecond  // without a byte, after the far end's signal
	lateWait     = 10 * time.Second       // for data after that signal, which may arrive slowly
	pauseWait    = 15 * time.Second       // without a byte, at an end that does not lead
	lastCallWait = 200 * time.Millisecond // for a call in progress when nobody needs its data
)

// adopt receives the connections.
func (w *worker) adopt(ctx context.Context) (*link, error) {
	var cmd takeCommand
	select {
	case cmd = <-w.taking:
	case <-ctx.Done():
		return nil, errors.New("worker: receiving connections from the agent: none arrived in time")
	}
	conns, err := receiveConns(ctx, cmd)
	if err != nil {
		return nil, err
	}
	l := &link{early: cmd.Early}
	for _, c := range conns {
		switch c := c.(type) {
		case *net.TCPConn:
			l.tcp = append(l.tcp, c)
		case *net.UDPConn:
			l.udp = append(l.udp, c)
		}
	}
	if want := w.cmd.adoptedConns(); len(l.tcp)+len(l.udp) != want || w.cmd.Spec.Protocol == measure.UDP && len(l.udp) != want {
		l.close()
		return nil, fault.Failf("", "worker: receiving connections from the agent: got %d TCP and %d UDP, the test has %d", len(l.tcp), len(l.udp), want)
	}
	first := conns[0]
	return l, w.out.json(frameReady, readyReply{Local: addrString(first.LocalAddr()), Peer: addrString(first.RemoteAddr()), Conns: addresses(conns)})
}

// adoptedConns returns how many connections an engine hands over: two-way traffic has some for each direction, which may be the same.
func (c openCommand) adoptedConns() int {
	if c.Spec.Duplex {
		return 2 * c.Spec.Streams
	}
	return c.Spec.Streams
}

// beginEarly counts the data that the engine has moved itself.
func (w *worker) beginEarly(early []Early) {
	for i, e := range early {
		s := w.flow.streams[i]
		s.early = e
		s.bytes.Store(e.Bytes)
		s.more[cPackets].Store(e.Packets)
	}
}

// receivesSince sets the clock of received data to a time before the flow began.
func (f *flow) receivesSince(ns int64) {
	for _, s := range f.streams {
		if ns > 0 && !s.sends {
			s.firstAt.Store(min(ns-f.begin.UnixNano(), -1))
		}
	}
}

// sawEarly starts the clock with the data that the engine has seen before the flow began.
func (f *flow) sawEarly() {
	for _, s := range f.streams {
		if e := s.early; e.Since > 0 {
			s.firstAt.Store(min(e.Since-f.begin.UnixNano(), -1))
			s.lastAt.Store(max(e.Since, e.Until) - f.begin.UnixNano())
			if e.Bytes > 0 {
				f.sawFirst(s)
			}
		}
	}
}

// fromFirstByte reports whether the measured time begins with the first byte, so that every byte counts.
func (w *worker) fromFirstByte() bool {
	return w.cmd.Spec.Amount > 0 || w.cmd.Adopt != nil && w.ramp == 0
}

// endings returns how many streams end by themselves when all data has passed; with 0, something else ends the test.
func (w *worker) endings() (n int) {
	for _, s := range w.flow.streams {
		if a := w.cmd.Adopt; a == nil || a.EndOfStream || s.sends {
			n++
		}
	}
	if n == 0 {
		return len(w.flow.streams)
	}
	return n
}

// isEnough reports whether the far end's end of the test has been signalled to an end that does not lead.
func (w *worker) isEnough() bool {
	return w.cmd.Adopt != nil && !w.cmd.Adopt.Leads && closed(w.enough)
}

// hearEnd records that the far end has ended the test, and stops this end's sending.
func (w *worker) hearEnd() {
	w.flow.stop.Store(true)
	if w.peerEndedAt.IsZero() {
		w.peerEndedAt = time.Now()
	}
}

// isCalm reports whether no more data in flight arrives after the far end has ended the test: its signal may overtake its data.
func (w *worker) isCalm() bool {
	return !w.cmd.receives() || w.cmd.Spec.Protocol == measure.UDP || time.Since(w.movedAt) > calmWait || time.Since(w.peerEndedAt) > lateWait
}

// endedAt returns when the measured time of a test that the far end ended was over: at its signal, or with the bytes that arrived after it.
func (w *worker) endedAt() time.Duration {
	end := w.peerEndedAt
	if w.cmd.Spec.Protocol == measure.TCP && w.movedAt.After(end) {
		end = w.movedAt
	}
	return max(end.Sub(w.mark), time.Microsecond)
}

// endedSoon waits a moment for the end of the test where a stream has ended: the signal takes another path, through the engine, and may arrive later.
func (w *worker) endedSoon(s *stream) bool {
	if a := w.cmd.Adopt; a == nil || a.Leads || a.EndOfStream || s.err != nil && !errors.Is(s.err, io.EOF) {
		return false
	}
	select {
	case <-w.enough:
		return true
	case <-time.After(closeWait):
		return false
	}
}

// receivedAll reports whether the requested amount has arrived, at an end that only receives.
func (w *worker) receivedAll() bool {
	return w.cmd.Spec.Amount > 0 && !w.cmd.sendsToo() && w.received() >= w.cmd.Spec.Amount
}

// part ends the test of adopted connections after the measured time.
func (w *worker) part(ctx context.Context) error {
	a, f := w.cmd.Adopt, w.flow
	if a.Leads {
		f.stop.Store(w.cmd.sendsToo())
		if w.cmd.Spec.Amount > 0 { // in a timed test the far end counts until the signal, and queued data would extend it
			w.awaitSent(ctx, sentWait)
		}
		w.take(0)
		if err := errors.Join(w.flush(), w.out.raw(frameStopped, nil)); err != nil {
			return err
		}
	}
	var err error
	if !a.EndOfStream {
		wait := farewellWait
		if a.Limited {
			wait = closeWait
		}
		select {
		case <-w.enough:
		case <-time.After(wait):
			err = fault.Failf("check the program there: it hangs, its messages are lost, or it requested more time than this end allows", "worker: the time is over, but the far end did not report the end of the test")
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if w.cmd.sendsToo() || !a.EndOfStream { // a client that continues to send is still limited to its rate
		f.stop.Store(true)
	}
	byThemselves := w.endStreams(ctx)
	if byThemselves && a.EndOfStream && w.cmd.sendsToo() && w.cmd.Spec.Protocol == measure.TCP {
		w.awaitSent(ctx, lastCallWait) // so that the last reading shows what the far end has acknowledged
	}
	if !byThemselves && a.EndOfStream && !a.Leads {
		err = fault.Failf("request a shorter test there: it exceeds the limit of this end, or has no limit", "worker: the far end did not stop at the end of its time; thru closed its connections")
	}
	return errors.Join(err, w.last())
}

// endStreams waits for data in flight, and ends the streams that do not end by themselves; then it returns false.
func (w *worker) endStreams(ctx context.Context) (byThemselves bool) {
	a := w.cmd.Adopt
	patience := lastCallWait
	switch {
	case a.EndOfStream:
		patience = drainWait
	case w.cmd.Spec.Protocol == measure.UDP && w.cmd.receives():
		w.awaitQuiet()
		patience = 0
	case a.Leads && w.cmd.receives():
		patience = closeWait
	}
	limit, cancel := context.WithTimeout(ctx, patience)
	w.awaitDrained(limit)
	cancel()
	w.flow.ending.Store(true)
	byThemselves = true
	for _, s := range w.flow.streams {
		if !closed(s.drained) {
			byThemselves = false
			w.path.io.interrupt(s)
		}
	}
	limit, cancel = context.WithTimeout(ctx, closeWait)
	defer cancel()
	w.awaitDrained(limit)
	return byThemselves
}

func (w *worker) awaitDrained(ctx context.Context) {
	for _, s := range w.flow.streams {
		select {
		case <-s.drained:
		case <-ctx.Done():
			return
		}
	}
}

// awaitSent waits until the senders have stopped and none of their data is left in the sockets, so that the far end can count all of it.
func (w *worker) awaitSent(ctx context.Context, most time.Duration) {
	for give := time.Now().Add(most); time.Now().Before(give) && ctx.Err() == nil && w.unsent(); {
		sleepThread(pollEvery / 2)
	}
}

func (w *worker) unsent() bool {
	for _, s := range w.flow.streams {
		if s.sends && (!closed(s.done) || sock.Read(s.sock, sock.Queued) > 0) {
			return true
		}
	}
	return false
}
