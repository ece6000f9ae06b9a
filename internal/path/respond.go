package path

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"thru/internal/host"
	"thru/internal/measure"
	"thru/internal/sock"
	"thru/internal/token"
)

// Limits of the answering end.
const (
	maxLife     = 60 * time.Second // of a Responder
	greetTime   = 3 * time.Second  // for a client to present the token
	idleTime    = 10 * time.Second // between two requests
	maxGreeting = 32               // connections that have not presented it yet
	maxRequests = 2000             // pings and volleys of a probe
)

// Responder is the answering end of one probe.
type Responder struct {
	listen    Listen
	host      *host.Host
	token     string
	port      int
	listeners []net.Listener
	stop      context.CancelFunc
	done      chan struct{}
}

// Open starts the answering end for one probe: a TCP listener, and after the token a UDP socket with the same port number, or with another one of the range
// where that is in use. It ends after the probe, with ctx, on Close, or after a minute. It returns an error where no port is free.
func Open(ctx context.Context, l Listen, h *host.Host) (*Responder, error) {
	if h == nil {
		h = host.New()
	}
	r := &Responder{listen: l, host: h, token: token.New(), done: make(chan struct{})}
	if err := r.bind(ctx); err != nil {
		return nil, err
	}
	ctx, r.stop = context.WithTimeout(ctx, maxLife)
	go r.run(ctx)
	return r, nil
}

// Port returns the TCP port to dial.
func (r *Responder) Port() int { return r.port }

// Token returns the token that the dialling end must present.
func (r *Responder) Token() string { return r.token }

// Done is closed when the probe is over and all its resources are released.
func (r *Responder) Done() <-chan struct{} { return r.done }

// Close ends the probe, and waits until all its resources are released.
func (r *Responder) Close() {
	r.stop()
	<-r.done
}

// bind opens the first free port on all addresses, with saved SYNs.
func (r *Responder) bind(ctx context.Context) (err error) {
	options := sock.Options{Device: r.listen.Device}
	r.listeners, err = r.listen.ports().Listen(ctx, func(network, address string, c syscall.RawConn) error {
		// Without saved SYNs the probe reports them as missing.
		_ = c.Control(func(fd uintptr) { _ = sock.SaveSYN(fd) })
		return options.Control(network, address, c)
	})
	if err != nil {
		return fmt.Errorf("path: %w", err)
	}
	r.port = r.listeners[0].Addr().(*net.TCPAddr).Port
	return nil
}

// ports returns the range of TCP ports.
func (l Listen) ports() sock.Range {
	return sock.Range{Addrs: l.Addrs, First: l.First, Last: l.Last, Offset: l.Offset}
}

func (r *Responder) closeListeners() {
	for _, l := range r.listeners {
		l.Close()
	}
}

// openUDP opens the socket for datagrams at the dialled address.
func (r *Responder) openUDP(ctx context.Context, local, remote netip.Addr, cookie []byte) (s *socket, err error) {
	for _, port := range append([]int{r.port}, r.listen.ports().Ports()...) {
		s, err = openSocket(ctx, netip.AddrPortFrom(local, uint16(port)), remote, netip.AddrPort{}, r.listen.Device, cookie, kindForward)
		if !sock.Is(err, syscall.EADDRINUSE) {
			break
		}
	}
	return s, err
}

// run waits for the one connection with the token, and serves it.
func (r *Responder) run(ctx context.Context) {
	defer close(r.done)
	defer r.stop()
	if conn := r.accept(ctx); conn != nil {
		defer conn.Close()
		quit := context.AfterFunc(ctx, func() { conn.Close() })
		defer quit()
		serve(ctx, conn, r)
	}
}

// accept returns the first connection that presents the token; nil without one. Strangers delay nobody.
func (r *Responder) accept(ctx context.Context) *net.TCPConn {
	ctx, cancel := context.WithCancel(ctx)
	found := make(chan *net.TCPConn)
	var wg sync.WaitGroup
	room := make(chan struct{}, maxGreeting)
	for _, l := range r.listeners {
		wg.Go(func() {
			for {
				c, err := l.Accept()
				if errors.Is(err, net.ErrClosed) {
					return
				}
				if err != nil { // no descriptors left, or reset already: the next one may work
					time.Sleep(10 * time.Millisecond)
					continue
				}
				select {
				case room <- struct{}{}:
				default:
					c.Close() // too many strangers
					continue
				}
				wg.Go(func() {
					defer func() { <-room }()
					welcome(ctx, c.(*net.TCPConn), r.token, found)
				})
			}
		})
	}
	var conn *net.TCPConn
	select {
	case conn = <-found:
	case <-ctx.Done():
	}
	cancel()
	r.closeListeners()
	wg.Wait()
	return conn
}

