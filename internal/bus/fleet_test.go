package bus_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"thru/internal/bus"
	"thru/internal/bus/bustest"
)

// rig is a fleet in this process: a hub on loopback and its registry.
type rig struct {
	hub      *bus.Hub
	registry *bus.Registry
	agent    bus.Join
	operate  bus.Join
}

// openRig starts a rig.
func openRig(t testing.TB, intake func(bus.Spooled) error) *rig {
	t.Helper()
	return openRigAt(t, bus.HubConfig{Addrs: []string{"127.0.0.1:0"}}, bus.RegistryConfig{Intake: intake})
}

func openRigAt(t testing.TB, hc bus.HubConfig, rc bus.RegistryConfig) *rig {
	t.Helper()
	hub, warnings, err := bus.OpenHub(context.Background(), hc)
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	t.Cleanup(hub.Close)
	rc.Hub = hub
	registry, err := bus.OpenRegistry(context.Background(), rc)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { registry.Close() })
	r := &rig{hub: hub, registry: registry}
	if r.agent, err = hub.Join(bus.PrivilegeAgent); err != nil {
		t.Fatal(err)
	}
	if r.operate, err = hub.Join(bus.PrivilegeOperate); err != nil {
		t.Fatal(err)
	}
	return r
}

// attach adds a host; its config may be changed first.
func (r *rig) attach(t testing.TB, h bus.Handler, name string, change ...func(*bus.AttachConfig)) *bus.Post {
	t.Helper()
	c := bus.AttachConfig{Join: &r.agent, Name: name, Version: "v1", CPUs: 2, Labels: map[string]string{"site": "east"}}
	for _, f := range change {
		f(&c)
	}
	if c.State == nil {
		c.State = newState(t)
	}
	return attach(t, c, h)
}

