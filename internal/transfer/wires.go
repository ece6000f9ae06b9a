package transfer

import (
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

// DefaultTimeout is how long nothing may move before a session is given up.
const DefaultTimeout = 30 * time.Second

// grace is what remains after a session was cancelled to remove what is half
// there: together with the rest it stays below the second that was promised.
const grace = 700 * time.Millisecond

// defaultBlock is what one read or write moves where nothing else was asked for.
const defaultBlock = 256 << 10

// Wires are the connections of one session. They count what moves, so that
// silence is seen, and they end with the context of what is under way.
type Wires struct {
	cfg     Config
	moved   atomic.Int64
	endless atomic.Pointer[func()] // called when a login has moved more than any does

	mu   sync.Mutex
	open map[*wire]bool // true: carries data alone
	over error          // why none of them works any more
}

// NewWires returns no connections yet, which will be as cfg asks for.
func NewWires(cfg Config) *Wires { return &Wires{cfg: cfg, open: map[*wire]bool{}} }

// Control dials a connection that commands go along: when a session ends early
// it lives a little longer than the others, for what must be cleaned up.
func (w *Wires) Control(ctx context.Context, addr string) (net.Conn, error) {
	return w.dial(ctx, addr, false)
}

// Data dials a connection that carries a file.
func (w *Wires) Data(ctx context.Context, addr string) (net.Conn, error) {
	return w.dial(ctx, addr, true)
}

func (w *Wires) dial(ctx context.Context, addr string, data bool) (net.Conn, error) {
	dial := w.cfg.Dial
	if dial == nil {
		// Before the handshake, which carries the window's scale.
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

// Sockets are the connections that are open; where some carry data alone, those.
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

// Close closes what is open.
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

// Alive is a sign of life of the server that is no byte of a connection here.
func (w *Wires) Alive() { w.moved.Add(1) }

// Guard watches one operation. The context that it returns ends with the given
// one, and where nothing moved for the time allowed; then reads and writes fail.
// The function ends the watch, and explains the operation's error by what ended it.
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

// mostLogin bounds the bytes of a login either way: the largest known, of long chains
// of certificates and tickets, have some 100 KiB.
const mostLogin = 1 << 20

// Greet is Guard for the login, which ends with ErrEndless where a server floods: that
// is no silence.
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

// silence calls give where nothing moved for the whole time.
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

// watch is a timer that sets itself again until it is stopped.
type watch struct {
	mu      sync.Mutex
	timer   *time.Timer
	stopped bool
}

// Stop stops it for good.
func (s *watch) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	s.timer.Stop()
}

// end makes every connection fail: those of data at once.
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

// Read counts.
func (c *wire) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if moved := c.of.moved.Add(int64(n)); moved > mostLogin {
		if flood := c.of.endless.Load(); flood != nil {
			(*flood)()
		}
	}
	return n, err
}

// Write counts, piece by piece where there is much.
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

// SetDeadline does nothing any more when the session is over: TLS would give
// itself another five seconds to say goodbye.
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

// ReadFrom is what io.Copy uses: blocks of the size that was asked for.
func (c *wire) ReadFrom(r io.Reader) (int64, error) {
	return Copy(struct{ io.Writer }{c}, r, c.of.cfg.Block)
}

// Close forgets it.
func (c *wire) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// Copy copies by blocks of so many bytes, 0 for the usual ones, whatever other
// ways reader and writer know.
func Copy(w io.Writer, r io.Reader, block int) (int64, error) {
	if block <= 0 {
		block = defaultBlock
	}
	return io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{r}, make([]byte, block))
}

// Sending is what is read of a file that is sent.
type Sending struct {
	ctx   context.Context
	r     io.Reader
	left  int64
	Began bool  // something was asked for
	Err   error // why it failed; nil: it has not
}

// Source is the first size bytes of r. It fails with ErrSource where there are
// fewer, and with the context's cause where that has ended.
func Source(ctx context.Context, r io.Reader, size int64) *Sending {
	return &Sending{ctx: ctx, r: r, left: size}
}

// Read gives what is left.
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
			err = fmt.Errorf("transfer: reading what is to be sent: %w, %d bytes before its end", ErrSource, s.left)
		}
	}
	if err != nil {
		s.Err = err
	}
	return n, err
}

// Sink is w, which fails with the context's cause where that has ended.
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

// Most is w, which takes the size bytes that a server has said, and fails with ErrLong
// at the first beyond.
func Most(w io.Writer, size int64) io.Writer { return &most{w: w, left: size} }

type most struct {
	w    io.Writer
	left int64
}

// Write passes on what there is room for.
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
