package control

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"thru/internal/bus"
	"thru/internal/unit"
)

// endsOf returns the end points of flows that have an agent, each once, in an order
// that all controllers share, so that two of them never wait for each other.
func endsOf(flows []*flow) []*EndPoint {
	seen := map[*EndPoint]bool{}
	var es []*EndPoint
	for _, f := range flows {
		for _, e := range []*EndPoint{f.sender.end, f.receiver.end} {
			if e.asked() && !seen[e] {
				seen[e] = true
				es = append(es, e)
			}
		}
	}
	slices.SortFunc(es, inOrder)
	return es
}

// Bounds of concurrent requests: in total, and at one agent, which serves 32 of a
// client.
const (
	width    = 64
	perAgent = 16
)

// few is the number of end points up to which the turns are taken one after the
// other from the start.
const few = 4

const askAgain = 250 * time.Millisecond

// reserve waits for the turn at every end point, in the order of ends; it stops at
// the first error.
func (r *Runner) reserve(ctx context.Context, ends []*EndPoint, together bool) (time.Duration, error) {
	return r.await(ctx, ends, together, func(_ *EndPoint, err error) error { return err })
}

// take waits for the turn at every end point. The map holds the errors of those
// where it failed.
func (r *Runner) take(ctx context.Context, ends []*EndPoint, together bool) (time.Duration, map[*EndPoint]error) {
	failed := map[*EndPoint]error{}
	if len(ends) > few {
		if r.takeAll(ctx, ends, together, failed) {
			return 0, failed
		}
		ends = slices.DeleteFunc(slices.Clone(ends), func(e *EndPoint) bool { return failed[e] != nil })
		release(ends)
	}
	waited, _ := r.await(ctx, ends, together, func(e *EndPoint, err error) error {
		failed[e] = err
		return ctx.Err()
	})
	return waited, failed
}

// takeAll asks all at once, and returns true where no other client was ahead at
// any. It must not wait: a client that holds some turns and waits for others, out
// of the order, may deadlock.
func (r *Runner) takeAll(ctx context.Context, ends []*EndPoint, together bool, failed map[*EndPoint]error) bool {
	var mu sync.Mutex
	all := true
	unit.AtMost(len(ends), width, func(i int) {
		reply, err := bus.Call(ctx, ends[i], bus.Reserve, bus.ReserveRequest{Together: together})
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			failed[ends[i]] = turnError(ends[i], err)
			return
		}
		all = all && reply.Granted
	})
	return all
}

func turnError(e *EndPoint, err error) error {
	return fmt.Errorf("control: taking the turn at %s: %w", e.Name, err)
}

// await takes the turns one after the other. It passes the error of an end point
// to failed, which returns an error to stop.
func (r *Runner) await(ctx context.Context, ends []*EndPoint, together bool, failed func(*EndPoint, error) error) (time.Duration, error) {
	begin, asked := time.Now(), false
	for _, e := range ends {
		waited, err := r.turn(ctx, e, together)
		asked = asked || waited
		if err != nil {
			if err := failed(e, err); err != nil {
				return 0, err
			}
		}
	}
	if !asked {
		return 0, nil
	}
	return time.Since(begin), nil
}

// turn waits for the turn of one end point.
func (r *Runner) turn(ctx context.Context, e *EndPoint, together bool) (waited bool, err error) {
	for last := -1; ; {
		reply, err := bus.Call(ctx, e, bus.Reserve, bus.ReserveRequest{Together: together})
		if err != nil {
			return waited, turnError(e, err)
		}
		if reply.Granted {
			return waited, nil
		}
		if waited = true; reply.Ahead != last {
			r.notify(Waiting{e.Name, reply.Ahead})
			last = reply.Ahead
		}
		if err := r.pause(ctx, e, askAgain); err != nil {
			return waited, err
		}
	}
}

func (r *Runner) pause(ctx context.Context, e *EndPoint, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-e.Client.Lost():
		return lost(e)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// releaseAllTime bounds release.
const releaseAllTime = 5 * time.Second

func release(es []*EndPoint) {
	ctx, cancel := context.WithTimeout(context.Background(), releaseAllTime)
	defer cancel()
	unit.AtMost(len(es), width, func(i int) { bus.Call(ctx, es[i], bus.Release, bus.ReleaseRequest{}) })
}

// each calls do for 0 to n-1, all at the same time.
func each(n int, do func(i int)) { unit.AtMost(n, n, do) }
