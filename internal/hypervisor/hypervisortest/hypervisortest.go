// Package hypervisortest is the contract of hypervisor.Source: every kind of
// source passes it, so that callers need not know the kind.
package hypervisortest

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"thru/internal/hypervisor"
	"thru/internal/measure"
)

// Suite describes a kind of source to test.
type Suite struct {
	// Open connects to a source that has at least one virtual machine and one
	// host; the suite closes it.
	Open func(t *testing.T) hypervisor.Source
	// Secrets must not appear in any output of the source.
	Secrets []string
	// Wait is how long End may wait for late counters; 0: 100 ms.
	Wait time.Duration
	// Counts: counters of the first guest must come within Wait. For the
	// others a reason suffices.
	Counts bool
	// Reopens: calls on a closed source work again, since it keeps no
	// session.
	Reopens bool
}

// Run runs the contract.
func (x Suite) Run(t *testing.T) {
	s := x.open(t)
	all := x.read(t, s, nil, nil)
	if len(all.Guests) == 0 || len(all.Hosts) == 0 {
		t.Fatalf("%d guests, %d hosts", len(all.Guests), len(all.Hosts))
	}
	for name, test := range map[string]func(*testing.T, hypervisor.Source, measure.Inventory){
		"secrets": x.secrets, "nothing": x.nothing, "choice": x.choice, "hosts": x.hosts, "identity": x.identity,
		"context": x.context, "together": x.together, "watch": x.watch, "ended": x.ended,
	} {
		t.Run(name, func(t *testing.T) { test(t, s, all) })
	}
	t.Run("closed", x.closed)
}

