package iperf3

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"thru/internal/engine"
	"thru/internal/engine/worker"
	"thru/internal/fault"
	"thru/internal/host"
	"thru/internal/measure"
	"thru/internal/sock"
)

// timeline is the sequence of states that a server sends during a test.
var timeline = [...]state{createStreams, testStart, testRunning, exchangeResults}

// Indices in timeline.
const (
	atCreate = iota
	atStart
	atRunning
	atResults
)

// client is the session of the end that dials a server.
type client struct {
	testRecord
	end    engine.End
	wait   waits
	talk   talk
	cookie cookie
	rtt    *measure.RTT
	token  string // authentication token of the user
	skip   []string
	length int64 // bytes per call of the server, or of a datagram

	running time.Time                    // when the server reported testRunning; set before reached
	reached [len(timeline)]chan struct{} // closed when the server has sent it
	lost    chan struct{}                // closed when the control connection is lost, or breaks the protocol
	closed  chan struct{}                // closed by Close
	once    sync.Once
	tasks   sync.WaitGroup
	ended   atomic.Bool // this end has sent testEnd
	done    atomic.Bool // the exchange is complete

	err error // reason of lost; under mu
}

func (e Engine) openClient(ctx context.Context, end engine.End) (*client, error) {
	if len(end.Targets) == 0 {
		return nil, fault.Failf("", "iperf3: dialling: no target address")
	}
	token, err := newToken(end.Login, time.Now())
	if err != nil {
		return nil, err
	}
	c := &client{end: end, wait: e.waits(), cookie: newCookie(), token: token, lost: make(chan struct{}), closed: make(chan struct{})}
	for i := range c.reached {
		c.reached[i] = make(chan struct{})
	}
	if c.talk, c.skip, err = e.dialControl(ctx, end.Spec, end.Targets, c.cookie); err != nil {
		return nil, err
	}
	c.rtt = engine.IdleRTT(c.talk.conn)
	c.settle()
	c.dataSession, err = e.start(worker.Task{End: c.end, Leads: true, Datagrams: worker.StampNumber64, FirstNumber: 1, Conclude: c.conclude})
	if err != nil {
		c.talk.close(c.wait.goodbye)
		return nil, err
	}
	c.tasks.Go(c.listen)
	c.tasks.Go(c.finish)
	return c, nil
}

// settle fixes the lengths that both ends must agree on: that of a datagram, and that of a call of the server. A server counts only whole TCP calls, so they
// must be short at low rates, and an amount is a multiple of them.
func (c *client) settle() {
	s := &c.end.Spec
	if s.Protocol == measure.UDP {
		c.length = cmp.Or(s.Length.Send, s.Length.Recv, datagramLength(c.talk.conn))
		s.Length = measure.Pair{Send: c.length, Recv: c.length}
		return
	}
	asked := cmp.Or(s.Length.Recv, s.Length.Send)
	if !c.end.Sends {
		asked = cmp.Or(s.Length.Send, s.Length.Recv)
	}
	n := int64(s.Streams)
	c.length = cmp.Or(asked, measure.DefaultLength)
	if asked == 0 && s.Rate > 0 {
		c.length = min(c.length, max(leastCall, s.Rate/n/8*int64(callTime)/int64(time.Second)))
	}
	if s.Amount > 0 && (c.end.Sends || s.Duplex) {
		share := (s.Amount + n - 1) / n
		calls := (share + c.length - 1) / c.length
		if asked == 0 {
			c.length = (share + calls - 1) / calls
		}
		s.Amount = c.length * calls * n
	}
}

// Length of a server's call with a requested rate.
const (
	callTime  = 10 * time.Millisecond
	leastCall = 1 << 10 // bytes
)

// listen reads the server's states up to the results, which conclude reads.
func (c *client) listen() {
	for i, want := range timeline {
		if i == atRunning {
			c.running = sock.Arrival(c.talk.conn)
		}
		s, err := c.talk.hear(0)
		switch {
		case isGone(err):
			err = fault.Because(ReasonClosed, fault.Failf("check iperf3 and the host there, and firewalls on the path: one of them closed the connection", "iperf3: the server closed the control connection"))
		case err != nil:
		case s == serverTerminate:
			err = fault.Because(ReasonTerminated, fault.Failf("", "iperf3: the server was stopped there"))
		case s == accessDenied:
			err = errBusy()
		case s == serverError:
			err = c.talk.hearError(c.token == "")
		case s != want, s == exchangeResults && !c.ended.Load():
			err = fault.Failf(notHint, "iperf3: the server sent %v, expected %v", s, want)
		}
		if err != nil {
			c.fail(err)
			return
		}
		if i == atRunning && c.running.IsZero() {
			c.running = time.Now()
		}
		close(c.reached[i])
	}
}

