// Package bustest has fakes of both ends of the control plane, for tests of
// whatever talks to the other one.
package bustest

import (
	"context"
	"errors"
	"sync"
	"time"

	"thru/internal/bus"
)

// Call is one request that the fake has got.
type Call struct {
	Client  string
	Verb    string // "hello", "prepare", ...
	Message any    // bus.HelloRequest, bus.PrepareRequest, ...
}

// Handler is a fake agent: it answers every verb with the reply that was set for
// it, else with an empty one. Set replies before it is served.
type Handler struct {
	// On, if set, hears each call before it is answered; it may wait, or make
	// the call fail.
	On func(ctx context.Context, c Call) error

	mu      sync.Mutex
	replies map[string]any
	calls   []Call
	gone    map[string]int
	news    chan struct{} // closed and renewed when a client goes
}

// New returns a handler that speaks this wire version and grants every turn.
func New() *Handler {
	h := &Handler{replies: map[string]any{}, gone: map[string]int{}, news: make(chan struct{})}
	Reply(h, bus.Hello, bus.HelloReply{
		WireMajor: bus.WireMajor, WireMinor: bus.WireMinor, Thru: "test", Hostname: "fake", CPUs: 2,
		Privileges: []string{bus.PrivilegeMeasure},
	})
	Reply(h, bus.Reserve, bus.ReserveReply{Granted: true})
	Reply(h, bus.Prepare, bus.PrepareReply{Session: "s1"})
	return h
}

// Reply sets what a verb is answered with.
func Reply[Req, Rep any](h *Handler, v bus.Verb[Req, Rep], r Rep) { h.replies[v.String()] = r }

// Answers implements bus.Handler.
func (h *Handler) Answers() (all []bus.Answerer) {
	for _, v := range bus.Verbs() {
		all = append(all, v.By(func(ctx context.Context, client string, m any) (any, error) {
			return h.replies[v.String()], h.note(ctx, Call{client, v.String(), m})
		}))
	}
	return all
}

func (h *Handler) note(ctx context.Context, c Call) error {
	h.mu.Lock()
	h.calls = append(h.calls, c)
	h.mu.Unlock()
	if h.On == nil {
		return nil
	}
	return h.On(ctx, c)
}

// Calls returns what was asked so far, in order.
func (h *Handler) Calls() []Call {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]Call(nil), h.calls...)
}

// GoneTimes is how often Gone was called for a client.
func (h *Handler) GoneTimes(client string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.gone[client]
}

// WaitGone returns when Gone was called for a client, or the context ends.
func (h *Handler) WaitGone(ctx context.Context, client string) error {
	for {
		h.mu.Lock()
		times, news := h.gone[client], h.news
		h.mu.Unlock()
		if times > 0 {
			return nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Gone implements bus.Handler.
func (h *Handler) Gone(client string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gone[client]++
	close(h.news)
	h.news = make(chan struct{})
}

// Client is a fake connection to an agent: what it is asked is answered in the same
// process, and its events and its end are in the hands of a test.
type Client struct {
	Pushed chan bus.Event // what Events hands out
	Ended  chan struct{}  // closed when the agent is lost

	once    sync.Once
	answers map[string]bus.Answerer
}

// NewClient is a connection to these answers; of two of a verb the later counts. Any
// other verb is answered by an empty reply.
func NewClient(answers ...bus.Answerer) *Client {
	c := &Client{Pushed: make(chan bus.Event, 64), Ended: make(chan struct{}), answers: map[string]bus.Answerer{}}
	c.Handle(answers...)
	return c
}

// Handle adds answers.
func (c *Client) Handle(answers ...bus.Answerer) {
	for _, a := range answers {
		c.answers[a.Verb()] = a
	}
}

// Ask implements bus.Caller.
func (c *Client) Ask(ctx context.Context, q bus.Question, reply any) error {
	a, ok := c.answers[q.Verb]
	if !ok {
		return nil
	}
	return a.Answer(ctx, "client", q.Message, reply)
}

// Lose ends the connection, as where the agent is gone.
func (c *Client) Lose() { c.once.Do(func() { close(c.Ended) }) }

// Events are those that a test has pushed.
func (c *Client) Events() <-chan bus.Event { return c.Pushed }

// Lost is closed by Lose.
func (c *Client) Lost() <-chan struct{} { return c.Ended }

// Heard is always just now.
func (c *Client) Heard() time.Time { return time.Now() }

// Err is why the connection has ended; nil while it stands.
func (c *Client) Err() error {
	select {
	case <-c.Ended:
		return errors.New("it fell silent")
	default:
		return nil
	}
}
