package control

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"thru/internal/bus"
	"thru/internal/fault"
	"thru/internal/gate"
	"thru/internal/measure"
	"thru/internal/plan"
	"thru/internal/unit"
)

// Gating says how the conditions of a measurement are judged.
type Gating struct {
	Only, Skip []string                          // ids of gates; none: all
	Force      bool                              // measure although a gate fails
	Costs      func(hostname string) []gate.Cost // what earlier tests cost a host; nil: not known
	Paths      PathCache                         // nil: every path is probed
}

// PathCache keeps what was found of a path for a while. A key stands for the
// end points and for all that their path's facts depend on.
type PathCache interface {
	Load(key string) (measure.Path, bool)
	Keep(key string, p measure.Path)
}

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

// quickTime bounds the probe before a test; without it the test goes on.
const quickTime = 6 * time.Second

// Check reads the facts of the end points and of the path between them, and
// judges whether they are fit to be measured. The error is that of a gate that
// fails (exit code 3), or of what kept the check from its end. The document is
// always usable.
func (r *Runner) Check(ctx context.Context, how Probing, streams int) (*measure.Document, error) {
	begin := time.Now()
	doc := &measure.Document{
		Schema: measure.Schema, Thru: r.Version, Command: "check", StartedAt: begin,
		EndPoints: []measure.EndPoint{}, Cells: []measure.Cell{},
	}
	err := r.check(ctx, doc, how, streams)
	if ctx.Err() != nil {
		err = fault.Failf("", "interrupted")
	}
	doc.ElapsedNs = int64(time.Since(begin))
	if err != nil {
		doc.Error = Describe(err)
	}
	return doc, err
}

// CheckFacts judges a host whose facts were read from outside.
func (r *Runner) CheckFacts(name, addr string, facts measure.Facts, begin time.Time) (*measure.Document, error) {
	doc := &measure.Document{
		Schema: measure.Schema, Thru: r.Version, Command: "check", StartedAt: begin,
		EndPoints: []measure.EndPoint{{Name: name, Addr: addr, Facts: &facts}}, Cells: []measure.Cell{},
	}
	err := r.judge(doc, nil, 0)
	if err == nil {
		err = disqualified(doc.Gates, "")
	}
	doc.ElapsedNs = int64(time.Since(begin))
	if err != nil {
		doc.Error = Describe(err)
	}
	return doc, err
}

func (r *Runner) check(ctx context.Context, doc *measure.Document, how Probing, streams int) error {
	ends := r.agents()
	defer release(ends)
	if _, err := r.reserve(ctx, ends, false); err != nil {
		return err
	}
	r.Watch.Checking("reading both hosts and probing the path")
	var path *measure.Path
	var routes map[string]*measure.Route
	errs := make([]error, 2)
	each(len(errs), func(i int) {
		if i == 0 {
			_, routes, errs[i] = r.facts(ctx, doc, loadTime)
		} else {
			path, errs[i] = r.probe(ctx, how)
		}
	})
	if errs[0] != nil {
		return errs[0]
	}
	doc.AddPath(path, errs[1])
	if err := r.judge(doc, routes, streams); err != nil {
		return err
	}
	return disqualified(doc.Gates, "")
}

// agents are the end points that have one, in the order that all controllers share.
func (r *Runner) agents() []*EndPoint {
	var es []*EndPoint
	for _, e := range r.Ends {
		if !e.Foreign {
			es = append(es, e)
		}
	}
	slices.SortFunc(es, byAddr)
	return es
}

// fit judges the quick gates before a plan runs: the facts that are there, and
// a probe of some round trips, which is kept for the next time.
func (r *Runner) fit(ctx context.Context, p plan.Plan, doc *measure.Document, routes map[string]*measure.Route) error {
	if r.Gating == nil {
		return nil
	}
	s := p.Steps[0].Specs[0]
	how := Probing{Quick: true, Source: s.BindAddr, Device: s.BindDev, DataAddr: s.DataAddr, Family: s.Family}
	path, err := r.knownPath(ctx, doc, how)
	doc.AddPath(path, err)
	if err := r.judge(doc, routes, s.Streams); err != nil {
		return err
	}
	err = disqualified(doc.Gates, "--force measures all the same, and the result says so")
	if err != nil && r.Gating.Force {
		doc.Forced = true
		doc.Warnings = append(doc.Warnings, "measured by --force, although "+err.Error())
		return nil
	}
	return err
}

