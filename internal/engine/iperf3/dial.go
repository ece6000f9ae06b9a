package iperf3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"thru/internal/engine/worker"
	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/sock"
)

// Bounds of connecting, and of how often the first datagram is sent.
const (
	dialTime   = 4 * time.Second
	dialBudget = 8 * time.Second
	helloTries = 4
)

// datagramBuffer is asked for where the user asks for none, since a datagram
// that finds its receiver's buffer full is lost; the kernel gives what it allows.
const datagramBuffer = 4 << 20

// options are what this end asks of a data socket that sends, or receives.
func options(s measure.Spec, sends bool) sock.Options {
	window := s.Window.Recv
	if sends {
		window = s.Window.Send
	}
	o := sock.Options{SendBuffer: window, RecvBuffer: window, DSCP: s.DSCP}
	if s.Protocol == measure.TCP {
		o.Congestion, o.MSS = s.Congestion, s.MSS
		return o
	}
	o.DontFragment = s.DontFragment
	if window == 0 {
		o.SendBuffer, o.RecvBuffer = datagramBuffer, datagramBuffer
	}
	return o
}

// dialer opens connections from where the user wants them to come.
func dialer(s measure.Spec, o sock.Options, port int) (*net.Dialer, error) {
	o.Device, o.ReuseAddr = s.BindDev, port != 0 && s.Protocol == measure.TCP
	d := &net.Dialer{Timeout: dialTime, Control: o.Control}
	d.SetMultipathTCP(false)
	if s.BindAddr == "" && port == 0 {
		return d, nil
	}
	local := &net.TCPAddr{Port: port}
	if s.BindAddr != "" {
		ip, err := netip.ParseAddr(s.BindAddr)
		if err != nil {
			return nil, fault.Usagef("-B wants an address of this host, such as 10.0.0.1", "iperf3: binding to %q: %w", s.BindAddr, err)
		}
		local.IP, local.Zone = ip.AsSlice(), ip.Zone()
	}
	d.LocalAddr = local
	return d, nil
}

// network is the name that package net has for a protocol and a family.
func network(protocol string, family int) string {
	switch family {
	case 4:
		return protocol + "4"
	case 6:
		return protocol + "6"
	}
	return protocol
}

// dialControl opens the control connection to the first target that answers
// as a server does, and says what it tried in vain.
func (e Engine) dialControl(ctx context.Context, s measure.Spec, targets []string, c cookie) (t talk, skipped []string, err error) {
	d, err := dialer(s, sock.Options{}, 0)
	if err != nil {
		return t, nil, err
	}
	for _, target := range targets {
		try, cancel := context.WithTimeout(ctx, min(dialTime, dialBudget/time.Duration(len(targets))))
		conn, err := d.DialContext(try, network("tcp", s.Family), target)
		cancel()
		switch {
		case err == nil:
			t = talk{conn, e.waits().word}
			if err := t.greet(ctx, c); err != nil {
				conn.Close()
				return t, skipped, fmt.Errorf("%s: %w", target, err)
			}
			return t, skipped, nil
		case fault.Hint(err) != "": // our own options: another target would fail alike
			return t, skipped, err
		case errors.Is(err, syscall.EADDRNOTAVAIL):
			return t, skipped, fault.Failf("-B wants an address of this host; see `ip addr`", "iperf3: dialling: %w", err)
		}
		skipped = append(skipped, fmt.Sprintf("%s: %v", target, err))
	}
	return t, skipped, fault.Failf("start one there (iperf3 -s, or thru serve --iperf), and let its port through the firewall: TCP and, for -u, UDP",
		"iperf3: no server answers: %s", strings.Join(skipped, "; "))
}

// greet sends the cookie and waits until the server asks for the parameters.
func (t talk) greet(ctx context.Context, c cookie) error {
	defer hurry(ctx, t.conn)()
	if err := t.write(c[:]); err != nil {
		return err
	}
	s, err := t.hear(t.wait)
	switch {
	case isLate(err):
		return fault.Failf("it is no iperf3 server, or one that is just being set up by another client: "+notHint, "iperf3: connected, but the server says nothing")
	case err != nil:
		return fault.Failf(notHint, "iperf3: the server closes the connection at once: %w", err)
	case s == accessDenied:
		return fault.Failf(busyHint, "iperf3: the server is busy with another test")
	case s == serverError:
		return t.hearError()
	case s != paramExchange:
		return fault.Failf(notHint, "iperf3: what answers there is no iperf3 server: it says %q", t.rest(s))
	}
	return nil
}

