package control

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"thru/internal/bus"
	"thru/internal/cause/advise"
	"thru/internal/cause/knob"
	"thru/internal/measure"
	"thru/internal/plan"
)

// testPair is a pair of hosts whose path carries what their settings allow: the least of
// each.
type testPair struct {
	mu      sync.Mutex
	set     map[hostKnob]string
	allows  func(set map[hostKnob]string, from string, streams int) float64 // bit/s
	noise   func(from string) float64                                       // called once per run
	factor  float64                                                         // noise of this run
	streams int
	agents  map[string]*tunedAgent
	after   func(what string) // called after each request that changes something
}

// tunedAgent is an agent of the pair, with a journal.
type tunedAgent struct {
	*fakeAgent
	testPair *testPair
	name     string
	journal  []measure.Changed
	closed   map[int64]bool
	begun    bool
	by       string
	refuses  map[string]error // by knob
	deaf     map[string]bool  // knobs that read back another value
	noTune   string
	host     string                  // host id that it reports
	fails    func(call string) error // error of a request, before anything is done
}

func newTestPair(set map[hostKnob]string, allows func(map[hostKnob]string, string, int) float64) *testPair {
	w := &testPair{set: set, allows: allows, noise: func(string) float64 { return 1 }, factor: 1, agents: map[string]*tunedAgent{}}
	for _, n := range []string{Local, "peer"} {
		f := probed(1500, 1500)
		f.name = n
		a := &tunedAgent{fakeAgent: f, testPair: w, name: n, closed: map[int64]bool{}, refuses: map[string]error{}}
		a.Handle(
			bus.On(bus.Prepare, a.Prepare), bus.On(bus.Start, a.Start), bus.On(bus.Knobs, a.Knobs), bus.On(bus.Tune, a.Tune),
			bus.On(bus.Alter, a.Alter), bus.On(bus.Revert, a.Revert), bus.On(bus.TuneEnd, a.Tuned),
		)
		w.agents[n] = a
		f.evidence = func(r *bus.CollectReply) {
			w.mu.Lock()
			defer w.mu.Unlock()
			from := map[bool]string{true: n, false: map[string]string{Local: "peer", "peer": Local}[n]}[r.Evidence.Sends]
			bytes := int64(w.allows(w.set, from, w.streams) * w.factor / 8)
			r.Evidence.EndPoint, r.Evidence.Bytes, r.Evidence.TotalBytes = n, bytes, bytes
			r.Evidence.Streams, r.Evidence.Bins = make([]measure.Stream, w.streams), []measure.StreamBin{{Span: 1e9, Bytes: bytes}}
			if bytes == 0 {
				r.Evidence.MeasuredNs, r.Evidence.Bins = 0, nil
			}
		}
	}
	return w
}

// now returns a copy of all settings.
func (w *testPair) now() map[hostKnob]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.set)
}

func (w *testPair) put(s hostKnob, value string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.set[s] = value
}

func (w *testPair) did(what string) {
	if w.after != nil {
		w.after(what)
	}
}

func (w *testPair) runner(q *quiet) *Runner {
	ends := pairOf(w.agents[Local].fakeAgent, w.agents["peer"].fakeAgent)
	for n, e := range ends {
		e.Client = w.agents[n]
	}
	return &Runner{Ends: ends, Watch: q, Gating: &Gating{}}
}

func (a *tunedAgent) failing(call string) error {
	if a.fails != nil {
		return a.fails(call)
	}
	return nil
}

func (a *tunedAgent) Prepare(ctx context.Context, _ string, m bus.PrepareRequest) (bus.PrepareReply, error) {
	a.testPair.mu.Lock()
	a.testPair.streams = m.Spec.Streams
	a.testPair.mu.Unlock()
	if err := a.failing("prepare"); err != nil {
		return bus.PrepareReply{}, err
	}
	return a.fakeAgent.Prepare(ctx, "", m)
}

// Start ends a run without data as a worker does.
func (a *tunedAgent) Start(ctx context.Context, _ string, m bus.StartRequest) (bus.Empty, error) {
	sends := strings.HasSuffix(m.Session, "sender")
	from := a.name
	if !sends {
		from = map[string]string{Local: "peer", "peer": Local}[a.name]
	}
	a.testPair.mu.Lock()
	if sends {
		a.testPair.factor = a.testPair.noise(from)
	}
	dead := a.testPair.allows(a.testPair.set, from, a.testPair.streams) == 0
	a.testPair.mu.Unlock()
	if dead {
		a.called("start " + m.Session)
		a.Pushed <- bus.Event{Session: m.Session, Kind: bus.EventFailed, Error: "worker: connected, but no data came within 8s"}
		return bus.Empty{}, nil
	}
	return a.fakeAgent.Start(ctx, "", m)
}

func (a *tunedAgent) Knobs(context.Context, string, bus.KnobsRequest) (bus.KnobsReply, error) {
	reply := bus.KnobsReply{NoTune: a.noTune, Host: a.host}
	for s, v := range a.testPair.now() {
		if s.end == a.name {
			reply.Knobs = append(reply.Knobs, measure.KnobState{Knob: s.knob, Interface: s.face, Value: v})
		}
	}
	return reply, a.failing("knobs")
}

