package kvm

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"thru/internal/measure"
)

// taken returns the values of all series, by their subject.
func taken(series []measure.Series) map[string][]float64 {
	all := map[string][]float64{}
	for _, s := range series {
		name := fmt.Sprint(s.Of, " ", s.Instance, " ", s.Counter)
		for _, x := range s.Samples {
			all[name] = append(all[name], math.Round(1000*x.Value)/1000)
		}
	}
	return all
}

// TestCounters: increases between two readings, in the guest's direction.
func TestCounters(t *testing.T) {
	root := recorded(t, "libvirt")
	h := At(root, "x")
	w, err := h.prepare([]string{"vm:web1", hostID, "vm:spare"})
	if err != nil {
		t.Fatal(err)
	}
	put(t, root, "proc/4001/task/4010/schedstat", "1500000000 300000000 500") // 0.5 s on a CPU, 0.1 s ready
	put(t, root, "proc/4001/task/4011/schedstat", "3250000000 600000000 510")
	put(t, root, "proc/4001/task/4012/schedstat", "1700000000 100 3")
	put(t, root, "sys/fs/cgroup/machine.slice/machine-qemu.scope/libvirt/vcpu0/cpu.stat", "nr_periods 110\nnr_throttled 20\nthrottled_usec 1300000\n")
	put(t, root, "proc/self/net/dev", "  eno1: 1126000 1010 1 12 0 0 0 0 2000 20 3 4 0 0 0 0\n vnet0: 100 1 0 5 0 0 0 0 250200 102 0 26 0 0 0 0\n")
	put(t, root, "proc/stat", "cpu  0\ncpu0 152 0 50 440 0 0 0 0 0 0\ncpu1 50 0 50 500 0 0 0 0 0 0\n")
	put(t, root, "proc/vmstat", "pswpin 110\n")
	w.tick(w.last.Add(time.Second))
	got := taken(w.recs.series())
	for name, want := range map[string]float64{
		"vm:web1 0 cpu.used_pct": 50, "vm:web1 1 cpu.used_pct": 25, "vm:web1  cpu.used_pct": 75,
		"vm:web1 0 cpu.ready_pct": 10, "vm:web1 1 cpu.ready_pct": 0, "vm:web1  cpu.ready_pct": 5,
		"vm:web1 0 cpu.limited_pct": 30, "vm:web1 1 cpu.limited_pct": 0, "vm:web1  cpu.limited_pct": 15,
		"vm:web1 vhost-4001:4012 thread.used_pct": 100, "vm:web1 vhost-4001:4013 thread.used_pct": 0, "vm:web1 main thread thread.used_pct": 0,
		"vm:web1 vnet0 net.rx_bps": 2e6, "vm:web1 vnet0 net.rx_packets_s": 100, "vm:web1 vnet0 net.tx_bps": 0,
		"vm:web1 vnet0 net.rx_dropped_packets": 20, "vm:web1 vnet0 net.tx_dropped_packets": 0,
		"vm:web1  mem.consumed_bytes": 2 << 30, "vm:web1  mem.swapped_bytes": 1 << 20,
		"host eno1 net.rx_bps": 9e6, "host eno1 net.rx_dropped_packets": 10, "host eno1 net.tx_dropped_packets": 0,
		"host 0 cpu.usage_pct": 100, "host 1 cpu.usage_pct": 0, "host  cpu.usage_pct": 51,
		"host  mem.free_bytes": 32768000 << 10, "host  mem.swapped_bytes": 600 << 10, "host  mem.swapin_bytes_s": 40960,
	} {
		if v := got[name]; len(v) != 1 || v[0] != want {
			t.Errorf("%s: %v, want %v", name, v, want)
		}
	}
	for _, want := range [][2]string{{"series.vm:spare", "no guest"}, {"series.mem.balloon_bytes", "monitor"}, {"series.queue.rx_packets_s", "eno1"}} {
		if !noted(w.missing, want[0], want[1]) {
			t.Errorf("no note %v in %v", want, w.missing)
		}
	}
	for _, s := range w.recs.series() {
		if s.EveryNs != int64(time.Second) || s.Native == "" || !strings.HasPrefix(s.Of, "vm:web1") && s.Of != hostID {
			t.Errorf("%+v", s)
		}
	}
}

