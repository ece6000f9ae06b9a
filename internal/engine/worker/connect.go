package worker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"thru/internal/engine"
	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/sock"
)

// handshakeTime limits the wait for one message of the handshake.
const handshakeTime = 5 * time.Second

// dialBudget limits the time to connect to all targets together.
const dialBudget = 8 * time.Second

// options returns the options of this end's TCP sockets.
func (c openCommand) options() sock.Options {
	o := engine.SocketOptions(c.Spec, measure.TCP, c.Sends)
	o.Device = c.Device
	return o
}

// datagramOptions returns the options of this end's UDP sockets, several of which share a port at the listening end.
func (c openCommand) datagramOptions() sock.Options {
	o := engine.SocketOptions(c.Spec, measure.UDP, c.Sends)
	o.Device, o.ReuseAddr = c.Device, true
	return o
}

// tcpConns returns how many TCP connections the handshake makes: one for each stream, and for UDP, two-way and CRR traffic one side connection.
func (c openCommand) tcpConns() int {
	switch {
	case c.Spec.Protocol == measure.UDP, c.Spec.Traffic == measure.CRR:
		return 1
	case c.Spec.Duplex, c.Spec.Traffic == measure.RR:
		return c.Spec.Streams + 1
	default:
		return c.Spec.Streams
	}
}

// hasSide reports whether the last TCP connection is the side connection.
func (c openCommand) hasSide() bool {
	return c.Adopt == nil && (c.Spec.Protocol == measure.UDP || c.Spec.Traffic != measure.Bulk || c.Spec.Duplex)
}

// link holds the connections that the handshake has made.
type link struct {
	tcp       []*net.TCPConn
	udp       []*net.UDPConn
	listeners []net.Listener // at an end that continues to accept
	early     []Early        // of adopted connections
	targets   []string       // addresses that answered the dialling end
	skipped   []string
}

func (l *link) close() {
	engine.CloseAll(l.tcp)
	engine.CloseAll(l.udp)
	engine.CloseAll(l.listeners)
}

// ports are the sockets on which the listening end waits: TCP, and UDP with the same number where the streams are UDP.
type ports struct {
	tcp  []net.Listener
	udp  []*net.UDPConn
	port int
}

func (p *ports) close() {
	engine.CloseAll(p.tcp)
	engine.CloseAll(p.udp)
}

// listen opens the first free port of the range, on all requested addresses. It sets options before, so that the SYN-ACK carries them. It starts where the
// last session ended, so that the same pair of ports is not reused while the kernel still remembers its connection.
func listen(ctx context.Context, c openCommand) (p *ports, err error) {
	at := sock.Range{Addrs: c.Addrs, First: c.First, Last: c.Last, Offset: c.Offset}
	err = at.Try(func(port int) error {
		p, err = listenOn(ctx, c, at, port)
		return err
	})
	return p, err
}

// listenOn opens one port for TCP and, where the streams are UDP, also for UDP.
func listenOn(ctx context.Context, c openCommand, at sock.Range, port int) (*ports, error) {
	p := &ports{}
	var err error
	if p.tcp, err = at.ListenAt(ctx, engine.Network("tcp", c.Spec.Family), port, c.options().Control); err != nil {
		return nil, err
	}
	p.port = p.tcp[0].Addr().(*net.TCPAddr).Port
	if c.Spec.Protocol != measure.UDP {
		return p, nil
	}
	uc := net.ListenConfig{Control: c.datagramOptions().Control}
	for _, a := range at.Hosts() {
		u, err := uc.ListenPacket(ctx, engine.Network("udp", c.Spec.Family), net.JoinHostPort(a, strconv.Itoa(p.port)))
		if err != nil {
			p.close()
			return nil, err
		}
		p.udp = append(p.udp, u.(*net.UDPConn))
	}
	return p, nil
}

// greeted is a connection that has presented the token.
type greeted struct {
	conn  *net.TCPConn
	index int
}

// accept collects one connection for each stream. The token keeps strangers out; a connection that stalls in the handshake delays no other.
func accept(ctx context.Context, c openCommand, ls []net.Listener) ([]*net.TCPConn, error) {
	ctx, cancel := context.WithCancel(ctx)
	wake := func() { deadlines(ls, time.Unix(1, 0)) }
	stop := context.AfterFunc(ctx, wake)
	found := make(chan greeted)
	var wg sync.WaitGroup
	defer func() {
		stop() // first: the wake-up must not run after the listeners wait again
		cancel()
		wake()
		wg.Wait()
		deadlines(ls, time.Time{})
	}()
	for _, l := range ls {
		wg.Go(func() { greetAll(ctx, c, l, found, &wg) })
	}
	conns := make([]*net.TCPConn, c.tcpConns())
	for left := len(conns); left > 0; {
		select {
		case g := <-found:
			if conns[g.index] == nil {
				left--
			} else {
				conns[g.index].Close() // the dialling end has tried again
			}
			conns[g.index] = g.conn
		case <-ctx.Done():
			engine.CloseAll(conns)
			return nil, fault.Failf("check for a proxy or firewall between the hosts, and whether the peer still runs",
				"worker: waiting for data connections: %d of %d arrived in time", len(conns)-left, len(conns))
		}
	}
	return conns, nil
}

