// Package agent is the role of an end point: it answers the control plane
// (bus.Handler), opens sessions of the engines, watches the host while they
// run, and ends all that a client leaves behind.
package agent

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"thru/internal/bus"
	"thru/internal/engine"
	"thru/internal/fault"
	"thru/internal/host"
	"thru/internal/hypervisor"
	"thru/internal/measure"
	"thru/internal/path"
)

// DefaultLimits are what an agent grants unless told otherwise.
func DefaultLimits() bus.Limits {
	return bus.Limits{Streams: measure.MaxStreams, DurationNs: int64(measure.MaxDuration), Sessions: 32}
}

// Config describes an agent.
type Config struct {
	Name      string // in evidence; the controller knows it by another name perhaps
	Version   string // of thru
	Engines   engine.Table
	Host      *host.Host
	Limits    bus.Limits
	DataAddrs []string      // where data connections should go; empty: where control went
	Listen    engine.Listen // where they are accepted
	Capture   Capturer      // nil: nothing is captured
	Tuner     Tuner         // nil: no setting is changed
	Files     Files         // where clients from outside may measure disks and move files

	Below hypervisor.Source // the virtual machines of this host; nil: they are not listed

	Labels map[string]string // that its operator gave it
	Addrs  func() []string   // of the host, where data may go if nothing else is known; nil: not told
	Spool  *Spool            // where evidence stays that no client has fetched; nil: nowhere

	Ended func([]Ended) // hears, as a client of another process gives its turn back, of the flows that it has measured; nil: nobody does
}

// Ended is a flow that was measured, as this end has seen it.
type Ended struct {
	Spec     measure.Spec
	Evidence measure.Evidence
	Back     *measure.Evidence // of the other direction of two-way traffic
}

// Agent answers bus.Agent.
type Agent struct {
	conf     Config
	turns    turns
	baseline baseline
	facts    facts

	mu       sync.Mutex
	publish  bus.Publish
	sessions map[string]*session
	// Answering ends of probes, by client.
	answering map[string]*path.Responder
	opening   int // sessions that are being opened
	opened    int // sessions that ever were
	closed    bool
	id        string    // of this run of the agent
	began     time.Time // of the clock that it tells
	busy      func()    // Busy may say something else now

	jobs map[string]work         // those under way, and those whose result was not fetched, by session
	met  map[string][]netip.Addr // from where clients have measured
	over map[string][]Ended      // flows of clients that have the turn

	tuner, tunedBy string // client that tunes this host, and what it calls itself
}

// New returns an agent that serves nobody yet.
func New(c Config) *Agent {
	return &Agent{
		conf: c, id: newID(), began: time.Now(), sessions: map[string]*session{}, answering: map[string]*path.Responder{},
		jobs: map[string]work{}, met: map[string][]netip.Addr{}, over: map[string][]Ended{},
		publish: func(string, bus.Event) {}, busy: func() {},
	}
}

// Answers implements bus.Handler.
func (a *Agent) Answers() []bus.Answerer {
	return []bus.Answerer{
		bus.On(bus.Hello, a.Hello), bus.On(bus.Clock, a.Clock), bus.On(bus.Facts, a.Facts),
		bus.On(bus.Answer, a.Answer), bus.On(bus.Probe, a.Probe),
		bus.On(bus.Reserve, a.Reserve), bus.On(bus.Prepare, a.Prepare), bus.On(bus.Start, a.Start),
		bus.On(bus.Collect, a.Collect), bus.On(bus.CapturePart, a.CapturePart), bus.On(bus.Release, a.Release),
		bus.On(bus.Knobs, a.Knobs), bus.On(bus.Tune, a.Tune), bus.On(bus.Alter, a.Alter),
		bus.On(bus.Revert, a.Revert), bus.On(bus.Rollback, a.Rollback), bus.On(bus.TuneEnd, a.TuneEnd),
		bus.On(bus.Disk.Begin, a.BeginDisk), bus.On(bus.Disk.End, a.EndDisk),
		bus.On(bus.Observe.Begin, a.BeginObserve), bus.On(bus.Observe.End, a.EndObserve),
		bus.On(bus.File.Begin, a.BeginFile), bus.On(bus.File.End, a.EndFile),
		bus.On(bus.FileSize, a.FileSize), bus.On(bus.FileRemove, a.FileRemove),
		bus.On(bus.Guests, a.Guests), bus.On(bus.Watch.Begin, a.BeginWatch), bus.On(bus.Watch.End, a.EndWatch),
	}
}