// rest is what something that is no server has said, to be shown.
func (t talk) rest(first state) string {
	const show = 40
	b := make([]byte, show)
	b[0] = byte(first)
	t.conn.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
	n, _ := io.ReadFull(t.conn, b[1:])
	line, _, _ := strings.Cut(string(b[:n+1]), "\r\n")
	return line
}

// idleRTT is what the kernel has seen of the control connection's round trips.
func idleRTT(c net.Conn) *measure.RTT {
	info := measure.TCPInfo{}
	control(c, func(fd uintptr) {
		var b [sock.TCPInfoSize]byte
		info = sock.ParseTCPInfo(b[:sock.ReadTCPInfo(fd, b[:])])
	})
	if info.RTTUs == nil {
		return nil
	}
	smooth := int64(*info.RTTUs) * 1000
	r := &measure.RTT{Min: smooth, Median: smooth, Max: smooth, Samples: 1}
	if info.MinRTTUs != nil {
		r.Min = min(int64(*info.MinRTTUs)*1000, smooth)
	}
	return r
}

// control gives f the descriptor of a connection.
func control(c any, f func(fd uintptr)) error {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return fmt.Errorf("iperf3: reaching a socket: %w", errors.ErrUnsupported)
	}
	raw, err := sc.SyscallConn()
	if err == nil {
		err = raw.Control(f)
	}
	if err != nil {
		return fmt.Errorf("iperf3: reaching a socket: %w", err)
	}
	return nil
}

// datagramLength fits the path's MTU without being split; on paths of no usual
// MTU, such as loopback, that of Ethernet.
func datagramLength(c net.Conn) int64 {
	const ethernet, jumbo = 1500, 9216
	mtu := 0
	control(c, func(fd uintptr) { mtu = pathMTU(fd) })
	headers := 20 + 8
	if a, ok := c.RemoteAddr().(*net.TCPAddr); ok && a.IP.To4() == nil {
		headers = 40 + 8
	}
	if mtu <= headers || mtu > jumbo {
		mtu = ethernet
	}
	return int64(mtu - headers)
}

// streams opens the data connections one after the other, as the server counts
// them: those on which this end sends come first. started is closed when the
// server has all of them.
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
				err = fault.Failf("TCP to this port works, UDP does not pass: let UDP of the same port through the firewalls, both ways",
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

// ownFirst puts the flow's own direction first: this end's senders were opened first.
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

// stream opens data connection i. answered is false for a UDP stream of which
// the server said nothing: its word may have been lost, or ours.
func (c *client) stream(ctx context.Context, i int, sends bool, started <-chan struct{}) (conn net.Conn, answered bool, err error) {
	s, port := c.end.Spec, 0
	if s.BindPort != 0 {
		port = s.BindPort + i
	}
	d, err := dialer(s, options(s, sends), port)
	if err != nil {
		return nil, false, err
	}
	if local, ok := d.LocalAddr.(*net.TCPAddr); ok && s.Protocol == measure.UDP {
		d.LocalAddr = &net.UDPAddr{IP: local.IP, Port: local.Port, Zone: local.Zone}
	}
	// To the very address that the control connection has reached.
	conn, err = d.DialContext(ctx, network(s.Protocol, s.Family), c.talk.conn.RemoteAddr().String())
	if err != nil {
		return nil, false, dialHint(err)
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

// dialHint explains the refusals that come from this end's own settings.
func dialHint(err error) error {
	if errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EADDRINUSE) {
		return fault.Failf("the kernel remembers connections with a source port for a minute: wait, or choose another --cport", "iperf3: dialling: %w", err)
	}
	return err
}

// helloDatagram sends the first word of a UDP stream until it is answered, or
// the server goes on, which it does when it has all streams.
func (c *client) helloDatagram(ctx context.Context, u *net.UDPConn, started <-chan struct{}) (answered bool, err error) {
	defer u.SetReadDeadline(time.Time{})
	var b [64]byte
	for range helloTries {
		if _, err := u.Write([]byte(helloAsk)); err != nil && !errors.Is(err, syscall.ECONNREFUSED) {
			return false, fmt.Errorf("iperf3: greeting by UDP: %w", err)
		}
		for again := time.Now().Add(c.wait.hello); time.Now().Before(again); {
			u.SetReadDeadline(time.Now().Add(min(c.wait.hello, 50*time.Millisecond)))
			n, err := u.Read(b[:])
			switch {
			case err == nil && isAnswer(b[:n]):
				return true, nil
			case errors.Is(err, syscall.ECONNREFUSED):
				time.Sleep(min(c.wait.hello, 50*time.Millisecond)) // its socket is just being opened
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
