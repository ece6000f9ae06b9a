// Package control runs a plan over end points and assembles the result. It is
// a state machine that prints nothing: what a person may want to see on the
// way goes to an Observer. A run on this machine alone goes through an agent
// in this process, so that one host and many are one code path.
package control

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"thru/internal/bus"
	"thru/internal/cause"
	"thru/internal/fault"
	"thru/internal/hypervisor"
	"thru/internal/measure"
	"thru/internal/plan"
	"thru/internal/stat"
)

// Client is what control needs of a connection to an agent; bus.Client is one.
type Client interface {
	bus.Caller
	Events() <-chan bus.Event
	Heard() time.Time
	Lost() <-chan struct{}
	Err() error
}

// EndPoint is a connected agent. DataHosts are the addresses that a peer
// dials for data, in order.
//
// A foreign end point has no agent: a program such as iperf3 that only the
// engine at the other end talks to. It has no Client, and of its evidence there
// is what it reports.
type EndPoint struct {
	Name      string
	Addr      string // where control connected to; empty for this machine
	Client    Client
	Hello     bus.HelloReply
	DataHosts []string
	Labels    map[string]string
	Via       string // the controller that what is said to it goes by; empty: none
	Down      error  // why it could not be connected: its pairs fail by that; nil: it is

	Foreign bool
	Port    int        // of a foreign one that is dialled
	Token   string     // of a foreign one that has dialled: names it to the engine that took the call
	Login   *bus.Login // where a foreign one asks who we are
	Engine  string     // of a foreign one: what moves its data, where its name does not tell that

	Speaks  string               // of a foreign one: its program, where that is known before
	Known   *measure.Facts       // of a foreign one: facts that were read by other means; nil: none
	Unknown []measure.NotChecked // what could not be read, and why
	Notes   []string             // what was done to reach it, for the warnings of the document

	once   sync.Once
	places chan struct{} // of requests under way
}

// asked tells whether there is an agent to ask.
func (e *EndPoint) asked() bool { return !e.Foreign && e.Client != nil }

// Ask implements bus.Caller. An agent takes a few requests at once.
func (e *EndPoint) Ask(ctx context.Context, q bus.Question, reply any) error {
	leave, err := e.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	return e.Client.Ask(ctx, q, reply)
}

