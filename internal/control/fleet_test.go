package control

import (
	"slices"
	"strings"
	"testing"
	"time"

	"thru/internal/agent"
	"thru/internal/bus"
	"thru/internal/engine"
	"thru/internal/engine/native"
	"thru/internal/engine/worker"
	"thru/internal/host"
	"thru/internal/measure"
)

// rig is a fleet of real agents in this process, which dial a hub on loopback.
type rig struct {
	posts map[string]*bus.Post
	ends  map[string]*EndPoint
}

func openRig(t *testing.T, names ...string) *rig {
	t.Helper()
	hub, _, err := bus.OpenHub(t.Context(), bus.HubConfig{Addrs: []string{"127.0.0.1:0"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(hub.Close)
	for _, privilege := range []string{bus.PrivilegeAgent, bus.PrivilegeOperate} {
		if _, err := hub.Join(privilege); err != nil {
			t.Fatal(err)
		}
	}
	serve, _ := hub.Join(bus.PrivilegeAgent)
	operate, _ := hub.Join(bus.PrivilegeOperate)
	program, err := worker.Self()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { program.Close() })
	fleet, err := bus.DialFleet(t.Context(), bus.FleetConfig{Join: &operate, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { fleet.Close() })
	r := &rig{posts: map[string]*bus.Post{}, ends: map[string]*EndPoint{}}
	for _, n := range names {
		a := agent.New(agent.Config{
			Name: n, Version: "test", Engines: engine.Table{measure.Native: native.Engine{Program: program}}, Host: host.New(),
			Limits: agent.DefaultLimits(), Listen: engine.Listen{Addrs: []string{"127.0.0.1"}},
		})
		state, err := bus.NewState()
		if err != nil {
			t.Fatal(err)
		}
		post, err := bus.Attach(t.Context(), bus.AttachConfig{Join: &serve, State: state, Name: n, Version: "test"}, a)
		if err != nil {
			t.Fatal(err)
		}
		a.Publisher(post.Publish)
		t.Cleanup(func() { post.Close(); a.Close() })
		c := fleet.Client(post.ID())
		hello, err := c.Hello(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		r.posts[n], r.ends[n] = post, &EndPoint{Name: n, Client: c, Hello: hello, DataHosts: []string{"127.0.0.1"}}
	}
	return r
}

// Real agents of a fleet: a mesh at once, twice; one agent leaves while it runs.
func TestRealFleet(t *testing.T) {
	for _, duration := range []time.Duration{2 * time.Second, 6 * time.Second, 20 * time.Second} { // until the flows overlap on a busy machine
		if realFleet(t, duration) {
			return
		}
	}
	t.Error("the flows never overlap")
}

// realFleet returns false where the flows were never all measured at the same time.
func realFleet(t *testing.T, duration time.Duration) bool {
	t.Helper()
	names := []string{"a", "b", "c", "d"}
	r := openRig(t, names...)
	var specs []measure.Spec
	for _, from := range names {
		for _, to := range names {
			if from != to {
				s := spec(from, to)
				s.Rate, s.Duration = 4e6, int64(duration)
				specs = append(specs, s)
			}
		}
	}
	p := atOnce(specs...)
	p.Repeat.Min, p.Repeat.Max = 2, 2
	left := false
	q := &quiet{}
	q.live = func(l Live) {
		if q.steps == 2 && !left && l.Event.Phase == bus.PhaseMeasure {
			left = true
			go r.posts["d"].Close()
		}
	}
	doc, err := (&Runner{Ends: r.ends, Watch: q}).Run(t.Context(), p)
	if err == nil || !strings.Contains(err.Error(), "6 of 12 pairs failed: a -> d (1 of 2 runs), ") {
		t.Errorf("error %v", err)
	}
	if e := endOf(doc, "d"); !strings.Contains(e.Lost, "d is lost") {
		t.Errorf("d has left: %q", e.Lost)
	}
	for _, c := range doc.Cells {
		with := slices.Contains([]string{c.From, c.To}, "d")
		if len(c.Runs) != 2 || c.Runs[0].Error != nil || (c.Runs[1].Error != nil) != with || c.Goodput == nil || c.Runs[0].Timing == nil {
			t.Errorf("%s to %s: %+v", c.From, c.To, c)
		}
	}
	if len(doc.Groups) != 1 || len(doc.Groups[0].Failed) != 6 {
		t.Errorf("the group: %+v", doc.Groups)
		return true
	}
	return doc.Groups[0].Aggregate != nil
}
