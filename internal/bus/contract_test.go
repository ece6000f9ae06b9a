package bus_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"thru/internal/bus"
	"thru/internal/bus/bustest"
	"thru/internal/fault"
	"thru/internal/measure"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds what a test waits for; nothing asserts that it is short.
const patience = 20 * time.Second

// link starts an agent and connects to it.
type link func(t *testing.T, h bus.Handler) (*bus.Client, bus.Publish)

// TestContract holds both forms of the control plane to one behaviour.
func TestContract(t *testing.T) {
	links := map[string]link{"in process": inProcess, "tcp": overTCP, "hub": overHub, "nats": overNATS(library), "nats-server": overNATS(program)}
	tests := map[string]func(*testing.T, link){
		"verbs": testVerbs, "error": testError, "panic": testPanic, "long reply": testLongReply,
		"long replies at once": testLongReplies, "events": testEvents, "gone": testGone,
		"wire": testWire, "deadline": testDeadline, "gone after requests": testGoneLast, "busy": testBusy,
	}
	for form, link := range links {
		for name, test := range tests {
			t.Run(form+"/"+name, func(t *testing.T) {
				t.Parallel()
				test(t, link)
			})
		}
	}
}

func inProcess(t *testing.T, h bus.Handler) (*bus.Client, bus.Publish) {
	t.Helper()
	c, err := bus.InProcess(h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c, c.Publish
}

func overTCP(t *testing.T, h bus.Handler) (*bus.Client, bus.Publish) {
	t.Helper()
	s, v := serve(t, h, bus.ServerConfig{})
	return dial(t, s), v.Publish
}

// serve listens at a free port of loopback.
func serve(t *testing.T, h bus.Handler, c bus.ServerConfig) (*bus.Server, *bus.Service) {
	t.Helper()
	if c.Addrs == nil {
		c.Addrs = []string{"127.0.0.1:0"}
	}
	s, warnings, err := bus.Listen(t.Context(), c)
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	v, err := bus.Serve(s, h)
	if err != nil {
		s.Close()
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close(); s.Close() })
	return s, v
}

// config is how a client that has the join string dials.
func config(s *bus.Server) bus.DialConfig {
	j := s.Join(nil)
	return bus.DialConfig{Addrs: j.Control, Secret: j.Secret, Pin: j.Pin, Timeout: patience, Version: "v1"}
}

