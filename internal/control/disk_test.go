package control

import (
	"context"
	"errors"
	"strings"
	"testing"

	"thru/internal/bus"
	"thru/internal/fault"
	"thru/internal/measure"
)

// diskAgent measures disks with results that the test sets.
type diskAgent struct {
	*fakeAgent
	refuses  error
	timeline []bus.Event
	test     measure.DiskTest
	lost     error // of fetching the result
}

// at sets the agent's end point name.
func (d *diskAgent) at(name string) *diskAgent {
	d.fakeAgent = newAgent(name)
	d.Handle(bus.On(bus.Disk.Begin, d.Disk), bus.On(bus.Disk.End, d.Disked))
	return d
}

func (d *diskAgent) Disk(_ context.Context, _ string, m bus.DiskStart) (bus.JobReply, error) {
	d.called("disk " + m.Path)
	for _, e := range d.timeline {
		d.Pushed <- e
	}
	return bus.JobReply{Session: "d1"}, d.refuses
}

func (d *diskAgent) Disked(_ context.Context, _ string, m bus.JobEnd) (bus.DiskResult, error) {
	d.called("disked " + m.Session)
	return bus.DiskResult{Test: d.test}, d.lost
}

// TestDisk: the turn is taken, progress is passed on, and the result is in the
// document, also on failure.
func TestDisk(t *testing.T) {
	tick := bus.Event{Session: "d1", Kind: bus.EventProgress, Disk: &measure.DiskTick{Doing: measure.RandomRead}}
	other := bus.Event{Session: "d0", Kind: bus.EventFailed, Error: "of another"}
	done := bus.Event{Session: "d1", Kind: bus.EventDone}
	failed := bus.Event{Session: "d1", Kind: bus.EventFailed, Error: "disk: full", Hint: "make room"}
	measured := measure.DiskTest{Path: "/srv", Runs: []measure.DiskRun{{Pattern: measure.RandomRead}}}
	half := measured
	half.Error = &measure.Error{Message: "disk: full", Hint: "make room", ExitCode: fault.Failed}
	tests := []struct {
		name  string
		agent diskAgent
		hello func(*bus.HelloReply)
		want  string // of the error
		hint  string
		ticks int
		disks int
		calls string
	}{
		{"measured", diskAgent{timeline: []bus.Event{other, tick, tick, done}, test: measured}, nil, "", "", 2, 1, "reserve disk /srv disked d1 release"},
		{"failed in the middle", diskAgent{timeline: []bus.Event{tick, failed}, test: half}, nil, "control: peer: disk: full", "make room", 1, 1, "reserve disk /srv disked d1 release"},
		{"failed at once", diskAgent{timeline: []bus.Event{failed}, test: measure.DiskTest{Error: half.Error}}, nil, "control: peer: disk: full", "make room", 0, 0, "reserve disk /srv disked d1 release"},
		{"refused", diskAgent{refuses: fault.Usagef("there", "agent: not here")}, nil, "control: peer: agent: not here", "there", 0, 0, "reserve disk /srv release"},
		{"its figures do not come", diskAgent{timeline: []bus.Event{done}, lost: errors.New("bus: no reply")}, nil, "fetching the figures", "", 0, 0, "reserve disk /srv disked d1 release"},
		{"not allowed", diskAgent{}, func(h *bus.HelloReply) { h.Privileges = []string{bus.PrivilegeMeasure} }, "does not allow this client to measure disks", "--allow files", 0, 0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := &EndPoint{Name: "peer", Client: tt.agent.at("peer"), Hello: bus.HelloReply{WireMajor: bus.WireMajor, WireMinor: bus.WireMinor, Privileges: []string{bus.PrivilegeMeasure, bus.PrivilegeFiles}}}
			if tt.hello != nil {
				tt.hello(&e.Hello)
			}
			ticks := 0
			r := &Runner{Version: "v", Watch: &quiet{}}
			doc, err := r.Disk(t.Context(), e, bus.DiskStart{Path: "/srv"}, func(measure.DiskTick) { ticks++ })
			if (err == nil) != (tt.want == "") || err != nil && (!strings.Contains(err.Error(), tt.want) || !strings.Contains(fault.Hint(err), tt.hint)) {
				t.Errorf("%v (%s)", err, fault.Hint(err))
			}
			if ticks != tt.ticks || len(doc.Disks) != tt.disks || doc.Command != "disk" || (doc.Error == nil) != (err == nil) {
				t.Errorf("%d ticks, %+v", ticks, doc)
			}
			for _, d := range doc.Disks {
				if d.Where != "peer" {
					t.Errorf("measured at %q", d.Where)
				}
			}
			if got := strings.Join(tt.agent.asked(), " "); got != tt.calls {
				t.Errorf("asked %q, want %q", got, tt.calls)
			}
		})
	}
}

// TestDiskInterrupted: the results until the interrupt are fetched.
func TestDiskInterrupted(t *testing.T) {
	a := &diskAgent{timeline: []bus.Event{{Session: "d1", Kind: bus.EventProgress, Disk: &measure.DiskTick{}}},
		test: measure.DiskTest{Runs: []measure.DiskRun{{}}, Error: &measure.Error{Message: "disk: context canceled", ExitCode: 1}}}
	e := &EndPoint{Name: "peer", Client: a.at("peer"), Hello: bus.HelloReply{WireMinor: bus.WireMinor, Privileges: []string{bus.PrivilegeFiles}}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	doc, err := (&Runner{Watch: &quiet{}}).Disk(ctx, e, bus.DiskStart{}, func(measure.DiskTick) { cancel() })
	if err == nil || !errors.Is(err, fault.ErrInterrupted) || len(doc.Disks) != 1 {
		t.Errorf("%v, %+v", err, doc.Disks)
	}
}

// TestDiskOfNoAgent: a foreign program has no disk to measure.
func TestDiskOfNoAgent(t *testing.T) {
	doc, err := (&Runner{Watch: &quiet{}}).Disk(t.Context(), &EndPoint{Name: "iperf3://b", Foreign: true}, bus.DiskStart{}, nil)
	if err == nil || fault.Code(err) != fault.Usage || doc.Error == nil {
		t.Error(err)
	}
}