// welcome passes on a connection that presents the token in time, or closes it.
func welcome(ctx context.Context, c *net.TCPConn, own string, found chan<- *net.TCPConn) {
	hurry := context.AfterFunc(ctx, func() { c.Close() })
	c.SetDeadline(time.Now().Add(greetTime))
	if greet(c, own) == nil && hurry() {
		c.SetDeadline(time.Time{})
		select {
		case found <- c:
			return
		case <-ctx.Done():
		}
	}
	c.Close()
}

// answerer serves one connection.
type answerer struct {
	conn    *net.TCPConn
	in      *bufio.Reader
	udp     *socket // nil: none
	volleys int
}

// serve answers requests until the other end has no more. An error ends it: the other end will notice.
func serve(ctx context.Context, conn *net.TCPConn, r *Responder) {
	a := &answerer{conn: conn, in: bufio.NewReader(conn)}
	defer func() { a.udp.close() }()
	conn.SetDeadline(time.Now().Add(idleTime))
	if err := writeJSON(conn, a.hello(ctx, r)); err != nil {
		return
	}
	for range maxRequests {
		conn.SetDeadline(time.Now().Add(idleTime))
		kind, payload, err := readFrame(a.in)
		if err != nil {
			return
		}
		switch kind {
		case framePing:
			err = a.pong(payload, time.Now())
		case frameJSON:
			err = a.answer(ctx, payload)
		default:
			err = writeJSON(conn, reply{Unknown: true})
		}
		if err != nil {
			return
		}
	}
}

// pong returns a ping with the times of its arrival and its departure.
func (a *answerer) pong(payload []byte, came time.Time) error {
	if len(payload) != pingSize {
		return errors.New("path: a ping of another size")
	}
	b := binary.BigEndian.AppendUint64(payload, uint64(came.UnixNano()))
	b = binary.BigEndian.AppendUint64(b, uint64(came.UnixNano()+int64(time.Since(came))))
	return writeFrame(a.conn, framePong, b)
}

// answer processes a request.
func (a *answerer) answer(ctx context.Context, payload []byte) error {
	var q request
	if err := decode(payload, &q); err != nil {
		return err
	}
	if q.Volley == nil {
		return writeJSON(a.conn, reply{Unknown: true})
	}
	if err := q.Volley.check(); err != nil {
		return err
	}
	if a.volleys++; a.volleys > maxVolleys {
		return fmt.Errorf("path: the other end requested more than %d volleys", maxVolleys)
	}
	rep := a.volley(ctx, *q.Volley)
	return writeJSON(a.conn, reply{Report: &rep})
}

// volley sends this end's datagrams, and waits for the other end's.
func (a *answerer) volley(ctx context.Context, v volley) report {
	if a.udp == nil {
		return report{NoPeer: true}
	}
	settle := time.Duration(v.SettleUs) * time.Microsecond
	if v.Sent > 0 && !a.udp.awaitPeer(ctx, settle) || !a.udp.target().IsValid() {
		return report{NoPeer: true}
	}
	r := a.udp.fire(ctx, v.Number, v.Send, time.Duration(v.GapUs)*time.Microsecond)
	sent := time.Now()
	r.Got = a.udp.await(ctx, v.Number, v.Sent, settle)
	r.Waited = time.Since(sent).Microseconds()
	r.routers = a.udp.routersSaid()
	return r
}

// hello returns what this end knows after the handshake, and opens the UDP socket.
func (a *answerer) hello(ctx context.Context, r *Responder) hello {
	var cookie [cookieSize]byte
	rand.Read(cookie[:])
	local, remote := plain(a.conn.LocalAddr().(*net.TCPAddr).AddrPort()), plain(a.conn.RemoteAddr().(*net.TCPAddr).AddrPort())
	h := hello{Version: version, Cookie: hex.EncodeToString(cookie[:]), Seen: remote.Addr().WithZone("").String()}
	t := readTCP(a.conn)
	h.Answered, h.TCP, h.Control = t.synackSent(), t.ofMTU(), t.congestion
	h.SYNSeen, h.NoSYN = savedSYN(a.conn)
	route := routeTo(ctx, r.host, r.listen.Device, local, remote)
	h.Route, h.NoRoute, h.Claim, h.Learned = route.route, route.why, route.claim, route.learned
	var err error
	a.udp, err = r.openUDP(ctx, local.Addr(), remote.Addr(), cookie[:])
	if err != nil {
		h.NoUDP = err.Error()
		return h
	}
	h.UDP, h.Headers = a.udp.conn.LocalAddr().(*net.UDPAddr).Port, a.udp.headers
	return h
}

// savedSYN returns the SYN of a connection as it arrived, or why it is not known.
func savedSYN(c *net.TCPConn) (*measure.SYN, string) {
	var syn measure.SYN
	err := sock.Reach(c, func(fd uintptr) error {
		b, err := sock.SavedSYN(fd)
		if err == nil {
			syn, err = sock.ParseSYN(b)
		}
		return err
	})
	if err != nil {
		return nil, err.Error()
	}
	return &syn, ""
}
