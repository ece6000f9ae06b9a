package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"thru/internal/bus"
	"thru/internal/cli/console"
	"thru/internal/control"
	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/plan"
	"thru/internal/plan/planfile"
	"thru/internal/remote"
	"thru/internal/runs"
)

// A run whose end points are all hosts of one NATS cluster is shared there, where the cluster has JetStream: the
// plan, and each finished step. If its command is killed or cut off, `thru run --stand-by` finishes it.

// takenRun is what another process needs to continue a run. Both expand the plan with the same hosts and CPUs,
// and so to the same steps.
type takenRun struct {
	Head      runs.Head                  `json:"head"`
	Thru      string                     `json:"thru_version"`
	Fleet     string                     `json:"controller"` // its name in the plan
	Fleets    map[string][]planfile.Host `json:"fleets"`
	Found     map[string]planfile.Found  `json:"found"`
	Host      string                     `json:"host"` // where it began
	PID       int                        `json:"pid"`
	Began     time.Time                  `json:"began"`
	Arguments []string                   `json:"arguments"`

	steps map[int][]byte // finished ones, by their number in the schedule
}

// fleetOf returns the controller whose hosts are all end points of a plan; "" where there is no such one.
func fleetOf(p plan.Plan) string {
	fleet := ""
	for _, e := range p.EndPoints {
		controller, _, ok := remote.MemberOf(cmp.Or(e.At, e.Name))
		if !ok || fleet != "" && controller != fleet {
			return ""
		}
		fleet = controller
	}
	return fleet
}

// share makes a new run known in the fleet. The context ends when another process may own the run; release frees
// the connection.
func (r *planRun) share(ctx context.Context, p plan.Plan, ends map[string]*control.EndPoint) (owned context.Context, release func()) {
	release = func() {}
	fleet := fleetOf(p)
	if r.taken == nil && fleet != "" && r.before == nil {
		ledger, back, err := r.env.network.Ledger(ctx, fleet)
		if errors.Is(err, bus.ErrUnshared) {
			return ctx, release
		}
		if err == nil {
			release = back
			r.shared, err = r.beginShared(ctx, ledger, fleet, ends)
		}
		if err != nil {
			r.env.Line("warning: if this command is killed, no other can finish the run: " + fault.Plain(err.Error()))
		}
	}
	if r.shared == nil {
		return ctx, release
	}
	owned, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		select {
		case <-r.shared.Lost():
		case <-owned.Done():
		}
	}()
	back := release
	return owned, func() { cancel(); r.shared.Release(); back() }
}

// beginShared shares a new run.
func (r *planRun) beginShared(ctx context.Context, ledger *bus.Ledger, fleet string, ends map[string]*control.EndPoint) (*bus.SharedRun, error) {
	host, _ := os.Hostname()
	t := takenRun{
		Thru: r.env.Version, Fleet: fleet, Fleets: r.fleets, Found: map[string]planfile.Found{}, Host: host, PID: os.Getpid(), Began: time.Now(), Arguments: r.env.Arguments(),
		Head: runs.Head{Command: r.command, Plan: r.name, Options: r.options, Labels: r.env.archive.Labels},
	}
	for name, e := range ends {
		t.Found[name] = foundAt(e)
	}
	head, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	id := fmt.Sprintf("%s-%x", runs.Name(r.name, t.Began.UTC()), rand.Uint32()) // others may begin this plan in this second
	s, err := ledger.Begin(ctx, id, head, r.text)
	if err == nil {
		r.env.Line(fmt.Sprintf("shared in the fleet as %s: if this command is killed, `thru run --stand-by %s` on another machine finishes it", id, fleet))
	}
	return s, err
}

// record stores the runs of a step in the fleet, and returns those that count. A failed step is not stored, and
// counts only if this process still owns the run: else it may have failed since this process was cut off.
func (r *planRun) record(turn int, own []measure.Run) ([]measure.Run, error) {
	if slices.ContainsFunc(own, func(x measure.Run) bool { return x.Partial || x.Error != nil }) {
		return own, r.shared.Owned(context.Background())
	}
	body, err := json.Marshal(own)
	if err != nil {
		return own, err
	}
	kept, err := r.shared.Record(context.Background(), turn, body)
	if err != nil {
		return own, err
	}
	var all []measure.Run
	if err := json.Unmarshal(kept, &all); err != nil || len(all) != len(own) {
		return own, cmp.Or(err, errOtherStep)
	}
	return all, nil
}

// errOtherStep is the error of a record that does not fit its step.
var errOtherStep = errors.New("cli: another process has recorded a step with other pairs")

// disowned returns the error of a run that another process may own now.
func (r *planRun) disowned(doc *measure.Document, err error) error {
	if r.taken != nil {
		doc.Warnings = append(doc.Warnings, fmt.Sprintf("%s (process %d) began this run and was lost after %d of %d steps; another process has continued it",
			r.taken.Host, r.taken.PID, len(r.taken.steps), doc.Plan.Steps))
	}
	if r.shared == nil || r.shared.Err() == nil {
		return err
	}
	lost := r.shared.Err()
	return fault.Failf(fault.Hint(lost), "this process has stopped measuring after %d of %d steps, and another may go on: %w", doc.Plan.Done, doc.Plan.Steps, lost)
}

