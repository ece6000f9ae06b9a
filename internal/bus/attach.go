package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"thru/internal/fault"
)

// Bounds of the operators that an agent serves at a time: in total, and with the
// same key, so that none can lock the others out.
const (
	maxClients   = 256
	clientsOfKey = 64
)

// errFull is the error of a client beyond these bounds.
var errFull = fault.Failf("end other commands there, or try again in 10 s", "bus: too many clients are connected")

// AttachConfig names the fleet that an agent joins, and describes the agent.
type AttachConfig struct {
	Join *Join       // of `thru control`, for PrivilegeAgent; or
	NATS *NATSConfig // an external bus

	State     *State // identity, for Join
	Name      string // of the host
	Labels    map[string]string
	Version   string   // of this thru
	Addrs     []string // of the host, without loopback
	DataAddrs []string // addresses for data connections; empty: none announced
	CPUs      int
	Allow     []string // of Privileges: what operators may do besides measuring
	Device    string   // device or VRF to dial from (Linux)
	LocalAddr string   // address to dial from

	// State of the host, read for each presence message; nil: idle, no results wait.
	Busy  func() string                        // running tests and their clients; empty: idle
	Spool func() (waiting int, problem string) // results that no controller has yet
}

// Status is the state of the link to a fleet.
type Status struct {
	Connected bool
	Fleet     string // names the controller, or the NATS server
	Err       error  // why it is not connected, or what the fleet refuses; nil: no error
	Ended     bool   // permanently: a newer process has this agent's identity
}

// Post is an agent's membership of a fleet. It dials out, and reconnects without end.
type Post struct {
	conf     AttachConfig
	uplink   *uplink
	nc       *nats.Conn
	answers  *dispatcher
	instance string
	started  time.Time
	labels   atomic.Pointer[map[string]string]

	ctx      context.Context // ends with Close
	cancel   context.CancelFunc
	closed   chan struct{} // closed when the NATS connection has ended
	close    sync.Once
	wg       sync.WaitGroup
	wake     chan struct{} // triggers a presence message
	delivers chan struct{} // capacity 1: results are delivered one at a time

	mu     sync.Mutex
	posted map[string]*posting // by client
	acks   map[string]chan ackMessage
	status Status
	news   chan Status // capacity 1: the newest
}

// posting is a client of the agent, with what is kept so that a short outage loses nothing.
type posting struct {
	*login
	owner operatorID
	epoch string // random; shows the client whether it is still the same login
	kept  keptAnswers
	ends  bool // guarded by Post.mu
}

// Attach makes an agent a host of a fleet. It returns after the first attempt to
// connect, successful or not: Status has the result. The error is one of the
// configuration.
func Attach(ctx context.Context, c AttachConfig, h Handler) (*Post, error) {
	p, err := newPost(c, h)
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, p.uplink.cancel)()
	if err := p.connect(); err != nil {
		p.cancel()
		return nil, err
	}
	if ctx.Err() != nil {
		p.Close()
		return nil, fmt.Errorf("bus: joining the fleet: %w", context.Cause(ctx))
	}
	p.wg.Go(p.watch)
	p.wg.Go(p.announce)
	return p, nil
}

// newPost checks the configuration.
func newPost(c AttachConfig, h Handler) (*Post, error) {
	if !validName(c.Name) {
		return nil, fault.Usagef("name the host with --name: letters, digits and . _ - , up to 64, beginning with a letter or digit", "bus: %q is not a valid name of a host", c.Name)
	}
	for k, v := range c.Labels {
		if err := CheckLabel(k, v); err != nil {
			return nil, fault.Usagef("a label is KEY=VALUE, without spaces", "%w", err)
		}
	}
	if c.State == nil && c.Join != nil {
		return nil, errors.New("bus: joining a fleet: an agent needs its state")
	}
	t, err := uplinkConfig{c.Join, c.NATS, c.Device, c.LocalAddr}.uplink(func() (identity, error) { return c.State.identity() }, PrivilegeAgent)
	if err != nil {
		return nil, err
	}
	p := &Post{
		conf: c, uplink: t, instance: newID(), started: time.Now(), closed: make(chan struct{}), wake: make(chan struct{}, 1), delivers: make(chan struct{}, 1),
		posted: map[string]*posting{}, acks: map[string]chan ackMessage{}, news: make(chan Status, 1),
	}
	p.labels.Store(new(maps.Clone(c.Labels)))
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.answers = newDispatcher(h.Answers(), h.Gone, p.send)
	return p, nil
}

