package iperf3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"thru/internal/engine"
	"thru/internal/fault"
	"thru/internal/sock"
)

// ServerConfig sets the users and the limits of a Server.
type ServerConfig struct {
	Users      Users         // users that may measure, where there is a key
	PrivateKey []byte        // PEM; empty: admit everybody
	PKCS1      bool          // clients use the older padding, PKCS #1 v1.5, in place of OAEP
	Skew       time.Duration // largest difference between the clocks of client and server; 0: 10 s
	Limits     Limits
	MaxCalls   int // clients that wait for their turn, at most half of them from one address; 0: 32
	// Refused receives clients that the server turns away before took receives them as calls; it may be nil. Where there are many, it receives only some.
	Refused func(addr string, reason error)
}

// Limits against floods: connections that have not sent their request yet.
const (
	usualCalls    = 32
	mostUnnamed   = 256 // of all
	mostFromOne   = 64  // of one address
	acceptTrouble = 50 * time.Millisecond
)

// Server takes the calls of iperf3 clients. Each is independent of the others, and waits for its turn until Engine.Open names its token, or it is refused.
type Server struct {
	conf ServerConfig
	gate gate
	wait waits
	now  func() time.Time

	unnamed engine.Crowd[netip.Addr]
	refused engine.Refusals

	mu      sync.Mutex
	calls   map[cookie]*call
	tokens  map[string]*call
	opening map[netip.Addr]*call // tests that open their UDP streams
	freed   chan struct{}        // closed, and replaced, when one of them is done
}

// NewServer returns a server that takes no calls yet.
func NewServer(c ServerConfig) (*Server, error) {
	d := &Server{
		conf: c, wait: usual(), now: time.Now, calls: map[cookie]*call{}, tokens: map[string]*call{},
		opening: map[netip.Addr]*call{}, freed: make(chan struct{}),
	}
	d.refused.Report = c.Refused
	if d.conf.MaxCalls <= 0 {
		d.conf.MaxCalls = usualCalls
	}
	if len(c.PrivateKey) == 0 {
		return d, nil
	}
	key, err := privateKey(c.PrivateKey)
	if err != nil {
		return nil, err
	}
	d.gate = gate{users: c.Users, key: key, pkcs1: c.PKCS1, skew: c.Skew}
	return d, nil
}

// Ports are the listening sockets of a server: TCP, and UDP with the same number.
type Ports struct {
	TCP    []net.Listener
	UDP    []*net.UDPConn
	Device string // device that they are bound to; empty: none
}

// Listen opens a port on these addresses, or without any on all addresses of the host, bound to a device where one is named.
func Listen(ctx context.Context, addrs []string, device string, port int) (*Ports, error) {
	if len(addrs) == 0 {
		addrs = []string{""}
	}
	p := &Ports{Device: device}
	tcp := net.ListenConfig{Control: sock.Options{Device: device}.Control}
	tcp.SetMultipathTCP(false) // Go's listener uses MPTCP otherwise: not the protocol of the clients
	udp := net.ListenConfig{Control: sock.Options{Device: device, ReuseAddr: true}.Control}
	for _, a := range addrs {
		l, err := tcp.Listen(ctx, "tcp", net.JoinHostPort(a, fmt.Sprint(port)))
		if err != nil {
			p.Close()
			return nil, fault.Failf("end the other iperf3 or thru that listens there", "iperf3: listening: %w", err)
		}
		p.TCP = append(p.TCP, l)
		port = l.Addr().(*net.TCPAddr).Port // the same port on all addresses, even where any port would do
		u, err := udp.ListenPacket(ctx, "udp", net.JoinHostPort(a, fmt.Sprint(port)))
		if err != nil {
			p.Close()
			return nil, fault.Failf("", "iperf3: listening: %w", err)
		}
		p.UDP = append(p.UDP, u.(*net.UDPConn))
	}
	return p, nil
}

// Close closes the ports.
func (p *Ports) Close() {
	for _, l := range p.TCP {
		l.Close()
	}
	for _, u := range p.UDP {
		u.Close()
	}
}

// Serve takes calls until ctx is done, and closes the ports. took receives each client that may measure; it must not block. Running tests continue.
func (d *Server) Serve(ctx context.Context, p *Ports, took func(engine.Call)) error {
	var wg sync.WaitGroup
	stop := context.AfterFunc(ctx, p.Close)
	defer stop()
	for _, l := range p.TCP {
		wg.Go(func() { d.accept(ctx, l, took, &wg) })
	}
	for _, u := range p.UDP {
		wg.Go(func() { d.hellos(u, p.Device) })
	}
	<-ctx.Done()
	p.Close()
	waiting := d.sendHome()
	wg.Wait() // for connections that are still in the handshake
	for _, c := range append(waiting, d.sendHome()...) {
		c.tasks.Wait()
	}
	return nil
}

