package bus_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"thru/internal/bus"
	"thru/internal/bus/bustest"
	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/watch/record"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is the time limit of a test's wait; no test asserts that a wait is short.
const patience = 20 * time.Second

// link starts an agent and connects to it.
type link func(t *testing.T, h bus.Handler) (*bus.Client, bus.Publish)

// TestContract checks that all transports of the control plane behave the same.
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

// config returns the DialConfig of a client that has the join string.
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

// clientID returns the id under which the fake has seen its first caller.
func clientID(t *testing.T, c *bus.Client, h *bustest.Handler) string {
	t.Helper()
	if _, err := c.Hello(t.Context()); err != nil {
		t.Fatal(err)
	}
	calls := h.Calls()
	return calls[len(calls)-1].Client
}

// exchange is one request and its reply.
type exchange struct {
	verb string
	set  func(*bustest.Handler)
	ask  func(*testing.T, *bus.Client, *bustest.Handler)
}

// of returns an exchange whose request and reply must arrive unchanged.
func of[Req, Rep any](v bus.Verb[Req, Rep], m Req, r Rep) exchange {
	return exchange{v.String(), func(h *bustest.Handler) { bustest.Reply(h, v, r) }, func(t *testing.T, c *bus.Client, h *bustest.Handler) {
		got, err := bus.Call(t.Context(), c, v, m)
		if d := cmp.Diff(r, got); err != nil || d != "" {
			t.Errorf("%s: %v, the reply: %s", v, err, d)
		}
		calls := h.Calls()
		if last := calls[len(calls)-1]; last.Verb != v.String() || !cmp.Equal(last.Message, any(m)) {
			t.Errorf("%s came as %s %+v, want %+v", v, last.Verb, last.Message, m)
		}
	}}
}

