package bus_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"thru/internal/bus"
	"thru/internal/bus/bustest"
)

// withJetStream starts a server with JetStream.
func withJetStream(start run) run {
	return func(t testing.TB, config string) func() {
		t.Helper()
		text, err := os.ReadFile(config)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "jetstream") {
			write(t, config, fmt.Sprintf("%s\njetstream { store_dir: %q }\n", text, t.TempDir()))
		}
		return start(t, config)
	}
}

// registryOn opens a registry with an empty book.
func registryOn(t testing.TB, conf bus.NATSConfig) *bus.Registry {
	t.Helper()
	r := waitFor(t, func() (*bus.Registry, bool) {
		r, err := bus.OpenRegistry(context.Background(), bus.RegistryConfig{NATS: &conf})
		if err != nil && !errors.Is(err, bus.ErrRefused) {
			t.Fatal(err)
		}
		return r, err == nil
	})
	t.Cleanup(func() { r.Close() })
	return r
}

// host returns the host of a key as a registry lists it.
func hostAt(r *bus.Registry, key string) *bus.Host {
	all := r.Hosts()
	if i := slices.IndexFunc(all, func(h bus.Host) bool { return h.ID == key && h.Online }); i >= 0 {
		return &all[i]
	}
	return nil
}

// TestSharedNames: all controllers of a cluster agree who owns a name, also one that begins later.
func TestSharedNames(t *testing.T) {
	for name, start := range map[string]run{"library": library, "program": program} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := openExternal(t, 2, withJetStream(start))
			one := registryOn(t, x.controller[0])
			if err := one.Alone(); err != nil {
				t.Fatal(err)
			}
			first := attach(t, bus.AttachConfig{NATS: &x.agents[0], Name: "bee"}, bustest.New())
			waitFor(t, func() (bool, bool) { return true, hostAt(one, first.ID()) != nil })
			first.Close()

			two := registryOn(t, x.controller[1]) // has never heard the first
			if h := two.Hosts(); len(h) != 1 || h[0].Name != "bee" || h[0].ID != first.ID() {
				t.Errorf("the second controller lists %+v", h)
			}
			second := attach(t, bus.AttachConfig{NATS: &x.agents[1], Name: "bee"}, bustest.New())
			for _, r := range []*bus.Registry{one, two} {
				h := waitFor(t, func() (*bus.Host, bool) { h := hostAt(r, second.ID()); return h, h != nil })
				if h.Refused == "" {
					t.Error("a second key got the name")
				}
			}
			if err := one.Forget("bee"); err != nil {
				t.Fatal(err)
			}
			for _, r := range []*bus.Registry{one, two} {
				waitFor(t, func() (bool, bool) { h := hostAt(r, second.ID()); return true, h != nil && h.Refused == "" })
				if all := r.Hosts(); len(all) != 1 {
					t.Errorf("after --forget: %+v", all)
				}
			}
		})
	}
}

// TestControllerTwice: of two controllers with one key the older one is told to end.
func TestControllerTwice(t *testing.T) {
	t.Parallel()
	x := openExternal(t, 1, library)
	older := registryOn(t, x.controller[0])
	newer := registryOn(t, x.controller[0])
	select {
	case <-older.Lost():
	case <-time.After(patience):
		t.Error("the older controller goes on")
	}
	select {
	case <-newer.Lost():
		t.Error("the newer controller was told to end")
	default:
	}
	if older.Alone() == nil {
		t.Error("without JetStream, the controller claims to share names")
	}
}

// ledgerOn returns the shared runs as an operator sees them.
func ledgerOn(t testing.TB, conf bus.NATSConfig) *bus.Ledger {
	t.Helper()
	f := dialFleet(t, bus.FleetConfig{NATS: &conf})
	if _, err := f.Hosts(t.Context()); err != nil {
		t.Fatal(err)
	}
	l, err := f.Ledger()
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestLedger: a run has one owner; another takes it over when the lease has expired, with each step once.
func TestLedger(t *testing.T) {
	for name, start := range map[string]run{"library": library, "program": program} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := openExternal(t, 0, withJetStream(start))
			registryOn(t, x.controller[0])
			one, two := ledgerOn(t, x.operators[0]), ledgerOn(t, x.operators[1])
			s, err := one.Begin(t.Context(), "a-run", []byte("head"), []byte("plan"))
			if err != nil {
				t.Fatal(err)
			}
			long := make([]byte, 3<<20) // does not fit one message, and does not compress
			rand.Read(long)
			for i, body := range [][]byte{[]byte("zero"), long} {
				if got, err := s.Record(t.Context(), i, body); err != nil || !bytes.Equal(got, body) {
					t.Fatal(err)
				}
			}
			if _, err := two.Begin(t.Context(), "a-run", nil, nil); !errors.Is(err, bus.ErrOwned) {
				t.Errorf("a second owner: %v", err)
			}
			if lost, err := two.Lost(t.Context()); err != nil || len(lost) != 0 {
				t.Errorf("lost: %q, %v", lost, err)
			}
			s.Release() // as if it was killed
			lost := waitFor(t, func() ([]string, bool) { lost, _ := two.Lost(t.Context()); return lost, len(lost) > 0 })
			if lost[0] != "a-run" {
				t.Errorf("lost: %q", lost)
			}
			next, head, plan, steps, err := two.TakeOver(t.Context(), "a-run")
			if err != nil || string(head) != "head" || string(plan) != "plan" || len(steps) != 2 || string(steps[0]) != "zero" || !bytes.Equal(steps[1], long) {
				t.Fatalf("%q, %q, %d steps: %v", head, plan, len(steps), err)
			}
			if _, _, _, _, err := one.TakeOver(t.Context(), "a-run"); !errors.Is(err, bus.ErrOwned) {
				t.Errorf("a second one takes over: %v", err)
			}
			if got, err := next.Record(t.Context(), 0, []byte("again")); err != nil || string(got) != "zero" {
				t.Errorf("a step recorded again: %q, %v", got, err)
			}
			if err := next.End(t.Context()); err != nil {
				t.Error(err)
			}
			if lost, err := one.Lost(t.Context()); err != nil || len(lost) != 0 {
				t.Errorf("after its end: %q, %v", lost, err)
			}
		})
	}
}
