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

// enter waits for a request slot at the agent; leave frees it.
func (e *EndPoint) enter(ctx context.Context) (leave func(), err error) {
	e.once.Do(func() { e.places = make(chan struct{}, perAgent) })
	select {
	case e.places <- struct{}{}:
		return func() { <-e.places }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// inOrder compares end points by the id that the agent reports, which does not
// depend on the address; an old agent without an id comes first, by its address.
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
	Watch   Observer                               // nil: none
	Gating  *Gating                                // nil: no gates are judged
	Keep    func(Packets) (file string, err error) // stores each capture; nil: captures are not stored

	// Hypervisors are sources that may know the end points as virtual machines or as
	// hosts. Run adds the host placements to the document, with counters over the
	// time of the runs. A source that fails costs a warning.
	Hypervisors []hypervisor.Source
	PlaceWithin time.Duration // 0: as above; else only the placements, if a source reports them within this time

	// Before holds the results of an interrupted run of the same plan: those runs
	// are not repeated. Saved receives the document after each step.
	Before  *measure.Document
	Saved   func(*measure.Document)
	Planned *measure.Planned // names the plan file in the document; Runner counts its steps
	Until   int              // number of turns of the plan's schedule to run; the next Runner runs the rest; 0: all

	// Record stores the runs of a turn, by its number in the schedule, where other processes find
	// them. It returns the runs that count; an error ends the run. nil: they are not stored.
	Record func(turn int, runs []measure.Run) ([]measure.Run, error)

	hypervisorRun    *hypervisorRun   // hypervisor requests of this run; nil: none
	hypervisorLimits hypervisorLimits // zero: usualLimits
	waited           time.Duration    // time spent waiting for the turn before the first run
	pathKey          string           // key of the kept facts of the path
	experiment       string           // current experiment of an explanation; captures are named after it

	goesOn  bool                     // the run goes on after a pair failed
	down    map[string]error         // errors of end points that were left out, by name
	unfit   map[route]error          // errors of pairs that a gate disqualifies
	swapped map[route]bool           // pairs of which the other end had to dial
	walls   map[string]time.Duration // wall clocks minus this machine's
}

// Gating holds the options of judging gates.
type Gating struct {
	Only, Skip []string                           // ids of gates; none: all
	Force      bool                               // measure although a gate fails
	Costs      func(hostname string) []scene.Cost // costs that earlier tests found for a host; nil: unknown
	Paths      PathCache                          // nil: every path is probed
}

// PathCache keeps the probe of a path for a while. The key covers the end points
// and all that the facts of their path depend on.
type PathCache interface {
	Load(key string) (measure.Path, bool)
	Keep(key string, p measure.Path)
	Drop(key string)
}

// Packets is a capture as a file to store.
type Packets struct {
	From, To   string // of the flow
	EndPoint   string // that captured
	Experiment string // of an explanation; diagnose.Base for its base traffic, empty for a test
	Pcapng     []byte
}

// hypervisorLimits are the time limits of hypervisor requests, which run in
// parallel with a measurement and must not fail it.
type hypervisorLimits struct {
	inventory time.Duration // from when the hosts were read
	watch     time.Duration // for counters to begin
	last      time.Duration // for their last samples; no longer than the test was, but at least leastPatience
	grace     time.Duration // for a source to react to the end of its context, and to return what it has after an interrupt
}

// notify sends an event to the observer, if there is one.
func (r *Runner) notify(e Event) {
	if r.Watch != nil {
		r.Watch.Hear(e)
	}
}

// document returns the empty document of a command that begins.
func (r *Runner) document(command string, begin time.Time) *measure.Document {
	return &measure.Document{
		Schema: measure.Schema, Thru: r.Version, Command: command, StartedAt: begin,
		EndPoints: []measure.EndPoint{}, Cells: []measure.Cell{},
	}
}

// finished adds the elapsed time since begin and the error to the document, and returns both.
func finished(doc *measure.Document, begin time.Time, err error) (*measure.Document, error) {
	doc.ElapsedNs += int64(time.Since(begin))
	if err != nil {
		doc.Error = Describe(err)
	}
	return doc, err
}

// Describe turns an error into its form in the document, which has no secrets.
func Describe(err error) *measure.Error {
	return &measure.Error{Message: fault.Unsecret(fault.Plain(err.Error())), Hint: fault.Unsecret(fault.Hint(err)), ExitCode: fault.Code(err), Interrupted: errors.Is(err, fault.ErrInterrupted)}
}

// names returns the names of the end points, `local` first.
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

// agents returns the end points that have an agent, in the order that all controllers share.
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

// end returns an end point by its name; for an unknown name, one that is down.
func (r *Runner) end(name string) *EndPoint {
	if e := r.Ends[name]; e != nil {
		return e
	}
	return &EndPoint{Name: name, Down: fmt.Errorf("control: no connection to %s", name)}
}

// gone returns why an end point is lost or left out; nil where it is not.
func (r *Runner) gone(e *EndPoint) error {
	if e.Down != nil { // it was never connected
		return fault.Failf(fault.Hint(e.Down), "control: %s is not connected: %w", e.Name, e.Down)
	}
	if err := r.down[e.Name]; err != nil || !e.asked() {
		return err
	}
	if e.Client.Err() != nil {
		return lost(e)
	}
	return nil
}

// anyLost returns the error of a lost end point; nil where none is lost.
func (r *Runner) anyLost() error {
	for _, e := range r.agents() {
		if e.Client.Err() != nil {
			return lost(e)
		}
	}
	return nil
}

// lost returns the error of a lost end point. Behind a controller, the error of
// bus says whether the controller is lost or only the host.
func lost(e *EndPoint) error {
	err := cmp.Or(e.Client.Err(), errLost)
	hint := "check that the host is up and `thru serve` still runs there"
	if e.Via != "" {
		hint = cmp.Or(fault.Hint(err), hint)
	}
	return fault.Failf(hint, "control: %s is lost: %w", e.Name, err)
}

// errLost is the error of a step whose end point is lost.
var errLost = errors.New("the connection to the end point is lost")

// route is a direction from one end point to another.
type route struct{ from, to string }

// between returns the route of a pair in the order of the names, the same for both directions.
func between(a, b string) route {
	if a > b {
		a, b = b, a
	}
	return route{a, b}
}

// unfitPair returns the failed gate that disqualifies a pair; nil where none does.
func (r *Runner) unfitPair(from, to string) error { return r.unfit[between(from, to)] }

// link returns the link of a step: its own, else the plan's, else that of the command line.
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

// namedAtMost is how many names a message lists.
const namedAtMost = 3

// some lists the first few words and counts the rest.
func some(words []string, between string) string {
	more := len(words) - namedAtMost
	if more <= 0 {
		return strings.Join(words, between)
	}
	return fmt.Sprintf("%s and %d more", strings.Join(words[:namedAtMost], between), more)
}
