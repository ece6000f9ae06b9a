package bus

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
)

// maxPatience bounds how long a request may run.
const maxPatience = 60 * time.Second

// Service answers the requests of a server's clients with a Handler, as the NATS micro
// service "thru".
type Service struct {
	server  *Server
	nc      *nats.Conn
	micro   micro.Service
	answers *dispatcher
	done    chan struct{}
	close   sync.Once
	wg      sync.WaitGroup
}

// Serve starts to answer. The handler is called concurrently, in one goroutine per
// request; its context ends when the client is gone or has stopped waiting. Gone is
// called once for a client, after its last request.
func Serve(s *Server, h Handler) (*Service, error) {
	nc, err := s.connect()
	if err != nil {
		return nil, fmt.Errorf("bus: connecting the agent to its control plane: %w", err)
	}
	v := &Service{server: s, nc: nc, answers: newDispatcher(h.Answers(), h.Gone, nc.PublishMsg), done: make(chan struct{})}
	if err := v.register(); err != nil {
		nc.Close()
		return nil, fmt.Errorf("bus: starting the service: %w", err)
	}
	s.onGone(v.answers.gone)
	v.wg.Go(v.watch)
	return v, nil
}

// connect logs this process in at its own server.
func (s *Server) connect(more ...nats.Option) (*nats.Conn, error) {
	return nats.Connect("nats://thru", append(more,
		nats.InProcessServer(s.nats), nats.UserInfo(s.agentUser, string(s.agentSecret)),
		nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), // the default prints
	)...)
}

// register adds one endpoint per verb.
func (v *Service) register() (err error) {
	v.micro, err = micro.AddService(v.nc, micro.Config{
		Name: "thru", Version: fmt.Sprintf("%d.%d.0", WireMajor, WireMinor), QueueGroupDisabled: true,
	})
	if err != nil {
		return err
	}
	for verb := range v.answers.verbs {
		if err := v.endpoint(verb, v.request(verb)); err != nil {
			return err
		}
	}
	if err := v.endpoint(verbAlive, v.alive); err != nil {
		return err
	}
	return v.nc.Flush() // no client may come before the subscriptions
}

func (v *Service) endpoint(verb string, f micro.HandlerFunc) error {
	return v.micro.AddEndpoint(verb, f, micro.WithEndpointSubject(subject("*", verb)))
}

// alive renews a lease.
func (v *Service) alive(r micro.Request) {
	if l := v.server.login(clientOf(r.Subject())); l != nil {
		l.touch()
	}
}

// request answers one verb. The reply goes only to the inbox of the client that asked:
// the server lets the agent publish anywhere, so this is checked here.
func (v *Service) request(verb string) micro.HandlerFunc {
	return func(r micro.Request) {
		client := clientOf(r.Subject())
		l := v.server.login(client)
		if l == nil || !strings.HasPrefix(r.Reply(), inbox(client)+".") {
			return
		}
		v.answers.begin(l, request{verb, r.Reply(), r.Headers().Get(headerPatience), r.Data(), nil})
	}
}

// mayKey is the context key of the privileges to which the controller limits a request.
type mayKey struct{}

// loginKey is the context key of the login that made a request.
type loginKey struct{}

// IsOwn reports whether a request comes from its own process, and not from the network.
func IsOwn(ctx context.Context) bool {
	l, _ := ctx.Value(loginKey{}).(*login)
	return l != nil && l.own
}

// ClientAddr returns the address from which the client of a request is connected. It
// is unknown for a client in this process, behind a controller or over ssh.
func ClientAddr(ctx context.Context) (netip.Addr, bool) {
	l, _ := ctx.Value(loginKey{}).(*login)
	if l == nil {
		return netip.Addr{}, false
	}
	return l.addr, l.addr.IsValid()
}

// addrOf returns the IP address of a TCP end; not valid for any other.
func addrOf(a net.Addr) netip.Addr {
	if t, ok := a.(*net.TCPAddr); ok {
		return t.AddrPort().Addr().Unmap().WithZone("")
	}
	return netip.Addr{}
}

// Granted returns the privileges of the client that makes a request. The own process
// has all.
func Granted(ctx context.Context) []string {
	l, _ := ctx.Value(loginKey{}).(*login)
	switch {
	case l == nil:
		return nil
	case l.own:
		return append([]string{PrivilegeMeasure}, Privileges()...)
	}
	may, limited := ctx.Value(mayKey{}).([]string)
	return slices.DeleteFunc(slices.Clone(l.privileges), func(p string) bool { return limited && !slices.Contains(may, p) })
}

// Allows reports whether the client that makes a request has a privilege.
func Allows(ctx context.Context, privilege string) bool {
	return slices.Contains(Granted(ctx), privilege)
}

// Publish sends an event to a client; it has the type Publish. It drops an event to a
// client that is gone.
func (v *Service) Publish(client string, e Event) {
	if v.server.login(client) == nil {
		return
	}
	v.nc.Publish(eventSubject(client), e.body())
}

// watch closes the connections of clients whose lease has expired.
func (v *Service) watch() {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			v.endSilent(leaseTime)
			v.answers.long.expire()
		case <-v.done:
			return
		}
	}
}

func (v *Service) endSilent(after time.Duration) {
	for _, l := range v.server.everyone() {
		if l.silent() > after {
			l.cut() // its goroutine then reports the end
		}
	}
}

// Close stops answering. Every client is gone when it returns: requests have ended, or
// their grace time has, and the handler is not called any more.
func (v *Service) Close() error {
	var err error
	v.close.Do(func() {
		close(v.done)
		v.wg.Wait()
		err = v.micro.Stop()
		if errors.Is(err, nats.ErrConnectionClosed) {
			err = nil
		}
		var ends sync.WaitGroup
		for _, l := range v.server.everyone() {
			ends.Go(func() { l.end(v.answers.gone); l.cut() })
		}
		ends.Wait()
		v.server.onGone(nil) // not before: a link that ends at this time must be reported too
		v.nc.Close()
	})
	return err
}
