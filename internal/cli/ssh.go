package cli

import (
	"context"
	"time"

	"thru/internal/host/platform"
	"thru/internal/measure"
	"thru/internal/remote"
)

// bySSH reads a host on which no thru runs, such as an ESXi server, by its own
// commands over the system's ssh, and judges its facts. It changes nothing there.
func (c *checkCmd) bySSH(ctx context.Context, e *env, runner runnerOfFacts) (*measure.Document, error) {
	begin := time.Now()
	destination, port, err := remote.SSHTarget(c.EndPoint)
	if err != nil {
		return nil, err
	}
	p := e.Board(false)
	defer p.Clear()
	p.Checking("logging in at " + destination)
	r := platform.SSH(destination, port)
	defer r.Close()
	system, err := platform.Detect(ctx, r)
	if err != nil {
		return nil, err
	}
	p.Checking("reading " + destination + " (" + system + ")")
	facts, err := platform.Read(ctx, system, r)
	if err != nil {
		return nil, err
	}
	return runner.CheckFacts(c.EndPoint, destination, facts, begin)
}

// runnerOfFacts is the part of control.Runner that bySSH needs.
type runnerOfFacts interface {
	CheckFacts(name, addr string, facts measure.Facts, begin time.Time) (*measure.Document, error)
}