// connect dials, and redials without end.
func (p *Post) connect() (err error) {
	p.nc, err = p.uplink.connect(
		nats.RetryOnFailedConnect(true),
		nats.ConnectHandler(func(*nats.Conn) { p.linked() }), nats.ReconnectHandler(func(nc *nats.Conn) {
			p.present(nc) // a new controller must know the name before results come
			p.linked()
		}),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { p.unlinked(err) }),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) { p.unlinked(err) }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { p.trouble(err) }),
		nats.ClosedHandler(func(*nats.Conn) { close(p.closed) }),
	)
	if err != nil {
		return err
	}
	key := p.uplink.id.pub
	hears := map[string]nats.MsgHandler{
		"thru.to." + key + ".>": p.request,
		"thru.alive.*.*":        p.alive,
		"thru.roll.*":           p.roll,
		ackSubject(key, ">"):    p.ack,
	}
	if p.conf.NATS != nil { // at a hub the registry reports it
		hears[hereSubject(key)] = p.here
	}
	for subject, f := range hears {
		if _, err := p.nc.Subscribe(subject, f); err != nil {
			p.uplink.cancel()
			p.nc.Close()
			return fmt.Errorf("bus: joining the fleet: listening to %s: %w", subject, err)
		}
	}
	return nil
}

// ID is the public nkey by which the fleet knows the agent.
func (p *Post) ID() string { return p.uplink.id.pub }

// Status returns a channel of link changes; an unread change is replaced by the
// newest. The channel is never closed.
func (p *Post) Status() <-chan Status { return p.news }

// Relabel replaces the labels of the host.
func (p *Post) Relabel(labels map[string]string) {
	p.labels.Store(new(maps.Clone(labels)))
	p.Announce()
}

// Announce reports a change of busy or spool to the fleet at once.
func (p *Post) Announce() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// linked handles a new connection.
func (p *Post) linked() {
	p.setStatus(func(s *Status) { s.Connected, s.Err = true, nil })
	for _, x := range p.everyone() {
		x.spare(leaseTime / 2) // during the outage no client could be heard
	}
	p.Announce()
}

// unlinked handles a lost connection, or a failed attempt.
func (p *Post) unlinked(err error) {
	if err == nil {
		err = nats.ErrConnectionClosed
	}
	p.setStatus(func(s *Status) { s.Connected, s.Err = false, p.uplink.why(err) })
}

// trouble handles an error that the server reports on an open connection.
func (p *Post) trouble(err error) {
	if errors.Is(err, nats.ErrPermissionViolation) {
		p.setStatus(func(s *Status) { s.Err = p.uplink.why(err) })
	}
}

// setStatus changes the status; it replaces an unread one.
func (p *Post) setStatus(change func(*Status)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.status)
	p.status.Fleet = p.uplink.where
	select {
	case <-p.news:
	default:
	}
	p.news <- p.status
}

// request answers a message to thru.to.AGENT.OPERATOR.RUN.VERB.
func (p *Post) request(m *nats.Msg) {
	t := tokens(m.Subject, 6)
	if t == nil {
		return
	}
	who, ok := operatorOf(t[3], t[4])
	if !ok {
		return
	}
	verb := t[5]
	if verb == verbBye {
		p.end(p.known(who))
		return
	}
	if verb == verbAgain {
		p.again(p.known(who), m.Data)
		return
	}
	// A reply subject has one token more than others, as send expects.
	if !strings.HasPrefix(m.Reply, reSubject(who, p.ID(), wordReply+".")) || tokens(m.Reply, 7) == nil {
		return
	}
	x, err := p.login(who)
	if err != nil {
		p.answers.refuse(m.Reply, err)
	}
	if x == nil {
		return
	}
	x.touch()
	if x.kept.seen(m.Reply, func(old *nats.Msg) { p.nc.PublishMsg(old) }) {
		return
	}
	p.answers.begin(x.login, request{verb, m.Reply, m.Header.Get(headerPatience), m.Data, m.Header.Values(headerMay)})
}

