package control

import (
	"context"
	"fmt"
	"sync"
	"time"

	"thru/internal/bus"
	"thru/internal/measure"
	"thru/internal/stat"
)

// observeEvery is how often the server's agent receives new connections.
const observeEvery = 100 * time.Millisecond

// observeTime bounds each request to that agent: the transfer waits for it.
const observeTime = 5 * time.Second

// PeerWatch observes the other end while the bytes of a run move. The run waits
// for both calls.
type PeerWatch = interface {
	// Begin is called when all clients are logged in and no byte has moved yet.
	// conns returns their connections at the time of the call.
	Begin(ctx context.Context, conns func() []measure.Addresses)
	// End is called after the last byte has moved, before the connections close.
	End()
}

// observer makes the agent at the server observe that end of a run.
type observer struct {
	end       *EndPoint // nil: there is no agent
	session   string
	announced int // number of connections that the agent knows
	done      chan struct{}
	teller    sync.WaitGroup

	seen *bus.ObserveResult
	why  string // why it did not observe
}

// noAgent is why no facts of the server are known.
const noAgent = "no agent at the server: run thru serve there, and use --end-point NAME here"

// observer takes the turn at the agent of the server; done gives the turn back.
func (r *Runner) observer(ctx context.Context, server *EndPoint) (o *observer, done func()) {
	o = &observer{end: server, why: "the run ended before the observation began"}
	if server == nil || !server.asked() {
		o.end, o.why = nil, noAgent
		return o, func() {}
	}
	ends := []*EndPoint{server}
	if _, err := r.reserve(ctx, ends, false); err != nil {
		o.end, o.why = nil, err.Error()
	}
	return o, func() { release(ends) }
}

// Begin implements PeerWatch.
func (o *observer) Begin(ctx context.Context, conns func() []measure.Addresses) {
	if o.end == nil {
		return
	}
	all := conns()
	reply, err := o.ask(ctx, bus.ObserveStart{Conns: all})
	if err != nil {
		o.end, o.why = nil, err.Error()
		return
	}
	o.session, o.announced, o.done = reply.Session, len(all), make(chan struct{})
	o.teller.Go(func() { o.announce(ctx, conns) })
}

func (o *observer) ask(ctx context.Context, m bus.ObserveStart) (bus.JobReply, error) {
	ctx, cancel := context.WithTimeout(ctx, observeTime)
	defer cancel()
	return bus.Call(ctx, o.end, bus.Observe.Begin, m)
}

// announce sends the agent the new connections as they are made.
func (o *observer) announce(ctx context.Context, conns func() []measure.Addresses) {
	tick := time.NewTicker(observeEvery)
	defer tick.Stop()
	for {
		select {
		case <-o.done:
			return
		case <-tick.C:
		}
		all := conns()
		if len(all) <= o.announced {
			continue
		}
		if _, err := o.ask(ctx, bus.ObserveStart{Session: o.session, Conns: all[o.announced:]}); err != nil {
			return // the connections known until now remain
		}
		o.announced = len(all)
	}
}

// End implements PeerWatch.
func (o *observer) End() {
	if o.end == nil || o.done == nil {
		return
	}
	close(o.done)
	o.teller.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), observeTime) // also after an interrupt
	defer cancel()
	seen, err := bus.Call(ctx, o.end, bus.Observe.End, bus.JobEnd{Session: o.session})
	if err != nil {
		o.why = err.Error()
		return
	}
	o.seen = &seen
}

// into adds the observation to the run, and records what is missing.
func (o *observer) into(doc *measure.Document, run *measure.TransferRun) {
	missing := func(fact, why string) {
		x := measure.NotChecked{Fact: "transfer.runs." + fact, Why: why}
		for _, m := range doc.Missing {
			if m == x {
				return
			}
		}
		doc.Missing = append(doc.Missing, x)
	}
	if o.seen == nil {
		missing("there_cpu", o.why)
		missing("there_sockets", o.why)
		return
	}
	run.ThereHost, run.There, run.Programs = &o.seen.Host, o.seen.Streams, o.seen.Programs
	if run.ThereCPU = stat.SpanCPU(&o.seen.Host); run.ThereCPU == nil {
		missing("there_cpu", "the agent at the server could not read its CPUs")
	}
	for _, m := range o.seen.Missing {
		switch m.Fact {
		case "worker":
			missing("there_cpu.worker_cores_used", m.Why)
		case "streams":
			missing("there_sockets", m.Why)
		default:
			missing(fmt.Sprintf("there_host.%s", m.Fact), m.Why)
		}
	}
}
