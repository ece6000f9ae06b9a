package native

import (
	"context"
	"encoding/json"
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

// Bounds of a worker's life beyond its test.
const (
	startWait   = 60 * time.Second // connected, and nobody starts it
	firstWait   = 8 * time.Second  // started, and not a byte comes
	outlastWait = 3 * time.Second  // a sender's time is over, the receiver's is not
	stallWait   = 8 * time.Second  // data has flowed, and stops for so long
	drainWait   = 3 * time.Second  // after the test, for what is under way
	overtime    = 20 * time.Second // beyond everything else: the watchdog
)

// Worker is the life of the worker process: it takes one end of one flow from
// its pipe, connects, moves the data, reports, and ends. It returns early when
// the pipe closes, since then its parent is gone.
func Worker(in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	w := &worker{out: frameWriter{w: out}, start: make(chan startCommand, 1)}
	open := make(chan openCommand, 1)
	go func() { cancel(w.listenToParent(in, open)) }()
	select {
	case w.cmd = <-open:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return w.run(ctx)
}

type worker struct {
	cmd   openCommand
	out   frameWriter
	start chan startCommand
	flow  *flow
	path  path

	mark    time.Time // when the measured time began
	moved   int64     // bytes when they were last seen to grow
	movedAt time.Time
	sample  sample
	buf     []byte
}

var errParentGone = errors.New("native: the agent has closed the pipe")

// listenToParent returns when the pipe closes or carries nonsense.
func (w *worker) listenToParent(in io.Reader, open chan<- openCommand) error {
	for {
		kind, payload, err := readFrame(in)
		if err != nil {
			return errParentGone
		}
		switch kind {
		case frameOpen:
			var c openCommand
			if err := json.Unmarshal(payload, &c); err != nil {
				return fmt.Errorf("native: reading command: %w", err)
			}
			if c.Spec.Streams < 1 || c.Spec.Streams > measure.MaxStreams {
				return fmt.Errorf("native: reading command: %d streams", c.Spec.Streams)
			}
			select {
			case open <- c:
			default:
				return errors.New("native: opened twice")
			}
		case frameStart:
			var c startCommand
			if err := json.Unmarshal(payload, &c); err != nil {
				return fmt.Errorf("native: reading command: %w", err)
			}
			select {
			case w.start <- c:
			default:
			}
		default:
			return fmt.Errorf("native: unknown command %q", kind)
		}
	}
}

// run is the worker's main flow: connect, wait for the barrier, move, report.
func (w *worker) run(ctx context.Context) error {
	conns, err := w.connect(ctx)
	if err != nil {
		return err
	}
	w.flow = newFlow(w.cmd, conns)
	defer w.close()
	if err := w.prepare(); err != nil {
		return w.fail(err)
	}
	if !w.cmd.Dials {
		if err := w.out.json(frameJoined, w.ready(nil, nil)); err != nil {
			return err
		}
	}
	var begin startCommand
	select {
	case begin = <-w.start:
	case <-time.After(startWait):
		return w.fail(fmt.Errorf("native: no start within %v", startWait))
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	err = w.measure(ctx, time.Duration(begin.RampNs))
	if errors.Is(err, errParentGone) {
		return err
	}
	return w.done(err)
}

// connect makes the connections and tells the parent where they are.
func (w *worker) connect(ctx context.Context) ([]*net.TCPConn, error) {
	cctx, cancel := context.WithTimeout(ctx, time.Duration(w.cmd.Deadline))
	defer cancel()
	conns, err := w.connectAs(cctx)
	if err != nil && ctx.Err() == nil {
		return nil, errors.Join(err, w.out.json(frameReady, readyReply{Error: toWire(err)}))
	}
	return conns, err
}

func (w *worker) connectAs(ctx context.Context) ([]*net.TCPConn, error) {
	if w.cmd.Dials {
		conns, skipped, err := dial(ctx, w.cmd)
		if err != nil {
			return nil, err
		}
		rtt, err := ping(conns[0])
		if err != nil {
			closeConns(conns)
			return nil, err
		}
		r := w.ready(conns, rtt)
		r.Skipped = skipped
		return conns, w.out.json(frameReady, r)
	}
	ls, port, err := listen(ctx, w.cmd)
	if err != nil {
		return nil, err
	}
	if err := w.out.json(frameReady, readyReply{Port: port}); err != nil {
		closeAll(ls)
		return nil, err
	}
	conns, err := accept(ctx, w.cmd, ls)
	if err != nil {
		return nil, err
	}
	return conns, pong(conns[0])
}

func (w *worker) ready(conns []*net.TCPConn, rtt *measure.RTT) readyReply {
	if conns == nil {
		conns = []*net.TCPConn{w.flow.streams[0].conn}
	}
	return readyReply{Local: conns[0].LocalAddr().String(), Peer: conns[0].RemoteAddr().String(), RTT: rtt}
}

// prepare chooses the data path and readies every stream for it.
func (w *worker) prepare() error {
	for _, p := range paths() {
		if w.cmd.Spec.IO == "" || w.cmd.Spec.IO == p.name {
			w.path = p
			break
		}
	}
	if w.path.io == nil {
		return fault.Usagef("see `thru test --help` for the data paths", "native: data path %q does not exist on this system", w.cmd.Spec.IO)
	}
	for _, s := range w.flow.streams {
		if err := sock.SetNoDelay(s.conn, w.cmd.Spec.NoDelay); err != nil {
			return err
		}
		if err := w.path.io.prepare(s); err != nil {
			return err
		}
	}
	w.sample.Streams = make([]streamSample, len(w.flow.streams))
	for i := range w.sample.Streams {
		w.sample.Streams[i].Info = make([]byte, 0, sock.TCPInfoSize)
	}
	w.buf = make([]byte, 0, 16+len(w.flow.streams)*(42+sock.TCPInfoSize))
	return nil
}

// measure runs the streams through ramp, measured time and drain.
func (w *worker) measure(ctx context.Context, ramp time.Duration) error {
	f := w.flow
	f.begin = time.Now()
	duration := time.Duration(w.cmd.Spec.Duration)
	watchdog, cancel := context.WithTimeoutCause(ctx, firstWait+ramp+duration+outlastWait+drainWait+overtime,
		errors.New("native: the test did not end in time"))
	defer cancel()
	ended := make(chan *stream, len(f.streams))
	for _, s := range f.streams {
		go f.run(s, w.path.io, ended)
	}
	defer close(f.release)
	if err := w.awaitFirst(watchdog, ended); err != nil {
		return err
	}
	w.mark = f.origin().Add(ramp)
	if err := w.sampleUntil(watchdog, duration, ended); err != nil {
		return err
	}
	if f.sends {
		if err := w.outlast(watchdog); err != nil {
			return err
		}
		f.stop.Store(true)
	} else {
		w.path.io.sayEnough(f.streams[0])
	}
	return w.drain(watchdog)
}

// outlast keeps a sender going until the receiver's measured time is over
// too, which it says on stream 0, so that its last second is full.
func (w *worker) outlast(ctx context.Context) error {
	limit := time.Now().Add(outlastWait)
	for time.Now().Before(limit) && !w.path.io.heardEnough(w.flow.streams[0]) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		sleepThread(pollEvery / 2)
	}
	return nil
}

// awaitFirst waits for the first byte of any stream.
func (w *worker) awaitFirst(ctx context.Context, ended <-chan *stream) error {
	select {
	case <-w.flow.first:
		return nil
	case s := <-ended:
		return w.early(s)
	case <-time.After(firstWait):
		return fault.Failf("small packets pass and full-sized ones may not: compare the MTU of both ends and of the path (ping -M do -s 1472)",
			"native: connected, but no data came within %v", firstWait)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// early says why a stream ended before the measured time was over.
func (w *worker) early(s *stream) error {
	switch {
	case s.err == nil, errors.Is(s.err, io.EOF):
		return fault.Failf("the process or the host there ended, or something between closed the connection",
			"native: stream %d: the peer closed the connection early", s.index+1)
	case errors.Is(s.err, syscall.ECONNRESET), errors.Is(s.err, syscall.EPIPE):
		return fault.Failf("the process or the host there ended, or a firewall cut the connection",
			"native: stream %d: the peer reset the connection", s.index+1)
	}
	return fault.Failf(fault.Hint(s.err), "native: stream %d: %w", s.index+1, s.err)
}

// drain lets what is under way arrive, in bounded time, and takes the last sample.
func (w *worker) drain(ctx context.Context) error {
	f := w.flow
	limit := time.NewTimer(drainWait)
	defer limit.Stop()
	all := make(chan struct{})
	go func() {
		defer close(all)
		for _, s := range f.streams {
			<-s.drained
		}
	}()
	select {
	case <-all:
	case <-limit.C: // a slow path still holds data; the totals will differ and say so
		if err := w.stalled(drainWait); err != nil {
			return errors.Join(err, w.last())
		}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return w.last()
}

// last takes the sample at the end of the connections.
func (w *worker) last() error {
	w.take(atClose)
	return w.flush()
}

// stalled is an error at a receiver to which nothing has come for so long.
func (w *worker) stalled(limit time.Duration) error {
	var n int64
	for _, s := range w.flow.streams {
		n += s.bytes.Load()
	}
	if now := time.Now(); n != w.moved || w.movedAt.IsZero() {
		w.moved, w.movedAt = n, now
	}
	silent := time.Since(w.movedAt)
	if w.flow.sends || silent < limit {
		return nil
	}
	return fault.Failf("control still works: is the link that carries the data up, and does it lose packets?",
		"native: the data stopped: nothing has come for %.0f s", silent.Seconds())
}

// close ends every socket; one that still blocks a thread is shut first.
func (w *worker) close() {
	for _, s := range w.flow.streams {
		select {
		case <-s.done:
		default:
			if w.path.io != nil {
				w.path.io.interrupt(s)
			}
		}
		s.conn.Close()
	}
}

// fail reports an error in place of a connection.
func (w *worker) fail(err error) error { return errors.Join(err, w.done(err)) }

func (w *worker) done(err error) error {
	r := doneReply{IO: w.path.name}
	if err != nil {
		r.Error = toWire(err)
	}
	for _, s := range w.flow.streams {
		r.Streams = append(r.Streams, w.describe(s))
	}
	return w.out.json(frameDone, r)
}

func toWire(err error) *wireError {
	return &wireError{Message: err.Error(), Hint: fault.Hint(err), Code: fault.Code(err)}
}

func (e *wireError) err() error {
	if e == nil {
		return nil
	}
	return fault.New(e.Code, e.Hint, "%s", e.Message)
}