// deadlines interrupts the wait of listeners that stay open, or lets them wait again.
func deadlines(ls []net.Listener, at time.Time) {
	for _, l := range ls {
		l.(*net.TCPListener).SetDeadline(at)
	}
}

// greetAll accepts connections of one listener until it is closed.
func greetAll(ctx context.Context, c openCommand, l net.Listener, found chan<- greeted, wg *sync.WaitGroup) {
	for {
		conn, err := l.Accept()
		switch {
		case errors.Is(err, net.ErrClosed), errors.Is(err, os.ErrDeadlineExceeded):
			return
		case err != nil: // no descriptors left, or reset already: the next one may work
			sleepThread(pollEvery)
			continue
		}
		wg.Go(func() {
			tc := conn.(*net.TCPConn)
			hurry := context.AfterFunc(ctx, func() { tc.Close() })
			index, err := greet(tc, c.Token, c.tcpConns())
			if err != nil || !hurry() {
				tc.Close()
				return
			}
			select {
			case found <- greeted{tc, index}:
			case <-ctx.Done():
				tc.Close()
			}
		})
	}
}

// dial opens one connection for each stream to the first target that answers.
func dial(ctx context.Context, c openCommand) (*link, error) {
	if len(c.Targets) == 0 {
		return nil, fault.Failf("", "worker: dialling: no target address")
	}
	l := &link{}
	each := min(engine.DialTime, dialBudget/time.Duration(len(c.Targets)))
	for _, target := range c.Targets {
		try, cancel := context.WithTimeout(ctx, each)
		first, err := dialStream(try, c, target, 0)
		cancel()
		if err != nil {
			if fatalDial(err) {
				return nil, err
			}
			l.skipped = append(l.skipped, fmt.Sprintf("%s: %v", target, err))
			continue
		}
		l.targets = []string{target}
		if l.tcp, err = dialRest(ctx, c, target, first); err != nil {
			return nil, err
		}
		if c.Spec.Protocol == measure.UDP {
			err = l.dialDatagrams(ctx, c, target)
		}
		if err != nil {
			l.close()
			return nil, err
		}
		return l, nil
	}
	return nil, unreachable(c, l.skipped)
}

// fatalDial reports whether our own options cause the error, not the path: then another target would fail the same way.
func fatalDial(err error) bool {
	return fault.Hint(err) != ""
}

// unreachable names the ports in its error, because a firewall on the path is the usual cause.
func unreachable(c openCommand, skipped []string) error {
	ports := "the data ports"
	if c.PeerFirst > 0 {
		ports = fmt.Sprintf("TCP ports %d-%d", c.PeerFirst, c.PeerLast)
	}
	if f := c.Spec.Family; f != 0 && !slices.ContainsFunc(c.Targets, func(t string) bool { return isFamily(t, f) }) {
		return fault.Failf(fmt.Sprintf("omit -%[1]d, or give an IPv%[1]d address of that host: thru serve --data-addr ADDRESS", f),
			"worker: no data connection: none of the end point's data addresses is IPv%d: %s", f, strings.Join(c.Targets, " "))
	}
	return fault.Failf("allow "+ports+" of the end point in the firewalls (the control connection works), or use others: thru serve --data-ports FIRST-LAST",
		"worker: no data connection: %s", strings.Join(skipped, "; "))
}

// isFamily reports whether HOST:PORT is an address of that IP version; a name may be.
func isFamily(target string, family int) bool {
	addr, err := netip.ParseAddrPort(target)
	return err != nil || addr.Addr().Unmap().Is4() == (family == 4)
}

func dialRest(ctx context.Context, c openCommand, target string, first *net.TCPConn) ([]*net.TCPConn, error) {
	n := c.tcpConns()
	conns, errs := make([]*net.TCPConn, n), make([]error, n)
	conns[0] = first
	var wg sync.WaitGroup
	for i := 1; i < n; i++ {
		wg.Go(func() { conns[i], errs[i] = dialStream(ctx, c, target, i) })
	}
	wg.Wait()
	if i := slices.IndexFunc(errs, func(e error) bool { return e != nil }); i >= 0 {
		engine.CloseAll(conns)
		return nil, fmt.Errorf("worker: opening stream %d of %d to %s: %w", i+1, n, target, errs[i])
	}
	return conns, nil
}

// dialStream connects one stream and exchanges tokens on it.
func dialStream(ctx context.Context, c openCommand, target string, index int) (*net.TCPConn, error) {
	conn, err := engine.Dial(ctx, c.Spec, measure.TCP, c.options(), index, target)
	if err != nil {
		return nil, err
	}
	tc := conn.(*net.TCPConn)
	if err := introduce(ctx, tc, c.Token, index); err != nil {
		tc.Close()
		return nil, err
	}
	return tc, nil
}
