package vsphere

import (
	"context"
	"slices"
	"sync"
	"time"

	"thru/internal/hypervisor"
	"thru/internal/measure"
)

// pace is how often a watch reads.
type pace struct {
	round time.Duration    // during the test: well before hosts discard samples, and before the idle session ends
	poll  time.Duration    // at the end, until the last sample has come
	now   func() time.Time // our clock
}

func usualPace() pace { return pace{round: 5 * time.Minute, poll: 5 * time.Second, now: time.Now} }

// Watch starts reading counters of guests and hosts. Hosts sample them anyway
// and keep the samples for an hour; so Watch reads nothing during a short
// test, and every five minutes during a long one.
func (c *Client) Watch(ctx context.Context, ids []string) (hypervisor.Watch, error) {
	return c.watch(ctx, ids, usualPace())
}

func (c *Client) watch(ctx context.Context, ids []string, pace pace) (*watch, error) {
	begun := pace.now()
	p, err := newPerf(ctx, c, ids, pace.now)
	if err != nil {
		return nil, c.explain("reading counters", err)
	}
	ctx, stop := context.WithCancel(ctx)
	w := &watch{perf: p, pace: pace, begun: begun, stop: stop, done: make(chan struct{})}
	go w.rounds(ctx)
	return w, nil
}

// watch is a running reading of counters.
type watch struct {
	perf  *perf
	pace  pace
	begun time.Time
	stop  context.CancelFunc // ends the rounds
	done  chan struct{}      // closed when the rounds have ended

	once   sync.Once
	series []measure.Series
	left   []measure.NotChecked
}

// rounds reads samples before the hosts discard them.
func (w *watch) rounds(ctx context.Context) {
	defer close(w.done)
	for hypervisor.Pause(ctx, w.pace.round) {
		w.perf.collect(ctx)
		w.perf.prune()
	}
}

// End reads the remaining samples. It waits until the samples of all running
// entities reach until now, until its context ends, or until the server is
// unreachable.
func (w *watch) End(ctx context.Context) ([]measure.Series, []measure.NotChecked) {
	w.once.Do(func() {
		until := w.pace.now()
		w.stop()
		<-w.done
		if w.perf.look(ctx) == nil { // a guest may be on a host whose clock was not read yet
			w.perf.readClocks(ctx)
		}
		for lost := 0; ; {
			w.perf.collect(ctx)
			if lost++; !w.perf.unreached() {
				lost = 0
			}
			if w.perf.complete(until) || lost == mostLost || !hypervisor.Pause(ctx, w.pace.poll) {
				break
			}
		}
		w.perf.prune()
		w.series = w.perf.series(w.begun, until)
		w.left = w.perf.left(w.begun, until, w.series)
	})
	return w.series, w.left
}

// complete reports whether the samples of all entities that have any reach
// until a time.
func (p *perf) complete(until time.Time) bool {
	return !slices.ContainsFunc(p.entities, func(e *entity) bool { return e.off == "" && len(e.asked) > 0 && e.upTo.Before(until) })
}

// mostLost is how often in a row a server may be unreachable before End stops
// waiting.
const mostLost = 3

// unreached reports whether a connection error made all queries fail.
func (p *perf) unreached() bool {
	reached := func(e *entity) bool { return e.err == nil || faultOf(e.err) != nil }
	return len(p.entities) > 0 && !slices.ContainsFunc(p.entities, reached)
}
