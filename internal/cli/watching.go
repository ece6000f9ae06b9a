package cli

import (
	"context"
	"errors"
	"iter"
	"os"
	"strings"
	"sync"
	"time"

	"thru/internal/cli/console"
	"thru/internal/library"
	words "thru/internal/report/watch"
	"thru/internal/store"
	"thru/internal/watch"
	"thru/internal/watch/metrics"
	"thru/internal/watch/record"
	"thru/internal/watch/schedule"
)

// watching is a watch with all its parts.
type watching struct {
	*watch.Watch
	view    *watchView
	hosts   *watch.Hosts // of the first plan: later ones share its connections
	id      string       // of the watch at the agents
	closing []func()

	mu  sync.Mutex // held while it reloads
	now toWatch
}

// openWatching connects the parts of a watch, whose state is below a folder.
func openWatching(ctx context.Context, view *watchView, what toWatch, folder string) (_ *watching, err error) {
	x := &watching{view: view, now: what}
	defer func() {
		if err != nil {
			x.close()
		}
	}()
	state, err := openWatch(folder, what.seed)
	if err != nil {
		return nil, err
	}
	x.id, x.closing = state.Watch, append(x.closing, state.unlock)
	view.metrics, view.errors, view.said = metrics.NewSet(), map[record.Pair]string{}, map[string]string{}
	if view.log, err = view.archive.WatchLog(); err != nil {
		return nil, err
	}
	x.closing = append(x.closing, func() {
		if err := view.log.Close(); err != nil {
			view.warn(err)
		}
	})
	if view.out, err = state.outbox(what.keys.Alarms, view); err != nil {
		return nil, err
	}
	x.hosts = x.hostsOf(what).Open(nil)
	x.closing = append(x.closing, x.hosts.Close)
	x.Watch, err = watch.New(watch.Config{
		Wish: what.wish, Judge: what.judge, Seed: what.seed, Fleet: x.hosts, State: state.State, Past: past(ctx, view.log, what.wish.Paths, view.warn), Keep: view.keep, Report: view.report, Warn: view.warn, Stand: view.metrics.Stand,
		Save: func(next []byte) {
			if err := state.save(next); err != nil {
				view.warn(err)
			}
		},
	})
	if err != nil {
		return nil, err
	}
	view.metrics.Stand(x.Standings(), x.Alarms()) // what the last run knew
	for _, a := range x.Alarms() {
		view.said[a.ID] = message(a, time.Now()).Text
	}
	return x, nil
}

// hostsOf returns the hosts of a plan, not opened.
func (x *watching) hostsOf(what toWatch) watch.Hosts {
	return watch.Hosts{
		Version: x.view.Version, Traffic: what.traffic, Link: what.traffic.Link, Bar: what.keys.Load, Archive: x.view.archive.Keep, Connect: what.connect, At: what.at, Hypervisors: what.hypervisors,
		Paths: what.wish.Paths, ProbeEvery: what.wish.ProbeEvery, Watch: x.id, Seed: x.now.seed, Warn: x.view.warn,
	}
}

// close closes all parts.
func (x *watching) close() {
	for i := range x.closing {
		x.closing[len(x.closing)-1-i]()
	}
}

// pushEvery is how often figures are pushed.
const pushEvery = 15 * time.Second

// run watches until the context ends, sends alarms, and pushes figures to an OpenTelemetry collector; "": to none.
func (x *watching) run(ctx context.Context, otlp string) {
	beside, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { x.view.out.Run(beside) })
	if otlp != "" {
		p := metrics.Pusher{URL: otlp, Version: x.view.Version}
		wg.Go(func() {
			for every := time.NewTicker(pushEvery); ; {
				select {
				case <-beside.Done():
					every.Stop()
					return
				case <-every.C:
				}
				if err := p.Push(beside, x.view.metrics); err != nil && beside.Err() == nil {
					x.view.warn(err)
				}
			}
		})
	}
	x.Run(ctx)
	cancel()
	wg.Wait()
	var by console.Signalled // by a service manager: it goes on with the next run, and the agents keep probing
	if !errors.As(context.Cause(ctx), &by) || by.Signal == os.Interrupt {
		x.hosts.End()
	}
}

// again has the watch go on by another plan, and reports the differences. On an error nothing changes.
func (x *watching) again(ctx context.Context, what toWatch) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	sinks, err := sinksOf(what.keys.Alarms)
	if err != nil {
		return err
	}
	to := x.hostsOf(what).Open(x.hosts)
	if err := x.Reload(ctx, what.wish, what.judge, to); err != nil {
		return err
	}
	changes := words.Changes(x.now.wish.Paths, what.wish.Paths, x.now.keys, what.keys)
	x.view.out.Change(sinks)
	to.Leave(x.now.wish.Paths)
	x.now = what
	if len(changes) > 0 {
		(&console.EventLog{On: x.view.Console, JSON: x.view.json}).Notify("plan", "the plan changes: "+strings.Join(changes, "; "), map[string]any{"changes": changes})
	}
	return nil
}

// longAgo is as far back as samples are stored.
const longAgo = 14 * 24 * time.Hour

// past returns the stored samples from which a watch goes on, those of a pair in order. It warns of what cannot be read, which is no reason not to watch.
func past(ctx context.Context, log *library.WatchLog, paths []schedule.Path, warn func(error)) iter.Seq2[record.Sample, error] {
	now := time.Now()
	return func(yield func(record.Sample, error) bool) {
		for _, p := range paths {
			for s, err := range log.Past(ctx, store.SampleFilter{Pair: p.Pair, From: now.Add(-longAgo), To: now}) {
				if errors.Is(err, store.ErrDamaged) {
					warn(err)
				} else if !yield(s, err) {
					return
				}
			}
		}
	}
}
