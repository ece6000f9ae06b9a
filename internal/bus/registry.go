package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/time/rate"

	"thru/internal/access"
)

// Bounds of a registry.
const (
	maxHosts      = 8192
	hostsPage     = 200
	refuseAgain   = 10 * time.Second // between two messages to an agent about its name
	maxOperators  = 1024
	operatorsKey  = 128 // of one key, so that it cannot lock the others out
	presenceBurst = 3   // presence messages of an agent at once; then one per announceGap
)

// RegistryConfig sets the bus of a registry, and what it does with results.
type RegistryConfig struct {
	Hub  *Hub        // of this process; or
	NATS *NATSConfig // an external bus

	Book *NameBook // owners of names; nil: kept only in memory
	// Intake stores a result; when it returns nil, the agent drops the result. It is
	// called concurrently, and again with the same Agent and ID if the agent has not
	// received the ack. nil: results stay at the agents.
	Intake func(Spooled) error
}

// Registry is a controller's list of its fleet: which hosts are online, and who owns
// the names. Several can serve one external NATS.
type Registry struct {
	conf    RegistryConfig
	nc      *nats.Conn
	key     string
	answers *dispatcher
	intake  *intake
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	closed  chan struct{}
	close   sync.Once
	wg      sync.WaitGroup
	stop    func() // stops the uplink
	subs    []*nats.Subscription

	naming sync.Mutex // the owner of a name does not change while a presence is handled

	mu        sync.Mutex
	hosts     map[string]*entry // by id
	forgotten map[string]bool   // ids that were just forgotten
	logins    map[string]*login // of operators
	shared    *sharedNames      // nil: this controller keeps the names alone
	alone     error             // why

	claims chan struct{} // one slot for each claim of a shared name
	tried  chan struct{} // closed after the first attempt to share
	twin   twin          // of this process
	lost   chan struct{} // closed when another controller with this key has begun
}

// entry is a host as it was last heard.
type entry struct {
	Host
	answered time.Time     // last message about its name
	claiming bool          // a claim of its name is under way
	rights   *rate.Limiter // of its presence messages

	instance string // of the process that sent the last presence
}

// OpenRegistry starts to listen, and sends a roll call: the hosts that are online are
// known within a second.
func OpenRegistry(ctx context.Context, c RegistryConfig) (*Registry, error) {
	if c.Book == nil {
		c.Book = &NameBook{names: map[string]pin{}}
	}
	r := &Registry{
		conf: c, closed: make(chan struct{}), hosts: map[string]*entry{}, forgotten: map[string]bool{}, logins: map[string]*login{}, stop: func() {},
		claims: make(chan struct{}, claimsAtOnce), tried: make(chan struct{}), lost: make(chan struct{}), twin: twin{newID(), time.Now().UnixNano()},
	}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	if err := r.connect(ctx); err != nil {
		r.cancel()
		return nil, err
	}
	r.answers = newDispatcher([]Answerer{On(listHosts, r.answerHosts), On(forgetHost, r.answerForget), On(listTokens, r.answerTokens), On(addToken, r.answerToken), On(revokeToken, r.answerRevoke), On(newSession, r.answerSession)}, nil, r.nc.PublishMsg)
	r.intake = newIntake(r)
	if err := r.listen(); err != nil {
		r.Close()
		return nil, err
	}
	r.wg.Go(r.watch)
	if c.NATS != nil {
		return r, r.join(ctx)
	}
	return r, nil
}

// connect logs in to the bus.
func (r *Registry) connect(ctx context.Context) (err error) {
	common := []nats.Option{
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), // the default prints
		nats.ClosedHandler(func(*nats.Conn) { close(r.closed) }),
		nats.ReconnectHandler(func(*nats.Conn) { r.call() }),
	}
	if r.conf.Hub != nil {
		id, err := newIdentity()
		if err != nil {
			return err
		}
		s := r.conf.Hub.server
		r.key = id.pub
		// Without echo, overhear hears operators, and not what ask passes on.
		if r.nc, err = s.connect(append(common, nats.NoEcho())...); err != nil {
			return fmt.Errorf("bus: connecting the registry to its hub: %w", err)
		}
		return nil
	}
	t, err := uplinkConfig{nats: r.conf.NATS}.uplink(nil)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, t.cancel)
	defer stop()
	r.key, r.stop = t.id.pub, t.cancel
	r.nc, err = t.connect(common...)
	return err
}

