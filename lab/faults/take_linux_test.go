package faults

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"thru/lab"
)

// Files are the files of one captured test.
type Files struct {
	Sender, Receiver string // paths
	Said             string // path of the JSON output of iperf3's client
}

// Times of a capture.
const (
	listenLimit = 10 * time.Second        // until a program is ready
	quietTime   = 1200 * time.Millisecond // until tcpdump has all packets: libpcap delivers them once a second
	standing    = 245 * time.Millisecond  // how long the program is stopped
	going       = 5 * time.Millisecond    // how long it runs in between
)

// FilesIn returns the paths of the captures in a folder.
func (c Captured) FilesIn(dir string) Files {
	at := func(what string) string { return filepath.Join(dir, c.Name+"."+what) }
	return Files{Sender: at("sender.pcap"), Receiver: at("receiver.pcap"), Said: at("iperf3.json")}
}

// Take runs iperf3 over the path with tcpdump at both ends, and writes the captures to a folder.
func Take(t testing.TB, c Captured, dir string) {
	t.Helper()
	lab.Require(t, append(c.Needs, lab.Program("iperf3"), lab.Program("tcpdump"))...)
	s, f := c.Build(t), c.FilesIn(dir)
	client, server := f.Sender, f.Receiver
	if c.Reversed() {
		client, server = server, client
	}
	ctx, cancel := context.WithTimeout(context.Background(), commandLimit)
	defer cancel()
	iperf := start(t, s.Server.Command(ctx, "iperf3", "-s", "-1", "--forceflush"), "Server listening")
	dumps := []*program{dump(ctx, t, s.Client, client), dump(ctx, t, s.Server, server)}
	if c.Stops {
		defer stopAndGo(ctx, iperf.Process)()
	}
	said, err := s.Client.Output("iperf3", slices.Concat(flags("-J -t %d -c %s", c.seconds(), s.Target), c.Traffic)...)
	if err != nil {
		t.Logf("faults: %v", err) // where no packets pass, the captures show that
	}
	time.Sleep(quietTime)
	for _, d := range dumps {
		d.finish(t)
	}
	write(t, f.Said, said)
}

// seconds is the duration of the traffic.
func (c Captured) seconds() int {
	if c.Seconds > 0 {
		return c.Seconds
	}
	return usualSeconds
}

// snap and snapIPv6 are the captured bytes of a packet: all headers, which are longer in IPv6.
const snap, snapIPv6 = 100, 120

// dump starts tcpdump in a host, with a buffer for the pauses of a busy CPU.
func dump(ctx context.Context, t testing.TB, h *lab.Host, file string) *program {
	t.Helper()
	size := snap
	if strings.Contains(filepath.Base(file), "-v6.") {
		size = snapIPv6
	}
	return start(t, h.Command(ctx, "tcpdump", flags("-i %s -s %d -B 131072 -n -Z root -w %s tcp or icmp or icmp6", lab.DataDev, size, file)...), "listening on")
}

// program is a program that runs during the test.
type program struct {
	*exec.Cmd
	said  strings.Builder
	ended chan struct{}
}

// start starts a program and waits until it prints the ready text on standard output or error.
func start(t testing.TB, cmd *exec.Cmd, ready string) *program {
	t.Helper()
	p := &program{Cmd: cmd, ended: make(chan struct{})}
	read, wrote, err := os.Pipe()
	if err != nil {
		t.Fatalf("faults: %v", err)
	}
	cmd.Stdout, cmd.Stderr = wrote, wrote
	err = cmd.Start()
	_ = wrote.Close() // ours; the program has its own
	if err != nil {
		t.Fatalf("faults: %v", err)
	}
	isReady := make(chan struct{})
	go func() {
		defer close(p.ended)
		defer read.Close()
		told := false
		for lines := bufio.NewScanner(read); lines.Scan(); {
			fmt.Fprintln(&p.said, lines.Text())
			if !told && strings.Contains(lines.Text(), ready) {
				told = true
				close(isReady)
			}
		}
	}()
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-p.ended; _ = cmd.Wait() })
	select {
	case <-isReady:
	case <-p.ended:
		t.Fatalf("faults: %s ended: %s", cmd.Path, p.said.String())
	case <-time.After(listenLimit):
		t.Fatalf("faults: %s is not ready after %v", strings.Join(cmd.Args, " "), listenLimit)
	}
	return p
}

// finish ends tcpdump, and fails the test where it dropped packets.
func (p *program) finish(t testing.TB) {
	t.Helper()
	if err := p.Process.Signal(os.Interrupt); err != nil {
		t.Errorf("faults: %v", err)
	}
	select {
	case <-p.ended:
	case <-time.After(listenLimit):
		t.Fatalf("faults: tcpdump does not end")
	}
	if !strings.Contains(p.said.String(), "\n0 packets dropped by kernel") {
		t.Errorf("faults: tcpdump dropped packets: %s", p.said.String())
	}
}

// stopAndGo lets a program run only in short intervals, until end is called.
func stopAndGo(ctx context.Context, p *os.Process) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			_ = p.Signal(syscall.SIGSTOP) // it may have ended
			sleep(ctx, standing)
			_ = p.Signal(syscall.SIGCONT)
			sleep(ctx, going)
		}
	}()
	return func() { cancel(); <-ended }
}

// Goodput is the rate that iperf3's receiver counted, in bit/s; 0 where iperf3 gave none.
func (f Files) Goodput() float64 {
	text, err := os.ReadFile(f.Said)
	var said struct {
		End struct {
			Received struct {
				Bps float64 `json:"bits_per_second"`
			} `json:"sum_received"`
		} `json:"end"`
	}
	if err != nil || json.Unmarshal(text, &said) != nil {
		return 0
	}
	return said.End.Received.Bps
}

// There reports whether both captures exist.
func (f Files) There() bool {
	for _, path := range []string{f.Sender, f.Receiver} {
		if _, err := os.Stat(path); err != nil {
			return false
		}
	}
	return true
}
