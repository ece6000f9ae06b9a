package vsphere

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
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

// simulation is a data center with its own time, which advances by a step
// with each query of counters. Its hosts sample every 20 s of their own
// clocks, publish late, and keep an hour. It answers in place of the
// simulator, whose answers are random and never late.
type simulation struct {
	simulator.PerformanceManager
	mu      sync.Mutex
	now     time.Time
	step    time.Duration
	late    time.Duration            // delay from the end of a sample until it is published
	ahead   map[string]time.Duration // clock by host; "": of the vCenter
	stamp   string                   // whose clock stamps all samples: "vc"; else each host's own
	values  map[string]int64         // by name of a counter
	queries int
	on      func(w *simulation)                       // called with each query
	host    func(types.ManagedObjectReference) string // host of an entity
	names   map[int32]string
}

func (w *simulation) time() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *simulation) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

// pace reads by the simulation's time, without real waits.
func (w *simulation) pace() pace {
	return pace{round: time.Hour, poll: time.Millisecond, now: w.time}
}

// QueryPerfProviderSummary puts the clocks where the session that asks finds
// them before the simulator's own, which cannot be replaced for all.
func (w *simulation) QueryPerfProviderSummary(ctx *simulator.Context, req *types.QueryPerfProviderSummary) soap.HasFault {
	w.enter(ctx)
	return w.PerformanceManager.QueryPerfProviderSummary(ctx, req)
}

// enter puts the vCenter's clock into the session that asks.
func (w *simulation) enter(ctx *simulator.Context) {
	ctx.Session.Put(&simulatedClock{w, vim25.ServiceInstance, ""})
}

// simulatedClock is the clock of the vCenter or of a host.
type simulatedClock struct {
	w    *simulation
	Self types.ManagedObjectReference
	of   string
}

func (c *simulatedClock) Reference() types.ManagedObjectReference { return c.Self }

// CurrentTime returns the vCenter's time.
func (c *simulatedClock) CurrentTime(*types.CurrentTime) soap.HasFault {
	return &methods.CurrentTimeBody{Res: &types.CurrentTimeResponse{Returnval: c.w.time().Add(c.w.ahead[c.of])}}
}

// QueryDateTime returns a host's time.
func (c *simulatedClock) QueryDateTime(*types.QueryDateTime) soap.HasFault {
	return &methods.QueryDateTimeBody{Res: &types.QueryDateTimeResponse{Returnval: c.w.time().Add(c.w.ahead[c.of])}}
}