func dial(t *testing.T, s *bus.Server) *bus.Client {
	t.Helper()
	c, err := bus.Dial(t.Context(), config(s))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// clientID is the id under which the fake has seen its first caller.
func clientID(t *testing.T, c *bus.Client, h *bustest.Handler) string {
	t.Helper()
	if _, err := c.Hello(t.Context()); err != nil {
		t.Fatal(err)
	}
	calls := h.Calls()
	return calls[len(calls)-1].Client
}

func testVerbs(t *testing.T, connect link) {
	h := bustest.New()
	h.FactsReply.Facts.Hostname = new(string)
	*h.FactsReply.Facts.Hostname = "bee"
	h.PrepareReply = bus.PrepareReply{Session: "s7", Port: 5203}
	h.ReserveReply, h.CapturedReply = bus.ReserveReply{Ahead: 3}, bus.CapturedReply{Pcapng: []byte("p")}
	h.AnswerReply, h.ProbeReply = bus.AnswerReply{Token: "t", Port: 5210}, bus.ProbeReply{Path: measure.Path{To: "bee"}}
	changed := measure.Changed{Number: 300001, Setting: measure.Setting{Knob: "tcp-rmem", Value: "4096 131072 8388608"}, Before: "1 2 3", Found: "4096 131072 8388608"}
	h.ChangedReply = bus.ChangedReply{Changed: []measure.Changed{changed}}
	h.KnobsReply = bus.KnobsReply{Knobs: []measure.KnobState{{Knob: "tcp-rmem", Value: "1 2 3"}}, Open: h.ChangedReply.Changed, By: "bob"}
	h.FileReply, h.FiledReply, h.FileSizeReply = bus.FileReply{Session: "f1", Token: "T", Port: 5204, Bytes: 9}, bus.FiledReply{Over: true, Bytes: 8}, bus.FileSizeReply{Bytes: 9}
	h.DiskReply, h.DiskedReply = bus.DiskReply{Session: "d1"}, bus.DiskedReply{Test: measure.DiskTest{Path: "/srv"}}
	h.ObserveReply = bus.ObserveReply{Session: "o1"}
	h.GuestsReply = bus.GuestsReply{Inventory: measure.Inventory{Kind: measure.KindKVM, Guests: []measure.Guest{{ID: "vm:web1"}}}}
	h.WatchReply, h.WatchedReply = bus.WatchReply{Session: "w1"}, bus.WatchedReply{Series: []measure.Series{{Of: "vm:web1", Counter: measure.CounterReady}}}
	h.ObservedReply = bus.ObservedReply{Programs: []string{"nginx"}, Host: measure.HostSpan{Span: 7}, Streams: []measure.Stream{}}
	c, _ := connect(t, h)
	ctx := t.Context()
	if r, err := c.Hello(ctx); err != nil || r.Hostname != "fake" {
		t.Error(r, err)
	}
	if r, err := c.Facts(ctx, bus.FactsRequest{Peer: "10.0.0.1"}); err != nil || *r.Facts.Hostname != "bee" {
		t.Error(r, err)
	}
	if r, err := c.Answer(ctx, bus.Answer{}); err != nil || r.Port != 5210 {
		t.Error(r, err)
	}
	if r, err := c.Probe(ctx, bus.Probe{Targets: []string{"10.0.0.1:5210"}, Quick: true}); err != nil || r.Path.To != "bee" {
		t.Error(r, err)
	}
	if r, err := c.Reserve(ctx, bus.Reserve{}); err != nil || r.Ahead != 3 || r.Granted {
		t.Error(r, err)
	}
	if r, err := c.Prepare(ctx, bus.Prepare{Sends: true, Spec: measure.Spec{Streams: 4}}); err != nil || r.Session != "s7" || r.Port != 5203 {
		t.Error(r, err)
	}
	if _, err := c.Start(ctx, bus.Start{Session: "s7"}); err != nil {
		t.Error(err)
	}
	if _, err := c.Collect(ctx, bus.Collect{Session: "s7"}); err != nil {
		t.Error(err)
	}
	if r, err := c.Captured(ctx, bus.Captured{Session: "s7", Offset: 5}); err != nil || string(r.Pcapng) != "p" {
		t.Error(r, err)
	}
	if _, err := c.Release(ctx, bus.Release{}); err != nil {
		t.Error(err)
	}
	askTuning(t, c)
	if r, err := c.Disk(ctx, bus.Disk{Path: "/srv", Spec: measure.DiskSpec{RunNs: 5}}); err != nil || r.Session != "d1" {
		t.Error(r, err)
	}
	if r, err := c.Disked(ctx, bus.Disked{Session: "d1"}); err != nil || r.Test.Path != "/srv" {
		t.Error(r, err)
	}
	if r, err := c.Observe(ctx, bus.Observe{Conns: []measure.Addresses{{Local: "10.0.0.1:5", Peer: "10.0.0.2:80"}}}); err != nil || r.Session != "o1" {
		t.Error(r, err)
	}
	if r, err := c.Observed(ctx, bus.Observed{Session: "o1"}); err != nil || len(r.Programs) != 1 || r.Host.Span != 7 {
		t.Error(r, err)
	}
	askFiles(t, c)
	askGuests(t, c)
	calls := h.Calls()
	var verbs []string
	for _, call := range calls {
		verbs = append(verbs, call.Verb)
	}
	if got, want := strings.Join(verbs, " "), "hello facts answer probe reserve prepare start collect captured release knobs tune alter revert rollback tuned disk disked observe observed file filed size remove guests watch watched"; got != want {
		t.Errorf("the agent heard %q, want %q", got, want)
	}
	if m := calls[5].Message.(bus.Prepare); !m.Sends || m.Spec.Streams != 4 {
		t.Errorf("prepare came as %+v", m)
	}
	if m := calls[12].Message.(bus.Alter); len(m.Settings) != 1 || m.Settings[0].Value != "4096 131072 8388608" {
		t.Errorf("alter came as %+v", m)
	}
	if m := calls[16].Message.(bus.Disk); m.Path != "/srv" || m.Spec.RunNs != 5 {
		t.Errorf("disk came as %+v", m)
	}
	if m := calls[18].Message.(bus.Observe); m.Session != "" || len(m.Conns) != 1 || m.Conns[0].Peer != "10.0.0.2:80" {
		t.Errorf("observe came as %+v", m)
	}
	if m := calls[20].Message.(bus.File); m != (bus.File{Path: "/srv/f", Put: true, Bytes: 5, Overwrite: true, Buffer: 7}) {
		t.Errorf("file came as %+v", m)
	}
	if m := calls[25].Message.(bus.Watch); !slices.Equal(m.IDs, []string{"vm:web1", "host"}) {
		t.Errorf("watch came as %+v", m)
	}
	if m := calls[13].Message.(bus.Revert); !slices.Equal(m.Numbers, []int64{300001}) {
		t.Errorf("revert came as %+v", m)
	}
}

// askGuests makes the requests about virtual machines.
func askGuests(t *testing.T, c *bus.Client) {
	t.Helper()
	ctx := t.Context()
	if r, err := c.Guests(ctx, bus.Guests{}); err != nil || len(r.Inventory.Guests) != 1 || r.Inventory.Guests[0].ID != "vm:web1" {
		t.Error(r, err)
	}
	if r, err := c.Watch(ctx, bus.Watch{IDs: []string{"vm:web1", "host"}}); err != nil || r.Session != "w1" {
		t.Error(r, err)
	}
	if r, err := c.Watched(ctx, bus.Watched{Session: "w1"}); err != nil || len(r.Series) != 1 || r.Series[0].Counter != measure.CounterReady {
		t.Error(r, err)
	}
}

// askFiles makes the requests about files.
func askFiles(t *testing.T, c *bus.Client) {
	t.Helper()
	ctx := t.Context()
	if r, err := c.File(ctx, bus.File{Path: "/srv/f", Put: true, Bytes: 5, Overwrite: true, Buffer: 7}); err != nil || r != (bus.FileReply{Session: "f1", Token: "T", Port: 5204, Bytes: 9}) {
		t.Error(r, err)
	}
	if r, err := c.Filed(ctx, bus.Filed{Session: "f1", End: true}); err != nil || !r.Over || r.Bytes != 8 {
		t.Error(r, err)
	}
	if r, err := c.FileSize(ctx, bus.FileSize{Path: "/srv/f"}); err != nil || r.Bytes != 9 {
		t.Error(r, err)
	}
	if _, err := c.FileRemove(ctx, bus.FileRemove{Path: "/srv/f"}); err != nil {
		t.Error(err)
	}
}

// askTuning makes the requests of a tuning.
func askTuning(t *testing.T, c *bus.Client) {
	t.Helper()
	ctx := t.Context()
	changed := []measure.Changed{{Number: 300001, Setting: measure.Setting{Knob: "tcp-rmem", Value: "4096 131072 8388608"}, Before: "1 2 3", Found: "4096 131072 8388608"}}
	if r, err := c.Knobs(ctx, bus.Knobs{Peer: "10.0.0.1"}); err != nil || len(r.Knobs) != 1 || r.Knobs[0].Value != "1 2 3" || r.By != "bob" || len(r.Open) != 1 {
		t.Error(r, err)
	}
	if _, err := c.Tune(ctx, bus.Tune{Who: "alice"}); err != nil {
		t.Error(err)
	}
	if r, err := c.Alter(ctx, bus.Alter{Settings: []measure.Setting{changed[0].Setting}}); err != nil || !slices.Equal(r.Changed, changed) {
		t.Error(r, err)
	}
	if r, err := c.Revert(ctx, bus.Revert{Numbers: []int64{300001}}); err != nil || !slices.Equal(r.Changed, changed) {
		t.Error(r, err)
	}
	if r, err := c.Rollback(ctx, bus.Rollback{}); err != nil || !slices.Equal(r.Changed, changed) {
		t.Error(r, err)
	}
	if _, err := c.Tuned(ctx, bus.Tuned{}); err != nil {
		t.Error(err)
	}
}

func testError(t *testing.T, connect link) {
	h := bustest.New()
	h.On = func(_ context.Context, c bustest.Call) error {
		if c.Verb == "start" {
			return errors.New("agent: a plain error\nof two lines: Zürich")
		}
		return bus.Because(bus.ReasonFull, fault.Usagef("-P 8 is the most there", "agent: %d streams are too many", 9))
	}
	c, _ := connect(t, h)
	_, err := c.Prepare(t.Context(), bus.Prepare{})
	if err == nil || err.Error() != "agent: 9 streams are too many" || fault.Hint(err) != "-P 8 is the most there" || fault.Code(err) != fault.Usage {
		t.Errorf("got %v, hint %q, code %d", err, fault.Hint(err), fault.Code(err))
	}
	var e *fault.Error
	if !errors.As(err, &e) || bus.ReasonOf(err) != bus.ReasonFull {
		t.Errorf("%T is no *fault.Error, or its reason is %q", err, bus.ReasonOf(err))
	}
	_, err = c.Start(t.Context(), bus.Start{})
	if err == nil || err.Error() != "agent: a plain error\nof two lines: Zürich" || fault.Code(err) != fault.Failed {
		t.Errorf("got %v, code %d", err, fault.Code(err))
	}
}

func testPanic(t *testing.T, connect link) {
	h := bustest.New()
	h.On = func(_ context.Context, c bustest.Call) error {
		if c.Verb == "start" {
			panic("oh no")
		}
		return nil
	}
	c, _ := connect(t, h)
	_, err := c.Start(t.Context(), bus.Start{})
	if err == nil || !strings.Contains(err.Error(), "oh no") || fault.Hint(err) == "" {
		t.Errorf("got %v, hint %q", err, fault.Hint(err))
	}
	if _, err := c.Hello(t.Context()); err != nil {
		t.Errorf("after a panic the agent answers %v", err)
	}
}

// longReply makes a CollectReply of at least so many bytes of JSON.
func longReply(bytes int) bus.CollectReply {
	var r bus.CollectReply
	for n := 0; n < bytes; n += 1000 {
		r.Evidence.Missing = append(r.Evidence.Missing, measure.NotChecked{Fact: strings.Repeat("é", 500)})
	}
	r.Evidence.Missing = append(r.Evidence.Missing, measure.NotChecked{Fact: "last"})
	return r
}

func testLongReply(t *testing.T, connect link) {
	h := bustest.New()
	h.CollectReply = longReply(5 << 20)
	c, _ := connect(t, h)
	for range 2 {
		r, err := c.Collect(t.Context(), bus.Collect{})
		got, want := r.Evidence.Missing, h.CollectReply.Evidence.Missing
		if err != nil || len(got) != len(want) || got[len(got)-1] != want[len(want)-1] || got[77] != want[77] {
			t.Fatalf("%d of %d entries, %v", len(got), len(want), err)
		}
	}
}

func testLongReplies(t *testing.T, connect link) {
	h := bustest.New()
	h.CollectReply = longReply(1 << 20)
	c, _ := connect(t, h)
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			if r, err := c.Collect(t.Context(), bus.Collect{}); err != nil || len(r.Evidence.Missing) != len(h.CollectReply.Evidence.Missing) {
				t.Error(len(r.Evidence.Missing), err)
			}
		})
	}
	wg.Wait()
}

