package transfer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"thru/internal/sock"
)

// DefaultTimeout is how long nothing may move before a session ends.
const DefaultTimeout = 30 * time.Second

// grace is the time after the end of a session to remove an incomplete file:
// together with the rest it stays below the promised second.
const grace = 700 * time.Millisecond

// defaultBlock is the size of a read or write without a request for another
// one.
const defaultBlock = 256 << 10

// Wires are the connections of one session. They count the bytes, to detect
// silence, and they end with the context of the present operation.
type Wires struct {
	cfg     Config
	moved   atomic.Int64
	endless atomic.Pointer[func()] // called when a login exceeds mostLogin

	mu   sync.Mutex
	open map[*wire]bool // true: carries only data
	over error          // why none of them works any more
}

// NewWires returns an empty set of connections with the settings of cfg.
func NewWires(cfg Config) *Wires { return &Wires{cfg: cfg, open: map[*wire]bool{}} }

// Control dials a connection for commands: when a session ends early it lives
// a little longer than the others, for clean-up.
func (w *Wires) Control(ctx context.Context, addr string) (net.Conn, error) {
	return w.dial(ctx, addr, false)
}

// Data dials a connection for a file's data.
func (w *Wires) Data(ctx context.Context, addr string) (net.Conn, error) {
	return w.dial(ctx, addr, true)
}

func (w *Wires) dial(ctx context.Context, addr string, data bool) (net.Conn, error) {
	dial := w.cfg.Dial
	if dial == nil {
		// Before the handshake, which carries the window scale.
		buffers := sock.Options{SendBuffer: int64(w.cfg.Buffer), RecvBuffer: int64(w.cfg.Buffer), NoDelay: true}
		dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			return Dial(ctx, net.Dialer{Control: buffers.Control}, network, addr)
		}
	}
	conn, err := dial(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	c := &wire{Conn: conn, of: w}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over != nil {
		return nil, errors.Join(w.over, conn.Close())
	}
	w.open[c] = data
	return c, nil
}

// Sockets returns the open connections; where some carry only data, those.
func (w *Wires) Sockets() []net.Conn {
	w.mu.Lock()
	defer w.mu.Unlock()
	var control, data []net.Conn
	for c, carries := range w.open {
		if carries {
			data = append(data, c.Conn)
		} else {
			control = append(control, c.Conn)
		}
	}
	if len(data) > 0 {
		return data
	}
	return control
}

// RTT returns the shortest round trip of the connections; 0 where the system
// does not report it.
func (w *Wires) RTT() (shortest time.Duration) {
	for _, c := range w.Sockets() {
		if rtt := sock.InfoOf(c).MinRTT; rtt != nil && (shortest == 0 || time.Duration(*rtt) < shortest) {
			shortest = time.Duration(*rtt)
		}
	}
	return shortest
}

// Close closes all connections.
func (w *Wires) Close() error {
	w.mu.Lock()
	open := w.open
	w.open = map[*wire]bool{}
	if w.over == nil {
		w.over = net.ErrClosed
	}
	w.mu.Unlock()
	var errs []error
	for c := range open {
		errs = append(errs, c.Conn.Close())
	}
	return errors.Join(errs...)
}

// Alive reports a sign of life of the server that is no byte of these
// connections.
func (w *Wires) Alive() { w.moved.Add(1) }

// Guard watches one operation. The returned context ends with ctx, and when
// nothing moves for the allowed time; then reads and writes fail. The
// returned function ends the watch, and explains the operation's error by the
// cause of the end.
func (w *Wires) Guard(ctx context.Context) (context.Context, func(error) error) {
	watched, cancel := context.WithCancelCause(ctx)
	w.mu.Lock()
	if w.over != nil {
		cancel(w.over)
	}
	w.mu.Unlock()
	stop := context.AfterFunc(watched, func() { w.end(context.Cause(watched)) })
	silence := w.silence(cancel)
	return watched, func(err error) error {
		silence.Stop()
		ended := !stop()
		cause := context.Cause(watched)
		cancel(context.Canceled)
		if err == nil || !ended || errors.Is(err, cause) {
			return err
		}
		return fmt.Errorf("%w (%w)", cause, err)
	}
}

// mostLogin limits the bytes of a login in either direction: the largest
// known logins, with long chains of certificates and tickets, have some 100
// KiB.
const mostLogin = 1 << 20

// Greet is Guard for the login, which ends with ErrEndless where a server
// floods the client, since that is no silence.
func (w *Wires) Greet(ctx context.Context) (context.Context, func(error) error) {
	ctx, cancel := context.WithCancelCause(ctx)
	flood := func() { cancel(ErrEndless) }
	w.endless.Store(&flood)
	watched, done := w.Guard(ctx)
	return watched, func(err error) error {
		w.endless.Store(nil)
		err = done(err)
		cancel(nil)
		return err
	}
}

// silence calls give when nothing has moved for the whole time.
func (w *Wires) silence(give context.CancelCauseFunc) *watch {
	timeout := w.cfg.Timeout
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	s := &watch{}
	last, since := w.moved.Load(), time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer = time.AfterFunc(timeout/4, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if now := w.moved.Load(); now != last {
			last, since = now, time.Now()
		}
		if time.Since(since) >= timeout {
			give(ErrSilent)
		} else if !s.stopped {
			s.timer.Reset(timeout / 4)
		}
	})
	return s
}

