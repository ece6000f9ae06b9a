package agent

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"thru/internal/bus"
	"thru/internal/engine"
	"thru/internal/fault"
	"thru/internal/host"
	"thru/internal/hypervisor"
	"thru/internal/measure"
)

// fakeBelow is a hypervisor with one guest, which counts its watches.
type fakeBelow struct {
	mu     sync.Mutex
	under  int // running watches
	ended  int // watches ended with their counters
	refuse error
}

func (f *fakeBelow) Name() string { return "x" }
func (f *fakeBelow) Close() error { return nil }

func (f *fakeBelow) Inventory(context.Context, func(*measure.Guest) bool, func(*measure.GuestHost) bool) (measure.Inventory, error) {
	return measure.Inventory{Kind: measure.KindKVM, Guests: []measure.Guest{{ID: "vm:web1"}}}, f.refuse
}

func (f *fakeBelow) Watch(context.Context, []string) (hypervisor.Watch, error) {
	if f.refuse != nil {
		return nil, f.refuse
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.under++
	return fakeWatch{f}, nil
}

func (f *fakeBelow) counts() (under, ended int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.under, f.ended
}

type fakeWatch struct{ of *fakeBelow }

func (w fakeWatch) End(ctx context.Context) ([]measure.Series, []measure.NotChecked) {
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	w.of.under--
	if ctx.Err() == nil {
		w.of.ended++
	}
	return []measure.Series{{Of: "vm:web1", Counter: measure.CounterReady}}, nil
}

// newBelow returns an agent with such a hypervisor.
func newBelow(t *testing.T) (*Agent, *fakeBelow) {
	t.Helper()
	f := &fakeBelow{}
	a := New(Config{Name: "x", Version: "v", Engines: engine.Table{}, Host: host.New(), Limits: DefaultLimits(), Hypervisor: f})
	t.Cleanup(a.Close)
	return a, f
}

// TestGuestsPrivilege: listing virtual machines needs its own privilege.
func TestGuestsPrivilege(t *testing.T) {
	for privilege, may := range map[string]bool{bus.PrivilegeMeasure: false, bus.PrivilegeTune: false, bus.PrivilegeInventory: true} {
		a, f := newBelow(t)
		c := stranger(t, a, privilege)
		v, err := bus.Call(t.Context(), c, bus.Guests, bus.Empty{})
		if (err == nil) != may || may && len(v.Inventory.Guests) != 1 || !may && (fault.ReasonOf(err) != bus.ReasonDenied || len(v.Inventory.Guests) > 0) {
			t.Errorf("%s lists: %+v, %v", privilege, v, err)
		}
		w, err := bus.Call(t.Context(), c, bus.Watch.Begin, bus.WatchStart{IDs: []string{"vm:web1"}})
		if (err == nil) != may {
			t.Errorf("%s watches: %v", privilege, err)
		}
		if under, _ := f.counts(); (under == 1) != may {
			t.Errorf("%s: %d watches", privilege, under)
		}
		if r, err := bus.Call(t.Context(), c, bus.Watch.End, bus.JobEnd(w)); (err == nil) != may || may && len(r.Series) != 1 {
			t.Errorf("%s: %+v, %v", privilege, r, err)
		}
	}
}

// TestWatches: watches need no turn, outlive a release, return their result once, to
// their owner, and have a limit.
func TestWatches(t *testing.T) {
	a, f := newBelow(t)
	c, err := bus.InProcess(a)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var sessions []string
	for range watchesOfEach {
		w, err := bus.Call(t.Context(), c, bus.Watch.Begin, bus.WatchStart{IDs: []string{"vm:web1"}})
		if err != nil || slices.Contains(sessions, w.Session) {
			t.Fatal(w, err)
		}
		sessions = append(sessions, w.Session)
	}
	if _, err := bus.Call(t.Context(), c, bus.Watch.Begin, bus.WatchStart{}); err == nil || !strings.Contains(err.Error(), "limit") {
		t.Errorf("one more: %v", err)
	}
	if _, err := bus.Call(t.Context(), c, bus.Release, bus.ReleaseRequest{}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.EndWatch(t.Context(), "another", bus.JobEnd{Session: sessions[0]}); err == nil {
		t.Error("another client fetches it")
	}
	if r, err := bus.Call(t.Context(), c, bus.Watch.End, bus.JobEnd{Session: sessions[0]}); err != nil || len(r.Series) != 1 {
		t.Error(r, err)
	}
	if _, err := bus.Call(t.Context(), c, bus.Watch.End, bus.JobEnd{Session: sessions[0]}); err == nil {
		t.Error("it is reported twice")
	}
	if _, err := bus.Call(t.Context(), c, bus.Watch.Begin, bus.WatchStart{IDs: make([]string, bus.MostWatched+1)}); err == nil {
		t.Error("more than can be are watched")
	}
	c.Close() // the client is gone
	if under, ended := f.counts(); under != 0 || ended != 1 {
		t.Errorf("%d watches are left, %d were waited for", under, ended)
	}
}

// TestWatchesOfAll: watches have a total limit, and end with the agent.
func TestWatchesOfAll(t *testing.T) {
	a, f := newBelow(t)
	own := func(client string) error {
		f.under++
		_, err := a.keepWatch(t.Context(), client, fakeWatch{f})
		return err
	}
	for i := range mostWatches {
		if err := own(string(rune('a' + i))); err != nil {
			t.Fatal(err)
		}
	}
	if own("one more") == nil {
		t.Error("there is no bound")
	}
	a.Close()
	if under, _ := f.counts(); under != 0 {
		t.Errorf("%d are left", under)
	}
	if own("late") == nil {
		t.Error("an agent that has ended watches")
	}
}

// TestGuestsFail: the error of the host reaches the client.
func TestGuestsFail(t *testing.T) {
	a, f := newBelow(t)
	f.refuse = errors.New("kvm: no Linux")
	c, err := bus.InProcess(a)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := bus.Call(t.Context(), c, bus.Guests, bus.Empty{}); err == nil || err.Error() != "kvm: no Linux" {
		t.Errorf("listing: %v", err)
	}
	if _, err := bus.Call(t.Context(), c, bus.Watch.Begin, bus.WatchStart{}); err == nil || len(a.jobs) != 0 {
		t.Errorf("watching: %v, %d", err, len(a.jobs))
	}
	none, _, _ := newFake(t, DefaultLimits())
	d, err := bus.InProcess(none)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, err := bus.Call(t.Context(), d, bus.Guests, bus.Empty{}); err == nil || !strings.Contains(err.Error(), "cannot list virtual machines") {
		t.Errorf("an agent without: %v", err)
	}
}