// testEvents lets nobody read while far more progress comes than is kept: the
// events that end sessions arrive all the same, in order.
func testEvents(t *testing.T, connect link) {
	h := bustest.New()
	c, publish := connect(t, h)
	id := clientID(t, c, h)
	const finals = 40
	for i := range finals {
		for range 200 {
			publish(id, bus.Event{Session: "p", Kind: bus.EventProgress})
		}
		kind := []string{bus.EventDone, bus.EventFailed}[i%2]
		publish(id, bus.Event{Session: "s", Kind: kind, AtNs: int64(i)})
	}
	publish("NOBODYNOBODYNOBODYNOBODY22", bus.Event{Kind: bus.EventDone, Session: "other"})
	if _, err := c.Hello(t.Context()); err != nil { // the connection goes on
		t.Fatal(err)
	}
	for next := int64(0); next < finals; {
		select {
		case e := <-c.Events():
			if e.Kind == bus.EventProgress {
				continue
			}
			if e.AtNs != next || e.Session != "s" {
				t.Fatalf("event %d came when %d was due", e.AtNs, next)
			}
			next++
		case <-time.After(patience):
			t.Fatalf("event %d did not come", next)
		}
	}
}

func testGone(t *testing.T, connect link) {
	h := bustest.New()
	c, _ := connect(t, h)
	id := clientID(t, c, h)
	if c.Err() != nil || h.GoneTimes(id) != 0 {
		t.Error("gone while connected:", c.Err())
	}
	c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := h.WaitGone(ctx, id); err != nil {
		t.Fatal(err)
	}
	if n := h.GoneTimes(id); n != 1 {
		t.Errorf("Gone was called %d times", n)
	}
	select {
	case <-c.Lost():
	default:
		t.Error("Lost is open after Close")
	}
	if _, err := c.Hello(t.Context()); !errors.Is(err, bus.ErrClosed) {
		t.Errorf("a closed client says %v", err)
	}
	c.Close() // again does nothing
}

