package control

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"thru/internal/measure"
	"thru/internal/plan"
)

// quickTime bounds the probe before a test; where it fails the test goes on.
const quickTime = 6 * time.Second

// fit judges the quick gates before a plan runs: on the facts, and on a probe of
// a few round trips, which is kept for later commands. With brief, there are so many
// pairs that the document omits gates that pass.
func (r *Runner) fit(ctx context.Context, p plan.Plan, doc *measure.Document, routes map[string]*measure.Route) (brief bool, err error) {
	if p.Gates == plan.GatesOff {
		doc.Missing = append(doc.Missing, measure.NotChecked{Fact: "gates", Why: "the plan has gates: off"})
		return false, nil
	}
	if r.Gating == nil {
		return false, nil
	}
	if r.goesOn {
		return r.fitAll(ctx, p, doc, routes)
	}
	return false, r.fitPair(ctx, p, doc, routes)
}

// fitPair is fit for a plan of two hosts.
func (r *Runner) fitPair(ctx context.Context, p plan.Plan, doc *measure.Document, routes map[string]*measure.Route) error {
	s := p.Steps[0].Specs[0]
	how := Probing{Quick: true, Source: s.BindAddr, Device: s.BindDev, DataAddr: s.DataAddr, Family: s.Family}
	key := pathKey(doc, routes, how)
	r.pathKey = key
	err := r.judgeWith(doc, routes, s, r.knownPath(key), nil)
	if err != nil {
		return err
	}
	if len(r.agents()) == 2 && (len(doc.Paths) == 0 || slices.ContainsFunc(doc.Gates, doubtful)) {
		path, perr := r.quickProbe(ctx, how, s.Together)
		r.keepPath(key, path)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := r.judgeWith(doc, routes, s, path, perr); err != nil {
			return err
		}
	}
	err = disqualified(doc.Gates, "measure anyway with --force; the result notes it")
	if err != nil && r.Gating.Force {
		doc.Forced = true
		doc.Warnings = append(doc.Warnings, "measured by --force, although "+err.Error())
		return nil
	}
	if err != nil {
		release(r.agents())
	}
	return err
}

// doubtful reports whether a gate calls for a new probe of a path that was probed
// before: the problem may be fixed since.
func doubtful(g measure.Gate) bool {
	return g.Status == measure.GateFail || g.Status == measure.GateWarn && g.From != ""
}

// judgeWith judges again with a path, or with the reason why there is none.
func (r *Runner) judgeWith(doc *measure.Document, routes map[string]*measure.Route, planned measure.Spec, path *measure.Path, why error) error {
	doc.Paths = nil
	doc.AddPath(path, why)
	return r.judge(doc, routes, planned)
}

// knownPath returns the recent probe of the path; nil where there is none.
func (r *Runner) knownPath(key string) *measure.Path {
	if r.Gating.Paths == nil {
		return nil
	}
	p, ok := r.Gating.Paths.Load(key)
	if !ok {
		return nil
	}
	p.Cached = true
	return &p
}

func (r *Runner) keepPath(key string, p *measure.Path) {
	if r.Gating != nil && r.Gating.Paths != nil && p != nil {
		r.Gating.Paths.Keep(key, *p)
	}
}

// quickProbe takes the turn, which the first run then reuses, and probes.
func (r *Runner) quickProbe(ctx context.Context, how Probing, together bool) (*measure.Path, error) {
	ends := r.agents()
	var err error
	if r.waited, err = r.reserve(ctx, ends, together); err != nil {
		release(ends)
		return nil, err
	}
	r.notify(Checking{"probing the path"})
	ctx, cancel := context.WithTimeoutCause(ctx, quickTime, fmt.Errorf("it took longer than %v", quickTime))
	defer cancel()
	p, err := r.probe(ctx, how)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return p, err
}

// pathKey returns a key of all that the facts of a path depend on at its ends.
func pathKey(doc *measure.Document, routes map[string]*measure.Route, how Probing) string {
	type link struct {
		Name  string
		MTU   *int
		Addrs []string
		Up    *bool
	}
	type end struct {
		Name, Addr string
		Kernel     *string
		Sysctls    map[string]string
		Links      []link
		Route      *measure.Route
	}
	var ends []end
	for _, e := range doc.EndPoints {
		x := end{Name: e.Name, Addr: e.Addr, Route: routes[e.Name]}
		if f := e.Facts; f != nil {
			x.Kernel, x.Sysctls = f.Kernel, f.Sysctls
			for _, i := range f.Interfaces {
				x.Links = append(x.Links, link{i.Name, i.MTU, i.Addrs, i.Up})
			}
		}
		ends = append(ends, x)
	}
	b, err := json.Marshal(struct {
		Ends []end
		How  Probing
	}{ends, how})
	if err != nil { // numbers that JSON cannot hold: the key then matches nothing
		return ""
	}
	return fmt.Sprintf("%x", sha256.Sum256(b))
}

// forgetPath drops the kept probe of a path on which a test failed.
func (r *Runner) forgetPath() {
	if r.Gating != nil && r.Gating.Paths != nil && r.pathKey != "" {
		r.Gating.Paths.Drop(r.pathKey)
	}
}
