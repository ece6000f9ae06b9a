package iperf2

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	"thru/internal/engine"
	"thru/internal/engine/worker"
	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/sock"
)

// Limits before a test starts.
const (
	groupWait    = time.Second            // for the other streams of a client that announces their number
	datagramWait = 3 * time.Second        // for the second datagrams of the other streams, which arrive as slowly as -b sets
	plainWait    = 100 * time.Millisecond // for the other streams of a client that sends no header
	callWait     = time.Minute            // until an engine opens the call
	mostCalls    = 16                     // default of ServerConfig.MaxCalls
	mostGreeted  = 256                    // TCP connections that have not sent their request yet
)

// ServerConfig holds the limits of a Server.
type ServerConfig struct {
	Limits   Limits
	MaxCalls int // waiting at once; 0: the default. Server.room limits the share of one host
	// Refused receives callers that the server turns away; it may be nil. Where there are many, it receives only some.
	Refused func(addr string, reason error)
}

// Server takes the calls of iperf2 clients, over TCP and UDP. A call waits with its connections for a limited time until an Engine opens it by its token.
type Server struct {
	conf ServerConfig

	mu      sync.Mutex
	took    func(engine.Call)          // nil while the server does not serve
	groups  map[kinship]*caller        // callers that may get more streams
	calls   map[string]*caller         // by token
	sources map[netip.AddrPort]*source // UDP, from the first datagram to the end of the test
	callers map[*caller]bool           // from the first stream to the end of the test; true while they wait to be opened
	ports   []*net.UDPConn
	marks   map[netip.AddrPort]chan struct{} // closed when a datagram of that address is read: see settle

	completing sync.WaitGroup // groups that will become calls

	silent  engine.Crowd[netip.Prefix] // by host
	refused engine.Refusals
}

// NewServer returns a server that takes no calls before Serve.
func NewServer(c ServerConfig) *Server {
	c.MaxCalls = cmp.Or(c.MaxCalls, mostCalls)
	return &Server{conf: c, groups: map[kinship]*caller{}, calls: map[string]*caller{},
		sources: map[netip.AddrPort]*source{}, callers: map[*caller]bool{}, marks: map[netip.AddrPort]chan struct{}{}, refused: engine.Refusals{Report: c.Refused}}
}

// caller is a client with the streams of one test.
type caller struct {
	server  *Server
	key     kinship
	addr    netip.AddrPort
	test    test
	want    int
	streams []stream
	timer   *time.Timer
}

// stream is one connection of a caller.
type stream interface {
	// handOver returns the connection and what was read of it; this package no longer reads it.
	handOver() worker.Conn
	connection() net.Conn
	close()
}

// close ends everything left of a caller; it may be called twice.
func (c *caller) close() {
	c.timer.Stop()
	for _, s := range c.streams {
		s.close()
	}
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	delete(c.server.callers, c)
}

