package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"thru/internal/bus"
	"thru/internal/fault"
	"thru/internal/hypervisor"
	"thru/internal/measure"
	"thru/internal/plan"
)

// fakeSource has the two end points of pairOf as guests of two hosts. The test chooses
// its faults.
type fakeSource struct {
	name    string
	fails   error         // of Inventory
	blind   error         // of Watch
	hangs   chan struct{} // Inventory waits for it, whatever its context
	deaf    chan struct{} // End waits for it, whatever its context
	late    bool          // End waits for the end of its context
	every   time.Duration
	nothing bool // no guest is chosen

	mu      sync.Mutex
	calls   []string
	watched []string
}

func (f *fakeSource) called(what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, what)
}

func (f *fakeSource) asked() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

func (f *fakeSource) Name() string { return f.name }
func (f *fakeSource) Close() error { return nil }

func (f *fakeSource) Inventory(_ context.Context, want func(*measure.Guest) bool, hosts func(*measure.GuestHost) bool) (measure.Inventory, error) {
	f.called("inventory")
	if f.hangs != nil {
		<-f.hangs
	}
	v := measure.Inventory{Source: f.name, Kind: measure.KindVSphere, Hosts: []measure.GuestHost{{ID: "host-1", Name: "esx1", Site: "east"}, {ID: "host-2", Name: "esx2", Site: "east"}, {ID: "host-3", Name: "esx3"}}}
	for i, g := range []measure.Guest{
		{ID: "vm-1", Name: "here", Host: "host-1", Site: "east", Power: "on", NICs: []measure.GuestNIC{{Name: "n", MAC: new("00:50:56:00:00:01"), PortGroup: "pg-1"}}},
		{ID: "vm-2", Name: "there", Host: "host-2", Site: "east", Power: "on", Addrs: []string{"10.0.0.2"}, NICs: []measure.GuestNIC{{Name: "n", MAC: new("00:50:56:00:00:02"), PortGroup: "pg-1"}}},
		{ID: "vm-3", Name: "stranger", Host: "host-3", Power: "on", Addrs: []string{"10.0.0.3"}},
	} {
		if chosen := want(&g); chosen != (i < 2) {
			return v, fmt.Errorf("chosen %v: %s", chosen, g.Name)
		}
		if i < 2 && !f.nothing {
			v.Guests = append(v.Guests, g)
		}
	}
	v.PortGroups = []measure.SwitchPortGroup{{ID: "pg-1", Name: "prod", VLAN: new("100")}}
	return v, f.fails
}

func (f *fakeSource) Watch(ctx context.Context, ids []string) (hypervisor.Watch, error) {
	f.called("watch")
	f.mu.Lock()
	f.watched = ids
	f.mu.Unlock()
	return &fakeWatch{f, ctx}, f.blind
}

type fakeWatch struct {
	*fakeSource
	ctx context.Context
}

func (w *fakeWatch) End(ctx context.Context) ([]measure.Series, []measure.NotChecked) {
	w.called("end")
	if w.ctx.Err() == nil && ctx.Err() == nil {
		w.called("in time")
	}
	if ctx.Err() != nil { // as a source over a network does
		return nil, []measure.NotChecked{{Fact: "series", Why: ctx.Err().Error()}}
	}
	if w.late {
		<-ctx.Done()
		return nil, []measure.NotChecked{{Fact: "counters of " + w.name, Why: "its last samples did not come"}}
	}
	if w.deaf != nil {
		<-w.deaf
	}
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	return []measure.Series{{Of: "vm-1", Counter: measure.CounterReady, EveryNs: int64(w.every), Samples: []measure.Reading{{EndedAt: at, Value: 7}}}}, nil
}

// sourced returns a pair of agents that a source may know.
func sourced() (local, peer *fakeAgent) {
	local, peer = newAgent("L"), newAgent("P")
	nic := func(mac string) measure.Facts {
		return measure.Facts{Interfaces: []measure.Interface{{Name: "eth0", MAC: new(mac), Addrs: []string{"10.0.0.9/24"}}}}
	}
	local.facts, peer.facts = nic("00:50:56:00:00:01"), nic("00:50:56:00:00:02")
	return local, peer
}

// short is limits for sources that do not answer.
var short = hypervisorLimits{inventory: 50 * time.Millisecond, watch: 50 * time.Millisecond, last: 50 * time.Millisecond, grace: 50 * time.Millisecond}

