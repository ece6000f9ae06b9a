package cli

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"thru/internal/bus"
	"thru/internal/cli/console"
	"thru/internal/fault"
	"thru/internal/plan/planfile"
	"thru/internal/remote"
	"thru/internal/watch/metrics"
)

// fleetWatch is the watch of a controller. It begins when the fleet has the hosts that its plan names, and learns of later ones; the file is read again
// only when that is asked for.
type fleetWatch struct {
	*env
	cmd    *watchCmd
	events *console.EventLog
	state  string // folder
	fleet  string // whose hosts the end points without an address are; empty: nobody's

	mu      sync.Mutex
	file    *planfile.File // nil: nothing is watched
	known   string         // hosts with their labels, as of the last expansion
	running atomic.Pointer[watching]
	wg      sync.WaitGroup
}

// open reads the plan, and begins unless hosts are missing. It fails if the plan is wrong.
func (w *fleetWatch) open(ctx context.Context, c *controlCmd, hub *bus.Hub) error {
	if hub != nil { // else the plan names controllers that are joined here
		w.fleet = c.Name
		w.network.Own(c.Name, func() (remote.Route, error) {
			j, err := hub.Join(bus.PrivilegeOperate)
			return remote.Route{Join: &j}, err
		})
	}
	w.archive = archiveOf(keepFlags{c.storeFile, w.storeSettings().NoStore})
	return w.reload(ctx)
}

// reload reads the plan again. On an error the watch goes on by the one before.
func (w *fleetWatch) reload(ctx context.Context) error {
	if w.cmd.What[0] == "" {
		return nil
	}
	file, err := w.watchPlan(ctx, w.cmd.What[0])
	if err != nil {
		return err
	}
	return w.take(ctx, file)
}

// take has the watch go by a plan, or by hosts that have come.
func (w *fleetWatch) take(ctx context.Context, file *planfile.File) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	what, err := w.cmd.planned(ctx, w.env, file, w.fleet)
	x := w.running.Load()
	switch {
	case err != nil && x == nil && len(file.Controllers()) > 0: // hosts are missing
		w.events.Once("watch", "problem", "the watch waits for hosts: "+fault.WithHint(err), nil)
	case err != nil:
		return err
	case x != nil:
		if err := x.again(ctx, what); err != nil {
			return err
		}
	default:
		if x, err = openWatching(ctx, &watchView{env: w.env, json: w.events.JSON}, what, w.state); err != nil {
			return err
		}
		w.running.Store(x)
		w.wg.Go(func() { x.run(ctx, "") })
	}
	w.file = file
	return nil
}

// follow has the watch go by the hosts of the moment.
func (w *fleetWatch) follow(ctx context.Context, hosts []bus.Host) {
	w.mu.Lock()
	file, known := w.file, ""
	for _, h := range hosts {
		if h.Refused == "" {
			known += fmt.Sprintln(h.Name, h.Labels)
		}
	}
	changed := known != w.known
	w.known = known
	w.mu.Unlock()
	if file == nil || len(file.Controllers()) == 0 || !changed {
		return
	}
	if err := w.take(ctx, file); err != nil {
		what := "the watch goes on by the hosts of before: "
		if w.running.Load() == nil {
			what = "the watch does not begin: "
		}
		w.events.Once("watch", "problem", what+fault.WithHint(err), nil)
	}
}

// alive returns when the watch has answered.
func (w *fleetWatch) alive(ctx context.Context) {
	if x := w.running.Load(); x != nil {
		x.Alive(ctx)
	}
}

// families returns the figures of the watch.
func (w *fleetWatch) families() []metrics.Family {
	if x := w.running.Load(); x != nil {
		return x.view.metrics.Families()
	}
	return nil
}

// close waits for the end of the watch.
func (w *fleetWatch) close() {
	w.wg.Wait()
	if x := w.running.Load(); x != nil {
		x.close()
	}
}