// Listen opens a port for TCP and UDP on some addresses, or on all. Where only some of them work, it returns those and the error of the rest.
func Listen(ctx context.Context, addrs []string, port int, device string) (tcp []net.Listener, udp []*net.UDPConn, err error) {
	if len(addrs) == 0 {
		addrs = []string{""}
	}
	lc := net.ListenConfig{Control: sock.Options{Device: device}.Control}
	lc.SetMultipathTCP(false)
	uc := net.ListenConfig{Control: sock.Options{Device: device, ReuseAddr: true, RecvBuffer: engine.DatagramBuffer}.Control}
	var errs []error
	for _, a := range addrs {
		at := net.JoinHostPort(a, strconv.Itoa(port))
		if l, err := lc.Listen(ctx, "tcp", at); err != nil {
			errs = append(errs, err)
		} else {
			tcp = append(tcp, l)
		}
		if u, err := uc.ListenPacket(ctx, "udp", at); err != nil {
			errs = append(errs, err)
		} else {
			udp = append(udp, u.(*net.UDPConn))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return tcp, udp, fault.Failf("end the other iperf or thru that uses the port", "iperf2: listening: %w", err)
	}
	return tcp, udp, nil
}

// Serve takes calls until ctx ends, and then closes the waiting calls and the given listeners. took must not block; it receives every call, which then waits
// to be opened by its token or refused.
func (d *Server) Serve(ctx context.Context, tcp []net.Listener, udp []*net.UDPConn, took func(engine.Call)) error {
	d.mu.Lock()
	d.took, d.ports = took, udp
	d.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	errs := make([]error, len(tcp)+len(udp))
	for i, l := range tcp {
		wg.Go(func() { defer cancel(); errs[i] = d.accept(ctx, l) })
	}
	for i, u := range udp {
		wg.Go(func() { defer cancel(); errs[len(tcp)+i] = d.listen(ctx, u) })
	}
	if len(errs) == 0 {
		cancel()
	}
	<-ctx.Done()
	for _, l := range tcp {
		l.Close()
	}
	for _, u := range udp {
		u.Close()
	}
	wg.Wait()
	d.close()
	return errors.Join(errs...)
}

// close turns all waiting calls away.
func (d *Server) close() {
	d.mu.Lock()
	d.took = nil
	maps.DeleteFunc(d.sources, func(_ netip.AddrPort, s *source) bool { return !s.isAnybodys() })
	var left []*caller
	left = slices.AppendSeq(left, maps.Values(d.calls))
	for _, c := range d.groups {
		left = append(left, c)
		if c.timer.Stop() {
			d.completing.Done()
		}
	}
	clear(d.groups)
	clear(d.calls)
	d.mu.Unlock()
	for _, c := range left {
		c.close()
	}
	d.completing.Wait()
}

var (
	errBusy   = fault.Failf("try again in a moment", "iperf2: accepting a client: too many clients are waiting")
	errOften  = fault.Failf("wait until its other tests have ended", "iperf2: accepting a client: too many tests of one host")
	errClosed = errors.New("iperf2: accepting a client: the server is shutting down")
)

// room returns the reason to refuse a new caller from an address; nil to take it. One host has at most half of the waiting calls, and with its running tests
// at most as many as the limit of waiting calls: else it could keep all others out.
func (d *Server) room(addr netip.Addr) error {
	waiting, own, ownWaiting := 0, 0, 0
	for c, waits := range d.callers {
		same := hostOf(c.addr.Addr()) == hostOf(addr)
		if waits {
			waiting++
		}
		if same {
			own++
		}
		if same && waits {
			ownWaiting++
		}
	}
	switch most := d.conf.MaxCalls; {
	case waiting >= most:
		return errBusy
	case ownWaiting >= max(most/2, 1) || own >= most:
		return errOften
	}
	return nil
}

// hostOf returns the prefix that counts as one host: for IPv6 a 64-bit network.
func hostOf(a netip.Addr) netip.Prefix {
	a = a.Unmap()
	bits := a.BitLen()
	if a.Is6() {
		bits = 64
	}
	p, _ := a.Prefix(bits) // an invalid address gives an invalid prefix
	return p
}

// join adds a stream to its caller, and makes a call when the caller is complete or its time for more streams is over.
func (d *Server) join(addr netip.AddrPort, t test, s stream) error {
	key := t.kinship(addr.Addr())
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.groups[key]
	switch {
	case d.took == nil:
		return errClosed
	case c == nil:
		if err := d.room(addr.Addr()); err != nil {
			return err
		}
		wait := groupWait
		switch {
		case t.header.flags == 0:
			wait = plainWait
		case t.protocol == measure.UDP:
			wait = datagramWait
		}
		c = &caller{server: d, key: key, addr: addr, test: t, want: t.wanted(d.conf.Limits)}
		d.callers[c] = true
		d.completing.Add(1)
		c.timer = time.AfterFunc(wait, func() { d.complete(c) })
		d.groups[key] = c
	}
	c.streams = append(c.streams, s)
	if len(c.streams) == c.want {
		delete(d.groups, key) // further streams belong to another caller
		if c.timer.Stop() {   // else its time is over at this moment
			go d.complete(c)
		}
	}
	return nil
}

// complete turns a caller into a call.
func (d *Server) complete(c *caller) {
	defer d.completing.Done()
	d.mu.Lock()
	if d.groups[c.key] == c {
		delete(d.groups, c.key)
	}
	if c.test.protocol == measure.UDP {
		d.mu.Unlock()
		d.settle()
		d.mu.Lock()
	}
	took := d.took
	c.test.streams = len(c.streams)
	call := engine.Call{
		Token: rand.Text(), Addr: c.addr.String(), Name: nameOf(c.addr.Addr()), Program: c.test.program(),
	}
	var err error
	if call.Specs, err = c.test.specs(call.Name, d.conf.Limits); took == nil {
		err = errClosed
	}
	if err == nil {
		call.Back = c.test.callback(call.Name, d.conf.Limits)
		d.calls[call.Token] = c
		c.timer = time.AfterFunc(callWait, func() {
			if d.refuse(call.Token) {
				d.report(c.addr, errors.New("iperf2: accepting a client: no test was started for it in time"))
			}
		})
	}
	d.mu.Unlock()
	if err != nil {
		c.close()
		d.report(c.addr, err)
		return
	}
	call.Refuse = func(error) { d.refuse(call.Token) } // whoever refuses knows the reason
	took(call)
}

// program returns the program that the client reports; empty where it reports none.
func (t test) program() string {
	if t.header.version == 0 {
		return ""
	}
	return t.header.version.program()
}

// nameOf returns the name of a client's end point.
func nameOf(a netip.Addr) string {
	if a = a.Unmap(); a.Is6() {
		return measure.IPerf2 + "://[" + a.String() + "]"
	}
	return measure.IPerf2 + "://" + a.String()
}

// claim removes a call from the server; nil where no call has that token.
func (d *Server) claim(token string) *caller {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.calls[token]
	if c != nil {
		c.timer.Stop()
		delete(d.calls, token)
		d.callers[c] = false
	}
	return c
}

// refuse ends a call without a test; false where the call no longer exists. iperf2 has no message for it: its connections close.
func (d *Server) refuse(token string) bool {
	c := d.claim(token)
	if c != nil {
		c.close()
	}
	return c != nil
}

// report reports a refusal, within the limits.
func (d *Server) report(addr netip.AddrPort, reason error) {
	d.refused.Note(addr, time.Now(), reason)
}
