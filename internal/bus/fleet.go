package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/time/rate"

	"thru/internal/fault"
)

// longAtOnce is how many long replies are fetched at a time, so that the data
// queued for an operator stays far below the bus's limit for one connection.
const longAtOnce = 32

// FleetConfig names the fleet that an operator connects to.
type FleetConfig struct {
	Join      *Join       // of `thru control`, for PrivilegeOperate or PrivilegeUser; or
	NATS      *NATSConfig // an external bus
	Version   string      // of this thru
	Device    string      // device or VRF to dial from (Linux)
	LocalAddr string      // address to dial from
}

// Fleet is an operator's connection to all hosts of a controller, or of an
// external NATS. Its methods may be called concurrently.
type Fleet struct {
	uplink   *uplink
	nc       *nats.Conn
	owner    operatorID
	to       func(agent string, o operatorID, verb string) string // subject of a request
	version  string
	registry *Client

	ctx    context.Context // ends with the connection; its cause is the reason
	cancel context.CancelCauseFunc
	closed chan struct{}
	once   sync.Once
	wg     sync.WaitGroup

	long chan struct{} // one slot for each long reply under way

	mu      sync.Mutex
	clients map[string]*Client // by agent
	names   map[string]string  // of agents
	shares  bool               // its operators share their runs
	broken  *time.Timer        // ends the fleet if the bus stays unreachable; nil while connected
}

// DialFleet connects to a fleet. Errors wrap one of the Err values of this package
// and carry a hint.
func DialFleet(ctx context.Context, c FleetConfig) (*Fleet, error) {
	t, err := uplinkConfig{c.Join, c.NATS, c.Device, c.LocalAddr}.uplink(newIdentity, PrivilegeOperate, PrivilegeUser, loginOIDC)
	if err != nil {
		return nil, err
	}
	f := &Fleet{
		uplink: t, owner: operatorID{t.id.pub, newID()}, to: toSubject, version: c.Version, closed: make(chan struct{}),
		clients: map[string]*Client{}, names: map[string]string{}, long: make(chan struct{}, longAtOnce),
	}
	if c.Join != nil && c.Join.Privilege != PrivilegeOperate {
		f.to = askSubject
	}
	f.ctx, f.cancel = context.WithCancelCause(context.Background())
	stop := context.AfterFunc(ctx, t.cancel)
	f.nc, err = t.connect(
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { f.away(err) }),
		nats.ReconnectHandler(func(*nats.Conn) { f.back() }),
		nats.ErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) { f.trouble(sub, err) }),
		nats.ClosedHandler(func(*nats.Conn) { close(f.closed) }),
	)
	stop()
	if ctx.Err() != nil {
		err = fmt.Errorf("bus: dialling: %w", context.Cause(ctx))
		if f.nc != nil {
			f.nc.Close()
			<-f.closed
		}
	}
	if err != nil {
		f.cancel(err)
		return nil, err
	}
	f.registry = f.Client(tokenRegistry)
	f.registry.name = "the controller"
	f.wg.Go(f.keepAlive)
	return f, nil
}

