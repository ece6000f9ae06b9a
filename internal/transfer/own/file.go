package own

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"thru/internal/bus"
	"thru/internal/fault"
	"thru/internal/token"
	"thru/internal/transfer"
)

// keepTime limits the time until a disk has all sent data.
const keepTime = 10 * time.Minute

// endTime limits the last message of a transfer that failed here: together
// with the rest it stays below the promised second.
const endTime = 700 * time.Millisecond

// at returns a path on the agent's host.
func at(path string) string { return "/" + path }

// ask sends a request when a place is free.
func ask[Req, Rep any](ctx context.Context, agent bus.Caller, p places, v bus.Verb[Req, Rep], m Req) (reply Rep, err error) {
	if err := p.take(ctx); err != nil {
		return reply, err
	}
	defer p.leave()
	return bus.Call(ctx, agent, v, m)
}

// operations returns the operations of a session.
func (s *session) operations() transfer.Operations {
	return transfer.Operations{
		Protocol: "own", Get: s.get, Put: s.put,
		Size: func(ctx context.Context, path string) (int64, error) {
			r, err := ask(ctx, s.end.agent, s.end.words, bus.FileSize, bus.FilePath{Path: at(path)})
			if err == nil && r.Bytes < 0 {
				err = fmt.Errorf("the agent reports a size of %d bytes", r.Bytes)
			}
			return r.Bytes, judge(err)
		},
		Remove: func(ctx context.Context, path string) error {
			_, err := ask(ctx, s.end.agent, s.end.words, bus.FileRemove, bus.FilePath{Path: at(path)})
			return judge(err)
		},
	}
}

// get writes a file's bytes to w.
func (s *session) get(ctx context.Context, path string, w io.Writer) (int64, error) {
	conn, begun, err := s.begin(ctx, bus.FileStart{Path: at(path), Buffer: s.cfg.Buffer})
	if err != nil {
		return 0, judge(err)
	}
	defer conn.Close()
	to := &transfer.Noting{W: transfer.Sink(ctx, w)}
	_, err = transfer.Copy(to, io.LimitReader(conn, begun.Bytes), s.cfg.Block)
	if err = to.Ended(ctx, begun.Bytes, err); err == nil {
		return to.N, judge(s.finish(ctx, begun.Session))
	}
	if there := s.give(ctx, begun.Session); errors.Is(err, transfer.ErrShort) {
		err = errors.Join(err, there)
	}
	return to.N, err
}

// put makes the agent write a file, which gets its name when it is on the
// disk.
func (s *session) put(ctx context.Context, path string, r io.Reader, size int64, overwrite bool) error {
	conn, begun, err := s.begin(ctx, bus.FileStart{Path: at(path), Put: true, Bytes: size, Overwrite: overwrite, Buffer: s.cfg.Buffer})
	if err != nil {
		return judge(err)
	}
	defer conn.Close()
	_, err = transfer.Copy(conn, transfer.Source(ctx, r, size), s.cfg.Block)
	if err == nil {
		return judge(s.finish(ctx, begun.Session))
	}
	// The agent's disk error explains why it closed the connection.
	if there := s.give(ctx, begun.Session); ctx.Err() == nil && (fault.ReasonOf(there) == bus.ReasonFull || fault.ReasonOf(there) == bus.ReasonSilent) {
		err = there
	}
	return judge(err)
}

// begin makes the agent open a port, and connects to it.
func (s *session) begin(ctx context.Context, m bus.FileStart) (net.Conn, bus.FileReply, error) {
	if err := s.end.doors.take(ctx); err != nil {
		return nil, bus.FileReply{}, err
	}
	defer s.end.doors.leave()
	begun, err := bus.Call(ctx, s.end.agent, bus.File.Begin, m)
	if err != nil {
		return nil, begun, err
	}
	conn, err := s.dial(ctx, begun)
	if err != nil {
		s.give(ctx, begun.Session)
		return nil, begun, err
	}
	return conn, begun, nil
}

// dial connects to the agent's port, and shows the token.
func (s *session) dial(ctx context.Context, begun bus.FileReply) (net.Conn, error) {
	shown, err := token.Parse(begun.Token)
	if err == nil && !token.Proves(begun.Token) { // another process may listen there
		err = errors.New("the agent sent an invalid token")
	}
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, host := range s.end.hosts {
		conn, err := s.Data(ctx, net.JoinHostPort(host, strconv.Itoa(begun.Port)))
		if err == nil {
			if err = shown.Introduce(conn, token.File, nil); err == nil {
				return conn, nil
			}
			conn.Close()
		}
		errs = append(errs, err)
		if ctx.Err() != nil {
			break
		}
	}
	ports := s.end.hello.DataPorts
	return nil, fault.Failf(fmt.Sprintf("open the data ports %d-%d in the firewall of that host", ports.First, ports.Last), "own: no data connection: %w", errors.Join(errs...))
}

// finish waits until the agent's end is done: for an uploaded file, until it
// is on the disk.
func (s *session) finish(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, keepTime, fault.Failf("check the kernel's messages on that host: dmesg", "its disk did not take all data within %v", keepTime))
	defer cancel()
	for {
		r, err := ask(ctx, s.end.agent, s.end.waits, bus.File.End, bus.FileEnd{Session: id})
		switch {
		case err != nil && ctx.Err() != nil:
			s.give(ctx, id)
			return context.Cause(ctx)
		case err != nil || r.Over:
			return err
		}
		s.Alive() // the disk is slow: this is no silence
	}
}

// give ends the agent's end, and returns its result.
func (s *session) give(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	_, err := ask(ctx, s.end.agent, s.end.words, bus.File.End, bus.FileEnd{Session: id, End: true})
	return err
}

// known is an error of the agent that callers distinguish.
type known struct {
	error
	kind error
}

// Unwrap returns both.
func (k known) Unwrap() []error { return []error{k.error, k.kind} }

// judge converts an error of the agent by its reason to one that callers
// distinguish.
func judge(err error) error {
	kind := map[bus.Reason]error{
		bus.ReasonMissing: transfer.ErrMissing, bus.ReasonExists: transfer.ErrExists, bus.ReasonDenied: transfer.ErrDenied,
		bus.ReasonReadOnly: transfer.ErrReadOnly, bus.ReasonFull: transfer.ErrFull, bus.ReasonShort: transfer.ErrShort, bus.ReasonSilent: transfer.ErrSilent,
	}[fault.ReasonOf(err)]
	if kind != nil {
		err = known{err, kind}
	}
	return err
}