// listen subscribes to the subjects of a registry.
func (r *Registry) listen() error {
	keep := func(sub *nats.Subscription, err error) error {
		r.subs = append(r.subs, sub)
		return err
	}
	queue := func(subject string, f nats.MsgHandler) error {
		return keep(r.nc.QueueSubscribe(subject, registryQueue, f))
	}
	each := func(subject string, f nats.MsgHandler) error { return keep(r.nc.Subscribe(subject, f)) }
	for _, err := range []error{
		each("thru.here.*", r.here), each("thru.alive.*.*", r.alive), queue("thru.registry.*.*.*", r.request),
		queue("thru.spool.*."+tokenAny, r.intake.hear), each("thru.spool.*."+r.key, r.intake.hear), r.nc.Flush(),
	} {
		if err != nil {
			return fmt.Errorf("bus: starting the registry: %w", err)
		}
	}
	if r.conf.Hub != nil && r.conf.Hub.users != nil {
		for _, err := range []error{each("thru.ask.*.*.*.*", r.ask), each("thru.to.*.*.*.*", r.overhear), r.nc.Flush()} {
			if err != nil {
				return fmt.Errorf("bus: starting the registry: %w", err)
			}
		}
	}
	if err := r.nc.LastError(); errors.Is(err, nats.ErrPermissionViolation) {
		return r.conf.NATS.explain(r.key, err)
	}
	if r.conf.Hub != nil {
		r.conf.Hub.server.onGone(r.gone)
	}
	r.call()
	return nil
}

// gone marks a host offline when the hub reports the end of its connection.
func (r *Registry) gone(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.hosts[id]; e != nil {
		e.Online = false
	}
}

// call sends a roll call.
func (r *Registry) call() { r.nc.Publish(rollSubject(r.key), nil) }

// here handles a presence, at most one per second of each agent.
func (r *Registry) here(m *nats.Msg) {
	t := tokens(m.Subject, 3)
	if t == nil || !validKey(t[2]) {
		return
	}
	r.naming.Lock()
	defer r.naming.Unlock()
	id, now := t[2], time.Now()
	if !r.due(id, now) {
		return
	}
	p, err := parsePresence(m.Data)
	if err != nil {
		return
	}
	r.claim(id, p, func(refused string, err error) { r.settle(id, p, m.Data, now, refused, err) })
}

