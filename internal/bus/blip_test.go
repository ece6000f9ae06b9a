package bus_test

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"thru/internal/bus"
	"thru/internal/bus/bustest"
)

// relay forwards between a member of a fleet and its bus, and can be cut.
type relay struct {
	l    net.Listener
	to   string
	wg   sync.WaitGroup
	mu   sync.Mutex
	down bool
	open map[net.Conn]bool
}

func openRelay(t testing.TB, to string) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{l: l, to: to, open: map[net.Conn]bool{}}
	r.wg.Go(r.accept)
	t.Cleanup(func() { l.Close(); r.cut(); r.wg.Wait() })
	return r
}

func (r *relay) accept() {
	for {
		in, err := r.l.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", r.to)
		if err != nil || !r.keep(in, out) {
			in.Close()
			if err == nil {
				out.Close()
			}
			continue
		}
		r.wg.Go(func() { io.Copy(in, out); in.Close(); out.Close() })
		r.wg.Go(func() { io.Copy(out, in); in.Close(); out.Close() })
	}
}

func (r *relay) keep(conns ...net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range conns {
		r.open[c] = true
	}
	return !r.down
}

// cut ends all connections, and new ones.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down = true
	for c := range r.open {
		c.Close()
	}
	r.open = map[net.Conn]bool{}
}

func (r *relay) fix() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down = false
}

// via inserts a relay into a join string.
func via(t testing.TB, j bus.Join) (bus.Join, *relay) {
	t.Helper()
	r := openRelay(t, j.Control[0])
	j.Control = []string{r.l.Addr().String()}
	return j, r
}

// TestBlip cuts the link of the agent, or of the operator, while a request runs and
// events come: the request is run once and answered, no event is lost or doubled, and
// the client stays.
func TestBlip(t *testing.T) {
	for _, end := range []string{"agent", "operator"} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			g := openRig(t, nil)
			var cut *relay
			if end == "agent" {
				g.agent, cut = via(t, g.agent)
			} else {
				g.operate, cut = via(t, g.operate)
			}
			h := bustest.New()
			running, release := make(chan struct{}), make(chan struct{})
			h.On = func(_ context.Context, c bustest.Call) error {
				if c.Verb == "prepare" {
					close(running) // panics where the request runs twice, and the client gets the error
					<-release
				}
				return nil
			}
			p := g.attach(t, h, "bee")
			c := g.operator(t).Client(p.ID())
			id := clientID(t, c, h)
			p.Publish(id, bus.Event{Session: "s", Kind: bus.EventDone, AtNs: 1})
			result := make(chan error, 1)
			go func() {
				_, err := bus.Call(t.Context(), c, bus.Prepare, bus.PrepareRequest{})
				result <- err
			}()
			<-running
			cut.cut()
			time.Sleep(100 * time.Millisecond) // so that both ends notice; the test does not depend on it
			for i := range 5 {
				p.Publish(id, bus.Event{Session: "s", Kind: bus.EventDone, AtNs: int64(i + 2)})
			}
			close(release)
			time.Sleep(100 * time.Millisecond)
			cut.fix()
			if err := <-result; err != nil {
				t.Error(err)
			}
			for want := int64(1); want <= 6; want++ {
				select {
				case e := <-c.Events():
					if e.AtNs != want {
						t.Fatalf("event %d came when %d was due", e.AtNs, want)
					}
				case <-time.After(patience):
					t.Fatalf("event %d did not come", want)
				}
			}
			if _, err := c.Hello(t.Context()); err != nil || h.GoneTimes(id) != 0 {
				t.Error(err, h.GoneTimes(id))
			}
		})
	}
}

// TestFleetLease: a silent client ends at its agent, and learns so when it reconnects.
func TestFleetLease(t *testing.T) {
	t.Parallel()
	g := openRig(t, nil)
	h := bustest.New()
	p := g.attach(t, h, "bee")
	c := g.operator(t).Client(p.ID())
	id := clientID(t, c, h)
	p.EndSilent(time.Hour)
	if h.GoneTimes(id) != 0 {
		t.Error("a client was ended before its lease was over")
	}
	p.EndSilent(0)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := h.WaitGone(ctx, id); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() (error, bool) {
		_, err := c.Hello(t.Context())
		return err, errors.Is(err, bus.ErrLost)
	})
	if n := h.GoneTimes(id); n != 1 {
		t.Errorf("Gone was called %d times", n)
	}
}

// TestAgentLeaves: its clients are notified at once.
func TestAgentLeaves(t *testing.T) {
	t.Parallel()
	g := openRig(t, nil)
	h := bustest.New()
	p := g.attach(t, h, "bee")
	c := g.operator(t).Client(p.ID())
	id := clientID(t, c, h)
	p.Close()
	if n := h.GoneTimes(id); n != 1 {
		t.Errorf("Gone was called %d times", n)
	}
	select {
	case <-c.Lost():
	case <-time.After(patience):
		t.Fatal("the client does not know")
	}
	if err := c.Err(); !errors.Is(err, bus.ErrLost) {
		t.Error(err)
	}
}

