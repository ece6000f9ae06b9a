package bus

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/time/rate"

	"thru/internal/fault"
)

// Bounds of a route within a fleet.
const (
	askAgain    = 2 * time.Second        // before a request without a reply is sent again
	askNobody   = 250 * time.Millisecond // before one that nobody heard is
	nobodyFirst = 3 * time.Second        // for which an agent never heard may be away
	maxStrange  = 256                    // messages that were not asked for
	eventRate   = 2000                   // events a second
	eventBurst  = maxWaiting
)

// fleetRoute is the part of an operator's connection that leads to one agent.
type fleetRoute struct {
	fleet  *Fleet
	agent  string // its key, or tokenRegistry
	client *Client
	sub    *nats.Subscription
	events *rate.Limiter
	heard  atomic.Bool // anything of the agent

	mu      sync.Mutex
	waiting map[string]chan *nats.Msg // requests, by the number in their reply subject
	next    uint64
	given   int    // requests that were given up: their replies may come late
	strange int    // messages that nobody had asked for
	login   string // at the agent, as it first told; "": not yet
	last    uint64 // number of the newest event
	gap     uint64 // number of the event that was last asked for again
}

// ask sends a request, and sends it again until its reply comes: the agent runs
// it once.
func (r *fleetRoute) ask(ctx context.Context, q Question, header nats.Header, body []byte) (*nats.Msg, error) {
	if q.long {
		select {
		case r.fleet.long <- struct{}{}:
			defer func() { <-r.fleet.long }()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	number, replies := r.expect()
	m := &nats.Msg{Subject: toSubject(r.agent, r.fleet.owner, q.Verb), Reply: reSubject(r.fleet.owner, r.agent, wordReply+"."+number), Header: header, Data: body}
	began, wait := time.Now(), time.Duration(0)
	var nobody error
	for {
		select {
		case reply := <-replies:
			if reply.Header.Get("Status") != "503" {
				return reply, nil
			}
			nobody, wait = nats.ErrNoResponders, askNobody
			if time.Since(began) > r.patience() {
				r.giveUp(number)
				return nil, nobody
			}
			continue
		case <-ctx.Done():
			r.giveUp(number)
			if nobody != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return nil, nobody
			}
			return nil, ctx.Err()
		case <-time.After(wait):
		}
		wait, nobody = askAgain, nil
		if err := r.fleet.nc.PublishMsg(m); err != nil {
			r.giveUp(number)
			return nil, err
		}
	}
}

// expect opens a place for a reply. It stays until the reply has come or is
// given up.
func (r *fleetRoute) expect() (string, chan *nats.Msg) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next++
	number, replies := strconv.FormatUint(r.next, 36), make(chan *nats.Msg, 4)
	r.waiting[number] = replies
	return number, replies
}

func (r *fleetRoute) giveUp(number string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.waiting, number)
	r.given++
}

// patience is how long nobody may listen at the agent's subjects: as long as a
// lease, if it was there before.
func (r *fleetRoute) patience() time.Duration {
	if r.heard.Load() {
		return leaseTime
	}
	return nobodyFirst
}

// hear takes a message of the agent off the connection.
func (r *fleetRoute) hear(m *nats.Msg) {
	if r.client.ctx.Err() != nil {
		return
	}
	kind := strings.TrimPrefix(m.Subject, reSubject(r.fleet.owner, r.agent, ""))
	number, isReply := strings.CutPrefix(kind, wordReply+".")
	if m.Header.Get("Status") != "503" { // that is the server's
		r.client.life.touch()
		r.heard.Store(true)
	}
	switch {
	case isReply && !r.same(m.Header.Get(headerLogin)):
	case isReply:
		r.deliver(number, m)
	case kind == wordEvent:
		r.event(m)
	case kind == wordAlive:
		r.alive(m.Data)
	case kind == wordLeave:
		r.lose(fault.Failf("see what ended it there", "bus: thru has ended at %s: %w", r.client.peer(), ErrLost))
	default:
		r.odd()
	}
}

