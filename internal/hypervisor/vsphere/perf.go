package vsphere

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// Bounds of one query: entities, and values asked of all of them. A host
// keeps its samples for an hour.
const (
	queryEntities = 50
	queryValues   = 100_000
	mostSamples   = 180
)

// perf reads counters of guests and hosts, as their hosts have sampled them. Its
// methods are called by one goroutine at a time.
type perf struct {
	c   *Client
	now func() time.Time

	every    map[string]int32  // by kind: seconds that a sample covers
	byID     map[int32]counter // what is read, by the source's number for it
	entities []*entity
	unknown  []string            // ids that there are no entities of
	hosts    map[string]*stamper // by id
	source   stamper
	samples  map[column][]sample
	kept     kept
}

// entity is a guest or a host that is watched.
type entity struct {
	ref   types.ManagedObjectReference
	name  string
	first string // id of the host that it was on when the watch began
	on    string // id of the host that it is on, or is
	cpus  int    // virtual ones
	off   string // why there is nothing to read now
	asked []types.PerfMetricId
	upTo  time.Time // that it was read, by our clock
	read  bool      // a sample of it came
	err   error     // of the last try to read it
	odd   error     // in what it told

	single int       // CPUs of a host that samples were told of
	pruned time.Time // sample up to which the busiest of them were chosen
}

// column is one counter of one part of an entity.
type column struct {
	of, instance, counter, native string
}

// sample is a value as it was told.
type sample struct {
	ended time.Time // by the clock of the host that it was on
	on    string    // id of that host
	every time.Duration
	value float64
}

// newPerf finds what can be read of the entities of those ids.
func newPerf(ctx context.Context, c *Client, ids []string, now func() time.Time) (*perf, error) {
	p := &perf{c: c, now: now, every: map[string]int32{guestKind: 20, hostKind: 20}, hosts: map[string]*stamper{}, samples: map[column][]sample{}}
	if c.vim.ServiceContent.PerfManager == nil {
		return nil, errors.New("it has no counters (PerformanceManager)")
	}
	begun := now()
	for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
		p.entities = append(p.entities, &entity{ref: reference(id), upTo: begun})
	}
	if err := p.look(ctx); err != nil {
		return nil, err
	}
	p.entities = slices.DeleteFunc(p.entities, func(e *entity) bool {
		if e.name == "" {
			p.unknown = append(p.unknown, e.ref.Value)
		}
		return e.name == ""
	})
	if err := p.number(ctx); err != nil {
		return nil, fmt.Errorf("asking which counters there are: %w", err)
	}
	if err := p.intervals(ctx); err != nil {
		return nil, fmt.Errorf("asking how often counters are sampled: %w", err)
	}
	p.ask(ctx)
	p.readClocks(ctx)
	return p, ctx.Err()
}

// number learns the source's numbers for the counters of the table. One whose
// unit is another than the table's is not read: it would be a wrong figure.
func (p *perf) number(ctx context.Context) error {
	found, err := p.c.properties(ctx, []types.ManagedObjectReference{p.manager()}, "perfCounter")
	if err != nil {
		return err
	}
	rows := map[string]counter{}
	for _, row := range counters() {
		rows[row.native] = row
	}
	p.byID = map[int32]counter{}
	for _, set := range found[p.manager()] {
		infos, _ := set.(types.ArrayOfPerfCounterInfo)
		for _, info := range infos.PerfCounterInfo {
			if info.GroupInfo == nil || info.NameInfo == nil || info.UnitInfo == nil {
				continue
			}
			row, is := rows[info.Name()]
			if is && info.UnitInfo.GetElementDescription().Key == string(row.unit) {
				p.byID[info.Key] = row
			}
		}
	}
	return nil
}

// intervals asks how often guests and hosts are sampled. An ESXi host does it
// every 20 s; that is taken where no object tells.
func (p *perf) intervals(ctx context.Context) error {
	asked := map[string]bool{}
	for _, e := range p.entities {
		if e.off != "" || asked[e.ref.Type] {
			continue
		}
		told, err := ask(ctx, p.c, func(ctx context.Context, vc soap.RoundTripper) (*types.QueryPerfProviderSummaryResponse, error) {
			return methods.QueryPerfProviderSummary(ctx, vc, &types.QueryPerfProviderSummary{This: p.manager(), Entity: e.ref})
		})
		if err != nil && faultOf(err) == nil {
			return err
		}
		if err == nil && told.Returnval.CurrentSupported && told.Returnval.RefreshRate > 0 {
			p.every[e.ref.Type], asked[e.ref.Type] = told.Returnval.RefreshRate, true
		}
	}
	return nil
}

// ask chooses what is read of each entity that has counters and was not asked yet.
func (p *perf) ask(ctx context.Context) {
	for _, e := range p.entities {
		if e.off != "" || len(e.asked) > 0 {
			continue
		}
		var told *types.QueryAvailablePerfMetricResponse
		told, e.err = ask(ctx, p.c, func(ctx context.Context, vc soap.RoundTripper) (*types.QueryAvailablePerfMetricResponse, error) {
			return methods.QueryAvailablePerfMetric(ctx, vc, &types.QueryAvailablePerfMetric{This: p.manager(), Entity: e.ref, IntervalId: p.every[e.ref.Type]})
		})
		if e.err == nil {
			e.asked = p.choose(e.ref.Type, told.Returnval)
		}
	}
}

