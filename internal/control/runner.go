package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"thru/internal/bus"
	"thru/internal/cause/scene"
	"thru/internal/fault"
	"thru/internal/hypervisor"
	"thru/internal/measure"
	"thru/internal/plan"
	"thru/internal/stat"
)

// Client is the part of a connection to an agent that control uses; bus.Client implements it.
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
// engine at the other end talks to. It has no Client; its evidence is what it
// reports.
type EndPoint struct {
	Name      string
	Addr      string // where control connected to; empty for this machine
	Client    Client
	Hello     bus.HelloReply
	DataHosts []string
	Labels    map[string]string
	Via       string // the controller that relays requests to it; empty: none
	Down      error  // why it could not be connected: its pairs fail with it; nil: connected

	Foreign bool
	Port    int        // of a foreign end point that is dialled
	Token   string     // of a foreign end point that has dialled: identifies it to the engine that accepted it
	Login   *bus.Login // where a foreign end point requires a login
	Engine  string     // of a foreign end point: what moves its data, where its name does not say

	Speaks  string               // of a foreign end point: its program, where known before
	Known   *measure.Facts       // of a foreign end point: facts read by other means; nil: none
	Unknown []measure.NotChecked // facts that could not be read, and why
	Notes   []string             // what was done to reach it, for the warnings of the document

	once   sync.Once
	places chan struct{} // slots of concurrent requests
}

// asked reports whether the end point has an agent to ask.
func (e *EndPoint) asked() bool { return !e.Foreign && e.Client != nil }

// Ask implements bus.Caller. It limits the requests that an agent has at once.
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

// inOrder compares by what an agent calls itself, which is the same whatever way
// it was reached; one that is too old to say so comes first, by its address.
func inOrder(a, b *EndPoint) int {
	if c := strings.Compare(a.Hello.ID, b.Hello.ID); c != 0 {
		return c
	}
	return strings.Compare(a.Addr, b.Addr)
}

// Local is the name of the machine that runs the command.
const Local = measure.Local

// Runner runs plans.
type Runner struct {
	Version string
	Ends    map[string]*EndPoint
	Link    stat.Link
	Watch   Observer                               // nil: nobody does
	Gating  *Gating                                // nil: no gate is judged
	Keep    func(Packets) (file string, err error) // keeps each capture; nil: none is

	// Hypervisors are the hypervisors that may have the end points as virtual machines, or
	// as hosts: what lies below them is added to the document, with counters over
	// the time of the runs. One that fails costs a warning.
	Hypervisors []hypervisor.Source

	// Before is what an interrupted run of the same plan has measured: those runs
	// are not made again. Saved hears of the document after each step.
	Before  *measure.Document
	Saved   func(*measure.Document)
	Planned *measure.Planned // names the plan file in the document; Runner counts its steps
	Until   int              // so many turns of the plan's schedule are made, and the rest is left to the next Runner; 0: all

	hypervisorRun    *hypervisorRun   // what is asked of Below; nil: nothing
	hypervisorLimits hypervisorLimits // zero: the usual ones
	waited           time.Duration    // for the turn, before the first run
	pathKey          string           // under which the path's facts are kept
	experiment       string           // under way in an explanation: its packets are named after it

	goesOn  bool                     // a pair that fails leaves the others
	down    map[string]error         // end points that take no part any more, by name
	unfit   map[route]error          // pairs that a gate keeps from being measured
	swapped map[route]bool           // pairs of which the other end had to dial
	walls   map[string]time.Duration // wall clocks, ahead of this machine's
}

// Gating says how the conditions of a measurement are judged.
type Gating struct {
	Only, Skip []string                           // ids of gates; none: all
	Force      bool                               // measure although a gate fails
	Costs      func(hostname string) []scene.Cost // what earlier tests cost a host; nil: not known
	Paths      PathCache                          // nil: every path is probed
}

