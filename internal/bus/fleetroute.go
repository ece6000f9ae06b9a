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
	askAgain    = 2 * time.Second        // before a request without a reply is repeated
	askNobody   = 250 * time.Millisecond // before a request that found no subscriber is repeated
	nobodyFirst = 3 * time.Second        // how long an agent that was never heard may be away
	maxStrange  = 256                    // unrequested messages
	eventRate   = 2000                   // events a second
	eventBurst  = maxWaiting
)

// fleetRoute is the route to one agent on an operator's connection.
type fleetRoute struct {
	fleet  *Fleet
	agent  string // its key, or tokenRegistry
	client *Client
	sub    *nats.Subscription
	events *rate.Limiter
	heard  atomic.Bool // whether the agent was ever heard

	mu      sync.Mutex
	waiting map[string]chan *nats.Msg // requests, by the number in their reply subject
	next    uint64
	given   int    // abandoned requests: their replies may come late
	strange int    // unrequested messages
	login   string // login id that the agent first sent; "": not yet
	last    uint64 // number of the newest event
	gap     uint64 // number of the event that was last requested again
}

// ask sends a request, and repeats it until its reply comes: the agent runs it
// only once.
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
	m := &nats.Msg{Subject: r.fleet.to(r.agent, r.fleet.owner, q.Verb), Reply: reSubject(r.fleet.owner, r.agent, wordReply+"."+number), Header: header, Data: body}
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

// expect registers a request. It stays registered until its reply comes or it is
// abandoned.
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

// patience returns how long the agent's subjects may have no subscriber: a lease, if
// the agent was there before.
func (r *fleetRoute) patience() time.Duration {
	if r.heard.Load() {
		return leaseTime
	}
	return nobodyFirst
}

// hear handles a message of the agent.
func (r *fleetRoute) hear(m *nats.Msg) {
	if r.client.ctx.Err() != nil {
		return
	}
	kind := strings.TrimPrefix(m.Subject, reSubject(r.fleet.owner, r.agent, ""))
	number, isReply := strings.CutPrefix(kind, wordReply+".")
	if m.Header.Get("Status") != "503" { // the server sends that itself: no subscriber
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
		r.lose(fault.Failf("check there why it ended", "bus: thru has ended at %s: %w", r.client.peer(), ErrLost))
	default:
		r.odd()
	}
}

// deliver passes a reply to its waiting request.
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

// odd counts unrequested messages. It cuts off an agent that floods, and no other.
func (r *fleetRoute) odd() {
	r.mu.Lock()
	r.strange++
	flood := r.strange > r.given+maxStrange
	r.mu.Unlock()
	if flood {
		r.lose(fault.Failf("check the program there: it is a broken thru, or not thru", "bus: %s sends too many unrequested messages: %w", r.client.peer(), ErrLost))
	}
}

// event delivers an event. Events that must not be lost are numbered: after a gap
// it requests the missing one and all that follow.
func (r *fleetRoute) event(m *nats.Msg) {
	if !r.events.Allow() {
		r.lose(fault.Failf("check the program there: it is a broken thru, or not thru", "bus: %s sends too many events: %w", r.client.peer(), ErrLost))
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
	gap := number > last+1 && r.gap != last+1 // request it once; a keepalive requests it again
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

// again requests the events after a number.
func (r *fleetRoute) again(after uint64) {
	r.fleet.nc.Publish(r.fleet.to(r.agent, r.fleet.owner, verbAgain), jsonOf(againRequest{after}))
}

// alive handles a keepalive.
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

// same reports whether the agent still has this client's login. Another login
// means that the agent restarted, or gave the client up: its sessions have ended.
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
		r.lose(fault.Failf("check whether the network was interrupted, and why thru ended there", "bus: %s has ended its jobs: it was restarted, or received nothing from here for %v: %w",
			r.client.peer(), leaseTime, ErrLost))
		return false
	}
	return true
}

// watch drops an agent that was silent for a lease.
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
			r.lose(fault.Failf("check whether `thru serve` still runs there, and whether the network was interrupted",
				"bus: %s does not answer any more: %w", r.client.peer(), ErrLost))
		}
	}
}

// lose ends the client of this one agent.
func (r *fleetRoute) lose(err error) {
	r.client.cancel(err)
	r.cut()
}

// cut implements route: it unsubscribes from the agent's messages.
func (r *fleetRoute) cut() {
	if r.sub != nil {
		r.sub.Unsubscribe() // fails only where the connection is gone
	}
}

// end implements route: it tells the agent to end what belongs to the client.
func (r *fleetRoute) end() {
	if r.agent != tokenRegistry && validKey(r.agent) {
		r.fleet.nc.Publish(r.fleet.to(r.agent, r.fleet.owner, verbBye), nil)
	}
	r.cut()
}