// manager is who has the counters.
func (p *perf) manager() types.ManagedObjectReference { return *p.c.vim.ServiceContent.PerfManager }

// choose keeps what the table knows; of two counters that become the same one,
// that which the table has first.
func (p *perf) choose(kind string, told []types.PerfMetricId) []types.PerfMetricId {
	first := map[string]string{}
	for _, row := range counters() {
		offered := func(m types.PerfMetricId) bool { return p.byID[m.CounterId].native == row.native }
		if _, has := first[row.ours]; !has && row.of(kind) && slices.ContainsFunc(told, offered) {
			first[row.ours] = row.native
		}
	}
	var chosen []types.PerfMetricId
	for _, m := range told {
		row, known := p.byID[m.CounterId]
		if known && row.of(kind) && first[row.ours] == row.native && row.takes(kind, m.Instance) {
			chosen = append(chosen, m)
		}
	}
	return chosen
}

// collect reads what was sampled since the last time. What could not be read
// stands in the entities and is asked for again the next time.
func (p *perf) collect(ctx context.Context) {
	if err := p.look(ctx); err != nil {
		for _, e := range p.entities {
			e.err = err
		}
		return
	}
	p.ask(ctx)
	var specs []types.PerfQuerySpec
	for _, e := range p.entities {
		if e.off == "" && len(e.asked) > 0 {
			specs = append(specs, p.spec(e))
		}
	}
	for _, part := range parted(specs) {
		p.query(ctx, part)
	}
}

// parted makes queries that are not too large of what is asked.
func parted(specs []types.PerfQuerySpec) (parts [][]types.PerfQuerySpec) {
	values := 0
	for i, s := range specs {
		n := len(s.MetricId) * int(s.MaxSample)
		if i == 0 || len(parts[len(parts)-1]) == queryEntities || values+n > queryValues {
			parts, values = append(parts, nil), 0
		}
		last := len(parts) - 1
		parts[last], values = append(parts[last], s), values+n
	}
	return parts
}

// spec asks for the last samples of an entity, so many that none is missing
// since the last time. Times are not named: the server would compare them with
// the clock of a host, which may be another one.
func (p *perf) spec(e *entity) types.PerfQuerySpec {
	every := p.every[e.ref.Type]
	n := max(0, p.now().Sub(e.upTo)/(time.Duration(every)*time.Second)) + 4
	return types.PerfQuerySpec{
		Entity: e.ref, MetricId: e.asked, IntervalId: every, MaxSample: int32(min(n, mostSamples)),
		Format: string(types.PerfFormatCsv),
	}
}

// query reads a few entities in one call; where the server refuses that, one by
// one, so that one which is gone takes no other along.
func (p *perf) query(ctx context.Context, specs []types.PerfQuerySpec) {
	told, err := ask(ctx, p.c, func(ctx context.Context, vc soap.RoundTripper) (*types.QueryPerfResponse, error) {
		return methods.QueryPerf(ctx, vc, &types.QueryPerf{This: p.manager(), QuerySpec: specs})
	})
	if err != nil && faultOf(err) != nil && len(specs) > 1 {
		for i := range specs {
			p.query(ctx, specs[i:i+1])
		}
		return
	}
	for _, s := range specs {
		p.entity(s.Entity).err = err
	}
	if err != nil {
		return
	}
	for _, of := range told.Returnval {
		if of, is := of.(*types.PerfEntityMetricCSV); is {
			p.keep(of)
		}
	}
}

// entity is the one of a reference, or nil.
func (p *perf) entity(ref types.ManagedObjectReference) *entity {
	i := slices.IndexFunc(p.entities, func(e *entity) bool { return e.ref.Value == ref.Value })
	if i < 0 {
		return nil
	}
	return p.entities[i]
}

// keep adds the samples of an entity that were not there yet. What cannot be
// read is left out, and said in the end.
func (p *perf) keep(told *types.PerfEntityMetricCSV) {
	e := p.entity(told.Entity)
	if e == nil {
		return
	}
	at, err := readInstants(told.SampleInfoCSV)
	if err != nil {
		e.odd = err
		return
	}
	var newest time.Time
	for _, series := range told.Value {
		row, known := p.byID[series.Id.CounterId]
		if !known {
			continue
		}
		values, err := readValues(series, len(at))
		if err != nil {
			e.odd = fmt.Errorf("%s: %w", row.native, err)
			continue
		}
		for i, v := range values {
			if v < 0 {
				continue
			}
			s := sample{ended: at[i].ended, on: e.on, every: time.Duration(at[i].seconds) * time.Second}
			s.value = row.value(v, series.Id.Instance, float64(at[i].seconds), e.cpus)
			p.add(e, row, series.Id.Instance, s)
			if s.ended.After(newest) {
				newest = s.ended
			}
		}
	}
	if !newest.IsZero() {
		p.reached(e, newest)
	}
}
