package vsphere

import (
	"testing"
	"time"

	"github.com/vmware/govmomi/simulator"

	"thru/internal/measure"
)

// watchesClockRefused verifies that where a host's clock may not be read, the
// vCenter's is used, and that it is reported.
func watchesClockRefused(t *testing.T, w *simulation, c *Client, m *simulator.Model) {
	w.stamp = "vc"
	guest, host := some(m)
	w.ahead = map[string]time.Duration{"": 40 * time.Second}
	m.Service.FaultInjector().AddRule(&simulator.FaultInjectionRule{MethodName: "QueryDateTime", ObjectType: "*", ObjectName: "*", Probability: 1, Enabled: true, FaultType: simulator.FaultTypeNoPermission})
	watch, err := c.watch(t.Context(), []string{guest}, w.pace())
	if err != nil {
		t.Fatal(err)
	}
	w.pass(time.Minute)
	series, left := watch.End(t.Context())
	for _, r := range find(t, series, guest, "", measure.CounterReady).Samples {
		if off := (r.EndedAt.Sub(r.EndedAt.Truncate(time.Minute)) % (20 * time.Second)).Round(time.Millisecond); off != 0 {
			t.Errorf("a sample ends at %v", r.EndedAt)
		}
	}
	if !tells(left, "clock of "+c.vimHost(t, host), "no permission") || !tells(left, "clock of "+c.Name(), "40 s (±0.0 s) ahead") {
		t.Errorf("left:%s", text(left))
	}
}

// watchesEarly verifies that a host's clock is not used where it cannot have
// stamped the samples: by it, they would end after they were read.
func watchesEarly(t *testing.T, w *simulation, c *Client, m *simulator.Model) {
	w.stamp = "vc"
	guest, host := some(m)
	w.ahead = map[string]time.Duration{host: -10 * time.Minute}
	watch, err := c.watch(t.Context(), []string{guest}, w.pace())
	if err != nil {
		t.Fatal(err)
	}
	w.pass(time.Minute)
	until := w.time()
	series, left := watch.End(t.Context())
	got := find(t, series, guest, "", measure.CounterReady).Samples
	if last := got[len(got)-1].EndedAt; last.Before(until) || last.After(until.Add(20*time.Second)) {
		t.Errorf("the last sample ends at %v, the test at %v", last, until)
	}
	if !tells(left, "clock of "+c.vimHost(t, host), "after they were read") {
		t.Errorf("left:%s", text(left))
	}
}

// watchesOld verifies that a host's clock is not used where by it the samples
// would be too old, and by the vCenter's they are not.
func watchesOld(t *testing.T, w *simulation, c *Client, m *simulator.Model) {
	w.stamp = "vc"
	guest, host := some(m)
	w.ahead = map[string]time.Duration{host: 90 * time.Second}
	watch, err := c.watch(t.Context(), []string{guest}, w.pace())
	if err != nil {
		t.Fatal(err)
	}
	w.pass(time.Minute)
	until := w.time()
	series, left := watch.End(t.Context())
	got := find(t, series, guest, "", measure.CounterReady).Samples
	if last := got[len(got)-1].EndedAt; last.Before(until) || last.After(until.Add(20*time.Second)) || last.Second()%20 != 0 {
		t.Errorf("the last sample ends at %v, the test at %v", last, until)
	}
	if !tells(left, "clock of "+c.vimHost(t, host), "s old when it was read, by that of "+c.Name()) || len(left) != 1 {
		t.Errorf("left:%s", text(left))
	}
}

// watchesAhead verifies that samples of a host whose clock is far ahead and
// may not be read are not placed in the future, and are waited for.
func watchesAhead(t *testing.T, w *simulation, c *Client, m *simulator.Model) {
	guest, host := some(m)
	w.ahead = map[string]time.Duration{host: 170 * time.Second}
	m.Service.FaultInjector().AddRule(&simulator.FaultInjectionRule{MethodName: "QueryDateTime", ObjectType: "*", ObjectName: "*", Probability: 1, Enabled: true, FaultType: simulator.FaultTypeNoPermission})
	watch, err := c.watch(t.Context(), []string{guest}, w.pace())
	if err != nil {
		t.Fatal(err)
	}
	w.pass(time.Minute)
	until := w.time()
	series, left := watch.End(t.Context())
	got := find(t, series, guest, "", measure.CounterReady).Samples
	if last := got[len(got)-1].EndedAt; last.Before(until) || last.After(w.time()) {
		t.Errorf("the last sample ends at %v, the test at %v, now is %v", last, until, w.time())
	}
	if !tells(left, "times of the samples of "+c.vimHost(t, host), "up to 20 s late") || !tells(left, "clock of "+c.vimHost(t, host), "no permission") {
		t.Errorf("left:%s", text(left))
	}
}