func runAbove(t *testing.T, limits hypervisorLimits, h *quiet, sources ...hypervisor.Source) *measure.Document {
	t.Helper()
	p, err := plan.Test(request())
	if err != nil {
		t.Fatal(err)
	}
	local, peer := sourced()
	doc, err := (&Runner{Ends: pairOf(local, peer), Watch: h, Hypervisors: sources, hypervisorLimits: limits}).Run(t.Context(), p)
	if err != nil || doc.Error != nil || len(doc.Cells) != 2 || doc.Cells[0].Goodput == nil || doc.Cells[1].Goodput == nil {
		t.Fatalf("the measurement itself: %v, %+v", err, doc.Error)
	}
	return doc
}

func TestHypervisors(t *testing.T) {
	f := &fakeSource{name: "vsphere://vc", every: 100 * time.Millisecond}
	doc := runAbove(t, hypervisorLimits{}, &quiet{}, f)
	if want := []string{"inventory", "watch", "end", "in time"}; !slices.Equal(f.asked(), want) {
		t.Errorf("asked %v, want %v", f.asked(), want)
	}
	if want := []string{"host-1", "host-2", "vm-1", "vm-2"}; !slices.Equal(f.watched, want) {
		t.Errorf("watched %v, want %v", f.watched, want)
	}
	for i, want := range []string{"here on esx1", "there on esx2"} {
		p := doc.EndPoints[i].Placement
		if p == nil || p.GuestName+" on "+p.HostName != want || p.VLAN != "100" || doc.EndPoints[i].NoPlace != "" {
			t.Errorf("%s: %+v, %s", doc.EndPoints[i].Name, p, doc.EndPoints[i].NoPlace)
		}
	}
	if want := []measure.Relation{{From: Local, To: "peer", Kind: measure.SameVLAN, Why: "esx1 and esx2, port group prod (VLAN 100)"}}; !slices.Equal(doc.Relations, want) {
		t.Errorf("%+v", doc.Relations)
	}
	if len(doc.Inventories) != 1 || len(doc.Inventories[0].Guests) != 2 || len(doc.Inventories[0].Hosts) != 2 || len(doc.Inventories[0].Series) != 1 {
		t.Fatalf("%+v", doc.Inventories)
	}
	if len(doc.Warnings) != 0 || len(doc.Inventories[0].NotChecked) != 0 {
		t.Errorf("%q, %+v", doc.Warnings, doc.Inventories[0].NotChecked)
	}
}

// A failed hypervisor causes a warning and a reason, and never fails the measurement.
func TestHypervisorsFail(t *testing.T) {
	quit := make(chan struct{})
	t.Cleanup(func() { close(quit) })
	for name, c := range map[string]struct {
		source *fakeSource
		limits hypervisorLimits
		warns  string // "" none
		reason string // in not_checked of the document or of the inventory
		placed bool
	}{
		"too short a test":      {&fakeSource{every: 20 * time.Second}, hypervisorLimits{}, "", "a sample covers 20 s: fewer than two are within the test", true},
		"the inventory fails":   {&fakeSource{fails: fault.Failf("give it one that may read", "vsphere: the account may not")}, hypervisorLimits{}, "does not report where the end points run: vsphere: the account may not (give it one that may read)", "the account may not", false},
		"the inventory hangs":   {&fakeSource{hangs: quit}, short, "does not report where the end points run: it took longer than 50.0 ms", "took longer", false},
		"counters cannot begin": {&fakeSource{blind: errors.New("no such counter")}, hypervisorLimits{}, "does not report the counters of its hosts: no such counter", "no such counter", true},
		"counters come late":    {&fakeSource{late: true}, short, "", "its last samples did not come", true},
		"counters never come":   {&fakeSource{deaf: quit}, short, "", "it took longer than 50.0 ms", true},
		"it has none of them":   {&fakeSource{nothing: true}, hypervisorLimits{}, "", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			c.source.name = "vsphere://vc"
			h := &quiet{}
			doc := runAbove(t, c.limits, h, c.source)
			if warned := strings.Join(doc.Warnings, "\n"); (warned != "") != (c.warns != "") || !strings.Contains(warned, c.warns) {
				t.Errorf("warned %q, want %q", warned, c.warns)
			}
			missing := slices.Clone(doc.Missing)
			for _, v := range doc.Inventories {
				missing = append(missing, v.NotChecked...)
			}
			if !slices.ContainsFunc(missing, func(m measure.NotChecked) bool { return strings.Contains(m.Why, c.reason) }) && c.reason != "" {
				t.Errorf("%+v, want %q", missing, c.reason)
			}
			for _, e := range doc.EndPoints {
				if (e.Placement != nil) != c.placed || (e.NoPlace == "") != c.placed {
					t.Errorf("%s: %+v, %q", e.Name, e.Placement, e.NoPlace)
				}
			}
			if (len(doc.Inventories) > 0) != c.placed {
				t.Errorf("%+v", doc.Inventories)
			}
		})
	}
}

