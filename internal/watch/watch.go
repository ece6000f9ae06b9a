// Package watch measures the pairs of a fleet again and again, hardly felt, and says what changes, since when, and why.
//
// A Watch has one loop. Turns begin when the schedule says so, and end as samples; the agents send probes all the time, and their summaries are
// samples too. Each sample is stored, goes to the detectors of its series, and to the judge; what follows from it are events. When the judge
// suspects that something is wrong, the pair is explained once, if the day's budget allows, and the alarm is raised with its cause.
//
// A turn that could not be measured is a sample with a state and a reason. A turn that was missed is not caught up.
package watch

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"thru/internal/unit"
	"thru/internal/watch/judge"
	"thru/internal/watch/record"
	"thru/internal/watch/schedule"
)

// Fleet measures for a watch. Its methods run at the same time; each returns soon after its context has ended.
type Fleet interface {
	// Turn measures one turn. What fails is a sample with a state and a reason.
	Turn(ctx context.Context, t schedule.Task) record.Sample
	// Probes returns the next summaries of probes, each pair's in the order of their time, and whether there are more. Those of the last call
	// are stored by then.
	Probes(ctx context.Context) (samples []record.Sample, more bool)
	// Explain finds out why a pair has changed, and what has changed at its hosts since then.
	Explain(ctx context.Context, what Unexplained) (judge.Explanation, error)
}

// Config is what a watch needs to run.
type Config struct {
	Wish  schedule.Wish
	Seed  uint64 // of the schedule: the same for all parts of a fleet
	Judge judge.Config
	Fleet Fleet

	Keep   func([]record.Sample) error // stores samples; after an error, which goes to Warn, they still count
	Report func(record.Event)          // receives what follows from them, in order
	Warn   func(error)                 // receives what went wrong with the watch itself; called at any time
	Save   func(state []byte)          // stores the state once a minute, and at the end; nil: nobody does

	// Stand receives how all pairs are, and the alarms that are raised, soon after a change; nil: nobody does.
	Stand func([]record.Standing, []record.Alarm)
	// Past has samples of earlier runs, each pair's in order, with which the detectors begin; nil: none. Probes are fetched when all are read.
	Past  iter.Seq2[record.Sample, error]
	State []byte // of an earlier run, as Save got it; nil: none
}

const (
	// tick is how often the loop looks what is due.
	tick = time.Second
	// late is how long after its time a turn still begins. What is later was missed: the host slept, or its clock was set.
	late = 10 * time.Second
	// probesEvery is how often the summaries of probes are fetched.
	probesEvery = 20 * time.Second
	// standEvery is how often Stand is called at most.
	standEvery = 5 * time.Second
	// saveEvery is how often the state is saved.
	saveEvery = time.Minute
	// patience is how much longer than planned a turn may take.
	patience = 30 * time.Second
	// explainTime bounds an explanation.
	explainTime = 3 * time.Minute
	// deferredPause is how long after an explanation that other traffic was in the way of it is tried again.
	deferredPause = 10 * time.Minute
)

// Watch is a watch that runs.
type Watch struct {
	Config
	table    *schedule.Table
	paths    map[record.Pair]schedule.Path
	judge    *judge.Judge
	series   *series
	routes   map[record.Pair]record.Change // the last ones
	ledger   ledger
	inUse    map[string]bool
	done     chan func() // what follows from a measurement that has ended, run by the loop
	why      chan explained
	asked    []asked         // explanations that wait for the one that runs
	calls    chan func()     // run by the loop
	explains bool            // one runs
	running  int             // goroutines that will send to done or why
	reads    bool            // Past is read
	early    []record.Sample // that came meanwhile
	fetching bool            // summaries of probes
	probed   time.Time       // when summaries were last asked for
	news     bool            // samples or events came since Stand was called
	stood    time.Time       // when it was
}

// New returns a watch that does not run yet. It fails if the budget is too small, or a turn does not fit beside the others.
func New(c Config) (*Watch, error) {
	w := &Watch{Config: c, series: newSeries(), routes: map[record.Pair]record.Change{}, inUse: map[string]bool{}, calls: make(chan func())}
	set, err := w.prepare(c.Wish, c.Judge, c.Fleet)
	if err != nil {
		return nil, err
	}
	last := saved{Ledger: &w.ledger}
	if c.State != nil {
		err = json.Unmarshal(c.State, &last)
	}
	if err = cmp.Or(err, set(last.Judge)); err != nil {
		return nil, fmt.Errorf("watch: reading the state of the last run: %w", err)
	}
	w.reads = c.Past != nil
	return w, nil
}

