package vsphere

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/simulator/vpx"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"thru/internal/measure"
)

// world is a data center with a time of its own, which moves on by a step with
// each query of counters. Its hosts sample every 20 s of their own clocks
// and tell that late; they forget after an hour. It stands before the
// simulator's own answers, which are random and never late.
type world struct {
	simulator.PerformanceManager
	mu      sync.Mutex
	now     time.Time
	step    time.Duration
	late    time.Duration            // that a sample comes after its end
	ahead   map[string]time.Duration // clock by host; "": of the vCenter
	stamp   string                   // whose clock stamps all samples: "vc"; else each host's own
	values  map[string]int64         // by name of a counter
	queries int
	asked   []int                                     // entities in each query
	on      func(w *world)                            // called with each query
	host    func(types.ManagedObjectReference) string // where an entity is
	names   map[int32]string
}

func (w *world) time() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

// pace reads by the time of the world, and does not wait in ours.
func (w *world) pace() pace {
	return pace{round: time.Hour, poll: time.Millisecond, now: w.time}
}

// QueryPerfProviderSummary puts the clocks where the session that asks finds
// them before the simulator's own, which cannot be replaced for all.
func (w *world) QueryPerfProviderSummary(ctx *simulator.Context, req *types.QueryPerfProviderSummary) soap.HasFault {
	ctx.Session.Put(&worldClock{w, vim25.ServiceInstance, ""})
	return w.PerformanceManager.QueryPerfProviderSummary(ctx, req)
}

// worldClock is the clock of the vCenter or of a host.
type worldClock struct {
	w    *world
	Self types.ManagedObjectReference
	of   string
}

func (c *worldClock) Reference() types.ManagedObjectReference { return c.Self }

// CurrentTime is what the vCenter's shows.
func (c *worldClock) CurrentTime(*types.CurrentTime) soap.HasFault {
	return &methods.CurrentTimeBody{Res: &types.CurrentTimeResponse{Returnval: c.w.time().Add(c.w.ahead[c.of])}}
}

// QueryDateTime is what a host's shows.
func (c *worldClock) QueryDateTime(*types.QueryDateTime) soap.HasFault {
	return &methods.QueryDateTimeBody{Res: &types.QueryDateTimeResponse{Returnval: c.w.time().Add(c.w.ahead[c.of])}}
}

// QueryPerf tells the last samples of each entity that have come by now.
func (w *world) QueryPerf(req *types.QueryPerf) soap.HasFault {
	w.mu.Lock()
	w.now = w.now.Add(w.step)
	w.queries++
	w.asked = append(w.asked, len(req.QuerySpec))
	now, on := w.now, w.on
	w.mu.Unlock()
	res := new(types.QueryPerfResponse)
	for _, spec := range req.QuerySpec {
		res.Returnval = append(res.Returnval, w.entity(spec, now))
	}
	if on != nil {
		on(w)
	}
	return &methods.QueryPerfBody{Res: res}
}

func (w *world) entity(spec types.PerfQuerySpec, now time.Time) *types.PerfEntityMetricCSV {
	const every = 20 * time.Second
	ahead := w.ahead[w.host(spec.Entity)]
	if w.stamp == "vc" {
		ahead = w.ahead[""]
	}
	newest := now.Add(ahead - w.late).Truncate(every)
	told := &types.PerfEntityMetricCSV{PerfEntityMetricBase: types.PerfEntityMetricBase{Entity: spec.Entity}}
	n := int(min(spec.MaxSample, mostSamples))
	var at []string
	for i := range n {
		at = append(at, "20,"+newest.Add(-time.Duration(n-1-i)*every).Format(time.RFC3339))
	}
	told.SampleInfoCSV = strings.Join(at, ",")
	for _, id := range spec.MetricId {
		s := types.PerfMetricSeriesCSV{PerfMetricSeries: types.PerfMetricSeries{Id: id}}
		v := strconv.FormatInt(w.values[w.names[id.CounterId]], 10)
		s.Value = strings.TrimSuffix(strings.Repeat(v+",", n), ",")
		told.Value = append(told.Value, s)
	}
	return told
}

// newWorld starts a simulated vCenter of that world.
func newWorld(t *testing.T, w *world, change func(*simulator.Model)) (*Client, *simulator.Model) {
	t.Helper()
	w.now = time.Date(2026, 3, 1, 12, 0, 7, 3, time.UTC)
	if w.step == 0 {
		w.step = 5 * time.Second
	}
	w.names = map[int32]string{}
	for _, info := range vpx.PerfCounter {
		w.names[info.Key] = info.Name()
	}
	model := simulator.VPX()
	cfg := simulated(t, model, func(m *simulator.Model) {
		for _, h := range m.Map().All(hostKind) {
			h := h.(*simulator.HostSystem)
			system := types.ManagedObjectReference{Type: "HostDateTimeSystem", Value: "dateTimeSystem-" + h.Self.Value}
			h.ConfigManager.DateTimeSystem = &system
			m.Map().Put(&worldClock{w, system, h.Self.Value})
		}
		w.host = func(ref types.ManagedObjectReference) string {
			if vm, is := m.Map().Get(ref).(*simulator.VirtualMachine); is {
				return vm.Runtime.Host.Value
			}
			return ref.Value
		}
		w.PerformanceManager = *m.Map().Get(*m.ServiceContent.PerfManager).(*simulator.PerformanceManager)
		m.Map().Put(w)
		if change != nil {
			change(m)
		}
	})
	return dial(t, cfg), model
}