func testWire(t *testing.T, connect link) {
	h := bustest.New()
	h.HelloReply.WireMajor, h.HelloReply.Thru = bus.WireMajor+1, "v9.9"
	c, _ := connect(t, h)
	r, err := c.Hello(t.Context())
	if !errors.Is(err, bus.ErrWire) || r.Thru != "v9.9" || fault.Hint(err) != "upgrade thru here" || !strings.Contains(err.Error(), "v9.9") {
		t.Errorf("%v, hint %q", err, fault.Hint(err))
	}
	if m := h.Calls()[0].Message.(bus.Hello); m.WireMajor != bus.WireMajor {
		t.Errorf("hello told wire %d", m.WireMajor)
	}
}

// testDeadline: a client that stops waiting ends the work at the agent too.
// A busy machine may not even have carried the request by then: ask again, and wait longer.
func testDeadline(t *testing.T, connect link) {
	h := bustest.New()
	ended := make(chan struct{}, 100)
	h.On = func(ctx context.Context, _ bustest.Call) error {
		<-ctx.Done()
		ended <- struct{}{}
		return ctx.Err()
	}
	c, _ := connect(t, h)
	for wait := 200 * time.Millisecond; len(h.Calls()) == 0 && wait < patience; wait *= 2 {
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		if _, err := c.Prepare(ctx, bus.Prepare{}); err == nil {
			t.Error("no error after the deadline")
		}
		cancel()
	}
	select {
	case <-ended:
	case <-time.After(patience):
		t.Error("the agent works on")
	}
}

