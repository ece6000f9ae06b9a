package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"thru/internal/bus"
	"thru/internal/bus/bustest"
	"thru/internal/fault"
	"thru/internal/measure"
)

// fakeFleet is a set of agents with turns and skewed clocks.
type fakeFleet struct {
	t    *testing.T
	zero time.Time
	quit chan struct{}
	all  map[string]*fleetAgent
}

// fleetAgent answers as an agent of a fleet does. The test chooses its faults.
type fleetAgent struct {
	*fakeFleet
	name string
	skew time.Duration // of its clock
	wall time.Duration // of its wall clock

	refuses string // prefix of the targets that it cannot dial
	mute    bool   // never answers Prepare
	deaf    bool   // nor any request about its host
	dies    bool   // when it is started
	leaves  bool   // when it is asked for its evidence
	floods  bool   // when it is started, without end
	broken  string // its sessions end with this error
	quota   float64
	vanish  string // prefix of the targets towards which large packets are dropped

	mu       sync.Mutex
	sessions map[string]bool // by id: it sends
	began    map[string]time.Time
	received time.Time // when the last session that receives began
	opened   int
	calls    []string
	queue    []*fleetClient
}

// fleetClient is one controller's connection to an agent.
type fleetClient struct {
	*bustest.Client
	*fleetAgent
}

func newFakeFleet(t *testing.T) *fakeFleet {
	y := &fakeFleet{t: t, zero: time.Now(), quit: make(chan struct{}), all: map[string]*fleetAgent{}}
	t.Cleanup(func() { close(y.quit) })
	return y
}

// add adds an agent; its clocks are far from all others.
func (y *fakeFleet) add(name string, change func(*fleetAgent)) {
	n := time.Duration(len(y.all))
	a := &fleetAgent{fakeFleet: y, name: name, skew: n * 977 * time.Second, wall: (n - 3) * 41 * time.Second, sessions: map[string]bool{}, began: map[string]time.Time{}}
	if change != nil {
		change(a)
	}
	y.all[name] = a
}

// connect gives a controller its own connections to all agents.
func (y *fakeFleet) connect(names ...string) map[string]*EndPoint {
	ends := map[string]*EndPoint{}
	for i, n := range names {
		c := &fleetClient{Client: bustest.NewClient(), fleetAgent: y.all[n]}
		c.Handle(
			bus.On(bus.Clock, c.Clock), bus.On(bus.Facts, c.Facts), bus.On(bus.Answer, c.Answer), bus.On(bus.Probe, c.Probe),
			bus.On(bus.Reserve, c.Reserve), bus.On(bus.Prepare, c.Prepare), bus.On(bus.Start, c.Start),
			bus.On(bus.Collect, c.Collect), bus.On(bus.CapturePart, c.Captured), bus.On(bus.Release, c.Release),
		)
		ends[n] = &EndPoint{
			Name: n, Addr: fmt.Sprintf("10.0.%d.%d:5200", i/250, i%250), Client: c, DataHosts: []string{"at-" + n},
			Hello: bus.HelloReply{WireMajor: bus.WireMajor, WireMinor: bus.WireMinor, ID: "id " + n},
		}
	}
	return ends
}

func (a *fleetAgent) called(what string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls = append(a.calls, what)
}

func (a *fleetAgent) asked(what string) (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.calls {
		if strings.HasPrefix(c, what) {
			n++
		}
	}
	return n
}

func (a *fleetAgent) now() time.Duration { return time.Since(a.zero) + a.skew }

func (c *fleetClient) Clock(context.Context, string, bus.Empty) (bus.ClockReply, error) {
	return bus.ClockReply{NowNs: int64(c.now()), WallNs: time.Now().Add(c.wall).UnixNano()}, c.Err()
}

func (c *fleetClient) Facts(context.Context, string, bus.FactsRequest) (bus.FactsReply, error) {
	if c.deaf {
		return bus.FactsReply{}, errors.New("bus: facts: no reply")
	}
	r := bus.FactsReply{Facts: measure.Facts{Hostname: &c.name, Cores: new(2)}}
	if c.quota > 0 {
		r.Facts.Cgroup = &measure.Cgroup{QuotaCPUs: &c.quota}
	}
	return r, c.Err()
}

func (c *fleetClient) Answer(context.Context, string, bus.Empty) (bus.AnswerReply, error) {
	return bus.AnswerReply{Token: "probe", Port: 1}, c.Err()
}