// send publishes a reply, and keeps it in case the client does not receive it.
func (p *Post) send(m *nats.Msg) error {
	if t := tokens(m.Subject, 7); t != nil {
		if who, ok := operatorOf(t[2], t[3]); ok {
			if x := p.known(who); x != nil {
				m.Header.Set(headerLogin, x.epoch)
				x.kept.answered(m)
			}
		}
	}
	return p.nc.PublishMsg(m)
}

// known returns a client that is served, or nil.
func (p *Post) known(who operatorID) *posting {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.posted[who.client()]
}

// login returns the client, and creates it at its first request; nil while it
// ends, and an error where there are too many.
func (p *Post) login(who operatorID) (*posting, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if x := p.posted[who.client()]; x != nil && x.ends {
		return nil, nil // the client repeats the request, and logs in anew when this one has ended
	} else if x != nil {
		return x, nil
	}
	if p.ctx.Err() != nil {
		return nil, nil
	}
	if !hasRoom(p.posted, who.key, maxClients, clientsOfKey) {
		return nil, errFull
	}
	granted := append([]string{PrivilegeMeasure}, p.conf.Allow...)
	x := &posting{owner: who, epoch: newID()}
	x.login = newLogin(who.client(), granted, false, newLife(), func() {})
	p.posted[who.client()] = x
	return x, nil
}

// alive renews the lease of a client.
func (p *Post) alive(m *nats.Msg) {
	t := tokens(m.Subject, 4)
	if t == nil {
		return
	}
	if x := p.known(operatorID{t[2], t[3]}); x != nil {
		x.touch()
	}
}

// Publish sends an event to a client; it has the type Publish. Events that end a
// session are kept, and sent again if the client did not receive them.
func (p *Post) Publish(client string, e Event) {
	who, ok := operatorOfClient(client)
	if !ok {
		return
	}
	x := p.known(who)
	if x == nil {
		return
	}
	m := &nats.Msg{Subject: reSubject(who, p.ID(), wordEvent), Header: nats.Header{}, Data: e.body()}
	x.kept.publish(m, e.Kind, p.nc.PublishMsg)
}

// end ends a client: its requests, then its sessions.
func (p *Post) end(x *posting) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if x == nil || x.ends || p.ctx.Err() != nil { // Close ends them all
		return
	}
	x.ends = true
	p.wg.Go(func() {
		x.login.end(p.answers.gone)
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.posted[x.client] == x {
			delete(p.posted, x.client)
		}
	})
}

// everyone returns the clients that are served.
func (p *Post) everyone() []*posting {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Values(p.posted))
}

// watch sends keepalives, and ends the clients whose lease has expired.
func (p *Post) watch() {
	life, lease := time.NewTicker(aliveEvery), time.NewTicker(time.Second)
	defer life.Stop()
	defer lease.Stop()
	for {
		select {
		case <-life.C:
			for _, x := range p.everyone() {
				p.nc.Publish(reSubject(x.owner, p.ID(), wordAlive), x.sign())
			}
		case <-lease.C:
			p.endSilent(leaseTime)
			p.answers.long.expire()
		case <-p.ctx.Done():
			return
		}
	}
}

func (p *Post) endSilent(after time.Duration) {
	for _, x := range p.everyone() {
		if x.silent() > after {
			p.end(x)
		}
	}
}

// Close leaves the fleet: it notifies and ends all clients before it returns.
func (p *Post) Close() error {
	p.close.Do(func() {
		p.mu.Lock() // from here on no client is admitted or begins to end
		p.cancel()
		p.mu.Unlock()
		p.leave()
		p.wg.Wait()
		p.uplink.cancel()
		p.nc.Close()
		<-p.closed
	})
	return nil
}

// leave notifies all clients and ends them.
func (p *Post) leave() {
	var ends sync.WaitGroup
	for _, x := range p.everyone() {
		ends.Go(func() {
			x.login.end(p.answers.gone)
			p.nc.Publish(reSubject(x.owner, p.ID(), wordLeave), nil)
		})
	}
	ends.Wait()
	b, err := json.Marshal(p.presence(true))
	if err == nil && p.nc.IsConnected() {
		p.nc.Publish(hereSubject(p.ID()), b)
		p.nc.FlushTimeout(aliveEvery)
	}
}
