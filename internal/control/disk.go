package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"thru/internal/bus"
	"thru/internal/fault"
	"thru/internal/measure"
)

// diskSilence is how long a disk test may send no event: one access to a broken
// disk may take minutes, and the agent reports when it gives up.
const diskSilence = 5 * time.Minute

// Disk measures the disk that holds a folder of one end point. watch receives the
// progress. The document is usable on error too: it holds the results until then.
func (r *Runner) Disk(ctx context.Context, e *EndPoint, ask bus.DiskStart, watch func(measure.DiskTick)) (*measure.Document, error) {
	begin := time.Now()
	r.Ends = map[string]*EndPoint{e.Name: e}
	doc := r.document("disk", begin)
	ends := []*EndPoint{e}
	err := mayMeasureDisk(e)
	if err == nil {
		defer release(ends)
		_, err = r.reserve(ctx, ends, false)
	}
	if err == nil {
		_, _, err = r.facts(ctx, doc, 0, func(string) string { return "" })
	}
	if err == nil {
		var test measure.DiskTest
		test, err = diskTest(ctx, e, ask, watch)
		if len(test.Runs) > 0 || err == nil {
			doc.Disks = append(doc.Disks, test)
		}
	}
	if ctx.Err() != nil {
		err = fault.ErrInterrupted
	}
	return finished(doc, begin, err)
}

// diskTest measures one disk at an end point whose turn is taken. The result is
// usable on error too.
func diskTest(ctx context.Context, e *EndPoint, ask bus.DiskStart, watch func(measure.DiskTick)) (measure.DiskTest, error) {
	none := measure.DiskTest{Where: e.Name, Path: ask.Path, Runs: []measure.DiskRun{}}
	if err := mayMeasureDisk(e); err != nil {
		return none, err
	}
	reply, err := bus.Call(ctx, e, bus.Disk.Begin, ask)
	if err != nil {
		return none, ownerOf(e, err)
	}
	err = followDisk(ctx, e, reply.Session, watch)
	if e.Client.Err() != nil {
		return none, lost(e)
	}
	result, ferr := bus.Call(context.WithoutCancel(ctx), e, bus.Disk.End, bus.JobEnd(reply))
	if ferr != nil {
		return none, errors.Join(err, fmt.Errorf("control: %s: fetching the figures of the disk: %w", fault.Named(e.Name), ferr))
	}
	t := result.Test
	t.Where = e.Name
	if t.Error != nil {
		err = ownerOf(e, fault.New(t.Error.ExitCode, t.Error.Hint, "%s", t.Error.Message))
	}
	return t, err
}

// mayMeasureDisk returns why the disks of an end point cannot be measured.
func mayMeasureDisk(e *EndPoint) error {
	switch {
	case !e.asked():
		return fault.Usagef("start thru there", "control: thru does not run at %s: its disk cannot be measured", e.Name)
	case !slices.Contains(e.Hello.Privileges, bus.PrivilegeFiles):
		return fault.Failf(bus.AskFor(bus.PrivilegeFiles), "control: %s does not allow this client to measure disks", e.Name)
	}
	return nil
}

// ownerOf adds the name of the end point to an error, unless it is this machine.
func ownerOf(e *EndPoint, err error) error {
	if e.Name == Local {
		return err
	}
	return fmt.Errorf("control: %s: %w", fault.Named(e.Name), err)
}

// followDisk reads the events of a disk test until it ends.
func followDisk(ctx context.Context, e *EndPoint, session string, watch func(measure.DiskTick)) error {
	silent := time.NewTimer(diskSilence)
	defer silent.Stop()
	for {
		select {
		case x := <-e.Client.Events():
			if x.Session != session {
				continue
			}
			silent.Reset(diskSilence)
			switch {
			case x.Kind == bus.EventDone:
				return nil
			case x.Kind == bus.EventFailed:
				return ownerOf(e, fault.Failf(x.Hint, "%s", x.Error))
			case x.Disk != nil && watch != nil:
				watch(*x.Disk)
			}
		case <-e.Client.Lost():
			return lost(e)
		case <-silent.C:
			return fault.Failf("read the kernel's messages there: dmesg", "control: %s: its disk has not responded for %v", fault.Named(e.Name), diskSilence)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