func (c *fleetClient) Probe(_ context.Context, _ string, m bus.ProbeRequest) (bus.ProbeReply, error) {
	c.called("probe " + strings.Join(m.Targets, " "))
	one := measure.DirectionFacts{Route: &measure.Route{Interface: "eth0", MTU: 9000}, MTU: &measure.PathMTU{Bytes: 9000, Claimed: 9000}}
	path := measure.Path{Forward: one, Back: one}
	if c.vanish != "" && strings.HasPrefix(m.Targets[0], c.vanish) {
		path.Forward.MTU = &measure.PathMTU{Bytes: 1500, Claimed: 9000, Silent: true}
	}
	return bus.ProbeReply{Path: path}, c.Err()
}

func (c *fleetClient) Reserve(context.Context, string, bus.ReserveRequest) (bus.ReserveReply, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(c.queue, c) {
		c.queue = append(c.queue, c)
	}
	ahead := slices.Index(c.queue, c)
	return bus.ReserveReply{Granted: ahead == 0, Ahead: ahead}, c.Err()
}

func (c *fleetClient) Prepare(_ context.Context, _ string, m bus.PrepareRequest) (bus.PrepareReply, error) {
	if c.mute {
		time.Sleep(20 * time.Millisecond)
		return bus.PrepareReply{}, fault.Failf("it is stuck", "bus: prepare: no reply within 20ms")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) == 0 || c.queue[0] != c {
		return bus.PrepareReply{}, errors.New("not your turn")
	}
	if m.Dials && c.refuses != "" && strings.HasPrefix(m.Targets[0], c.refuses) {
		return bus.PrepareReply{}, fault.Failf("open the ports", "worker: no data connection: %s: refused", m.Targets[0])
	}
	c.opened++
	id := fmt.Sprintf("%s %d", c.name, c.opened)
	c.sessions[id] = m.Sends
	return bus.PrepareReply{Session: id, Token: "token", Port: 5202, RTTIdle: &measure.RTT{Median: int64(time.Millisecond)}}, nil
}

func (c *fleetClient) Start(_ context.Context, _ string, m bus.StartRequest) (bus.Empty, error) {
	go c.run(m)
	return bus.Empty{}, c.Err()
}

// run simulates a session: it begins at its time, and ends soon.
func (c *fleetClient) run(m bus.StartRequest) {
	if m.AtNs > 0 {
		select {
		case <-time.After(time.Duration(m.AtNs) - c.now()):
		case <-c.quit:
			return
		}
	}
	c.mu.Lock()
	c.began[m.Session] = time.Now()
	if !c.sessions[m.Session] {
		c.received = c.began[m.Session]
	}
	c.mu.Unlock()
	script := []bus.Event{{Kind: bus.EventProgress, Phase: bus.PhaseMeasure, SpanNs: 1e9, Bytes: 1000}, {Kind: bus.EventDone}}
	switch {
	case c.dies:
		c.Lose()
		return
	case c.broken != "":
		script[1] = bus.Event{Kind: bus.EventFailed, Error: c.broken, Hint: "repair it"}
	}
	for _, e := range script {
		e.Session = m.Session
		c.send(e)
	}
	for c.floods && c.send(bus.Event{Kind: bus.EventProgress, Phase: bus.PhaseMeasure, SpanNs: 1, Session: m.Session}) {
	}
}

func (c *fleetClient) send(e bus.Event) bool {
	select {
	case c.Pushed <- e:
		return true
	case <-c.quit:
		return false
	}
}

func (c *fleetClient) Collect(_ context.Context, _ string, m bus.CollectRequest) (bus.CollectReply, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leaves {
		c.Lose()
	}
	began, started := c.began[m.Session]
	if !started {
		return bus.CollectReply{}, c.Err()
	}
	return bus.CollectReply{Evidence: measure.Evidence{
		Sends: c.sessions[m.Session], MeasuredNs: 1e9, Bytes: 1000, TotalBytes: 1000, BeganNs: new(int64(began.Sub(c.zero) + c.skew)),
		Bins: []measure.StreamBin{{Span: 1e9, Bytes: 1000}},
	}}, c.Err()
}

func (c *fleetClient) Captured(context.Context, string, bus.CaptureRequest) (bus.CaptureReply, error) {
	return bus.CaptureReply{}, errors.New("nothing is captured here")
}

func (c *fleetClient) Release(_ context.Context, _ string, m bus.ReleaseRequest) (bus.Empty, error) {
	c.called(strings.TrimSpace("release " + m.Session))
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.Session == "" {
		clear(c.sessions)
	}
	if delete(c.sessions, m.Session); len(c.sessions) == 0 {
		c.queue = slices.DeleteFunc(c.queue, func(x *fleetClient) bool { return x == c })
	}
	return bus.Empty{}, nil
}
