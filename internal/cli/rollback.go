package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"thru/internal/bus"
	"thru/internal/control"
	"thru/internal/engine/worker"
	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/node"
	"thru/internal/plan"
	"thru/internal/tune"
	"thru/internal/unit"
)

// rollback undoes what thru has changed at an end point, by the journal there:
// of this host by this process alone, without an agent.
func (c *tuneCmd) rollback(ctx context.Context, e *env) error {
	doc := &measure.Document{
		Schema: measure.Schema, Thru: e.Version, Command: "tune", Arguments: e.Arguments(), StartedAt: time.Now(),
		Cells: []measure.Cell{}, Tuning: &measure.Tuning{Restored: []measure.Changed{}},
	}
	point, changed, err := c.restore(ctx, e)
	if err != nil {
		return err
	}
	for i := range changed {
		changed[i].EndPoint = point.Name
	}
	doc.EndPoints = []measure.EndPoint{point}
	doc.Tuning.Restored = append(doc.Tuning.Restored, changed...)
	doc.ElapsedNs = int64(time.Since(doc.StartedAt))
	if err = notRestored(changed); err != nil {
		doc.Error = control.Describe(err)
	}
	return e.outcome(doc, forms{formFlags: c.formFlags}, err)
}

// restore does it, here or at an end point.
func (c *tuneCmd) restore(ctx context.Context, e *env) (measure.EndPoint, []measure.Changed, error) {
	if c.What == "" || c.What == control.Local {
		changed, err := restoreHere(e, c.State)
		return measure.EndPoint{Name: control.Local, Thru: e.Version}, changed, err
	}
	if c.State != "" {
		return measure.EndPoint{}, nil, fault.Usagef("run it there: thru tune --rollback --state DIR", "--state is a folder of this host, and %s is another", c.What)
	}
	end, closeEnd, err := c.dial(e, plan.Request{}, loginFlags{}).EndPoint(ctx, c.What)
	if err != nil {
		return measure.EndPoint{}, nil, err
	}
	defer closeEnd()
	if end.Foreign || end.Client == nil {
		return measure.EndPoint{}, nil, fault.Usagef("run thru there", "cli: no thru runs at %s: it has changed nothing there", c.What)
	}
	point := measure.EndPoint{Name: end.Name, Addr: end.Addr, Thru: end.Hello.Thru}
	reply, err := bus.Call(ctx, end.Client, bus.Rollback, bus.Empty{})
	if err != nil {
		return point, nil, fmt.Errorf("cli: rolling back %s: %w", end.Name, err)
	}
	return point, reply.Changed, nil
}

// restoreHere needs the journal alone.
func restoreHere(e *env, state string) ([]measure.Changed, error) {
	prog, err := worker.Self()
	if err != nil {
		return nil, err
	}
	defer prog.Close()
	if state == "" {
		if state, err = bus.DefaultState(); err != nil {
			return nil, err
		}
	}
	desk, err := node.OpenTuner(e.Version, prog, state, nil)
	if err != nil {
		return nil, err
	}
	changed, err := desk.Rollback()
	if err == nil && len(changed) == 0 {
		e.Line(lookedAt(state))
	}
	return changed, err
}

// lookedAt says whose journal had nothing in it.
func lookedAt(state string) string {
	s := "looked for journals in " + filepath.Join(state, node.TuneFolder)
	if tune.Possible() != nil {
		s += "; those of root are others: run it as root"
	}
	return s
}

// notRestored names what is not as it was before; nil where all is.
func notRestored(changed []measure.Changed) error {
	if tune.Restored(changed) {
		return nil
	}
	var names, said []string
	settings, journals, failed := 0, 0, false
	for _, c := range changed {
		failed = failed || c.Outcome == measure.Failed
		if c.Knob == "" { // of a journal that cannot be read, in whole or in part
			journals++
			continue
		}
		if settings++; c.Outcome != measure.Undone && c.Outcome != measure.Settled {
			names = append(names, strings.TrimSpace(c.Knob+" "+c.Interface))
		}
	}
	if n := len(names); n > 0 {
		said = append(said, fmt.Sprintf("not as before: %s (%d of %s)", strings.Join(names, ", "), n, unit.Plural(settings, "setting")))
	}
	if journals > 0 {
		said = append(said, unit.Plural(journals, "journal")+" not read, or not all of it")
	}
	hint := "what another has set is theirs, and is not tried again: set it by hand if you want the value before"
	if failed {
		hint = "do what the reason says, and run it again: what failed stays in the journal"
	}
	return fault.Failf(hint, "cli: %s", strings.Join(said, "; "))
}
