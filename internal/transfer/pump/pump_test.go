package pump

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"thru/internal/transfer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// content returns a file of n bytes in which no two blocks are equal.
func content(n int) []byte {
	b := make([]byte, n)
	chacha := rand.NewChaCha8([32]byte{1})
	_, _ = chacha.Read(b)
	return b
}

// memory is a file that answers late, out of order and in pieces.
type memory struct {
	mu      sync.Mutex
	b       []byte
	short   bool
	flight  atomic.Int32
	highest atomic.Int32
}

func (m *memory) enter() func() {
	n := m.flight.Add(1)
	for old := m.highest.Load(); n > old && !m.highest.CompareAndSwap(old, n); old = m.highest.Load() {
	}
	time.Sleep(time.Duration(rand.IntN(300)) * time.Microsecond)
	return func() { m.flight.Add(-1) }
}

func (m *memory) piece(p []byte) []byte {
	if m.short && len(p) > 3 {
		return p[:len(p)/2]
	}
	return p
}

func (m *memory) readAt(_ context.Context, p []byte, off int64) (int, error) {
	defer m.enter()()
	m.mu.Lock()
	defer m.mu.Unlock()
	return copy(m.piece(p), m.b[off:]), nil
}

func (m *memory) writeAt(_ context.Context, p []byte, off int64) (int, error) {
	defer m.enter()()
	m.mu.Lock()
	defer m.mu.Unlock()
	return copy(m.b[off:], m.piece(p)), nil
}

func TestWhole(t *testing.T) {
	for _, size := range []int{0, 1, 99, 100, 101, 400, 2345} {
		for _, shape := range []Shape{{100, 1}, {100, 4}, {7, 16}} {
			for _, short := range []bool{false, true} {
				file := &memory{b: content(size), short: short}
				var got bytes.Buffer
				n, err := Read(t.Context(), &got, int64(size), shape, file.readAt)
				if err != nil || n != int64(size) || !bytes.Equal(got.Bytes(), file.b) {
					t.Fatalf("read %d by %v: %d, %v", size, shape, n, err)
				}
				copied := &memory{b: make([]byte, size), short: short}
				if err := Write(t.Context(), bytes.NewReader(file.b), int64(size), shape, copied.writeAt); err != nil || !bytes.Equal(copied.b, file.b) {
					t.Fatalf("write %d by %v: %v", size, shape, err)
				}
				if high := max(file.highest.Load(), copied.highest.Load()); int(high) > shape.Depth {
					t.Errorf("%d requests in flight, %d are allowed", high, shape.Depth)
				}
			}
		}
	}
}

// TestDepth shows that the whole depth is used: each request waits for the
// others.
func TestDepth(t *testing.T) {
	const depth = 8
	var wait sync.WaitGroup
	wait.Add(depth)
	meet := func(_ context.Context, p []byte, _ int64) (int, error) {
		wait.Done()
		wait.Wait()
		return len(p), nil
	}
	if _, err := Read(t.Context(), io.Discard, depth*10, Shape{10, depth}, meet); err != nil {
		t.Fatal(err)
	}
	wait.Add(depth)
	if err := Write(t.Context(), bytes.NewReader(content(depth*10)), depth*10, Shape{10, depth}, meet); err != nil {
		t.Fatal(err)
	}
}

func TestShapes(t *testing.T) {
	for size, want := range map[int64]Shape{0: {1, 1}, 1: {1, 1}, 999: {999, 1}, 1000: {1000, 1}, 1001: {1000, 2}, 5 << 40: {1000, 8}} {
		if got := (Shape{1000, 8}).of(size); got != want {
			t.Errorf("%d bytes: %+v, want %+v", size, got, want)
		}
	}
	for _, c := range []struct {
		block int
		rtt   time.Duration
		want  int
	}{
		{1 << 20, 0, 16}, {65536, 0, 64}, {512, 0, 64}, {64 << 20, 0, 4},
		{1 << 20, 30 * time.Microsecond, 4}, {65536, 30 * time.Microsecond, 64}, {1 << 20, 2 * time.Millisecond, 9}, {1 << 20, time.Second, 16},
	} {
		if got := Fit(c.block, c.rtt); got != (Shape{c.block, c.want}) {
			t.Errorf("%+v: %+v", c, got)
		}
	}
}

// bad is a writer that fails after a while.
type bad struct{ left int }

func (b *bad) Write(p []byte) (int, error) {
	if b.left--; b.left < 0 {
		return 0, io.ErrShortWrite
	}
	return len(p), nil
}

func TestErrors(t *testing.T) {
	broken := errors.New("broken")
	file := &memory{b: content(1000)}
	failing := func(ctx context.Context, p []byte, off int64) (int, error) {
		if off >= 500 {
			return 0, broken
		}
		return file.readAt(ctx, p, off)
	}
	nothing := func(context.Context, []byte, int64) (int, error) { return 0, nil }
	shape := Shape{100, 4}
	read := func(w io.Writer, at At) error { _, err := Read(t.Context(), w, 1000, shape, at); return err }
	write := func(n int, at At) error { return Write(t.Context(), bytes.NewReader(content(n)), 1000, shape, at) }
	for name, c := range map[string]struct{ got, want error }{
		"read fails":         {read(io.Discard, failing), broken},
		"read gives nothing": {read(io.Discard, nothing), transfer.ErrShort},
		"sink is full":       {read(&bad{2}, file.readAt), io.ErrShortWrite},
		"write fails":        {write(1000, failing), broken},
		"write does nothing": {write(1000, nothing), transfer.ErrShort},
		"source ends early":  {write(300, file.writeAt), transfer.ErrSource},
	} {
		if !errors.Is(c.got, c.want) {
			t.Errorf("%s: %v, want %v", name, c.got, c.want)
		}
	}
}

func TestCancelled(t *testing.T) {
	reason := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	stuck := func(ctx context.Context, _ []byte, off int64) (int, error) {
		if off >= 300 {
			cancel(reason)
		}
		<-ctx.Done()
		return 0, ctx.Err()
	}
	if n, err := Read(ctx, io.Discard, 1000, Shape{100, 4}, stuck); !errors.Is(err, reason) || n != 0 {
		t.Errorf("%d, %v", n, err)
	}
	if err := Write(ctx, bytes.NewReader(content(1000)), 1000, Shape{100, 4}, stuck); !errors.Is(err, reason) {
		t.Error(err)
	}
}
