package agent

import (
	"context"
	"fmt"
	"time"

	"thru/internal/bus"
	"thru/internal/disk"
	"thru/internal/fault"
	"thru/internal/measure"
)

// BeginDisk answers bus.Disk.Begin. No other measurement runs here meanwhile.
func (a *Agent) BeginDisk(ctx context.Context, client string, m bus.DiskStart) (bus.JobReply, error) {
	own := bus.IsOwn(ctx)
	if err := mayFiles(ctx); err != nil {
		return bus.JobReply{}, err
	}
	if !a.turns.has(client) {
		return bus.JobReply{}, errNotYourTurn("measuring a disk")
	}
	if err := disk.Check(m.Spec); err != nil {
		return bus.JobReply{}, err
	}
	c := disk.Config{Path: m.Path, Host: a.conf.Host, Spec: m.Spec}
	if !own {
		if longest := a.limits().DurationNs; m.Spec.RunNs > longest {
			return bus.JobReply{}, fault.Failf(fmt.Sprintf("use at most -t %.0f there", time.Duration(longest).Seconds()), "agent: a step of %v exceeds this end point's limit", time.Duration(m.Spec.RunNs))
		}
		c.MaxBytes = a.conf.Files.most()
	}
	var err error
	if c.Root, err = a.folder("measuring a disk", m.Path, own); err != nil {
		return bus.JobReply{}, err
	}
	if !a.isQuiet() {
		c.Root.Close()
		return bus.JobReply{}, fault.Failf("try again when the other test has ended", "agent: measuring a disk: another test runs here")
	}
	d := &diskTest{job: newJob(client, "a disk")}
	dctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	d.stop = cancel
	if !a.keep(d, func() bool { return !a.measuresDisk() && a.opening == 0 && a.moving() == 0 }) {
		cancel()
		c.Root.Close()
		return bus.JobReply{}, fault.Failf("", "agent: measuring a disk: the client has disconnected, or the agent is shutting down")
	}
	go a.measureDisk(dctx, d, c)
	return bus.JobReply{Session: d.session}, nil
}

// measureDisk measures, and sends the client progress events and the end.
func (a *Agent) measureDisk(ctx context.Context, d *diskTest, c disk.Config) {
	defer close(d.over)
	defer c.Root.Close()
	test, err := disk.Measure(ctx, c, func(t measure.DiskTick) {
		a.report(d.client, bus.Event{Session: d.session, Kind: bus.EventProgress, Disk: &t})
	})
	e := bus.Event{Session: d.session, Kind: bus.EventDone}
	if err != nil {
		test.Error = &measure.Error{Message: err.Error(), Hint: fault.Hint(err), ExitCode: fault.Code(err)}
		e = bus.Failed(d.session, err)
	}
	d.test = test
	a.report(d.client, e)
}

// EndDisk answers bus.Disk.End. The turn stays the client's.
func (a *Agent) EndDisk(ctx context.Context, client string, m bus.JobEnd) (bus.DiskResult, error) {
	d, err := find[*diskTest](a, client, m.Session)
	if err != nil {
		return bus.DiskResult{}, err
	}
	d.stop()
	select {
	case <-d.over:
		a.forget(d)
		return bus.DiskResult{Test: d.test}, nil
	case <-ctx.Done():
		return bus.DiskResult{}, fault.Failf("wait: the disk has not completed an I/O; the test ends when it does", "agent: ending a disk test: %w", ctx.Err())
	}
}
