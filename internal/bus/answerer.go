package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"thru/internal/fault"
)

// answerer answers requests, whatever brought them: a pair's own server, or the
// bus of a fleet.
type answerer struct {
	verbs map[string]answer
	long  transfers
	send  func(*nats.Msg) error
}

// answer runs one verb: JSON in, JSON out.
type answer func(ctx context.Context, client string, body []byte) ([]byte, error)

// newAnswerer answers the verbs given, and that which fetches long replies.
func newAnswerer(verbs map[string]answer, send func(*nats.Msg) error) *answerer {
	a := &answerer{verbs: verbs, long: transfers{all: map[string]*transfer{}}, send: send}
	a.verbs[verbPart] = a.part
	return a
}

// verbsOf are what an agent answers.
func verbsOf(h Handler) map[string]answer {
	return map[string]answer{
		verbHello:    handle(h.Hello),
		verbClock:    handle(h.Clock),
		verbFacts:    handle(h.Facts),
		verbAnswer:   handle(h.Answer),
		verbProbe:    handle(h.Probe),
		verbReserve:  handle(h.Reserve),
		verbPrepare:  handle(h.Prepare),
		verbStart:    handle(h.Start),
		verbCollect:  handle(h.Collect),
		verbCaptured: handle(h.Captured),
		verbRelease:  handle(h.Release),
		verbKnobs:    handle(h.Knobs),
		verbTune:     handle(h.Tune),
		verbAlter:    handle(h.Alter),
		verbRevert:   handle(h.Revert),
		verbRollback: handle(h.Rollback),
		verbTuned:    handle(h.Tuned),
		verbDisk:     handle(h.Disk),
		verbDisked:   handle(h.Disked),
		verbObserve:  handle(h.Observe),
		verbObserved: handle(h.Observed),
		verbFile:     handle(h.File),
		verbFiled:    handle(h.Filed),
		verbSize:     handle(h.FileSize),
		verbRemove:   handle(h.FileRemove),
		verbGuests:   handle(h.Guests),
		verbWatch:    handle(h.Watch),
		verbWatched:  handle(h.Watched),
	}
}

// handle turns a method of Handler into an answer.
func handle[Q, A any](method func(context.Context, string, Q) (A, error)) answer {
	return func(ctx context.Context, client string, body []byte) ([]byte, error) {
		var q Q
		if err := decode(body, &q); err != nil {
			return nil, fmt.Errorf("bus: reading the request: %w", err)
		}
		a, err := method(ctx, client, q)
		if err != nil {
			return nil, err
		}
		return json.Marshal(a)
	}
}

// question is one request.
type question struct {
	verb, reply string // reply is the subject that the answer goes to
	patience    string // header, in milliseconds
	body        []byte
}

// begin answers a request in a goroutine of its own, within the bounds of its login.
func (a *answerer) begin(l *login, q question) {
	run := a.verbs[q.verb]
	if run == nil {
		a.refuse(q.reply, fault.Failf("upgrade thru at the end point", "bus: %s: the end point does not know this request", q.verb))
		return
	}
	if err := l.begin(); err != nil {
		a.refuse(q.reply, fault.Failf("", "bus: %s: %w", q.verb, err))
		return
	}
	go func() {
		defer l.done()
		ctx, cancel := context.WithTimeout(context.WithValue(l.ctx, loginKey{}, l), patience(q.patience))
		defer cancel()
		body, err := guard(ctx, q.verb, l.client, q.body, run)
		a.reply(l.client, q, body, err)
	}()
}

// part answers a request for the next part of a long reply.
func (a *answerer) part(_ context.Context, client string, body []byte) ([]byte, error) {
	var p partRequest
	if err := decode(body, &p); err != nil {
		return nil, fmt.Errorf("bus: reading the request: %w", err)
	}
	return a.long.part(client, p)
}

// patience reads how long the client waits for a reply.
func patience(header string) time.Duration {
	ms, err := strconv.ParseInt(header, 10, 32)
	if err != nil || ms <= 0 {
		return maxPatience
	}
	return min(time.Duration(ms)*time.Millisecond, maxPatience)
}

// guard turns a panic of the handler into an error of this one request.
func guard(ctx context.Context, verb, client string, body []byte, run answer) (reply []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fault.Failf("this is a bug of thru at the end point: please report it", "agent: %s: internal error: %v", verb, p)
		}
	}()
	return run(ctx, client, body)
}

// reply sends an answer: whole, or its first part and where the rest is.
func (a *answerer) reply(client string, q question, body []byte, err error) {
	if err != nil {
		a.refuse(q.reply, err)
		return
	}
	m := nats.NewMsg(q.reply)
	m.Data = body
	if len(body) > partBytes && q.verb != verbPart {
		id, err := a.long.put(client, body)
		if err != nil {
			a.refuse(q.reply, err)
			return
		}
		m.Header.Set(headerTransfer, id)
		m.Header.Set(headerSize, strconv.Itoa(len(body)))
		m.Data = body[:partBytes]
	}
	a.send(m) // fails only when the agent ends, and then the client sees that
}

// refuse sends an error with its hint and exit code.
func (a *answerer) refuse(to string, err error) {
	m := nats.NewMsg(to)
	code, body := encodeError(err)
	m.Header.Set(headerError, "failed")
	m.Header.Set(headerCode, code)
	m.Data = body
	a.send(m)
}
