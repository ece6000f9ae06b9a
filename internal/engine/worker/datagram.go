package worker

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"thru/internal/engine"
	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/sock"
	"thru/internal/token"
)

// The handshake of a UDP stream follows that of the TCP side connection, on the port of the same number. The dialling end greets as on TCP, with room for a
// number; the listening end answers with its proof and a random number; the dialling end returns that number. So the listening end, too, sends traffic only to
// an address that has just answered from there. No message is longer than the one that it answers.
const (
	numberBytes = 8   // of the random number
	mostHello   = 128 // bytes of the largest handshake message, with room to spare
	helloAgain  = 100 * time.Millisecond
	confirmTime = 2 * time.Second
	helloTime   = 6 * time.Second
)

// datagramHeader is the header of every datagram: its number in the stream and the time at which it was sent, in nanoseconds since the stream began, both
// big-endian.
const datagramHeader = 16

// safeDatagram fits a link of MTU 1500 with IPv4.
const safeDatagram = 1500 - 28

// dialDatagrams opens the UDP streams to the target that TCP has reached.
func (l *link) dialDatagrams(ctx context.Context, c openCommand, target string) error {
	l.udp = make([]*net.UDPConn, c.Spec.Streams)
	errs := make([]error, c.Spec.Streams)
	var wg sync.WaitGroup
	for i := range l.udp {
		wg.Go(func() { l.udp[i], errs[i] = dialDatagram(ctx, c, target, i) })
	}
	wg.Wait()
	return cmp.Or(errs...) // the other errors are the same
}

// dialDatagram opens one UDP stream and confirms it.
func dialDatagram(ctx context.Context, c openCommand, target string, index int) (*net.UDPConn, error) {
	conn, err := engine.Dial(ctx, c.Spec, measure.UDP, c.datagramOptions(), index, target)
	if err != nil {
		return nil, fmt.Errorf("worker: opening UDP stream %d to %s: %w", index+1, target, err)
	}
	u := conn.(*net.UDPConn)
	if err := introduceDatagrams(u, c, index); err != nil {
		u.Close()
		return nil, err
	}
	return u, nil
}

// introduceDatagrams is the dialling end's side of the handshake.
func introduceDatagrams(u *net.UDPConn, c openCommand, index int) error {
	t, err := token.Parse(c.Token)
	if err != nil {
		return err
	}
	hello, answer := t.Greeting(token.Datagram, indexBytes(index))
	hello = append(hello, make([]byte, numberBytes)...)
	defer u.SetDeadline(time.Time{})
	var got [mostHello]byte
	for end := time.Now().Add(helloTime); time.Now().Before(end); {
		if _, err := u.Write(hello); err != nil && !sock.Is(err, syscall.ECONNREFUSED) {
			return fmt.Errorf("worker: greeting %s by UDP: %w", u.RemoteAddr(), err)
		}
		u.SetReadDeadline(time.Now().Add(helloAgain))
		n, err := u.Read(got[:])
		switch {
		case sock.Is(err, syscall.ECONNREFUSED):
			sleepThread(helloAgain)
		case err != nil:
			continue
		case n == len(answer)+numberBytes && subtle.ConstantTimeCompare(got[:len(answer)], answer) == 1:
			// The confirmation is the hello with the number in its last bytes.
			copy(hello[len(hello)-numberBytes:], got[len(answer):n])
			return confirm(u, hello)
		}
	}
	ports := "the UDP port of the same number"
	if c.PeerFirst > 0 {
		ports = fmt.Sprintf("UDP ports %d-%d of the end point", c.PeerFirst, c.PeerLast)
	}
	return fault.Failf("allow "+ports+" in the firewalls, in both directions: TCP to this port works, UDP does not",
		"worker: no answer by UDP from %s", u.RemoteAddr())
}

// confirm returns the number until the listening end confirms it. That confirmation may be lost: then the side connection shows whether the test continues.
func confirm(u *net.UDPConn, hello []byte) error {
	var got [mostHello]byte
	for end := time.Now().Add(confirmTime); time.Now().Before(end); {
		if _, err := u.Write(hello); err != nil && !sock.Is(err, syscall.ECONNREFUSED) {
			return fmt.Errorf("worker: greeting %s by UDP: %w", u.RemoteAddr(), err)
		}
		u.SetReadDeadline(time.Now().Add(helloAgain))
		if n, err := u.Read(got[:]); err == nil && n == numberBytes && bytes.Equal(got[:n], hello[len(hello)-numberBytes:]) {
			return nil
		}
	}
	return nil
}