// PathCache keeps what was found of a path for a while. A key stands for the
// end points and for all that their path's facts depend on.
type PathCache interface {
	Load(key string) (measure.Path, bool)
	Keep(key string, p measure.Path)
	Drop(key string)
}

// Packets is a capture as a file, to be kept.
type Packets struct {
	From, To   string // of the flow
	EndPoint   string // that captured
	Experiment string // of an explanation; diagnose.Base for the traffic that is explained, empty for a test
	Pcapng     []byte
}

// hypervisorLimits are how long what lies below the end points is waited for. It is asked
// beside a measurement, which it may not cost.
type hypervisorLimits struct {
	inventory time.Duration // from when the hosts were read
	watch     time.Duration // for counters to begin
	last      time.Duration // for their last samples; never longer than the test was, but leastPatience
	grace     time.Duration // for a source to heed the end of its context, and to tell what it has after an interrupt
}

// notify tells the observer, if there is one.
func (r *Runner) notify(e Event) {
	if r.Watch != nil {
		r.Watch.Hear(e)
	}
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

// Describe turns an error into its form in the document.
func Describe(err error) *measure.Error {
	return &measure.Error{Message: fault.Plain(err.Error()), Hint: fault.Hint(err), ExitCode: fault.Code(err)}
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

// agents are the end points that have one, in the order that all controllers share.
func (r *Runner) agents() []*EndPoint {
	var es []*EndPoint
	for _, e := range r.Ends {
		if e.asked() {
			es = append(es, e)
		}
	}
	slices.SortFunc(es, inOrder)
	return es
}

// end by its name; one that is not connected says so.
func (r *Runner) end(name string) *EndPoint {
	if e := r.Ends[name]; e != nil {
		return e
	}
	return &EndPoint{Name: name, Down: fmt.Errorf("control: no connection to %s", name)}
}

// gone says why an end point takes no part any more; nil where it does.
func (r *Runner) gone(e *EndPoint) error {
	if e.Down != nil { // it never was
		return fault.Failf(fault.Hint(e.Down), "control: %s is not there: %w", e.Name, e.Down)
	}
	if err := r.down[e.Name]; err != nil || !e.asked() {
		return err
	}
	if e.Client.Err() != nil {
		return lost(e)
	}
	return nil
}

// anyLost is the error of an end point that has gone; nil where all are there.
func (r *Runner) anyLost() error {
	for _, e := range r.agents() {
		if e.Client.Err() != nil {
			return lost(e)
		}
	}
	return nil
}

// lost is the error of an end point that has gone. Of one that is reached by a
// controller bus knows whether that is gone, or the host alone.
func lost(e *EndPoint) error {
	err := cmp.Or(e.Client.Err(), errLost)
	hint := "is that host up, and is `thru serve` still running there?"
	if e.Via != "" {
		hint = cmp.Or(fault.Hint(err), hint)
	}
	return fault.Failf(hint, "control: %s is gone: %w", e.Name, err)
}

// errLost is the reason of a step whose end point has gone.
var errLost = errors.New("the connection to the end point is gone")

// route is a way from one end point to another.
type route struct{ from, to string }

// between two end points, whichever way.
func between(a, b string) route {
	if a > b {
		a, b = b, a
	}
	return route{a, b}
}

// unfitPair says which gate keeps a pair from being measured.
func (r *Runner) unfitPair(from, to string) error { return r.unfit[between(from, to)] }

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

// errInterrupted is the error of a run that who started it has ended.
var errInterrupted = errors.New(measure.Interrupted)

func wasInterrupted(e *measure.Error) bool { return e != nil && e.Message == measure.Interrupted }

// namedAtMost bounds the names in a message.
const namedAtMost = 3

// some names the first few and counts the rest.
func some(words []string, between string) string {
	more := len(words) - namedAtMost
	if more <= 0 {
		return strings.Join(words, between)
	}
	return fmt.Sprintf("%s and %d more", strings.Join(words[:namedAtMost], between), more)
}
