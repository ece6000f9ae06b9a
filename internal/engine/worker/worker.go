package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	"thru/internal/engine"
	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/sock"
)

// Timeouts of a worker outside its test.
const (
	startWait   = 60 * time.Second // connected, but no start command
	firstWait   = 8 * time.Second  // started, but no byte arrives
	outlastWait = 3 * time.Second  // a sender's time is over, but not the receiver's
	stallWait   = 12 * time.Second // data has flowed, and stops for this time: longer than package bus waits for a peer, whose error explains more
	drainWait   = 3 * time.Second  // after the test, for data in flight
	overtime    = 20 * time.Second // watchdog, in addition to everything else
)

// Main runs the worker process: it reads one end of one flow from its pipe, connects, moves the data, reports, and ends. It returns early when the pipe
// closes, because then its parent is gone.
func Main(in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	w := &worker{out: frameWriter{w: out}, start: make(chan startCommand, 1), taking: make(chan takeCommand, 1), enough: make(chan struct{})}
	open := make(chan openCommand, 1)
	go func() { cancel(w.listenToParent(in, open)) }()
	select {
	case w.cmd = <-open:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if n := w.cmd.Spec.Streams; n < 1 || n > measure.MaxStreams {
		return fmt.Errorf("worker: reading command: %d streams", n)
	}
	return w.run(ctx)
}

type worker struct {
	cmd       openCommand
	out       frameWriter
	start     chan startCommand
	taking    chan takeCommand
	enough    chan struct{} // closed when the engine has called Enough
	flow      *flow
	listeners []net.Listener // for CRR traffic
	path      path
	missing   []measure.NotChecked // features that are not available here
	latency   *measure.Latency     // at the requesting end
	confined  string               // CPUs that the process may use, where the request sets them

	ramp        time.Duration
	mark        time.Time // start of the measured time
	moved       int64     // bytes at the last growth
	movedAt     time.Time
	asked       asked     // keep-alive probes of the far end's kernel
	peerEndedAt time.Time // when the far end signalled the end of the test
	ended       feedback
	left        int // streams whose amount has not passed
	sample      sample
	buf         []byte
	timelines   timelines
}

var errParentGone = errors.New("worker: the agent has closed the pipe")

// listenToParent returns when the pipe closes or carries an invalid frame.
func (w *worker) listenToParent(in io.Reader, open chan<- openCommand) error {
	for {
		kind, payload, err := readFrame(in)
		if err != nil {
			return errParentGone
		}
		switch kind {
		case frameOpen:
			err = handOn(payload, open)
		case frameStart:
			err = handOn(payload, w.start)
		case frameTake:
			err = handOn(payload, w.taking)
		case frameEnough:
			if !closed(w.enough) {
				close(w.enough)
			}
		default:
			return fmt.Errorf("worker: unknown command %q", kind)
		}
		if err != nil {
			return fmt.Errorf("worker: reading command %c: %w", kind, err)
		}
	}
}

// handOn delivers a command to its receiver; only the first of a kind counts.
func handOn[C any](payload []byte, to chan<- C) error {
	var c C
	if err := json.Unmarshal(payload, &c); err != nil {
		return err
	}
	select {
	case to <- c:
	default:
	}
	return nil
}

// run is the worker's main flow: connect, wait for the barrier, move, report.
func (w *worker) run(ctx context.Context) error {
	if err := w.confine(); err != nil {
		return errors.Join(err, w.out.json(frameReady, readyReply{Error: toWire(err)}))
	}
	l, err := w.connect(ctx)
	if err != nil {
		return err
	}
	if err := w.newFlow(l); err != nil {
		l.close()
		return w.fail(err)
	}
	defer w.close()
	if err := w.prepare(); err != nil {
		return w.fail(err)
	}
	if !w.cmd.Dials && w.cmd.Adopt == nil {
		if err := w.out.json(frameJoined, w.ready(l, nil)); err != nil {
			return err
		}
	}
	var begin startCommand
	select {
	case begin = <-w.start:
	case <-time.After(startWait):
		return w.fail(fmt.Errorf("worker: no start within %v", startWait))
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if begin.Near != nil {
		w.place(*begin.Near)
	}
	err = w.measure(ctx, begin)
	if errors.Is(err, errParentGone) {
		return err
	}
	return w.done(err)
}

// connect makes the connections and reports them to the parent.
func (w *worker) connect(ctx context.Context) (*link, error) {
	cctx, cancel := context.WithTimeout(ctx, time.Duration(w.cmd.Deadline))
	defer cancel()
	l, err := w.connectAs(cctx)
	if err != nil && ctx.Err() == nil {
		return nil, errors.Join(err, w.out.json(frameReady, readyReply{Error: toWire(err)}))
	}
	return l, err
}

func (w *worker) connectAs(ctx context.Context) (*link, error) {
	if w.cmd.Adopt != nil {
		return w.adopt(ctx)
	}
	if w.cmd.Dials {
		l, err := dial(ctx, w.cmd)
		if err != nil {
			return nil, err
		}
		rtt, err := ping(l.tcp[0])
		if err != nil {
			l.close()
			return nil, err
		}
		r := w.ready(l, rtt)
		r.Skipped = l.skipped
		return l, w.out.json(frameReady, r)
	}
	p, err := listen(ctx, w.cmd)
	if err != nil {
		return nil, err
	}
	if err := w.out.json(frameReady, readyReply{Port: p.port}); err != nil {
		p.close()
		return nil, err
	}
	return w.await(ctx, p)
}

// await accepts the connections of the dialling end.
func (w *worker) await(ctx context.Context, p *ports) (*link, error) {
	var err error
	l := &link{}
	if l.tcp, err = accept(ctx, w.cmd, p.tcp); err != nil {
		p.close()
		return nil, err
	}
	if w.cmd.Spec.Protocol == measure.UDP {
		err = l.acceptDatagrams(ctx, w.cmd, p)
	}
	if w.cmd.Spec.Traffic == measure.CRR {
		l.listeners, p.tcp = p.tcp, nil
	}
	p.close()
	if err == nil {
		err = pong(l.tcp[0])
	}
	if err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

// ready returns the reply with the connected streams, without the side connection.
func (w *worker) ready(l *link, rtt *measure.RTT) readyReply {
	var conns []net.Conn
	for _, c := range l.tcp {
		conns = append(conns, c)
	}
	r := readyReply{Local: addrString(conns[0].LocalAddr()), Peer: addrString(conns[0].RemoteAddr()), RTT: rtt}
	if w.cmd.hasSide() {
		conns = conns[:len(conns)-1]
	}
	for _, c := range l.udp {
		conns = append(conns, c)
	}
	r.Conns = addresses(conns)
	return r
}

func addresses(conns []net.Conn) []measure.Addresses {
	var as []measure.Addresses
	for _, c := range conns {
		as = append(as, measure.Addresses{Local: addrString(c.LocalAddr()), Peer: addrString(c.RemoteAddr()), MSS: segment(c)})
	}
	return as
}

// segment returns the largest segment that a TCP connection sends; 0 where that is not known.
func segment(c net.Conn) int {
	if mss := sock.InfoOf(c).SendMSS; mss != nil {
		return int(*mss)
	}
	return 0
}

// newFlow makes the streams of the connections. CRR traffic has none at first: the side connection stands for each.
func (w *worker) newFlow(l *link) error {
	tcp, sideConn := l.tcp, (*side)(nil)
	if w.cmd.hasSide() {
		sideConn = newSide(tcp[len(tcp)-1])
		tcp = tcp[:len(tcp)-1]
	}
	var conns []socket
	for _, c := range tcp {
		conns = append(conns, c)
	}
	for _, c := range l.udp {
		conns = append(conns, c)
	}
	if w.cmd.Spec.Traffic != measure.CRR {
		w.flow = newFlow(w.cmd, conns, sideConn)
		w.beginEarly(l.early)
		return nil
	}
	for range w.cmd.Spec.Streams {
		conns = append(conns, sideConn.conn)
	}
	w.flow = newFlow(w.cmd, conns, sideConn)
	w.listeners = l.listeners
	d, err := engine.Dialer(measure.Spec{BindAddr: w.cmd.Spec.BindAddr}, measure.TCP, sock.Options{DSCP: w.cmd.Spec.DSCP}, 0, answerTime)
	if err != nil {
		return err
	}
	w.flow.dialer = *d
	w.flow.crr, err = newCRR(w.cmd, l)
	return err
}

// prepare chooses the data path and prepares every stream for it.
func (w *worker) prepare() error {
	var err error
	if w.path, w.missing, err = choose(w.cmd, w.flow); err != nil {
		return err
	}
	if w.flow.side != nil && w.cmd.Spec.Search && w.cmd.Sends {
		w.flow.side.feedback = newSearch(w.flow, w.cmd.RateBps).heed
	}
	if w.path.name == measure.IOPortable {
		debug.SetGCPercent(100) // Go's sockets allocate, and no raw call delays a collection
	}
	for _, s := range w.flow.streams {
		if c, ok := s.sock.(*net.TCPConn); ok {
			if err := sock.SetNoDelay(c, w.cmd.Spec.NoDelay || w.cmd.Spec.Traffic != measure.Bulk); err != nil {
				return err
			}
			if w.cmd.Adopt != nil && s.sends { // nothing else detects a far end whose host is gone
				sock.SetUserTimeout(c, pauseWait) // if refused, the kernel's own retries end it
			}
		}
		w.pace(s)
		if err := w.path.io.prepare(w.flow, s); err != nil {
			return err
		}
	}
	w.sample.Streams = make([]streamSample, len(w.flow.streams))
	for i := range w.sample.Streams {
		w.sample.Streams[i].Info = make([]byte, 0, sock.TCPInfoSize)
	}
	if w.cmd.Spec.Protocol == measure.TCP && w.cmd.Spec.Traffic != measure.CRR {
		w.timelines = newTimelines(len(w.flow.streams))
	}
	w.buf = make([]byte, 0, 16+len(w.flow.streams)*(streamHead+sock.TCPInfoSize))
	if w.flow.side != nil {
		w.flow.side.start()
	}
	return nil
}

// measure runs the streams through ramp, measured time and drain.
func (w *worker) measure(ctx context.Context, start startCommand) error {
	f, ramp := w.flow, time.Duration(start.RampNs)
	f.begin, w.ramp, w.left = time.Now(), ramp, w.endings()
	f.receivesSince(start.Since)
	f.sawEarly()
	duration := time.Duration(w.cmd.Spec.Duration)
	watchdog, cancel := context.WithTimeoutCause(ctx, firstWait+ramp+duration+outlastWait+drainWait+overtime,
		errors.New("worker: the test did not end in time"))
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
	if w.cmd.Adopt != nil {
		return w.part(watchdog)
	}
	if w.cmd.receives() {
		w.path.io.sendEnough(f)
	}
	if w.cmd.sendsToo() {
		if w.cmd.Spec.Amount == 0 { // else all data is sent
			if err := w.outlast(watchdog); err != nil {
				return err
			}
		}
		f.stop.Store(true)
	}
	return w.drain(watchdog)
}

// receives and sendsToo report which directions this end has: a two-way flow has both.
func (c openCommand) receives() bool { return !c.Sends || c.Spec.Duplex }
func (c openCommand) sendsToo() bool { return c.Sends || c.Spec.Duplex }

// outlast keeps a sender running until the receiver signals the end of its measured time, so that the receiver's last second is complete.
func (w *worker) outlast(ctx context.Context) error {
	limit := time.Now().Add(outlastWait)
	for time.Now().Before(limit) && !w.path.io.heardEnough(w.flow) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		sleepThread(pollEvery / 2)
	}
	return nil
}

// awaitFirst waits for the first byte of any stream.
func (w *worker) awaitFirst(ctx context.Context, ended <-chan *stream) error {
	late := time.After(firstWait)
	for {
		select {
		case <-w.flow.first:
			return nil
		case s := <-ended:
			if !w.complete(s) {
				return w.early(s)
			}
			w.left-- // its share was empty
		case <-late:
			return w.silent()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// silent explains why no data has arrived.
func (w *worker) silent() error {
	for _, s := range w.flow.streams {
		if n, ok := socketDrops(s); ok && n > 0 {
			return fault.Failf("use a larger -w, or none: the buffer holds less than one datagram", "worker: the receiver's socket buffer dropped %d datagrams", n)
		}
	}
	hint := "check the path MTU with `thru check`, or try a smaller -l: small packets pass, full-sized ones may not"
	if w.cmd.Spec.Traffic != measure.Bulk {
		hint = "check whether a firewall limits connections, or the other end is the one that sends requests"
	}
	return fault.Failf(hint, "worker: connected, but no data arrived within %v", firstWait)
}

// socketDrops returns how many datagrams a full socket buffer has dropped.
func socketDrops(s *stream) (n int64, known bool) {
	if _, udp := s.sock.RemoteAddr().(*net.UDPAddr); !udp {
		return 0, false
	}
	_ = sock.Reach(s.sock, func(fd uintptr) error {
		n, known = sock.Drops(fd)
		return nil
	})
	return n, known
}

// peerClosed returns the error of a connection that ended early.
func peerClosed(format string, args ...any) error {
	return fault.Because(fault.PeerGone, fault.Failf("check the process and host there, and firewalls on the path: one of them closed the connection", format, args...))
}

// goneEarly returns the error of a connection that was reset before the worker had it, and has no peer any more.
func goneEarly(i, n int) error {
	return peerClosed("worker: receiving connection %d of %d from the agent: the peer closed the connection early", i, n)
}

// early returns why a stream ended before the end of the measured time.
func (w *worker) early(s *stream) error {
	switch {
	case s.err == nil, errors.Is(s.err, io.EOF):
		return peerClosed("worker: stream %d: the peer closed the connection early", s.index+1)
	case sock.Is(s.err, syscall.ECONNRESET), sock.Is(s.err, syscall.EPIPE):
		return fault.Because(fault.PeerGone, fault.Failf("check the process and host there, and firewalls on the path: one of them reset the connection",
			"worker: stream %d: the peer reset the connection", s.index+1))
	}
	return fault.Failf(fault.Hint(s.err), "worker: stream %d: %w", s.index+1, s.err)
}

// last takes the sample at the end of the connections.
func (w *worker) last() error {
	w.take(atClose)
	var err error
	if w.cmd.Sends && w.cmd.Spec.Traffic != measure.Bulk {
		w.latency, err = mergeLatencies(w.flow.streams)
	}
	return errors.Join(err, w.flush())
}

// close closes every socket; it first shuts a socket that still blocks a thread.
func (w *worker) close() {
	w.flow.ending.Store(true)
	for _, s := range w.flow.streams {
		if !closed(s.done) && w.path.io != nil {
			w.path.io.interrupt(s)
		}
		s.sock.Close()
		if s.source != nil {
			s.source.Close()
		}
	}
	if w.flow.side != nil {
		w.flow.side.conn.Close()
	}
	engine.CloseAll(w.listeners)
}

// fail reports an error instead of a connection.
func (w *worker) fail(err error) error { return errors.Join(err, w.done(err)) }

func (w *worker) done(err error) error {
	r := doneReply{IO: w.path.name, CPUs: w.confined, Missing: w.missing, Latency: w.latency}
	if err != nil {
		r.Error = toWire(err)
	}
	if w.flow == nil {
		return w.out.json(frameDone, r)
	}
	for i, s := range w.flow.streams {
		d := w.describe(s)
		d.Timeline = w.timeline(i)
		r.Streams = append(r.Streams, d)
		if n := (measure.NotChecked{Fact: "io." + w.path.name, Why: s.changed}); closed(s.done) && s.changed != "" && !slices.Contains(r.Missing, n) {
			r.Missing = append(r.Missing, n)
		}
	}
	r.Delays = describeDelays(w.flow.streams, r.Streams)
	return w.out.json(frameDone, r)
}

func toWire(err error) *wireError {
	return &wireError{Message: err.Error(), Hint: fault.Hint(err), Code: fault.Code(err), Reason: fault.ReasonOf(err)}
}

func (e *wireError) err() error {
	if e == nil {
		return nil
	}
	return fault.Because(e.Reason, fault.New(e.Code, e.Hint, "%s", e.Message))
}