// deliver gives a reply to who waits for it.
func (r *fleetRoute) deliver(number string, m *nats.Msg) {
	final := m.Header.Get("Status") != "503"
	r.mu.Lock()
	replies := r.waiting[number]
	if final && replies != nil {
		delete(r.waiting, number)
		r.given++ // it may come a second time
	}
	r.mu.Unlock()
	if replies == nil {
		r.odd()
		return
	}
	select {
	case replies <- m:
	default:
	}
}

// odd counts what nobody has asked for. An agent that floods is cut off, and no other.
func (r *fleetRoute) odd() {
	r.mu.Lock()
	r.strange++
	flood := r.strange > r.given+maxStrange
	r.mu.Unlock()
	if flood {
		r.lose(fault.Failf("thru there is broken, or is not thru", "bus: %s floods with messages that nobody asked for: %w", r.client.peer(), ErrLost))
	}
}

// event hands an event on. What must not be lost is numbered: one that is
// missing is asked for, with all that follow it.
func (r *fleetRoute) event(m *nats.Msg) {
	if !r.events.Allow() {
		r.lose(fault.Failf("thru there is broken, or is not thru", "bus: %s floods with events: %w", r.client.peer(), ErrLost))
		return
	}
	header := m.Header.Get(headerNumber)
	if header == "" {
		r.client.hear(m.Data)
		return
	}
	number, err := strconv.ParseUint(header, 10, 63)
	if err != nil {
		r.odd()
		return
	}
	r.mu.Lock()
	last := r.last
	if number == last+1 {
		r.last = number
	}
	gap := number > last+1 && r.gap != last+1 // asked for once; a sign of life has it asked for again
	if gap {
		r.gap = last + 1
	}
	r.mu.Unlock()
	switch {
	case number == last+1:
		r.client.hear(m.Data)
	case gap:
		r.again(last)
	}
}

// again asks for the events after a number.
func (r *fleetRoute) again(after uint64) {
	r.fleet.nc.Publish(toSubject(r.agent, r.fleet.owner, verbAgain), jsonOf(againRequest{after}))
}

// alive takes a sign of life.
func (r *fleetRoute) alive(body []byte) {
	var now lifeSign
	if decode(body, &now) != nil {
		r.odd()
		return
	}
	if !r.same(now.Login) {
		return
	}
	r.mu.Lock()
	last := r.last
	r.mu.Unlock()
	if now.Last > last {
		r.again(last)
	}
}

// same tells whether the agent still knows this client. Another login than
// before means that the agent was started anew, or took the client for gone:
// its sessions are no more.
func (r *fleetRoute) same(login string) bool {
	if login == "" { // a registry has none
		return true
	}
	r.mu.Lock()
	first := r.login
	if first == "" {
		r.login = login
	}
	r.mu.Unlock()
	if first != "" && first != login {
		r.lose(fault.Failf("see whether the network was interrupted, and what ended thru there", "bus: %s has ended what ran there: it was started anew, or had heard nothing of us for %v: %w",
			r.client.peer(), leaseTime, ErrLost))
		return false
	}
	return true
}

// watch loses an agent that is silent for a lease.
func (r *fleetRoute) watch() {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-r.client.ctx.Done():
			return
		}
		if silent := r.client.life.silent(); silent > leaseTime && r.heard.Load() {
			r.lose(fault.Failf("see whether `thru serve` still runs there, and whether the network was interrupted",
				"bus: %s does not answer any more: %w", r.client.peer(), ErrLost))
		}
	}
}

// lose ends the client of this one agent.
func (r *fleetRoute) lose(err error) {
	r.client.cancel(err)
	r.cut()
}

// cut implements route: the server sends nothing of the agent any more.
func (r *fleetRoute) cut() {
	if r.sub != nil {
		r.sub.Unsubscribe() // fails only where the connection is gone
	}
}

// end implements route: the agent is told, and ends what is the client's.
func (r *fleetRoute) end() {
	if r.agent != tokenRegistry && validKey(r.agent) {
		r.fleet.nc.Publish(toSubject(r.agent, r.fleet.owner, verbBye), nil)
	}
	r.cut()
}