// enter waits for the place of a request.
func (e *EndPoint) enter(ctx context.Context) (leave func(), err error) {
	e.once.Do(func() { e.places = make(chan struct{}, perAgent) })
	select {
	case e.places <- struct{}{}:
		return func() { <-e.places }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Runner runs plans.
type Runner struct {
	Version string
	Ends    map[string]*EndPoint
	Link    stat.Link
	Watch   Observer                               // nil: nobody does
	Gating  *Gating                                // nil: no gate is judged
	Keep    func(Packets) (file string, err error) // keeps each capture; nil: none is

	// Below are the hypervisors that may have the end points as virtual machines, or
	// as hosts: what lies below them is added to the document, with counters over
	// the time of the runs. One that fails costs a warning.
	Below []hypervisor.Source

	// Before is what an interrupted run of the same plan has measured: those runs
	// are not made again. Saved hears of the document after each step.
	Before  *measure.Document
	Saved   func(*measure.Document)
	Planned *measure.Planned // names the plan file in the document; Runner counts its steps
	Until   int              // so many turns of the plan's schedule are made, and the rest is left to the next Runner; 0: all

	beneath     *beneath      // what is asked of Below; nil: nothing
	belowLimits belowLimits   // zero: the usual ones
	waited      time.Duration // for the turn, before the first run
	pathKey     string        // under which the path's facts are kept
	experiment  string        // under way in an explanation: its packets are named after it

	goesOn  bool                     // a pair that fails leaves the others
	down    map[string]error         // end points that take no part any more, by name
	unfit   map[route]error          // pairs that a gate keeps from being measured
	swapped map[route]bool           // pairs of which the other end had to dial
	walls   map[string]time.Duration // wall clocks, ahead of this machine's
}

// Run runs the whole plan. The document is always usable: on error it holds
// what was measured until then, and the error.
func (r *Runner) Run(ctx context.Context, p plan.Plan) (*measure.Document, error) {
	begin := time.Now()
	doc := r.document(p.Command, begin)
	doc.Cells = cells(p)
	r.goesOn = manyPairs(p)
	err := r.resume(p, doc, begin)
	if err == nil {
		err = r.carryOut(ctx, p, doc)
	}
	if ctx.Err() != nil {
		err = interruption(doc)
	}
	r.endBelow(ctx, doc)
	r.conclude(p, doc)
	if err != nil && ctx.Err() == nil {
		if v := r.unseen(doc); v != nil {
			doc.Verdict, err = v, fault.New(fault.Inconclusive, fault.Hint(err), "%w", err)
		}
	}
	if err == nil {
		err = damaged(doc)
	}
	if err == nil && r.wholly(p) {
		err = r.missed(doc)
	}
	return finished(doc, begin, err)
}

// document is that of a command which begins.
func (r *Runner) document(command string, begin time.Time) *measure.Document {
	return &measure.Document{
		Schema: measure.Schema, Thru: r.Version, Command: command, StartedAt: begin,
		EndPoints: []measure.EndPoint{}, Cells: []measure.Cell{},
	}
}

// finished is a document whose command, or the part of it since a moment, has ended.
func finished(doc *measure.Document, begin time.Time, err error) (*measure.Document, error) {
	doc.ElapsedNs += int64(time.Since(begin))
	if err != nil {
		doc.Error = Describe(err)
	}
	return doc, err
}

// carryOut reads the hosts, judges the gates and measures.
func (r *Runner) carryOut(ctx context.Context, p plan.Plan, doc *measure.Document) error {
	facts, routes, err := r.facts(ctx, doc, 0, r.facing(p))
	if err == nil {
		err = r.allowed(p)
	}
	if err == nil {
		r.lookBelow(ctx, doc, routes)
		r.summarise(p, doc, facts)
		err = r.fit(ctx, p, doc, routes)
	}
	if err == nil {
		r.placeEnds(ctx, doc)
	}
	if err == nil {
		r.watchBelow(ctx, doc)
		if err = r.runAll(ctx, p, doc, facts); err != nil {
			r.forgetPath()
		}
	}
	return err
}

// wholly tells whether the plan is run to its end.
func (r *Runner) wholly(p plan.Plan) bool { return r.Until == 0 || r.Until >= p.Runs() }

// damaged is an error where --verify has found data that is not what was sent.
func damaged(doc *measure.Document) error {
	for _, c := range doc.Cells {
		if v := c.Checked; v != nil && v.WrongBytes > 0 {
			return fault.Failf("something between the ends changes data: the figures are right, the path is not to be trusted",
				"control: %d of %d bytes from %s to %s arrived changed", v.WrongBytes, v.Bytes, c.From, c.To)
		}
	}
	return nil
}

// kept says what became of an interrupted command's figures.
func kept(doc *measure.Document) string {
	for _, c := range doc.Cells {
		if stat.Measured(&c) {
			return "what was measured so far is kept"
		}
	}
	if t := doc.Transfer; t != nil && slices.ContainsFunc(t.Runs, func(x measure.TransferRun) bool { return x.Bps != nil }) {
		return "what was measured so far is kept"
	}
	return "nothing had been measured yet"
}

// Describe turns an error into its form in the document.
func Describe(err error) *measure.Error {
	return &measure.Error{Message: fault.Plain(err.Error()), Hint: fault.Hint(err), ExitCode: fault.Code(err)}
}

// cells lists the plan's flows, in the order of its steps.
func cells(p plan.Plan) []measure.Cell {
	out := []measure.Cell{}
	for g, s := range p.Steps {
		for i, spec := range s.Specs {
			out = append(out, measure.Cell{
				From: spec.From, To: spec.To, Label: cellLabel(s, i), Group: g, Protocol: spec.Protocol, Streams: spec.Streams,
				Window: spec.Window, Length: spec.Length, Spec: spec, Beside: s.Beside, Runs: []measure.Run{},
				AtOnce: len(s.Specs), AskedPct: p.Repeat.PrecisionPct, Rung: s.Rung, Axes: s.Axes,
			})
		}
	}
	return out
}

// cellLabel tells the flows of a step apart: two directions, and requests
// beside the traffic. Pairs are told apart by their names.
func cellLabel(s plan.Step, i int) string {
	bulk := 0
	for _, x := range s.Specs {
		if x.Traffic == measure.Bulk {
			bulk++
		}
	}
	switch {
	case i < len(s.Labels):
		return s.Labels[i]
	case len(s.Specs) < 2 || s.Apart:
		return s.Label
	case s.Specs[i].Traffic != measure.Bulk:
		return plan.LoadedLatency
	case bulk < 2:
		return s.Label
	default:
		return []string{"forward", "back"}[i%2]
	}
}

// names of the end points, `local` first.
func (r *Runner) names() []string {
	var ns []string
	for n := range r.Ends {
		ns = append(ns, n)
	}
	slices.SortFunc(ns, func(a, b string) int {
		if (a == Local) != (b == Local) {
			if a == Local {
				return -1
			}
			return 1
		}
		if a < b {
			return -1
		}
		return 1
	})
	return ns
}

// Local is the name of the machine that runs the command.
const Local = "local"

// introduce notes which program a foreign end point has turned out to be.
func introduce(doc *measure.Document, run measure.Run) {
	for _, f := range run.Flows {
		for _, x := range []*measure.Evidence{f.Sender, f.Receiver} {
			for i := range doc.EndPoints {
				if x != nil && x.Reported != "" && doc.EndPoints[i].Name == x.EndPoint && !strings.HasPrefix(doc.EndPoints[i].Speaks, x.Reported) {
					doc.EndPoints[i].Speaks = x.Reported
				}
			}
		}
	}
}

// unseen is the verdict where a rate was wanted, and an end point was lost before
// its figures came: that says nothing of the path. nil where none was.
func (r *Runner) unseen(doc *measure.Document) *measure.Verdict {
	if r.Link.RateBps == 0 || doc.Verdict != nil && !doc.Verdict.Pass {
		return nil
	}
	for _, e := range doc.EndPoints {
		if x := r.Ends[e.Name]; x != nil && x.Down == nil && r.gone(x) != nil {
			return &measure.Verdict{Inconclusive: true, Required: stat.PassPct, Reason: "control of " + e.Name + " was lost before its figures came", Do: "let control take another way than the traffic, and measure again"}
		}
	}
	return nil
}

// conclude adds what is said of the whole.
func (r *Runner) conclude(p plan.Plan, doc *measure.Document) {
	onlyShown(doc)
	r.describeEnds(doc)
	if w := wallWarning(doc.EndPoints); w != "" {
		doc.Warnings = append(doc.Warnings, w)
	}
	stat.Scale(doc.Cells)
	stat.LatencyUnderLoad(doc.Cells)
	doc.Verdict = stat.Verdict(doc.Cells)
	if r.goesOn {
		stat.Groups(doc)
		stat.Ladder(doc, func(rung string) stat.Link { return r.linkOfRung(p, rung) })
		stat.Compare(doc)
		stat.Goals(doc, goals(p))
	}
	doc.Recommended = stat.Recommend(doc)
	cause.Diagnose(doc)
	cause.Rungs([]*measure.Document{doc})
	if p.Command == "ladder" {
		doc.Advice = stat.StreamAdvice(topmost(doc.Cells), cpusOf(doc))
	}
}

// topmost are the cells of a ladder's last rung, the path that is in question.
// Cells that were confined to CPUs say nothing of how many streams to use.
func topmost(cells []measure.Cell) []measure.Cell {
	return slices.DeleteFunc(slices.Clone(cells), func(c measure.Cell) bool {
		return c.Rung != cells[len(cells)-1].Rung || c.Spec.SenderCPUs != ""
	})
}

// goals are the targets of the plan, as stat knows them.
func goals(p plan.Plan) (gs []stat.Goal) {
	for _, t := range p.Targets {
		gs = append(gs, stat.Goal{Of: t.Of, Where: t.Where, Rung: t.Rung, Figure: t.Figure, Wanted: t.Wanted, AtMost: t.AtMost})
	}
	return gs
}

// link of a step: its own, else the plan's, else what the command was told.
func (r *Runner) link(p plan.Plan, step plan.Step) stat.Link {
	link := r.Link
	for _, l := range []plan.Link{step.Link, p.Link} {
		if l.RateBps > 0 {
			link.RateBps, link.Layer = l.RateBps, l.Layer
			break
		}
	}
	return link
}

// linkOfRung is that of its first step.
func (r *Runner) linkOfRung(p plan.Plan, rung string) stat.Link {
	for _, s := range p.Steps {
		if s.Rung == rung {
			return r.link(p, s)
		}
	}
	return r.Link
}

func cpusOf(doc *measure.Document) int {
	for _, e := range doc.EndPoints {
		if e.Facts != nil && e.Facts.Cores != nil {
			return *e.Facts.Cores
		}
	}
	return 0
}
