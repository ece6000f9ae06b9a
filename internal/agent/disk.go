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

// diskTest is the measurement of a disk for a client: one at a time.
type diskTest struct {
	client, session string
	cancel          context.CancelFunc
	over            chan struct{} // closed when test is complete
	test            measure.DiskTest
}

// BeginDisk answers bus.Disk.Begin. Nothing else is measured here meanwhile.
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
		if longest := a.conf.Limits.DurationNs; m.Spec.RunNs > longest {
			return bus.JobReply{}, fault.Failf(fmt.Sprintf("-t %.0f is the most there", time.Duration(longest).Seconds()), "agent: a step of %v is above this end point's limit", time.Duration(m.Spec.RunNs))
		}
		c.MaxBytes = a.conf.Files.most()
	}
	var err error
	if c.Root, err = a.folder("measuring a disk", m.Path, own); err != nil {
		return bus.JobReply{}, err
	}
	d, err := a.beginDisk(client)
	if err != nil {
		c.Root.Close()
		return bus.JobReply{}, err
	}
	dctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	d.cancel = cancel
	if !a.keepDisk(d) {
		cancel()
		c.Root.Close()
		return bus.JobReply{}, fault.Failf("", "agent: measuring a disk: the client has gone or the agent ends")
	}
	go a.measureDisk(dctx, d, c)
	return bus.JobReply{Session: d.session}, nil
}

// beginDisk takes the place of the one disk test that there can be.
func (a *Agent) beginDisk(client string) (*diskTest, error) {
	if !a.isQuiet() {
		return nil, fault.Failf("try again when that has ended", "agent: measuring a disk has to wait: something else is measured here")
	}
	return &diskTest{client: client, session: newID(), over: make(chan struct{})}, nil
}

// keepDisk makes it the one under way; false where the client has gone, or another was quicker.
func (a *Agent) keepDisk(d *diskTest) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed || a.disk != nil || a.opening > 0 || a.moving() > 0 || !a.turns.has(d.client) {
		return false
	}
	a.disk = d
	a.busy()
	return true
}

// measureDisk measures, and tells the client of its progress and its end.
func (a *Agent) measureDisk(ctx context.Context, d *diskTest, c disk.Config) {
	defer close(d.over)
	defer c.Root.Close()
	test, err := disk.Measure(ctx, c, func(t measure.DiskTick) {
		a.tell(d.client, bus.Event{Session: d.session, Kind: bus.EventProgress, Disk: &t})
	})
	e := bus.Event{Session: d.session, Kind: bus.EventDone}
	if err != nil {
		test.Error = &measure.Error{Message: err.Error(), Hint: fault.Hint(err), ExitCode: fault.Code(err)}
		e = bus.Event{Session: d.session, Kind: bus.EventFailed, Error: err.Error(), Hint: fault.Hint(err)}
	}
	d.test = test
	a.tell(d.client, e)
}

// EndDisk answers bus.Disk.End. The turn stays the client's.
func (a *Agent) EndDisk(ctx context.Context, client string, m bus.JobEnd) (bus.DiskResult, error) {
	a.mu.Lock()
	d := a.disk
	a.mu.Unlock()
	if d == nil || d.client != client || d.session != m.Session {
		return bus.DiskResult{}, fault.Failf("", "agent: disk test %q is not known", m.Session)
	}
	d.cancel()
	select {
	case <-d.over:
		a.forgetDisk(d)
		return bus.DiskResult{Test: d.test}, nil
	case <-ctx.Done():
		return bus.DiskResult{}, fault.Failf("the disk holds an access back; the test ends when it comes back", "agent: ending a disk test: %w", ctx.Err())
	}
}

// endDisk ends the disk test of a client, and forgets it.
// It waits: the turn is given on when the disk is quiet.
func (a *Agent) endDisk(client, session string) {
	a.mu.Lock()
	d := a.disk
	ours := d != nil && d.client == client && (session == "" || session == d.session)
	a.mu.Unlock()
	if !ours {
		return
	}
	d.cancel()
	<-d.over
	a.forgetDisk(d)
}

// besides is how many disk tests and observations of a client go on.
func (a *Agent) besides(client string) (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.disk != nil && a.disk.client == client {
		n++
	}
	if a.observed[client] != nil {
		n++
	}
	return n
}

// forgetDisk makes room for the next one.
func (a *Agent) forgetDisk(d *diskTest) {
	a.mu.Lock()
	if a.disk == d {
		a.disk = nil
	}
	tell := a.busy
	a.mu.Unlock()
	tell()
}
