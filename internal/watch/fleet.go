package watch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"thru/internal/compare"
	"thru/internal/control"
	"thru/internal/fault"
	"thru/internal/hypervisor"
	"thru/internal/measure"
	"thru/internal/plan"
	"thru/internal/stat"
	"thru/internal/unit"
	"thru/internal/watch/judge"
	"thru/internal/watch/record"
	"thru/internal/watch/schedule"
	"thru/internal/watch/why"
)

// Command is the command in the documents of a watch.
const Command = "watch"

// againAfter is how long an end point that could not be connected is left alone.
const againAfter = 20 * time.Second

// explainBase is how long an explanation measures before its experiments.
const explainBase = 5 * time.Second

// explainBudget bounds the experiments of an explanation.
const explainBudget = 60 * time.Second

// Hosts is the Fleet of end points with agents.
type Hosts struct {
	Version string
	Connect func(ctx context.Context, name string) (*control.EndPoint, func(), error)
	Traffic plan.Request                                 // of TCP turns
	Link    plan.Link                                    // of each path
	Bar     float64                                      // of other traffic, relative to the link, above which a turn is deferred; 0: none
	Archive func(*measure.Document) (id string, _ error) // stores what explains an alarm

	Paths      []schedule.Path // to probe
	ProbeEvery time.Duration   // between two packets of a pair; 0: no probes
	Watch      string          // names this watch to the agents; bus.NewWatch makes one
	Warn       func(error)     // receives that an agent dropped samples
	Seed       uint64          // spreads the probes of a sender over their interval

	Hypervisors func(ctx context.Context) (all []hypervisor.Source, end func(), _ error) // connects those that may run the end points; nil: there are none

	At map[string]string // where the plan has the end points: one that has moved is connected again
	*pool
}

// pool is what stays when the plan changes.
type pool struct {
	mu    sync.Mutex
	hosts map[string]*host
	past  map[record.Pair][]*measure.Document // the last TCP turns, without samples: their facts
	above hypervisors
}

// Open returns the hosts, with what the hosts of the plan before have; nil: there was none.
func (h Hosts) Open(before *Hosts) *Hosts {
	h.pool = &pool{hosts: map[string]*host{}, past: map[record.Pair][]*measure.Document{}}
	if before != nil {
		h.pool = before.pool
	}
	return &h
}

// host is an end point, and its connection if there is one.
type host struct {
	mu    sync.Mutex
	end   *control.EndPoint
	at    string
	close func()
	err   error
	tried time.Time
	probing
}

// Close closes all connections.
func (h *Hosts) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, x := range h.hosts {
		if x.close != nil {
			x.close()
		}
	}
	clear(h.hosts)
	if h.above.close != nil {
		h.above.close()
	}
}

// end returns a connected end point. A lost connection is made again.
func (h *Hosts) end(ctx context.Context, name string) (*control.EndPoint, error) {
	h.mu.Lock()
	x := h.hosts[name]
	if x == nil {
		x = new(host)
		h.hosts[name] = x
	}
	h.mu.Unlock()

	x.mu.Lock() // others wait for the same connection
	defer x.mu.Unlock()
	moved := x.at != h.At[name]
	if x.end != nil && x.end.Client.Err() == nil && !moved {
		return x.end, nil
	}
	if x.err != nil && !moved && time.Since(x.tried) < againAfter {
		return nil, x.err
	}
	if x.close != nil {
		x.close()
		x.end, x.close = nil, nil
	}
	x.end, x.close, x.err = h.Connect(ctx, name)
	x.tried, x.at = time.Now(), h.At[name]
	if x.err == nil && x.end.Foreign {
		x.close()
		x.end, x.close, x.err = nil, nil, fault.Usagef("run thru serve there", "watch: %s has no agent, and a watch needs one at both ends", name)
	}
	return x.end, x.err
}

// Check connects end points and hypervisors, and returns an error for names that can never be connected. Those that are away are none: they may come.
func (h *Hosts) Check(ctx context.Context, names []string) error {
	if _, err := h.sources(ctx); err != nil {
		return err
	}
	errs := make([]error, len(names))
	unit.AtMost(len(names), atOnce, func(i int) {
		if _, err := h.end(ctx, names[i]); fault.Code(err) == fault.Usage {
			errs[i] = err
		}
	})
	return errors.Join(errs...)
}

