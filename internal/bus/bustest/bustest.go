// Package bustest has fakes of both ends of the control plane, for tests of the
// opposite end.
package bustest

import (
	"context"
	"errors"
	"sync"
	"time"

	"thru/internal/bus"
)

// Call is one request that the fake has received.
type Call struct {
	Client  string
	Verb    string // "hello", "prepare", ...
	Message any    // bus.HelloRequest, bus.PrepareRequest, ...
}

// Handler is a fake agent: it answers every verb with the reply set for it, else
// with an empty one. Set replies before it is served.
type Handler struct {
	// On, if set, is called before each request is answered; it may block, or make
	// the request fail.
	On func(ctx context.Context, c Call) error

	mu      sync.Mutex
	replies map[string]any
	calls   []Call
	gone    map[string]int
	news    chan struct{} // closed and renewed when a client is gone
}

// New returns a handler that has this wire version and grants every turn.
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

// Reply sets the reply to a verb.
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

// Calls returns the requests so far, in order.
func (h *Handler) Calls() []Call {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]Call(nil), h.calls...)
}

// GoneTimes returns how often Gone was called for a client.
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

// Client is a fake connection to an agent: requests are answered in the same
// process, and the test controls its events and its end.
type Client struct {
	Pushed chan bus.Event // returned by Events
	Ended  chan struct{}  // closed when the agent is lost

	once    sync.Once
	answers map[string]bus.Answerer
}

// NewClient returns a connection to these answers; the later of two for a verb
// counts. Any other verb gets an empty reply.
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

// Lose ends the connection, as a lost agent does.
func (c *Client) Lose() { c.once.Do(func() { close(c.Ended) }) }

// Events returns the events that a test has pushed.
func (c *Client) Events() <-chan bus.Event { return c.Pushed }

// Lost is closed by Lose.
func (c *Client) Lost() <-chan struct{} { return c.Ended }

// Heard is always just now.
func (c *Client) Heard() time.Time { return time.Now() }

// Err returns why the connection has ended; nil while it is open.
func (c *Client) Err() error {
	select {
	case <-c.Ended:
		return errors.New("it fell silent")
	default:
		return nil
	}
}
