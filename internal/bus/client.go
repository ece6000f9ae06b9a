package bus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"thru/internal/fault"
)

// Client is a connection to one agent. Its methods may be called concurrently.
type Client struct {
	id        string
	addr      string // that answered; "" for an agent in this process or in a fleet
	name      string // of a host of a fleet
	version   string // of this thru, sent in Hello
	route     route
	life      *life // when the agent was last heard
	events    *eventQueue
	publish   Publish      // in-process only
	stop      func()       // in-process: ends service and server
	nextMinor atomic.Int64 // the first wire minor that the agent does not support, known from Hello; 0: unknown

	ctx    context.Context // ends with the connection; its cause is the reason
	cancel context.CancelCauseFunc
	done   chan struct{} // closed by Close
	once   sync.Once
	wg     sync.WaitGroup
}

// InProcess starts an agent's control plane in memory, without a listener, and
// returns a client of it: the same code as between hosts, but without TLS. Close
// ends both.
func InProcess(h Handler) (*Client, error) {
	server, err := newServer(ServerConfig{}, agentFront())
	if err != nil {
		return nil, err
	}
	service, err := Serve(server, h)
	if err != nil {
		server.Close()
		return nil, err
	}
	stop := func() { service.Close(); server.Close() }
	c, err := server.Client()
	if err != nil {
		stop()
		return nil, err
	}
	c.publish, c.stop = service.Publish, stop
	return c, nil
}

// Memory starts a control plane without a listener: only this process can reach
// it, by Client, and the connections it passes to Carry. So no secret is needed.
func Memory() (*Server, error) { return newServer(ServerConfig{NoAuth: true}, agentFront()) }

// Client connects this process to its own server, once Serve answers there.
func (s *Server) Client() (*Client, error) {
	ours, theirs := net.Pipe()
	s.wg.Go(func() { s.serve(theirs, nil) })
	c, err := connect(ours, s.state.Load().Secret, startTime)
	if err != nil {
		return nil, fmt.Errorf("bus: connecting to the agent of this process: %w", err)
	}
	return c, nil
}

// pipeDialer gives NATS a connection that already exists.
type pipeDialer struct{ conn net.Conn }

// Dial implements nats.CustomDialer.
func (d pipeDialer) Dial(string, string) (net.Conn, error) { return d.conn, nil }

// connect logs in over a connection, which it owns from then on.
func connect(conn net.Conn, secret Secret, timeout time.Duration) (*Client, error) {
	c := newClient(newID())
	c.life = lifeOf(conn)
	own := &ownRoute{client: c.id, closed: make(chan struct{})}
	c.route = own
	var err error
	own.nc, err = nats.Connect("nats://thru",
		nats.SetCustomDialer(pipeDialer{pulse{conn, c.life}}), nats.SkipHostLookup(),
		nats.UserInfo(c.id, string(secret)), nats.CustomInboxPrefix(inbox(c.id)),
		nats.NoReconnect(), nats.Timeout(timeout), nats.FlusherTimeout(writeTime),
		nats.PingInterval(pingEvery), nats.MaxPingsOutstanding(pingsForever),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), // the default prints
		nats.ClosedHandler(func(nc *nats.Conn) { c.cancel(c.lostError(nc.LastError())); close(own.closed) }),
	)
	if err != nil {
		conn.Close()
		c.cancel(err)
		return nil, err
	}
	if _, err := own.nc.Subscribe(eventSubject(c.id), func(m *nats.Msg) { c.hear(m.Data) }); err != nil {
		c.cancel(err)
		own.nc.Close()
		return nil, fmt.Errorf("bus: listening to events: %w", err)
	}
	c.wg.Go(func() { c.events.run(c.done) })
	c.wg.Go(func() { c.keepAlive(own.nc) })
	return c, nil
}

// newClient returns a client without a route.
func newClient(id string) *Client {
	c := &Client{id: id, events: newEventQueue(), life: newLife(), done: make(chan struct{})}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	return c
}

// hear queues an event; it ignores anything else.
func (c *Client) hear(body []byte) {
	var e Event
	if decode(body, &e) == nil && !c.events.add(e) {
		c.cancel(fault.Failf("", "bus: %s sent more events than fit the queue: %w", c.peer(), ErrLost))
		c.route.cut()
	}
}

