package control

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"thru/internal/bus"
	"thru/internal/bus/bustest"
	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/plan"
)

// fakeAgent answers as an agent does, and records its requests in order.
type fakeAgent struct {
	*bustest.Client
	name     string
	mu       sync.Mutex
	calls    []string
	ahead    int   // others in the queue, one less at each request
	prepare  error // of the dialling end
	script   []bus.Event
	silent   bool // never ends its sessions
	evidence func(*bus.CollectReply)
	path     bus.ProbeReply
	route    *measure.Route
	probe    error
	facts    measure.Facts
	rates    []int64 // requested by Prepare, in order
	captures []int64 // requested by Prepare, in order
	packets  func(bus.CaptureRequest) (bus.CaptureReply, error)
	idleAges []time.Duration // allowed by Collect, in order
}

func newAgent(name string) *fakeAgent {
	f := &fakeAgent{
		Client: bustest.NewClient(), name: name,
		script: []bus.Event{
			{Kind: bus.EventProgress, Phase: bus.PhaseMeasure, SpanNs: 1e9, Bytes: 1000},
			{Kind: bus.EventDone},
		},
	}
	f.Handle(
		bus.On(bus.Facts, f.Facts), bus.On(bus.Answer, f.Answer), bus.On(bus.Probe, f.Probe), bus.On(bus.Reserve, f.Reserve),
		bus.On(bus.Prepare, f.Prepare), bus.On(bus.Start, f.Start), bus.On(bus.Collect, f.Collect),
		bus.On(bus.CapturePart, f.Captured), bus.On(bus.Clock, f.Clock), bus.On(bus.Release, f.Release),
	)
	return f
}

func (f *fakeAgent) called(what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, what)
}

func (f *fakeAgent) asked() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

func (f *fakeAgent) Facts(_ context.Context, _ string, m bus.FactsRequest) (bus.FactsReply, error) {
	facts := f.facts
	facts.Cores = new(4)
	return bus.FactsReply{Facts: facts, Route: f.route}, nil
}

func (f *fakeAgent) Answer(context.Context, string, bus.Empty) (bus.AnswerReply, error) {
	f.called("answer")
	return bus.AnswerReply{Token: "probe token", Port: 5210}, nil
}

func (f *fakeAgent) Probe(_ context.Context, _ string, m bus.ProbeRequest) (bus.ProbeReply, error) {
	f.called("probe " + strings.Join(m.Targets, " ") + " " + m.Token)
	return f.path, f.probe
}

func (f *fakeAgent) Reserve(context.Context, string, bus.ReserveRequest) (bus.ReserveReply, error) {
	f.called("reserve")
	if f.ahead > 0 {
		f.ahead--
		return bus.ReserveReply{Ahead: f.ahead + 1}, nil
	}
	return bus.ReserveReply{Granted: true}, nil
}

func (f *fakeAgent) Prepare(_ context.Context, _ string, m bus.PrepareRequest) (bus.PrepareReply, error) {
	role := role(m.Sends)
	f.mu.Lock()
	f.rates = append(f.rates, m.Spec.Rate)
	f.captures = append(f.captures, m.Spec.Capture)
	f.mu.Unlock()
	if m.Dials {
		f.called("dial " + role + " " + strings.Join(m.Targets, " ") + " " + m.Token)
		if f.prepare != nil {
			return bus.PrepareReply{}, f.prepare
		}
		return bus.PrepareReply{Session: f.name + role, RTTIdle: &measure.RTT{Median: int64(100 * time.Millisecond)}}, nil
	}
	f.called(strings.TrimSpace("listen " + role + " " + m.Token))
	return bus.PrepareReply{Session: f.name + role, Token: "token", Port: 5202}, nil
}

func role(sends bool) string {
	if sends {
		return "sender"
	}
	return "receiver"
}

func (f *fakeAgent) Start(_ context.Context, _ string, m bus.StartRequest) (bus.Empty, error) {
	f.called("start " + m.Session + " " + time.Duration(m.RampNs).String())
	if f.silent {
		return bus.Empty{}, nil
	}
	for _, e := range f.script {
		e.Session = m.Session
		f.Pushed <- e
	}
	return bus.Empty{}, nil
}

