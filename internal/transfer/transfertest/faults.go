package transfertest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"thru/internal/transfer"
)

// secret is a password that no server has.
const secret = "Wr0ng-but-s3cret"

func (c contract) login(t *testing.T) {
	if c.Open {
		t.Skip("anyone may log in at this server")
	}
	asked := 0
	cfg := c.Config
	cfg.Key = ""
	cfg.Password = func() (string, error) { asked++; return secret, nil }
	s, err := c.New(cfg).Open(within(t))
	if err == nil { // a protocol without logins fails at the first request
		_, err = s.Size(within(t), c.at("none"))
		s.Close()
	}
	is(t, "a wrong password", err, transfer.ErrLogin)
	if err != nil && strings.Contains(err.Error(), secret) || asked != 1 {
		t.Errorf("asked %d times: %v", asked, err)
	}
	none := errors.New("nobody there to ask")
	cfg.Password = func() (string, error) { return "", none }
	if s, err = c.New(cfg).Open(within(t)); err == nil {
		_, err = s.Size(within(t), c.at("none"))
		s.Close()
	}
	is(t, "no password", err, none)
	cfg.Password = nil
	if s, err = c.New(cfg).Open(within(t)); err == nil {
		_, err = s.Size(within(t), c.at("none"))
		s.Close()
	}
	is(t, "nobody to ask", err, transfer.ErrLogin)
}

func (c contract) readOnly(t *testing.T) {
	if c.ReadOnly == "" {
		t.Skip("this server has nothing read-only")
	}
	s := c.session(t, c.Config)
	is(t, "Put", s.Put(within(t), c.ReadOnly, strings.NewReader("x"), 1, false), transfer.ErrReadOnly)
}

func (c contract) full(t *testing.T) {
	if c.Full == "" {
		t.Skip("this server has nothing full: that takes a file system of its own (root)")
	}
	s := c.session(t, c.Config)
	is(t, "Put", s.Put(within(t), c.Full, bytes.NewReader(Bytes(5, 4<<20)), 4<<20, false), transfer.ErrFull)
}

func (c contract) hostile(t *testing.T) {
	s := c.session(t, c.Config)
	for _, name := range []string{
		"", "/", "/etc/passwd", "..", "../up", "a/../../up", "a/./b", "a//b", "a/", "a\nDELE b", "a\r\nDELE b", "a\x00b",
		`..\up`, `a\..\..\up`, `\\host\share`, strings.Repeat("a/", 2047) + "aa", strings.Repeat("a", 4096), strings.Repeat("a", 256),
	} {
		_, err := s.Size(within(t), name)
		is(t, "Size of a hostile name", err, transfer.ErrName)
		_, err = s.Get(within(t), name, io.Discard)
		is(t, "Get of a hostile name", err, transfer.ErrName)
		is(t, "Put of a hostile name", s.Put(within(t), name, strings.NewReader("x"), 1, true), transfer.ErrName)
		is(t, "Remove of a hostile name", s.Remove(within(t), name), transfer.ErrName)
	}
	c.only(t)
}

// sourceFails: a failing source leaves nothing behind, and an existing file
// stays.
func (c contract) sourceFails(t *testing.T) {
	broken, half := errors.New("the disk broke"), Bytes(6, c.Large/2)
	old := []byte("what was there")
	name := c.lay(t, "kept", old)
	for _, overwrite := range []bool{false, true} {
		target := c.at("new")
		if overwrite {
			target = name
		}
		s := c.session(t, c.Config)
		fails := io.MultiReader(bytes.NewReader(half), failing{broken})
		is(t, "a source that fails", s.Put(within(t), target, fails, c.Large, overwrite), broken)
		c.only(t, "kept")
		s = c.session(t, c.Config)
		is(t, "a source that ends early", s.Put(within(t), target, bytes.NewReader(half), c.Large, overwrite), transfer.ErrSource)
		c.only(t, "kept")
		c.holds(t, "kept", old)
	}
}

func (c contract) sinkFails(t *testing.T) {
	full, s := errors.New("the disk is full"), c.session(t, c.Config)
	name := c.lay(t, "sink", Bytes(7, c.Large))
	n, err := s.Get(within(t), name, writer(func([]byte) (int, error) { return 0, full }))
	is(t, "a sink that fails", err, full)
	if n != 0 {
		t.Errorf("%d bytes count as written", n)
	}
}