// ends connects both ends of a pair.
func (h *Hosts) ends(ctx context.Context, p record.Pair) (map[string]*control.EndPoint, error) {
	from, err := h.end(ctx, p.From)
	if err != nil {
		return nil, err
	}
	to, err := h.end(ctx, p.To)
	if err != nil {
		return nil, err
	}
	return map[string]*control.EndPoint{p.From: from, p.To: to}, nil
}

// Turn implements Fleet, for TCP.
func (h *Hosts) Turn(ctx context.Context, t schedule.Task) record.Sample {
	begin := time.Now()
	ends, err := h.ends(ctx, t.Pair)
	if err != nil {
		return failed(notMeasured(t, begin, record.NotMeasured, record.AgentAway), err)
	}
	before := h.load(ctx, t.Pair, ends)
	if before.isOver() {
		return deferred(t, begin, before)
	}
	traffic := h.Traffic
	traffic.OneWay = true // the other direction has turns of its own
	steps, err := plan.Pair{From: t.From, To: t.To, DialTo: t.To == control.Local, Either: true}.Steps(traffic)
	if err != nil {
		return failed(notMeasured(t, begin, record.NotMeasured, record.Failed), err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	queue := &impatient{leave: cancel}
	above, err := h.sources(context.WithoutCancel(ctx))
	if err != nil {
		h.Warn(fmt.Errorf("watch: connecting hypervisors: %w", err))
	}
	r := control.Runner{Version: h.Version, Ends: ends, Link: h.link(), Watch: queue, Hypervisors: above, PlaceWithin: placeTime}
	doc, err := r.Run(ctx, plan.Plan{Command: Command, Steps: steps, Repeat: plan.Repeat{Max: 1}})
	switch {
	case queue.waited.Load():
		return notMeasured(t, begin, record.Deferred, record.Busy)
	case err != nil && fault.Code(err) == fault.Usage:
		return failed(notMeasured(t, begin, record.Refused, record.NotPermitted), err)
	case err != nil:
		return failed(notMeasured(t, begin, record.NotMeasured, record.Failed), err)
	}
	h.remember(t.Pair, doc)
	s := tcpSample(t, begin, &doc.Cells[0])
	switch after := h.load(ctx, t.Pair, ends); {
	case after.isOver():
		return deferred(t, begin, after)
	case before.err != nil || after.err != nil:
		s.NotChecked = append(s.NotChecked, measure.NotChecked{Fact: string(record.OtherLoad), Why: cmp.Or(before.err, after.err).Error()})
	default:
		s.Values[record.OtherLoad] = max(before.share, after.share)
	}
	return s
}

// deferred returns the sample of a turn that other traffic was in the way of. Its only value is that traffic.
func deferred(t schedule.Task, begin time.Time, l load) record.Sample {
	s := failed(notMeasured(t, begin, record.Deferred, record.Load), l)
	s.Values = map[record.Metric]float64{record.OtherLoad: l.share}
	return s
}

// remembered is how many TCP turns of a pair are remembered for their facts: a change is found some turns after it happened.
const remembered = 8

// remember keeps the facts of a turn.
func (h *Hosts) remember(p record.Pair, doc *measure.Document) {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := append(h.past[p], measure.WithoutSamples(doc))
	h.past[p] = all[max(0, len(all)-remembered):]
}

// from returns the turns of a pair from the last one before a time, else all that are remembered.
func (h *Hosts) from(p record.Pair, at time.Time) []*measure.Document {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := h.past[p]
	before := unit.CountFunc(all, func(d *measure.Document) bool { return d.StartedAt.Before(at) })
	return slices.Clone(all[max(0, before-1):])
}

// link returns the stated rate of the paths.
func (h *Hosts) link() stat.Link { return stat.Link{RateBps: h.Link.RateBps, Layer: h.Link.Layer} }

// impatient leaves the queue of an end point at once: a turn that has to wait is deferred.
type impatient struct {
	leave  context.CancelFunc
	waited atomic.Bool
}

// Hear implements control.Observer.
func (q *impatient) Hear(e control.Event) {
	if _, is := e.(control.Waiting); is {
		q.waited.Store(true)
		q.leave()
	}
}

// failed adds the error to a sample.
func failed(s record.Sample, err error) record.Sample {
	s.Error = fault.WithHint(err)
	return s
}

// tcpSample returns the sample of a measured TCP turn.
func tcpSample(t schedule.Task, begin time.Time, c *measure.Cell) record.Sample {
	s := record.Sample{
		Pair: t.Pair, Layer: t.Layer, Begin: begin, ID: record.SampleID(t.Pair, t.Layer, begin), State: record.Up,
		Seconds: time.Duration(c.Spec.Duration).Seconds(), Values: map[record.Metric]float64{}, NotChecked: c.Missing,
	}
	set := func(m record.Metric, v *float64, factor float64) {
		if v != nil {
			s.Values[m] = *v * factor
		}
	}
	if c.Goodput != nil {
		set(record.Goodput, &c.Goodput.Value, 1)
	}
	for m, cpu := range map[record.Metric]*measure.CPUFigure{record.CPUSender: c.SenderCPU, record.CPUReceiver: c.ReceiverCPU} {
		if cpu != nil {
			set(m, cpu.PctPerGbps, 0.01) // percent of a core for each Gb/s: CPU seconds for each gigabit
		}
	}
	if c.RTTLoaded != nil {
		s.Values[record.RTTLoaded] = float64(*c.RTTLoaded)
	}
	if c.RFC6349 != nil && c.RFC6349.EfficiencyPct != nil {
		s.Values[record.Retransmits] = 1 - *c.RFC6349.EfficiencyPct/100
	}
	return s
}

// Explain implements Fleet: it runs the experiments of thru explain, and compares the facts of the hosts with those of the turn before. What causes
// a changed packet size or delay comes first, unless the rate changed too.
func (h *Hosts) Explain(ctx context.Context, what Unexplained) (judge.Explanation, error) {
	p := what.Pair
	ends, err := h.ends(ctx, p)
	if err != nil {
		return judge.Explanation{}, err
	}
	if l := h.load(ctx, p, ends); l.isOver() {
		return judge.Explanation{Deferred: l.Error()}, nil
	}
	r := h.Traffic
	r.Local, r.Peer, r.Link, r.OneWay = p.From, p.To, h.Link, true
	if p.To == control.Local {
		r.Local, r.Peer, r.Reverse, r.OneWay = p.To, p.From, true, false
	}
	r.Streams, r.Duration = 1, explainBase
	made, err := plan.Explain(r)
	if err != nil {
		return judge.Explanation{}, err
	}
	above, err := h.sources(context.WithoutCancel(ctx))
	if err != nil {
		h.Warn(fmt.Errorf("watch: connecting hypervisors: %w", err))
	}
	runner := control.Runner{Version: h.Version, Ends: ends, Link: h.link(), Hypervisors: above}
	doc, err := runner.Explain(ctx, made, control.Probing{Family: r.Family}, explainBudget)
	if doc == nil {
		return judge.Explanation{}, err
	}
	limits := unit.Filtered(doc.Findings, func(f measure.Finding) bool { return !f.Healthy }) // a full link is no cause of a change
	var path *measure.Path
	if len(doc.Paths) > 0 {
		path = &doc.Paths[0]
	}
	found := slices.Concat(why.Findings(what.Changes, path), limits)
	if slices.ContainsFunc(what.Changes, func(c record.Change) bool { return c.Metric.Layer() == record.TCP }) {
		found = slices.Concat(limits, why.Findings(what.Changes, path))
	}
	id, kerr := h.Archive(doc)
	return judge.Explanation{Findings: found, Facts: h.changedFacts(p, what.Since, doc), Result: id}, errors.Join(err, kerr)
}

// changedFacts returns the facts that are not those of before a time, each with the first turn that shows it.
func (h *Hosts) changedFacts(p record.Pair, since time.Time, doc *measure.Document) (all []record.FactChange) {
	past := h.from(p, since)
	if len(past) == 0 {
		return nil
	}
	for _, now := range append(past[1:], doc) {
		facts := compare.Of(past[:1], []*measure.Document{now}, compare.Options{}).Facts
		var found []record.FactChange
		for _, c := range facts {
			f := record.FactChange{Host: c.Of, Fact: c.Fact, Name: c.Name, Before: c.Before, After: c.After, Since: now.StartedAt}
			for _, x := range all { // seen before, and not changed since
				if x.Host == f.Host && x.Fact == f.Fact && x.After == f.After {
					f.Since = x.Since
				}
			}
			if !c.Minor {
				found = append(found, f)
			}
		}
		all = found
	}
	return all
}
