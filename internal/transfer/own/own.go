// Package own moves files by thru's own data plane (docs/wire.md, "Moving a
// file"): the agent at the server opens a port for each file and its kernel
// moves the bytes, without any protocol overhead. So it is the reference for
// the other protocols. Messages use the encrypted control plane; the files'
// bytes are not encrypted.
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

// askAgain is how often the client asks for its turn while another client has
// it.
const askAgain = 250 * time.Millisecond

// An agent answers 32 requests of a client at a time. These limits hold over
// all sessions: starts of files, other messages, and waits for the end of a
// file.
const (
	mostDoors = 8
	mostWords = 8
	mostWaits = 12
)

// byeTime limits the messages at the end of a session.
const byeTime = 5 * time.Second

// Agent is the connection to the agent at the server: a *bus.Client.
type Agent interface {
	bus.Caller
	// Err returns why the connection has ended; nil while it has not.
	Err() error
}

// End is the agent at the server as seen by its client. All clients of one
// End share its turn, which the first session takes and the last gives back.
type End struct {
	agent Agent
	hello bus.HelloReply
	hosts []string

	key  chan struct{} // guards open: its holder has the one value
	open int           // number of sessions

	doors, words, waits places
}

// places limits concurrent requests.
type places chan struct{}

// take waits for a place; leave releases it.
func (p places) take(ctx context.Context) error {
	select {
	case p <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (p places) leave() { <-p }

// NewEnd returns the end of an agent that has answered hello; hosts are the
// addresses of its data ports. The caller keeps ownership of the connection.
func NewEnd(agent Agent, hello bus.HelloReply, hosts []string) *End {
	e := &End{agent: agent, hello: hello, hosts: hosts, key: make(chan struct{}, 1), words: make(places, mostWords), waits: make(places, mostWaits)}
	e.doors = make(places, mostDoors)
	if p := hello.DataPorts; p.First > 0 { // each starting file occupies a port until it is connected
		e.doors = make(places, max(1, min(mostDoors, p.Last-p.First+1)))
	}
	e.key <- struct{}{}
	return e
}

// Client returns a client of the end. It uses cfg's connection settings but
// no login, since the agent has admitted the caller already.
func (e *End) Client(cfg transfer.Config) transfer.Client { return client{e, cfg} }

type client struct {
	end *End
	cfg transfer.Config
}

// Open waits for the turn.
func (c client) Open(ctx context.Context) (transfer.Session, error) {
	if !slices.Contains(c.end.hello.Privileges, bus.PrivilegeFiles) {
		return nil, fault.Failf(bus.AskFor(bus.PrivilegeFiles), "own: opening: %w: this client may measure the network there, but not transfer files", transfer.ErrLogin)
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

// leave gives back the turn with the last session.
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

// Info returns the agent's information.
func (s *session) Info() transfer.Info {
	return transfer.Info{
		Server: fmt.Sprintf("thru %s at %s", s.end.hello.Thru, s.end.hello.Hostname), Client: "thru's own data plane", Library: true,
		Details: []string{"a TCP connection for each file", "the data is not encrypted"},
	}
}

// Close ends the operations in progress.
func (s *session) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	s.Wires.Close()
	return s.end.leave()
}
