package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"thru/internal/cause"
	"thru/internal/cause/gate"
	"thru/internal/cause/scene"
	"thru/internal/measure"
	"thru/internal/plan"
	"thru/internal/unit"
)

// pairing is two end points that a plan measures between, in either direction,
// with the result of the probe of their path.
type pairing struct {
	from, to *EndPoint // from dials
	spec     measure.Spec
	link     plan.Link
	path     *measure.Path
	why      error // why there is no path
}

// Bounds of the probes before a plan: number of pairs, total time.
const (
	mostProbes = 64
	probesTime = 15 * time.Second
)

var (
	errTooMany = fmt.Errorf("thru probes at most %d pairs of a plan", mostProbes)
	errNoTime  = fmt.Errorf("the probes before a plan may take at most %v", probesTime)
	errNoAgent = errors.New("thru does not run at one of the ends")
	errOneHost = errors.New("both ends are one host")
)

// fitAll judges the quick gates of a plan of many pairs: of each host, and of
// each path that it can probe in a bounded time. A gate that fails disqualifies
// its host or its pair, and the others are measured; the run ends where none is
// left.
func (r *Runner) fitAll(ctx context.Context, p plan.Plan, doc *measure.Document, routes map[string]*measure.Route) (brief bool, err error) {
	pairs := r.pairings(p)
	if err := r.probeAll(ctx, pairs); err != nil {
		return false, err
	}
	brief = len(pairs) > mostListed
	r.judgeAll(doc, routes, pairs, brief)
	if err := r.choose(doc); err != nil {
		return brief, err
	}
	if err := disqualified(doc.Gates, "measure anyway with --force; the result notes it"); err != nil {
		if r.Gating.Force || p.Gates == plan.GatesForce {
			doc.Forced = true
			doc.Warnings = append(doc.Warnings, "measured by force, although "+err.Error())
			return brief, nil
		}
		return brief, r.disqualify(p, doc, err)
	}
	return brief, nil
}

// pairings lists the pairs that the plan measures between, each once.
func (r *Runner) pairings(p plan.Plan) []*pairing {
	var all []*pairing
	seen := map[route]bool{}
	for _, step := range p.Steps {
		for _, s := range step.Specs {
			w := between(s.From, s.To)
			from, to := r.end(s.From), r.end(s.To)
			if seen[w] || r.gone(from) != nil || r.gone(to) != nil {
				continue
			}
			seen[w] = true
			x := &pairing{from: from, to: to, spec: s, link: step.Link}
			if !s.DialFrom && from.Name != Local || to.Name == Local {
				x.from, x.to = to, from
			}
			switch {
			case from == to:
				x.why = errOneHost
			case !x.from.asked() || !x.to.asked():
				x.why = errNoAgent
			}
			if x.link.RateBps == 0 {
				x.link = cmp.Or(p.Link, plan.Link{RateBps: r.Link.RateBps, Layer: r.Link.Layer})
			}
			all = append(all, x)
		}
	}
	return all
}

