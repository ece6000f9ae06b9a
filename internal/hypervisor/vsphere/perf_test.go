package vsphere

import (
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"thru/internal/measure"
)

// table is a perf with the counters of the table by their rows' numbers, a
// guest of four CPUs and a host.
func table() *perf {
	p := &perf{now: time.Now, byID: map[int32]counter{}, hosts: map[string]*stamper{}, samples: map[column][]sample{}}
	for i, row := range counters() {
		p.byID[int32(i)] = row
	}
	p.entities = []*entity{
		{ref: reference("vm-42"), name: "web1", on: "host-9", cpus: 4},
		{ref: reference("host-9"), name: "esx1", on: "host-9", cpus: 1},
	}
	return p
}

// id returns the number of a counter in table.
func (p *perf) id(t *testing.T, native string) int32 {
	t.Helper()
	for id, row := range p.byID {
		if row.native == native {
			return id
		}
	}
	t.Fatalf("the table has no %s", native)
	return 0
}

// TestUnits verifies the conversion of each unit, for the whole and for a
// part.
func TestUnits(t *testing.T) {
	for _, tc := range []struct {
		of, native, instance, value string
		counter                     string
		want                        float64
	}{
		// 8 s of 4 CPUs times 20 s ready: 10% of each.
		{"vm-42", "cpu.ready.summation", "", "8000", measure.CounterReady, 10},
		{"vm-42", "cpu.ready.summation", "3", "2000", measure.CounterReady, 10},
		{"vm-42", "cpu.readiness.average", "", "1000", measure.CounterReady, 10},
		{"vm-42", "cpu.costop.summation", "", "2400", measure.CounterCoStop, 3},
		{"vm-42", "cpu.maxlimited.summation", "0", "20000", measure.CounterLimited, 100},
		{"vm-42", "cpu.swapwait.summation", "", "0", measure.CounterSwapWait, 0},
		{"vm-42", "cpu.used.summation", "", "64000", measure.CounterUsed, 320}, // the sum of all
		{"vm-42", "cpu.latency.average", "", "117", measure.CounterDelayed, 1.17},
		{"vm-42", "mem.vmmemctl.average", "", "1048576", measure.CounterBalloon, 1 << 30},
		{"vm-42", "mem.swapinRate.average", "", "3", measure.CounterSwapIn, 3072},
		{"vm-42", "mem.latency.average", "", "250", measure.CounterMemWait, 2.5},
		{"vm-42", "net.received.average", "4000", "125000", measure.CounterRxBps, 1.024e9},
		{"vm-42", "net.packetsTx.summation", "", "20000", measure.CounterTxPps, 1000},
		{"vm-42", "net.droppedRx.summation", "4000", "17", measure.CounterRxDropped, 17},
		{"host-9", "cpu.usage.average", "", "9512", measure.CounterUsage, 95.12},
		{"host-9", "mem.swapused.average", "", "1", measure.CounterSwapped, 1024},
		{"host-9", "net.errorsRx.summation", "vmnic2", "5", measure.CounterRxErrors, 5},
	} {
		p := table()
		told := told(tc.of, "20,2026-03-01T12:00:20Z", p.id(t, tc.native), tc.instance, tc.value)
		p.keep(told)
		end := time.Date(2026, 3, 1, 12, 1, 0, 0, time.UTC)
		series := p.series(end.Add(-time.Minute), end)
		if len(series) != 1 || len(series[0].Samples) != 1 {
			t.Errorf("%s: %+v", tc.native, series)
			continue
		}
		s := series[0]
		if s.Of != tc.of || s.Instance != tc.instance || s.Counter != tc.counter || s.Native != tc.native || s.Samples[0].Value != tc.want {
			t.Errorf("%s %q: %+v, want %s %v", tc.native, tc.instance, s, tc.counter, tc.want)
		}
	}
}

func told(of, info string, id int32, instance, value string) *types.PerfEntityMetricCSV {
	return &types.PerfEntityMetricCSV{
		PerfEntityMetricBase: types.PerfEntityMetricBase{Entity: reference(of)},
		SampleInfoCSV:        info,
		Value: []types.PerfMetricSeriesCSV{{
			PerfMetricSeries: types.PerfMetricSeries{Id: types.PerfMetricId{CounterId: id, Instance: instance}}, Value: value,
		}},
	}
}

