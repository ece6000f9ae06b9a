// Package own moves files by thru's own data plane (docs/wire.md, "Moving a
// file"): the agent at the server opens a port for each, its kernel moves the
// bytes, and nothing of a protocol comes between. So it is the yardstick of the
// other protocols. What is said goes along the control plane, encrypted; the
// bytes of the files are not.
package own

import (
	"context"
	"fmt"
	"slices"
	"time"

	"thru/internal/bus"
	"thru/internal/fault"
	"thru/internal/transfer"
)

// askAgain is how often the turn is asked for, while another client has it.
const askAgain = 250 * time.Millisecond

// An agent answers 32 requests of a client at a time. So many of each kind are
// under way, of all sessions: files that begin, other words, and waits for the end
// of a file.
const (
	mostDoors = 8
	mostWords = 8
	mostWaits = 12
)

// byeTime bounds what is said at the end of a session.
const byeTime = 5 * time.Second

// Agent is what a client asks of the agent at the server: a *bus.Client.
type Agent interface {
	bus.Caller
	// Err is why the connection is over; nil while it is not.
	Err() error
}

// End is the agent at the server, as its client sees it. All clients of one End
// share its turn, which is taken with the first session, and given back with the last.
type End struct {
	agent Agent
	hello bus.HelloReply
	hosts []string

	key  chan struct{} // guards open: who has its one value
	open int           // sessions

	doors, words, waits places
}

// places bounds what is under way.
type places chan struct{}

// take waits for a place; leave gives it back.
func (p places) take(ctx context.Context) error {
	select {
	case p <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (p places) leave() { <-p }

// NewEnd is the end of an agent that has said hello; hosts are where its data
// ports are reached. The connection to it stays the caller's.
func NewEnd(agent Agent, hello bus.HelloReply, hosts []string) *End {
	e := &End{agent: agent, hello: hello, hosts: hosts, key: make(chan struct{}, 1), words: make(places, mostWords), waits: make(places, mostWaits)}
	e.doors = make(places, mostDoors)
	if p := hello.DataPorts; p.First > 0 { // each file that begins has a port until it is connected
		e.doors = make(places, max(1, min(mostDoors, p.Last-p.First+1)))
	}
	e.key <- struct{}{}
	return e
}

// Client is a client of it. Of cfg it needs what is about connections, and no
// login: who may do this has been let in already.
func (e *End) Client(cfg transfer.Config) transfer.Client { return client{e, cfg} }

type client struct {
	end *End
	cfg transfer.Config
}

// Open waits for the turn.
func (c client) Open(ctx context.Context) (transfer.Session, error) {
	if !slices.Contains(c.end.hello.Privileges, bus.PrivilegeFiles) {
		return nil, fault.Failf(bus.AskFor(bus.PrivilegeFiles), "own: opening: %w: this client may measure the network there, but move no files", transfer.ErrLogin)
	}
	if err := c.end.enter(ctx); err != nil {
		return nil, fmt.Errorf("own: waiting for the turn: %w", err)
	}
	s := &session{end: c.end, cfg: c.cfg}
	s.Operating = transfer.Operating{Wires: transfer.NewWires(c.cfg), Do: s.operations()}
	return s, nil
}

// enter takes the turn, if no session has it yet.
func (e *End) enter(ctx context.Context) error {
	select {
	case <-e.key:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { e.key <- struct{}{} }()
	for e.open == 0 {
		r, err := bus.Call(ctx, e.agent, bus.Reserve, bus.ReserveRequest{})
		if err != nil {
			return err
		}
		if r.Granted {
			break
		}
		select {
		case <-time.After(askAgain):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	e.open++
	return nil
}

// leave gives the turn back with the last session.
func (e *End) leave() error {
	<-e.key
	defer func() { e.key <- struct{}{} }()
	if e.open--; e.open > 0 || e.agent.Err() != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), byeTime)
	defer cancel()
	if _, err := bus.Call(ctx, e.agent, bus.Release, bus.ReleaseRequest{}); err != nil {
		return fmt.Errorf("own: giving the turn back: %w", err)
	}
	return nil
}

// session is a share of the turn.
type session struct {
	transfer.Operating
	end    *End
	cfg    transfer.Config
	closed bool
}

// Info is what the agent has said.
func (s *session) Info() transfer.Info {
	return transfer.Info{
		Server: fmt.Sprintf("thru %s at %s", s.end.hello.Thru, s.end.hello.Hostname), Client: "thru's own data plane", Library: true,
		Details: []string{"a TCP connection for each file", "the data is not encrypted"},
	}
}

// Close ends what is under way.
func (s *session) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	s.Wires.Close()
	return s.end.leave()
}