// grows: of a file that grows while it is read, only the announced size is
// sent, or the rest is refused. No byte beyond gets through.
func (c contract) grows(t *testing.T) {
	b := Bytes(11, c.Large)
	name, s := c.lay(t, "grows", b), c.session(t, c.Config)
	got := int64(0)
	longer := sync.OnceFunc(func() {
		f, err := os.OpenFile(filepath.Join(c.Folder, "grows"), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Error(err)
			return
		}
		defer f.Close()
		if _, err := f.Write(b); err != nil {
			t.Error(err)
		}
	})
	_, err := s.Get(within(t), name, writer(func(p []byte) (int, error) { longer(); got += int64(len(p)); return len(p), nil }))
	if got != c.Large || err != nil && !errors.Is(err, transfer.ErrLong) {
		t.Errorf("%d of %d bytes came, %v", got, c.Large, err)
	}
}

func (c contract) cancelled(t *testing.T) {
	b := Bytes(8, c.Large)
	t.Run("download", func(t *testing.T) {
		name, s := c.lay(t, "come", b), c.session(t, c.Config)
		ctx, cancel := context.WithCancel(within(t))
		defer cancel()
		_, err := s.Get(ctx, name, writer(func(p []byte) (int, error) { cancel(); return len(p), nil }))
		is(t, "Get", err, context.Canceled)
	})
	t.Run("upload", func(t *testing.T) {
		s := c.session(t, c.Config)
		ctx, cancel := context.WithCancel(within(t))
		defer cancel()
		// After half of the file nothing comes: a cancelled operation does
		// not wait for its source.
		half := io.MultiReader(bytes.NewReader(b[:c.Large/2]), reader(func([]byte) (int, error) { cancel(); return 0, nil }))
		is(t, "Put", s.Put(ctx, c.at("go"), half, c.Large, false), context.Canceled)
		c.only(t)
	})
	t.Run("before", func(t *testing.T) {
		ctx, cancel := context.WithCancel(within(t))
		cancel()
		if s, err := c.New(c.Config).Open(ctx); err == nil {
			_, err = s.Size(ctx, c.at("none"))
			s.Close()
			is(t, "Size", err, context.Canceled)
		} else {
			is(t, "Open", err, context.Canceled)
		}
	})
}

// cut: connections break after a part of the file.
func (c contract) cut(t *testing.T) {
	name, b := c.lay(t, "cut", Bytes(9, c.Large)), Bytes(9, c.Large)
	s := c.session(t, c.broken(t, true))
	n, err := s.Get(within(t), name, io.Discard)
	is(t, "Get", err, transfer.ErrShort)
	if n >= c.Large {
		t.Errorf("all %d bytes came", n)
	}
	s = c.session(t, c.broken(t, true))
	if err := s.Put(within(t), c.at("cut up"), bytes.NewReader(b), c.Large, false); err == nil {
		t.Error("Put over a connection that broke says that all is well")
	}
	if _, err := os.Stat(c.Folder + "/cut up"); err == nil {
		t.Error("half a file has the name of a whole one")
	}
	c.sweep()
}

// silent: connections carry nothing any more after a part of the file. The
// subtests wait in parallel.
func (c contract) silent(t *testing.T) {
	name, b := c.lay(t, "silent", Bytes(10, c.Large)), Bytes(10, c.Large)
	t.Cleanup(c.sweep)
	timeout := c.patience(t)
	get := func(ctx context.Context, s transfer.Session, _ string) error {
		_, err := s.Get(ctx, name, io.Discard)
		return err
	}
	put := func(ctx context.Context, s transfer.Session, to string) error {
		return s.Put(ctx, c.at(to), bytes.NewReader(b), c.Large, false)
	}
	for _, part := range []struct {
		name    string
		do      func(context.Context, transfer.Session, string) error
		timeout time.Duration // of the client
		patient time.Duration // of the caller
		want    error
	}{
		{"download", get, timeout, limit, transfer.ErrSilent},
		{"upload", put, timeout, limit, transfer.ErrSilent},
		// A cancelled operation does not wait for a silent server.
		{"download cancelled", get, time.Hour, time.Second, context.DeadlineExceeded},
		{"upload cancelled", put, time.Hour, time.Second, context.DeadlineExceeded},
	} {
		t.Run(part.name, func(t *testing.T) {
			t.Parallel()
			cfg := c.broken(t, false)
			cfg.Timeout = part.timeout
			s := c.session(t, cfg)
			ctx, cancel := context.WithTimeout(t.Context(), part.patient)
			defer cancel()
			is(t, part.name, part.do(ctx, s, part.name), part.want)
			if _, err := os.Stat(filepath.Join(c.Folder, part.name)); err == nil {
				t.Error("half a file has the name of a whole one")
			}
		})
	}
}