// TestKeep verifies that repeated samples are kept once, that a missing value
// is absent, and that a sample without a time is refused.
func TestKeep(t *testing.T) {
	p := table()
	ready := p.id(t, "cpu.ready.summation")
	const three = "20,2026-03-01T12:00:20Z,20,2026-03-01T12:00:40Z,20,2026-03-01T12:01:00Z"
	for _, x := range []*types.PerfEntityMetricCSV{
		told("vm-42", three, ready, "0", "1,-1,3"),
		told("vm-42", "20,2026-03-01T12:01:20Z,"+three, ready, "0", "4,1,-1,3"), // newest first, too
		told("vm-42", three, 9999, "0", "1,2,3"),                                // a counter that is not in the table
		told("vm-77", three, ready, "0", "1,2,3"),                               // not requested
		told("vm-42", "", ready, "0", ""),
	} {
		if p.keep(x); p.entities[0].odd != nil {
			t.Error(p.entities[0].odd)
		}
	}
	for _, x := range []*types.PerfEntityMetricCSV{
		told("vm-42", three, ready, "0", "1,2"),
		told("vm-42", three, ready, "0", "1,2,x"),
		told("vm-42", "20", ready, "0", "1"),
		told("vm-42", "0,2026-03-01T12:00:20Z", ready, "0", "1"),
		told("vm-42", "20,yesterday", ready, "0", "1"),
	} {
		p.entities[0].odd = nil
		if p.keep(x); p.entities[0].odd == nil || !strings.HasPrefix(p.missing(p.entities[0], time.Time{}), "its answer cannot be read fully: ") {
			t.Errorf("taken: %+v", x)
		}
	}
	both := told("vm-42", three, ready, "1", "1,2") // good samples among odd ones
	both.Value = append(both.Value, told("vm-42", three, ready, "0", "1,-1,3").Value...)
	p.keep(both)
	end := time.Date(2026, 3, 1, 12, 2, 0, 0, time.UTC)
	series := p.series(end.Add(-5*time.Minute), end)
	if len(series) != 1 {
		t.Fatalf("%+v", series)
	}
	var got []string
	for _, r := range series[0].Samples {
		got = append(got, r.EndedAt.Format("04:05"))
	}
	if !slices.Equal(got, []string{"00:20", "01:00", "01:20"}) {
		t.Errorf("samples end at %v", got)
	}
	if !p.entities[0].upTo.Equal(time.Date(2026, 3, 1, 12, 1, 0, 0, time.UTC)) {
		t.Errorf("read up to %v", p.entities[0].upTo)
	}
}

// TestChoose verifies which offered counters are read: the first of two names
// of one figure, and only a guest's own adapters.
func TestChoose(t *testing.T) {
	p := table()
	offer := func(pairs ...string) (ids []types.PerfMetricId) {
		for _, pair := range pairs {
			native, instance, _ := strings.Cut(pair, "@")
			ids = append(ids, types.PerfMetricId{CounterId: p.id(t, native), Instance: instance})
		}
		return append(ids, types.PerfMetricId{CounterId: 10042}) // unknown
	}
	for _, tc := range []struct {
		kind          string
		offered, want []string
	}{
		{guestKind, []string{"cpu.readiness.average@", "cpu.ready.summation@", "cpu.ready.summation@0"}, []string{"cpu.ready.summation@", "cpu.ready.summation@0"}},
		{guestKind, []string{"cpu.readiness.average@", "cpu.readiness.average@0"}, []string{"cpu.readiness.average@", "cpu.readiness.average@0"}},
		{guestKind, []string{"net.received.average@4000", "net.received.average@vmnic0", "net.received.average@", "net.bytesRx.average@4000"}, []string{"net.received.average@4000", "net.received.average@"}},
		{hostKind, []string{"net.received.average@vmnic0", "net.received.average@4000", "net.errorsRx.summation@vmnic0"}, []string{"net.received.average@vmnic0", "net.errorsRx.summation@vmnic0"}},
		{hostKind, []string{"cpu.ready.summation@", "cpu.usage.average@17", "cpu.usage.average@odd", "mem.swapused.average@"}, []string{"cpu.usage.average@17", "mem.swapused.average@"}},
		{guestKind, []string{"net.errorsRx.summation@4000", "mem.consumed.average@x"}, nil},
	} {
		var got []string
		for _, m := range p.choose(tc.kind, offer(tc.offered...)) {
			got = append(got, p.byID[m.CounterId].native+"@"+m.Instance)
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s of %v: %v, want %v", tc.kind, tc.offered, got, tc.want)
		}
	}
}