// saved is a state.
type saved struct {
	Judge  json.RawMessage `json:"judge"`
	Ledger *ledger         `json:"ledger"`
}

// save saves the state.
func (w *Watch) save() {
	if w.Save == nil {
		return
	}
	judged, err := w.judge.MarshalJSON()
	state, failed := json.Marshal(saved{judged, &w.ledger})
	if err = cmp.Or(err, failed); err != nil {
		w.Warn(fmt.Errorf("watch: saving the state: %w", err))
		return
	}
	w.Save(state)
}

// Standings returns how all pairs are now. It may be called only by Report, and while Run does not run.
func (w *Watch) Standings() []record.Standing { return w.judge.Standings() }

// Alarms returns the alarms that are raised now, when Standings may be called.
func (w *Watch) Alarms() []record.Alarm { return w.judge.Alarms() }

// Run watches until the context ends.
func (w *Watch) Run(ctx context.Context) {
	w.done, w.why = make(chan func()), make(chan explained)
	var reading sync.WaitGroup
	defer reading.Wait()
	if w.reads {
		reading.Go(func() { w.remember(ctx) })
	}
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	from := time.Now().Round(0) // the schedule goes by the wall clock
	var saved time.Time
	for {
		select {
		case <-ctx.Done():
			w.drain()
			w.save()
			return
		case call := <-w.calls:
			call()
		case follows := <-w.done:
			w.running--
			follows()
		case x := <-w.why:
			w.running--
			w.explain(x)
		case <-ticker.C:
			now := time.Now().Round(0)
			if now.Before(from) || now.Sub(from) > late {
				from = now.Add(-tick)
			}
			for _, turn := range w.table.Due(from, now) {
				w.begin(ctx, w.table.Tasks[turn.Task], now)
			}
			from = now
			if !w.fetching && !w.reads && w.Wish.ProbeEvery > 0 && now.Sub(w.probed).Abs() >= probesEvery {
				w.probed = now
				w.fetch(ctx)
			}
			w.report(w.judge.Tick(now))
			w.tellStandings(now)
			if now.Sub(saved).Abs() >= saveEvery {
				saved = now
				w.save()
			}
		}
		w.explainNext(ctx)
	}
}

// remember has the detectors take the samples of earlier runs, some at a time, and then those that came meanwhile.
func (w *Watch) remember(ctx context.Context) {
	const some = 1000
	var next []record.Sample
	take := func() error {
		for _, s := range next {
			w.changesOf(s)
		}
		return nil
	}
	for s, err := range w.Past {
		if err != nil && ctx.Err() == nil {
			w.Warn(fmt.Errorf("watch: reading the samples of the last run: %w", err))
		}
		if err != nil {
			break
		}
		if next = append(next, s); len(next) == some {
			if w.call(ctx, take) != nil {
				return
			}
			next = nil
		}
	}
	_ = w.call(ctx, func() error {
		_ = take()
		w.reads = false
		w.change(w.early)
		w.early = nil
		return nil
	})
}

// tellStandings calls Stand if samples or events came, and not too often.
func (w *Watch) tellStandings(now time.Time) {
	if w.news && w.Stand != nil && now.Sub(w.stood).Abs() >= standEvery {
		w.stood, w.news = now, false
		w.Stand(w.judge.Standings(), w.judge.Alarms())
	}
}

// drain takes what still runs when the watch ends.
func (w *Watch) drain() {
	for ; w.running > 0; w.running-- {
		select {
		case follows := <-w.done:
			follows()
		case <-w.why:
		}
	}
}

// start has work run beside the loop, which then runs what follows from it.
func (w *Watch) start(ctx context.Context, limit time.Duration, work func(context.Context) (follows func())) {
	w.running++
	go func() {
		limited, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		w.done <- work(limited)
	}()
}

