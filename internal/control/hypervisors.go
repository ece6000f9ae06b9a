package control

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"thru/internal/fault"
	"thru/internal/hypervisor"
	"thru/internal/measure"
	"thru/internal/place"
	"thru/internal/unit"
)

// usualLimits returns the time limits for hypervisors: a vCenter reports an
// interval of 20 s some 20 s later (vSphere API, real-time counters), and lists thousands of machines within seconds.
func usualLimits() hypervisorLimits {
	return hypervisorLimits{inventory: 30 * time.Second, watch: 15 * time.Second, last: 45 * time.Second, grace: 2 * time.Second}
}

// hypervisorRun is the state of all hypervisor requests of one run.
type hypervisorRun struct {
	hypervisorLimits
	ctx      context.Context // context of the requests before the run; an interrupt ends it
	stop     context.CancelFunc
	sources  []*hypervisorSource
	subjects []place.Subject
	began    time.Time // when the watches began
}

// hypervisorSource is one source, with what it has reported.
type hypervisorSource struct {
	hypervisor.Source
	read      chan struct{} // closed when the inventory was read or failed
	inventory measure.Inventory
	err       error
	watch     hypervisor.Watch
	unwatch   context.CancelFunc // ends the reads of a watch
}

// findGuests starts to read the inventories for the end points of the document, in
// parallel with the other steps before the traffic; placeEnds waits for them.
func (r *Runner) findGuests(ctx context.Context, doc *measure.Document, routes map[string]*measure.Route) {
	if len(r.Hypervisors) == 0 {
		return
	}
	b := &hypervisorRun{hypervisorLimits: cmp.Or(r.hypervisorLimits, usualLimits())}
	b.inventory = cmp.Or(r.PlaceWithin, b.inventory)
	b.ctx, b.stop = context.WithCancel(ctx)
	for _, e := range doc.EndPoints {
		b.subjects = append(b.subjects, place.Of(e, routes[e.Name], r.Ends[e.Name].reachedAt()))
	}
	guests, hosts := place.Wants(b.subjects)
	for _, source := range r.Hypervisors {
		s := &hypervisorSource{Source: source, read: make(chan struct{})}
		b.sources = append(b.sources, s)
		go func() {
			defer close(s.read)
			s.inventory, s.err = within(b.ctx, b.inventory, b.grace, func(ctx context.Context) (measure.Inventory, error) {
				return s.Inventory(ctx, guests, hosts)
			})
		}()
	}
	r.hypervisorRun = b
}

// reachedAt returns the addresses by which others reach an end point.
func (e *EndPoint) reachedAt() []string {
	all := slices.Clone(e.DataHosts)
	if host, _, err := net.SplitHostPort(e.Addr); err == nil {
		all = append(all, host)
	}
	return all
}

// within makes a call with a time limit of d.
func within[T any](ctx context.Context, d, grace time.Duration, call func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, d, tooLong(d))
	defer cancel()
	return await(ctx, grace, func() (T, error) { return call(ctx) })
}

func tooLong(d time.Duration) error {
	return fmt.Errorf("it took longer than %s", unit.Duration(int64(d)))
}

// await waits for a call until a context ends. After the grace it abandons a call
// that goes on: no source can delay a measurement.
func await[T any](ctx context.Context, grace time.Duration, call func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	out := make(chan answer, 1)
	go func() {
		value, err := call()
		out <- answer{value, err}
	}()
	var a answer
	select {
	case a = <-out:
	case <-ctx.Done():
		late := time.NewTimer(grace)
		defer late.Stop()
		select {
		case a = <-out:
		case <-late.C:
			a.err = context.Cause(ctx)
		}
	}
	if a.err != nil && ctx.Err() != nil {
		a.err = context.Cause(ctx)
	}
	return a.value, a.err
}

// placeEnds sets for each end point its host placement, as far as the sources
// know it, and how the pairs are placed. A failed source is a warning.
func (r *Runner) placeEnds(ctx context.Context, doc *measure.Document, brief bool) {
	defer r.judgeHypervisors(doc, brief)
	defer r.takeOver(doc)
	b := r.hypervisorRun
	if b == nil {
		return
	}
	var all []measure.Inventory
	for _, s := range b.sources {
		r.awaitInventory(s)
		switch {
		case ctx.Err() != nil:
		case s.err != nil:
			hypervisorFailed(doc, "where the end points run", s, s.err)
		default:
			all = append(all, s.inventory)
		}
	}
	var placed []measure.Placement
	at := map[string]place.Placed{}
	for i, s := range b.subjects {
		e := &doc.EndPoints[i]
		if len(all) == 0 {
			e.NoPlace, e.NoPlaceCode = "no hypervisor answered", measure.NoHypervisorRead
			continue
		}
		e.Placement, e.NoPlace = place.Match(s, all)
		at[s.Name] = place.Placed{Subject: s, At: e.Placement}
		if e.Placement != nil {
			placed = append(placed, *e.Placement)
			placed = append(placed, twins(e.Placement, all)...)
		}
	}
	relate(doc, at, all)
	for i := range all {
		if slices.ContainsFunc(placed, func(p measure.Placement) bool { return p.Source == all[i].Source }) {
			doc.Inventories = append(doc.Inventories, place.OfEndPoints(all[i], placed))
		}
	}
}