func (a *tunedAgent) Tune(_ context.Context, _ string, m bus.TuneRequest) (bus.Empty, error) {
	a.called("tune")
	a.begun, a.by = true, m.Owner
	return bus.Empty{}, a.failing("tune")
}

func (a *tunedAgent) Alter(_ context.Context, _ string, m bus.AlterRequest) (bus.ChangedReply, error) {
	a.called("alter")
	if err := a.failing("alter"); err != nil {
		return bus.ChangedReply{}, err
	}
	var reply bus.ChangedReply
	for _, s := range m.Settings {
		if err := a.refuses[s.Knob]; err != nil {
			return reply, err
		}
		at := hostKnob{a.name, s.Knob, s.Interface}
		c := measure.Changed{Setting: s, Before: a.testPair.now()[at], Found: s.Value}
		if c.EndPoint = ""; a.deaf[s.Knob] {
			c.Found = c.Before
		}
		if c.Before == s.Value {
			c.Outcome = measure.Settled
		} else {
			c.Number = int64(len(a.journal) + 1)
			a.journal = append(a.journal, c)
			a.testPair.put(at, s.Value)
		}
		reply.Changed = append(reply.Changed, c)
	}
	a.testPair.did("alter " + a.name)
	return reply, nil
}

func (a *tunedAgent) Revert(_ context.Context, _ string, m bus.RevertRequest) (bus.ChangedReply, error) {
	a.called("revert")
	if err := a.failing("revert"); err != nil {
		return bus.ChangedReply{}, err
	}
	var reply bus.ChangedReply
	for _, c := range slices.Backward(a.journal) {
		if a.closed[c.Number] || len(m.Numbers) > 0 && !slices.Contains(m.Numbers, c.Number) {
			continue
		}
		a.closed[c.Number] = true
		at := hostKnob{a.name, c.Knob, c.Interface}
		if c.Outcome = measure.Undone; a.testPair.now()[at] != c.Value {
			c.Outcome, c.Error = measure.Foreign, "it is another value"
		} else {
			a.testPair.put(at, c.Before)
		}
		reply.Changed = append(reply.Changed, c)
	}
	a.testPair.did("revert " + a.name)
	return reply, nil
}

func (a *tunedAgent) Tuned(context.Context, string, bus.Empty) (bus.Empty, error) {
	a.called("tuned")
	a.begun = false
	return bus.Empty{}, a.failing("tuned")
}

// at returns a knob of an end point.
func at(end, k string) hostKnob { return hostKnob{end: end, knob: k} }

// change returns a proposal to set one knob.
func change(end, k, value, cause string) measure.Proposal {
	return measure.Proposal{
		ID: k + "@" + end, Title: k + " " + value + " at " + end, Why: "a test", Expect: "more", Cause: cause,
		Settings: []measure.Setting{{EndPoint: end, Knob: k, Value: value}},
	}
}

// proposing proposes the same changes until they are made, with the current values of
// their knobs.
func proposing(all ...measure.Proposal) func(*measure.Document, advise.Seen) []measure.Proposal {
	return func(doc *measure.Document, _ advise.Seen) (out []measure.Proposal) {
		for _, p := range all {
			p.Before = nil
			for _, s := range p.Settings {
				for _, e := range doc.EndPoints {
					for _, k := range e.Knobs {
						if e.Name == s.EndPoint && k.Knob == s.Knob {
							s.Value = k.Value
							p.Before = append(p.Before, s)
						}
					}
				}
			}
			out = append(out, p)
		}
		return out
	}
}

func tunePlan(t *testing.T) plan.Plan {
	t.Helper()
	r := request()
	r.Duration, r.Repeat = 0, 2
	p, err := plan.Tune(r)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func outcomes(doc *measure.Document) map[string]string {
	all := map[string]string{}
	for _, a := range doc.Tuning.Attempts {
		all[a.ID] = a.Outcome
	}
	return all
}

// orderly reports whether an agent's tuning was ended, and no change is left that was not kept.
func (a *tunedAgent) orderly() bool { return !a.begun && slices.Contains(a.asked(), "tuned") }

// sick returns a pair with a small receive buffer at the peer and a broken offload here;
// only with both fixed does it carry the full 10 Gb/s. Other settings do not matter.
func sick() *testPair {
	set := map[hostKnob]string{
		at("peer", knob.TCPRmem): "small", at(Local, knob.TSO): "on", at(Local, knob.TxQueueLen): "1000", at("peer", knob.Backlog): "1000",
	}
	return newTestPair(set, func(set map[hostKnob]string, from string, _ int) float64 {
		rate := 1e10
		if from == Local && set[at("peer", knob.TCPRmem)] == "small" {
			rate = min(rate, 4e7)
		}
		if from == Local && set[at(Local, knob.TSO)] == "on" {
			rate = min(rate, 5e6)
		}
		return rate
	})
}

func cures() []measure.Proposal {
	return []measure.Proposal{
		change("peer", knob.Backlog, "2000", ""), change("peer", knob.TCPRmem, "large", "receive-window"), change(Local, knob.TSO, "off", "broken-tso"), change(Local, knob.TxQueueLen, "2000", ""),
	}
}
