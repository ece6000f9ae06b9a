package bus

import (
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	nats "github.com/nats-io/nats-server/v2/server"
)

// Limits of the front.
const (
	maxConnections = 256
	maxHandshakes  = 128 // not logged in yet, half of them from one address; the other places are for logged-in clients
	handshakeTime  = 5 * time.Second
	maxControlLine = 1024 // bytes of a line of the NATS protocol
	maxSubs        = 64   // subscriptions of a connection
	startTime      = 5 * time.Second
)

// alpn is the application protocol (RFC 7301) by which a client recognizes a thru TLS
// server, before it trusts the certificate or sends the secret.
const alpn = "thru"

// ServerConfig configures the listener of an agent's control plane.
type ServerConfig struct {
	Addrs  []string       // HOST:PORT to listen at; ":5200" means all addresses
	Passed []net.Listener // open already, by systemd: used instead of Addrs
	Device string         // device or VRF to bind to (Linux)
	State  *State         // identity; nil: a fresh one in memory
	NoAuth bool           // admits every client to measure, for a closed lab
	Allow  []string       // of Privileges: granted by their join strings
	Name   string         // put into join strings; may be empty
}

// Server is the control plane of an agent: an embedded NATS server without its own
// listener, behind a front with TLS.
type Server struct {
	conf        ServerConfig
	nats        *nats.Server
	tls         *tls.Config
	state       atomic.Pointer[State] // identity, which Reload replaces
	front       front
	agentUser   string
	agentSecret Secret
	listeners   []net.Listener
	places      chan struct{}   // one slot for each connection
	preAuth     *preAuthLimiter // connections not logged in yet

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu     sync.Mutex
	links  map[uint64]*link  // by the server's number
	logins map[string]*login // by client
	gone   func(client string)
}

// Listen starts the control plane. The context bounds only the start; Close ends the
// server. Addresses that cannot be used are warnings if another one can, else an error
// with a hint.
func Listen(ctx context.Context, c ServerConfig) (*Server, []string, error) {
	return open(ctx, c, agentFront())
}

// open starts a server with its listeners.
func open(ctx context.Context, c ServerConfig, f front) (*Server, []string, error) {
	listeners, warnings, err := c.Passed, []string(nil), error(nil)
	for _, l := range listeners {
		optimize(l)
	}
	if len(listeners) == 0 {
		listeners, warnings, err = listen(ctx, c.Addrs, c.Device)
	}
	if err != nil {
		return nil, nil, err
	}
	s, err := newServer(c, f)
	if err != nil {
		for _, l := range listeners {
			l.Close()
		}
		return nil, nil, err
	}
	s.listeners = listeners
	for _, l := range listeners {
		s.wg.Go(func() { s.accept(l) })
	}
	return s, warnings, nil
}

// front holds what differs between the server of an agent and the hub of a fleet.
type front struct {
	auth        func(*Server) nats.Authentication
	connections int
	handshakes  int
	subs        int   // of a connection
	pingsOut    int   // unanswered pings that end a connection
	line        int32 // bytes of a line of the NATS protocol
	pending     int64 // bytes that may wait to be sent on a connection; 0: NATS's default
}

// agentFront admits clients by their join string.
func agentFront() front {
	return front{
		auth:        func(s *Server) nats.Authentication { return agentAuth{s} },
		connections: maxConnections, handshakes: maxHandshakes, subs: maxSubs, pingsOut: pingsForever, line: maxControlLine,
	}
}

// newServer starts the embedded server, without its listeners.
func newServer(c ServerConfig, f front) (*Server, error) {
	if c.State == nil {
		var err error
		if c.State, err = NewState(); err != nil {
			return nil, err
		}
	}
	s := &Server{
		conf: c, front: f, agentUser: "agent-" + newID(), agentSecret: newSecret(),
		places: make(chan struct{}, f.connections), preAuth: newPreAuthLimiter(f.handshakes),
		links: map[uint64]*link{}, logins: map[string]*login{},
	}
	s.state.Store(c.State)
	s.tls = &tls.Config{
		MinVersion: tls.VersionTLS13, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &s.state.Load().cert, nil },
		NextProtos: []string{alpn}, SessionTicketsDisabled: true,
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	var err error
	if s.nats, err = nats.NewServer(s.options()); err != nil {
		s.cancel()
		return nil, fmt.Errorf("bus: starting the embedded NATS server: %w", err)
	}
	s.nats.Start()
	if !s.nats.ReadyForConnections(startTime) {
		s.Close()
		return nil, fmt.Errorf("bus: starting the embedded NATS server: not ready within %v", startTime)
	}
	return s, nil
}

// options returns those of the embedded server: only messaging is enabled.
func (s *Server) options() *nats.Options {
	return &nats.Options{
		ServerName: "thru-" + s.state.Load().ID,
		DontListen: true, NoLog: true, NoSigs: true, NoSystemAccount: true,
		MaxPayload: payloadBytes, MaxControlLine: s.front.line, MaxSubs: s.front.subs, MaxPending: s.front.pending,
		PingInterval: pingEvery, MaxPingsOut: s.front.pingsOut,
		AuthTimeout: handshakeTime.Seconds(), WriteDeadline: writeTime,
		CustomClientAuthentication: s.front.auth(s), AlwaysEnableNonce: true,
	}
}