// TestCounters verifies that the table has each counter once, and in the unit
// of its measure name.
func TestCounters(t *testing.T) {
	seen := map[string]bool{}
	for _, row := range counters() {
		if seen[row.native] {
			t.Errorf("%s is there twice", row.native)
		}
		seen[row.native] = true
		ends := map[types.PerformanceManagerUnit][]string{
			types.PerformanceManagerUnitMillisecond:        {"_pct"},
			types.PerformanceManagerUnitPercent:            {"_pct"},
			types.PerformanceManagerUnitKiloBytes:          {"_bytes"},
			types.PerformanceManagerUnitKiloBytesPerSecond: {"_bps", "_bytes_s"},
			types.PerformanceManagerUnitNumber:             {"_packets", "_packets_s"},
		}[row.unit]
		if !slices.ContainsFunc(ends, func(end string) bool { return strings.HasSuffix(row.ours, end) }) {
			t.Errorf("%s in %s becomes %s", row.native, row.unit, row.ours)
		}
	}
}

// TestClocks verifies the offset of a clock reading, and its error limit.
func TestClocks(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 1000, time.UTC)
	// Two round trips, of 800 and of 100 ms; the clock is 5 s ahead of the middle.
	ours := []time.Duration{0, 800 * time.Millisecond, time.Second, 1100 * time.Millisecond}
	theirs := []time.Duration{5400 * time.Millisecond, 6050 * time.Millisecond}
	c, err := readClock(func() time.Time { d := ours[0]; ours = ours[1:]; return at.Add(d) },
		func() (time.Time, error) { d := theirs[0]; theirs = theirs[1:]; return at.Add(d), nil })
	if err != nil || c.ahead != 5*time.Second || c.bound != 50*time.Millisecond {
		t.Errorf("%+v, %v", c, err)
	}
	still := func() time.Time { return at.Truncate(time.Second) }
	if c, err := readClock(still, func() (time.Time, error) { return still(), nil }); err != nil || c.ahead != 500*time.Millisecond || c.bound != 500*time.Millisecond {
		t.Errorf("in whole seconds: %+v, %v", c, err)
	}
	no := errors.New("no")
	if _, err := readClock(still, func() (time.Time, error) { return at, no }); !errors.Is(err, no) {
		t.Errorf("%v", err)
	}
	for _, tc := range []struct {
		c    clock
		want string
	}{
		{clock{ahead: 900 * time.Millisecond}, ""},
		{clock{ahead: 2 * time.Second, bound: 1500 * time.Millisecond}, ""}, // within the error limit
		{clock{ahead: 4230 * time.Millisecond, bound: 120 * time.Millisecond}, "it is 4.2 s (±0.1 s) ahead of the local clock: corrected"},
		{clock{ahead: -time.Hour}, "it is 3600 s (±0.0 s) behind the local clock: corrected"},
	} {
		if n, ok := tc.c.words("esx1", "corrected"); n.Why != tc.want || ok != (tc.want != "") {
			t.Errorf("%+v: %q", tc.c, n.Why)
		}
	}
	if n, ok := (clock{ahead: 9 * time.Second}).stepped(clock{ahead: -time.Second}, "esx1"); !ok || !strings.Contains(n.Why, "it moved by 10 s") {
		t.Errorf("%q", n.Why)
	}
	if _, ok := (clock{ahead: 9 * time.Second}).stepped(clock{ahead: 8500 * time.Millisecond}, "esx1"); ok {
		t.Error("half a second is a step")
	}
}

// FuzzCSV verifies that every value of a server has a time or is refused.
func FuzzCSV(f *testing.F) {
	f.Add("20,2026-03-01T12:00:20Z,20,2026-03-01T12:00:40.5+02:00", "1,-1")
	f.Add("", "")
	f.Add("20,", "9223372036854775808")
	f.Add(",,,", "1,,")
	f.Fuzz(func(t *testing.T, info, value string) {
		p := table()
		for id := range p.byID {
			p.keep(told("vm-42", info, id, "", value))
		}
		for col, all := range p.samples {
			for i, s := range all {
				if s.every <= 0 || s.value < 0 || s.value != s.value || i > 0 && s.ended.Before(all[i-1].ended) {
					t.Fatalf("%v: %+v", col, all)
				}
			}
		}
	})
}