// exchanges returns each verb of an agent once.
func exchanges() []exchange {
	changed := bus.ChangedReply{Changed: []measure.Changed{{Number: 300001, Setting: measure.Setting{Knob: "tcp-rmem", Value: "4096 131072 8388608"}, Before: "1 2 3", Found: "4096 131072 8388608"}}}
	end, begun := bus.JobEnd{Session: "j1"}, bus.JobReply{Session: "j1"}
	return []exchange{
		of(bus.Hello, bus.HelloRequest{WireMajor: bus.WireMajor, Thru: "v1"}, bus.HelloReply{WireMajor: bus.WireMajor, Hostname: "bee", Privileges: []string{"measure"}}),
		of(bus.Clock, bus.Empty{}, bus.ClockReply{NowNs: 5, WallNs: 7}),
		of(bus.Facts, bus.FactsRequest{Peer: "10.0.0.1"}, bus.FactsReply{Facts: measure.Facts{Hostname: new("bee")}}),
		of(bus.Answer, bus.Empty{}, bus.AnswerReply{Token: "t", Port: 5210}),
		of(bus.Probe, bus.ProbeRequest{Targets: []string{"10.0.0.1:5210"}, Quick: true}, bus.ProbeReply{Path: measure.Path{To: "bee"}}),
		of(bus.Reserve, bus.ReserveRequest{Together: true}, bus.ReserveReply{Ahead: 3}),
		of(bus.Prepare, bus.PrepareRequest{Sends: true, Spec: measure.Spec{Streams: 4}}, bus.PrepareReply{Session: "s7", Port: 5203}),
		of(bus.Start, bus.StartRequest{Session: "s7", RampNs: 5}, bus.Empty{}),
		of(bus.Collect, bus.CollectRequest{Session: "s7"}, bus.CollectReply{Evidence: measure.Evidence{Bytes: 9, Streams: []measure.Stream{}, Bins: []measure.StreamBin{}}}),
		of(bus.CapturePart, bus.CaptureRequest{Session: "s7", Offset: 5}, bus.CaptureReply{Pcapng: []byte("p")}),
		of(bus.Release, bus.ReleaseRequest{Session: "s7"}, bus.Empty{}),
		of(bus.Knobs, bus.KnobsRequest{Peer: "10.0.0.1"}, bus.KnobsReply{Knobs: []measure.KnobState{{Knob: "tcp-rmem", Value: "1 2 3"}}, Open: changed.Changed, By: "bob"}),
		of(bus.Tune, bus.TuneRequest{Owner: "alice"}, bus.Empty{}),
		of(bus.Alter, bus.AlterRequest{Settings: []measure.Setting{changed.Changed[0].Setting}}, changed),
		of(bus.Revert, bus.RevertRequest{Numbers: []int64{300001}}, changed),
		of(bus.Rollback, bus.Empty{}, changed),
		of(bus.TuneEnd, bus.Empty{}, bus.Empty{}),
		of(bus.Disk.Begin, bus.DiskStart{Path: "/srv", Spec: measure.DiskSpec{RunNs: 5}}, begun),
		of(bus.Disk.End, end, bus.DiskResult{Test: measure.DiskTest{Path: "/srv"}}),
		of(bus.Observe.Begin, bus.ObserveStart{Conns: []measure.Addresses{{Local: "10.0.0.1:5", Peer: "10.0.0.2:80"}}}, begun),
		of(bus.Observe.End, end, bus.ObserveResult{Programs: []string{"nginx"}, Host: measure.HostSpan{Span: 7}, Streams: []measure.Stream{}}),
		of(bus.File.Begin, bus.FileStart{Path: "/srv/f", Put: true, Bytes: 5, Overwrite: true, Buffer: 7}, bus.FileReply{Session: "f1", Token: "T", Port: 5204, Bytes: 9}),
		of(bus.File.End, bus.FileEnd{Session: "f1", End: true}, bus.FileResult{Over: true, Bytes: 8}),
		of(bus.FileSize, bus.FilePath{Path: "/srv/f"}, bus.FileSizeReply{Bytes: 9}),
		of(bus.FileRemove, bus.FilePath{Path: "/srv/f"}, bus.Empty{}),
		of(bus.Guests, bus.Empty{}, bus.GuestsReply{Inventory: measure.Inventory{Kind: measure.KindKVM, Guests: []measure.Guest{{ID: "vm:web1"}}}}),
		of(bus.Watch.Begin, bus.WatchStart{IDs: []string{"vm:web1", "host"}}, begun),
		of(bus.Watch.End, end, bus.WatchResult{Series: []measure.Series{{Of: "vm:web1", Counter: measure.CounterReady}}}),
		of(bus.Reflect, bus.ReflectRequest{Watch: "W", From: "a", To: "b"}, bus.ReflectReply{Port: 5209, SSID: 7, Token: "T"}),
		of(bus.Pairs, bus.PairsRequest{Watch: "W", Pairs: []bus.Pair{{From: "a", To: "b", Target: "10.0.0.1:5209"}}}, bus.PairsReply{}),
		of(bus.Samples, bus.SamplesRequest{Watch: "W", Stored: 5}, bus.SamplesReply{Samples: []bus.Numbered{{Number: 6, Sample: record.Sample{State: record.Up}}}}),
	}
}

func testVerbs(t *testing.T, connect link) {
	h, all := bustest.New(), exchanges()
	for _, x := range all {
		x.set(h)
	}
	c, _ := connect(t, h)
	for _, x := range all {
		x.ask(t, c, h)
	}
	for i, v := range bus.Verbs() {
		if len(all) != len(bus.Verbs()) || all[i].verb != v.String() {
			t.Fatalf("the exchanges have not each verb in order: %s", v)
		}
	}
}