// watch is a timer that restarts until it is stopped.
type watch struct {
	mu      sync.Mutex
	timer   *time.Timer
	stopped bool
}

// Stop stops the timer for good.
func (s *watch) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	s.timer.Stop()
}

// end makes every connection fail, data connections at once.
func (w *Wires) end(cause error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over != nil {
		return
	}
	w.over = cause
	for c, data := range w.open {
		if data {
			c.Conn.SetDeadline(time.Now())
		} else {
			c.Conn.SetDeadline(time.Now().Add(grace))
		}
	}
}

// wire is one connection.
type wire struct {
	net.Conn
	of *Wires
}

// Read counts the bytes.
func (c *wire) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if moved := c.of.moved.Add(int64(n)); moved > mostLogin {
		if flood := c.of.endless.Load(); flood != nil {
			(*flood)()
		}
	}
	return n, err
}

// Write counts the bytes, in pieces.
func (c *wire) Write(b []byte) (int, error) {
	done := 0
	for {
		n, err := c.Conn.Write(b[done:min(len(b), done+defaultBlock)])
		c.of.moved.Add(int64(n))
		done += n
		if err != nil || done == len(b) {
			return done, err
		}
	}
}

// SetDeadline does nothing after the end of the session: TLS would allow
// itself another five seconds for its close.
func (c *wire) SetDeadline(t time.Time) error { return c.deadline(c.Conn.SetDeadline, t) }

// SetReadDeadline likewise.
func (c *wire) SetReadDeadline(t time.Time) error { return c.deadline(c.Conn.SetReadDeadline, t) }

// SetWriteDeadline likewise.
func (c *wire) SetWriteDeadline(t time.Time) error { return c.deadline(c.Conn.SetWriteDeadline, t) }

func (c *wire) deadline(set func(time.Time) error, t time.Time) error {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if c.of.over != nil {
		return nil
	}
	return set(t)
}

// ReadFrom serves io.Copy: it uses blocks of the requested size.
func (c *wire) ReadFrom(r io.Reader) (int64, error) {
	return Copy(struct{ io.Writer }{c}, r, c.of.cfg.Block)
}

// Close removes the connection from the set.
func (c *wire) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// Buffered returns a connection for TLS, which reads one record (16 KiB) at a
// time: the buffer takes as many as have come.
func Buffered(conn net.Conn) net.Conn {
	return buffered{conn, bufio.NewReaderSize(conn, defaultBlock)}
}

type buffered struct {
	net.Conn
	in *bufio.Reader
}

// Read reads what has come.
func (b buffered) Read(p []byte) (int, error) { return b.in.Read(p) }

// Copy copies in blocks of so many bytes, 0 for the default, whatever other
// methods reader and writer have.
func Copy(w io.Writer, r io.Reader, block int) (int64, error) {
	if block <= 0 {
		block = defaultBlock
	}
	return io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{r}, make([]byte, block))
}

// Sending reads a file that is sent.
type Sending struct {
	ctx   context.Context
	r     io.Reader
	left  int64
	Began bool  // it was read from
	Err   error // why it failed; nil: it has not
}

// Source returns a reader of the first size bytes of r. It fails with
// ErrSource where there are fewer, and with the context's cause where that
// has ended.
func Source(ctx context.Context, r io.Reader, size int64) *Sending {
	return &Sending{ctx: ctx, r: r, left: size}
}

// Read reads the rest.
func (s *Sending) Read(b []byte) (n int, err error) {
	s.Began = true
	if s.ctx.Err() != nil {
		s.Err = context.Cause(s.ctx)
		return 0, s.Err
	}
	if s.left == 0 {
		return 0, io.EOF
	}
	n, err = s.r.Read(b[:min(int64(len(b)), s.left)])
	s.left -= int64(n)
	if errors.Is(err, io.EOF) {
		err = nil
		if s.left > 0 {
			err = fmt.Errorf("transfer: reading the data to send: %w, %d bytes before its end", ErrSource, s.left)
		}
	}
	if err != nil {
		s.Err = err
	}
	return n, err
}

// Sink returns w as a writer that fails with the context's cause where that
// has ended.
func Sink(ctx context.Context, w io.Writer) io.Writer { return sink{ctx, w} }

type sink struct {
	ctx context.Context
	w   io.Writer
}

// Write passes on.
func (s sink) Write(b []byte) (int, error) {
	if s.ctx.Err() != nil {
		return 0, context.Cause(s.ctx)
	}
	return s.w.Write(b)
}

// Most returns w as a writer of the size bytes that a server has announced;
// it fails with ErrLong at the first byte beyond.
func Most(w io.Writer, size int64) io.Writer { return &most{w: w, left: size} }

type most struct {
	w    io.Writer
	left int64
}

// Write writes what fits.
func (m *most) Write(b []byte) (int, error) {
	long := int64(len(b)) > m.left
	if long {
		b = b[:m.left]
	}
	n, err := 0, error(nil)
	if len(b) > 0 || !long {
		n, err = m.w.Write(b)
	}
	if m.left -= int64(n); err == nil && long {
		err = ErrLong
	}
	return n, err
}
