package bus

import (
	"context"

	"github.com/nats-io/nats.go"
)

// route carries the messages between a Client and its agent: a connection of
// its own (a pair), or a share of one that leads to many agents (a fleet).
type route interface {
	// ask sends a request and waits for its reply.
	ask(ctx context.Context, q Question, header nats.Header, body []byte) (*nats.Msg, error)
	// cut ends the route at once, from wherever it is called.
	cut()
	// end gives it back; nothing of it runs when end returns.
	end()
}

// ownRoute is a connection that leads to one agent.
type ownRoute struct {
	client string
	nc     *nats.Conn
	closed chan struct{} // closed when NATS is done with the connection
}

func (r *ownRoute) ask(ctx context.Context, q Question, header nats.Header, body []byte) (*nats.Msg, error) {
	return r.nc.RequestMsgWithContext(ctx, &nats.Msg{Subject: subject(r.client, q.Verb), Header: header, Data: body})
}

func (r *ownRoute) cut() { go r.nc.Close() } // not from within a callback of its own

func (r *ownRoute) end() {
	r.nc.Close()
	<-r.closed
}
