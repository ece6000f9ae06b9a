package lab

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"thru/internal/host"
)

// helperVariable makes the test binary perform one small task in a host instead of running tests, so that
// tests can use plain sockets in a namespace.
const helperVariable = "THRU_LAB_HELPER"

func TestMain(m *testing.M) {
	do := os.Getenv(helperVariable)
	if do == "" {
		os.Exit(m.Run())
	}
	err := fmt.Errorf("no helper is called %q", do)
	switch do {
	case "snapshot":
		err = json.NewEncoder(os.Stdout).Encode(host.New().Read(os.Args[1], 0))
	case "send":
		err = sendDatagrams(os.Args[1:])
	case "receive":
		err = receiveDatagrams(os.Args[1], os.Args[2] == "reads")
	case "path-answer":
		err = answerProbe()
	case "path-probe":
		err = probePath(os.Args[1], os.Args[2], os.Args[3] == "quick")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// helper returns a command that performs one task in a host.
func helper(t *testing.T, ctx context.Context, h *Host, do string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := h.Command(ctx, self, args...)
	cmd.Env = append(os.Environ(), helperVariable+"="+do)
	return cmd
}

// snapshot reads the counters of a host and of one of its interfaces.
func snapshot(t *testing.T, h *Host, dev string) host.Snapshot {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), programTimeout)
	defer cancel()
	out, err := output(helper(t, ctx, h, "snapshot", dev))
	var s host.Snapshot
	if err = errors.Join(err, json.Unmarshal([]byte(out), &s)); err != nil {
		t.Fatalf("reading %s in %s: %v", dev, h.Name, err)
	}
	return s
}

// datagramSize is the payload of the datagrams that helpers send, in bytes.
const datagramSize = 1000

// send sends datagrams from a host as fast as it can, with several of them in one buffer (udp(7),
// UDP_SEGMENT) where each is above 1. It returns how many send calls the kernel refused.
func send(t *testing.T, h *Host, to string, calls, each int) (refused int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), programTimeout)
	defer cancel()
	out, err := output(helper(t, ctx, h, "send", to, strconv.Itoa(calls), strconv.Itoa(each)))
	if err == nil {
		refused, err = strconv.Atoi(strings.TrimSpace(out))
	}
	if err != nil {
		t.Fatalf("sending from %s: %v", h.Name, err)
	}
	return refused
}

// sendDatagrams is the helper of send.
func sendDatagrams(args []string) error {
	calls, err1 := strconv.Atoi(args[1])
	each, err2 := strconv.Atoi(args[2])
	c, err3 := net.Dial("udp", args[0])
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	raw, err := c.(*net.UDPConn).SyscallConn()
	if err != nil {
		return err
	}
	refused, buffer := 0, make([]byte, each*datagramSize)
	var err4, err5 error
	err = raw.Control(func(fd uintptr) {
		// A non-blocking socket would report its own full buffer as an error.
		err4 = unix.SetNonblock(int(fd), false)
		if each > 1 {
			err5 = unix.SetsockoptInt(int(fd), unix.SOL_UDP, unix.UDP_SEGMENT, datagramSize)
		}
		for range calls {
			if _, err := unix.Write(int(fd), buffer); err != nil {
				refused++
			}
		}
	})
	fmt.Println(refused)
	return errors.Join(err, err4, err5)
}

// receiver is a process with a UDP socket.
type receiver struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.Closer
	lines *bufio.Scanner
}

// receive opens a UDP socket in a host. It reads either at once or only at the end.
func receive(t *testing.T, h *Host, addr string, reads bool) *receiver {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*programTimeout)
	t.Cleanup(cancel)
	how := "holds"
	if reads {
		how = "reads"
	}
	r := &receiver{t: t, cmd: helper(t, ctx, h, "receive", addr, how)}
	stdin, err1 := r.cmd.StdinPipe()
	stdout, err2 := r.cmd.StdoutPipe()
	r.stdin, r.lines, r.cmd.Stderr = stdin, bufio.NewScanner(stdout), os.Stderr
	if err := errors.Join(err1, err2, r.cmd.Start()); err != nil {
		t.Fatal(err)
	}
	if !r.lines.Scan() {
		t.Fatalf("the receiver in %s did not begin", h.Name)
	}
	return r
}

// stop ends the receiver and returns how many datagrams it received, with those that waited in the socket.
func (r *receiver) stop() int {
	r.t.Helper()
	err := r.stdin.Close()
	if !r.lines.Scan() {
		r.t.Fatal("the receiver said nothing")
	}
	n, err2 := strconv.Atoi(r.lines.Text())
	if err := errors.Join(err, err2, r.cmd.Wait()); err != nil {
		r.t.Fatal(err)
	}
	return n
}

// receiveDatagrams is the helper of receive. It ends when its standard input closes.
func receiveDatagrams(addr string, reads bool) error {
	c, err := net.ListenPacket("udp", addr)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	end := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = c.SetReadDeadline(time.Now().Add(200 * time.Millisecond)) // reads what is in the socket without waiting
		close(end)
	}()
	if !reads {
		<-end
	}
	n, b := 0, make([]byte, 1<<16)
	for ; err == nil; n++ {
		_, _, err = c.ReadFrom(b)
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	fmt.Println(n - 1)
	return nil
}