// Join returns the join string to measure. data are its data addresses; none means
// the control addresses.
func (s *Server) Join(data []string) Join { return s.JoinFor(PrivilegeMeasure, data) }

// JoinFor returns the join string of a privilege, or of several (Together).
func (s *Server) JoinFor(privilege string, data []string) Join {
	j := Join{
		Name: s.conf.Name, Control: reachable(s.listeners, s.conf.Device), Data: data,
		CertSHA256: s.state.Load().CertSHA256(), Privilege: privilege,
	}
	if !s.conf.NoAuth || privilege != PrivilegeMeasure {
		j.Secret = s.state.Load().secretOf(privilege)
	}
	return j
}

// Reload reads secrets and certificate again, which `thru serve --rotate` may have replaced. Clients that are connected
// stay; new ones need the new join string.
func (s *Server) Reload() error {
	dir := s.state.Load().Dir()
	if dir == "" {
		return nil
	}
	fresh, err := OpenState(dir)
	if err == nil {
		s.state.Store(fresh)
	}
	return err
}

// Close ends all connections and the embedded server. All their goroutines have ended
// when it returns.
func (s *Server) Close() {
	s.cancel()
	for _, l := range s.listeners {
		l.Close()
	}
	s.wg.Wait()
	s.nats.Shutdown()
	s.nats.WaitForShutdown()
}

// accept accepts connections until the listener is closed.
func (s *Server) accept(l net.Listener) {
	for {
		conn, err := l.Accept()
		if s.ctx.Err() != nil {
			if err == nil {
				conn.Close()
			}
			return
		}
		if err != nil { // out of file descriptors, or a connection already reset
			time.Sleep(50 * time.Millisecond)
			continue
		}
		if !enter(s.places) {
			conn.Close()
			continue
		}
		s.wg.Go(func() {
			defer leave(s.places)
			defer conn.Close()
			letIn, ok := s.preAuth.enter(conn.RemoteAddr())
			if !ok {
				return
			}
			defer letIn()
			if secure := s.handshake(conn); secure != nil {
				s.serve(secure, letIn)
			}
		})
	}
}

// handshake makes the TLS handshake first, so that only TLS clients reach the NATS
// server; nil on failure.
func (s *Server) handshake(conn net.Conn) net.Conn {
	ctx, cancel := context.WithTimeout(s.ctx, handshakeTime)
	defer cancel()
	secure := tls.Server(conn, s.tls)
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil
	}
	return secure
}

// serve connects a client to the embedded server until one of them ends. letIn is
// called when the client has logged in; nil: the client is this process itself.
func (s *Server) serve(outer net.Conn, letIn func()) {
	defer outer.Close()
	inner, err := s.nats.InProcessConn()
	if err != nil {
		return
	}
	defer inner.Close()
	stop := context.AfterFunc(s.ctx, func() { inner.Close(); outer.Close() })
	defer stop()
	l, err := newLink(outer, inner)
	if err != nil {
		return
	}
	l.own, l.letIn = letIn == nil, letIn
	if l.own {
		l.letIn = func() {}
	}
	s.mu.Lock()
	s.links[l.id] = l
	s.mu.Unlock()
	l.run()
	s.leave(l)
}

// claim assigns a link to a client: one client per link, one link per client.
func (s *Server) claim(id uint64, client string, privileges []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.links[id]
	if l == nil || l.login != nil || s.logins[client] != nil {
		return fmt.Errorf("bus: admitting a client: its id is in use: %w", ErrSecret)
	}
	l.letIn()
	l.login = newLogin(client, privileges, l.own, l.life, l.close)
	l.login.addr = addrOf(l.outer.RemoteAddr())
	s.logins[client] = l.login
	return nil
}

// leave removes a link that has ended, and reports the client that had it.
func (s *Server) leave(l *link) {
	s.mu.Lock()
	delete(s.links, l.id)
	gone, ended, member := s.gone, l.login, l.owner
	for _, other := range s.links {
		if other.owner == member { // the member has another connection
			member = ""
		}
	}
	s.mu.Unlock()
	if member != "" && gone != nil {
		gone(member)
	}
	if ended == nil {
		return
	}
	ended.end(gone)
	s.mu.Lock()
	delete(s.logins, ended.client)
	s.mu.Unlock()
}

// login returns a connected client, or nil.
func (s *Server) login(client string) *login {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.logins[client]
}

// everyone returns all connected clients.
func (s *Server) everyone() []*login {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.logins))
}

// onGone sets the function to call when a client is gone; nil ends that.
func (s *Server) onGone(f func(client string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = f
}

// enter takes a slot if one is free.
func enter(places chan struct{}) bool {
	select {
	case places <- struct{}{}:
		return true
	default:
		return false
	}
}

func leave(places chan struct{}) { <-places }