// QueryPerf returns the last published samples of each entity.
func (w *simulation) QueryPerf(ctx *simulator.Context, req *types.QueryPerf) soap.HasFault {
	w.enter(ctx) // it may be a new session
	w.mu.Lock()
	w.now = w.now.Add(w.step)
	w.queries++
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

func (w *simulation) entity(spec types.PerfQuerySpec, now time.Time) *types.PerfEntityMetricCSV {
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

// begin resets the simulation to its first moment.
func (w *simulation) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now, w.step = time.Date(2026, 3, 1, 12, 0, 7, 3, time.UTC), 5*time.Second
	w.late, w.stamp, w.ahead, w.values = 0, "", nil, nil
	w.queries, w.on = 0, nil
}

// newSimulation starts a simulated vCenter.
func newSimulation(t *testing.T, w *simulation) (Config, *simulator.Model) {
	t.Helper()
	w.begin()
	w.names = map[int32]string{}
	for _, info := range vpx.PerfCounter {
		w.names[info.Key] = info.Name()
	}
	model := simulator.VPX()
	return simulated(t, model, func(m *simulator.Model) {
		for _, h := range m.Map().All(hostKind) {
			h := h.(*simulator.HostSystem)
			system := types.ManagedObjectReference{Type: "HostDateTimeSystem", Value: "dateTimeSystem-" + h.Self.Value}
			h.ConfigManager.DateTimeSystem = &system
			m.Map().Put(&simulatedClock{w, system, h.Self.Value})
		}
		w.host = func(ref types.ManagedObjectReference) string {
			if vm, is := m.Map().Get(ref).(*simulator.VirtualMachine); is {
				return vm.Runtime.Host.Value
			}
			return ref.Value
		}
		w.PerformanceManager = *m.Map().Get(*m.ServiceContent.PerfManager).(*simulator.PerformanceManager)
		m.Map().Put(w)
	}), model
}

// some returns the ids of the simulator's first VM and of its host.
func some(m *simulator.Model) (guest, host string) {
	vms := m.Map().All(guestKind)
	slices.SortFunc(vms, func(a, b mo.Entity) int { return strings.Compare(a.Reference().Value, b.Reference().Value) })
	vm := vms[0].(*simulator.VirtualMachine)
	return vm.Self.Value, vm.Runtime.Host.Value
}

// find returns the series of a counter.
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

// tells reports whether a fact with that prefix is in the list, with a reason
// that contains these words.
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

// TestWatch runs several watches of one data center.
func TestWatch(t *testing.T) {
	w := new(simulation)
	cfg, m := newSimulation(t, w)
	for name, test := range map[string]func(*testing.T, *simulation, *Client, *simulator.Model){
		"all": watchesAll, "late": watchesLate, "short": watchesShort, "long": watchesLong, "early": watchesEarly, "old": watchesOld, "ahead": watchesAhead, "lost": watchesLost,
		"hangs": watchesHangs, "unwatched": watchesUnwatched, "clock refused": watchesClockRefused,
	} {
		t.Run(name, func(t *testing.T) {
			w.begin()
			m.Service.FaultInjector().ClearRules()
			test(t, w, dial(t, cfg), m)
		})
	}
}

// watchesAll verifies that End waits for samples until they reach the end of
// the test, and that they are placed on our clock although host and vCenter
// have others.
func watchesAll(t *testing.T, w *simulation, c *Client, m *simulator.Model) {
	w.late = 12 * time.Second
	w.values = map[string]int64{"cpu.ready.summation": 3000, "net.droppedRx.summation": 7, "cpu.usage.average": 9150}
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
	if !tells(left, "clock of "+name, "95 s (±0.0 s) ahead of the local clock") || !tells(left, "clock of "+c.Name(), "3.0 s (±0.0 s) behind") || len(left) != 2 {
		t.Errorf("left:%s", text(left))
	}
	again, _ := watch.End(t.Context())
	if len(again) != len(series) {
		t.Error("a second End returns a different result")
	}
}

// vimHost returns the name of a host.
func (c *Client) vimHost(t *testing.T, id string) string {
	t.Helper()
	ref := reference(id)
	of, err := c.properties(t.Context(), []types.ManagedObjectReference{ref}, "name")
	if err != nil {
		t.Fatal(err)
	}
	return of[ref]["name"].(string)
}

// watchesLate verifies that a vCenter which is slower than the test does not
// fail it: what came is returned, and what did not come is reported.
func watchesLate(t *testing.T, w *simulation, c *Client, m *simulator.Model) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	w.late = time.Minute
	w.on = func(w *simulation) {
		if w.queries == 3 {
			stop()
		}
	}
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

// watchesShort verifies that a test shorter than a sample has the samples
// that overlap it; the caller, who knows the runs, reports that they are few.
func watchesShort(t *testing.T, w *simulation, c *Client, m *simulator.Model) {
	guest, _ := some(m)
	watch, err := c.watch(t.Context(), []string{guest}, w.pace())
	if err != nil {
		t.Fatal(err)
	}
	w.pass(10 * time.Second)
	series, left := watch.End(t.Context())
	if len(series) == 0 || len(left) > 0 {
		t.Errorf("%d series, left:%s", len(series), text(left))
	}
}

// TestMoved verifies that a guest which moves is followed: the samples of
// each host are placed by that host's clock, and the move is reported.
func TestMoved(t *testing.T) {
	w := new(simulation)
	cfg, m := newSimulation(t, w)
	c := dial(t, cfg)
	guest, host := some(m)
	other := ""
	for _, h := range m.Map().All(hostKind) {
		if id := h.Reference().Value; id != host {
			other = id
		}
	}
	w.ahead = map[string]time.Duration{host: 47 * time.Second, other: -33 * time.Second}
	watch, err := c.watch(t.Context(), []string{guest}, w.pace())
	if err != nil {
		t.Fatal(err)
	}
	begin := w.time()
	w.pass(time.Minute)
	watch.perf.collect(t.Context()) // what a round does
	vm := m.Map().Get(reference(guest)).(*simulator.VirtualMachine)
	to := types.ManagedObjectReference{Type: hostKind, Value: other}
	m.Map().Update(m.Service.Context, vm, []types.PropertyChange{{Name: "runtime.host", Val: to}})
	w.pass(time.Minute)
	until := w.time()
	series, left := watch.End(t.Context())
	got := find(t, series, guest, "", measure.CounterReady).Samples
	if got[0].EndedAt.After(begin.Add(20*time.Second)) || got[len(got)-1].EndedAt.Before(until) {
		t.Errorf("samples from %v to %v, the test from %v to %v", got[0].EndedAt, got[len(got)-1].EndedAt, begin, until)
	}
	for i := 1; i < len(got); i++ {
		if d := got[i].EndedAt.Sub(got[i-1].EndedAt); d < 10*time.Second {
			t.Errorf("two samples within %v", d)
		}
	}
	if !tells(left, "host of DC0_H0_VM0", "it moved from "+c.vimHost(t, host)+" to "+c.vimHost(t, other)) ||
		!tells(left, "clock of "+c.vimHost(t, other), "33 s (±0.0 s) behind") {
		t.Errorf("left:%s", text(left))
	}
}

// watchesLong verifies that a test longer than the hosts keep samples has all
// samples, though the session is lost meanwhile.
func watchesLong(t *testing.T, w *simulation, c *Client, m *simulator.Model) {
	reached, once := make(chan struct{}), sync.Once{}
	w.on = func(w *simulation) {
		w.pass(5 * time.Minute)
		if w.queries == 40 {
			once.Do(func() { close(reached) })
		}
	}
	guest, _ := some(m)
	pace := w.pace()
	pace.round = time.Millisecond
	watch, err := c.watch(t.Context(), []string{guest}, pace)
	if err != nil {
		t.Fatal(err)
	}
	begin := w.time()
	if _, err := methods.Logout(t.Context(), c.vim, &types.Logout{This: *c.vim.ServiceContent.SessionManager}); err != nil {
		t.Fatal(err)
	}
	<-reached
	series, left := watch.End(t.Context())
	got := find(t, series, guest, "", measure.CounterReady).Samples
	if want := int(got[len(got)-1].EndedAt.Sub(begin)/(20*time.Second)) + 1; len(got) < want-1 || want < 3*180 {
		t.Errorf("%d samples of %d", len(got), want)
	}
	if len(left) != 0 {
		t.Errorf("left:%s", text(left))
	}
}

// TestRefused verifies that unreadable counters of one entity affect no
// other.
func TestRefused(t *testing.T) {
	w := new(simulation)
	cfg, m := newSimulation(t, w)
	c := dial(t, cfg)
	guest, host := some(m)
	vms := m.Map().All(guestKind)
	off := vms[slices.IndexFunc(vms, func(e mo.Entity) bool { return e.Reference().Value != guest })].(*simulator.VirtualMachine)
	m.Map().Update(m.Service.Context, off, []types.PropertyChange{{Name: "runtime.powerState", Val: types.VirtualMachinePowerStatePoweredOff}})
	gone := vms[slices.IndexFunc(vms, func(e mo.Entity) bool { return e.Reference().Value != guest && e != mo.Entity(off) })].(*simulator.VirtualMachine)
	watch, err := c.watch(t.Context(), []string{guest, host, off.Self.Value, gone.Self.Value, "vm-9999", guest}, w.pace())
	if err != nil {
		t.Fatal(err)
	}
	m.Map().Remove(m.Service.Context, gone.Self)
	m.Service.FaultInjector().AddRule(&simulator.FaultInjectionRule{MethodName: "QueryPerf", ObjectType: "*", ObjectName: "*", Probability: 1, MaxCount: 1, Enabled: true, FaultType: simulator.FaultTypeInvalidArgument})
	m.Service.FaultInjector().AddRule(&simulator.FaultInjectionRule{MethodName: "QueryDateTime", ObjectType: "*", ObjectName: "*", Probability: 1, Enabled: true, FaultType: simulator.FaultTypeNoPermission})
	w.pass(time.Minute)
	series, left := watch.End(t.Context())
	for _, of := range []string{guest, host} {
		if !slices.ContainsFunc(series, func(s measure.Series) bool { return s.Of == of && len(s.Samples) > 2 }) {
			t.Errorf("nothing of %s", of)
		}
	}
	for fact, why := range map[string]string{
		"counters of vm-9999":      "no guest or host has this id",
		"counters of " + off.Name:  "it is powered off",
		"counters of " + gone.Name: "it no longer exists",
	} {
		if !tells(left, fact, why) {
			t.Errorf("%s (%s) is not reported:%s", fact, why, text(left))
		}
	}
}

// watchesLost verifies that End stops waiting for an unreachable server
// before the context ends.
func watchesLost(t *testing.T, w *simulation, c *Client, m *simulator.Model) {
	guest, host := some(m)
	watch, err := c.watch(t.Context(), []string{guest, host}, w.pace())
	if err != nil {
		t.Fatal(err)
	}
	w.pass(time.Minute)
	watch.perf.collect(t.Context())
	w.pass(time.Minute)
	direct := c.vim.RoundTripper
	defer func() { c.vim.RoundTripper = direct }()
	c.vim.RoundTripper = between{before: func(soap.HasFault) error {
		return &url.Error{Op: "Post", URL: "https://vc.example/sdk", Err: syscall.ECONNREFUSED}
	}}
	series, left := watch.End(t.Context())
	if n := len(find(t, series, guest, "", measure.CounterReady).Samples); n != 3 {
		t.Errorf("%d samples of before", n)
	}
	if !tells(left, "counters of DC0_H0, DC0_H0_VM0", "s: connection refused: nothing listens there") {
		t.Errorf("left:%s", text(left))
	}
}

// watchesHangs verifies that a server which hangs costs only its samples: the
// context ends the wait.
func watchesHangs(t *testing.T, w *simulation, c *Client, m *simulator.Model) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	guest, _ := some(m)
	watch, err := c.watch(t.Context(), []string{guest}, w.pace())
	if err != nil {
		t.Fatal(err)
	}
	w.pass(time.Minute)
	watch.perf.collect(t.Context())
	w.pass(time.Minute)
	hold := make(chan struct{})
	w.on = func(*simulation) { stop(); <-hold }
	series, left := watch.End(ctx)
	close(hold)
	if n := len(find(t, series, guest, "", measure.CounterReady).Samples); n != 3 {
		t.Errorf("%d samples of before", n)
	}
	if !tells(left, "counters of DC0_H0_VM0", "not read in the last ") {
		t.Errorf("left:%s", text(left))
	}
}

