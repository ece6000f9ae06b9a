package control

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"thru/internal/bus"
	"thru/internal/measure"
	"thru/internal/plan"
	"thru/internal/unit"
)

// facts reads all end points at the same time: their facts, their route to the
// address that they face, and for the time load their other load. A failed end
// point ends a command about two hosts; of many it is left out.
func (r *Runner) facts(ctx context.Context, doc *measure.Document, load time.Duration, faces func(name string) string) (map[string]*measure.Facts, map[string]*measure.Route, error) {
	names := r.names()
	replies, errs := make([]bus.FactsReply, len(names)), make([]error, len(names))
	unit.AtMost(len(names), width, func(i int) {
		if e := r.Ends[names[i]]; e.asked() {
			replies[i], errs[i] = bus.Call(ctx, e, bus.Facts, bus.FactsRequest{Peer: faces(names[i]), LoadNs: int64(load), UUID: len(r.Hypervisors) > 0})
		}
	})
	facts, routes := map[string]*measure.Facts{}, map[string]*measure.Route{}
	for i, n := range names {
		e := r.Ends[n]
		d := e.describe()
		switch {
		case errs[i] != nil && !r.goesOn:
			return facts, routes, factsError(e, errs[i])
		case errs[i] != nil:
			r.leaveOut(n, factsError(e, errs[i]))
		case e.Foreign:
			d.Facts = e.Known
			if e.Known == nil && len(e.Unknown) == 0 {
				doc.Missing = append(doc.Missing, measure.NotChecked{Fact: "end_points.facts", Why: "no thru runs at " + n})
			}
			doc.Missing, doc.Warnings = append(doc.Missing, e.Unknown...), append(doc.Warnings, e.Notes...)
		case e.asked():
			facts[n], routes[n] = &replies[i].Facts, replies[i].Route
			d.Thru, d.Facts = e.Hello.Thru, facts[n]
		}
		doc.EndPoints = append(doc.EndPoints, d)
	}
	return facts, routes, nil
}

func factsError(e *EndPoint, err error) error {
	if e.Client.Err() != nil {
		return lost(e)
	}
	return fmt.Errorf("control: asking %s for its facts: %w", e.Name, err)
}

// leaveOut excludes an end point from the rest of the run.
func (r *Runner) leaveOut(name string, why error) {
	measure.Put(&r.down, name, why)
}

// describe returns the end point as the document names it.
func (e *EndPoint) describe() measure.EndPoint {
	d := measure.EndPoint{Name: e.Name, Addr: e.Addr, Speaks: e.Speaks}
	if len(e.Hello.Labels)+len(e.Labels) > 0 {
		d.Labels = map[string]string{}
		maps.Copy(d.Labels, e.Hello.Labels)
		maps.Copy(d.Labels, e.Labels)
	}
	if e.Down != nil {
		return d
	}
	why, hint := e.noCapture()
	if d.Captures = why == ""; !d.Captures {
		d.NoCapture = strings.TrimSuffix(why+": "+hint, ": ")
	}
	return d
}

// opposite returns the data address that an end point faces, where that is known
// before the two have met: nobody dials this machine. A check of one machine
// covers all its interfaces, a test of it loopback.
func (r *Runner) opposite(name string, check bool) string {
	if e := r.Ends[name]; len(r.Ends) == 1 && !check && len(e.DataHosts) > 0 {
		return e.DataHosts[0]
	}
	for _, e := range r.Ends {
		if e.Name != name && e.Name != Local && len(e.DataHosts) > 0 {
			return e.DataHosts[0]
		}
	}
	return ""
}

// facing returns a function that finds the data address that an end point faces
// in a plan: of many, that of the first end point it is paired with.
func (r *Runner) facing(p plan.Plan) func(name string) string {
	if len(r.Ends) <= 2 {
		return func(name string) string { return r.opposite(name, false) }
	}
	faces := map[string]string{}
	for _, step := range p.Steps {
		for _, s := range step.Specs {
			for _, w := range []route{{s.From, s.To}, {s.To, s.From}} {
				to := r.end(w.to)
				if _, known := faces[w.from]; !known && w.from != w.to && to.Name != Local && len(to.DataHosts) > 0 {
					faces[w.from] = to.DataHosts[0]
				}
			}
		}
	}
	return func(name string) string { return faces[name] }
}