func (f *fakeAgent) Collect(_ context.Context, _ string, m bus.CollectRequest) (bus.CollectReply, error) {
	f.called("collect " + m.Session)
	f.mu.Lock()
	f.idleAges = append(f.idleAges, time.Duration(m.IdleAgeNs))
	f.mu.Unlock()
	if !slices.ContainsFunc(f.asked(), func(s string) bool { return strings.HasPrefix(s, "start "+m.Session) }) {
		return bus.CollectReply{}, nil
	}
	reply := bus.CollectReply{Evidence: measure.Evidence{
		Sends: strings.HasSuffix(m.Session, "sender"), MeasuredNs: 1e9, Bytes: 1000, TotalBytes: 1000,
		Bins: []measure.StreamBin{{Span: 1e9, Bytes: 1000}},
	}}
	if f.evidence != nil {
		f.evidence(&reply)
	}
	return reply, nil
}

func (f *fakeAgent) Captured(ctx context.Context, _ string, m bus.CaptureRequest) (bus.CaptureReply, error) {
	f.called("captured " + m.Session)
	if ctx.Err() != nil {
		return bus.CaptureReply{}, ctx.Err()
	}
	return f.packets(m)
}

func (f *fakeAgent) Clock(context.Context, string, bus.Empty) (bus.ClockReply, error) {
	return bus.ClockReply{NowNs: time.Now().UnixNano(), WallNs: time.Now().UnixNano()}, nil
}

func (f *fakeAgent) Release(context.Context, string, bus.ReleaseRequest) (bus.Empty, error) {
	f.called("release")
	return bus.Empty{}, nil
}

// quiet is an observer that does nothing except call the hooks of a test.
type quiet struct {
	live    func(Live)
	waiting int
	steps   int
	step    func(n int)
	shown   []measure.Step
	failed  []string // pairs
	planned []measure.Proposal
	tried   []measure.Attempt
	stood   []measure.Milestone
	trying  func(measure.Proposal)
	after   func(measure.Attempt)
	checks  []string
}

// Hear implements Observer.
func (q *quiet) Hear(e Event) {
	switch e := e.(type) {
	case StepBegun:
		if q.steps++; q.step != nil {
			q.step(q.steps)
		}
	case Checking:
		q.checks = append(q.checks, e.What)
	case Waiting:
		q.waiting++
	case Failed:
		q.failed = append(q.failed, e.Spec.From+" "+e.Spec.To)
	case Explained:
		q.shown = append(q.shown, e.Step)
	case Planned:
		q.planned = e.Proposals
	case Stands:
		q.stood = append(q.stood, e.Milestone)
	case Trying:
		if q.trying != nil {
			q.trying(e.Proposal)
		}
	case Tried:
		if q.tried = append(q.tried, e.Attempt); q.after != nil {
			q.after(e.Attempt)
		}
	case Live:
		if q.live != nil {
			q.live(e)
		}
	}
}

func pairOf(local, peer *fakeAgent) map[string]*EndPoint {
	now := bus.HelloReply{WireMajor: bus.WireMajor, WireMinor: bus.WireMinor, Privileges: []string{bus.PrivilegeMeasure, bus.PrivilegeCapture}, NoCapture: "not as root"}
	return map[string]*EndPoint{
		Local:  {Name: Local, Client: local, Hello: now, DataHosts: []string{"127.0.0.1"}},
		"peer": {Name: "peer", Addr: "10.0.0.2:5200", Hello: now, Client: peer, DataHosts: []string{"10.0.0.2", "fd00::2"}},
	}
}

func request() plan.Request {
	return plan.Request{Local: Local, Peer: "peer", LocalCPUs: 2, PeerCPUs: 2, Streams: 1, Duration: time.Second, Interval: time.Second}
}

func run(t *testing.T, r plan.Request, local, peer *fakeAgent, q *quiet) (*measure.Document, error) {
	t.Helper()
	p, err := plan.Test(r)
	if err != nil {
		t.Fatal(err)
	}
	runner := Runner{Ends: pairOf(local, peer), Watch: q}
	return runner.Run(t.Context(), p)
}

