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
	"syscall"
	"time"

	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/sock"
)

// handshakeTime bounds what a peer may take for one message of the handshake.
const handshakeTime = 5 * time.Second

// dialTime bounds one connect, dialBudget all targets together: a SYN that is
// sent again after 1 and 3 s fits in where there is one target.
const (
	dialTime   = 4 * time.Second
	dialBudget = 8 * time.Second
)

// options are what this end asks of each socket. As in iperf3, -w sets both
// buffers of an end.
func (c openCommand) options() sock.Options {
	window := c.Spec.Window.Recv
	if c.Sends {
		window = c.Spec.Window.Send
	}
	o := sock.Options{
		SendBuffer: window, RecvBuffer: window,
		Congestion: c.Spec.Congestion, MSS: c.Spec.MSS, DSCP: c.Spec.DSCP, Device: c.Device,
	}
	if c.Dials {
		o.Device = c.Spec.BindDev
		o.ReuseAddr = c.Spec.BindPort != 0
	}
	return o
}

// datagramBuffer is asked for where the user asks for none, since a datagram
// that finds its receiver's buffer full is lost; the kernel gives what it allows.
const datagramBuffer = 4 << 20

// datagramOptions are what this end asks of a UDP socket, several of which
// share a port at the end that listens.
func (c openCommand) datagramOptions() sock.Options {
	o := c.options()
	o.Congestion, o.MSS = "", 0
	if !c.Dials { // at the dialling end the kernel would give one port to two streams
		o.ReuseAddr = true
	}
	if o.RecvBuffer == 0 {
		o.SendBuffer, o.RecvBuffer = datagramBuffer, datagramBuffer
	}
	o.DontFragment = c.Spec.DontFragment
	return o
}

// tcpConns is how many TCP connections the handshake makes: one for each
// stream, and where they are UDP, two-way or come and go, one beside them.
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

// hasSide tells whether the last TCP connection is the one beside the streams.
func (c openCommand) hasSide() bool {
	return c.Adopt == nil && (c.Spec.Protocol == measure.UDP || c.Spec.Traffic != measure.Bulk || c.Spec.Duplex)
}

// link is what the handshake has connected.
type link struct {
	tcp       []*net.TCPConn
	udp       []*net.UDPConn
	listeners []net.Listener // at an end that goes on accepting
	early     []Early        // of adopted connections
	targets   []string       // where the dialling end was answered
	skipped   []string
}

func (l *link) close() {
	closeConns(l.tcp)
	for _, c := range l.udp {
		if c != nil {
			c.Close()
		}
	}
	closeAll(l.listeners)
}

// network is the name that package net has for the address family.
func (c openCommand) network() string {
	switch c.Spec.Family {
	case 4:
		return "tcp4"
	case 6:
		return "tcp6"
	}
	return "tcp"
}

// ports are the sockets on which the end that listens awaits the other one:
// TCP, and UDP of the same number where the streams are UDP.
type ports struct {
	tcp  []net.Listener
	udp  []*net.UDPConn
	port int
}

func (p *ports) close() {
	closeAll(p.tcp)
	for _, u := range p.udp {
		u.Close()
	}
}

// listen opens the first free port of the range, on all addresses asked for.
// Options are set before, so that the SYN-ACK carries them.
func listen(ctx context.Context, c openCommand) (*ports, error) {
	addrs := c.Addrs
	if len(addrs) == 0 {
		addrs = []string{""}
	}
	for i := range c.Last - c.First + 1 {
		// Beginning where the last session ended, so that the same ports do not
		// meet again while the kernel still remembers their connection.
		port := c.First + (c.Offset+i)%(c.Last-c.First+1)
		p, err := listenOn(ctx, c, addrs, port)
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			return nil, listenHint(err)
		}
		return p, nil
	}
	return nil, fault.Failf("end other programs on these ports, or give a larger range: thru serve --data-ports FIRST-LAST",
		"worker: listening: data ports %d-%d are all in use", c.First, c.Last)
}

// listenOn opens one port for TCP and, where the streams are UDP, for it too.
func listenOn(ctx context.Context, c openCommand, addrs []string, port int) (*ports, error) {
	lc := net.ListenConfig{Control: c.options().Control}
	// Go would listen with MPTCP where the kernel has it: another protocol than was asked for.
	lc.SetMultipathTCP(false)
	p := &ports{}
	var err error
	if p.tcp, err = listenAll(ctx, &lc, c.network(), addrs, port); err != nil {
		return nil, err
	}
	p.port = p.tcp[0].Addr().(*net.TCPAddr).Port
	if c.Spec.Protocol != measure.UDP {
		return p, nil
	}
	uc := net.ListenConfig{Control: c.datagramOptions().Control}
	for _, a := range addrs {
		u, err := uc.ListenPacket(ctx, c.udpNetwork(), net.JoinHostPort(a, strconv.Itoa(p.port)))
		if err != nil {
			p.close()
			return nil, fmt.Errorf("worker: listening for datagrams: %w", err)
		}
		p.udp = append(p.udp, u.(*net.UDPConn))
	}
	return p, nil
}

func listenAll(ctx context.Context, lc *net.ListenConfig, network string, addrs []string, port int) ([]net.Listener, error) {
	var ls []net.Listener
	for _, a := range addrs {
		l, err := lc.Listen(ctx, network, net.JoinHostPort(a, strconv.Itoa(port)))
		if err != nil {
			closeAll(ls)
			return nil, fmt.Errorf("worker: listening for data: %w", err)
		}
		ls = append(ls, l)
	}
	return ls, nil
}