// TestBusiest verifies that the busiest CPUs of a host in each part of a
// watch are kept, that others do not come back, and that it is reported.
func TestBusiest(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	p := table()
	usage := p.byID[p.id(t, "cpu.usage.average")]
	guest, host := p.entities[0], p.entities[1]
	tell := func(e *entity, i, cpu int, v float64) {
		p.add(e, usage, strconv.Itoa(cpu), sample{ended: at.Add(time.Duration(i) * 20 * time.Second), on: "host-9", every: 20 * time.Second, value: v})
	}
	count := func(e *entity, i int) (n int) {
		for col, all := range p.samples {
			for _, s := range all {
				if col.of == e.ref.Value && s.ended.Equal(at.Add(time.Duration(i)*20*time.Second)) {
					n++
				}
			}
		}
		return n
	}
	for cpu := range 256 {
		tell(host, 1, cpu, float64(min(cpu, 90))) // many are equally busy
		tell(guest, 1, cpu, 1)
	}
	tell(host, 1, 7, 99) // known already
	p.prune()
	for cpu := range 256 {
		tell(host, 1, cpu, 50) // told again
		tell(host, 2, cpu, float64(256-cpu))
	}
	p.prune()
	if count(host, 1) != busiestCPUs || count(host, 2) != busiestCPUs || count(guest, 1) != 256 || p.kept.samples != 256+2*busiestCPUs {
		t.Errorf("%d and %d samples of the host, %d of the guest, %d in all", count(host, 1), count(host, 2), count(guest, 1), p.kept.samples)
	}
	for cpu, want := range map[string]int{"0": 1, "31": 1, "32": 0, "90": 1, "255": 0} {
		if got := len(p.samples[column{"host-9", cpu, usage.ours, usage.native}]); got != want {
			t.Errorf("CPU %s: %d samples, want %d", cpu, got, want)
		}
	}
	if left := pruned(p.entities); len(left) != 1 || left[0].Fact != "cpu.usage_pct of esx1" || !strings.Contains(left[0].Why, "of its 256 CPUs, the 32") {
		t.Errorf("%+v", left)
	}
}

// TestKeptBounded verifies that a watch of any length keeps what fits in a
// result: single CPUs are left out first, and that is reported.
func TestKeptBounded(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	p := table()
	p.now, p.kept.most = func() time.Time { return at }, 100
	ready := p.byID[p.id(t, "cpu.ready.summation")]
	for i := range 1000 {
		s := sample{ended: at.Add(time.Duration(i) * 20 * time.Second), on: "host-9"}
		p.add(p.entities[0], ready, "", s)
		p.add(p.entities[0], ready, "3", s)
	}
	whole, single := len(p.samples[column{"vm-42", "", ready.ours, ready.native}]), len(p.samples[column{"vm-42", "3", ready.ours, ready.native}])
	if whole != 150 || single != 50 {
		t.Errorf("%d samples of the guest, %d of a CPU", whole, single)
	}
	if left := p.kept.words("vc"); len(left) != 2 || left[0].Fact != "counters of vc since 2026-03-01 12:00:00" || !strings.Contains(left[0].Why, "single CPUs") || !strings.Contains(left[1].Why, "further samples are omitted") {
		t.Errorf("%+v", left)
	}
}

// TestParted verifies that many entities, and many values, are split into
// several calls, none too large and each entity once.
func TestParted(t *testing.T) {
	for _, tc := range []struct {
		entities, metrics, samples int
		want                       []int
	}{
		{0, 10, 10, nil},
		{50, 10, 10, []int{50}},
		{120, 10, 10, []int{50, 50, 20}},
		{5, 300, 180, []int{1, 1, 1, 1, 1}},
		{5, 100, 180, []int{5}},
		{2, 2000, 180, []int{1, 1}}, // one that is too large is asked for alone
	} {
		specs := make([]types.PerfQuerySpec, tc.entities)
		for i := range specs {
			specs[i] = types.PerfQuerySpec{Entity: reference("vm-" + strconv.Itoa(i)), MetricId: make([]types.PerfMetricId, tc.metrics), MaxSample: int32(tc.samples)}
		}
		var got []int
		next := 0
		for _, part := range parted(specs) {
			got = append(got, len(part))
			for _, s := range part {
				if s.Entity.Value != "vm-"+strconv.Itoa(next) {
					t.Fatalf("%+v: %s is not the next", tc, s.Entity.Value)
				}
				next++
			}
		}
		if !slices.Equal(got, tc.want) || next != tc.entities {
			t.Errorf("%+v: parts of %v", tc, got)
		}
	}
}