// begin begins a turn, unless something that it uses is in use: the turn before took longer than planned, or a pair is explained.
func (w *Watch) begin(ctx context.Context, t schedule.Task, now time.Time) {
	if !w.free(t.Uses) {
		w.take(notMeasured(t, now, record.Deferred, record.Busy))
		return
	}
	if !w.ledger.spend(now, t.Uses, t.Bytes) {
		w.take(failed(notMeasured(t, now, record.Deferred, record.Budget), w.overdrawn(t)))
		return
	}
	w.hold(t.Uses)
	fleet := w.Fleet
	w.start(ctx, t.Takes+patience, func(limited context.Context) func() {
		s := fleet.Turn(limited, t)
		return func() {
			w.release(t.Uses)
			if ctx.Err() == nil || s.State.Judges() { // a turn that the end has broken off says nothing
				w.take(s)
			}
		}
	})
}

// overdrawn says whose budget does not allow a turn.
func (w *Watch) overdrawn(t schedule.Task) error {
	for _, name := range t.Uses {
		if b, bounded := w.ledger.budget[name]; bounded && w.ledger.Used[name]+t.Bytes > b {
			return fmt.Errorf("the byte budget of the day is used at %s: %s of %s, and a test takes up to %s", name, unit.Size(w.ledger.Used[name]), unit.Size(b), unit.Size(t.Bytes))
		}
	}
	return nil
}

// free reports whether nothing of this is in use.
func (w *Watch) free(uses []string) bool {
	return !slices.ContainsFunc(uses, func(name string) bool { return w.inUse[name] })
}

// hold marks what a turn uses.
func (w *Watch) hold(uses []string) {
	for _, name := range uses {
		w.inUse[name] = true
	}
}

// release frees what a turn used.
func (w *Watch) release(uses []string) {
	for _, name := range uses {
		delete(w.inUse, name)
	}
}

// fetch fetches the summaries of probes.
func (w *Watch) fetch(ctx context.Context) {
	w.fetching = true
	fleet := w.Fleet
	w.start(ctx, patience, func(limited context.Context) func() {
		samples, more := fleet.Probes(limited)
		return func() {
			w.take(samples...)
			if w.fetching = more && ctx.Err() == nil; w.fetching {
				w.fetch(ctx)
			}
		}
	})
}

// take stores and judges samples.
func (w *Watch) take(samples ...record.Sample) {
	samples = unit.Filtered(samples, func(s record.Sample) bool { return w.watches(s.Pair) }) // some come after a reload
	if len(samples) == 0 {
		return
	}
	if err := w.Keep(samples); err != nil {
		w.Warn(fmt.Errorf("watch: storing samples: %w", err))
	}
	w.news = true
	for _, s := range samples {
		w.report(w.judge.Take(s))
		w.change([]record.Sample{s})
	}
}

// change has the detectors take samples, in their order.
func (w *Watch) change(samples []record.Sample) {
	if w.reads {
		w.early = append(w.early, samples...)
		return
	}
	for _, s := range samples {
		for _, c := range w.changesOf(s) {
			w.report(w.judge.Changed(c))
		}
	}
}

// changesOf returns the changes that a sample shows. It notes that of the route, which is neither better nor worse.
func (w *Watch) changesOf(s record.Sample) []record.Change {
	found := w.series.take(s)
	for _, c := range found {
		if c.Metric == record.Hops {
			w.routes[c.Pair] = c
		}
	}
	return found
}

// report passes events on, and asks for the explanations that they want.
func (w *Watch) report(events []record.Event) {
	w.news = w.news || len(events) > 0
	for _, e := range events {
		if e.Kind == record.Suspected && e.Alarm.Kind != record.KindOutage { // nothing passes that could be measured
			x := Unexplained{Pair: e.Alarm.Pairs[0], Since: e.Alarm.Since}
			x.Changes = unit.Filtered(e.Alarm.Changes, func(c record.Change) bool { return c.Pair == x.Pair })
			if c, changed := w.routes[x.Pair]; changed {
				x.Changes = append(x.Changes, c)
			}
			w.asked = append(w.asked, asked{id: e.Alarm.ID, what: x})
		}
		w.Report(e)
	}
}

// notMeasured returns the sample of a turn that was not measured.
func notMeasured(t schedule.Task, at time.Time, s record.State, why record.Reason) record.Sample {
	return record.Sample{Pair: t.Pair, Layer: t.Layer, Begin: at, ID: record.SampleID(t.Pair, t.Layer, at), State: s, Reason: why}
}
