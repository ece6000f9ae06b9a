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

// Limits of one query: entities, and values for all of them. A host keeps its
// samples for an hour.
const (
	queryEntities = 50
	queryValues   = 100_000
	mostSamples   = 180
)

// perf reads the sampled counters of guests and hosts. Its methods are called
// by one goroutine at a time.
type perf struct {
	c   *Client
	now func() time.Time

	every    map[string]int32  // by kind: seconds that a sample covers
	byID     map[int32]counter // counters to read, by the source's number
	entities []*entity
	unknown  []string            // ids without an entity
	hosts    map[string]*stamper // by id
	source   stamper
	samples  map[column][]sample
	kept     kept
}

// entity is a watched guest or host.
type entity struct {
	ref   types.ManagedObjectReference
	name  string
	first string // id of its host when the watch began
	on    string // id of its present host, or its own
	cpus  int    // virtual ones
	off   string // why there is nothing to read now
	asked []types.PerfMetricId
	upTo  time.Time // when it was read, by our clock
	read  bool      // a sample of it was received
	err   error     // of the last attempt to read it
	odd   error     // an error in its data

	single int       // CPUs of a host that have samples
	pruned time.Time // sample up to which pruning has chosen the busiest CPUs
}

// column is one counter of one part of an entity.
type column struct {
	of, instance, counter, native string
}

// sample is a value as received.
type sample struct {
	ended time.Time // by the clock of its host
	on    string    // id of that host
	every time.Duration
	value float64
}

// newPerf finds the readable counters of the entities with these ids.
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
		return nil, fmt.Errorf("listing the counters: %w", err)
	}
	if err := p.intervals(ctx); err != nil {
		return nil, fmt.Errorf("reading the sampling intervals: %w", err)
	}
	p.ask(ctx)
	p.readClocks(ctx)
	return p, ctx.Err()
}

// number finds the source's numbers for the counters of the table. It skips a
// counter with another unit than the table's: the value would be wrong.
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

// intervals reads the sampling intervals of guests and hosts. An ESXi host
// samples every 20 s, which is the default where no object reports it.
func (p *perf) intervals(ctx context.Context) error {
	asked := map[string]bool{}
	for _, e := range p.entities {
		if e.off != "" || asked[e.ref.Type] {
			continue
		}
		reply, err := ask(ctx, p.c, func(ctx context.Context, vc soap.RoundTripper) (*types.QueryPerfProviderSummaryResponse, error) {
			return methods.QueryPerfProviderSummary(ctx, vc, &types.QueryPerfProviderSummary{This: p.manager(), Entity: e.ref})
		})
		if err != nil && faultOf(err) == nil {
			return err
		}
		if err == nil && reply.Returnval.CurrentSupported && reply.Returnval.RefreshRate > 0 {
			p.every[e.ref.Type], asked[e.ref.Type] = reply.Returnval.RefreshRate, true
		}
	}
	return nil
}

// ask chooses the counters of each entity that has any and was not asked yet.
func (p *perf) ask(ctx context.Context) {
	for _, e := range p.entities {
		if e.off != "" || len(e.asked) > 0 {
			continue
		}
		var reply *types.QueryAvailablePerfMetricResponse
		reply, e.err = ask(ctx, p.c, func(ctx context.Context, vc soap.RoundTripper) (*types.QueryAvailablePerfMetricResponse, error) {
			return methods.QueryAvailablePerfMetric(ctx, vc, &types.QueryAvailablePerfMetric{This: p.manager(), Entity: e.ref, IntervalId: p.every[e.ref.Type]})
		})
		if e.err == nil {
			e.asked = p.choose(e.ref.Type, reply.Returnval)
		}
	}
}

// manager returns the object that has the counters.
func (p *perf) manager() types.ManagedObjectReference { return *p.c.vim.ServiceContent.PerfManager }

// choose returns the counters in the table; of two counters with the same
// meaning, the one that is first in the table.
func (p *perf) choose(kind string, reply []types.PerfMetricId) []types.PerfMetricId {
	first := map[string]string{}
	for _, row := range counters() {
		offered := func(m types.PerfMetricId) bool { return p.byID[m.CounterId].native == row.native }
		if _, has := first[row.ours]; !has && row.of(kind) && slices.ContainsFunc(reply, offered) {
			first[row.ours] = row.native
		}
	}
	var chosen []types.PerfMetricId
	for _, m := range reply {
		row, known := p.byID[m.CounterId]
		if known && row.of(kind) && first[row.ours] == row.native && row.takes(kind, m.Instance) {
			chosen = append(chosen, m)
		}
	}
	return chosen
}

// collect reads the samples since the last time. An entity keeps the error of
// a failed reading, and the next call reads it again.
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

// parted splits the requests into queries of limited size.
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

// spec requests the last samples of an entity, as many as it takes to miss
// none since the last time. It gives no times: the server would compare them
// with the clock of a host, which may differ.
func (p *perf) spec(e *entity) types.PerfQuerySpec {
	every := p.every[e.ref.Type]
	n := max(0, p.now().Sub(e.upTo)/(time.Duration(every)*time.Second)) + 4
	return types.PerfQuerySpec{
		Entity: e.ref, MetricId: e.asked, IntervalId: every, MaxSample: int32(min(n, mostSamples)),
		Format: string(types.PerfFormatCsv),
	}
}

// query reads a few entities in one call; where the server refuses that, one
// by one, so that a missing entity does not affect others.
func (p *perf) query(ctx context.Context, specs []types.PerfQuerySpec) {
	reply, err := ask(ctx, p.c, func(ctx context.Context, vc soap.RoundTripper) (*types.QueryPerfResponse, error) {
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
	for _, of := range reply.Returnval {
		if of, is := of.(*types.PerfEntityMetricCSV); is {
			p.keep(of)
		}
	}
}

// entity returns the entity of a reference, or nil.
func (p *perf) entity(ref types.ManagedObjectReference) *entity {
	i := slices.IndexFunc(p.entities, func(e *entity) bool { return e.ref.Value == ref.Value })
	if i < 0 {
		return nil
	}
	return p.entities[i]
}

// keep adds the new samples of an entity. Unreadable samples are left out,
// and reported at the end.
func (p *perf) keep(reply *types.PerfEntityMetricCSV) {
	e := p.entity(reply.Entity)
	if e == nil {
		return
	}
	at, err := readInstants(reply.SampleInfoCSV)
	if err != nil {
		e.odd = err
		return
	}
	var newest time.Time
	for _, series := range reply.Value {
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
