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

// Probing holds the options of a path probe.
type Probing struct {
	Quick          bool // only what a few round trips show
	Source, Device string
	DataAddr       string
	Family         int
}

// How long a check and an explanation watch the other load of the hosts. The path
// probe runs meanwhile (some hundred packets).
const (
	loadTime    = time.Second
	explainLoad = 500 * time.Millisecond
)

// Check reads the facts of the end points, probes the path between them and
// judges by the gates whether they are fit for a measurement. It returns an error
// with exit code 3 where a gate fails, or the error that ended the check. The
// document is usable on error too.
func (r *Runner) Check(ctx context.Context, how Probing, streams int) (*measure.Document, error) {
	begin := time.Now()
	doc := r.document("check", begin)
	err := r.check(ctx, doc, how, streams)
	r.placeEnds(ctx, doc, false)
	r.fetchCounters(ctx, doc)
	if ctx.Err() != nil {
		err = fault.Failf("", "interrupted")
	}
	return finished(doc, begin, err)
}

// CheckFacts judges a host by facts that the caller read without an agent.
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
	_, unprobed, err := r.look(ctx, doc, loadTime, &how, measure.Spec{Streams: streams})
	if err != nil {
		return err
	}
	if unprobed != nil {
		return r.noPath(unprobed)
	}
	return disqualified(doc.Gates, "")
}

// look takes the turn, reads the hosts, watches their load and probes the path
// between them, all at once, and judges the result. unprobed is why there is no
// path. With how nil it probes no path: an end without an agent may mistake a
// probe for its client.
func (r *Runner) look(ctx context.Context, doc *measure.Document, load time.Duration, how *Probing, planned measure.Spec) (facts map[string]*measure.Facts, unprobed, err error) {
	if _, err := r.reserve(ctx, r.agents(), false); err != nil {
		return nil, nil, err
	}
	r.notify(Checking{"reading both hosts and probing the path"})
	var path *measure.Path
	var routes map[string]*measure.Route
	each(2, func(i int) {
		if i == 0 {
			facts, routes, err = r.facts(ctx, doc, load, func(name string) string { return r.opposite(name, true) })
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
	kept.Quick = true // a test asks only for a quick probe, and finds this fuller one
	if err == nil {
		r.keepPath(pathKey(doc, routes, kept), path)
	}
	return facts, unprobed, err
}

// noPath returns the error of a path that could not be probed.
func (r *Runner) noPath(err error) error {
	for _, e := range r.Ends {
		if e.Foreign {
			return fault.Failf("check that the program listens there, on that port", "control: probing the path to %s: %w", e.Name, err)
		}
	}
	return fmt.Errorf("control: probing the path: %w", err)
}

// probe probes the path from this machine to its peer; nil where both are the same end point.
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

// judge runs the gates on all known facts.
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

// choose keeps the gates that the user asked for (Gating.Only, Gating.Skip).
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

// judged returns an end point in the form that the gates read.
func (r *Runner) judged(e measure.EndPoint, route *measure.Route) scene.End {
	x := scene.End{Name: e.Name, Facts: e.Facts, Route: route}
	if c := r.Gating; c != nil && c.Costs != nil && e.Facts != nil && e.Facts.Hostname != nil {
		x.Costs = c.Costs(*e.Facts.Hostname)
	}
	return x
}

// absent returns, as not checked, the gates that the user named but that apply to nothing here.
func absent(gates []measure.Gate, only []string) (all []measure.Gate) {
	for _, rule := range cause.Gates() {
		is := func(g measure.Gate) bool { return g.ID == rule.ID }
		if slices.Contains(only, rule.ID) && !slices.ContainsFunc(gates, is) {
			all = append(all, measure.Gate{ID: rule.ID, Status: measure.GateNotChecked, Fact: "nothing here that it applies to", Why: rule.Why, Checklist: rule.Checklist})
		}
	}
	return all
}

// disqualified returns the error of failed gates and names the first; nil where
// none failed.
func disqualified(gates []measure.Gate, hint string) error {
	failed := unit.Filtered(gates, func(g measure.Gate) bool { return g.Status == measure.GateFail })
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
	return fault.New(fault.Verdict, strings.Join(hints, "; or "), "%s is not fit for a measurement: %s: %s%s", where, g.ID, g.Fact, more)
}

// fix returns the fix of a gate in one line: the advice, then the commands, with
// the place to run them where the gate names no end point.
func fix(g measure.Gate) string {
	do := strings.Join(g.Fix, "; ")
	if do != "" && g.EndPoint == "" && g.FixAt != "" {
		do = "at " + g.FixAt + ": " + do
	}
	return strings.Join(slices.DeleteFunc([]string{g.Advice, do}, func(s string) bool { return s == "" }), "; ")
}