// listenHint explains an address that this end has not.
func listenHint(err error) error {
	if errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT) {
		return fault.Failf("see `ip addr`: this host has no such address, or no IPv6", "%w", err)
	}
	return err
}

func closeAll(ls []net.Listener) {
	for _, l := range ls {
		l.Close()
	}
}

// greeted is a connection that has shown the token.
type greeted struct {
	conn  *net.TCPConn
	index int
}

// accept collects one connection for each stream. Strangers are shut out by
// the token; one that stalls in the handshake holds up nobody.
func accept(ctx context.Context, c openCommand, ls []net.Listener) ([]*net.TCPConn, error) {
	ctx, cancel := context.WithCancel(ctx)
	wake := func() { deadlines(ls, time.Unix(1, 0)) }
	stop := context.AfterFunc(ctx, wake)
	found := make(chan greeted)
	var wg sync.WaitGroup
	defer func() {
		stop() // first: what it would run must not come after the listeners wait again
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
				conns[g.index].Close() // the dialler tried again
			}
			conns[g.index] = g.conn
		case <-ctx.Done():
			closeConns(conns)
			return nil, fault.Failf("is another program between the hosts, or did the peer die?",
				"worker: waiting for data connections: %d of %d came in time", len(conns)-left, len(conns))
		}
	}
	return conns, nil
}

// deadlines ends the waiting of listeners that stay open, or lets them wait again.
func deadlines(ls []net.Listener, at time.Time) {
	for _, l := range ls {
		l.(*net.TCPListener).SetDeadline(at)
	}
}

// greetAll takes what comes at one listener until it is closed.
func greetAll(ctx context.Context, c openCommand, l net.Listener, found chan<- greeted, wg *sync.WaitGroup) {
	for {
		conn, err := l.Accept()
		switch {
		case errors.Is(err, net.ErrClosed), errors.Is(err, os.ErrDeadlineExceeded):
			return
		case err != nil: // out of descriptors, or reset already: the next may do
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

func closeConns(conns []*net.TCPConn) {
	for _, c := range conns {
		if c != nil {
			c.Close()
		}
	}
}

// dial opens one connection for each stream to the first target that answers.
func dial(ctx context.Context, c openCommand) (*link, error) {
	if len(c.Targets) == 0 {
		return nil, fault.Failf("", "worker: dialling: no target address")
	}
	l := &link{}
	each := min(dialTime, dialBudget/time.Duration(len(c.Targets)))
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

// fatalDial tells an error of our own options from one of the path: another
// target would fail alike.
func fatalDial(err error) bool {
	return fault.Hint(err) != ""
}

// unreachable names the ports, since a firewall between is the usual cause.
func unreachable(c openCommand, skipped []string) error {
	ports := "the data ports"
	if c.PeerFirst > 0 {
		ports = fmt.Sprintf("TCP ports %d-%d", c.PeerFirst, c.PeerLast)
	}
	return fault.Failf("control works, data does not: let "+ports+" of the end point through the firewall, or move them: thru serve --data-ports FIRST-LAST",
		"worker: no data connection: %s", strings.Join(skipped, "; "))
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
	if err := errors.Join(errs...); err != nil {
		closeConns(conns)
		i := slices.IndexFunc(errs, func(e error) bool { return e != nil })
		return nil, fmt.Errorf("worker: opening stream %d of %d to %s: %w", i+1, n, target, errs[i])
	}
	return conns, nil
}

// dialStream connects one stream and exchanges tokens on it.
func dialStream(ctx context.Context, c openCommand, target string, index int) (*net.TCPConn, error) {
	d := net.Dialer{Timeout: dialTime, Control: c.options().Control}
	d.SetMultipathTCP(false)
	local, err := localAddr(c, index)
	if err != nil {
		return nil, err
	}
	if local != nil {
		d.LocalAddr = local
	}
	conn, err := d.DialContext(ctx, c.network(), target)
	if err != nil {
		return nil, dialHint(c, err)
	}
	tc := conn.(*net.TCPConn)
	if err := introduce(ctx, tc, c.Token, index); err != nil {
		tc.Close()
		return nil, err
	}
	return tc, nil
}

func localAddr(c openCommand, index int) (*net.TCPAddr, error) {
	if c.Spec.BindAddr == "" && c.Spec.BindPort == 0 {
		return nil, nil
	}
	a := &net.TCPAddr{}
	if c.Spec.BindPort != 0 {
		a.Port = c.Spec.BindPort + index
	}
	if c.Spec.BindAddr != "" {
		ip, err := netip.ParseAddr(c.Spec.BindAddr)
		if err != nil {
			return nil, fault.Usagef("-B wants an address of this host, such as 10.0.0.1", "worker: binding to %q: %w", c.Spec.BindAddr, err)
		}
		a.IP, a.Zone = ip.AsSlice(), ip.Zone()
	}
	return a, nil
}

// dialHint explains the refusals that come from this end's own settings.
func dialHint(c openCommand, err error) error {
	switch {
	case errors.Is(err, syscall.EADDRNOTAVAIL) && c.Spec.BindPort != 0:
		return fault.Failf("the kernel remembers connections with that source port for a minute: wait, or choose another --cport; and -B wants an address of this host",
			"worker: dialling: %w", err)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fault.Failf("-B wants an address of this host; see `ip addr`", "worker: dialling: %w", err)
	case errors.Is(err, syscall.EADDRINUSE):
		return fault.Failf("another connection holds that source port: choose another --cport",
			"worker: dialling: %w", err)
	}
	return err
}