// Both directions: the local end dials, the listening end is prepared first,
// the receiver is started first, 20 round trips of ramp, everything collected
// and released.
func TestOrderOfCalls(t *testing.T) {
	local, peer := newAgent("L"), newAgent("P")
	doc, err := run(t, request(), local, peer, &quiet{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"reserve", "dial sender 10.0.0.2:5202 [fd00::2]:5202 token", "start Lsender 2s", "collect Lsender", "release",
		"reserve", "dial receiver 10.0.0.2:5202 [fd00::2]:5202 token", "start Lreceiver 2s", "collect Lreceiver", "release",
	}
	if got := local.asked(); !slices.Equal(got, want) {
		t.Errorf("local was asked\n%q, want\n%q", got, want)
	}
	want = []string{
		"reserve", "listen receiver", "start Preceiver 2s", "collect Preceiver", "release",
		"reserve", "listen sender", "start Psender 2s", "collect Psender", "release",
	}
	if got := peer.asked(); !slices.Equal(got, want) {
		t.Errorf("the peer was asked\n%q, want\n%q", got, want)
	}
	if len(doc.Cells) != 2 || doc.Cells[0].Goodput == nil || doc.Cells[1].Goodput == nil || doc.Cells[0].Goodput.Value != 8000 {
		t.Errorf("cells %+v", doc.Cells)
	}
	if doc.Cells[0].From != Local || doc.Cells[1].From != "peer" || doc.Error != nil || len(doc.EndPoints) != 2 || doc.EndPoints[0].Name != Local {
		t.Errorf("document %+v", doc)
	}
}

func TestBidirRunsAtOnce(t *testing.T) {
	local, peer := newAgent("L"), newAgent("P")
	r := request()
	r.Bidir = true
	q := &quiet{}
	doc, err := run(t, r, local, peer, q)
	if err != nil {
		t.Fatal(err)
	}
	if q.steps != 1 || len(doc.Cells) != 2 || doc.Cells[0].Group != doc.Cells[1].Group || doc.Cells[1].Goodput == nil {
		t.Errorf("%d steps, cells %+v", q.steps, doc.Cells)
	}
}

// On one connection there is one session at each end, and the second flow's evidence
// is what the ends of the first saw of the other direction.
func TestOneConnectionSharesItsSession(t *testing.T) {
	local, peer := newAgent("L"), newAgent("P")
	back := func(r *bus.CollectReply) {
		r.Back = &measure.Evidence{Sends: !r.Evidence.Sends, MeasuredNs: 1e9, Bytes: 500, TotalBytes: 500}
	}
	local.evidence, peer.evidence = back, back
	local.script = append([]bus.Event{{Kind: bus.EventProgress, Phase: bus.PhaseMeasure, SpanNs: 1e9, Bytes: 500, Back: true}}, local.script...)
	r := request()
	r.Bidir, r.OneConnection = true, true
	var flows []int
	doc, err := run(t, r, local, peer, &quiet{live: func(l Live) {
		if l.Event.Back {
			flows = append(flows, l.Flow)
			if l.Sends {
				t.Error("what comes back is received at the end that dials")
			}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if got := local.asked(); len(got) != 5 {
		t.Errorf("local was asked %q, want one session", got)
	}
	if !slices.Equal(flows, []int{1}) {
		t.Errorf("live figures of the other direction came for the flows %v", flows)
	}
	c := doc.Cells[1]
	if c.From != "peer" || c.Goodput == nil || c.Goodput.Value != 4000 {
		t.Fatalf("the way back: %+v", c)
	}
	if f := c.Runs[0].Flows[0]; f.Sender.EndPoint != "peer" || f.Receiver.EndPoint != Local || !f.Sender.Sends || f.Receiver.Sends {
		t.Errorf("the way back went from %+v to %+v", f.Sender, f.Receiver)
	}
}

// A search continues with trials at fixed rates, until one is confirmed.
func TestSearchIsFollowedByTrials(t *testing.T) {
	const path = 6000.0 // bit/s that the path carries
	local, peer := newAgent("L"), newAgent("P")
	last := func(f *fakeAgent) float64 {
		f.mu.Lock()
		defer f.mu.Unlock()
		if rate := f.rates[len(f.rates)-1]; rate > 0 {
			return float64(rate)
		}
		return 8000
	}
	saw := func(f *fakeAgent) func(*bus.CollectReply) {
		return func(r *bus.CollectReply) {
			sent := int64(last(f) / 8)
			d := measure.Datagrams{Packets: sent}
			if !r.Evidence.Sends {
				d.Packets = min(sent, int64(path/8))
				d.Lost = sent - d.Packets
			}
			r.Evidence.Bytes, r.Evidence.TotalBytes = d.Packets, d.Packets
			r.Evidence.Streams = []measure.Stream{{Length: 1, Bytes: d.Packets, Datagrams: &d, DatagramsAll: &d}}
			r.Evidence.Bins = []measure.StreamBin{{Span: 1e9, Bytes: d.Packets, Datagrams: &d}}
		}
	}
	local.evidence, peer.evidence = saw(local), saw(peer)
	r := request()
	r.Protocol, r.Search, r.OneWay = measure.UDP, true, true
	doc, err := run(t, r, local, peer, &quiet{})
	if err != nil {
		t.Fatal(err)
	}
	s := doc.Cells[0].Search
	if s == nil || s.LosslessBps == nil || *s.LosslessBps > path || *s.LosslessBps < path*0.9 || len(s.Trials) < 2 {
		t.Errorf("search %+v", s)
	}
}

// When both ends fail, the error is that of the end that knows the cause.
func TestCauseIsReportedNotItsEcho(t *testing.T) {
	local, peer := newAgent("L"), newAgent("P")
	peer.script = []bus.Event{{Kind: bus.EventFailed, Error: "worker: stream 1: the peer closed the connection early", Reason: fault.PeerGone}}
	local.script = []bus.Event{{Kind: bus.EventFailed, Error: "worker: binding to CPU 1000", Hint: "there is none"}}
	doc, err := run(t, request(), local, peer, &quiet{})
	if err == nil || !strings.Contains(err.Error(), "CPU 1000") || doc.Error.Hint != "there is none" {
		t.Errorf("error %v, %+v", err, doc.Error)
	}
}

// Data changed on the path is a failure, and all figures are kept.
func TestDamagedDataFails(t *testing.T) {
	local, peer := newAgent("L"), newAgent("P")
	peer.evidence = func(r *bus.CollectReply) {
		r.Evidence.Streams = []measure.Stream{{Checked: &measure.Checked{Bytes: 1000, WrongBytes: 3}}}
	}
	r := request()
	r.OneWay, r.Verify = true, true
	doc, err := run(t, r, local, peer, &quiet{})
	if err == nil || !strings.Contains(err.Error(), "3 of 1000 bytes") || doc.Error == nil || doc.Cells[0].Goodput == nil {
		t.Errorf("error %v, document %+v", err, doc.Error)
	}
}

func TestRepeatsHavePauses(t *testing.T) {
	local, peer := newAgent("L"), newAgent("P")
	r := request()
	r.Repeat = 3
	doc, err := run(t, r, local, peer, &quiet{})
	if err != nil {
		t.Fatal(err)
	}
	if len(doc.Cells[0].Runs) != 3 || len(doc.Cells[1].Runs) != 3 || doc.Cells[0].Goodput.Runs != 3 {
		t.Errorf("runs %d and %d", len(doc.Cells[0].Runs), len(doc.Cells[1].Runs))
	}
	if doc.Cells[0].Runs[1].StartedAt.Before(doc.Cells[1].Runs[0].StartedAt) {
		t.Error("the repeats of one direction ran before the other direction")
	}
}

// Equal runs reach any precision after the least number of runs.
func TestPrecisionStops(t *testing.T) {
	local, peer := newAgent("L"), newAgent("P")
	r := request()
	r.PrecisionPct, r.OneWay = 2.5, true
	doc, err := run(t, r, local, peer, &quiet{})
	if err != nil || len(doc.Cells[0].Runs) != 5 {
		t.Errorf("%d runs, %v", len(doc.Cells[0].Runs), err)
	}
}

func TestQueueIsWaitedFor(t *testing.T) {
	local, peer := newAgent("L"), newAgent("P")
	peer.ahead = 2
	q := &quiet{}
	r := request()
	r.OneWay = true
	doc, err := run(t, r, local, peer, q)
	if err != nil || q.waiting != 2 || doc.Cells[0].Runs[0].WaitedNs == 0 {
		t.Errorf("reported %d times, %v", q.waiting, err)
	}
}

// A peer is lost during a test: the error says so, its live figures are kept, the other
// end's evidence is collected, and its turn given back.
func TestPeerIsLost(t *testing.T) {
	local, peer := newAgent("L"), newAgent("P")
	local.silent = true
	peer.script = peer.script[:1]
	q := &quiet{live: func(Live) { peer.Lose() }}
	doc, err := run(t, request(), local, peer, q)
	if err == nil || !strings.Contains(err.Error(), "peer is lost: it fell silent") || fault.Hint(err) == "" {
		t.Errorf("error %v", err)
	}
	c := doc.Cells[0]
	if c.Goodput == nil || c.Goodput.Value != 8000 || !c.Runs[0].Partial || c.Runs[0].Error == nil {
		t.Fatalf("cell %+v", c)
	}
	if f := c.Runs[0].Flows[0]; f.Sender == nil || f.Receiver == nil || f.Receiver.Error == "" {
		t.Errorf("evidence %+v", f)
	}
	if got := local.asked(); !slices.Contains(got, "collect Lsender") || got[len(got)-1] != "release" {
		t.Errorf("local was asked %q", got)
	}
	if doc.Error == nil || doc.Error.ExitCode != fault.Failed || len(doc.Cells[1].Runs) != 0 {
		t.Errorf("document %+v", doc.Error)
	}
}

// The error of a failed session is returned, and no second run begins.
func TestSessionFails(t *testing.T) {
	local, peer := newAgent("L"), newAgent("P")
	local.silent = true
	peer.script = []bus.Event{{Kind: bus.EventFailed, Error: "stream 1: broken", Hint: "repair it"}}
	q := &quiet{}
	doc, err := run(t, request(), local, peer, q)
	if err == nil || !strings.Contains(err.Error(), "peer: stream 1: broken") || fault.Hint(err) != "repair it" || q.steps != 1 {
		t.Errorf("error %v, hint %q, %d steps", err, fault.Hint(err), q.steps)
	}
	if doc.Error == nil || doc.Error.Hint != "repair it" {
		t.Errorf("document %+v", doc.Error)
	}
}

func TestDataPortsClosed(t *testing.T) {
	local, peer := newAgent("L"), newAgent("P")
	local.prepare = fault.Failf("let TCP ports 5202-5233 through", "no data connection")
	doc, err := run(t, request(), local, peer, &quiet{})
	if err == nil || !strings.Contains(err.Error(), "connecting local to peer") || !strings.Contains(fault.Hint(err), "5202-5233") {
		t.Errorf("error %v, hint %q", err, fault.Hint(err))
	}
	if got := peer.asked(); got[len(got)-1] != "release" {
		t.Errorf("the listening end was not released: %q", got)
	}
	if doc.Cells[0].Goodput != nil || len(doc.Cells[0].Runs) != 1 {
		t.Errorf("cell %+v", doc.Cells[0])
	}
}

func TestInterrupted(t *testing.T) {
	local, peer := newAgent("L"), newAgent("P")
	local.silent, peer.silent = true, true
	ctx, cancel := context.WithCancel(t.Context())
	p, err := plan.Test(request())
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(50*time.Millisecond, cancel)
	runner := Runner{Ends: pairOf(local, peer), Watch: &quiet{}}
	doc, err := runner.Run(ctx, p)
	if err == nil || doc.Error == nil || doc.Error.Message != "interrupted: the results so far are kept" || doc.Error.Hint != "" {
		t.Errorf("%v, %+v", err, doc.Error)
	}
	if got := peer.asked(); got[len(got)-1] != "release" {
		t.Errorf("the peer was not released: %q", got)
	}
}

// The silence before a dead path was noticed does not count in the figure.
func TestTrimSilence(t *testing.T) {
	e := &measure.Evidence{MeasuredNs: 4e9, Bins: []measure.StreamBin{{Span: 1e9, Bytes: 5}, {Span: 1e9}, {Span: 1e9, Bytes: 5}, {Span: 1e9}}}
	trimSilence(e)
	if len(e.Bins) != 3 || e.MeasuredNs != 3e9 || len(e.Missing) != 1 {
		t.Errorf("%+v", e)
	}
	trimSilence(nil)
}

// The lower rate limit of both ends reaches the sender.
func TestRateBoundReachesBothEnds(t *testing.T) {
	if lowest(0, 0) != 0 || lowest(0, 7, 5) != 5 || lowest(3, 0, 5) != 3 {
		t.Error("the lowest bound is wrong")
	}
	local, peer := newAgent("L"), newAgent("P")
	ends := pairOf(local, peer)
	ends["peer"].Hello.Limits.RateBps = 5e6
	r := Runner{Ends: ends, Watch: &quiet{}}
	p, err := plan.Test(request())
	if err != nil {
		t.Fatal(err)
	}
	if flows := r.flows(p.Steps[0], 0); flows[0].spec.MaxRate != 5e6 || flows[0].err != nil {
		t.Errorf("%+v, %v", flows[0].spec, flows[0].err)
	}
}

// The error of a document has no secret, wherever it is written.
func TestDescribe(t *testing.T) {
	e := Describe(fault.Usagef("not nats://me:hunter2@nats:4222", "ftp://u:hunter2@h/f: no such host"))
	if strings.Contains(e.Message+e.Hint, "hunter") || e.ExitCode != fault.Usage {
		t.Errorf("%+v", e)
	}
}