// testGoneLast: a running request ends before Gone is told.
func testGoneLast(t *testing.T, connect link) {
	h := bustest.New()
	running, order := make(chan struct{}), make(chan int, 1)
	var id string
	h.On = func(ctx context.Context, c bustest.Call) error {
		id = c.Client
		close(running)
		<-ctx.Done()
		order <- h.GoneTimes(c.Client)
		return nil
	}
	c, _ := connect(t, h)
	failed := make(chan error, 1)
	go func() {
		_, err := c.Prepare(t.Context(), bus.Prepare{})
		failed <- err
	}()
	<-running
	c.Close()
	if err := <-failed; !errors.Is(err, bus.ErrClosed) {
		t.Errorf("the request that was under way says %v", err)
	}
	if n := <-order; n != 0 {
		t.Error("Gone was told while a request ran")
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := h.WaitGone(ctx, id); err != nil {
		t.Error(err)
	}
}

// testBusy: one client cannot have requests without bound under way.
func testBusy(t *testing.T, connect link) {
	h := bustest.New()
	release := make(chan struct{})
	h.On = func(ctx context.Context, c bustest.Call) error {
		if c.Verb == "prepare" {
			<-release
		}
		return nil
	}
	c, _ := connect(t, h)
	results := make(chan error, 50)
	for range cap(results) {
		go func() {
			_, err := c.Prepare(t.Context(), bus.Prepare{})
			results <- err
		}()
	}
	err := <-results // those that wait have no result yet
	if err == nil || !strings.Contains(err.Error(), "too many") {
		t.Error(err)
	}
	close(release)
	for range cap(results) - 1 {
		<-results
	}
}