// endShared records in the fleet that the run has ended. If the user ends a command that stands by, another
// one may continue.
func (r *planRun) endShared(interrupted bool) {
	if r.shared == nil || r.shared.Err() != nil || interrupted && r.taken != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := r.shared.End(ctx); err != nil {
		r.env.Line("warning: a `thru run --stand-by` may take this run for lost, and finish it again: " + fault.Plain(err.Error()))
	}
}

// standByEvery is the interval between two looks for lost runs.
const standByEvery = 5 * time.Second

// standBy finishes lost runs until the context ends.
func (c *runCmd) standBy(ctx context.Context, e *env) error {
	if c.Plan != "" || c.Resume.Asked || c.DryRun || c.Time != "" || len(c.Only)+len(c.LinkRate) > 0 || c.Force {
		return fault.Usagef("leave them out: each run goes on with the plan and the flags that it began with", "--stand-by takes no plan, and no flags about what is measured")
	}
	ledger, back, err := c.ledger(ctx, e)
	if err != nil {
		return err
	}
	e.Line("standing by for the runs of " + c.StandBy)
	for said := ""; ctx.Err() == nil; pause(ctx, standByEvery) {
		if ledger == nil {
			ledger, back, err = c.ledger(ctx, e)
		}
		if err == nil {
			err = c.finishLost(ctx, e, ledger)
		}
		if text := fault.WithHint(err); err != nil && ctx.Err() == nil && text != said {
			e.Line("stands by, and tries again: " + text)
			said = text
		}
		if err != nil && ledger != nil { // its connection may be lost
			back()
			ledger = nil
		}
		err = nil
	}
	if ledger != nil {
		back()
	}
	return nil
}

// ledger returns the shared runs of the fleet.
func (c *runCmd) ledger(ctx context.Context, e *env) (*bus.Ledger, func(), error) {
	ledger, back, err := e.network.Ledger(ctx, c.StandBy)
	if errors.Is(err, bus.ErrUnshared) {
		err = fault.Usagef("use a NATS cluster with JetStream, and a `thru control` on it (thru help fleet)", "%w", err)
	}
	return ledger, back, err
}

// finishLost finishes the runs that have no owner now.
func (c *runCmd) finishLost(ctx context.Context, e *env, ledger *bus.Ledger) error {
	lost, err := ledger.Lost(ctx)
	for _, id := range lost {
		if ferr := c.finish(ctx, e, ledger, id); ferr != nil && !errors.Is(ferr, bus.ErrOwned) {
			err = ferr
		}
	}
	return err
}

// finish takes over a lost run and measures what is left of it.
func (c *runCmd) finish(ctx context.Context, e *env, ledger *bus.Ledger, id string) error {
	s, head, text, steps, err := ledger.TakeOver(ctx, id)
	if err != nil {
		return err
	}
	defer s.Release()
	t := &takenRun{steps: steps}
	if err := json.Unmarshal(head, t); err != nil {
		return fmt.Errorf("cli: reading the run %s: %w", id, err)
	}
	if t.Thru != e.Version {
		return fault.Failf("stand by with that version", "cli: thru %s began the run %s, and this is %s: the steps may differ", t.Thru, id, e.Version)
	}
	if t.Fleet != c.StandBy {
		e.network.Own(t.Fleet, func() (remote.Route, error) { return remote.ControllerString(c.StandBy, bus.PrivilegeOperate) })
	}
	e.Line(fmt.Sprintf("takes over %s: %s (process %d) was lost after %d steps", id, t.Host, t.PID, len(steps)))
	r := &planRun{
		env: e, command: t.Head.Command, flags: c.runFlags, under: c.hypervisorFlags, forms: forms{formFlags: c.formFlags}, options: t.Head.Options,
		name: t.Head.Plan, text: text, fleets: t.Fleets, shared: s, taken: t,
	}
	e.archive.Labels = t.Head.Labels
	if err := r.read(ctx); err != nil {
		return err
	}
	p, err := r.sized(nil)
	if err != nil {
		return err
	}
	if r.before, err = t.document(p); err != nil {
		return err
	}
	err = r.run(ctx)
	if r.concluded {
		if err != nil && !console.WasPrinted(err) {
			e.ErrorLines(err)
		}
		return nil
	}
	return err
}

// document returns the results of the finished steps.
func (t *takenRun) document(p plan.Plan) (*measure.Document, error) {
	turns := map[int][]measure.Run{}
	for i, body := range t.steps {
		var all []measure.Run
		if err := json.Unmarshal(body, &all); err != nil {
			return nil, fmt.Errorf("cli: reading step %d of a run: %w", i, err)
		}
		turns[i] = all
	}
	doc := control.Recorded(p, t.Began, turns)
	doc.Arguments = t.Arguments
	return doc, nil
}
