//go:build interop

package interop

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"thru/lab"
)

// programLimit ends a program that hangs.
const programLimit = 60 * time.Second

// output collects a program's output while others read it.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) bytes() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	return bytes.Clone(o.text.Bytes())
}

// program runs in a host until it ends, or the test does.
type program struct {
	cmd            *exec.Cmd
	stdout, stderr output
	ended          chan struct{}
}

// start starts a program in a host, with a separate home folder for thru.
func start(t *testing.T, h *lab.Host, limit time.Duration, name string, args ...string) *program {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	p := &program{ended: make(chan struct{})}
	p.cmd = h.Command(ctx, name, args...)
	p.cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "XDG_CONFIG_HOME=", "XDG_STATE_HOME=", "XDG_DATA_HOME=")
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	if err := p.cmd.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // the exit code is checked where it matters
	}()
	t.Cleanup(func() { cancel(); <-p.ended })
	return p
}

// wait returns when the program has ended; with an error if it does not end in time, or fails.
func (p *program) wait(limit time.Duration) error {
	select {
	case <-p.ended:
	case <-time.After(limit):
		return fmt.Errorf("%s still runs after %v\n%s", p, limit, p.said())
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("%s ends with %d\n%s", p, code, p.said())
	}
	return nil
}

// interrupt asks the program to end, and waits for that.
func (p *program) interrupt() {
	_ = p.cmd.Process.Signal(syscall.SIGINT) // ended already: what was wanted
	select {
	case <-p.ended:
	case <-time.After(3 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
}

// String returns the program's command line, without `ip netns exec`.
func (p *program) String() string { return strings.Join(p.cmd.Args[4:], " ") }

// said returns the end of the program's output.
func (p *program) said() string {
	text := string(p.stdout.bytes()) + string(p.stderr.bytes())
	const most = 1500
	if len(text) > most {
		text = "[...]" + text[len(text)-most:]
	}
	return text
}

// path returns the path of a program: IPERF3 names the newer iperf3.
func path(name string) string {
	if name == newer {
		return os.Getenv(newerVariable)
	}
	return name
}

// listening waits until a server accepts connections, or has its socket.
func listening(t *testing.T, h *lab.Host, p *program, port int, udp bool) {
	t.Helper()
	flag := "-Htln"
	if udp {
		flag = "-Huln"
	}
	lab.Eventually(t, 10*time.Second, p.String()+" listens", func() bool {
		select {
		case <-p.ended:
			t.Fatalf("%s has ended\n%s", p, p.said())
		default:
		}
		return strings.TrimSpace(h.Must("ss", flag, fmt.Sprintf("sport = :%d", port))) != ""
	})
}

// realServer serves one test with a real program and returns a function that returns its report.
func realServer(t *testing.T, h *lab.Host, addr netip.Addr, name string, port int, s Shape) func() (Report, error) {
	t.Helper()
	p := start(t, h, programLimit, path(name), ServerArgs(kind(name), port, s)...)
	listening(t, h, p, port, s.UDP && kind(name) == IPerf2)
	return func() (Report, error) {
		time.Sleep(500 * time.Millisecond) // its last figures come after the client's
		p.interrupt()
		if kind(name) == IPerf2 {
			return ReadIPerf2(p.stdout.bytes(), addr.String(), true, s.Streams)
		}
		return ReadIPerf3(p.stdout.bytes())
	}
}

// realClient runs a real client to its end.
func realClient(t *testing.T, h *lab.Host, server netip.Addr, name string, port int, s Shape) (Report, error) {
	t.Helper()
	p := start(t, h, programLimit, path(name), ClientArgs(kind(name), server.String(), port, s)...)
	if err := p.wait(programLimit); err != nil {
		return Report{}, err
	}
	if kind(name) == IPerf2 {
		return ReadIPerf2(p.stdout.bytes(), server.String(), false, s.Streams)
	}
	return ReadIPerf3(p.stdout.bytes())
}

// thruClient runs thru to its end.
func thruClient(t *testing.T, h *lab.Host, server netip.Addr, name string, port int, s Shape) (Report, error) {
	t.Helper()
	p := start(t, h, programLimit, lab.Binary(t), ThruArgs(kind(name), server.String(), port, s)...)
	failed := p.wait(programLimit)
	r, err := ReadThru(p.stdout.bytes()) // its document has more details than its exit code
	return r, cmp.Or(err, failed)
}
