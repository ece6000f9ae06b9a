package bus

import (
	"context"

	"github.com/nats-io/nats.go"
)

// route carries the messages between a Client and its agent: its own connection (a
// pair), or a share of a connection to many agents (a fleet).
type route interface {
	// ask sends a request and waits for its reply.
	ask(ctx context.Context, q Question, header nats.Header, body []byte) (*nats.Msg, error)
	// cut ends the route at once, from any goroutine.
	cut()
	// end releases the route; all its goroutines have ended when end returns.
	end()
}

// ownRoute is a connection to one agent.
type ownRoute struct {
	client string
	nc     *nats.Conn
	closed chan struct{} // closed when the NATS connection has ended
}

func (r *ownRoute) ask(ctx context.Context, q Question, header nats.Header, body []byte) (*nats.Msg, error) {
	return r.nc.RequestMsgWithContext(ctx, &nats.Msg{Subject: subject(r.client, q.Verb), Header: header, Data: body})
}

func (r *ownRoute) cut() { go r.nc.Close() } // not from within one of its callbacks

func (r *ownRoute) end() {
	r.nc.Close()
	<-r.closed
}