// TestAdapterEnds: what a tap sends the guest receives, what a macvtap receives
// the guest receives too.
func TestAdapterEnds(t *testing.T) {
	root := recorded(t, "libvirt")
	put(t, root, "proc/self/net/dev", " macvtap0: 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n vnet7: 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n")
	w, err := At(root, "x").prepare([]string{"vm:db,1"})
	if err != nil {
		t.Fatal(err)
	}
	put(t, root, "proc/self/net/dev", " macvtap0: 1000 10 2 7 0 0 0 0 500 5 4 3 0 0 0 0\n vnet7: 1000 10 2 7 0 0 0 0 500 5 4 3 0 0 0 0\n")
	w.tick(w.last.Add(time.Second))
	got := taken(w.recs.series())
	for name, want := range map[string][2]float64{
		"net.rx_bps": {8000, 4000}, "net.tx_bps": {4000, 8000}, "net.rx_packets_s": {10, 5}, "net.tx_packets_s": {5, 10},
		"net.rx_dropped_packets": {7, 3}, "net.tx_dropped_packets": {3, 7}, "net.rx_errors_packets": {2, 4}, "net.tx_errors_packets": {4, 2},
	} {
		check(t, "macvtap "+name, got["vm:db,1 macvtap0 "+name], []float64{want[0]})
		check(t, "tap "+name, got["vm:db,1 vnet7 "+name], []float64{want[1]})
	}
}

// TestSharedQuota: throttling by a quota around several guests belongs to
// none of them; their own quotas are reported.
func TestSharedQuota(t *testing.T) {
	root := recorded(t, "proxmox")
	put(t, root, "sys/fs/cgroup/qemu.slice/cpu.max", "400000 100000")
	put(t, root, "sys/fs/cgroup/qemu.slice/cpu.stat", "nr_periods 100\nnr_throttled 10\nthrottled_usec 1000000\n")
	put(t, root, "proc/901/task/920/comm", "CPU 0/KVM")
	put(t, root, "proc/920/cgroup", "0::/qemu.slice/101.scope")
	w, err := At(root, "x").prepare([]string{"vm:100", "vm:101"})
	if err != nil {
		t.Fatal(err)
	}
	put(t, root, "sys/fs/cgroup/qemu.slice/cpu.stat", "nr_periods 110\nnr_throttled 20\nthrottled_usec 3000000\n")
	put(t, root, "sys/fs/cgroup/qemu.slice/100.scope/cpu.stat", "nr_periods 110\nnr_throttled 20\nthrottled_usec 1200000\n")
	w.tick(w.last.Add(time.Second))
	got := taken(w.recs.series())
	check(t, "its own group", got["vm:100  cpu.limited_pct"], []float64{10})
	check(t, "the one of both", len(got["vm:101  cpu.limited_pct"]), 0)
	if !noted(w.missing, "series."+measure.CounterLimited, "2 guests share") {
		t.Errorf("%v", w.missing)
	}
}

// TestCountersGone: a counter that ends or restarts leaves a gap and no wrong
// value.
func TestCountersGone(t *testing.T) {
	root := recorded(t, "libvirt")
	h := At(root, "x")
	w, err := h.prepare([]string{"vm:web1"})
	if err != nil {
		t.Fatal(err)
	}
	put(t, root, "proc/4001/task/4010/schedstat", "5 5 1") // another thread has its number
	put(t, root, "proc/self/net/dev", " vnet9: 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n")
	w.tick(w.last.Add(time.Second))
	put(t, root, "proc/4001/task/4010/schedstat", "100000005 5 1")
	put(t, root, "proc/4001/stat", "4001 (another) S "+strings.Repeat("0 ", 18)+"123456")
	w.tick(w.last.Add(time.Second))
	got := taken(w.recs.series())
	check(t, "used", got["vm:web1 0 cpu.used_pct"], []float64{10})
	check(t, "a tap that is gone", len(got["vm:web1 vnet0 net.rx_bps"]), 0)
	close(w.over)
	series, missing := w.End(t.Context())
	if len(series) == 0 || !noted(missing, "series.vm:web1", "ended during") {
		t.Errorf("%d series, %v", len(series), missing)
	}
}