// keepAlive renews the lease until the connection is lost, and ends it when the
// agent was silent for a lease.
func (c *Client) keepAlive(nc *nats.Conn) {
	tick, look := time.NewTicker(aliveEvery), time.NewTicker(lookEvery)
	defer tick.Stop()
	defer look.Stop()
	for {
		select {
		case <-tick.C:
			nc.Publish(subject(c.id, verbAlive), nil)
		case <-look.C:
			if c.life.silent() > leaseTime {
				c.cancel(c.lostError(nats.ErrStaleConnection))
				c.route.cut()
			}
		case <-c.ctx.Done():
			return
		}
	}
}

// peer returns the agent's name for messages.
func (c *Client) peer() string {
	switch {
	case c.name != "":
		return c.name
	case c.addr != "":
		return c.addr
	}
	return "the agent of this process"
}

// lostError explains the loss of an open connection.
func (c *Client) lostError(err error) error {
	const hint = "check whether `thru serve` still runs there, and whether the network was interrupted"
	switch {
	case err == nil || errors.Is(err, io.EOF):
		return fault.Failf(hint, "bus: %s closed the connection: %w", c.peer(), ErrLost)
	case errors.Is(err, nats.ErrStaleConnection):
		return fault.Failf(hint, "bus: %s does not answer any more: %w", c.peer(), ErrLost)
	}
	return fault.Failf(hint, "bus: the connection to %s: %w: %w", c.peer(), ErrLost, err)
}

// Events returns the agent's events, in order. Unread progress may be dropped;
// Done and Failed are not. The channel is never closed.
func (c *Client) Events() <-chan Event { return c.events.out }

// Lost is closed when the connection is lost: at once when the peer ends it,
// within 12 s when the network fails, and after Close.
func (c *Client) Lost() <-chan struct{} { return c.ctx.Done() }

// Heard returns when the agent was last heard; before that, when the client was made.
func (c *Client) Heard() time.Time { return c.life.lastRead() }

// Err returns why the connection was lost; nil while it is open.
func (c *Client) Err() error { return context.Cause(c.ctx) }

// RemoteAddr returns the IP:PORT that answered; empty for an agent in this process,
// and for a host of a fleet, which dials out: HelloReply has its data addresses.
func (c *Client) RemoteAddr() string { return c.addr }

// Publish sends an event as the agent of an in-process client does; for any other
// client it does nothing.
func (c *Client) Publish(client string, e Event) {
	if c.publish != nil {
		c.publish(client, e)
	}
}

// Close ends the connection, and the agent's control plane if that is in this
// process. All its goroutines have ended when Close returns.
func (c *Client) Close() error {
	c.once.Do(func() {
		c.cancel(fmt.Errorf("bus: %w", ErrClosed))
		c.route.end()
		close(c.done)
		c.wg.Wait()
		if c.stop != nil {
			c.stop()
		}
	})
	return nil
}

// overTime bounds the login over an existing connection.
const overTime = 10 * time.Second

// Carry serves the client at the other end of a connection until it ends. The
// connection itself authenticates its maker, as ssh does: the client has all the
// rights of the own process. Carry closes the connection.
func (s *Server) Carry(conn net.Conn) { s.serve(conn, nil) }

// Over connects to an agent whose server carries the other end of a
// connection; peer names it in messages. Close closes the connection.
func Over(conn net.Conn, peer, version string) (*Client, error) {
	c, err := connect(conn, "", overTime)
	if err != nil {
		return nil, err
	}
	c.addr, c.version = peer, version
	return c, nil
}

// Bounds of the events that wait to be read.
const (
	maxProgress = 1024  // further progress is dropped
	maxWaiting  = 65536 // of all kinds: more is a flood
)

// eventQueue delivers events without blocking the connection.
type eventQueue struct {
	out  chan Event
	wake chan struct{} // holds one token when there may be something to deliver

	mu   sync.Mutex
	list []Event
}

func newEventQueue() *eventQueue {
	return &eventQueue{out: make(chan Event, 64), wake: make(chan struct{}, 1)}
}

// add queues an event; it drops progress when too much waits. It returns false
// when even the events that must not be lost are too many.
func (q *eventQueue) add(e Event) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.list) >= maxWaiting {
		return false
	}
	if e.Kind == EventProgress && len(q.list) >= maxProgress {
		return true
	}
	q.list = append(q.list, e)
	select {
	case q.wake <- struct{}{}:
	default:
	}
	return true
}

// run delivers events until done.
func (q *eventQueue) run(done <-chan struct{}) {
	for {
		select {
		case <-q.wake:
		case <-done:
			return
		}
		for _, e := range q.take() {
			select {
			case q.out <- e:
			case <-done:
				return
			}
		}
	}
}

func (q *eventQueue) take() []Event {
	q.mu.Lock()
	defer q.mu.Unlock()
	list := q.list
	q.list = nil
	return list
}