// Publisher sets how events reach the clients.
func (a *Agent) Publisher(p bus.Publish) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.publish = p
}

// Hello answers bus.Hello.
func (a *Agent) Hello(ctx context.Context, _ string, _ bus.HelloRequest) (bus.HelloReply, error) {
	facts := a.facts.read(a.conf.Host, longestAge)
	r := bus.HelloReply{
		WireMajor: bus.WireMajor, WireMinor: bus.WireMinor, Thru: a.conf.Version, ID: a.id,
		Hostname: a.conf.Name, DataAddrs: a.conf.DataAddrs,
		DataPorts:  bus.PortRange{First: a.conf.Listen.First, Last: a.conf.Listen.Last},
		Limits:     a.conf.Limits,
		Privileges: bus.Granted(ctx),
		NoCapture:  a.noCapture(),
		Labels:     a.conf.Labels,
	}
	if a.conf.Addrs != nil {
		r.Addrs = a.conf.Addrs()
	}
	if facts.Cores != nil {
		r.CPUs = *facts.Cores
	}
	return r, nil
}

// Clock answers bus.Clock.
func (a *Agent) Clock(context.Context, string, bus.Empty) (bus.ClockReply, error) {
	now := time.Now()
	return bus.ClockReply{NowNs: int64(a.clock(now)), WallNs: now.UnixNano()}, nil
}

// clock is a moment on the clock that the agent tells.
func (a *Agent) clock(t time.Time) time.Duration { return t.Sub(a.began) }

// Facts answers bus.Facts.
func (a *Agent) Facts(ctx context.Context, _ string, m bus.FactsRequest) (bus.FactsReply, error) {
	age := longestAge
	if m.LoadNs > 0 { // a check, perhaps after a remedy
		age = checkAge
	}
	r := bus.FactsReply{Facts: a.facts.read(a.conf.Host, age)}
	if a.conf.Tuner != nil {
		r.Facts.Tuned = a.conf.Tuner.Open()
	}
	if !m.UUID {
		r.Facts = unidentified(r.Facts)
	}
	if m.LoadNs > 0 {
		a.load(ctx, &r.Facts, time.Duration(m.LoadNs))
	}
	if m.Peer != "" {
		r.Route, _ = a.route(m.Peer, "")
	}
	return r, nil
}

// route is the kernel's way to an address, from the own one where that is
// known; both with or without port.
func (a *Agent) route(peer, own string) (*measure.Route, error) {
	addr, err := addrOf(peer)
	if err != nil {
		return nil, fmt.Errorf("agent: reading address %q: %w", peer, err)
	}
	source, _ := addrOf(own) // what cannot be read is not known
	r, err := a.conf.Host.RouteFrom(addr, source, "")
	if err != nil && source.IsValid() { // it may be in a VRF
		r, err = a.conf.Host.Route(addr)
	}
	if err != nil {
		return nil, fmt.Errorf("agent: asking for the route to %s: %w", addr, err)
	}
	return &r, nil
}

func addrOf(hostPort string) (netip.Addr, error) {
	if h, _, err := net.SplitHostPort(hostPort); err == nil {
		hostPort = h
	}
	addr, err := netip.ParseAddr(hostPort)
	return addr.Unmap(), err
}

// Reserve answers bus.Reserve.
func (a *Agent) Reserve(_ context.Context, client string, m bus.ReserveRequest) (bus.ReserveReply, error) {
	ahead := a.turns.ask(client, m.Together)
	return bus.ReserveReply{Granted: ahead == 0, Ahead: ahead}, nil
}