// probeAll probes the pairs in parallel where they share no host, since probes
// disturb each other.
func (r *Runner) probeAll(ctx context.Context, pairs []*pairing) error {
	var open []*pairing
	for _, x := range pairs {
		switch {
		case x.why != nil:
		case len(open) == mostProbes:
			x.why = errTooMany
		default:
			open = append(open, x)
		}
	}
	if len(open) == 0 {
		return nil
	}
	ends := endsOfPairs(open)
	_, failed := r.take(ctx, ends, open[0].spec.Together)
	defer release(ends) // a step takes its own turns: a client that keeps these while it waits may deadlock
	what := "probing the path of 1 pair"
	if n := len(open); n != 1 {
		what = fmt.Sprintf("probing the paths of %d pairs", n)
	}
	r.notify(Checking{what})
	within, cancel := context.WithTimeoutCause(ctx, probesTime, errNoTime)
	defer cancel()
	for len(open) > 0 {
		var now []*pairing
		now, open = disjoint(open)
		unit.AtMost(len(now), width, func(i int) { now[i].probe(within, failed) })
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// endsOfPairs returns the agents of the pairs, in the order in which turns are taken.
func endsOfPairs(pairs []*pairing) (es []*EndPoint) {
	for _, x := range pairs {
		for _, e := range []*EndPoint{x.from, x.to} {
			if !slices.Contains(es, e) {
				es = append(es, e)
			}
		}
	}
	slices.SortFunc(es, inOrder)
	return es
}

// disjoint splits a list from the front into pairs that share no host, and the rest.
func disjoint(pairs []*pairing) (now, rest []*pairing) {
	busy := map[*EndPoint]bool{}
	for _, x := range pairs {
		if busy[x.from] || busy[x.to] {
			rest = append(rest, x)
			continue
		}
		busy[x.from], busy[x.to] = true, true
		now = append(now, x)
	}
	return now, rest
}

// probe probes one pair; x.why keeps why there is no path.
func (x *pairing) probe(ctx context.Context, failed map[*EndPoint]error) {
	if x.why = cmp.Or(failed[x.from], failed[x.to], context.Cause(ctx)); x.why != nil {
		return
	}
	within, cancel := context.WithTimeoutCause(ctx, quickTime, fmt.Errorf("it took longer than %v", quickTime))
	defer cancel()
	s := x.spec
	x.path, x.why = probe(within, x.from, x.to, Probing{Quick: true, Source: s.BindAddr, Device: s.BindDev, DataAddr: s.DataAddr, Family: s.Family})
	if x.why != nil && within.Err() != nil {
		x.why = context.Cause(within)
	}
}

// judgeAll computes the gates of all pairs. The gates of a host are the same in
// each of its pairs except for the route: the worst is listed.
func (r *Runner) judgeAll(doc *measure.Document, routes map[string]*measure.Route, pairs []*pairing, brief bool) {
	ends := map[string]measure.EndPoint{}
	for _, e := range doc.EndPoints {
		ends[e.Name] = e
	}
	var gates []measure.Gate
	unprobed := map[string]int{}
	for _, x := range pairs {
		doc.AddPath(x.path, nil)
		if x.path == nil && !errors.Is(x.why, errOneHost) {
			unprobed[x.why.Error()]++
		}
		gates = append(gates, r.gatesOf(x, ends, routes)...)
	}
	if doc.Gates = worstFirst(gates, brief); brief {
		doc.Missing = append(doc.Missing, measure.NotChecked{Fact: "gates", Why: fmt.Sprintf("with more than %d pairs, only gates that do not pass are listed", mostListed)})
	}
	for _, why := range slices.Sorted(maps.Keys(unprobed)) {
		doc.Missing = append(doc.Missing, measure.NotChecked{Fact: "paths", Why: fmt.Sprintf("%d of %d paths: %s", unprobed[why], len(pairs), why)})
	}
}

// gatesOf returns the gates of a pair. That the path was not probed is reported
// once for all pairs, and not by each gate.
func (r *Runner) gatesOf(x *pairing, ends map[string]measure.EndPoint, routes map[string]*measure.Route) []measure.Gate {
	s := scene.Subject{Path: x.path, LinkBps: x.link.RateBps, LinkL2: x.link.Layer == unit.L2, Streams: x.spec.Streams, UDP: x.spec.Protocol == measure.UDP}
	names := []string{x.from.Name, x.to.Name}
	if x.from == x.to {
		names = names[:1]
	}
	for i, n := range names {
		e := r.judged(ends[n], routes[n])
		e.Shared = len(names) == 1
		if x.path != nil {
			e.Route = cmp.Or([]*measure.Route{x.path.Forward.Route, x.path.Back.Route}[i], e.Route)
		}
		s.Ends = append(s.Ends, e)
	}
	gates := cause.Judge(s)
	if x.path == nil {
		gates = slices.DeleteFunc(gates, func(g measure.Gate) bool { return g.EndPoint == "" && g.Status == measure.GateNotChecked })
	}
	for i := range gates {
		if g := &gates[i]; g.EndPoint == "" && g.From == "" { // of the path as a whole: name the pair
			g.From, g.To = x.from.Name, x.to.Name
		}
	}
	return gates
}

// worstFirst sorts gates, worst first, and keeps the worst of each gate of one host.
func worstFirst(gates []measure.Gate, brief bool) []measure.Gate {
	type key struct{ id, end, face string }
	seen := map[key]bool{}
	kept := []measure.Gate{}
	for _, g := range gate.Sort(gates) {
		k := key{g.ID, g.EndPoint, g.Interface}
		if g.EndPoint != "" && seen[k] || brief && g.Status == measure.GatePass {
			continue
		}
		seen[k] = true
		kept = append(kept, g)
	}
	return kept
}

// disqualify leaves out the hosts and pairs with a failed gate, and names them
// before the measurement. all is the error where nothing is left.
func (r *Runner) disqualify(p plan.Plan, doc *measure.Document, all error) error {
	hosts := map[string]error{}
	r.unfit = map[route]error{}
	for _, g := range doc.Gates {
		if g.Status != measure.GateFail {
			continue
		}
		err := disqualified([]measure.Gate{g}, "")
		if g.EndPoint != "" {
			hosts[g.EndPoint] = cmp.Or(hosts[g.EndPoint], err)
		} else if w := between(g.From, g.To); r.unfit[w] == nil {
			r.unfit[w] = err
		}
	}
	left := 0
	for _, step := range p.Steps {
		for _, s := range step.Specs {
			w := between(s.From, s.To)
			if r.unfit[w] == nil {
				if err := cmp.Or(hosts[s.From], hosts[s.To]); err != nil {
					r.unfit[w] = err
				}
			}
			if r.unfit[w] == nil {
				left++
			}
		}
	}
	if left == 0 {
		return all
	}
	listed := map[route]bool{}
	for _, step := range p.Steps {
		for _, s := range step.Specs {
			if w := between(s.From, s.To); r.unfit[w] != nil && !listed[w] {
				listed[w] = true
				r.notify(Failed{s, r.unfit[w]})
			}
		}
	}
	return nil
}