func newState(t testing.TB) *bus.State {
	t.Helper()
	s, err := bus.NewState()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func attach(t testing.TB, c bus.AttachConfig, h bus.Handler) *bus.Post {
	t.Helper()
	p, err := bus.Attach(context.Background(), c, h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// operator connects as an operator.
func (r *rig) operator(t testing.TB) *bus.Fleet {
	t.Helper()
	return dialFleet(t, bus.FleetConfig{Join: &r.operate, Version: "v1"})
}

func dialFleet(t testing.TB, c bus.FleetConfig) *bus.Fleet {
	t.Helper()
	f, err := bus.DialFleet(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// overHub links a pair over a fleet.
func overHub(t *testing.T, h bus.Handler) (*bus.Client, bus.Publish) {
	t.Helper()
	r := openRig(t, nil)
	p := r.attach(t, h, "bee")
	return r.operator(t).Client(p.ID()), p.Publish
}

// waitHosts waits until the fleet lists the wanted hosts.
func waitHosts(t testing.TB, f *bus.Fleet, want func([]bus.Host) bool) []bus.Host {
	t.Helper()
	return waitFor(t, func() ([]bus.Host, bool) {
		hosts, err := f.Hosts(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		return hosts, want(hosts)
	})
}

// waitFor repeats ask until its result is right, and fails after patience.
func waitFor[A any](t testing.TB, ask func() (A, bool)) A {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		a, ok := ask()
		if ok {
			return a
		}
		if time.Now().After(end) {
			t.Fatalf("it did not come to be: the last answer is %+v", a)
		}
	}
}

// waitStatus waits for a status of a post.
func waitStatus(t testing.TB, p *bus.Post, want func(bus.Status) bool) bus.Status {
	t.Helper()
	limit := time.After(patience)
	var last bus.Status
	for {
		select {
		case last = <-p.Status():
			if want(last) {
				return last
			}
		case <-limit:
			t.Fatalf("the last status is %+v", last)
		}
	}
}

func named(hosts []bus.Host, name string) *bus.Host {
	i := slices.IndexFunc(hosts, func(h bus.Host) bool { return h.Name == name && h.Refused == "" })
	if i < 0 {
		return nil
	}
	return &hosts[i]
}

// TestHosts: a host that joins is listed with its presence, and stays listed after it leaves.
func TestHosts(t *testing.T) {
	t.Parallel()
	r := openRig(t, nil)
	f := r.operator(t)
	if hosts, err := f.Hosts(t.Context()); err != nil || len(hosts) != 0 {
		t.Error(hosts, err)
	}
	busy := make(chan string, 1)
	busy <- ""
	p := r.attach(t, bustest.New(), "bee", func(c *bus.AttachConfig) {
		c.Addrs, c.DataAddrs = []string{"10.0.0.7"}, []string{"10.1.0.7"}
		c.Busy = func() string { s := <-busy; busy <- s; return s }
		c.Spool = func() (int, string) { return 3, "the disk is\nfull" }
	})
	hosts := waitHosts(t, f, func(h []bus.Host) bool { return len(h) == 1 })
	h := hosts[0]
	if h.ID != p.ID() || h.Name != "bee" || h.Labels["site"] != "east" || h.CPUs != 2 || h.Thru != "v1" || !h.Online || h.SeenAt.IsZero() ||
		h.Addrs[0] != "10.0.0.7" || h.DataAddrs[0] != "10.1.0.7" || h.WireMinor != bus.WireMinor || h.Waiting != 3 || h.Problem != "the disk is full" {
		t.Errorf("%+v", h)
	}
	<-busy
	busy <- "a test"
	p.Announce()
	waitHosts(t, f, func(h []bus.Host) bool { return h[0].Busy == "a test" })
	p.Close()
	gone := waitHosts(t, f, func(h []bus.Host) bool { return !h[0].Online })
	if gone[0].Name != "bee" || gone[0].Busy != "" {
		t.Errorf("%+v", gone[0])
	}
	if c := f.Client(p.ID()); c.Err() != nil {
		t.Error(c.Err())
	} else if _, err := c.Hello(t.Context()); err == nil || !strings.Contains(err.Error(), "bee") {
		t.Errorf("a host that is not there: %v", err)
	}
}

// TestManyHosts: hosts for several pages are listed, and each answers.
func TestManyHosts(t *testing.T) {
	t.Parallel()
	g := openRig(t, nil)
	const n = 230 // more than a page
	posts := g.attachMany(t, n)
	f := g.operator(t)
	waitHosts(t, f, func(h []bus.Host) bool { return len(h) == n && online(h) == n })
	helloAll(t, f, posts)
}

// attachMany adds hosts, several at a time.
func (r *rig) attachMany(t testing.TB, n int) []*bus.Post {
	t.Helper()
	posts := make([]*bus.Post, n)
	var wg sync.WaitGroup
	for w := range 16 {
		wg.Go(func() {
			for i := w; i < n; i += 16 {
				state, err := bus.NewState()
				if err != nil {
					t.Error(err)
					return
				}
				if posts[i], err = bus.Attach(context.Background(), bus.AttachConfig{Join: &r.agent, State: state, Name: fmt.Sprintf("h%d", i)}, bustest.New()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	t.Cleanup(func() {
		for _, p := range posts {
			if p != nil {
				wg.Go(func() { p.Close() })
			}
		}
		wg.Wait()
	})
	if t.Failed() {
		t.FailNow()
	}
	return posts
}

// helloAll sends Hello to all at once.
func helloAll(t testing.TB, f *bus.Fleet, posts []*bus.Post) {
	t.Helper()
	var wg sync.WaitGroup
	for _, p := range posts {
		wg.Go(func() {
			if _, err := f.Client(p.ID()).Hello(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func online(hosts []bus.Host) (n int) {
	for _, h := range hosts {
		if h.Online {
			n++
		}
	}
	return n
}

// BenchmarkAttach: 500 agents join one hub, are listed, and answer an operator that asks
// them all at once.
func BenchmarkAttach(b *testing.B) {
	for b.Loop() {
		g := openRig(b, nil)
		posts := g.attachMany(b, 500)
		f := g.operator(b)
		waitHosts(b, f, func(h []bus.Host) bool { return online(h) == len(posts) })
		helloAll(b, f, posts)
	}
}
