// Package native is thru's own TCP engine. The data moves in a worker
// process, one for each end of a flow, so that its CPU and memory are
// accounted apart, garbage collection never interrupts it, and a crash or a
// hang does not take the agent along.
//
// The agent's side is Engine and session (process.go, session.go); the
// worker's side is Worker (worker.go, connect.go, sampler.go), which moves
// data along one of the paths of this system (copy_linux.go, portable.go).
package native

import (
	"context"
	"slices"
	"time"

	"thru/internal/engine"
	"thru/internal/fault"
	"thru/internal/measure"
)

// Name of this engine in measure.Spec.
const Name = "native"

// connectWait bounds the time from Open of the listening end to the last connection.
const connectWait = 30 * time.Second

// replyWait bounds what a worker may take to come up and answer.
const replyWait = 12 * time.Second

// Engine opens sessions whose data moves in worker processes of Program.
type Engine struct {
	Program *Program
}

// Name implements engine.Engine.
func (Engine) Name() string { return Name }

// Open implements engine.Engine. A listening end returns when it listens, a
// dialling end when all its streams are connected.
func (n Engine) Open(ctx context.Context, e engine.End) (engine.Session, error) {
	if err := validate(e); err != nil {
		return nil, err
	}
	token := e.Token
	if !e.Dials {
		token = newToken()
	}
	p, err := n.Program.start(e.Spec.Streams)
	if err != nil {
		return nil, err
	}
	s := newSession(e, p, token)
	if err := s.open(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// validate refuses what would make a worker misbehave; the command line has
// its own, friendlier checks, but an agent trusts nobody.
func validate(e engine.End) error {
	s := e.Spec
	bad := func(format string, args ...any) error {
		return fault.Usagef("", "native: checking the request: "+format, args...)
	}
	switch {
	case s.Protocol != measure.TCP:
		return bad("protocol %q is not known", s.Protocol)
	case s.Streams < 1 || s.Streams > measure.MaxStreams:
		return bad("%d streams are not 1 to %d", s.Streams, measure.MaxStreams)
	case outside(s.Window, measure.MaxWindow):
		return bad("a window of %d/%d bytes is not 0 to %d", s.Window.Send, s.Window.Recv, int64(measure.MaxWindow))
	case outside(s.Length, measure.MaxLength):
		return bad("a length of %d/%d bytes is not 1 to %d", s.Length.Send, s.Length.Recv, int64(measure.MaxLength))
	case s.Duration < int64(measure.MinDuration) || s.Duration > int64(measure.MaxDuration):
		return bad("a duration of %v is not %v to %v", time.Duration(s.Duration), measure.MinDuration, measure.MaxDuration)
	case s.Ramp < 0 || s.Ramp > int64(measure.MaxRamp):
		return bad("a ramp of %v is not 0 to %v", time.Duration(s.Ramp), measure.MaxRamp)
	case s.DSCP < 0 || s.DSCP > 63:
		return bad("DSCP %d is not 0 to 63", s.DSCP)
	case s.BindPort < 0 || s.BindPort+s.Streams > 65536:
		return bad("source ports from %d do not fit %d streams", s.BindPort, s.Streams)
	case s.IO != "" && !slices.ContainsFunc(paths(), func(p path) bool { return p.name == s.IO }):
		return bad("data path %q does not exist on this system", s.IO)
	case !slices.Contains([]int{0, 4, 6}, s.Family):
		return bad("IP family %d is not 4 or 6", s.Family)
	}
	return nil
}

func outside(p measure.Pair, most int64) bool {
	return p.Send < 0 || p.Recv < 0 || p.Send > most || p.Recv > most
}
