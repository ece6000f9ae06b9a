package transfer

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// quiet is a server that accepts connections and sends nothing, and its
// address.
func quiet(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}

// TestGuard: the cause of an operation's end is its error, and ends the
// session.
func TestGuard(t *testing.T) {
	cause := errors.New("the user had enough")
	for name, c := range map[string]struct {
		timeout time.Duration
		end     func(context.CancelCauseFunc)
		want    error
	}{
		"silence":   {20 * time.Millisecond, func(context.CancelCauseFunc) {}, ErrSilent},
		"cancelled": {time.Minute, func(cancel context.CancelCauseFunc) { cancel(cause) }, cause},
	} {
		w := NewWires(Config{Timeout: c.timeout})
		ctx, cancel := context.WithCancelCause(t.Context())
		conn, err := w.Data(ctx, quiet(t))
		if err != nil {
			t.Fatal(err)
		}
		if n := len(w.Sockets()); n != 1 {
			t.Errorf("%s: %d sockets", name, n)
		}
		_, done := w.Guard(ctx)
		c.end(cancel)
		_, err = conn.Read(make([]byte, 1))
		if err = done(err); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		// The session stays ended, whatever deadline is set.
		conn.SetDeadline(time.Time{})
		if _, err := conn.Read(make([]byte, 1)); err == nil {
			t.Errorf("%s: it reads on", name)
		}
		next, done := w.Guard(context.Background())
		if <-next.Done(); !errors.Is(context.Cause(next), c.want) {
			t.Errorf("%s: the next operation ends by %v", name, context.Cause(next))
		}
		done(nil)
		if _, err := w.Data(context.Background(), quiet(t)); !errors.Is(err, c.want) {
			t.Errorf("%s: a new connection: %v", name, err)
		}
		cancel(nil)
		w.Close()
	}
}

// TestGuardDone: nothing ends an operation that is done.
func TestGuardDone(t *testing.T) {
	w := NewWires(Config{Timeout: time.Minute})
	ctx, cancel := context.WithCancel(t.Context())
	_, done := w.Guard(ctx)
	failed := errors.New("it failed")
	if err := done(failed); err != failed {
		t.Errorf("%v", err)
	}
	cancel()
	conn, err := w.Control(context.Background(), quiet(t))
	if err != nil {
		t.Fatalf("an operation that was over ended the session: %v", err)
	}
	conn.Close()
	if n := len(w.Sockets()); n != 0 {
		t.Errorf("%d sockets are left", n)
	}
}

func TestSource(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	for _, c := range []struct {
		r    io.Reader
		size int64
		want string
		err  error
	}{
		{strings.NewReader("four"), 4, "four", nil},
		{strings.NewReader("four and more"), 4, "four", nil},
		{iotest.DataErrReader(strings.NewReader("four")), 4, "four", nil},
		{strings.NewReader(""), 0, "", nil},
		{strings.NewReader("fo"), 4, "fo", ErrSource},
		{iotest.OneByteReader(strings.NewReader("fo")), 4, "fo", ErrSource},
		{iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader("four"))), 4, "f", iotest.ErrTimeout},
	} {
		got := &bytes.Buffer{}
		if _, err := Copy(got, Source(ctx, c.r, c.size), 3); got.String() != c.want || !errors.Is(err, c.err) {
			t.Errorf("%q, %v; want %q, %v", got, err, c.want, c.err)
		}
	}
	cause := errors.New("enough")
	cancel(cause)
	if _, err := Source(ctx, strings.NewReader("x"), 1).Read(make([]byte, 1)); !errors.Is(err, cause) {
		t.Errorf("%v", err)
	}
	if _, err := Sink(ctx, io.Discard).Write([]byte("x")); !errors.Is(err, cause) {
		t.Errorf("%v", err)
	}
}

func TestMost(t *testing.T) {
	for _, c := range []struct {
		parts []string
		size  int64
		want  string
		err   error
	}{
		{[]string{"fo", "ur"}, 4, "four", nil},
		{[]string{"four", ""}, 4, "four", nil},
		{[]string{"fou", "rteen"}, 4, "four", ErrLong},
		{[]string{"four", "t"}, 4, "four", ErrLong},
		{[]string{"x"}, 0, "", ErrLong},
	} {
		got, err := &bytes.Buffer{}, error(nil)
		w := Most(got, c.size)
		for _, part := range c.parts {
			if err == nil {
				_, err = w.Write([]byte(part))
			}
		}
		if got.String() != c.want || !errors.Is(err, c.err) {
			t.Errorf("%q: %q, %v; want %q, %v", c.parts, got, err, c.want, c.err)
		}
	}
	broken := errors.New("it broke")
	if _, err := Most(Sink(t.Context(), brokenWriter{broken}), 4).Write([]byte("four")); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

// brokenWriter is a writer that fails.
type brokenWriter struct{ err error }

func (b brokenWriter) Write([]byte) (int, error) { return 0, b.err }

// TestGreet: a server that never stops during the login ends it, and one that
// sends a file does not.
func TestGreet(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var flood sync.WaitGroup
	defer flood.Wait()
	defer l.Close()
	flood.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			for err == nil {
				_, err = conn.Write(make([]byte, 64<<10))
			}
			conn.Close()
		}
	})
	for _, login := range []bool{true, false} {
		w := NewWires(Config{Timeout: time.Minute})
		guard := w.Guard
		if login {
			guard = w.Greet
		}
		ctx, done := guard(t.Context())
		conn, err := w.Data(ctx, l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.CopyN(io.Discard, conn, 8*mostLogin)
		if err = done(err); login != errors.Is(err, ErrEndless) || login != (n < 8*mostLogin) {
			t.Errorf("login %t: %d bytes, %v", login, n, err)
		}
		w.Close()
	}
}
