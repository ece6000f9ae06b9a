// Package agent implements an end point: it serves the control plane
// (bus.Handler), opens engine sessions, reads the host's counters while they
// run, and ends all sessions and jobs of a lost client.
package agent

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"thru/internal/agent/probing"
	"thru/internal/bus"
	"thru/internal/engine"
	"thru/internal/host"
	"thru/internal/hypervisor"
	"thru/internal/measure"
	"thru/internal/path"
)

// DefaultLimits returns the limits of an agent without configured ones.
func DefaultLimits() bus.Limits {
	return bus.Limits{Streams: measure.MaxStreams, DurationNs: int64(measure.MaxDuration), Sessions: 32}
}

// Config describes an agent.
type Config struct {
	Name      string // in evidence; the controller may use another name
	Version   string // of thru
	Engines   engine.Table
	Host      *host.Host
	Limits    bus.Limits
	DataAddrs []string      // addresses for data connections; empty: the address of the control connection
	Listen    engine.Listen // where they are accepted
	Capture   Capturer      // nil: no captures
	Tuner     Tuner         // nil: no setting is changed
	Files     Files         // where remote clients may measure disks and move files

	Hypervisor hypervisor.Source // the virtual machines of this host; nil: they are not listed

	Labels  map[string]string // labels set by its operator
	Addrs   func() []string   // addresses of the host for data, where nothing else is known; nil: none
	Spool   *Spool            // keeps evidence that no client has fetched; nil: it is dropped
	Samples string            // folder for samples of watches that were not fetched; empty: they are kept in memory

	Ended func([]Ended) // receives the measured flows when a client of another process gives its turn back; nil: no one
}

// Ended is a measured flow, as seen from this end.
type Ended struct {
	Spec     measure.Spec
	Evidence measure.Evidence
	Back     *measure.Evidence // of the other direction of two-way traffic
}

// Agent implements the agent's side of bus.
type Agent struct {
	conf     Config
	set      atomic.Pointer[settings]
	turns    turns
	baseline baseline
	facts    facts
	probing  *probing.Probing

	mu       sync.Mutex
	publish  bus.Publish
	sessions map[string]*session
	// Responders of path probes, by client.
	answering map[string]*path.Responder
	opening   int // sessions that are being opened
	opened    int // sessions opened in total
	closed    bool
	id        string    // of this run of the agent
	began     time.Time // zero of the clock that Clock returns
	busy      func()    // called when Busy may have changed

	jobs   map[string]work         // running ones, and those whose result was not fetched, by session
	proved map[string][]netip.Addr // addresses from which clients have measured
	over   map[string][]Ended      // flows of clients that have the turn

	tuner, tunedBy string // client that tunes this host, and the name of its owner
}

// New returns an agent that has no clients yet.
func New(c Config) *Agent {
	a := &Agent{
		conf: c, id: newID(), began: time.Now(), sessions: map[string]*session{}, answering: map[string]*path.Responder{},
		jobs: map[string]work{}, proved: map[string][]netip.Addr{}, over: map[string][]Ended{},
		publish: func(string, bus.Event) {}, busy: func() {},
	}
	a.Set(c.Limits, c.Labels)
	a.probing = a.newProbing()
	return a
}

// settings are those that change while the agent serves.
type settings struct {
	limits bus.Limits
	labels map[string]string
}

// Set replaces the limits, which apply to sessions that open from now on, and the labels.
func (a *Agent) Set(limits bus.Limits, labels map[string]string) {
	a.set.Store(&settings{limits, labels})
}

func (a *Agent) limits() bus.Limits { return a.set.Load().limits }

// Publisher sets the function that sends events to the clients.
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
		Limits:     a.limits(),
		Privileges: bus.Granted(ctx),
		NoCapture:  a.noCapture(),
		Labels:     a.set.Load().labels,
	}
	if a.conf.Addrs != nil {
		r.Addrs = a.conf.Addrs()
	}
	r.CPUs = measure.Value(facts.Cores)
	return r, nil
}

// Clock answers bus.Clock.
func (a *Agent) Clock(context.Context, string, bus.Empty) (bus.ClockReply, error) {
	now := time.Now()
	return bus.ClockReply{NowNs: int64(a.clock(now)), WallNs: now.UnixNano()}, nil
}

// clock converts a time to the agent's clock.
func (a *Agent) clock(t time.Time) time.Duration { return t.Sub(a.began) }

// Facts answers bus.Facts.
func (a *Agent) Facts(ctx context.Context, _ string, m bus.FactsRequest) (bus.FactsReply, error) {
	age := longestAge
	if m.LoadNs > 0 { // a check, perhaps after a fix
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
		var idle sync.WaitGroup // a test that follows needs the idle host too
		idle.Go(func() { a.baseline.get(ctx, a.conf.Host, a.isIdle, 0) })
		a.load(ctx, &r.Facts, time.Duration(m.LoadNs))
		idle.Wait()
	}
	if m.Peer != "" {
		r.Route, _ = a.route(m.Peer, "")
	}
	return r, nil
}

// route returns the kernel's route to an address, from the own one where that is
// known; both with or without port.
func (a *Agent) route(peer, own string) (*measure.Route, error) {
	addr, err := addrOf(peer)
	if err != nil {
		return nil, fmt.Errorf("agent: reading address %q: %w", peer, err)
	}
	source, _ := addrOf(own) // an unreadable address counts as unknown
	r, err := a.conf.Host.RouteFrom(addr, source, "")
	if err != nil && source.IsValid() { // own may be in a VRF
		r, err = a.conf.Host.Route(addr)
	}
	if err != nil {
		return nil, fmt.Errorf("agent: reading the route to %s: %w", addr, err)
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

// reportEnded passes the flows that a client has measured to Config.Ended.
func (a *Agent) reportEnded(client string) {
	a.mu.Lock()
	flows := a.over[client]
	delete(a.over, client)
	a.mu.Unlock()
	if len(flows) > 0 {
		a.conf.Ended(flows)
	}
}

func (a *Agent) report(client string, e bus.Event) {
	a.mu.Lock()
	p := a.publish
	a.mu.Unlock()
	p(client, e)
}

// newID returns an id that nobody can guess.
func newID() string { return rand.Text() }
