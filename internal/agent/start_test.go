package agent

import (
	"context"
	"strings"
	"testing"
	"time"

	"thru/internal/bus"
	"thru/internal/engine"
	"thru/internal/fault"
)

// now returns the agent's clock as a client reads it.
func now(t *testing.T, a *Agent) int64 {
	t.Helper()
	r, err := a.Clock(t.Context(), "one", bus.Empty{})
	if err != nil || r.WallNs == 0 {
		t.Fatalf("%+v %v", r, err)
	}
	return r.NowNs
}

// A start at a future time is answered at once, and the barrier released at that time.
func TestStartAtAMoment(t *testing.T) {
	a, f, _ := newFake(t, DefaultLimits())
	p := prepared(t, a, "one")
	at := now(t, a) + int64(300*time.Millisecond)
	if _, err := a.Start(t.Context(), "one", bus.StartRequest{Session: p.Session, AtNs: at}); err != nil {
		t.Fatal(err)
	}
	<-f.opened[0].started
	if early := at - now(t, a); early > 0 {
		t.Errorf("it was started %v before its moment", time.Duration(early))
	}
}

// A past time means now; one far ahead is rejected.
func TestStartMoments(t *testing.T) {
	a, f, _ := newFake(t, DefaultLimits())
	p := prepared(t, a, "one")
	_, err := a.Start(t.Context(), "one", bus.StartRequest{Session: p.Session, AtNs: now(t, a) + int64(time.Hour)})
	if fault.Code(err) != fault.Usage || !strings.Contains(err.Error(), "too far") {
		t.Errorf("a start in an hour: %v", err)
	}
	if _, err := a.Start(t.Context(), "one", bus.StartRequest{Session: p.Session, AtNs: 1}); err != nil || !f.opened[0].isStarted() {
		t.Errorf("a start at a moment that has passed: %v", err)
	}
}

// A session that ends before its start time never starts.
func TestReleasedBeforeItsMoment(t *testing.T) {
	a, f, _ := newFake(t, DefaultLimits())
	p := prepared(t, a, "one")
	if _, err := a.Start(t.Context(), "one", bus.StartRequest{Session: p.Session, AtNs: now(t, a) + int64(20*time.Second)}); err != nil {
		t.Fatal(err)
	}
	a.Release(t.Context(), "one", bus.ReleaseRequest{})
	if f.opened[0].isStarted() || !f.opened[0].isClosed() {
		t.Error("the session was started, or not closed")
	}
}

// A later error of the start is sent as an event.
func TestStartThatFailsLater(t *testing.T) {
	a, f, events := newFake(t, DefaultLimits())
	p := prepared(t, a, "one")
	f.opened[0].startError = fault.Failf("repair it", "engine: broken")
	if _, err := a.Start(t.Context(), "one", bus.StartRequest{Session: p.Session, AtNs: now(t, a) + int64(10*time.Millisecond)}); err != nil {
		t.Fatal(err)
	}
	if e := <-events; e.Kind != bus.EventFailed || e.Session != p.Session || e.Error != "engine: broken" || e.Hint != "repair it" {
		t.Errorf("%+v", e)
	}
}

// The evidence has the start of the measured time on the agent's clock; the time that the
// worker reports counts, not when the report came.
func TestBeganIsOnTheAgentsClock(t *testing.T) {
	a, f, events := newFake(t, DefaultLimits())
	p := prepared(t, a, "one")
	if _, err := a.Start(t.Context(), "one", bus.StartRequest{Session: p.Session}); err != nil {
		t.Fatal(err)
	}
	before := now(t, a)
	f.opened[0].updates <- engine.Update{Kind: engine.Mark, Began: time.Now().Add(-500 * time.Millisecond).UnixNano()}
	f.opened[0].updates <- engine.Update{Kind: engine.Done}
	<-events
	r, err := a.Collect(t.Context(), "one", bus.CollectRequest{Session: p.Session})
	if err != nil || r.Evidence.BeganNs == nil {
		t.Fatalf("%+v %v", r.Evidence, err)
	}
	if got := *r.Evidence.BeganNs; got >= before || got < before-int64(600*time.Millisecond) {
		t.Errorf("it began at %d, and the clock read %d before the report", got, before)
	}
}

// Implausible times of the worker are ignored.
func TestBegan(t *testing.T) {
	at := time.Now()
	for name, c := range map[string]struct{ reported, want time.Time }{
		"a while ago":       {at.Add(-20 * time.Millisecond), at.Add(-20 * time.Millisecond)},
		"in the future":     {at.Add(time.Hour), at},
		"an hour ago":       {at.Add(-time.Hour), at},
		"no report":         {time.Unix(0, 0), at},
		"at this very time": {at, at},
	} {
		if got := began(engine.Update{Began: c.reported.UnixNano()}, at); !got.Equal(c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestAgentNamesItself(t *testing.T) {
	a, _, _ := newFake(t, DefaultLimits())
	b, _, _ := newFake(t, DefaultLimits())
	one, _ := a.Hello(context.Background(), "one", bus.HelloRequest{})
	two, _ := b.Hello(context.Background(), "one", bus.HelloRequest{})
	again, _ := a.Hello(context.Background(), "other", bus.HelloRequest{})
	if one.ID == "" || one.ID == two.ID || one.ID != again.ID {
		t.Errorf("ids %q, %q and %q", one.ID, again.ID, two.ID)
	}
}
