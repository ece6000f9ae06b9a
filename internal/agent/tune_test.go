package agent

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"thru/internal/bus"
	"thru/internal/fault"
	"thru/internal/measure"
)

// fakeTuner records its calls, in order.
type fakeTuner struct {
	mu    sync.Mutex
	asked []string
	no    string // why nothing can be changed
	fails error
	meets func(what string) // called during each call
}

func (f *fakeTuner) note(s ...string) error {
	f.mu.Lock()
	f.asked = append(f.asked, strings.Join(s, " "))
	f.mu.Unlock()
	if f.meets != nil {
		f.meets(s[0])
	}
	return f.fails
}

func (f *fakeTuner) heard() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.asked)
}

func (f *fakeTuner) Knobs(interfaces []string) []measure.KnobState {
	return []measure.KnobState{{Knob: "mtu", Interface: strings.Join(interfaces, " "), Value: "1500"}}
}
func (f *fakeTuner) NoTune() string          { return f.no }
func (f *fakeTuner) Host() string            { return "h" }
func (f *fakeTuner) Open() []measure.Changed { return []measure.Changed{{Number: 7}} }
func (f *fakeTuner) By() string              { return "bob" }

func (f *fakeTuner) Begin(client, who string) error { return f.note("begin", client, who) }
func (f *fakeTuner) Alter(client string, s []measure.Setting) ([]measure.Changed, error) {
	return []measure.Changed{{Number: 1, Setting: s[0]}}, f.note("alter", client, s[0].Knob)
}
func (f *fakeTuner) Revert(client string, n []int64) ([]measure.Changed, error) {
	return nil, f.note("revert", client)
}
func (f *fakeTuner) Rollback() ([]measure.Changed, error) {
	return []measure.Changed{{Number: 2}}, f.note("rollback")
}
func (f *fakeTuner) End(client string) error { return f.note("end", client) }
func (f *fakeTuner) Gone(client string)      { f.note("gone", client) }

// tuneTable makes all requests that change settings.
func tuneTable(c *bus.Client, ctx context.Context) map[string]error {
	_, tune := bus.Call(ctx, c, bus.Tune, bus.TuneRequest{Owner: "alice"})
	_, alter := bus.Call(ctx, c, bus.Alter, bus.AlterRequest{Settings: []measure.Setting{{Knob: "mtu", Value: "9000"}}})
	_, revert := bus.Call(ctx, c, bus.Revert, bus.RevertRequest{})
	_, tuned := bus.Call(ctx, c, bus.TuneEnd, bus.Empty{})
	_, rollback := bus.Call(ctx, c, bus.Rollback, bus.Empty{})
	return map[string]error{"tune": tune, "alter": alter, "revert": revert, "tuned": tuned, "rollback": rollback}
}

// TestTunePrivilege: each request that changes settings needs the privilege, and reading
// the knobs needs none.
func TestTunePrivilege(t *testing.T) {
	tests := []struct {
		name      string
		privilege string
		allow     []string
		may       bool
	}{
		{"who may measure", bus.PrivilegeMeasure, bus.Privileges(), false},
		{"who may capture", bus.PrivilegeCapture, bus.Privileges(), false},
		{"who may tune", bus.PrivilegeTune, bus.Privileges(), true},
		{"who may no longer", bus.PrivilegeTune, nil, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, _, _ := newFake(t, DefaultLimits())
			f := &fakeTuner{}
			a.conf.Tuner = f
			s, _, err := bus.Listen(t.Context(), bus.ServerConfig{Addrs: []string{"127.0.0.1:0"}, Allow: tt.allow})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			service, err := bus.Serve(s, a)
			if err != nil {
				t.Fatal(err)
			}
			defer service.Close()
			j := s.JoinFor(tt.privilege, nil)
			c, err := bus.Dial(t.Context(), bus.DialConfig{Addrs: j.Control, Secret: j.Secret, Pin: j.Pin})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			for verb, err := range tuneTable(c, t.Context()) {
				if (err == nil) != tt.may || !tt.may && !strings.Contains(fault.Hint(err), "--allow tune") {
					t.Errorf("%s: %v (%s)", verb, err, fault.Hint(err))
				}
			}
			if heard := f.heard(); tt.may != (len(heard) == 5) {
				t.Errorf("the tuner heard %q", heard)
			}
			r, err := bus.Call(t.Context(), c, bus.Knobs, bus.KnobsRequest{Interfaces: []string{"eth0"}})
			if err != nil || (r.NoTune == "") != tt.may || len(r.Knobs) != 1 || r.Knobs[0].Interface != "eth0" || len(r.Open) != 1 || r.By != "bob" || r.Host != "h" {
				t.Errorf("%+v %v", r, err)
			}
			if r, err := bus.Call(t.Context(), c, bus.Facts, bus.FactsRequest{}); err != nil || len(r.Facts.Tuned) != 1 { // every client that measures must know
				t.Errorf("%+v %v", r.Facts.Tuned, err)
			}
		})
	}
}

