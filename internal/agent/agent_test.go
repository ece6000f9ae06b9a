package agent

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"thru/internal/bus"
	"thru/internal/engine"
	"thru/internal/fault"
	"thru/internal/host"
	"thru/internal/measure"
	"thru/internal/token"
)

// fakeEngine opens sessions that do nothing until they are closed or told to end.
type fakeEngine struct {
	mu     sync.Mutex
	opened []*fakeSession
	err    error

	opening func() // if set, called at each opening
	unseen  bool   // sessions have seen no data
}

func (*fakeEngine) Name() string { return measure.Native }

func (f *fakeEngine) Open(_ context.Context, e engine.End) (engine.Session, error) {
	if f.opening != nil {
		f.opening()
	}
	if f.err != nil {
		return nil, f.err
	}
	s := &fakeSession{end: e, unseen: f.unseen, updates: make(chan engine.Update, 16), closed: make(chan struct{}), started: make(chan struct{})}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.opened = append(f.opened, s)
	return s, nil
}

type fakeSession struct {
	end     engine.End
	unseen  bool
	updates chan engine.Update
	once    sync.Once
	closed  chan struct{}

	begin      sync.Once
	started    chan struct{} // closed by Start
	startError error
}

func (s *fakeSession) Ready() engine.Ready {
	return engine.Ready{Token: "t", Port: 5202, Peer: "127.0.0.1:9"}
}
func (s *fakeSession) Start(context.Context, time.Duration, host.PlacementFacts) error {
	s.begin.Do(func() { close(s.started) })
	return s.startError
}
func (s *fakeSession) Updates() <-chan engine.Update { return s.updates }
func (s *fakeSession) Process() int                  { return os.Getpid() }
func (*fakeSession) Joined(context.Context) error    { return nil }

func (*fakeSession) Far() (far, back *measure.Evidence) { return nil, nil }

func (*fakeSession) Back() (measure.Evidence, bool) { return measure.Evidence{}, false }

func (s *fakeSession) Evidence() measure.Evidence {
	if s.unseen {
		return measure.Evidence{EndPoint: s.end.Name}
	}
	return measure.Evidence{EndPoint: s.end.Name, Sends: s.end.Sends, Bins: make([]measure.StreamBin, 1)}
}
func (s *fakeSession) Close() error {
	s.once.Do(func() { close(s.closed); close(s.updates) })
	return nil
}

func (s *fakeSession) isClosed() bool  { return isShut(s.closed) }
func (s *fakeSession) isStarted() bool { return isShut(s.started) }

