package control

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"thru/internal/agent"
	"thru/internal/bus"
	"thru/internal/fault"
	"thru/internal/host"
	"thru/internal/hypervisor"
	"thru/internal/hypervisor/hypervisortest"
	"thru/internal/measure"
)

// manyGuests is a host in memory, read by a real agent.
type manyGuests struct{ guests int }

func (m manyGuests) Name() string { return "x" }
func (m manyGuests) Close() error { return nil }

func (m manyGuests) Inventory(context.Context, func(*measure.Guest) bool, func(*measure.GuestHost) bool) (measure.Inventory, error) {
	all := []measure.NotChecked{{Fact: "guests", Why: "nothing more is told"}, {Fact: "hosts", Why: "nor of the host"}}
	v := measure.Inventory{Source: "x", Kind: measure.KindKVM, ReadAt: time.Now(), NotChecked: all}
	for i := range m.guests {
		id := "vm:" + strings.Repeat("g", i+1)
		v.Guests = append(v.Guests, measure.Guest{ID: id, Name: id, Host: "host", Power: "on", NotChecked: notKnown("uuid", "cpus", "memory_bytes", "addresses", "hostname", "os_running", "hardware_version")})
	}
	v.Hosts = []measure.GuestHost{{ID: "host", Name: "x", Facts: &measure.Facts{NotChecked: notKnown("uuid", "kernel", "cores", "memory_bytes", "cpu_model", "interfaces", "machine", "cpu", "numa_nodes")}}}
	return v, nil
}

func notKnown(facts ...string) (all []measure.NotChecked) {
	for _, f := range facts {
		all = append(all, measure.NotChecked{Fact: f, Why: "not of this test"})
	}
	return all
}

func (m manyGuests) Watch(_ context.Context, ids []string) (hypervisor.Watch, error) {
	return oneSample{ids}, nil
}

type oneSample struct{ ids []string }

func (o oneSample) End(context.Context) (all []measure.Series, missing []measure.NotChecked) {
	for _, id := range o.ids {
		if strings.HasPrefix(id, "no-") {
			missing = append(missing, measure.NotChecked{Fact: "series." + id, Why: "not here"})
			continue
		}
		all = append(all, measure.Series{Of: id, Counter: measure.CounterReady, Native: "n", EveryNs: 1e9, Samples: []measure.Reading{{EndedAt: time.Now(), Value: 1}}})
	}
	return all, missing
}

// TestAgentSourceContract: an agent as a source keeps the contract, also where its
// reply takes many messages.
func TestAgentSourceContract(t *testing.T) {
	hypervisortest.Suite{Reopens: true, Open: func(t *testing.T) hypervisor.Source {
		a := agent.New(agent.Config{Name: "kvm1", Version: "test", Host: host.New(), Limits: agent.DefaultLimits(), Hypervisor: manyGuests{1200}})
		c, err := bus.InProcess(a)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close(); a.Close() })
		hello, err := c.Hello(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return AgentSource(&EndPoint{Name: "kvm1", Client: c, Hello: hello})
	}}.Run(t)
}

// farKVM is an agent whose clock is ahead.
type farKVM struct {
	*fakeAgent
	ahead time.Duration
	mute  bool // does not answer Clock
	lost  error
}

func (f *farKVM) Clock(context.Context, string, bus.Empty) (bus.ClockReply, error) {
	if f.mute {
		return bus.ClockReply{}, errors.New("bus: clock: no reply")
	}
	return bus.ClockReply{WallNs: time.Now().Add(f.ahead).UnixNano()}, nil
}

func (f *farKVM) Guests(context.Context, string, bus.Empty) (bus.GuestsReply, error) {
	return bus.GuestsReply{Inventory: measure.Inventory{Source: "its own", Kind: measure.KindKVM, ReadAt: time.Unix(1, 0)}}, nil
}

func (f *farKVM) Watch(context.Context, string, bus.WatchStart) (bus.JobReply, error) {
	return bus.JobReply{Session: "w1"}, nil
}