// some are the first VM of the simulator and its host.
func some(m *simulator.Model) (guest, host string) {
	vms := m.Map().All(guestKind)
	slices.SortFunc(vms, func(a, b mo.Entity) int { return strings.Compare(a.Reference().Value, b.Reference().Value) })
	vm := vms[0].(*simulator.VirtualMachine)
	return vm.Self.Value, vm.Runtime.Host.Value
}

// find is the series of a counter.
func find(t *testing.T, all []measure.Series, of, instance, name string) measure.Series {
	t.Helper()
	for _, s := range all {
		if s.Of == of && s.Instance == instance && s.Counter == name {
			return s
		}
	}
	t.Fatalf("no %s of %s %q in %d series", name, of, instance, len(all))
	return measure.Series{}
}

// tells says whether a fact that begins so stands there with a reason that has these words.
func tells(left []measure.NotChecked, fact, words string) bool {
	return slices.ContainsFunc(left, func(n measure.NotChecked) bool {
		return strings.HasPrefix(n.Fact, fact) && strings.Contains(n.Why, words)
	})
}

func text(left []measure.NotChecked) string {
	var b strings.Builder
	for _, n := range left {
		fmt.Fprintf(&b, "\n  %s: %s", n.Fact, n.Why)
	}
	return b.String()
}

// TestWatch holds that samples are waited for until they reach the end of
// the test, and that they are placed on our clock although host and vCenter
// have others.
func TestWatch(t *testing.T) {
	w := &world{late: 12 * time.Second, values: map[string]int64{"cpu.ready.summation": 3000, "net.droppedRx.summation": 7, "cpu.usage.average": 9150}}
	c, m := newWorld(t, w, nil)
	guest, host := some(m)
	w.ahead = map[string]time.Duration{"": -3 * time.Second, host: 95 * time.Second}
	watch, err := c.watch(t.Context(), []string{guest, host}, w.pace())
	if err != nil {
		t.Fatal(err)
	}
	begin := w.time()
	w.pass(100 * time.Second)
	until := w.time()
	series, left := watch.End(t.Context())

	ready := find(t, series, guest, "", measure.CounterReady)
	if ready.Native != "cpu.ready.summation" || ready.EveryNs != int64(20*time.Second) {
		t.Errorf("%+v", ready)
	}
	for i, r := range ready.Samples {
		// The host's grid of 20 s, 95 s ahead, lies at 5, 25 and 45 s here.
		if want := time.Date(2026, 3, 1, 12, 0, 25+20*i, 0, time.UTC); r.EndedAt.Sub(want).Abs() > time.Millisecond || r.Value != 15 {
			t.Errorf("sample %d: %v %v, want %v", i, r.EndedAt, r.Value, want)
		}
	}
	if last := ready.Samples[len(ready.Samples)-1].EndedAt; last.Before(until) {
		t.Errorf("the last sample ends at %v, the test at %v", last, until)
	}
	if n := len(ready.Within(begin, until)); n < 4 {
		t.Errorf("%d samples within 100 s", n)
	}
	if got := find(t, series, guest, "4000", measure.CounterRxDropped).Samples[0].Value; got != 7 {
		t.Errorf("dropped %v", got)
	}
	if got := find(t, series, host, "0", measure.CounterUsage).Samples[0].Value; got != 91.5 {
		t.Errorf("usage %v", got)
	}
	name := c.vimHost(t, host)
	if !tells(left, "clock of "+name, "95 s (±0.0 s) ahead of the clock here") || !tells(left, "clock of "+c.Name(), "3.0 s (±0.0 s) behind") || len(left) != 2 {
		t.Errorf("left:%s", text(left))
	}
	again, _ := watch.End(t.Context())
	if len(again) != len(series) {
		t.Error("a second End tells something else")
	}
}

// vimHost is the name of a host.
func (c *Client) vimHost(t *testing.T, id string) string {
	t.Helper()
	ref := reference(id)
	of, err := c.properties(t.Context(), []types.ManagedObjectReference{ref}, "name")
	if err != nil {
		t.Fatal(err)
	}
	return of[ref]["name"].(string)
}

// TestLate holds that a vCenter which is slower than the test ends no test:
// what came is there, and what did not is said.
func TestLate(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	w := &world{late: time.Minute}
	w.on = func(w *world) {
		if w.queries == 3 {
			stop()
		}
	}
	c, m := newWorld(t, w, nil)
	guest, host := some(m)
	watch, err := c.watch(t.Context(), []string{guest, host}, w.pace())
	if err != nil {
		t.Fatal(err)
	}
	w.pass(2 * time.Minute)
	series, left := watch.End(ctx)
	if n := len(find(t, series, guest, "", measure.CounterUsed).Samples); n < 3 {
		t.Errorf("%d samples came", n)
	}
	if !tells(left, "counters of DC0", "vCenter is slower than the test") && !tells(left, "counters of DC0", "not read in the last ") {
		t.Errorf("left:%s", text(left))
	}
}

// TestShort holds that a test shorter than two samples says so.
func TestShort(t *testing.T) {
	w := &world{}
	c, m := newWorld(t, w, nil)
	guest, _ := some(m)
	watch, err := c.watch(t.Context(), []string{guest}, w.pace())
	if err != nil {
		t.Fatal(err)
	}
	w.pass(10 * time.Second)
	series, left := watch.End(t.Context())
	if len(series) == 0 || !tells(left, "counters of vsphere://", "the test took 10 s, a sample covers 20 s: fewer than two lie within it") {
		t.Errorf("%d series, left:%s", len(series), text(left))
	}
}