// settle lists a host whose name was granted or refused. The caller holds naming.
func (r *Registry) settle(id string, p Presence, message []byte, now time.Time, refused string, err error) {
	h := p.host(id, now)
	if h.Refused = refused; err != nil {
		h.Refused = "the controller cannot store its name: " + err.Error()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.hosts[id]
	if e == nil { // forgotten just now
		return
	}
	if e.instance != "" && e.instance != p.Instance && r.conf.Hub != nil {
		r.nc.Publish(ackSubject(id, wordHere), message) // the older of the two leaves
	}
	e.instance = p.Instance
	letIn := h.Refused == "" && e.Refused != ""
	e.Host = h
	if letIn || h.Refused != "" && now.Sub(e.answered) >= refuseAgain {
		e.answered = now
		r.nc.Publish(ackSubject(id, wordName), jsonOf(ackMessage{Refused: h.Refused}))
	}
}

// due reports whether a presence of an agent is to be handled, and creates its entry.
func (r *Registry) due(id string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.forgotten[id] {
		return false
	}
	e := r.hosts[id]
	if e == nil {
		if len(r.hosts) >= maxHosts && !r.makeRoom(now) {
			return false
		}
		e = &entry{Host: Host{ID: id}, rights: rate.NewLimiter(rate.Every(announceGap), presenceBurst)}
		r.hosts[id] = e
	}
	return e.rights.AllowN(now, 1)
}

// makeRoom removes the host that was offline for longest. The caller holds the lock.
func (r *Registry) makeRoom(now time.Time) bool {
	oldest := ""
	for id, e := range r.hosts {
		if !e.online(now) && (oldest == "" || e.SeenAt.Before(r.hosts[oldest].SeenAt)) {
			oldest = id
		}
	}
	delete(r.hosts, oldest)
	return oldest != ""
}

// online reports whether a host was heard recently.
func (e *entry) online(now time.Time) bool {
	return e.Online && now.Sub(e.SeenAt) < offlineAfter
}

// Hosts returns all known hosts, online and offline, in the order of their ids.
func (r *Registry) Hosts() []Host {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.conf.Book.hosts()
	for id, e := range r.hosts {
		if e.Name == "" { // none of its presence messages could be parsed
			continue
		}
		h := e.Host
		if h.Online = e.online(now); !h.Online {
			h.Busy = ""
		}
		all[id] = h
	}
	return slices.SortedFunc(maps.Values(all), func(a, b Host) int { return cmp.Compare(a.ID, b.ID) })
}

// nameOf returns the name that an agent owns, or "".
func (r *Registry) nameOf(id string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.hosts[id]; e != nil && e.Refused == "" {
		return e.Name
	}
	return ""
}

// forgetTime is how long presence messages of a forgotten host are ignored: an earlier
// one may still be in transit, and other hosts get the name first.
const forgetTime = time.Second

// Forget releases a name, so that another agent may have it; the host that had it is
// no longer listed, unless it is heard again.
func (r *Registry) Forget(name string) error {
	r.mu.Lock()
	shared := r.shared
	r.mu.Unlock()
	if shared != nil {
		freed, err := shared.release(r.ctx, name, "")
		if err != nil {
			return fmt.Errorf("bus: forgetting %s: %w", name, err)
		}
		if freed {
			r.forget(name) // this controller may not know it, or has heard of it meanwhile
			return nil
		}
	}
	return r.forget(name)
}

// forget is Forget at this controller alone.
func (r *Registry) forget(name string) error {
	r.naming.Lock()
	defer r.naming.Unlock()
	key, err := r.conf.Book.Forget(name)
	if err != nil {
		return err
	}
	r.mu.Lock()
	delete(r.hosts, key)
	r.forgotten[key] = true
	r.mu.Unlock()
	time.AfterFunc(forgetTime, func() {
		r.mu.Lock()
		delete(r.forgotten, key)
		r.mu.Unlock()
		r.call()
	})
	r.call()
	return nil
}

func (r *Registry) answerHosts(_ context.Context, client string, q HostsRequest) (HostsReply, error) {
	user, err := r.whoOf(client)
	if err != nil {
		return HostsReply{}, err
	}
	all := slices.DeleteFunc(r.Hosts(), func(h Host) bool { return !user.given.Labels.Fit(h.Labels) })
	from, _ := slices.BinarySearchFunc(all, q.After, func(h Host, id string) int {
		if h.ID <= id {
			return -1
		}
		return 1
	})
	page := all[from:]
	more := len(page) > hostsPage
	return HostsReply{Hosts: page[:min(len(page), hostsPage)], More: more, Shares: r.Alone() == nil}, nil
}

func (r *Registry) answerForget(_ context.Context, client string, q ForgetRequest) (Empty, error) {
	m, err := r.may(client, access.Forget)
	if err := r.audit(m, forgetHost.name, []string{q.Name}, err); err != nil {
		return Empty{}, err
	}
	return Empty{}, r.Forget(q.Name)
}

// request answers a message to thru.registry.OPERATOR.RUN.VERB.
func (r *Registry) request(m *nats.Msg) {
	t := tokens(m.Subject, 5)
	if t == nil {
		return
	}
	who, ok := operatorOf(t[2], t[3])
	if !ok || !strings.HasPrefix(m.Reply, reSubject(who, tokenRegistry, wordReply+".")) {
		return
	}
	l := r.login(who)
	if l == nil {
		r.answers.refuse(m.Reply, errFull)
		return
	}
	r.answers.begin(l, request{t[4], m.Reply, m.Header.Get(headerPatience), m.Data, nil})
}

// login returns an operator, and creates it at its first request.
func (r *Registry) login(who operatorID) *login {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.logins[who.client()]
	if l == nil && r.ctx.Err() == nil && hasRoom(r.logins, who.key, maxOperators, operatorsKey) {
		l = newLogin(who.client(), nil, false, newLife(), func() {})
		r.logins[who.client()] = l
	}
	return l
}

// alive renews the lease of an operator.
func (r *Registry) alive(m *nats.Msg) {
	t := tokens(m.Subject, 4)
	if t == nil {
		return
	}
	r.mu.Lock()
	l := r.logins[operatorID{t[2], t[3]}.client()]
	r.mu.Unlock()
	if l != nil {
		l.touch()
	}
}

// watch removes lost operators, and stores when hosts were last seen.
func (r *Registry) watch() {
	tick, keep, here := time.NewTicker(time.Second), time.NewTicker(time.Minute), time.NewTicker(presenceEvery)
	defer tick.Stop()
	defer keep.Stop()
	defer here.Stop()
	for {
		select {
		case <-tick.C:
			r.endSilent(leaseTime)
			r.answers.long.expire()
			r.intake.expire()
		case <-here.C:
			r.show()
		case <-keep.C:
			r.conf.Book.Save() // a full disk loses only when hosts were last seen
		case <-r.ctx.Done():
			return
		}
	}
}

func (r *Registry) endSilent(after time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for client, l := range r.logins {
		if l.silent() > after {
			delete(r.logins, client)
			r.wg.Go(func() { l.end(r.answers.gone) })
		}
	}
}

// Close stops listening. Results that are partly received are dropped; agents send them again.
func (r *Registry) Close() error {
	var err error
	r.close.Do(func() {
		r.cancel()
		r.leave()
		r.wg.Wait()
		r.mu.Lock()
		logins := slices.Collect(maps.Values(r.logins))
		r.mu.Unlock()
		for _, l := range logins {
			l.end(nil)
		}
		r.intake.close()
		r.stop()
		r.nc.Close()
		<-r.closed
		err = r.conf.Book.Save()
	})
	return err
}

// leave unsubscribes, so that later messages go to another controller.
func (r *Registry) leave() {
	if r.conf.Hub != nil {
		r.conf.Hub.server.onGone(nil)
	}
	for _, sub := range r.subs {
		if sub != nil {
			sub.Unsubscribe()
		}
	}
	if r.nc.IsConnected() {
		r.nc.FlushTimeout(time.Second)
	}
}
