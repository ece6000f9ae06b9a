package host

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"thru/internal/measure"
)

func TestLoadBetween(t *testing.T) {
	const sec = int64(time.Second)
	now := time.Now()
	before := activity{
		taken:   now,
		cpus:    []CPUTimes{{Core: 0, Idle: 10 * sec}, {Core: 1, Idle: 10 * sec, Steal: sec}, {Core: 5}},
		softnet: []measure.Softnet{{Core: 0, TimeSqueeze: 5, Dropped: 1}, {Core: 1, TimeSqueeze: 0xffffffff}},
		nets:    []octets{{"lo", 10, 10}, {"eth0", 100, 200}, {"eth1", 7, 7}, {"gone", 1, 1}, {"reset", 50, 50}},
		tasks: map[int]task{
			1: {name: "init"}, 10: {name: "busy", parent: 1, start: 5}, 11: {name: "again", start: 5}, 12: {name: "ended"},
			20: {name: "thru", parent: 1}, 21: {name: "thru", parent: 20}, 22: {name: "helper", parent: 21},
			30: {name: "b"}, 31: {name: "c"}, 32: {name: "d"}, 33: {name: "idle"},
		},
		vhost:     map[int]task{40: {name: "vhost-39"}, 41: {name: "vhost-39"}},
		throttled: new(int64(3)),
	}
	half := int64(time.Second)
	after := activity{
		taken:   now.Add(2 * time.Second),
		cpus:    []CPUTimes{{Core: 0, User: sec / 2, Idle: 11*sec + sec/2}, {Core: 1, System: sec, SoftIRQ: sec / 2, Steal: sec + sec/2, Idle: 10 * sec}},
		softnet: []measure.Softnet{{Core: 0, TimeSqueeze: 7, Dropped: 2}, {Core: 1, TimeSqueeze: 1}},
		nets:    []octets{{"lo", 10, 10}, {"eth0", 100 + 250e6, 200}, {"eth1", 7, 7 + 250}, {"new", 9, 9}, {"reset", 1, 60}},
		tasks: map[int]task{
			1: {name: "init"}, 10: {name: "busy", parent: 1, start: 5, ns: half}, 11: {name: "another", start: 9, ns: half},
			20: {name: "thru", parent: 1, ns: 2 * half}, 21: {name: "thru", parent: 20, ns: 2 * half}, 22: {name: "helper", parent: 21, ns: half},
			30: {name: "b", ns: half / 2}, 31: {name: "c", ns: half / 2}, 32: {name: "d", ns: half / 4}, 33: {name: "idle", ns: half / 20},
		},
		vhost:     map[int]task{40: {name: "vhost-39", ns: half / 2}, 41: {name: "vhost-39", ns: 2 * half}, 42: {name: "vhost-3"}},
		throttled: new(int64(8)),
	}
	var n notes
	want := measure.Load{
		SpanNs: 2 * sec, CPUPct: new(62.5), BusiestCPU: new(1), BusiestPct: new(100.0), StealPct: new(12.5), StealBoot: new(6.0),
		Throttled: new(int64(5)), Squeezed: new(int64(4)), Dropped: new(int64(1)), VhostPct: new(100.0),
		Interfaces: []measure.InterfaceLoad{{Name: "eth0", RxBps: 1e9}, {Name: "eth1", TxBps: 1000}},
		Top:        []measure.ProcessLoad{{PID: 10, Name: "busy", CPUPct: 50}, {PID: 30, Name: "b", CPUPct: 25}, {PID: 31, Name: "c", CPUPct: 25}},
	}
	if diff := cmp.Diff(want, loadBetween(&n, before, after, 20), cmpopts.EquateApprox(0, 0.1)); diff != "" || len(n) != 0 {
		t.Errorf("notes %v (-want +got):\n%s", n, diff)
	}
	// A value that one of the readings lacks is absent.
	for _, l := range []measure.Load{loadBetween(&n, activity{taken: now}, after, 20), loadBetween(&n, before, activity{taken: after.taken}, 20)} {
		if diff := cmp.Diff(measure.Load{SpanNs: 2 * sec}, l); diff != "" {
			t.Errorf("of nothing:\n%s", diff)
		}
	}
	if l := loadBetween(&n, before, before, 20); l.CPUPct != nil || !noted(n, "load.cpu_pct") || l.Interfaces != nil || l.Top != nil {
		t.Errorf("no time between: %+v, %v", l, n)
	}
}

// Processes whose parents form a cycle, as a reading over time may show, must
// not hang it.
func TestForeignProcessesInACircle(t *testing.T) {
	all := strangers(map[int]task{5: {parent: 6}, 6: {parent: 5}, 7: {parent: 8}, 8: {parent: 9}}, 9)
	if _, ok := all[5]; len(all) != 2 || !ok {
		t.Errorf("%v", all)
	}
}

func TestActivityOfRecordedHost(t *testing.T) {
	fs, _ := recordedHost(t, "host-xeon")
	var n notes
	a := (&Host{fs: fs}).activity(&n)
	if len(a.nets) != 2 || a.nets[1] != (octets{"vmbr0", 1234567890, 234567890}) || a.tasks[1].name != "systemd" {
		t.Errorf("%+v", a)
	}
	if !noted(n, "load.cpu_pct") || !noted(n, "load.softnet_squeezed") || len(n) != 2 {
		t.Errorf("notes %v", n)
	}
	fs, _ = recordedHost(t, "host-kvm")
	if a = (&Host{fs: fs}).activity(&n); show(a.throttled) != int64(12) || a.tasks != nil || !noted(n, "load.processes") {
		t.Errorf("%+v, %v", a, n)
	}
}

// The end of the context ends the wait, and the span shows it.
func TestLoadEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l, n := New().Load(ctx, time.Hour)
	if l.SpanNs <= 0 || l.SpanNs > int64(time.Minute) || l.StealBoot == nil && !noted(n, "load.cpu_pct") {
		t.Errorf("%+v, %v", l, n)
	}
}

// The host's own traffic is counted, and thru's own processes are not named.
func TestLoadOfThisMachine(t *testing.T) {
	h := New()
	var n notes
	before := h.activity(&n)
	traffic(t, 64<<20)
	l := loadBetween(&n, before, h.activity(&n), os.Getpid())
	if !slices.ContainsFunc(l.Interfaces, func(i measure.InterfaceLoad) bool { return i.Name == "lo" && i.RxBps > 1e6 && i.TxBps > 1e6 }) {
		t.Errorf("interfaces %+v, notes %v", l.Interfaces, n)
	}
	for _, p := range l.Top {
		if p.PID == os.Getpid() {
			t.Errorf("this process is among %+v", l.Top)
		}
	}
}

func TestParseTask(t *testing.T) {
	line := "77 (a b) c) S 12 1 1 0 -1 1 1 0 0 0 250 175 0 0 20 0 1 0 9876 1 1"
	got, err := parseTask(line)
	if err != nil || got != (task{name: "a b) c", parent: 12, start: 9876, ns: 4250e6}) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []string{"", "77 (x) S 12", strings.Replace(line, "9876", "x", 1), strings.Replace(line, " 12 ", " -1 ", 1), strings.Replace(line, "(", "", 1)} {
		if _, err := parseTask(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
