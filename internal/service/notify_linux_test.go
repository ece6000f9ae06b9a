package service

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// systemdSocket opens the socket on which systemd would hear this process, and returns what comes.
func systemdSocket(t *testing.T) func() string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	t.Setenv("NOTIFY_SOCKET", path)
	return func() string {
		b := make([]byte, 4096)
		n, err := conn.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:n])
	}
}

// TestSupervise: systemd hears ready, signs of life, the reload and the end, in that order.
func TestSupervise(t *testing.T) {
	heard := systemdSocket(t)
	t.Setenv("WATCHDOG_USEC", "20000")
	t.Setenv("WATCHDOG_PID", fmt.Sprint(os.Getpid()))
	ctx, cancel := context.WithCancel(context.Background())
	hangUp := make(chan os.Signal)
	reloads, signs, over := 0, 0, make(chan struct{})
	go func() {
		defer close(over)
		Supervise(ctx, Supervised{Status: "serves", HangUp: hangUp, Alive: func() { signs++ }, Reload: func() { reloads++ }})
	}()
	until := func(want string) {
		t.Helper()
		for range 10000 {
			if got := heard(); strings.HasPrefix(got, want) {
				return
			}
		}
		t.Fatalf("systemd does not hear %s", want)
	}
	if got := heard(); got != "READY=1\nSTATUS=serves" {
		t.Errorf("first it hears %q", got)
	}
	until("WATCHDOG=1")
	go func() { hangUp <- syscall.SIGHUP }()
	until("RELOADING=1\nMONOTONIC_USEC=")
	until("READY=1")
	cancel()
	until("STOPPING=1")
	if <-over; reloads != 1 || signs == 0 {
		t.Errorf("%d reloads, %d signs of life", reloads, signs)
	}
}

// TestWatchdog: only this process is watched, and only if asked for.
func TestWatchdog(t *testing.T) {
	for _, c := range []struct {
		usec, pid string
		on        bool
	}{{"", "", false}, {"x", "", false}, {"-1", "", false}, {"1000000", "1", false}, {"1000000", "", true}} {
		t.Setenv("WATCHDOG_USEC", c.usec)
		t.Setenv("WATCHDOG_PID", c.pid)
		if (watchdog() > 0) != c.on {
			t.Errorf("%+v: every %v", c, watchdog())
		}
	}
	t.Setenv("NOTIFY_SOCKET", "")
	if err := Notify("READY=1"); err != nil {
		t.Error("without systemd:", err)
	}
	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "none"))
	if Notify("READY=1") == nil {
		t.Error("a socket that is not there")
	}
}

// TestListeners hands real sockets to a child process, as systemd does.
func TestListeners(t *testing.T) {
	if os.Getenv("THRU_TEST_CHILD") != "" {
		answerPassed(t)
		return
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close() // the port lives in f alone
	// The shell keeps its process number across exec, which LISTEN_PID must name.
	child := exec.Command("sh", "-c", `LISTEN_PID=$$ exec "$0" -test.run '^TestListeners$'`, os.Args[0])
	child.Env = append(os.Environ(), "LISTEN_FDS=1", "THRU_TEST_CHILD=1")
	child.ExtraFiles = []*os.File{f}
	out := &strings.Builder{}
	child.Stdout, child.Stderr = out, out
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	f.Close()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	line, err := bufio.NewReader(conn).ReadString('\n')
	if werr := child.Wait(); werr != nil || err != nil || line != "passed "+addr+"\n" {
		t.Errorf("the child answers %q (%v), and ends with %v:\n%s", line, err, werr, out)
	}
}

// answerPassed is the child: it answers one connection on the passed socket.
func answerPassed(t *testing.T) {
	all, err := Listeners()
	if err != nil || len(all) != 1 {
		t.Fatalf("%d sockets: %v", len(all), err)
	}
	if again, err := Listeners(); len(again) > 0 || err != nil {
		t.Error("the second call returns them again", err)
	}
	conn, err := all[0].Accept()
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "passed %s\n", all[0].Addr())
	conn.Close()
}

// TestNoListeners: sockets for another process, or none, are not taken.
func TestNoListeners(t *testing.T) {
	for _, env := range [][2]string{{"", ""}, {"1", "1"}, {"x", fmt.Sprint(os.Getpid())}} {
		t.Setenv("LISTEN_FDS", env[0])
		t.Setenv("LISTEN_PID", env[1])
		if all, err := Listeners(); len(all) > 0 || err != nil {
			t.Errorf("%q: %d sockets, %v", env, len(all), err)
		}
	}
}

// TestJournal: journald reads a file if JOURNAL_STREAM names its device and number.
func TestJournal(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	info, err := w.Stat()
	if err != nil {
		t.Fatal(err)
	}
	s := info.Sys().(*syscall.Stat_t)
	t.Setenv("JOURNAL_STREAM", fmt.Sprintf("%d:%d", s.Dev, s.Ino))
	if !Journal(w) {
		t.Error("the journal's pipe is not recognized")
	}
	t.Setenv("JOURNAL_STREAM", "1:2")
	if Journal(w) {
		t.Error("another file is the journal")
	}
}