// Waiting is reported, and a failed source does not delay another.
func TestHypervisorsTwo(t *testing.T) {
	h := &quiet{}
	good, bad := &fakeSource{name: "vsphere://good", every: time.Millisecond}, &fakeSource{name: "vsphere://bad", fails: errors.New("lost")}
	doc := runAbove(t, hypervisorLimits{}, h, bad, good)
	if len(doc.Inventories) != 1 || doc.Inventories[0].Source != "vsphere://good" || len(doc.Warnings) != 1 {
		t.Errorf("%d inventories, %q", len(doc.Inventories), doc.Warnings)
	}
	if !slices.ContainsFunc(h.checks, func(s string) bool {
		return strings.HasPrefix(s, "waiting for the last samples of vsphere://good, at most")
	}) {
		t.Errorf("printed %q", h.checks)
	}
}

// TestHypervisorsTwins: a machine in two sources is kept and watched in both, each with its
// own ids.
func TestHypervisorsTwins(t *testing.T) {
	uuid := "11223344-0000-0000-0000-000000000001"
	vc := measure.Inventory{Source: "vsphere://vc", Guests: []measure.Guest{{ID: "vm-1", UUID: uuid, Host: "host-1"}}, Hosts: []measure.GuestHost{{ID: "host-1"}}}
	esx := measure.Inventory{Source: "ssh://root@esx1", Guests: []measure.Guest{{ID: "1", UUID: uuid, Host: "esx1"}, {ID: "2"}}, Hosts: []measure.GuestHost{{ID: "esx1"}}}
	doc := &measure.Document{
		EndPoints:   []measure.EndPoint{{Name: "a", Placement: &measure.Placement{Source: vc.Source, Guest: "vm-1", Host: "host-1"}}, {Name: "b"}},
		Inventories: []measure.Inventory{vc, esx, {Source: "other"}},
	}
	for source, want := range map[string][]string{vc.Source: {"host-1", "vm-1"}, esx.Source: {"1", "esx1"}, "other": nil} {
		if got := idsOf(doc, source); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", source, got, want)
		}
	}
}

// An interrupt ends the watch at once, and its counters so far are kept.
func TestHypervisorsInterrupted(t *testing.T) {
	p, err := plan.Test(request())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	local, peer := sourced()
	local.silent, peer.silent = true, true
	f := &fakeSource{name: "vsphere://vc", every: time.Second}
	h := &quiet{step: func(int) { cancel() }}
	doc, err := (&Runner{Ends: pairOf(local, peer), Watch: h, Hypervisors: []hypervisor.Source{f}}).Run(ctx, p)
	if err == nil || !errors.Is(err, fault.ErrInterrupted) {
		t.Fatal(err)
	}
	if want := []string{"inventory", "watch", "end", "in time"}; !slices.Equal(f.asked(), want) {
		t.Errorf("asked %v, want %v", f.asked(), want)
	}
	if len(doc.Inventories) != 1 || len(doc.Inventories[0].Series) != 1 {
		t.Errorf("%+v", doc.Inventories)
	}
}

// A failed gate ends the command: nothing is watched, and nothing is left running.
func TestHypervisorsUnfit(t *testing.T) {
	p, err := plan.Test(request())
	if err != nil {
		t.Fatal(err)
	}
	local, peer := sourced()
	peer.path = bus.ProbeReply{}
	quit := make(chan struct{})
	f := &fakeSource{name: "vsphere://vc", hangs: quit}
	ends := pairOf(local, peer)
	request := p
	request.Steps = slices.Clone(p.Steps)
	request.Steps[0].Specs = slices.Clone(p.Steps[0].Specs)
	request.Steps[0].Specs[0].Capture = 5 // the peer does not allow this client to capture
	_, err = (&Runner{Ends: ends, Watch: &quiet{}, Hypervisors: []hypervisor.Source{f}}).Run(t.Context(), request)
	close(quit)
	if err == nil || len(f.asked()) != 0 {
		t.Errorf("%v, asked %v", err, f.asked())
	}
}