// Hosts returns the hosts of the fleet, including offline ones, in the order of
// their ids.
func (f *Fleet) Hosts(ctx context.Context) ([]Host, error) {
	var all []Host
	shares := false
	for after := ""; ; {
		page, err := Call(ctx, f.registry, listHosts, HostsRequest{After: after})
		if err != nil {
			return nil, f.registryError(err)
		}
		all, shares = append(all, page.Hosts...), page.Shares
		if !page.More || len(page.Hosts) == 0 || page.Hosts[len(page.Hosts)-1].ID <= after {
			break
		}
		after = page.Hosts[len(page.Hosts)-1].ID
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shares = shares
	for _, h := range all {
		f.names[h.ID] = h.Name
	}
	return all, nil
}

// Forget releases a host name, so that another agent may have it.
func (f *Fleet) Forget(ctx context.Context, name string) error {
	_, err := Call(ctx, f.registry, forgetHost, ForgetRequest{name})
	return f.registryError(err)
}

// Client returns the connection to an agent, by Host.ID. It returns the same one
// until that is closed. The first request shows whether the agent is reachable.
func (f *Fleet) Client(agentID string) *Client {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := f.clients[agentID]; c != nil && c.Err() == nil {
		return c
	}
	c := newClient(f.owner.client())
	c.version, c.name = f.version, "host "+f.names[agentID]
	if f.names[agentID] == "" {
		c.name = "host " + agentID[:min(len(agentID), 8)]
	}
	f.share(c, agentID)
	if agentID != tokenRegistry {
		f.clients[agentID] = c
	}
	return c
}

// share creates the route of a client on the fleet's connection.
func (f *Fleet) share(c *Client, agent string) {
	r := &fleetRoute{fleet: f, agent: agent, client: c, waiting: map[string]chan *nats.Msg{}, events: rate.NewLimiter(eventRate, eventBurst)}
	c.route = r
	c.wg.Go(func() { c.events.run(c.done) })
	if !validKey(agent) && agent != tokenRegistry {
		c.cancel(fault.Usagef("list the hosts: thru hosts", "bus: %q is not a host id", agent))
		return
	}
	var err error
	if r.sub, err = f.nc.Subscribe(reSubject(f.owner, agent, ">"), r.hear); err != nil {
		c.cancel(f.lostError(err))
		return
	}
	r.sub.SetPendingLimits(maxWaiting, replyBytes)
	if agent != tokenRegistry {
		c.wg.Go(r.watch)
	}
	stop := context.AfterFunc(f.ctx, func() { c.cancel(context.Cause(f.ctx)) })
	context.AfterFunc(c.ctx, func() { stop() })
}

// keepAlive renews the leases at all agents at once.
func (f *Fleet) keepAlive() {
	tick := time.NewTicker(aliveEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			f.nc.Publish(aliveSubject(f.owner), nil)
		case <-f.ctx.Done():
			return
		}
	}
}

// away starts the timer of an outage: a bus that is unreachable for a lease is
// lost, as the agents end the sessions then.
func (f *Fleet) away(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.broken == nil && f.ctx.Err() == nil {
		f.broken = time.AfterFunc(leaseTime, func() { f.cancel(f.lostError(err)) })
	}
}

// back stops the timer, and repeats the requests that may be lost.
func (f *Fleet) back() {
	f.mu.Lock()
	if f.broken != nil {
		f.broken.Stop()
		f.broken = nil
	}
	for _, c := range f.clients {
		c.life.spare(leaseTime / 2)
	}
	f.mu.Unlock()
	f.nc.Publish(aliveSubject(f.owner), nil)
}

// trouble handles an error of the connection: an agent that sends more than is
// accepted is lost, the others are not.
func (f *Fleet) trouble(sub *nats.Subscription, err error) {
	if errors.Is(err, nats.ErrPermissionViolation) {
		f.cancel(f.uplink.why(err)) // nothing works without the permission
	}
	if sub == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.clients {
		if r, ok := c.route.(*fleetRoute); ok && r.sub == sub {
			c.cancel(fault.Failf("", "bus: %s sends more messages than fit the queue: %w: %w", c.peer(), ErrLost, err))
			go c.route.cut()
		}
	}
}

func (f *Fleet) lostError(err error) error {
	if err == nil {
		err = nats.ErrConnectionClosed
	}
	return f.uplink.why(err)
}

// registryError explains that no controller answers.
func (f *Fleet) registryError(err error) error {
	if errors.Is(err, ErrTimeout) {
		return fault.Failf("start the controller there: thru control", "bus: no controller answers at %s: %w", f.uplink.where, ErrTimeout)
	}
	return err
}

// Lost is closed when the connection is lost for good: after the bus was
// unreachable for 10 s, and after Close.
func (f *Fleet) Lost() <-chan struct{} { return f.ctx.Done() }

// Err returns why the connection was lost; nil while it is open.
func (f *Fleet) Err() error { return context.Cause(f.ctx) }

// Close ends this operator's sessions at all agents at once. All its goroutines
// have ended when Close returns.
func (f *Fleet) Close() error {
	f.once.Do(func() {
		for _, c := range f.everyone() {
			c.Close()
		}
		f.registry.Close()
		f.nc.FlushTimeout(time.Second)
		f.cancel(fmt.Errorf("bus: %w", ErrClosed))
		f.uplink.cancel()
		f.nc.Close()
		<-f.closed
		f.wg.Wait()
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.broken != nil {
			f.broken.Stop()
		}
	})
	return nil
}

func (f *Fleet) everyone() []*Client {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Collect(maps.Values(f.clients))
}

// jsonOf marshals a value that cannot fail to marshal.
func jsonOf(v any) []byte {
	b, _ := json.Marshal(v)
	return b
}