// open connects for the duration of a test.
func (x Suite) open(t *testing.T) hypervisor.Source {
	t.Helper()
	s := x.Open(t)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

// read reads an inventory and checks it.
func (x Suite) read(t *testing.T, s hypervisor.Source, want func(*measure.Guest) bool, hosts func(*measure.GuestHost) bool) measure.Inventory {
	t.Helper()
	v, err := s.Inventory(t.Context(), want, hosts)
	if err != nil {
		t.Fatalf("Inventory: %v", err)
	}
	Check(t, &v)
	if v.Source != s.Name() {
		t.Errorf("the inventory is of %q, the source is %q", v.Source, s.Name())
	}
	return v
}

func (x Suite) secrets(t *testing.T, s hypervisor.Source, all measure.Inventory) {
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range x.Secrets {
		if strings.Contains(s.Name(), secret) || strings.Contains(string(text), secret) {
			t.Errorf("the source or its inventory holds the secret %q", secret)
		}
	}
}

func (x Suite) nothing(t *testing.T, s hypervisor.Source, _ measure.Inventory) {
	v := x.read(t, s, func(*measure.Guest) bool { return false }, nil)
	if len(v.Guests)+len(v.Hosts) > 0 {
		t.Errorf("%d guests, %d hosts where none is wanted", len(v.Guests), len(v.Hosts))
	}
	if v.GuestsTotal == nil || *v.GuestsTotal == 0 || v.HostsTotal == nil || *v.HostsTotal == 0 {
		t.Errorf("totals %v, %v of a choice", v.GuestsTotal, v.HostsTotal)
	}
}

// choice verifies that a chosen guest is the same as among all, and brings
// its host, networks and datastores.
func (x Suite) choice(t *testing.T, s hypervisor.Source, all measure.Inventory) {
	g := all.Guests[0]
	v := x.read(t, s, func(o *measure.Guest) bool { return o.ID == g.ID }, nil)
	if len(v.Guests) != 1 {
		t.Fatalf("%d guests of one that is chosen", len(v.Guests))
	}
	got := v.Guests[0]
	if got.ID != g.ID || got.Name != g.Name || got.Host != g.Host || got.UUID != g.UUID || len(got.NICs) != len(g.NICs) || len(got.Disks) != len(g.Disks) {
		t.Errorf("chosen %+v, among all %+v", got, g)
	}
	if g.Host != "" && (len(v.Hosts) != 1 || v.Hosts[0].ID != g.Host) {
		t.Errorf("its host %q: %d hosts", g.Host, len(v.Hosts))
	}
	for i, n := range g.NICs {
		if got.NICs[i].PortGroup != n.PortGroup || got.NICs[i].Switch != n.Switch {
			t.Errorf("adapter %+v, among all %+v", got.NICs[i], n)
		}
	}
	for i, d := range g.Disks {
		if got.Disks[i].Datastore != d.Datastore {
			t.Errorf("disk %+v, among all %+v", got.Disks[i], d)
		}
	}
	if *v.GuestsTotal < len(all.Guests) || *v.HostsTotal < len(all.Hosts) {
		t.Errorf("totals %d, %d; all are %d, %d", *v.GuestsTotal, *v.HostsTotal, len(all.Guests), len(all.Hosts))
	}
}

// hosts verifies that a host may be chosen without a guest.
func (x Suite) hosts(t *testing.T, s hypervisor.Source, all measure.Inventory) {
	h := all.Hosts[0]
	none := func(*measure.Guest) bool { return false }
	for name, is := range map[string]func(*measure.GuestHost) bool{
		"id":   func(o *measure.GuestHost) bool { return o.ID == h.ID },
		"name": func(o *measure.GuestHost) bool { return o.Name == h.Name },
		"uuid": func(o *measure.GuestHost) bool { return o.ID == h.ID && o.UUID == h.UUID },
		"addresses": func(o *measure.GuestHost) bool {
			return o.ID == h.ID && slices.Equal(interfaces(o), interfaces(&h))
		},
	} {
		v := x.read(t, s, none, is)
		if v.Host(h.ID) == nil || len(v.Guests) > 0 {
			t.Errorf("by %s: %d hosts, %d guests", name, len(v.Hosts), len(v.Guests))
		}
	}
}

// interfaces returns the MACs and addresses that identify a host.
func interfaces(h *measure.GuestHost) []string {
	var all []string
	if h.Facts != nil {
		for _, i := range h.Facts.Interfaces {
			if i.MAC != nil && *i.MAC != "" {
				all = append(all, *i.MAC)
			}
			all = append(all, i.Addrs...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// identity verifies that want sees the identity of a guest.
func (x Suite) identity(t *testing.T, s hypervisor.Source, all measure.Inventory) {
	seen := 0
	x.read(t, s, func(g *measure.Guest) bool {
		seen++
		full := all.Guest(g.ID)
		if full == nil {
			return false // a new guest
		}
		if g.Name != full.Name || g.UUID != full.UUID || g.InstanceUUID != full.InstanceUUID || g.Power != full.Power || !slices.Equal(g.Addrs, full.Addrs) {
			t.Errorf("asked about %+v, which is %+v", g, full)
		}
		for i, n := range full.NICs {
			if i >= len(g.NICs) || !reflect.DeepEqual(g.NICs[i].MAC, n.MAC) {
				t.Errorf("asked about adapters %+v, which are %+v", g.NICs, full.NICs)
			}
		}
		return false
	}, nil)
	if seen < len(all.Guests) {
		t.Errorf("asked about %d of %d guests", seen, len(all.Guests))
	}
}

// context verifies that a context that has ended ends every call.
func (x Suite) context(t *testing.T, s hypervisor.Source, all measure.Inventory) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Inventory(over, nil, nil); err == nil {
		t.Error("Inventory works after its context")
	}
	id := all.Guests[0].ID
	if w, err := s.Watch(over, []string{id}); err == nil {
		w.End(over)
	}
	w, err := s.Watch(t.Context(), []string{id})
	if err != nil {
		t.Fatalf("Watch: %v", err)
	}
	w.End(over) // must return
}

// together verifies that many goroutines may use a source.
func (x Suite) together(t *testing.T, s hypervisor.Source, _ measure.Inventory) {
	var wg sync.WaitGroup
	for n := range 3 {
		wg.Go(func() {
			v, err := s.Inventory(t.Context(), nil, nil)
			if err != nil || len(v.Guests) == 0 {
				t.Errorf("Inventory: %d guests, %v", len(v.Guests), err)
				return
			}
			if n%2 == 0 {
				x.counts(t, s, []string{v.Guests[0].ID})
			}
		})
	}
	wg.Wait()
}

// counts watches ids for a moment.
func (x Suite) counts(t *testing.T, s hypervisor.Source, ids []string) ([]measure.Series, []measure.NotChecked) {
	w, err := s.Watch(t.Context(), ids)
	if err != nil {
		t.Errorf("Watch: %v", err)
		return nil, nil
	}
	return x.end(t, w, ids)
}

// end ends a watch and checks its series.
func (x Suite) end(t *testing.T, w hypervisor.Watch, ids []string) ([]measure.Series, []measure.NotChecked) {
	wait := cmp.Or(x.Wait, 100*time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	series, missing := w.End(ctx)
	for _, c := range series {
		if !slices.Contains(ids, c.Of) || c.Counter == "" || c.Native == "" || c.EveryNs <= 0 {
			t.Errorf("series %+v of %v", c, ids)
		}
		for i, r := range c.Samples {
			if math.IsNaN(r.Value) || math.IsInf(r.Value, 0) || r.EndedAt.IsZero() || i > 0 && !r.EndedAt.After(c.Samples[i-1].EndedAt) {
				t.Errorf("sample %+v of %s", r, c.Counter)
			}
		}
	}
	said(t, "counters", missing)
	if len(series)+len(missing) == 0 {
		t.Errorf("neither a counter of %v nor a reason", ids)
	}
	return series, missing
}

// watch verifies that guests and hosts are watched, by two watches at a time,
// and that an unknown id is reported.
func (x Suite) watch(t *testing.T, s hypervisor.Source, all measure.Inventory) {
	ids := []string{all.Guests[0].ID, all.Hosts[0].ID}
	other, err := s.Watch(t.Context(), ids)
	if err != nil {
		t.Fatalf("Watch: %v", err)
	}
	series, _ := x.counts(t, s, ids)
	if x.Counts && !slices.ContainsFunc(series, func(c measure.Series) bool { return c.Of == ids[0] && len(c.Samples) > 0 }) {
		t.Errorf("no counter of %s in %+v", ids[0], series)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	other.End(over)
	const nobody = "no-such-id"
	_, missing := x.counts(t, s, []string{nobody, ids[0]})
	if !slices.ContainsFunc(missing, func(n measure.NotChecked) bool { return strings.Contains(n.Fact+" "+n.Why, nobody) }) {
		t.Errorf("nothing is said of an id that is not known: %+v", missing)
	}
}

// ended verifies that a watch ends with its context: a later End returns what
// there is, and a watch without End leaves no goroutine, which the source's
// package checks (goleak).
func (x Suite) ended(t *testing.T, s hypervisor.Source, all measure.Inventory) {
	ids := []string{all.Guests[0].ID, all.Hosts[0].ID}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, leave := range []bool{true, false} {
		w, err := s.Watch(ctx, ids)
		if err != nil {
			t.Fatalf("Watch: %v", err)
		}
		if leave {
			continue
		}
		cancel()
		x.end(t, w, ids)
	}
}

// closed verifies that a source may be closed twice.
func (x Suite) closed(t *testing.T) {
	s := x.open(t)
	for range 2 {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	if _, err := s.Inventory(t.Context(), nil, nil); err == nil && !x.Reopens {
		t.Error("Inventory works after Close")
	}
}