// acceptDatagrams is the listening end's side: one connected socket for each stream.
func (l *link) acceptDatagrams(ctx context.Context, c openCommand, p *ports) error {
	l.udp = make([]*net.UDPConn, c.Spec.Streams)
	ctx, cancel := context.WithCancel(ctx)
	a := &datagramAcceptor{cmd: c, local: l.tcp[0].LocalAddr(), conns: l.udp, left: c.Spec.Streams, done: cancel, known: map[netip.AddrPort]bool{}}
	var wg sync.WaitGroup
	for _, u := range p.udp {
		stop := context.AfterFunc(ctx, func() { u.SetDeadline(time.Unix(1, 0)) })
		defer stop()
		wg.Go(func() { a.listen(u, &wg) })
	}
	wg.Wait()
	if a.left > 0 {
		return fault.Failf(fmt.Sprintf("allow UDP ports %d-%d of this host in the firewall: TCP connections arrived, datagrams did not", c.First, c.Last),
			"worker: waiting for datagrams: %d of %d streams arrived in time", c.Spec.Streams-a.left, c.Spec.Streams)
	}
	return nil
}

// datagramAcceptor accepts the greetings of UDP streams.
type datagramAcceptor struct {
	cmd   openCommand
	local net.Addr
	done  context.CancelFunc

	mu    sync.Mutex
	known map[netip.AddrPort]bool
	conns []*net.UDPConn
	left  int
}

// listen answers greetings until every stream is connected or the time is over.
func (a *datagramAcceptor) listen(u *net.UDPConn, wg *sync.WaitGroup) {
	own, err := token.Parse(a.cmd.Token)
	if err != nil {
		return
	}
	var b [mostHello]byte
	for {
		n, from, err := u.ReadFromUDPAddrPort(b[:])
		if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, net.ErrClosed) {
			return
		}
		index, answer, ok := readHello(b[:n], own, a.cmd.Spec.Streams)
		if err != nil || !ok || !a.know(from, true) {
			continue
		}
		conn, err := a.connect(from)
		if err != nil {
			a.know(from, false)
			continue
		}
		first := bytes.Clone(b[:n])
		wg.Go(func() {
			if !a.greet(conn, index, first, answer) {
				conn.Close()
				a.know(from, false)
			}
		})
	}
}

// know adds or removes an address that is being greeted. It returns false where nothing changes, or where there are more than a test can have.
func (a *datagramAcceptor) know(from netip.AddrPort, yes bool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !yes {
		delete(a.known, from)
		return true
	}
	if a.known[from] || len(a.known) >= 2*a.cmd.Spec.Streams {
		return false
	}
	a.known[from] = true
	return true
}

// readHello reads a greeting, and returns the answer.
func readHello(b []byte, own token.Token, streams int) (index int, answer []byte, ok bool) {
	r := bytes.NewReader(b)
	more, answer, err := own.Hear(r, token.Datagram, indexSize)
	if err != nil || r.Len() != numberBytes {
		return 0, nil, false
	}
	index = int(binary.BigEndian.Uint16(more))
	return index, answer, index < streams
}

// connect opens a socket on the same port for one peer: the kernel delivers the peer's datagrams to the connected socket.
func (a *datagramAcceptor) connect(from netip.AddrPort) (*net.UDPConn, error) {
	local := a.local.(*net.TCPAddr)
	d := net.Dialer{Control: a.cmd.datagramOptions().Control, LocalAddr: &net.UDPAddr{IP: local.IP, Port: local.Port, Zone: local.Zone}}
	conn, err := d.Dial("udp", from.String())
	if err != nil {
		return nil, fmt.Errorf("worker: opening a socket for %s: %w", from, err)
	}
	return conn.(*net.UDPConn), nil
}

// greet answers one peer until it returns the number; false where it does not.
func (a *datagramAcceptor) greet(u *net.UDPConn, index int, hello, answer []byte) bool {
	var number [numberBytes]byte
	rand.Read(number[:])
	reply := append(bytes.Clone(answer), number[:]...)
	var b [mostHello]byte
	u.SetReadDeadline(time.Now().Add(2 * helloTime))
	defer u.SetReadDeadline(time.Time{})
	got := hello
	for {
		if bytes.HasPrefix(got, hello[:len(hello)-numberBytes]) && bytes.Equal(got[len(got)-numberBytes:], number[:]) {
			for range 3 { // they may be lost, and nothing answers later
				u.Write(number[:])
			}
			return a.add(u, index)
		}
		if len(got) == len(hello) {
			u.Write(reply)
		}
		n, err := u.Read(b[:])
		if err != nil && !sock.Is(err, syscall.ECONNREFUSED) {
			return false
		}
		got = b[:n]
	}
}

// add stores a stream; false where it exists already.
func (a *datagramAcceptor) add(u *net.UDPConn, index int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.conns[index] != nil {
		return false
	}
	a.conns[index] = u
	if a.left--; a.left == 0 {
		a.done()
	}
	return true
}