func (f *farKVM) Watched(_ context.Context, _ string, m bus.JobEnd) (bus.WatchResult, error) {
	return bus.WatchResult{Series: []measure.Series{{Of: m.Session, Samples: []measure.Reading{{EndedAt: time.Unix(1_000_000, 0), Value: 3}}}}}, f.lost
}

// TestAgentSourceClock: sample times are converted to this machine's clock.
func TestAgentSourceClock(t *testing.T) {
	end := func(f *farKVM) hypervisor.Source {
		f.Handle(bus.On(bus.Clock, f.Clock), bus.On(bus.Guests, f.Guests), bus.On(bus.Watch.Begin, f.Watch), bus.On(bus.Watch.End, f.Watched))
		return AgentSource(&EndPoint{Name: "ssh://root@kvm1", Client: f, Hello: bus.HelloReply{WireMinor: bus.WireMinor, Privileges: []string{bus.PrivilegeInventory}}})
	}
	near := func(got, want time.Duration) bool { return (got - want).Abs() < time.Minute } // the offset is an hour, so a slow machine does not matter
	far := &farKVM{fakeAgent: newAgent("kvm1"), ahead: time.Hour}
	v, err := end(far).Inventory(t.Context(), nil, nil)
	if err != nil || v.Source != "ssh://root@kvm1" || v.ClockNs == nil || !near(time.Duration(*v.ClockNs), time.Hour) || !near(time.Since(v.ReadAt), 0) {
		t.Errorf("%+v, %v", v, err)
	}
	w, err := end(far).Watch(t.Context(), []string{"vm:web1"})
	if err != nil {
		t.Fatal(err)
	}
	series, missing := w.End(t.Context())
	if len(series) != 1 || len(missing) != 0 || !near(time.Unix(1_000_000, 0).Sub(series[0].Samples[0].EndedAt), time.Hour) {
		t.Errorf("%+v, %v", series, missing)
	}
	far.mute = true
	if series, missing = w.End(t.Context()); len(series) != 1 || len(missing) != 1 || !strings.Contains(missing[0].Why, "not corrected") {
		t.Errorf("without its clock: %+v, %v", series, missing)
	}
	if v, err := end(far).Inventory(t.Context(), nil, nil); err != nil || v.ClockNs != nil || len(v.NotChecked) != 1 {
		t.Errorf("without its clock: %+v, %v", v, err)
	}
	far.lost = errors.New("bus: it is gone")
	if series, missing = w.End(t.Context()); len(series) != 0 || len(missing) != 1 || !strings.Contains(missing[0].Why, "ssh://root@kvm1") {
		t.Errorf("lost: %+v, %v", series, missing)
	}
}

// TestAgentSourceMay: a client without the right gets a hint.
func TestAgentSourceMay(t *testing.T) {
	able := bus.HelloReply{WireMinor: bus.WireMinor, Privileges: []string{bus.PrivilegeInventory}}
	weak := able
	weak.Privileges = []string{bus.PrivilegeMeasure}
	for _, tt := range []struct {
		name, hint string
		end        *EndPoint
	}{
		{"foreign", "ssh://HOST", &EndPoint{Name: "iperf", Foreign: true}},
		{"weak", "--allow inventory", &EndPoint{Name: "weak", Client: newAgent("weak"), Hello: weak}},
	} {
		s := AgentSource(tt.end)
		_, err := s.Inventory(t.Context(), nil, nil)
		_, werr := s.Watch(t.Context(), nil)
		if err == nil || werr == nil || err.Error() != werr.Error() || !strings.Contains(fault.Hint(err), tt.hint) || !strings.Contains(err.Error(), tt.end.Name) {
			t.Errorf("%s: %v (%s), %v", tt.name, err, fault.Hint(err), werr)
		}
	}
	if _, err := AgentSource(&EndPoint{Name: "down", Down: errors.New("down")}).Inventory(t.Context(), nil, nil); err == nil {
		t.Error("an end point that is not connected lists")
	}
}