// Prepare answers bus.Prepare.
func (a *Agent) Prepare(ctx context.Context, client string, m bus.PrepareRequest) (bus.PrepareReply, error) {
	if !a.turns.has(client) {
		return bus.PrepareReply{}, errNotYourTurn("preparing")
	}
	if err := a.admit(m.Spec); err != nil {
		return bus.PrepareReply{}, err
	}
	// Such a program cannot say that it wants the traffic: whoever may use this
	// agent could have it sent to anybody.
	if m.Spec.Engine != measure.Native && !bus.IsOwn(ctx) {
		return bus.PrepareReply{}, fault.Failf("run thru there itself", "agent: %s is spoken for this process alone, not for others", m.Spec.Engine)
	}
	if m.Dials && m.Spec.Engine == measure.Native {
		if err := trusts(ctx, m.Token); err != nil {
			return bus.PrepareReply{}, err
		}
	}
	eng, ok := a.conf.Engines[m.Spec.Engine]
	if !ok {
		return bus.PrepareReply{}, fault.Failf("both ends need a thru that knows it", "agent: engine %q is not known here", m.Spec.Engine)
	}
	listen, err := a.enter()
	if err != nil {
		return bus.PrepareReply{}, err
	}
	end := engine.End{
		Name: a.conf.Name, Spec: m.Spec, Sends: m.Sends, Dials: m.Dials,
		Targets: m.Targets, Token: m.Token, PeerPorts: [2]int{m.Ports.First, m.Ports.Last}, Listen: listen, MaxRate: a.conf.Limits.RateBps,
	}
	if l := m.Login; l != nil {
		end.Login = engine.Login{User: l.User, Password: l.Password, PublicKey: l.PublicKey, PKCS1: l.PKCS1}
	}
	inner, caught, err := a.open(ctx, eng, end)
	if err != nil {
		a.leave("")
		return bus.PrepareReply{}, err
	}
	s := newSession(a, client, m, inner)
	s.own = bus.IsOwn(ctx)
	s.packets = caught
	if !a.add(s) {
		inner.Close()
		caught.close()
		return bus.PrepareReply{}, fault.Failf("", "agent: preparing: the client has gone or the agent ends")
	}
	r := inner.Ready()
	return bus.PrepareReply{
		Session: s.id, Token: r.Token, Port: r.Port, Local: r.Local, Peer: r.Peer, RTTIdle: r.RTTIdle, Skipped: r.Skipped,
	}, nil
}

// admit holds the limits: a client is told them by Hello and cannot pass them.
func (a *Agent) admit(s measure.Spec) error {
	l := a.conf.Limits
	if s.Streams > l.Streams {
		return fault.Failf(fmt.Sprintf("-P %d is the most there", l.Streams), "agent: %d streams are above this end point's limit", s.Streams)
	}
	if s.Duration > l.DurationNs {
		return fault.Failf(fmt.Sprintf("-t %.0f is the most there", time.Duration(l.DurationNs).Seconds()),
			"agent: a test of %v is above this end point's limit", time.Duration(s.Duration))
	}
	return nil
}

// enter takes a place for a session that is about to open, and says where it may listen.
func (a *Agent) enter() (engine.Listen, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	listen := a.conf.Listen
	if a.closed {
		return listen, fault.Failf("", "agent: preparing: the agent ends")
	}
	if a.measuresDisk() {
		return listen, fault.Failf("try again when that has ended", "agent: preparing: a disk is measured here")
	}
	if len(a.sessions)+a.opening+a.moving() >= a.conf.Limits.Sessions {
		return listen, fault.Failf("wait for other tests to end, or measure fewer pairs there at once; thru serve --max-sessions N allows more", "agent: preparing: %d sessions run already, the limit of this end point", a.conf.Limits.Sessions)
	}
	a.opening++
	listen.Offset = a.opened % (listen.Last - listen.First + 1)
	a.opened++
	return listen, nil
}

func (a *Agent) leave(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if id == "" {
		a.opening--
		return
	}
	delete(a.sessions, id)
}

// add turns the place into a session; false when the client has gone meanwhile.
func (a *Agent) add(s *session) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.opening--
	if a.closed || !a.turns.has(s.client) {
		return false
	}
	a.sessions[s.id] = s
	go s.follow()
	a.busy()
	return true
}

