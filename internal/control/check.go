package control

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"thru/internal/bus"
	"thru/internal/cause"
	"thru/internal/cause/scene"
	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/unit"
)

// Probing says how a path is probed.
type Probing struct {
	Quick          bool // only what a few round trips tell
	Source, Device string
	DataAddr       string
	Family         int
}

// loadTime is how long a check watches what else uses the hosts. The path is
// probed meanwhile: some hundred packets.
const loadTime = time.Second

// Check reads the facts of the end points and of the path between them, and
// judges whether they are fit to be measured. The error is that of a gate that
// fails (exit code 3), or of what kept the check from its end. The document is
// always usable.
func (r *Runner) Check(ctx context.Context, how Probing, streams int) (*measure.Document, error) {
	begin := time.Now()
	doc := r.document("check", begin)
	err := r.check(ctx, doc, how, streams)
	r.placeEnds(ctx, doc)
	r.fetchCounters(ctx, doc)
	if ctx.Err() != nil {
		err = fault.Failf("", "interrupted")
	}
	return finished(doc, begin, err)
}

// CheckFacts judges a host whose facts were read from outside.
func (r *Runner) CheckFacts(name, addr string, facts measure.Facts, begin time.Time) (*measure.Document, error) {
	doc := r.document("check", begin)
	doc.EndPoints = append(doc.EndPoints, measure.EndPoint{Name: name, Addr: addr, Facts: &facts})
	err := r.judge(doc, nil, measure.Spec{})
	if err == nil {
		err = disqualified(doc.Gates, "")
	}
	return finished(doc, begin, err)
}

func (r *Runner) check(ctx context.Context, doc *measure.Document, how Probing, streams int) error {
	defer release(r.agents())
	_, unprobed, err := r.look(ctx, doc, &how, measure.Spec{Streams: streams})
	if err != nil {
		return err
	}
	if unprobed != nil {
		return r.noPath(unprobed)
	}
	return disqualified(doc.Gates, "")
}

// look takes the turn, reads the hosts, watches their load and probes the path
// between them, all at once, and judges what it found. unprobed is why there is
// no path. A nil how probes none: an end that is no agent may take a probe for
// its client.
func (r *Runner) look(ctx context.Context, doc *measure.Document, how *Probing, planned measure.Spec) (facts map[string]*measure.Facts, unprobed, err error) {
	if _, err := r.reserve(ctx, r.agents(), false); err != nil {
		return nil, nil, err
	}
	r.notify(Checking{"reading both hosts and probing the path"})
	var path *measure.Path
	var routes map[string]*measure.Route
	each(2, func(i int) {
		if i == 0 {
			facts, routes, err = r.facts(ctx, doc, loadTime, func(name string) string { return r.opposite(name, true) })
			if err == nil {
				r.findGuests(ctx, doc, routes)
			}
		} else if how != nil {
			path, unprobed = r.probe(ctx, *how)
		}
	})
	if err := r.judgeWith(doc, routes, planned, path, unprobed); err != nil || how == nil {
		return facts, nil, err
	}
	kept := *how
	kept.Quick = true // a test asks for no more, and finds more
	if err == nil {
		r.keepPath(pathKey(doc, routes, kept), path)
	}
	return facts, unprobed, err
}

// noPath is the error of a path that could not be probed.
func (r *Runner) noPath(err error) error {
	for _, e := range r.Ends {
		if e.Foreign {
			return fault.Failf("does the program listen there, at that port?", "control: probing the path to %s: %w", e.Name, err)
		}
	}
	return fmt.Errorf("control: probing the path: %w", err)
}

// probe probes the path from this machine to its peer; nil where both are one.
func (r *Runner) probe(ctx context.Context, how Probing) (*measure.Path, error) {
	names := r.names()
	if len(names) < 2 {
		return nil, nil
	}
	return probe(ctx, r.Ends[names[0]], r.Ends[names[1]], how)
}