// accept handles each connection in its own goroutine.
func (d *Server) accept(ctx context.Context, l net.Listener, took func(engine.Call), wg *sync.WaitGroup) {
	for order := int64(0); ; order++ {
		conn, err := l.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // no descriptors left, or reset already: the next one may work
			time.Sleep(acceptTrouble)
			continue
		}
		from := addrOf(conn.RemoteAddr())
		if !d.unnamed.Enter(from, mostUnnamed, mostFromOne) {
			conn.Close()
			d.report(conn, errors.New("iperf3: accepting a client: too many connections without a request"))
			continue
		}
		wg.Go(func() {
			defer hurry(ctx, conn)()
			defer d.unnamed.Leave(from)
			err := d.greet(conn, order, took)
			// A client that closes without a byte was only a port check.
			if err != nil && !errors.Is(err, io.EOF) && ctx.Err() == nil {
				d.report(conn, err)
			}
		})
	}
}

// greet reads the cookie: a known one belongs to a test that opens its connections, a new one begins a call. The error says why there is no call.
func (d *Server) greet(conn net.Conn, order int64, took func(engine.Call)) error {
	var k cookie
	conn.SetReadDeadline(time.Now().Add(d.wait.word))
	_, err := io.ReadFull(conn, k[:])
	if err != nil {
		err = fmt.Errorf("iperf3: reading a cookie: %w", err)
	} else {
		err = k.check()
	}
	if err != nil {
		conn.Close()
		return err
	}
	conn.SetReadDeadline(time.Time{})
	var c *call
	d.mu.Lock()
	known := d.calls[k]
	if known == nil {
		c = newCall(d, k, conn)
		d.calls[k], d.tokens[c.token] = c, c
	}
	d.mu.Unlock()
	if known != nil {
		known.join(conn, order)
		return nil
	}
	return d.negotiate(c, took)
}

// negotiate reads a client's request, and calls took where it is allowed.
func (d *Server) negotiate(c *call, took func(engine.Call)) error {
	if err := c.negotiate(); err != nil {
		c.dismiss(err)
		return err
	}
	c.tasks.Go(c.listen)
	c.tasks.Go(c.expire)
	took(c.public()) // took refuses it and knows the reason
	return nil
}

// report reports a refusal.
func (d *Server) report(conn net.Conn, reason error) {
	from, _ := netip.ParseAddrPort(conn.RemoteAddr().String())
	d.refused.Note(from, d.now(), reason)
}

// seat puts a call in the queue, unless the queue is full or holds too many calls of its address, which must not keep all others out.
func (d *Server) seat(c *call) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	all, its := 0, 0
	for _, o := range d.tokens {
		if o.ready {
			all++
		}
		if o.ready && o.addr() == c.addr() {
			its++
		}
	}
	if all >= d.conf.MaxCalls || its >= (d.conf.MaxCalls+1)/2 {
		return fmt.Errorf("iperf3: accepting a client: %d clients are waiting, %d of them from this address: %w", all, its, engine.ErrBusy)
	}
	c.ready = true
	return nil
}

// claim takes the call of a token for a session.
func (d *Server) claim(token string) (*call, error) {
	d.mu.Lock()
	c := d.tokens[token]
	ready := c != nil && c.ready
	if ready {
		delete(d.tokens, token)
	}
	d.mu.Unlock()
	if !ready {
		return nil, fault.Failf("", "iperf3: answering a client: it has disconnected, or its test is over")
	}
	close(c.claimed)
	return c, nil
}

// refuse ends a call that gets no turn.
func (d *Server) refuse(token string, err error) {
	if c, claimed := d.claim(token); claimed == nil {
		c.dismiss(err)
	}
}

// forget removes a call from the server's maps.
func (d *Server) forget(c *call) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.calls, c.cookie)
	delete(d.tokens, c.token)
}

// sendHome ends the calls that have no session, and returns them.
func (d *Server) sendHome() (waiting []*call) {
	d.mu.Lock()
	for _, c := range d.tokens {
		waiting = append(waiting, c)
	}
	clear(d.tokens)
	d.mu.Unlock()
	for _, c := range waiting {
		c.leave(serverTerminate)
	}
	return waiting
}

// addrOf returns the address of a peer without its port.
func addrOf(a net.Addr) netip.Addr {
	ap, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.Addr{}
	}
	return ap.Addr().Unmap().WithZone("")
}