// TestRecorder: however long a watch lasts, its memory is limited, and no
// count is lost.
func TestRecorder(t *testing.T) {
	count := newMeter("x", "", measure.CounterRxDropped, "n", rise, 1)
	speed := newMeter("x", "", measure.CounterRxBps, "n", rate, 8)
	fill := newMeter("x", "", measure.CounterFree, "n", level, 1)
	var many []*meter
	for range 4_000 {
		many = append(many, newMeter("y", "", measure.CounterReady, "n", rate, 1))
	}
	for name, meters := range map[string][]*meter{"few": {count, speed, fill}, "many": append(many, count)} {
		count.values, speed.values, fill.values = nil, nil, nil
		r := newRecorder(meters, time.Second, mostValues)
		now, n := time.Unix(1e9, 0), 0.0
		const hours = 8 * time.Hour
		end := now.Add(hours)
		r.tick(now, func(*meter) float64 { return 0 })
		for now.Before(end) {
			every := r.every
			now = now.Add(every)
			n += every.Seconds()
			r.tick(now, func(m *meter) float64 {
				if m == fill {
					return 7
				}
				return n
			})
		}
		if len(r.ticks) >= r.most || r.most*len(meters) > 2*max(mostValues, leastTicks*len(meters)) {
			t.Errorf("%s: %d of %d ticks of %d meters", name, len(r.ticks), r.most, len(meters))
		}
		sum := 0.0
		for _, v := range count.values {
			sum += v
		}
		check(t, name+": what rose by 1 each second", sum, n)
		if name == "few" {
			check(t, "its rate", slices.Max(speed.values)+slices.Min(speed.values), 16.0)
			check(t, "its level", slices.Max(fill.values), 7.0)
		}
		for i := 1; i < len(r.ticks); i++ {
			if d := r.ticks[i].Sub(r.ticks[i-1]); d != r.every {
				t.Fatalf("%s: sample %d covers %v, not %v", name, i, d, r.every)
			}
		}
	}
}

// TestRecorders: the counters of a host with many CPUs do not make the
// guests' counters coarser for an hour, and both are limited.
func TestRecorders(t *testing.T) {
	var meters []*meter
	for n := range 40 {
		meters = append(meters, newMeter("vm:x", fmt.Sprint(n), measure.CounterReady, "n", rate, 1))
	}
	for n := range 256 {
		meters = append(meters, newMeter(hostID, fmt.Sprint(n), measure.CounterUsage, "n", rate, 1))
	}
	all := newRecorders(append(meters, newMeter(hostID, "", measure.CounterUsage, "n", rate, 1)), time.Second)
	now := time.Unix(1e9, 0)
	for s := range 3_600 {
		all.tick(now.Add(time.Duration(s)*time.Second+time.Duration(s%3)*time.Millisecond), func(*meter) float64 { return 25 * float64(s) })
	}
	values := 0
	for _, s := range all.series() {
		values += len(s.Samples)
		want := time.Second
		if s.Of == hostID && s.Instance != "" {
			want = 32 * time.Second
		}
		if time.Duration(s.EveryNs) != want {
			t.Errorf("%s of %s %s: a sample covers %v", s.Counter, s.Of, s.Instance, time.Duration(s.EveryNs))
		}
		for _, x := range s.Samples[1:] {
			if math.Abs(x.Value-25) > 0.1 {
				t.Fatalf("%s of %s %s: %v", s.Counter, s.Of, s.Instance, x)
			}
		}
	}
	if values > mostValues+mostDetails {
		t.Errorf("%d values", values)
	}
}

// TestWatchEnds ends a watch in each possible way, and leaves no goroutine
// (TestMain).
func TestWatchEnds(t *testing.T) {
	h := At(recorded(t, "proxmox"), "x")
	h.second = 5 * time.Millisecond
	w, err := h.Watch(t.Context(), []string{"vm:100"})
	if err != nil {
		t.Fatal(err)
	}
	series, _ := w.End(t.Context())
	if v := taken(series)["vm:100  cpu.limited_pct"]; len(v) == 0 {
		t.Errorf("no sample in a short watch: %v", series)
	}
	h.second = time.Hour
	gone, cancel := context.WithCancel(t.Context())
	if w, err = h.Watch(gone, []string{"vm:100"}); err != nil {
		t.Fatal(err)
	}
	cancel()
	if series, _ := w.End(t.Context()); len(series) != 0 {
		t.Errorf("samples of no time: %v", series)
	}
	if _, err := h.Watch(gone, nil); err == nil {
		t.Error("a context that has ended is no matter")
	}
	if _, err = h.Watch(t.Context(), []string{hostID}); err != nil {
		t.Fatal(err)
	}
	h.Close()
	if len(h.watches) != 0 {
		t.Errorf("%d watches are left", len(h.watches))
	}
}