// twins returns the same guest or host in the other sources: a vCenter and the
// commands of its ESXi hosts report different facts about it.
func twins(p *measure.Placement, all []measure.Inventory) (others []measure.Placement) {
	for _, b := range p.HostPlacement(all) {
		x := measure.Placement{Source: b.Inventory.Source}
		if x.Source == p.Source {
			continue
		}
		if b.Guest != nil {
			x.Guest = b.Guest.ID
		}
		if b.Host != nil {
			x.Host = b.Host.ID
		}
		others = append(others, x)
	}
	return others
}

// awaitInventory waits for the inventory of a source, within its own time limit.
func (r *Runner) awaitInventory(s *hypervisorSource) {
	select {
	case <-s.read:
		return
	default:
	}
	r.notify(Checking{"finding the end points in " + s.Name()})
	<-s.read
}

// longWarning is the length at which reports truncate a warning; beyond it hypervisorFailed drops the hint.
const longWarning = 160

// hypervisorFailed records that a source did not answer.
func hypervisorFailed(doc *measure.Document, what string, s hypervisor.Source, err error) {
	why := err.Error()
	doc.Missing = append(doc.Missing, measure.NotChecked{Fact: measure.AskedOf(s.Name(), what), Why: why})
	if hint := fault.Hint(err); hint != "" && len(why)+len(hint) < longWarning {
		why += " (" + hint + ")"
	}
	doc.Warnings = append(doc.Warnings, fmt.Sprintf("%s does not report %s: %s", s.Name(), what, why))
}

// relate adds how the pairs of the document are placed, each once for both
// directions. A check, which has no cells, has the pair of its two ends.
func relate(doc *measure.Document, at map[string]place.Placed, all []measure.Inventory) {
	pairs := []route{}
	for _, c := range doc.Cells {
		pairs = append(pairs, route{c.From, c.To})
	}
	if n := len(doc.EndPoints); len(pairs) == 0 && n > 0 {
		pairs = append(pairs, route{doc.EndPoints[0].Name, doc.EndPoints[n-1].Name})
	}
	seen := map[route]bool{}
	for _, p := range pairs {
		a, known := at[p.from]
		b, both := at[p.to]
		if seen[between(p.from, p.to)] || !known || !both {
			continue
		}
		seen[between(p.from, p.to)] = true
		switch lies, why, ok := place.Relate(a, b, all); {
		case ok:
			doc.Relations = append(doc.Relations, lies)
		case why != "":
			doc.Missing = append(doc.Missing, measure.NotChecked{Fact: "how " + p.from + " and " + p.to + " lie", Why: why})
		}
	}
}

// watchGuests starts to read the counters of the guests and hosts found.
func (r *Runner) watchGuests(ctx context.Context, doc *measure.Document) {
	b := r.hypervisorRun
	if b == nil || ctx.Err() != nil || r.PlaceWithin > 0 {
		return
	}
	b.began = time.Now()
	errs := make([]error, len(b.sources))
	each(len(b.sources), func(i int) {
		s := b.sources[i]
		if ids := idsOf(doc, s.inventory.Source); s.err == nil && len(ids) > 0 {
			s.watch, errs[i] = b.beginWatch(ctx, s, ids)
		}
	})
	for i, err := range errs {
		if err != nil && ctx.Err() == nil {
			hypervisorFailed(doc, "the counters of its hosts", b.sources[i], err)
		}
	}
}

// beginWatch begins a watch within the limit b.watch. The context of the watch
// outlives an interrupt, so that its counters can still be fetched.
func (b *hypervisorRun) beginWatch(ctx context.Context, s *hypervisorSource, ids []string) (hypervisor.Watch, error) {
	var lives context.Context
	lives, s.unwatch = context.WithCancel(context.WithoutCancel(ctx))
	ctx, cancel := context.WithTimeoutCause(ctx, b.watch, tooLong(b.watch))
	defer cancel()
	w, err := await(ctx, b.grace, func() (hypervisor.Watch, error) { return s.Watch(lives, ids) })
	if err != nil {
		s.unwatch() // a watch that begins later ends at once
		return nil, err
	}
	return w, nil
}

