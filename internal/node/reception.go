package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"

	"thru/internal/bus"
	"thru/internal/control"
	"thru/internal/engine"
	"thru/internal/library"
	"thru/internal/measure"
	"thru/internal/plan"
	"thru/internal/stat"
	"thru/internal/store"
)

// Reception makes an ordinary test of each connection of an iperf3 or iperf2 client:
// with the same controller, agent and engines as thru's own tests, and a result
// that is kept.
type Reception struct {
	Version  string
	Connect  func() (*bus.Client, error)                         // to the agent of this process
	Keep     string                                              // folder for the results; empty: they are not kept
	Archive  library.Archive                                     // for thru history
	Warn     func(string, error)                                 // receives errors that do not affect results; nil: dropped
	Watch    func(engine.Call) control.Observer                  // nil: no observer
	OnResult func(engine.Call, *measure.Document, string, error) // receives the result, and where it is kept

	Most int // concurrent tests of one host, so that others get a place; 0: no limit

	Tests sync.WaitGroup
	mu    sync.Mutex
	hosts map[string]int // running tests, by host
}

// enter counts a test of the caller's host; false where the host is at its limit.
func (r *Reception) enter(host string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.Most > 0 && r.hosts[host] >= r.Most {
		return false
	}
	if r.hosts == nil {
		r.hosts = map[string]int{}
	}
	r.hosts[host]++
	return true
}

func (r *Reception) leave(host string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.hosts[host]--; r.hosts[host] <= 0 {
		delete(r.hosts, host)
	}
}

// Take runs the call's test in its own goroutine.
func (r *Reception) Take(ctx context.Context, call engine.Call) {
	r.Tests.Go(func() {
		if !r.enter(call.Name) {
			call.Refuse(engine.ErrBusy)
			r.OnResult(call, nil, "", fmt.Errorf("node: its host has %d tests already: %w", r.Most, engine.ErrBusy))
			return
		}
		defer r.leave(call.Name)
		doc, err := r.test(ctx, call)
		if err != nil && ctx.Err() == nil {
			call.Refuse(fmt.Errorf("%w: %w", engine.ErrBusy, err)) // where no engine has accepted the call: the client may try again
		} else {
			call.Refuse(err)
		}
		path := ""
		if doc != nil && library.Measured(doc) {
			var kerr error
			if path, kerr = library.KeepResult(r.Keep, doc); kerr != nil {
				err = errors.Join(err, kerr)
			}
			if _, kerr = r.Archive.Keep(doc); kerr != nil && !errors.Is(kerr, store.ErrNone) && r.Warn != nil {
				r.Warn("the result is not in the history", kerr)
			}
		}
		r.OnResult(call, doc, path, err)
	})
}

// Wait returns when no test of an iperf client runs any more.
func (r *Reception) Wait() { r.Tests.Wait() }

func (r *Reception) test(ctx context.Context, call engine.Call) (*measure.Document, error) {
	client, err := r.Connect()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	hello, err := client.Hello(ctx)
	if err != nil {
		return nil, fmt.Errorf("node: asking the agent of this process: %w", err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	caller := &control.EndPoint{Name: call.Name, Addr: call.Addr, Foreign: true, Token: call.Token}
	if host, _, err := net.SplitHostPort(call.Addr); err == nil && call.Back != nil {
		caller.Port, caller.DataHosts = call.Back.Port, []string{host}
	}
	runner := control.Runner{
		Version: r.Version, Link: stat.Link{}, Watch: impatient{r.observer(call), cancel},
		Ends: map[string]*control.EndPoint{control.Local: {Name: control.Local, Client: client, Hello: hello}, call.Name: caller},
	}
	doc, err := runner.Run(ctx, callPlan(call))
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, engine.ErrBusy) {
		err = cause
	}
	return doc, err
}

func (r *Reception) observer(call engine.Call) control.Observer {
	if r.Watch == nil {
		return nil
	}
	return r.Watch(call)
}

// callPlan returns the plan of the test that the caller asks for, including the
// test back to it where it wants one.
func callPlan(call engine.Call) plan.Plan {
	p := plan.Plan{Command: "serve", Repeat: plan.Repeat{Min: 1, Max: 1}, Steps: []plan.Step{{Label: "requested by " + call.Name, Specs: call.Specs}}}
	switch b := call.Back; {
	case b == nil:
	case b.AtOnce:
		p.Steps[0].Specs = append(slices.Clone(call.Specs), b.Spec)
	default:
		p.Steps = append(p.Steps, plan.Step{Label: "called back", Specs: []measure.Spec{b.Spec}})
	}
	return p
}

// impatient is an observer that ends a test which would have to wait: iperf clients
// know no queue, only a busy server.
type impatient struct {
	inner  control.Observer // nil: no other observer
	cancel context.CancelCauseFunc
}

// Hear implements control.Observer.
func (i impatient) Hear(e control.Event) {
	switch _, waits := e.(control.Waiting); {
	case waits:
		i.cancel(engine.ErrBusy)
	case i.inner != nil:
		i.inner.Hear(e)
	}
}