// probe probes the path from one end point, which dials, to another.
func probe(ctx context.Context, from, to *EndPoint, how Probing) (*measure.Path, error) {
	ask := bus.ProbeRequest{Quick: how.Quick, Source: how.Source, Device: how.Device, Family: how.Family}
	port := to.Port
	if !to.Foreign {
		a, err := bus.Call(ctx, to, bus.Answer, bus.Empty{})
		if err != nil {
			return nil, err
		}
		ask.Token, port = a.Token, a.Port
	}
	hosts := to.DataHosts
	if how.DataAddr != "" {
		hosts = []string{how.DataAddr}
	}
	for _, h := range hosts {
		ask.Targets = append(ask.Targets, net.JoinHostPort(h, strconv.Itoa(port)))
	}
	reply, err := bus.Call(ctx, from, bus.Probe, ask)
	if err != nil {
		return nil, err
	}
	reply.Path.From, reply.Path.To = from.Name, to.Name
	return &reply.Path, nil
}

// judge lets the gates look at all that is known.
func (r *Runner) judge(doc *measure.Document, routes map[string]*measure.Route, planned measure.Spec) error {
	s := scene.Subject{LinkBps: r.Link.RateBps, LinkL2: r.Link.Layer == unit.L2, Streams: planned.Streams, UDP: planned.Protocol == measure.UDP}
	if len(doc.Paths) > 0 {
		s.Path = &doc.Paths[0]
	}
	for _, m := range doc.Missing {
		if m.Fact == "paths" {
			s.NoPath = m.Why
		}
	}
	for i, e := range doc.EndPoints {
		x := r.judged(e, routes[e.Name])
		x.Shared = len(doc.EndPoints) == 1
		if s.Path != nil {
			x.Route = cmp.Or([]*measure.Route{s.Path.Forward.Route, s.Path.Back.Route}[min(i, 1)], x.Route)
		}
		s.Ends = append(s.Ends, x)
	}
	doc.Gates = cause.Judge(s)
	return r.choose(doc)
}

// choose keeps the gates that were asked for.
func (r *Runner) choose(doc *measure.Document) error {
	if r.Gating == nil {
		return nil
	}
	gates, err := cause.Filter(doc.Gates, r.Gating.Only, r.Gating.Skip)
	if err != nil {
		return err
	}
	doc.Gates = append(gates, absent(gates, r.Gating.Only)...)
	return nil
}

// judged is an end point as the gates look at it.
func (r *Runner) judged(e measure.EndPoint, route *measure.Route) scene.End {
	x := scene.End{Name: e.Name, Facts: e.Facts, Route: route}
	if c := r.Gating; c != nil && c.Costs != nil && e.Facts != nil && e.Facts.Hostname != nil {
		x.Costs = c.Costs(*e.Facts.Hostname)
	}
	return x
}

// absent are the gates that were asked for by name and are about nothing here.
func absent(gates []measure.Gate, only []string) (all []measure.Gate) {
	for _, rule := range cause.Gates() {
		is := func(g measure.Gate) bool { return g.ID == rule.ID }
		if slices.Contains(only, rule.ID) && !slices.ContainsFunc(gates, is) {
			all = append(all, measure.Gate{ID: rule.ID, Status: measure.GateNotChecked, Fact: "nothing here is what it judges", Why: rule.Why, Checklist: rule.Checklist})
		}
	}
	return all
}

// disqualified is the error of gates that fail, the first of them named; nil
// where none does.
func disqualified(gates []measure.Gate, hint string) error {
	var failed []measure.Gate
	for _, g := range gates {
		if g.Status == measure.GateFail {
			failed = append(failed, g)
		}
	}
	if len(failed) == 0 {
		return nil
	}
	g := failed[0]
	where := cmp.Or(g.EndPoint, "the path")
	more := ""
	if n := len(failed) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more)", n)
	}
	hints := slices.DeleteFunc([]string{fix(g), hint}, func(s string) bool { return s == "" })
	return fault.New(fault.Verdict, strings.Join(hints, "; or "), "%s is not fit to be measured: %s: %s%s", where, g.ID, g.Fact, more)
}

// fix of a gate in one line: the advice, then the commands, with where to
// run them if the gate does not say whose it is.
func fix(g measure.Gate) string {
	do := strings.Join(g.Fix, "; ")
	if do != "" && g.EndPoint == "" && g.FixAt != "" {
		do = "at " + g.FixAt + ": " + do
	}
	return strings.Join(slices.DeleteFunc([]string{g.Advice, do}, func(s string) bool { return s == "" }), "; ")
}