// TestSpec verifies that each query requests some samples and no more than a
// host keeps, whatever its clock.
func TestSpec(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	p := table()
	p.now, p.every = func() time.Time { return now }, map[string]int32{guestKind: 20}
	for since, want := range map[time.Duration]int32{0: 4, time.Minute: 7, -10 * time.Minute: 4, 200 * 365 * 24 * time.Hour: mostSamples} {
		if got := p.spec(&entity{ref: reference("vm-42"), upTo: now.Add(-since)}).MaxSample; got != want {
			t.Errorf("%s since the last: %d samples, want %d", since, got, want)
		}
	}
}

// TestMissing verifies the report on an entity that was not read until the
// end.
func TestMissing(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	p := table()
	p.now = func() time.Time { return now }
	p.c = &Client{vim: &vim25.Client{ServiceContent: types.ServiceContent{About: types.AboutInfo{ApiType: "VirtualCenter"}}}}
	asked := []types.PerfMetricId{{CounterId: 1}}
	lost := soap.WrapVimFault(new(types.NotAuthenticated))
	for _, tc := range []struct {
		e    entity
		want string
	}{
		{entity{asked: asked, read: true, upTo: now}, ""},
		{entity{asked: asked, read: true, upTo: now.Add(-38 * time.Second)}, "the last sample is 38 s old: vCenter is slower than the test"},
		{entity{asked: asked, upTo: now.Add(-time.Minute)}, "no sample arrived: vCenter is slower than the test"},
		{entity{off: "it is powered off", err: lost}, "it is powered off"},
		{entity{}, "it offers no counter that thru knows"},
		{entity{err: lost}, "not read: the session was lost"},
		{entity{asked: asked, read: true, upTo: now.Add(-90 * time.Second), err: context.Canceled}, "not read in the last 90 s: the reading was interrupted"},
		{entity{asked: asked, read: true, upTo: now, err: lost}, ""}, // the end was reached before
	} {
		if got := p.missing(&tc.e, now); got != tc.want {
			t.Errorf("%+v: %q, want %q", tc.e, got, tc.want)
		}
	}
	p.c.vim.ServiceContent.About.ApiType = "HostAgent"
	if got := p.slow(); got != "the host is slower than the test" {
		t.Error(got)
	}
}

// TestGaps verifies that a beginning without samples, and missing counters,
// are reported; the same gap of many entities once.
func TestGaps(t *testing.T) {
	p := table()
	begin := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	web, esx := p.entities[0], p.entities[1]
	web.read, esx.read = true, true
	web.asked = []types.PerfMetricId{{CounterId: p.id(t, "cpu.costop.summation")}}
	read := []measure.Series{{Of: "vm-42", Counter: measure.CounterReady, EveryNs: int64(20 * time.Second), Samples: []measure.Reading{{EndedAt: begin.Add(time.Minute)}}}}
	if got := unbegun(web, begin, read); got != "no sample of the first 40 s" {
		t.Errorf("%q", got)
	}
	if got := unbegun(web, begin.Add(40*time.Second), read); got != "" {
		t.Errorf("%q", got)
	}
	left := p.absent(read)
	if len(left) != 2 || left[0].Fact != "counters of web1" || !strings.HasPrefix(left[0].Why, "not offered: cpu.maxlimited.summation, ") ||
		!strings.HasSuffix(left[0].Why, "; without a value in this time: cpu.costop.summation") || strings.Contains(left[0].Why, "readiness") ||
		left[1] != (measure.NotChecked{Fact: "counters of esx1", Why: "no sample is within the test"}) {
		t.Errorf("%+v", left)
	}
	var many []*entity
	for i := range 7 {
		many = append(many, &entity{name: "vm" + strconv.Itoa(i)})
	}
	if got := grouped("counters of ", many, func(*entity) string { return "late" }); len(got) != 1 || got[0].Fact != "counters of vm0, vm1, vm2, vm3 and 3 more" {
		t.Errorf("%+v", got)
	}
}

// TestReference holds the document against the table.
func TestReference(t *testing.T) {
	text, err := os.ReadFile("../../../docs/counters.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range counters() {
		has := func(line string) bool {
			return strings.Contains(line, "| `"+row.ours+"` |") && strings.Contains(line, "`"+row.native+"`")
		}
		if !slices.ContainsFunc(strings.Split(string(text), "\n"), has) {
			t.Errorf("docs/counters.md does not say that %s comes of %s", row.ours, row.native)
		}
	}
}