func testError(t *testing.T, connect link) {
	h := bustest.New()
	h.On = func(_ context.Context, c bustest.Call) error {
		if c.Verb == "start" {
			return errors.New("agent: a plain error\nof two lines: Zürich")
		}
		return fault.Because(bus.ReasonFull, fault.Usagef("-P 8 is the most there", "agent: %d streams are too many", 9))
	}
	c, _ := connect(t, h)
	_, err := bus.Call(t.Context(), c, bus.Prepare, bus.PrepareRequest{})
	if err == nil || err.Error() != "agent: 9 streams are too many" || fault.Hint(err) != "-P 8 is the most there" || fault.Code(err) != fault.Usage {
		t.Errorf("got %v, hint %q, code %d", err, fault.Hint(err), fault.Code(err))
	}
	var e *fault.Error
	if !errors.As(err, &e) || fault.ReasonOf(err) != bus.ReasonFull {
		t.Errorf("%T is no *fault.Error, or its reason is %q", err, fault.ReasonOf(err))
	}
	_, err = bus.Call(t.Context(), c, bus.Start, bus.StartRequest{})
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
	_, err := bus.Call(t.Context(), c, bus.Start, bus.StartRequest{})
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
	long := longReply(5 << 20)
	bustest.Reply(h, bus.Collect, long)
	c, _ := connect(t, h)
	for range 2 {
		r, err := bus.Call(t.Context(), c, bus.Collect, bus.CollectRequest{})
		got, want := r.Evidence.Missing, long.Evidence.Missing
		if err != nil || len(got) != len(want) || got[len(got)-1] != want[len(want)-1] || got[77] != want[77] {
			t.Fatalf("%d of %d entries, %v", len(got), len(want), err)
		}
	}
}

func testLongReplies(t *testing.T, connect link) {
	h := bustest.New()
	long := longReply(1 << 20)
	bustest.Reply(h, bus.Collect, long)
	c, _ := connect(t, h)
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			if r, err := bus.Call(t.Context(), c, bus.Collect, bus.CollectRequest{}); err != nil || len(r.Evidence.Missing) != len(long.Evidence.Missing) {
				t.Error(len(r.Evidence.Missing), err)
			}
		})
	}
	wg.Wait()
}

// testEvents reads no events while far more progress comes than is kept: the events that
// end sessions still arrive, in order.
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
	if _, err := c.Hello(t.Context()); err != nil { // the connection still works
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
		t.Errorf("a closed client returns %v", err)
	}
	c.Close() // a second Close does nothing
}

func testWire(t *testing.T, connect link) {
	h := bustest.New()
	bustest.Reply(h, bus.Hello, bus.HelloReply{WireMajor: bus.WireMajor + 1, Thru: "v9.9"})
	c, _ := connect(t, h)
	r, err := c.Hello(t.Context())
	if !errors.Is(err, bus.ErrWire) || r.Thru != "v9.9" || fault.Hint(err) != "upgrade thru here" || !strings.Contains(err.Error(), "v9.9") {
		t.Errorf("%v, hint %q", err, fault.Hint(err))
	}
	if m := h.Calls()[0].Message.(bus.HelloRequest); m.WireMajor != bus.WireMajor {
		t.Errorf("hello reports wire %d", m.WireMajor)
	}
}

// testDeadline: a client that stops waiting ends the work at the agent too. A busy machine
// may not even have sent the request by then: repeat it, and wait longer.
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
		if _, err := bus.Call(ctx, c, bus.Prepare, bus.PrepareRequest{}); err == nil {
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

// testGoneLast: a running request ends before Gone is called.
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
		_, err := bus.Call(t.Context(), c, bus.Prepare, bus.PrepareRequest{})
		failed <- err
	}()
	<-running
	c.Close()
	if err := <-failed; !errors.Is(err, bus.ErrClosed) {
		t.Errorf("the request that was under way returns %v", err)
	}
	if n := <-order; n != 0 {
		t.Error("Gone was called while a request ran")
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := h.WaitGone(ctx, id); err != nil {
		t.Error(err)
	}
}

// testBusy: the concurrent requests of one client are limited.
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
			_, err := bus.Call(t.Context(), c, bus.Prepare, bus.PrepareRequest{})
			results <- err
		}()
	}
	err := <-results // requests that wait have no result yet
	if err == nil || !strings.Contains(err.Error(), "too many") {
		t.Error(err)
	}
	close(release)
	for range cap(results) - 1 {
		<-results
	}
}