// watchesUnwatched verifies that a watch whose context ends before End leaves
// no goroutine and still returns what there is.
func watchesUnwatched(t *testing.T, w *simulation, c *Client, m *simulator.Model) {
	guest, _ := some(m)
	ctx, stop := context.WithCancel(t.Context())
	watch, err := c.watch(ctx, []string{guest}, w.pace())
	if err != nil {
		t.Fatal(err)
	}
	stop()
	<-watch.done
	w.pass(time.Minute)
	if series, _ := watch.End(t.Context()); len(series) == 0 {
		t.Error("nothing is reported")
	}
	if _, err := c.watch(ctx, []string{guest}, w.pace()); err == nil {
		t.Error("it watches in a context that has ended")
	}
}

// TestSimulated reads the simulator's own answers, for a vCenter and for a
// host.
func TestSimulated(t *testing.T) {
	for name, model := range map[string]*simulator.Model{"vCenter": simulator.VPX(), "ESXi": simulator.ESX()} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, simulated(t, model, nil))
			guest, host := some(model)
			pace := usualPace()
			pace.poll = time.Millisecond
			watch, err := c.watch(t.Context(), []string{guest, host}, pace)
			if err != nil {
				t.Fatal(err)
			}
			series, left := watch.End(t.Context())
			t.Logf("%d series, left:%s", len(series), text(left))
			for _, want := range []column{
				{guest, "", measure.CounterReady, ""}, {guest, "0", measure.CounterCoStop, ""}, {guest, "4000", measure.CounterRxPps, ""},
				{guest, "", measure.CounterBalloon, ""}, {host, "0", measure.CounterUsage, ""}, {host, "vmnic0", measure.CounterRxErrors, ""},
			} {
				find(t, series, want.of, want.instance, want.counter)
			}
			if slices.ContainsFunc(series, func(s measure.Series) bool { return s.Of == guest && strings.HasPrefix(s.Instance, "vmnic") }) {
				t.Error("a guest has NICs of its host")
			}
		})
	}
}