// knownPath is the path as it was found lately, or is found now.
func (r *Runner) knownPath(ctx context.Context, doc *measure.Document, how Probing) (*measure.Path, error) {
	key := pathKey(doc, how)
	if c := r.Gating.Paths; c != nil {
		if p, ok := c.Load(key); ok {
			p.Cached = true
			return &p, nil
		}
	}
	ends := r.agents()
	if len(ends) < 2 { // one machine, or a far end whose turn a look would take
		return nil, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, quickTime, fmt.Errorf("it took longer than %v", quickTime))
	defer cancel()
	defer release(ends)
	if _, err := r.reserve(ctx, ends, false); err != nil {
		return nil, err
	}
	r.Watch.Checking("probing the path")
	p, err := r.probe(ctx, how)
	if c := r.Gating.Paths; c != nil && p != nil && err == nil {
		c.Keep(key, *p)
	}
	return p, err
}

// pathKey stands for all that the facts of a path depend on at its ends.
func pathKey(doc *measure.Document, how Probing) string {
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
	}
	var ends []end
	for _, e := range doc.EndPoints {
		x := end{Name: e.Name, Addr: e.Addr}
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
	if err != nil { // numbers that JSON does not know: then nothing is found again
		return ""
	}
	return fmt.Sprintf("%x", sha256.Sum256(b))
}

// probe probes the path from this machine to its peer; nil where both are one.
func (r *Runner) probe(ctx context.Context, how Probing) (*measure.Path, error) {
	names := r.names()
	if len(names) < 2 {
		return nil, nil
	}
	from, to := r.Ends[names[0]], r.Ends[names[1]]
	ask := bus.Probe{Quick: how.Quick, Source: how.Source, Device: how.Device, Family: how.Family}
	port := to.Port
	if !to.Foreign {
		if to.Hello.WireMinor < probeMinor {
			return nil, fmt.Errorf("thru %s at %s is too old to answer a probe", to.Hello.Thru, to.Name)
		}
		a, err := to.Client.Answer(ctx, bus.Answer{})
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
	reply, err := from.Client.Probe(ctx, ask)
	if err != nil {
		return nil, err
	}
	reply.Path.From, reply.Path.To = from.Name, to.Name
	return &reply.Path, nil
}

// probeMinor is the wire minor since which an agent answers a probe.
const probeMinor = 2

// judge lets the gates look at all that is known.
func (r *Runner) judge(doc *measure.Document, routes map[string]*measure.Route, streams int) error {
	s := gate.Subject{LinkBps: r.Link.RateBps, LinkL2: r.Link.Layer == unit.L2, Streams: streams}
	if len(doc.Paths) > 0 {
		s.Path = &doc.Paths[0]
	}
	for i, e := range doc.EndPoints {
		x := gate.End{Name: e.Name, Facts: e.Facts, Route: routes[e.Name], Shared: len(doc.EndPoints) == 1}
		if s.Path != nil {
			x.Route = cmp.Or([]*measure.Route{s.Path.Forward.Route, s.Path.Back.Route}[min(i, 1)], x.Route)
		}
		if c := r.Gating; c != nil && c.Costs != nil && e.Facts != nil && e.Facts.Hostname != nil {
			x.Costs = c.Costs(*e.Facts.Hostname)
		}
		s.Ends = append(s.Ends, x)
	}
	doc.Gates = gate.Judge(s)
	if r.Gating == nil {
		return nil
	}
	var err error
	doc.Gates, err = gate.Filter(doc.Gates, r.Gating.Only, r.Gating.Skip)
	return err
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
	where := g.EndPoint
	if where == "" {
		where = "the path"
	}
	more := ""
	if n := len(failed) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more)", n)
	}
	hints := slices.DeleteFunc([]string{remedy(g), hint}, func(s string) bool { return s == "" })
	return fault.New(fault.Verdict, strings.Join(hints, "; or "), "%s is not fit to be measured: %s: %s%s", where, g.ID, g.Fact, more)
}

// remedy of a gate in one line: the advice, then the commands, with where to
// run them if the gate does not say whose it is.
func remedy(g measure.Gate) string {
	do := strings.Join(g.Remedy, "; ")
	if do != "" && g.EndPoint == "" && g.RemedyAt != "" {
		do = "at " + g.RemedyAt + ": " + do
	}
	return strings.Join(slices.DeleteFunc([]string{g.Advice, do}, func(s string) bool { return s == "" }), "; ")
}
