package own_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"thru/internal/bus"
	"thru/internal/bus/bustest"
	"thru/internal/fault"
	"thru/internal/token"
	"thru/internal/transfer"
	"thru/internal/transfer/own"
)

// fake is an agent with answers by its fields.
type fake struct {
	mu       sync.Mutex
	heard    []string
	refusals int // requests for the turn before it is granted
	err      error
	port     int
	token    string
}

func (f *fake) note(word string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.heard = append(f.heard, word)
	return f.err
}

func (f *fake) words() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.heard, " ")
}

func (f *fake) Reserve(context.Context, string, bus.ReserveRequest) (bus.ReserveReply, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.heard = append(f.heard, "reserve")
	f.refusals--
	return bus.ReserveReply{Granted: f.refusals < 0}, nil
}
func (f *fake) Release(context.Context, string, bus.ReleaseRequest) (bus.Empty, error) {
	return bus.Empty{}, f.note("release")
}
func (f *fake) File(_ context.Context, _ string, m bus.FileStart) (bus.FileReply, error) {
	return bus.FileReply{Session: "s", Port: f.port, Token: f.token, Bytes: 4}, f.note("file " + m.Path)
}
func (f *fake) Filed(_ context.Context, _ string, m bus.FileEnd) (bus.FileResult, error) {
	return bus.FileResult{Over: true}, f.note("filed")
}
func (f *fake) FileSize(_ context.Context, _ string, m bus.FilePath) (bus.FileSizeReply, error) {
	return bus.FileSizeReply{Bytes: 4}, f.note("size " + m.Path)
}
func (f *fake) FileRemove(_ context.Context, _ string, m bus.FilePath) (bus.Empty, error) {
	return bus.Empty{}, f.note("remove " + m.Path)
}

func endOf(f *fake, privileges ...string) *own.End {
	c := bustest.NewClient(
		bus.On(bus.Reserve, f.Reserve), bus.On(bus.Release, f.Release), bus.On(bus.File.Begin, f.File), bus.On(bus.File.End, f.Filed),
		bus.On(bus.FileSize, f.FileSize), bus.On(bus.FileRemove, f.FileRemove),
	)
	return own.NewEnd(c, bus.HelloReply{Hostname: "h", Thru: "v1", Privileges: privileges}, []string{"127.0.0.1"})
}

// TestTurn: all sessions share one turn, which the last one gives back.
func TestTurn(t *testing.T) {
	f := &fake{refusals: 1}
	end := endOf(f, bus.PrivilegeFiles)
	a, err := end.Client(transfer.Config{}).Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b, err := end.Client(transfer.Config{}).Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []transfer.Session{a, a} { // a second time does nothing
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if n, err := b.Size(t.Context(), "srv/f"); n != 4 || err != nil {
		t.Error(n, err)
	}
	if _, err := a.Size(t.Context(), "srv/f"); !errors.Is(err, net.ErrClosed) {
		t.Error("a session that was closed:", err)
	}
	b.Close()
	if got, want := f.words(), "reserve reserve size /srv/f release"; got != want {
		t.Errorf("the agent heard %q, want %q", got, want)
	}
	f.refusals = 1 << 20
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := end.Client(transfer.Config{}).Open(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Error("another has the turn:", err)
	}
	f.refusals = 0
	again, err := end.Client(transfer.Config{}).Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
}

// TestNotLet: without the privilege no request is sent.
func TestNotLet(t *testing.T) {
	f := &fake{}
	_, err := endOf(f, bus.PrivilegeMeasure).Client(transfer.Config{}).Open(t.Context())
	if !errors.Is(err, transfer.ErrLogin) || !strings.Contains(fault.Hint(err), "--allow files") || f.words() != "" {
		t.Errorf("%v (%s), heard %q", err, fault.Hint(err), f.words())
	}
}

// TestReasons: callers can distinguish the agent's errors, with their texts
// and hints.
func TestReasons(t *testing.T) {
	for reason, want := range map[bus.Reason]error{
		bus.ReasonMissing: transfer.ErrMissing, bus.ReasonExists: transfer.ErrExists, bus.ReasonDenied: transfer.ErrDenied, bus.ReasonReadOnly: transfer.ErrReadOnly,
		bus.ReasonFull: transfer.ErrFull, bus.ReasonShort: transfer.ErrShort, bus.ReasonSilent: transfer.ErrSilent, "of a later version": nil,
	} {
		f := &fake{err: fault.Because(reason, fault.Failf("do this", "agent: so it is"))}
		s, err := endOf(f, bus.PrivilegeFiles).Client(transfer.Config{}).Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, size := s.Size(t.Context(), "f")
		_, get := s.Get(t.Context(), "f", &bytes.Buffer{})
		put := s.Put(t.Context(), "f", strings.NewReader("x"), 1, false)
		for _, err := range []error{size, get, put, s.Remove(t.Context(), "f")} {
			if err == nil || want != nil && !errors.Is(err, want) || fault.Hint(err) != "do this" || !strings.Contains(err.Error(), "agent: so it is") {
				t.Errorf("%s: %v (%s), want %v", reason, err, fault.Hint(err), want)
			}
		}
	}
}

// TestStranger: no byte of a file goes to a program that cannot prove that it
// has the token, nor is one accepted from it.
func TestStranger(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	got := make(chan int, 2)
	go func() {
		for range 2 {
			c, err := l.Accept()
			if err != nil {
				return
			}
			b := make([]byte, 1024)
			n, _ := c.Read(b)
			c.Write(b[:n]) // an echo
			c.SetReadDeadline(time.Now().Add(10 * time.Second))
			more, _ := c.Read(b)
			got <- more
			c.Close()
		}
	}()
	f := &fake{port: l.Addr().(*net.TCPAddr).Port, token: token.New()}
	s, err := endOf(f, bus.PrivilegeFiles).Client(transfer.Config{}).Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var b bytes.Buffer
	if _, err := s.Get(t.Context(), "f", &b); err == nil || b.Len() > 0 || !strings.Contains(err.Error(), "another program answers") {
		t.Errorf("%q, %v", b.String(), err)
	}
	if err := s.Put(t.Context(), "f", strings.NewReader("four"), 4, false); err == nil || fault.Hint(err) == "" {
		t.Error(err)
	}
	f.token = strings.ToLower(token.New())
	if _, err := s.Get(t.Context(), "f", &b); err == nil || !strings.Contains(err.Error(), "invalid token") {
		t.Error(err)
	}
	for range 2 {
		if n := <-got; n > 0 {
			t.Errorf("a stranger got %d bytes", n)
		}
	}
	if len(s.Sockets()) > 0 {
		t.Error("a connection stays open")
	}
}
