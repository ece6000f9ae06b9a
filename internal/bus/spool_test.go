package bus_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"thru/internal/bus"
	"thru/internal/bus/bustest"
)

// shelf stores results, as a controller does.
type shelf struct {
	mu   sync.Mutex
	full error // error instead of storing one
	kept map[string]bus.Spooled
}

func newShelf() *shelf { return &shelf{kept: map[string]bus.Spooled{}} }

func (s *shelf) take(r bus.Spooled) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.full != nil {
		return s.full
	}
	s.kept[r.ID] = r
	return nil
}

func (s *shelf) fill(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.full = err
}

func (s *shelf) get(id string) bus.Spooled {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kept[id]
}

// noise returns a result that does not compress.
func noise(bytes int) []byte {
	b := make([]byte, bytes)
	r := rand.NewChaCha8([32]byte{1})
	r.Read(b)
	return b
}

// TestDeliver: results of any length arrive complete, and are acknowledged only when they
// are stored.
func TestDeliver(t *testing.T) {
	t.Parallel()
	s := newShelf()
	g := openRig(t, s.take)
	p := g.attach(t, bustest.New(), "bee")
	waitHosts(t, g.operator(t), func(h []bus.Host) bool { return named(h, "bee") != nil })
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	defer cancel()
	for id, size := range map[string]int{"one": 1, "part": 256 << 10, "more": 256<<10 + 1, "long": 12 << 20} {
		want := noise(size)
		if err := p.Deliver(ctx, bus.Spooled{ID: id, Body: want}); err != nil {
			t.Fatal(id, err)
		}
		if got := s.get(id); !bytes.Equal(got.Body, want) || got.Agent != p.ID() || got.Name != "bee" {
			t.Errorf("%s: %d of %d bytes of %s, %s", id, len(got.Body), size, got.Name, got.Agent)
		}
	}
	s.fill(errors.New("no space left on device"))
	if err := p.Deliver(ctx, bus.Spooled{ID: "full", Body: noise(1000)}); err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("a full disk: %v", err)
	}
	s.fill(nil)
	if err := p.Deliver(ctx, bus.Spooled{ID: "full", Body: noise(1000)}); err != nil || len(s.get("full").Body) != 1000 {
		t.Error(err)
	}
	for name, r := range map[string]bus.Spooled{"no id": {Body: noise(1)}, "a folder": {ID: "../x", Body: noise(1)}, "nothing": {ID: "x"}, "too much": {ID: "x", Body: make([]byte, 65<<20)}} {
		if err := p.Deliver(ctx, r); err == nil {
			t.Errorf("%s was delivered", name)
		}
	}
}

// TestDeliverWithoutController: nothing is acknowledged where no controller stores results.
func TestDeliverWithoutController(t *testing.T) {
	t.Parallel()
	g := openRig(t, nil)
	p := g.attach(t, bustest.New(), "bee")
	waitStatus(t, p, func(s bus.Status) bool { return s.Connected })
	if err := p.Deliver(t.Context(), bus.Spooled{ID: "x", Body: []byte("x")}); err == nil || !strings.Contains(err.Error(), "stores no results") {
		t.Error(err)
	}
	g.registry.Close()
	if err := p.Deliver(t.Context(), bus.Spooled{ID: "x", Body: []byte("x")}); err == nil || !strings.Contains(err.Error(), "no controller") {
		t.Error(err)
	}
}

// TestTwoControllers: over one external bus each result goes to one controller, and to the
// other one when the first is gone.
func TestTwoControllers(t *testing.T) {
	t.Parallel()
	x := openExternal(t, 1, library)
	first, second := newShelf(), newShelf()
	p, registry, f := fleetOn(t, x, bustest.New(), first.take)
	other, err := bus.OpenRegistry(t.Context(), bus.RegistryConfig{NATS: &x.controller[1], Intake: second.take})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { other.Close() })
	waitFor(t, func() (int, bool) { n := len(other.Hosts()); return n, n == 1 }) // by the roll call
	for _, id := range strings.Split("abcdefgh", "") {
		if err := p.Deliver(t.Context(), bus.Spooled{ID: id, Body: noise(600 << 10)}); err != nil {
			t.Fatal(err)
		}
		if (len(first.get(id).Body) > 0) == (len(second.get(id).Body) > 0) {
			t.Errorf("%s is at both or none", id)
		}
	}
	registry.Close()
	if err := p.Deliver(t.Context(), bus.Spooled{ID: "z", Body: noise(1000)}); err != nil || len(second.get("z").Body) != 1000 {
		t.Error(err)
	}
	if hosts, err := f.Hosts(t.Context()); err != nil || len(hosts) != 1 {
		t.Error(hosts, err)
	}
	other.Close()
	if _, err := f.Hosts(t.Context()); err == nil || !strings.Contains(err.Error(), "no controller answers") {
		t.Error(err)
	}
}

// TestDeliverAcrossBlip: after an outage a delivery continues where it was.
func TestDeliverAcrossBlip(t *testing.T) {
	t.Parallel()
	s := newShelf()
	g := openRig(t, s.take)
	var cut *relay
	g.agent, cut = via(t, g.agent)
	p := g.attach(t, bustest.New(), "bee")
	waitStatus(t, p, func(s bus.Status) bool { return s.Connected })
	want := noise(8 << 20)
	done := make(chan error, 1)
	go func() { done <- p.Deliver(t.Context(), bus.Spooled{ID: "x", Body: want}) }()
	time.Sleep(20 * time.Millisecond)
	cut.cut()
	time.Sleep(50 * time.Millisecond)
	cut.fix()
	if err := <-done; err != nil { // the link was cut before the offer was answered
		waitStatus(t, p, func(s bus.Status) bool { return s.Connected })
		err = p.Deliver(t.Context(), bus.Spooled{ID: "x", Body: want})
		if err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(s.get("x").Body, want) {
		t.Error("the result is not whole")
	}
}
