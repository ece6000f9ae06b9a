package iperf3

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"time"

	"thru/internal/engine"
	"thru/internal/engine/worker"
	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/sock"
)

// Limits of connecting, and of the tries to send the first datagram.
const (
	dialBudget = 8 * time.Second
	helloTries = 4
)

// dialControl opens the control connection to the first target that answers as an iperf3 server, and returns the targets that failed.
func (e Engine) dialControl(ctx context.Context, s measure.Spec, targets []string, c cookie) (t talk, skipped []string, err error) {
	d, err := engine.Dialer(s, measure.TCP, sock.Options{Arrivals: true}, 0, engine.DialTime)
	if err != nil {
		return t, nil, fault.Because(ReasonNoName, err)
	}
	var last error
	for _, target := range targets {
		try, cancel := context.WithTimeout(ctx, min(engine.DialTime, dialBudget/time.Duration(len(targets))))
		conn, err := d.DialContext(try, engine.Network("tcp", s.Family), target)
		err = connecting(engine.DialHint(s, err))
		cancel()
		switch {
		case err == nil:
			t = talk{conn, e.waits().word}
			if err := t.greet(ctx, c); err != nil {
				conn.Close()
				return t, skipped, fmt.Errorf("%s: %w", target, err)
			}
			return t, skipped, nil
		case fault.Hint(err) != "": // caused by our own options: another target would fail the same way
			return t, skipped, err
		}
		skipped, last = append(skipped, fmt.Sprintf("%s: %v", target, err)), err
	}
	const start = "start one there (iperf3 -s, or thru serve --iperf), and allow its port in the firewall: TCP and, for -u, UDP"
	return t, skipped, fault.Because(fault.ReasonOf(last), fault.Failf(sock.LookupHint(last, start),
		"iperf3: no server answers: %s", strings.Join(skipped, "; ")))
}

// greet sends the cookie and waits until the server requests the parameters.
func (t talk) greet(ctx context.Context, c cookie) error {
	defer hurry(ctx, t.conn)()
	if err := t.write(c[:]); err != nil {
		return err
	}
	s, err := t.hear(t.wait)
	switch {
	case isLate(err):
		return fault.Failf("try again if another client is starting a test; if not, "+notHint, "iperf3: connected, but the server sends nothing")
	case err != nil:
		return fault.Failf(notHint, "iperf3: the server closed the connection at once: %w", err)
	case s == accessDenied:
		return errBusy()
	case s == serverError:
		return t.hearError(false) // old servers have no login yet
	case s != paramExchange:
		return fault.Failf(notHint, "iperf3: not an iperf3 server: it sent %q", t.rest(s))
	}
	return nil
}

// rest returns the first bytes from a peer that is no iperf3 server, for the error message.
func (t talk) rest(first state) string {
	const show = 40
	b := make([]byte, show)
	b[0] = byte(first)
	t.conn.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
	n, _ := io.ReadFull(t.conn, b[1:])
	line, _, _ := strings.Cut(string(b[:n+1]), "\r\n")
	return line
}

// datagramLength returns the largest payload that fits the path MTU unfragmented; where that is not known, the MTU of Ethernet.
func datagramLength(c net.Conn) int64 {
	return cmp.Or(sock.DatagramRoom(c), 1500-int64(sock.UDPHeaders(c.RemoteAddr())))
}

// streams opens the data connections one after the other, in the order in which the server counts them: those on which this end sends come first. started is
// closed when the server has all of them.
func (c *client) streams(ctx context.Context, started <-chan struct{}) ([]worker.Conn, error) {
	s, n := c.end.Spec, c.end.Spec.Streams
	if s.Duplex {
		n *= 2
	}
	conns := make([]worker.Conn, 0, n)
	missed := 0
	for i := range n {
		sends := c.end.Sends
		if s.Duplex {
			sends = i < s.Streams
		}
		conn, answered, err := c.stream(ctx, i, sends, started)
		if err == nil && !answered {
			if missed++; missed == n || missed > 2 {
				conn.Close()
				err = fault.Failf("allow UDP of the same port in the firewalls, in both directions: TCP to this port works, UDP does not",
					"iperf3: no answer by UDP from %s", conn.RemoteAddr())
			}
		}
		if err != nil {
			closeAll(conns)
			return nil, fmt.Errorf("iperf3: opening stream %d of %d: %w", i+1, n, err)
		}
		conns = append(conns, worker.Conn{Conn: conn})
	}
	return c.ownFirst(conns), nil
}

// ownFirst moves the flow's own direction to the front: this end opened its sending streams first.
func (c *client) ownFirst(conns []worker.Conn) []worker.Conn {
	if n := c.end.Spec.Streams; c.end.Spec.Duplex && !c.end.Sends {
		return append(conns[n:len(conns):len(conns)], conns[:n]...)
	}
	return conns
}

func closeAll(conns []worker.Conn) {
	for _, c := range conns {
		c.Conn.Close()
	}
}

// stream opens data connection i. answered is false for a UDP stream without an answer from the server: the answer may be lost, or our datagram.
func (c *client) stream(ctx context.Context, i int, sends bool, started <-chan struct{}) (conn net.Conn, answered bool, err error) {
	s := c.end.Spec
	// Dial the very address that the control connection has reached.
	conn, err = engine.Dial(ctx, s, s.Protocol, engine.SocketOptions(s, s.Protocol, sends), i, c.talk.conn.RemoteAddr().String())
	if err != nil {
		return nil, false, fmt.Errorf("iperf3: opening stream %d: %w", i+1, connecting(err))
	}
	if u, ok := conn.(*net.UDPConn); ok {
		answered, err = c.helloDatagram(ctx, u, started)
	} else {
		conn.SetWriteDeadline(time.Now().Add(c.wait.word))
		_, err = conn.Write(c.cookie[:])
		conn.SetWriteDeadline(time.Time{})
		answered = true
	}
	if err != nil {
		conn.Close()
		return nil, false, err
	}
	return conn, answered, nil
}

// helloDatagram sends the first datagram of a UDP stream until the server answers or continues, which it does when it has all streams.
func (c *client) helloDatagram(ctx context.Context, u *net.UDPConn, started <-chan struct{}) (answered bool, err error) {
	defer u.SetReadDeadline(time.Time{})
	var b [64]byte
	for range helloTries {
		if _, err := u.Write([]byte(helloAsk)); err != nil && !sock.Is(err, syscall.ECONNREFUSED) {
			return false, fmt.Errorf("iperf3: greeting by UDP: %w", err)
		}
		for again := time.Now().Add(c.wait.hello); time.Now().Before(again); {
			u.SetReadDeadline(time.Now().Add(min(c.wait.hello, 50*time.Millisecond)))
			n, err := u.Read(b[:])
			switch {
			case err == nil && isAnswer(b[:n]):
				return true, nil
			case sock.Is(err, syscall.ECONNREFUSED):
				time.Sleep(min(c.wait.hello, 50*time.Millisecond)) // the server is about to open its socket
			}
			select {
			case <-started:
				return true, nil
			case <-c.lost:
				return false, c.reason()
			case <-ctx.Done():
				return false, context.Cause(ctx)
			default:
			}
		}
	}
	return false, nil
}