// idsOf returns the ids of the guests and hosts of a source that match end points.
func idsOf(doc *measure.Document, source string) (ids []string) {
	for _, e := range doc.EndPoints {
		if p := e.Placement; p != nil && p.Source == source {
			ids = append(ids, p.Guest, p.Host)
			continue
		}
		for _, p := range twins(e.Placement, doc.Inventories) {
			if p.Source == source {
				ids = append(ids, p.Guest, p.Host)
			}
		}
	}
	slices.Sort(ids)
	return slices.DeleteFunc(slices.Compact(ids), func(id string) bool { return id == "" })
}

// leastPatience is the least time that a source has to answer, however short the test was.
const leastPatience = 5 * time.Second

// fetchCounters fetches the counters. It waits for slow sources no longer than
// the watch lasted; after an interrupt, or where nothing was measured, it takes
// the counters that are there.
func (r *Runner) fetchCounters(ctx context.Context, doc *measure.Document) {
	b := r.hypervisorRun
	if b == nil {
		return
	}
	defer b.stop()
	measured := longestRun(doc)
	patience := min(b.last, max(leastPatience, time.Since(b.began)))
	if measured == 0 || ctx.Err() != nil {
		patience = min(b.last, b.grace)
	}
	watched := slices.DeleteFunc(slices.Clone(b.sources), func(s *hypervisorSource) bool { return s.watch == nil })
	if len(watched) > 0 && patience > b.grace {
		r.notify(Checking{fmt.Sprintf("waiting for the last samples of %s, at most %s", sourceNames(watched), unit.Duration(int64(patience.Round(time.Second))))})
	}
	ends := make([]ending, len(watched))
	each(len(watched), func(i int) {
		ends[i] = b.end(ctx, watched[i].watch, patience)
		watched[i].unwatch()
	})
	for i, s := range watched {
		e := ends[i]
		if e.err != nil {
			e.missing = append(e.missing, measure.NotChecked{Fact: measure.CountersOf(s.Name()), Why: e.err.Error()})
		}
		if n, few := fewSamples(s.Name(), e, measured); few {
			e.missing = append(e.missing, n)
		}
		if v := inventoryOf(doc, s.inventory.Source); v != nil {
			v.Series = mergeSeries(v.Series, e.series)
			v.NotChecked = append(v.NotChecked, e.missing...)
		}
	}
}

// ending is the result of a watch.
type ending struct {
	series  []measure.Series
	missing []measure.NotChecked
	err     error
}

// end ends a watch within a time limit, and soon after an interrupt.
func (b *hypervisorRun) end(ctx context.Context, w hypervisor.Watch, patience time.Duration) ending {
	ctx, cancel := outlasting(ctx, b.grace)
	defer cancel()
	e, err := within(ctx, patience, b.grace, func(ctx context.Context) (ending, error) {
		series, missing := w.End(ctx)
		return ending{series: series, missing: missing}, nil
	})
	e.err = err
	return e
}

// outlasting returns a context that ends d later than ctx.
func outlasting(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-time.After(d):
			cancel(context.Cause(ctx))
		case <-out.Done():
		}
	})
	return out, func() { stop(); cancel(nil) }
}

func sourceNames(all []*hypervisorSource) string {
	return strings.Join(unit.Mapped(all, (*hypervisorSource).Name), " and ")
}

// longestRun returns the measured time of the longest run.
func longestRun(doc *measure.Document) (d time.Duration) {
	for i := range doc.Cells {
		for k := range doc.Cells[i].Runs {
			if begin, end, ok := doc.Cells[i].Runs[k].Span(); ok {
				d = max(d, end.Sub(begin))
			}
		}
	}
	return d
}

// fewSamples reports that no run was long enough for the counters of a source.
func fewSamples(source string, e ending, measured time.Duration) (measure.NotChecked, bool) {
	every := time.Duration(0)
	for _, s := range e.series {
		if d := time.Duration(s.EveryNs); every == 0 || d < every {
			every = d
		}
	}
	n, few := measure.FewSamples(source, measured, every)
	said := slices.ContainsFunc(e.missing, func(m measure.NotChecked) bool { return m.Fact == n.Fact })
	return n, few && measured > 0 && !said
}