// A check places its ends, and watches nothing; an explanation does both.
func TestHypervisorsCheckAndExplain(t *testing.T) {
	f := &fakeSource{name: "vsphere://vc", every: time.Second}
	local, peer := sourced()
	doc, err := (&Runner{Ends: pairOf(local, peer), Watch: &quiet{}, Gating: &Gating{}, Hypervisors: []hypervisor.Source{f}}).Check(t.Context(), Probing{}, 1)
	if err != nil || doc.EndPoints[1].Placement == nil || len(doc.Relations) != 1 || !slices.Equal(f.asked(), []string{"inventory"}) {
		t.Errorf("%v, %+v, asked %v", err, doc.Relations, f.asked())
	}
	r, p, local, peer := explainer(t, &quiet{})
	a, b := sourced()
	local.facts.Interfaces, peer.facts.Interfaces = a.facts.Interfaces, b.facts.Interfaces
	f = &fakeSource{name: "vsphere://vc", every: time.Second}
	r.Hypervisors = []hypervisor.Source{f}
	doc, err = r.Explain(t.Context(), p, Probing{}, time.Hour)
	if err != nil || doc.EndPoints[1].Placement == nil || len(doc.Relations) != 1 || len(doc.Inventories[0].Series) != 1 {
		t.Errorf("%v, %+v, %+v", err, doc.Relations, doc.Inventories)
	}
}

func TestTakeOver(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	series := func(of string, seconds ...int) measure.Series {
		s := measure.Series{Of: of, Counter: measure.CounterReady, EveryNs: 20e9}
		for _, n := range seconds {
			s.Samples = append(s.Samples, measure.Reading{EndedAt: at.Add(time.Duration(n) * time.Second), Value: float64(n)})
		}
		return s
	}
	before := &measure.Document{
		EndPoints:   []measure.EndPoint{{Name: "a", Placement: &measure.Placement{Guest: "vm-1"}}, {Name: "b", Placement: &measure.Placement{Guest: "vm-2", Host: "host-8"}}},
		Relations:   []measure.Relation{{From: "a", To: "b", Kind: measure.SameHost}, {From: "a", To: "c", Kind: measure.SameVLAN}},
		Inventories: []measure.Inventory{{Source: "vc", Guests: []measure.Guest{{ID: "vm-1"}, {ID: "vm-2"}}, Series: []measure.Series{series("vm-1", 0, 20), series("vm-2", 20)}}, {Source: "gone"}},
	}
	doc := &measure.Document{
		EndPoints:   []measure.EndPoint{{Name: "a", NoPlace: "it could not be asked"}, {Name: "b", Placement: &measure.Placement{Guest: "vm-2", Host: "host-9"}}},
		Relations:   []measure.Relation{{From: "b", To: "a", Kind: measure.SameVLAN}},
		Inventories: []measure.Inventory{{Source: "vc", Guests: []measure.Guest{{ID: "vm-2", Host: "host-9"}}, Series: []measure.Series{series("vm-1", 20, 40)}}},
	}
	(&Runner{Before: before}).placeEnds(t.Context(), doc, false)
	v := doc.Inventories[0]
	if len(doc.Inventories) != 2 || len(v.Guests) != 2 || v.Guest("vm-2").Host != "host-9" || len(v.Series) != 2 {
		t.Fatalf("%+v", doc.Inventories)
	}
	if s := v.Series[0]; len(s.Samples) != 3 || s.Samples[2].Value != 40 {
		t.Errorf("%+v", s)
	}
	late := series("vm-1", 20, 40)
	for i := range late.Samples { // by another reading of its clock
		late.Samples[i].EndedAt = late.Samples[i].EndedAt.Add(300 * time.Millisecond)
	}
	if s := mergeSeries([]measure.Series{series("vm-1", 0, 20)}, []measure.Series{late}); len(s) != 1 || len(s[0].Samples) != 3 {
		t.Errorf("%+v", s)
	}
	if doc.EndPoints[0].Placement == nil || doc.EndPoints[0].NoPlace != "" || doc.EndPoints[1].Placement.Host != "host-9" {
		t.Errorf("%+v", doc.EndPoints)
	}
	if len(doc.Relations) != 2 || doc.Relations[0].Kind != measure.SameVLAN || doc.Relations[1].To != "c" {
		t.Errorf("%+v", doc.Relations)
	}
	if len(before.Inventories[0].Series[0].Samples) != 2 {
		t.Error("what was before is changed")
	}
}