// isQuiet is true when no session is opening, and none moves data any more.
func (a *Agent) isQuiet() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.sessions {
		select {
		case <-s.over:
		default:
			return false
		}
	}
	return a.opening == 0 && !a.measuresDisk() && a.moving() == 0
}

// find returns a session of that client; another's is as unknown as none.
func (a *Agent) find(client, id string) (*session, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s := a.sessions[id]; s != nil && s.client == client {
		return s, nil
	}
	return nil, errUnknown(id)
}

// Start answers bus.Start.
func (a *Agent) Start(ctx context.Context, client string, m bus.StartRequest) (bus.Empty, error) {
	s, err := a.find(client, m.Session)
	if err != nil {
		return bus.Empty{}, err
	}
	at, err := a.startAt(m.AtNs)
	if err != nil {
		return bus.Empty{}, err
	}
	return bus.Empty{}, s.start(ctx, time.Duration(m.RampNs), at)
}

// Collect answers bus.Collect.
func (a *Agent) Collect(ctx context.Context, client string, m bus.CollectRequest) (bus.CollectReply, error) {
	s, err := a.find(client, m.Session)
	if err != nil {
		return bus.CollectReply{}, err
	}
	r := s.evidence(ctx)
	s.collected.Store(true)
	a.meet(client, r.Evidence.PeerAddr)
	return r, nil
}

// Release answers bus.Release.
func (a *Agent) Release(_ context.Context, client string, m bus.ReleaseRequest) (bus.Empty, error) {
	a.mu.Lock()
	for _, s := range a.sessions {
		if s.client == client && (m.Session == "" || s.id == m.Session) && s.collected.Load() {
			s.unwanted.Store(true)
		}
	}
	a.mu.Unlock()
	a.end(client, m.Session)
	return bus.Empty{}, nil
}

// Gone implements bus.Handler.
func (a *Agent) Gone(client string) {
	a.endJobs(client, "", true)
	a.end(client, "") // first: what still sends would be measured in a host in change
	a.untune(client)
	a.mu.Lock()
	delete(a.met, client)
	a.mu.Unlock()
}

// end closes one session of a client, or all; the turn goes with the last.
func (a *Agent) end(client, id string) {
	a.mu.Lock()
	var ours []*session
	left := 0
	for _, s := range a.sessions {
		switch {
		case s.client != client:
		case id == "" || s.id == id:
			ours = append(ours, s)
			delete(a.sessions, s.id)
		default:
			left++
		}
	}
	tell := a.busy
	a.mu.Unlock()
	var wg sync.WaitGroup
	for _, s := range ours {
		wg.Go(s.close)
	}
	wg.Wait()
	if left += a.endJobs(client, id, false); left == 0 {
		a.turns.giveBack(client)
		a.tellEnded(client)
	}
	if len(ours) > 0 {
		tell()
	}
	if id == "" { // after the turn is gone, without which no new one is opened
		a.endResponder(client)
	}
}

// tellEnded says what a client's flows have measured.
func (a *Agent) tellEnded(client string) {
	a.mu.Lock()
	flows := a.over[client]
	delete(a.over, client)
	a.mu.Unlock()
	if len(flows) > 0 {
		a.conf.Ended(flows)
	}
}

// Close ends every session. No request may come after it.
func (a *Agent) Close() {
	a.mu.Lock()
	a.closed = true
	clients := map[string]bool{}
	for _, s := range a.sessions {
		clients[s.client] = true
	}
	for c := range a.answering {
		clients[c] = true
	}
	if a.tuner != "" {
		clients[a.tuner] = true
	}
	for _, w := range a.jobs {
		clients[w.base().client] = true
	}
	a.mu.Unlock()
	for c := range clients {
		a.Gone(c)
	}
}

func (a *Agent) tell(client string, e bus.Event) {
	a.mu.Lock()
	p := a.publish
	a.mu.Unlock()
	p(client, e)
}

// newID names a session so that nobody can guess it.
func newID() string { return rand.Text() }
