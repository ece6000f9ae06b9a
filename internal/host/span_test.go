package host

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"thru/internal/measure"
)

func TestSpan(t *testing.T) {
	origin := time.Now()
	sec := int64(time.Second)
	before := Snapshot{
		Taken:   origin.Add(2 * time.Second),
		CPUs:    []CPUTimes{{Core: 0, User: sec}, {Core: 1, Idle: 50 * sec, Steal: 5 * sec}, {Core: 2}},
		Memory:  &measure.Memory{Total: 100, Available: 90},
		Worker:  &measure.Process{UserNs: 1, SystemNs: 2, ResidentB: 50, Voluntary: new(int64(10)), Involuntary: new(int64(5))},
		NIC:     &measure.NICSpan{Name: "eth0", RxBytes: 1000, TxDropped: 1, Driver: map[string]uint64{"rx0_drops": 1, "still": 4, "fell": 9}},
		Softnet: []measure.Softnet{{Core: 0, Processed: 0xfffffff0, Dropped: 7}, {Core: 2, Processed: 1}},
		Proto:   map[string]uint64{"Tcp.RetransSegs": 5, "Tcp.InSegs": 1},
		Quota:   &measure.QuotaSpan{CPUs: 0.5, Periods: 100, Throttled: 40, ThrottledNs: 7000},
		IRQs:    []measure.IRQSpan{{Core: 0, Count: 10}, {Core: 1, Count: 1<<32 - 5}, {Core: 2, Count: 4}},
		Swap:    &measure.SwapSpan{InPages: 5, OutPages: 6},
	}
	after := Snapshot{
		Taken:   origin.Add(3500 * time.Millisecond),
		CPUs:    []CPUTimes{{Core: 0, User: sec + sec/4, System: sec / 4, IRQ: sec / 10, SoftIRQ: sec * 4 / 10}, {Core: 1, Idle: 51 * sec, Steal: 5*sec - sec/100}, {Core: 3, User: sec}},
		Memory:  &measure.Memory{Total: 100, Available: 80},
		Worker:  &measure.Process{UserNs: 101, SystemNs: 202, ResidentB: 60, Voluntary: new(int64(30)), Involuntary: new(int64(4))},
		NIC:     &measure.NICSpan{Name: "eth0", RxBytes: 5000, TxDropped: 3, Driver: map[string]uint64{"rx0_drops": 3, "still": 4, "fell": 8, "new": 100}},
		Softnet: []measure.Softnet{{Core: 0, Processed: 0x10, Dropped: 9, TimeSqueeze: 1}},
		Proto:   map[string]uint64{"Tcp.RetransSegs": 8, "Tcp.InSegs": 1},
		Quota:   &measure.QuotaSpan{CPUs: 0.5, Periods: 115, Throttled: 52, ThrottledNs: 9500},
		IRQs:    []measure.IRQSpan{{Core: 0, Count: 10}, {Core: 1, Count: 20}, {Core: 3, Count: 9}},
		Swap:    &measure.SwapSpan{InPages: 5, OutPages: 70},
	}
	want := measure.HostSpan{
		At: 2e9, Span: 15e8,
		CPUs:    []measure.CPU{{Core: 0, User: 25, System: 25, IRQ: 10, SoftIRQ: 40}, {Core: 1, Idle: 100}},
		Memory:  &measure.Memory{Total: 100, Available: 80},
		Worker:  &measure.Process{UserNs: 100, SystemNs: 200, ResidentB: 60, Voluntary: new(int64(20))},
		NIC:     &measure.NICSpan{Name: "eth0", RxBytes: 4000, TxDropped: 2, Driver: map[string]uint64{"rx0_drops": 2}},
		Softnet: []measure.Softnet{{Core: 0, Processed: 0x20, Dropped: 2, TimeSqueeze: 1}},
		Proto:   map[string]uint64{"Tcp.RetransSegs": 3},
		Quota:   &measure.QuotaSpan{CPUs: 0.5, Periods: 15, Throttled: 12, ThrottledNs: 2500},
		IRQs:    []measure.IRQSpan{{Core: 1, Count: 25}},
		Swap:    &measure.SwapSpan{OutPages: 64},
		Missing: []measure.NotChecked{
			{Fact: "interface.driver.fell", Why: "decreased from 9 to 8: reset in this period"},
			{Fact: "interrupts.1", Why: "changed from 4294967291 to 20: counted as a 32-bit wrap"},
			{Fact: "worker.involuntary_switches", Why: "a thread ended in this period"},
		},
	}
	if diff := cmp.Diff(want, Span(before, after, origin)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A value that one of the snapshots lacks is absent, not zero.
func TestSpanOfNothing(t *testing.T) {
	full := Snapshot{
		CPUs: []CPUTimes{{}}, Worker: &measure.Process{UserNs: 5}, NIC: &measure.NICSpan{Name: "eth0"},
		Softnet: []measure.Softnet{{}}, Proto: map[string]uint64{"Tcp.InSegs": 1},
		Quota: &measure.QuotaSpan{CPUs: 1, Periods: 5}, IRQs: []measure.IRQSpan{{Count: 5}}, Swap: &measure.SwapSpan{InPages: 5},
	}
	for name, s := range map[string]measure.HostSpan{
		"before": Span(Snapshot{}, full, time.Time{}), "after": Span(full, Snapshot{}, time.Time{}),
	} {
		if diff := cmp.Diff(measure.HostSpan{}, s); diff != "" {
			t.Errorf("nothing %s:\n%s", name, diff)
		}
	}
	other := full
	other.NIC = &measure.NICSpan{Name: "eth1"}
	if s := Span(full, other, time.Time{}); s.NIC != nil {
		t.Errorf("two interfaces gave %+v", s.NIC)
	}
}

func TestSpanAfterReset(t *testing.T) {
	nic := func(rx uint64) Snapshot {
		return Snapshot{NIC: &measure.NICSpan{Name: "eth0", RxBytes: rx, TxBytes: 10}}
	}
	for _, c := range []struct {
		before, after uint64
		want          any
	}{
		{1<<32 - 100, 200, uint64(300)}, // wrapped at 32 bits
		{1 << 20, 0, "absent"},          // the driver was reloaded
		{1 << 40, 5, "absent"},
		{1<<64 - 1, 0, "absent"},
	} {
		s := Span(nic(c.before), nic(c.after), time.Time{})
		var got any = "absent"
		if s.NIC != nil {
			got = s.NIC.RxBytes
		}
		if got != c.want || !noted(s.Missing, "interface.rx_bytes") {
			t.Errorf("from %d to %d: %v, want %v; notes %v", c.before, c.after, got, c.want, s.Missing)
		}
	}
	hour := int64(time.Hour)
	s := Span(Snapshot{CPUs: []CPUTimes{{Core: 4, Idle: hour}, {Core: 5}}, Worker: &measure.Process{UserNs: 9}},
		Snapshot{CPUs: []CPUTimes{{Core: 4, User: 1}, {Core: 5}}, Worker: &measure.Process{UserNs: 3}}, time.Time{})
	if s.CPUs != nil || s.Worker != nil || !noted(s.Missing, "cpus.4") || !noted(s.Missing, "cpus.5") || !noted(s.Missing, "worker") {
		t.Errorf("%+v", s)
	}
}

// A quota whose counters fell belongs to another group; without swapping
// there is no swap span.
func TestSpanOfAnotherGroup(t *testing.T) {
	a := Snapshot{Quota: &measure.QuotaSpan{CPUs: 1, Periods: 50, Throttled: 5}, Swap: &measure.SwapSpan{InPages: 5}}
	b := Snapshot{Quota: &measure.QuotaSpan{CPUs: 1, Periods: 60, Throttled: 1}, Swap: &measure.SwapSpan{InPages: 5}}
	if s := Span(a, b, time.Time{}); s.Quota != nil || !noted(s.Missing, "cpu_quota") || s.Swap != nil {
		t.Errorf("%+v, %+v, %v", s.Quota, s.Swap, s.Missing)
	}
}