func isShut(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func newFake(t *testing.T, l bus.Limits) (*Agent, *fakeEngine, chan bus.Event) {
	t.Helper()
	f := &fakeEngine{}
	a := New(Config{Name: "x", Version: "v", Engines: engine.Table{measure.Native: f, measure.IPerf2: f}, Host: host.New(), Limits: l})
	events := make(chan bus.Event, 64)
	a.Publisher(func(_ string, e bus.Event) { events <- e })
	t.Cleanup(a.Close)
	return a, f, events
}

func prepare(a *Agent, client string, change func(*bus.PrepareRequest)) (bus.PrepareReply, error) {
	m := bus.PrepareRequest{Spec: measure.Spec{Engine: measure.Native, Protocol: measure.TCP, Streams: 1, Duration: int64(time.Second)}}
	if change != nil {
		change(&m)
	}
	return a.Prepare(context.Background(), client, m)
}

func takeTurn(t *testing.T, a *Agent, client string) {
	t.Helper()
	if r, err := a.Reserve(context.Background(), client, bus.ReserveRequest{}); err != nil || !r.Granted {
		t.Fatalf("%s has no turn: %+v %v", client, r, err)
	}
}

// prepared takes the turn for a client, and prepares a session for it.
func prepared(t *testing.T, a *Agent, client string) bus.PrepareReply {
	t.Helper()
	takeTurn(t, a, client)
	p, err := prepare(a, client, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestOnlyTheTurnMeasures(t *testing.T) {
	a, _, _ := newFake(t, DefaultLimits())
	takeTurn(t, a, "one")
	if _, err := prepare(a, "two", nil); err == nil {
		t.Error("two measured in one's turn")
	}
	if _, err := a.Answer(t.Context(), "two", bus.Empty{}); err == nil || !strings.Contains(err.Error(), "answering a probe: another client has the turn") {
		t.Errorf("two answers a probe in one's turn: %v", err)
	}
	if _, err := a.Probe(t.Context(), "two", bus.ProbeRequest{Token: "T"}); err == nil || !strings.Contains(err.Error(), "probing: another client has the turn") {
		t.Errorf("two probes in one's turn: %v", err)
	}
	if _, err := prepare(a, "one", nil); err != nil {
		t.Error(err)
	}
	if r, _ := a.Reserve(context.Background(), "two", bus.ReserveRequest{}); r.Granted || r.Ahead != 1 {
		t.Errorf("two: %+v", r)
	}
}

func TestLimits(t *testing.T) {
	l := bus.Limits{Streams: 2, DurationNs: int64(time.Minute), Sessions: 2, RateBps: 7}
	a, f, _ := newFake(t, l)
	takeTurn(t, a, "c")
	for name, change := range map[string]func(*bus.PrepareRequest){
		"streams": func(m *bus.PrepareRequest) { m.Spec.Streams = 3 },
		"time":    func(m *bus.PrepareRequest) { m.Spec.Duration = int64(time.Hour) },
	} {
		if _, err := prepare(a, "c", change); err == nil || fault.Hint(err) == "" {
			t.Errorf("%s: %v without a hint", name, err)
		}
	}
	for range 2 {
		if _, err := prepare(a, "c", nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := prepare(a, "c", nil); err == nil {
		t.Error("a third session was opened")
	}
	if _, err := a.Answer(t.Context(), "c", bus.Empty{}); err == nil || !strings.Contains(err.Error(), "answering a probe: 2 sessions are running") || fault.Hint(err) == "" {
		t.Errorf("a probe at the same time: %v", err)
	}
	if f.opened[0].end.MaxRate != 7 {
		t.Error("the engine did not get the rate limit")
	}
	// A failed opening gives its place back.
	a.Release(context.Background(), "c", bus.ReleaseRequest{})
	takeTurn(t, a, "c")
	f.err = errors.New("no")
	for range 5 {
		prepare(a, "c", nil)
	}
	f.err = nil
	if _, err := prepare(a, "c", nil); err != nil {
		t.Errorf("places were lost: %v", err)
	}
}

func TestGoneLeavesNothing(t *testing.T) {
	a, f, _ := newFake(t, DefaultLimits())
	r := prepared(t, a, "dead")
	if _, err := a.Collect(context.Background(), "thief", bus.CollectRequest{Session: r.Session}); err == nil {
		t.Error("another client's session was given away")
	}
	if _, err := a.Release(context.Background(), "thief", bus.ReleaseRequest{Session: r.Session}); err != nil || f.opened[0].isClosed() {
		t.Error("another client has ended the session")
	}
	a.Gone("dead")
	if !f.opened[0].isClosed() {
		t.Error("the session of a client that is gone still runs")
	}
	takeTurn(t, a, "next")
}

func TestEventsOfACourse(t *testing.T) {
	a, f, events := newFake(t, DefaultLimits())
	r := prepared(t, a, "c")
	if _, err := a.Start(context.Background(), "c", bus.StartRequest{Session: r.Session}); err != nil {
		t.Fatal(err)
	}
	s := f.opened[0]
	for _, u := range []engine.Update{
		{Kind: engine.Progress, Ramp: true}, {Kind: engine.Mark},
		{Kind: engine.Progress, Span: time.Second, Bytes: 5}, {Kind: engine.Bin, At: time.Second},
		{Kind: engine.Finish, At: time.Second}, {Kind: engine.Failed, Err: fault.Failf("do this", "broken")},
	} {
		s.updates <- u
	}
	want := []bus.Event{{Kind: bus.EventProgress, Phase: bus.PhaseRamp}, {Kind: bus.EventProgress, Phase: bus.PhaseMeasure}, {Kind: bus.EventFailed}}
	for _, w := range want {
		e := <-events
		if e.Session != r.Session || e.Kind != w.Kind || (w.Phase != "" && e.Phase != w.Phase) {
			t.Errorf("event %+v, want %+v", e, w)
		}
		if e.Kind == bus.EventFailed && (e.Error != "broken" || e.Hint != "do this") {
			t.Errorf("error lost its words: %+v", e)
		}
	}
	s.Close() // what an engine does after its last update
	reply, err := a.Collect(context.Background(), "c", bus.CollectRequest{Session: r.Session})
	if err != nil {
		t.Fatal(err)
	}
	e := reply.Evidence
	if e.Host == nil || len(e.PerSec) != 1 || e.Base == nil || e.Route == nil {
		t.Errorf("readings of the host: %v, %d per second, baseline %v, route %v", e.Host, len(e.PerSec), e.Base, e.Route)
	}
}

// A baseline is not read while a session still moves data, and such a reading is not kept.
func TestBaselineWantsQuiet(t *testing.T) {
	a, f, _ := newFake(t, DefaultLimits())
	r := prepared(t, a, "c")
	collect := func() *measure.HostSpan {
		reply, err := a.Collect(context.Background(), "c", bus.CollectRequest{Session: r.Session})
		if err != nil {
			t.Fatal(err)
		}
		return reply.Evidence.Base
	}
	if collect() != nil {
		t.Error("the baseline was read while a session ran")
	}
	f.opened[0].Close()
	if collect() == nil {
		t.Error("no baseline of a quiet host")
	}
}

// Only the own process may use an engine of another program: a remote client could
// direct datagrams at a third party.
func TestRemoteClientsReachNoOtherProgram(t *testing.T) {
	a := New(Config{Name: "x", Version: "v", Engines: engine.Table{measure.IPerf2: &fakeEngine{}}, Host: host.New(), Limits: DefaultLimits()})
	defer a.Close()
	m := bus.PrepareRequest{Dials: true, Sends: true, Targets: []string{"192.0.2.1:9"},
		Spec: measure.Spec{Engine: measure.IPerf2, Protocol: measure.UDP, Streams: 1, Duration: int64(time.Second)}}
	for _, dials := range []bool{true, false} {
		m.Dials = dials
		if _, err := a.Reserve(t.Context(), "c", bus.ReserveRequest{}); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Prepare(t.Context(), "c", m); err == nil {
			t.Errorf("dials %v: a client from the network may speak to other programs", dials)
		}
	}
}

// A remote client supplies the token, so this host may only dial a peer that proves to
// have made it: an older listener answers with bytes that such a client could choose
// to match an innocent server's.
func TestRemoteClientsNeedProof(t *testing.T) {
	a, f, _ := newFake(t, DefaultLimits())
	takeTurn(t, a, "c")
	old := strings.ToLower(token.New())
	dial := func(shown string) error {
		_, err := prepare(a, "c", func(m *bus.PrepareRequest) { m.Dials, m.Sends, m.Token = true, true, shown })
		return err
	}
	if err := dial(old); err == nil || len(f.opened) > 0 {
		t.Errorf("a client from the network has traffic sent to who cannot prove to want it: %v", err)
	}
	if _, err := a.Probe(t.Context(), "c", bus.ProbeRequest{Targets: []string{"127.0.0.1:1"}, Token: old}); err == nil || !strings.Contains(err.Error(), "prove") {
		t.Errorf("probing: %v", err)
	}
	if err := dial(token.New()); err != nil {
		t.Error(err)
	}
}

// TestUnidentified: only requests for the UUID of a machine get it, and the cached facts
// still have it.
func TestUnidentified(t *testing.T) {
	f := measure.Facts{Machine: &measure.Machine{Product: "R650", UUID: "11223344-0000-0000-0000-000000000001"},
		NotChecked: []measure.NotChecked{{Fact: "machine.uuid", Why: "permission denied"}, {Fact: "machine.version", Why: "blank"}}}
	if got := unidentified(f); got.Machine.UUID != "" || got.Machine.Product != "R650" || len(got.NotChecked) != 1 || f.Machine.UUID == "" || len(f.NotChecked) != 2 {
		t.Errorf("%+v of %+v", got, f)
	}
	unidentified(measure.Facts{})
}

// TestAnswersEachVerb: an agent answers every verb.
func TestAnswersEachVerb(t *testing.T) {
	a, _, _ := newFake(t, DefaultLimits())
	var got, want []string
	for _, x := range a.Answers() {
		got = append(got, x.Verb())
	}
	for _, v := range bus.Verbs() {
		want = append(want, v.String())
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("answered %q, want %q", got, want)
	}
}