// TestOperatorLeaves: all agents end the operator's sessions at once.
func TestOperatorLeaves(t *testing.T) {
	t.Parallel()
	g := openRig(t, nil)
	f := g.operator(t)
	var handlers []*bustest.Handler
	var ids []string
	for _, name := range []string{"a", "b", "c"} {
		h := bustest.New()
		p := g.attach(t, h, name)
		handlers, ids = append(handlers, h), append(ids, clientID(t, f.Client(p.ID()), h))
	}
	f.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for i, h := range handlers {
		if err := h.WaitGone(ctx, ids[i]); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.Hosts(t.Context()); !errors.Is(err, bus.ErrClosed) {
		t.Errorf("a closed fleet returns %v", err)
	}
}

// TestHubRestarts: all members reconnect to a restarted controller, and running requests
// go on.
func TestHubRestarts(t *testing.T) {
	t.Parallel()
	state := newState(t)
	hub, _, err := bus.OpenHub(t.Context(), bus.HubConfig{Addrs: []string{"127.0.0.1:0"}, State: state})
	if err != nil {
		t.Fatal(err)
	}
	agent, _ := hub.Join(bus.PrivilegeAgent)
	operate, _ := hub.Join(bus.PrivilegeOperate)
	h := bustest.New()
	p := attach(t, bus.AttachConfig{Join: &agent, State: newState(t), Name: "bee"}, h)
	waitStatus(t, p, func(s bus.Status) bool { return s.Connected })
	f := dialFleet(t, bus.FleetConfig{Join: &operate})
	c := f.Client(p.ID())
	id := clientID(t, c, h)
	hub.Close()
	down := waitStatus(t, p, func(s bus.Status) bool { return !s.Connected })
	if down.Err == nil || down.Fleet == "" {
		t.Errorf("%+v", down)
	}
	again := openRigAt(t, bus.HubConfig{Addrs: agent.Control, State: state}, bus.RegistryConfig{})
	if again.agent.String() != agent.String() {
		t.Error("the join string has changed")
	}
	waitStatus(t, p, func(s bus.Status) bool { return s.Connected && s.Err == nil })
	waitHosts(t, f, func(h []bus.Host) bool { return named(h, "bee") != nil })
	if _, err := c.Hello(t.Context()); err != nil || h.GoneTimes(id) != 0 {
		t.Error(err, h.GoneTimes(id))
	}
}

// TestAttachBeforeHub: an agent waits for its controller, and reports why.
func TestAttachBeforeHub(t *testing.T) {
	t.Parallel()
	state := newState(t)
	hub, _, err := bus.OpenHub(t.Context(), bus.HubConfig{Addrs: []string{"127.0.0.1:0"}, State: state})
	if err != nil {
		t.Fatal(err)
	}
	agent, _ := hub.Join(bus.PrivilegeAgent)
	hub.Close()
	p := attach(t, bus.AttachConfig{Join: &agent, State: newState(t), Name: "bee"}, bustest.New())
	s := waitStatus(t, p, func(s bus.Status) bool { return s.Err != nil })
	if s.Connected || !errors.Is(s.Err, bus.ErrRefused) {
		t.Errorf("%+v", s)
	}
	openRigAt(t, bus.HubConfig{Addrs: agent.Control, State: state}, bus.RegistryConfig{})
	waitStatus(t, p, func(s bus.Status) bool { return s.Connected })
}

// TestNewerProcess: of two processes with one identity the newer stays.
func TestNewerProcess(t *testing.T) {
	t.Parallel()
	g := openRig(t, nil)
	state := newState(t)
	same := func(c *bus.AttachConfig) { c.State = state }
	old, young := bustest.New(), bustest.New()
	first := g.attach(t, old, "bee", same)
	waitStatus(t, first, func(s bus.Status) bool { return s.Connected })
	second := g.attach(t, young, "bee", same)
	s := waitStatus(t, first, func(s bus.Status) bool { return s.Ended })
	if !errors.Is(s.Err, bus.ErrClosed) {
		t.Error(s.Err)
	}
	c := g.operator(t).Client(second.ID())
	waitFor(t, func() (int, bool) { // the older may still be leaving
		if _, err := c.Hello(t.Context()); err != nil {
			t.Fatal(err)
		}
		return len(young.Calls()), len(young.Calls()) > 0
	})
}

// TestAttachRefuses: an invalid configuration is an error at once.
func TestAttachRefuses(t *testing.T) {
	t.Parallel()
	g := openRig(t, nil)
	for name, c := range map[string]bus.AttachConfig{
		"no name":         {Join: &g.agent, State: newState(t)},
		"a bad name":      {Join: &g.agent, State: newState(t), Name: "a b"},
		"a bad label":     {Join: &g.agent, State: newState(t), Name: "a", Labels: map[string]string{"a b": ""}},
		"a bad value":     {Join: &g.agent, State: newState(t), Name: "a", Labels: map[string]string{"a": "x\n"}},
		"no bus":          {State: newState(t), Name: "a"},
		"no state":        {Join: &g.agent, Name: "a"},
		"wrong privilege": {Join: &g.operate, State: newState(t), Name: "a"},
	} {
		if p, err := bus.Attach(t.Context(), c, bustest.New()); err == nil {
			t.Error(name, "was let in")
			p.Close()
		}
	}
	wrong := g.agent
	wrong.Secret = g.operate.Secret
	p := attach(t, bus.AttachConfig{Join: &wrong, State: newState(t), Name: "a"}, bustest.New())
	if s := waitStatus(t, p, func(s bus.Status) bool { return s.Err != nil }); !errors.Is(s.Err, bus.ErrSecret) {
		t.Error(s.Err)
	}
}
