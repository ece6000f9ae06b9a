package lab_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"thru/internal/measure"
	"thru/lab"
)

// gigabit is the rate of the links of these tests; goodput4 and goodput6 are what TCP with timestamps can
// carry over such a link at MTU 1500: the payload's share of a frame without check sum, as the token bucket
// counts it.
const (
	gigabit  = 1e9
	goodput4 = gigabit * (1500 - 20 - 20 - 12) / 1514
	goodput6 = gigabit * (1500 - 40 - 20 - 12) / 1514
)

// thru promises to notice a lost peer within 10 s; the machine may take 2 s more to run the programs.
const lossLimit = 12 * time.Second

// output collects what a program writes while others read it.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// program is thru running in a host.
type program struct {
	host           *lab.Host
	cmd            *exec.Cmd
	stdout, stderr output
	ended          chan struct{} // closed when it has ended
	exit           int           // valid after ended; -1 where a signal ended it
}

// start starts thru in a host with its own home directory, so that it neither reads nor writes the user's
// files. It is killed when the test ends, and after some minutes at the latest.
func start(t *testing.T, h *lab.Host, home, stdin string, args ...string) *program {
	t.Helper()
	return startWith(t, h, home, stdin, nil, args...)
}

// startWith is start with more variables in the environment.
func startWith(t *testing.T, h *lab.Host, home, stdin string, env []string, args ...string) *program {
	t.Helper()
	binary := lab.Binary(t) // before the time starts, since the first call builds it
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	p := &program{host: h, ended: make(chan struct{})}
	p.cmd = h.Command(ctx, binary, args...)
	p.cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME=", "XDG_STATE_HOME=", "XDG_DATA_HOME=", "XDG_CACHE_HOME=")
	p.cmd.Env = append(p.cmd.Env, env...)
	p.cmd.Stdin = strings.NewReader(stdin)
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait()
		p.exit = p.cmd.ProcessState.ExitCode()
	}()
	t.Cleanup(func() {
		cancel()
		<-p.ended
		if t.Failed() {
			t.Logf("thru %s in %s: exit %d\n%s%s", strings.Join(args, " "), h.Name, p.exit, shorten(p.stdout.String()), shorten(p.stderr.String()))
		}
	})
	return p
}

// shorten keeps the beginning of a long output, where a document has its error, and the end.
func shorten(s string) string {
	const head, tail = 1500, 1000
	if len(s) > head+tail {
		return s[:head] + "\n[...]\n" + s[len(s)-tail:]
	}
	return s
}

// wait returns the exit code, and fails the test if the program runs longer.
func (p *program) wait(t *testing.T, limit time.Duration) int {
	t.Helper()
	select {
	case <-p.ended:
		return p.exit
	case <-time.After(limit):
		t.Fatalf("thru %s still runs after %v", strings.Join(p.cmd.Args, " "), limit)
		return 0
	}
}

// running reports whether the program still runs.
func (p *program) running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// signal sends a signal to this process only.
func (p *program) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// document decodes standard output, which must be exactly one valid document.
func (p *program) document(t *testing.T) measure.Document {
	t.Helper()
	var doc measure.Document
	d := json.NewDecoder(strings.NewReader(p.stdout.String()))
	d.DisallowUnknownFields()
	if err := d.Decode(&doc); err != nil {
		t.Fatalf("the output is no document: %v", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		t.Fatalf("something follows the document: %v", err)
	}
	if doc.Schema != measure.Schema {
		t.Errorf("schema %q, want %q", doc.Schema, measure.Schema)
	}
	return doc
}

// serve starts `thru serve` in a host and waits until it is ready.
func serve(t *testing.T, h *lab.Host, args ...string) *program {
	t.Helper()
	state := t.TempDir()
	p := start(t, h, state, "", append([]string{"serve", "--state", state}, args...)...)
	lab.Eventually(t, 10*time.Second, "thru serve is ready", func() bool {
		if !p.running() {
			t.Fatalf("thru serve ended with exit %d", p.exit)
		}
		return strings.Contains(p.stdout.String(), "ready")
	})
	return p
}

// test runs `thru test` in a host to its end and returns its document, which must have a result.
func test(t *testing.T, h *lab.Host, args ...string) measure.Document {
	t.Helper()
	p := start(t, h, t.TempDir(), "", append([]string{"test", "--json"}, args...)...)
	if code := p.wait(t, 50*time.Second); code != 0 {
		t.Fatalf("thru test ended with exit %d", code)
	}
	doc := p.document(t)
	if doc.Error != nil || len(doc.Cells) == 0 {
		t.Fatalf("no result: error %+v, %d cells", doc.Error, len(doc.Cells))
	}
	return doc
}

// mainCells returns the cells that the user asked for, without baselines.
func mainCells(doc measure.Document) []measure.Cell {
	var cells []measure.Cell
	for _, c := range doc.Cells {
		if !c.Baseline {
			cells = append(cells, c)
		}
	}
	return cells
}

// flows lists every flow of a document.
func flows(doc measure.Document) []measure.Flow {
	var all []measure.Flow
	for _, c := range doc.Cells {
		for _, r := range c.Runs {
			all = append(all, r.Flows...)
		}
	}
	return all
}

// near tells whether got is within pct percent of want.
func near(got, want, pct float64) bool {
	return got >= want*(1-pct/100) && got <= want*(1+pct/100)
}

// idle is the state of a server without a test.
type idle struct {
	pids, sockets int
}

// look counts the processes and sockets of a host.
func look(h *lab.Host) idle { return idle{len(h.Pids()), len(h.Sockets())} }

// eventuallyIdle waits until the host is in its state before the test.
func eventuallyIdle(t *testing.T, h *lab.Host, before idle, limit time.Duration) {
	t.Helper()
	for deadline := time.Now().Add(limit); ; time.Sleep(100 * time.Millisecond) {
		now := look(h)
		if now == before {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %v host %s has %+v, want %+v:\n%s", limit, h.Name, now, before, strings.Join(h.Sockets(), "\n"))
		}
	}
}

// underWay waits until a test has moved three seconds' worth of data into b, over a link of that rate: after the
// ramp, in the measured time.
func underWay(t *testing.T, p *lab.Pair, client *program, rate uint64) {
	t.Helper()
	before := p.B.Counters(p.Data.Dev)
	lab.Eventually(t, 40*time.Second, "the test is under way", func() bool {
		if !client.running() {
			t.Fatalf("the test ended early with exit %d", client.exit)
		}
		return p.B.Counters(p.Data.Dev).Sub(before).RxBytes > 3*rate/8
	})
}

// count returns the number of entries in a directory of a process, such as fd or task.
func count(t *testing.T, pid int, dir string) int {
	t.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/%s", pid, dir))
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