// fail ends the test because of an error on the control connection.
func (c *client) fail(err error) {
	c.mu.Lock()
	first := c.err == nil
	if first {
		c.err = err
		close(c.lost)
	}
	c.mu.Unlock()
	select {
	case <-c.closed:
	default:
		if first {
			c.Abort(err)
		}
	}
}

// reason returns why the control connection is lost.
func (c *client) reason() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// await waits until the server has reached a step.
func (c *client) await(ctx context.Context, step int) error {
	select {
	case <-c.reached[step]:
		return nil
	case <-c.lost:
		return c.reason()
	case <-ctx.Done():
		return fault.Failf("try again: other tests may run there; or check whether a firewall limits connections",
			"iperf3: waiting for %v of the server: %w", timeline[step], context.Cause(ctx))
	}
}

// Ready implements engine.Session.
func (c *client) Ready() engine.Ready {
	return engine.Ready{
		Local: c.talk.conn.LocalAddr().String(), Peer: c.talk.conn.RemoteAddr().String(), Conns: c.dataSession.Ready().Conns, RTTIdle: c.rtt, Skipped: c.skip,
	}
}

// Joined implements engine.Session.
func (c *client) Joined(context.Context) error { return nil }

// Start implements engine.Session: it sends the parameters to the server, opens the data connections and starts both ends.
func (c *client) Start(ctx context.Context, ramp time.Duration, near host.PlacementFacts) error {
	if ramp < 0 || ramp > measure.MaxRamp {
		return fmt.Errorf("iperf3: starting: a ramp of %v is outside 0 to %v", ramp, measure.MaxRamp)
	}
	ramp = time.Duration(seconds(ramp)) * time.Second // the server accepts only whole seconds
	c.begins(ramp)
	ctx, cancel := context.WithTimeoutCause(ctx, c.wait.begin, errors.New("it did not arrive in time"))
	defer cancel()
	if err := c.talk.sendJSON(ask(c.end, ramp, c.length, c.token)); err != nil {
		return err
	}
	if err := c.await(ctx, atCreate); err != nil {
		return err
	}
	conns, err := c.streams(ctx, c.reached[atStart])
	if err != nil {
		return err
	}
	if err := c.Take(ctx, conns); err != nil {
		return cmp.Or(c.reason(), err)
	}
	if err := c.await(ctx, atRunning); err != nil {
		return err
	}
	c.DataSince(c.running)
	return c.dataSession.Start(ctx, ramp, near)
}

// lastRead is the time that a server gets to read its sockets: it never counts data that it has not read before the end of the test.
const lastRead = 10 * time.Millisecond

// finish signals the end of this end's time or amount to the server.
func (c *client) finish() {
	select {
	case <-c.Stopped():
	case <-c.lost:
		return
	case <-c.closed:
		return
	}
	if c.end.Sends && c.end.Spec.Amount > 0 {
		time.Sleep(lastRead)
	}
	c.ended.Store(true)
	if err := c.talk.sendStates(testEnd); err != nil {
		c.fail(err)
		return
	}
	c.Enough() // a worker that has ended reports its own error
}

// conclude exchanges the results.
func (c *client) conclude() error {
	late := time.NewTimer(c.wait.word)
	defer late.Stop()
	select {
	case <-c.reached[atResults]:
	case <-c.lost:
		return c.reason()
	case <-c.closed:
		return errors.New("iperf3: the session was closed before the results arrived")
	case <-late.C:
		return fault.Failf("use the evidence of this end, which is complete", "iperf3: the test is over, but the server does not send its results")
	}
	directions := c.directions(c.end.Spec, c, "iperf3")
	if err := c.talk.sendJSON(describe(directions, "").json()); err != nil {
		return err
	}
	b, err := c.talk.hearJSON(mostResults)
	if err != nil {
		return err
	}
	r, err := readResults(b, idsOf(directions), mostOutput)
	if err != nil {
		return err
	}
	if r.Version != "" {
		for i := range directions {
			directions[i].speak = "iperf3 " + r.Version
		}
	}
	c.keep(directions, r)
	if s, err := c.talk.hear(c.wait.word); err != nil || s != displayResults {
		return fmt.Errorf("iperf3: the server sent %v, expected %v: %w", s, displayResults, err)
	}
	c.done.Store(true)
	err = c.talk.sendStates(iperfDone)
	c.talk.close(c.wait.goodbye)
	return err
}

// Evidence implements engine.Session.
func (c *client) Evidence() measure.Evidence {
	e := c.dataSession.Evidence()
	e.RTTIdle = c.rtt
	return e
}

// Close implements engine.Session. Before the end of the test it makes the server give up.
func (c *client) Close() error {
	c.once.Do(func() {
		close(c.closed)
		if !c.done.Load() {
			c.talk.sendStates(clientTerminate)
		}
		c.talk.close(c.wait.goodbye)
	})
	err := c.dataSession.Close()
	c.tasks.Wait()
	return err
}