// patience returns a time longer than a healthy server on this machine takes
// to answer: on a busy machine the start of a program alone can take a
// second.
func (c contract) patience(t *testing.T) time.Duration {
	t.Helper()
	begun := time.Now()
	_, err := c.session(t, c.Config).Size(within(t), c.at("none"))
	is(t, "Size", err, transfer.ErrMissing)
	return min(max(time.Second, 5*time.Since(begun)), limit/3)
}

func (c contract) noServer(t *testing.T) {
	cfg := c.Config
	cfg.Port = FreePort(t)
	s, err := c.New(cfg).Open(within(t))
	if err == nil {
		_, err = s.Size(within(t), c.at("none"))
		s.Close()
	}
	if err == nil {
		t.Error("a port where nobody listens has a file")
	}
}

// sweep removes incomplete files at the server that no client could remove
// any more.
func (c contract) sweep() {
	entries, _ := os.ReadDir(c.Folder)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			os.Remove(c.Folder + "/" + e.Name())
		}
	}
}

// broken returns the server behind connections that each carry an eighth of a
// large file, and then end or fall silent.
func (c contract) broken(t *testing.T, ends bool) transfer.Config {
	t.Helper()
	cfg := c.Config
	dial := cfg.Dial
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	wrapped := func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		f := &frail{Conn: conn, left: c.Large / 8, ends: ends}
		f.dead, f.far = net.Pipe()
		return f, nil
	}
	if cfg.Dial = wrapped; c.Dials {
		cfg.Host, cfg.Port = relay(t, wrapped, net.JoinHostPort(cfg.Host, cfg.Port))
	}
	return cfg
}

// frail is a connection that dies after so many bytes: it ends, or falls
// silent.
type frail struct {
	net.Conn
	dead, far net.Conn // a pipe without data
	ends      bool

	mu   sync.Mutex
	left int64
}

// spend uses up to n of the remaining bytes, and reports whether any
// remained.
func (f *frail) spend(n int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left -= int64(n)
	return f.left > 0
}

// Read reads at most 16 KiB, so that the connection dies at the right byte.
func (f *frail) Read(b []byte) (int, error) {
	switch {
	case f.spend(0):
		n, err := f.Conn.Read(b[:min(len(b), 16<<10)])
		f.spend(n)
		return n, err
	case f.ends:
		f.Conn.Close()
		return 0, io.EOF
	}
	return f.dead.Read(b)
}

// Write is limited likewise.
func (f *frail) Write(b []byte) (done int, err error) {
	for n := 0; done < len(b) && err == nil; done += n {
		part := b[done:min(len(b), done+16<<10)]
		switch {
		case f.spend(len(part)):
			n, err = f.Conn.Write(part)
		case f.ends:
			f.Conn.Close()
			n, err = 0, syscall.EPIPE
		default:
			n, err = f.dead.Write(part)
		}
	}
	return done, err
}

// SetDeadline sets that of both connections.
func (f *frail) SetDeadline(t time.Time) error {
	return errors.Join(f.Conn.SetDeadline(t), f.dead.SetDeadline(t))
}

// SetReadDeadline likewise.
func (f *frail) SetReadDeadline(t time.Time) error {
	return errors.Join(f.Conn.SetReadDeadline(t), f.dead.SetReadDeadline(t))
}

// SetWriteDeadline likewise.
func (f *frail) SetWriteDeadline(t time.Time) error {
	return errors.Join(f.Conn.SetWriteDeadline(t), f.dead.SetWriteDeadline(t))
}

// Close closes both.
func (f *frail) Close() error {
	f.dead.Close()
	f.far.Close()
	return f.Conn.Close()
}

// relay listens, and forwards to addr and back until the test ends.
func relay(t *testing.T, dial func(context.Context, string, string) (net.Conn, error), addr string) (host, port string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() { cancel(); l.Close(); all.Wait() })
	all.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := dial(ctx, "tcp", addr)
			if err != nil {
				near.Close()
				continue
			}
			stop := context.AfterFunc(ctx, func() { near.Close(); far.Close() })
			pass := func(to, from net.Conn) {
				io.Copy(struct{ io.Writer }{to}, struct{ io.Reader }{from})
				to.Close()
				from.Close()
			}
			all.Go(func() { defer stop(); pass(far, near) })
			all.Go(func() { pass(near, far) })
		}
	})
	host, port, _ = net.SplitHostPort(l.Addr().String())
	return host, port
}

// failing is a reader that fails.
type failing struct{ err error }

// Read fails.
func (f failing) Read([]byte) (int, error) { return 0, f.err }

// reader is a function as an io.Reader.
type reader func([]byte) (int, error)

// Read calls it.
func (r reader) Read(b []byte) (int, error) { return r(b) }
