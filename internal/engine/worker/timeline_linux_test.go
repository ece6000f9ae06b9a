package worker

import (
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"thru/internal/engine"
	"thru/internal/engine/enginetest"
	"thru/internal/measure"
	"thru/internal/sock"
)

// observer returns a worker that reads one end of a connection.
func observer(t *testing.T, s socket, sends bool) *worker {
	t.Helper()
	cmd := openCommand{Spec: measure.Spec{Protocol: measure.TCP, Traffic: measure.Bulk, Streams: 1}, Sends: sends}
	w := &worker{cmd: cmd, flow: newFlow(cmd, []socket{s}, nil), out: frameWriter{w: io.Discard}, mark: time.Now()}
	if err := w.prepare(); err != nil {
		t.Fatal(err)
	}
	w.flow.measuring.Store(true)
	w.observe() // sets the time of the first round
	return w
}

// look takes a round of readings now.
func (w *worker) look() *measure.Timeline {
	w.timelines.of = make([]sock.Readings, 1)
	w.timelines.next = time.Now()
	w.observe()
	return w.timeline(0)
}

// A reader that does not read shows at both ends; one that has read everything does not.
func TestTimelineOfAReader(t *testing.T) {
	lc := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) { unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, 32<<10) })
	}}
	a, b := connectedBy(t, lc)
	raw, err := a.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	block, sent := make([]byte, 16<<10), 0
	raw.Write(func(fd uintptr) bool { // until the buffer is full
		for {
			n, err := unix.SendmsgN(int(fd), block, nil, nil, unix.MSG_DONTWAIT)
			if err != nil {
				return true
			}
			sent += n
		}
	})
	from, to := observer(t, a, true), observer(t, b, false)
	eventually(t, "the window to fill", func() bool { return *from.look().WndFull == 100 })
	c, d := from.look(), to.look()
	if c.NotSent.Min <= 0 || *c.Idle != 0 || *c.CwndFull != 0 {
		t.Errorf("sender to a reader that sleeps: %+v", c)
	}
	if d.Unread.Min <= 0 || d.RecvWnd == nil || d.InFlight != nil || d.CwndFull != nil {
		t.Errorf("reader that sleeps: %+v", d)
	}
	if _, err := io.ReadFull(to.flow.streams[0].file, make([]byte, sent)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all to be acknowledged", func() bool { return from.look().InFlight.Max == 0 })
	if c, d = from.look(), to.look(); *c.Idle != 100 || *c.WndFull != 0 || d.Unread.Max != 0 {
		t.Errorf("after all was read: sender %+v, receiver %+v", c, d)
	}
}

// eventually waits for what the kernel does in the background.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for give := time.Now().Add(10 * time.Second); !is(); sleepThread(time.Millisecond) {
		if time.Now().After(give) {
			t.Fatal("waited in vain for ", what)
		}
	}
}

// A test returns the time lines of both ends: here of a receiver that reads more slowly than the sender could send, and so limits the sender by its window.
func TestTimelineOfASlowReceiver(t *testing.T) {
	inOneOfSome(t, func() error { return timelineOfASlowReceiver(t) })
}

func timelineOfASlowReceiver(t *testing.T) (err error) {
	t.Helper()
	p := program(t)
	spec := suite{Engine: Engine{}}.spec(2)
	receiver, err := Engine{Program: p}.Open(t.Context(), engine.End{Name: "b", Spec: spec, MaxRate: 80e6, Listen: engine.Listen{Addrs: []string{"127.0.0.1"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer receiver.Close()
	target := net.JoinHostPort("127.0.0.1", port(receiver))
	sender, err := Engine{Program: p}.Open(t.Context(), engine.End{Name: "a", Spec: spec, Sends: true, Dials: true, Token: receiver.Ready().Token, Targets: []string{target}})
	if err != nil {
		t.Fatal(err)
	}
	defer sender.Close()
	start(t, 100*time.Millisecond, sender, receiver)
	enginetest.Finish(t, sender)
	enginetest.Finish(t, receiver)
	for i, s := range sender.Evidence().Streams {
		c := s.Timeline
		if c == nil || c.Samples == 0 || c.Every < int64(timelineLeast) || c.InFlight == nil || c.Unread != nil || *c.WndFull < 50 || *c.Idle > 50 {
			err = errors.Join(err, fmt.Errorf("sender, stream %d: %+v", i, c))
		}
	}
	for i, s := range receiver.Evidence().Streams {
		c := s.Timeline
		if c == nil || c.Samples == 0 || c.InFlight != nil || c.WndFull != nil || c.Unread == nil || c.Unread.Mean < 16<<10 || c.RecvWnd == nil {
			err = errors.Join(err, fmt.Errorf("receiver, stream %d: %+v", i, c))
		}
	}
	return err
}