// own connects the agent's own process to it.
func own(t *testing.T, a *Agent) *bus.Client {
	t.Helper()
	c, err := bus.InProcess(a)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// TestOwnProcessTunes: where the host cannot be tuned, the own process gets the reason.
func TestOwnProcessTunes(t *testing.T) {
	a, _, _ := newFake(t, DefaultLimits())
	c := own(t, a)
	for verb, err := range tuneTable(c, t.Context()) {
		if err == nil || !strings.Contains(err.Error(), "cannot change settings") {
			t.Errorf("%s without a tuner: %v", verb, err)
		}
	}
	if r, err := bus.Call(t.Context(), c, bus.Knobs, bus.KnobsRequest{}); err != nil || r.NoTune == "" {
		t.Error(r, err)
	}
	f := &fakeTuner{no: "no root"}
	a.conf.Tuner = f
	if r, err := bus.Call(t.Context(), c, bus.Knobs, bus.KnobsRequest{Peer: "127.0.0.1:9"}); err != nil || r.NoTune != "no root" || r.Knobs[0].Interface != "lo" {
		t.Error(r, err)
	}
	if _, err := bus.Call(t.Context(), c, bus.Knobs, bus.KnobsRequest{Peer: "nowhere"}); err == nil {
		t.Error("a peer without an address")
	}
	for verb, err := range tuneTable(c, t.Context()) {
		if err != nil {
			t.Errorf("%s: %v", verb, err)
		}
	}
	f.fails = fault.Failf("do this", "tune: no")
	for verb, err := range tuneTable(c, t.Context()) {
		if err == nil || fault.Hint(err) != "do this" {
			t.Errorf("%s: %v (%s)", verb, err, fault.Hint(err))
		}
	}
}

// TestKnobsAreBounded: a client without the tune privilege cannot keep the host busy by
// naming one interface many times.
func TestKnobsAreBounded(t *testing.T) {
	a, _, _ := newFake(t, DefaultLimits())
	a.conf.Tuner = &fakeTuner{}
	c := own(t, a)
	r, err := bus.Call(t.Context(), c, bus.Knobs, bus.KnobsRequest{Interfaces: append(slices.Repeat([]string{"lo"}, mostInterfaces-1), "eth0")})
	if err != nil || r.Knobs[0].Interface != "eth0 lo" {
		t.Error(r, err)
	}
	if _, err := bus.Call(t.Context(), c, bus.Knobs, bus.KnobsRequest{Interfaces: slices.Repeat([]string{"lo"}, mostInterfaces+1)}); err == nil {
		t.Error("too many are read")
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.Knobs(over, "a", bus.KnobsRequest{Interfaces: []string{"lo"}}); !errors.Is(err, context.Canceled) {
		t.Error("it is read though nobody waits:", err)
	}
}

// TestTuningKeepsTheTurn: no other client measures a host that is being tuned, until the
// tuning has ended in any way.
func TestTuningKeepsTheTurn(t *testing.T) {
	a, _, _ := newFake(t, DefaultLimits())
	f := &fakeTuner{}
	a.conf.Tuner = f
	calls := 0
	a.OnBusy(func() { calls++ })
	ctx := t.Context()
	tuner := own(t, a)
	takeTurn(t, a, "other")
	if _, err := bus.Call(ctx, tuner, bus.Tune, bus.TuneRequest{Owner: "alice"}); err == nil || fault.Hint(err) == "" || len(f.heard()) > 0 {
		t.Error("a tuning begins while another measures:", err)
	}
	a.Gone("other")
	if _, err := bus.Call(ctx, tuner, bus.Tune, bus.TuneRequest{Owner: "alice"}); err != nil {
		t.Fatal(err)
	}
	if got := a.Busy(); got != "is being tuned by alice" || calls == 0 {
		t.Error(got, calls)
	}
	if r, _ := a.Reserve(ctx, "other", bus.ReserveRequest{Together: true}); r.Granted || r.Ahead != 1 {
		t.Error(r)
	}
	if r, err := bus.Call(ctx, tuner, bus.Reserve, bus.ReserveRequest{}); err != nil || !r.Granted {
		t.Error("the tuner waits for others:", r, err)
	}
	if got := a.Busy(); got != "is being tuned by alice; 1 waiting" {
		t.Error(got)
	}
	if _, err := bus.Call(ctx, tuner, bus.Release, bus.ReleaseRequest{}); err != nil {
		t.Error(err)
	}
	if _, err := prepare(a, "other", nil); err == nil {
		t.Error("another measures between two runs of a tuning")
	}
	if _, err := a.Tune(ctx, "third", bus.TuneRequest{}); err == nil {
		t.Error("without a login there is no privilege")
	}
	if _, err := bus.Call(ctx, tuner, bus.TuneEnd, bus.Empty{}); err != nil {
		t.Error(err)
	}
	takeTurn(t, a, "other")
	a.Gone("other")
	if a.Busy() != "" {
		t.Error(a.Busy())
	}
	bus.Call(ctx, tuner, bus.Tune, bus.TuneRequest{Owner: "alice"})
	if err := tuner.Close(); err != nil {
		t.Error(err)
	}
	heard := f.heard()
	if n := len(heard); n < 2 || !strings.HasPrefix(heard[n-1], "gone ") {
		t.Errorf("a client that is gone is not undone: %q", heard)
	}
	takeTurn(t, a, "other")
}

// losing is an agent whose client is lost while its tuning begins: the bus has ended its
// context, waited for the grace time, and reported it gone.
type losing struct {
	*Agent
	tuner *fakeTuner
}

func (l losing) Answers() []bus.Answerer { return append(l.Agent.Answers(), bus.On(bus.Tune, l.Tune)) }

func (l losing) Tune(ctx context.Context, client string, m bus.TuneRequest) (bus.Empty, error) {
	ctx, lose := context.WithCancel(ctx)
	l.tuner.meets = func(what string) {
		if what == "begin" {
			lose()
			l.Gone(client)
		}
	}
	return l.Agent.Tune(ctx, client, m)
}

// TestLostWhileItBegins: a client lost before its tuning began keeps neither the host nor
// the turn.
func TestLostWhileItBegins(t *testing.T) {
	a, _, _ := newFake(t, DefaultLimits())
	f := &fakeTuner{}
	a.conf.Tuner = f
	c, err := bus.InProcess(losing{a, f})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := bus.Call(t.Context(), c, bus.Tune, bus.TuneRequest{Owner: "alice"}); err == nil {
		t.Error("a client that is gone tunes")
	}
	var heard []string
	for _, s := range f.heard() {
		verb, _, _ := strings.Cut(s, " ")
		heard = append(heard, verb)
	}
	if !slices.Equal(heard, []string{"begin", "gone", "gone"}) { // the second after it has the host
		t.Errorf("%q", heard)
	}
	if a.Busy() != "" {
		t.Error(a.Busy())
	}
	takeTurn(t, a, "other")
}

// TestRollbackTakesTheTurn: a rollback does not run during a measurement, and no client
// measures meanwhile.
func TestRollbackTakesTheTurn(t *testing.T) {
	a, _, _ := newFake(t, DefaultLimits())
	f := &fakeTuner{}
	a.conf.Tuner = f
	c := own(t, a)
	takeTurn(t, a, "other")
	if _, err := bus.Call(t.Context(), c, bus.Rollback, bus.Empty{}); err == nil || fault.Hint(err) == "" || len(f.heard()) > 0 {
		t.Error("settings change while another measures:", err)
	}
	a.Gone("other")
	f.meets = func(string) {
		if r, _ := a.Reserve(t.Context(), "other", bus.ReserveRequest{}); r.Granted {
			t.Error("another measures meanwhile")
		}
	}
	if _, err := bus.Call(t.Context(), c, bus.Rollback, bus.Empty{}); err != nil {
		t.Error(err)
	}
	f.meets = nil
	takeTurn(t, a, "other")
	a.Gone("other")
	if _, err := bus.Call(t.Context(), c, bus.Tune, bus.TuneRequest{Owner: "alice"}); err != nil {
		t.Error(err)
	}
	if _, err := bus.Call(t.Context(), c, bus.Rollback, bus.Empty{}); err != nil { // the tuner refuses it
		t.Error(err)
	}
	if r, _ := a.Reserve(t.Context(), "other", bus.ReserveRequest{}); r.Granted {
		t.Error("who tunes has lost the turn")
	}
}

// TestTuneFails: after a failed begin the host is free for others.
func TestTuneFails(t *testing.T) {
	a, _, _ := newFake(t, DefaultLimits())
	a.conf.Tuner = &fakeTuner{fails: errors.New("tune: taken")}
	c := own(t, a)
	if _, err := bus.Call(t.Context(), c, bus.Tune, bus.TuneRequest{}); err == nil || !strings.Contains(err.Error(), "tune: taken") {
		t.Error(err)
	}
	takeTurn(t, a, "other")
	if a.Busy() != "a client has the turn" {
		t.Error(a.Busy())
	}
}

// TestCloseUndoes: the end of an agent reverts its tuning.
func TestCloseUndoes(t *testing.T) {
	a, _, _ := newFake(t, DefaultLimits())
	f := &fakeTuner{}
	a.conf.Tuner = f
	c := own(t, a)
	if _, err := bus.Call(t.Context(), c, bus.Tune, bus.TuneRequest{}); err != nil {
		t.Fatal(err)
	}
	a.Close()
	if heard := f.heard(); !strings.HasPrefix(heard[len(heard)-1], "gone ") {
		t.Errorf("%q", heard)
	}
}
