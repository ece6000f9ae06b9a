//go:build linux

package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Time limits of a run.
const (
	serverTime = 5 * time.Second        // for a server to listen
	afterTime  = 500 * time.Millisecond // for a server to end by itself after its client
	spareTime  = 20 * time.Second       // for a client beyond its measured time
)

// result holds the rounds of a comparison.
type result struct {
	comparison
	entries []entry
	out     []string // tools that do not take part, with the reason
}

// entry is one tool with a reading for each round.
type entry struct {
	name       string
	contender  contender
	readings   []reading
	costHidden string
}

// run runs the tools round by round, each round in random order, under the lock: a temporary disturbance of
// the machine affects all of them.
func (c comparison) run(ctx context.Context, s settings, tools []tool) (*result, error) {
	r := &result{comparison: c}
	r.shape.seconds = s.seconds
	for _, t := range tools {
		ready, can := t.ready(r.shape)
		switch {
		case !can:
		case t.missing != "":
			r.out = append(r.out, t.name+": "+t.missing)
		default:
			r.entries = append(r.entries, entry{name: t.name, contender: ready, costHidden: ready.costHidden})
		}
	}
	if runtime.NumCPU() < 2 && (c.shape.place == twoCPUs || c.shape.place == paired) {
		r.out, r.entries = append(r.out, "all: it needs two CPUs"), nil
	}
	for round := range s.repeats {
		if err := r.round(ctx, s, round == 0); err != nil {
			return nil, err
		}
		s.progress("%s: round %d of %d", c.name, round+1, s.repeats)
	}
	s.progress("")
	return r, nil
}

// round runs every tool once. A failed run is reported and leaves NaN.
func (r *result) round(ctx context.Context, s settings, first bool) error {
	unlock, err := lock(s.lock)
	if err != nil {
		return err
	}
	defer unlock()
	for _, i := range rand.Perm(len(r.entries)) {
		e := &r.entries[i]
		got, err := e.contender.run(ctx, s.seconds, first)
		if ctx.Err() != nil {
			return fmt.Errorf("bench: running %s: %w", e.name, context.Cause(ctx))
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s, %s: %v\n", r.name, e.name, err)
			got = reading{figure: math.NaN(), p50: math.NaN(), p99: math.NaN(), cpu: math.NaN(), gb: math.NaN()}
		}
		e.readings = append(e.readings, got)
	}
	return nil
}

// lock excludes all other measurements on this machine. Children do not inherit it: Go opens files
// close-on-exec.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, fmt.Errorf("bench: opening the lock: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		f.Close()
		return nil, fmt.Errorf("bench: taking the lock: %w", err)
	}
	return func() { f.Close() }, nil
}

// process is a started command.
type process struct {
	cmd    *exec.Cmd
	out    bytes.Buffer // what it printed
	errors bytes.Buffer
	done   chan error
}

// start runs a command on its CPU. It changes the calling thread's CPUs for a moment.
func (c command) start() (*process, error) {
	p := &process{cmd: exec.Command(c.argv[0], c.argv[1:]...), done: make(chan error, 1)}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.errors
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if c.cpu >= 0 {
		var before, only unix.CPUSet
		if err := unix.SchedGetaffinity(0, &before); err != nil {
			return nil, fmt.Errorf("bench: reading the CPUs: %w", err)
		}
		only.Set(c.cpu)
		if err := unix.SchedSetaffinity(0, &only); err != nil {
			return nil, fmt.Errorf("bench: binding to CPU %d: %w", c.cpu, err)
		}
		defer unix.SchedSetaffinity(0, &before)
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("bench: starting %s: %w", c.argv[0], err)
	}
	go func() { p.done <- p.cmd.Wait() }()
	return p, nil
}

// wait waits for the end, and kills the process after the limit.
func (p *process) wait(ctx context.Context, limit time.Duration) error {
	select {
	case err := <-p.done:
		p.done <- err
		if err != nil {
			return fmt.Errorf("%s: %w: %s", strings.Join(p.cmd.Args, " "), err, p.said())
		}
		return nil
	case <-time.After(limit):
		p.stop()
		return fmt.Errorf("%s: not over after %v", strings.Join(p.cmd.Args, " "), limit)
	case <-ctx.Done():
		p.stop()
		return ctx.Err()
	}
}

// said returns the process's error output in one line.
func (p *process) said() string {
	text := p.errors.String()
	if text == "" {
		text = p.out.String()
	}
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

// stop ends the process, first with SIGTERM.
func (p *process) stop() {
	for _, signal := range []os.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		select {
		case err := <-p.done:
			p.done <- err
			return
		default:
			p.cmd.Process.Signal(signal)
		}
		select {
		case err := <-p.done:
			p.done <- err
			return
		case <-time.After(time.Second):
		}
	}
}

// cpu returns the CPU time of the ended process and the children that it waited for.
func (p *process) cpu() float64 {
	if p.cmd.ProcessState == nil {
		return math.NaN()
	}
	return (p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()).Seconds()
}

// run starts the servers, waits until they listen, and runs the clients.
func (c contender) run(ctx context.Context, seconds float64, lookInside bool) (reading, error) {
	before := loopbackBytes()
	servers, err := startAll(ctx, c.servers)
	defer stopAll(servers)
	if err != nil {
		return reading{}, err
	}
	clients, err := startAll(ctx, c.clients)
	defer stopAll(clients)
	control := make(chan string, 1)
	go func() {
		if lookInside {
			time.Sleep(time.Duration(seconds * 0.7 * float64(time.Second)))
			control <- busyCongestion()
		}
		close(control)
	}()
	for _, p := range clients {
		err = errors.Join(err, p.wait(ctx, spareTime+time.Duration(seconds)*time.Second))
	}
	for _, p := range servers {
		select {
		case e := <-p.done: // many end by themselves after one test
			p.done <- e
		case <-time.After(afterTime):
			p.stop()
		}
	}
	if err != nil {
		return reading{}, err
	}
	return c.account(servers, clients, before, <-control)
}

// startAll starts commands and waits for those that listen. With an error it returns the running ones.
func startAll(ctx context.Context, commands []command) ([]*process, error) {
	var started []*process
	for _, c := range commands {
		p, err := c.start()
		if err != nil {
			return started, err
		}
		started = append(started, p)
		if c.port == "" {
			continue
		}
		if err := awaitPort(ctx, p, c.port); err != nil {
			return started, err
		}
	}
	return started, nil
}

func stopAll(processes []*process) {
	for _, p := range processes {
		p.stop()
	}
}

// account combines the reading of a run.
func (c contender) account(servers, clients []*process, before uint64, control string) (reading, error) {
	from := clients
	if c.readServers {
		from = servers
	}
	var outputs []string
	for _, p := range from {
		outputs = append(outputs, p.out.String())
	}
	r, err := c.read(outputs)
	if err == nil && !(r.figure > 0) {
		err = fmt.Errorf("no figure in %q", outputs)
	}
	for _, p := range append(servers, clients...) {
		r.cpu += p.cpu()
	}
	r.gb, r.control = float64(loopbackBytes()-before)/1e9, control
	return r, err
}
