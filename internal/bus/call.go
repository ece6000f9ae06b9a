package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"thru/internal/fault"
)

// Caller sends requests to an agent: a Client, or a substitute.
type Caller interface {
	// Ask sends a request, and reads the reply into the pointer reply.
	Ask(ctx context.Context, q Question, reply any) error
}

// Question is a request of any type.
type Question struct {
	Verb    string
	Message any
	since   int
	wait    time.Duration
	long    bool
}

// Call makes one request. An error of the agent comes back as *fault.Error
// with its message, hint and exit code.
func Call[Req, Rep any](ctx context.Context, c Caller, v Verb[Req, Rep], m Req) (r Rep, err error) {
	err = c.Ask(ctx, Question{Verb: v.name, Message: m, since: v.since, wait: v.wait, long: v.long}, &r)
	return r, err
}

// Ask implements Caller.
func (c *Client) Ask(ctx context.Context, q Question, reply any) error {
	if next := c.nextMinor.Load(); next > 0 && q.since >= int(next) {
		return unknownVerb(q.Verb)
	}
	if _, set := ctx.Deadline(); !set {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, q.wait)
		defer cancel()
	}
	began := time.Now()
	body, err := c.fetch(ctx, q)
	if err != nil {
		return c.callError(ctx, q.Verb, time.Since(began), err)
	}
	if err := decode(body, reply); err != nil {
		return fmt.Errorf("bus: %s: reading the reply of %s: %w", q.Verb, c.peer(), err)
	}
	return nil
}

// Hello exchanges versions and facts with the agent. An agent of another wire
// major is an error that wraps ErrWire; its reply is returned as well.
func (c *Client) Hello(ctx context.Context) (HelloReply, error) {
	r, err := Call(ctx, c, Hello, HelloRequest{WireMajor: WireMajor, WireMinor: WireMinor, Thru: c.version})
	c.nextMinor.Store(int64(r.WireMinor) + 1)
	if err == nil && r.WireMajor != WireMajor {
		err = c.wireError(r)
	}
	return r, err
}

// wireError names both versions, and the side to upgrade: the older one.
func (c *Client) wireError(r HelloReply) error {
	hint := "upgrade thru here"
	if r.WireMajor < WireMajor {
		hint = "upgrade thru at the end point"
	}
	return fault.Failf(hint, "bus: %s here uses wire version %d.%d, %s (%s) uses %d.%d: %w",
		program(c.version), WireMajor, WireMinor, c.peer(), program(r.Thru), r.WireMajor, r.WireMinor, ErrWire)
}

func program(version string) string {
	if version == "" {
		return "thru"
	}
	return "thru " + version
}

// fetch makes a request and joins the parts of a long reply.
func (c *Client) fetch(ctx context.Context, q Question) ([]byte, error) {
	r, err := c.request(ctx, q)
	if err != nil {
		return nil, err
	}
	id := r.Header.Get(headerTransfer)
	if id == "" {
		return r.Data, nil
	}
	size, err := strconv.Atoi(r.Header.Get(headerSize))
	if err != nil || size > replyBytes {
		return nil, errors.New("the length of the reply is not valid")
	}
	body := r.Data
	for len(body) < size {
		part, err := c.request(ctx, Question{Verb: verbPart, Message: partRequest{Transfer: id, Offset: len(body)}, long: true})
		if err != nil {
			return nil, err
		}
		if len(part.Data) == 0 || len(body)+len(part.Data) > size {
			return nil, errors.New("the length of a part of the reply is not valid")
		}
		body = append(body, part.Data...)
	}
	return body, nil
}

// request sends one message and waits for its reply, the connection's end, or
// the context's.
func (c *Client) request(ctx context.Context, q Question) (*nats.Msg, error) {
	body, err := json.Marshal(q.Message)
	if err != nil {
		return nil, err
	}
	if len(body) > partBytes {
		return nil, fmt.Errorf("a request of %d bytes is too long", len(body))
	}
	if err := c.Err(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	header := nats.Header{}
	if until, ok := ctx.Deadline(); ok {
		header.Set(headerPatience, strconv.FormatInt(max(time.Until(until).Milliseconds(), 1), 10))
	}
	r, err := c.route.ask(ctx, q, header, body)
	if err != nil {
		return nil, err
	}
	if r.Header.Get(headerCode) != "" {
		return nil, decodeError(r.Data)
	}
	return r, nil
}

// callError explains a failed request. It returns an error of the agent itself
// unchanged.
func (c *Client) callError(ctx context.Context, verb string, waited time.Duration, err error) error {
	var answered *fault.Error
	switch {
	case errors.As(err, &answered):
		return err
	case c.Err() != nil:
		return c.Err()
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fault.Failf("check the end point (overloaded, stuck) and the path (packet loss)",
			"bus: %s: no reply from %s within %v: %w", verb, c.peer(), waited.Round(100*time.Millisecond), ErrTimeout)
	case errors.Is(err, nats.ErrNoResponders) && c.name != "":
		return fault.Failf("list the connected hosts: thru hosts", "bus: %s: %s is not connected: %w", verb, c.peer(), ErrTimeout)
	case errors.Is(err, nats.ErrNoResponders):
		return fault.Failf("wait until `thru serve` reports that it is ready", "bus: %s: %s is starting or shutting down: %w", verb, c.peer(), ErrTimeout)
	}
	return fmt.Errorf("bus: %s: request to %s: %w", verb, c.peer(), err)
}
