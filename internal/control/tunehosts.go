package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"thru/internal/bus"
	"thru/internal/cause/knob"
	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/unit"
)

// begin makes this client the tuner at each end that allows it. A dry run and a
// comparison of the state with itself change nothing; the latter locks out other
// tuners too.
func (x *tuning) begin(ctx context.Context) error {
	x.notify(Checking{"reading which settings thru may change"})
	x.hosts = map[string]string{}
	for _, e := range x.agents() {
		reply, err := bus.Call(ctx, e, bus.Knobs, bus.KnobsRequest{})
		switch {
		case err != nil:
			return fmt.Errorf("control: reading the possible settings of %s: %w", e.Name, err)
		case reply.NoTune != "":
			x.not[e.Name] = reply.NoTune
			continue
		}
		x.noteOpen(e, reply.Open)
		if x.DryRun {
			continue
		}
		_, err = bus.Call(ctx, e, bus.Tune, bus.TuneRequest{Owner: x.Owner})
		other := x.hosts[reply.Host]
		if fault.ReasonOf(err) == fault.Taken && other != "" { // another agent of a host that this client tunes already
			x.not[e.Name] = "it is the same host as " + other + ", which is being tuned"
			continue
		}
		if err != nil {
			return fmt.Errorf("control: starting the tuning at %s: %w", e.Name, err)
		}
		x.ours = append(x.ours, e)
		if reply.Host != "" {
			x.hosts[reply.Host] = e.Name
		}
	}
	slices.SortStableFunc(x.ours, func(a, b *EndPoint) int { // this machine last: the others may be lost meanwhile
		return cmp.Compare(min(len(b.Addr), 1), min(len(a.Addr), 1))
	})
	return nil
}

// noteOpen warns of settings that earlier tunings left: advice and comparisons
// include them.
func (x *tuning) noteOpen(e *EndPoint, open []measure.Changed) {
	if n := len(open); n > 0 {
		x.doc.Warnings = append(x.doc.Warnings, fmt.Sprintf("%s has %s of earlier tunings: revert them with thru tune --rollback", e.Name, unit.Plural(n, "setting")))
	}
}

// readKnobs reads at each end the current and possible values of the knobs.
func (x *tuning) readKnobs(ctx context.Context) error {
	for i := range x.doc.EndPoints {
		d := &x.doc.EndPoints[i]
		e := x.Ends[d.Name]
		if d.NoTune = x.not[d.Name]; !e.asked() {
			continue
		}
		reply, err := bus.Call(ctx, e, bus.Knobs, bus.KnobsRequest{Peer: x.facedBy(d.Name)})
		if err != nil {
			return fmt.Errorf("control: reading the settings of %s: %w", d.Name, err)
		}
		d.Knobs = reply.Knobs
	}
	return nil
}

// facedBy returns the address by which an end point reaches the other.
func (x *tuning) facedBy(name string) string {
	if len(x.doc.Paths) > 0 {
		switch p := x.doc.Paths[0]; name {
		case p.From:
			return p.ToAddr
		case p.To:
			return p.FromAddr
		}
	}
	return x.opposite(name, false)
}

// tunes reports whether this client may change settings at an end point.
func (x *tuning) tunes(name string) bool {
	return slices.ContainsFunc(x.ours, func(e *EndPoint) bool { return e.Name == name })
}

// alter applies a change, one end after the other. An error of type fallen gives
// the change up; any other ends the tuning.
func (x *tuning) alter(ctx context.Context, p *measure.Proposal) error {
	settled := true
	for _, at := range byEnd(p.Settings) {
		e := x.Ends[at[0].EndPoint]
		// Wait for the answer even after an interrupt: without it the setting is unknown.
		reply, err := bus.Call(context.WithoutCancel(ctx), e, bus.Alter, bus.AlterRequest{Settings: at})
		if err != nil {
			return both(x.alterError(e, at, err), x.revert(ctx))
		}
		for _, c := range reply.Changed {
			c.EndPoint = e.Name
			settled = settled && c.Number == 0
			x.open = append(x.open, c)
		}
	}
	if err := x.foreign(p); err != nil {
		return both(err, x.revert(ctx))
	}
	if settled && len(p.Settings) > 0 {
		x.open = nil
		return &fallen{measure.Settled, "it has this value already"}
	}
	return nil
}

// byEnd groups settings by end point and keeps their order.
func byEnd(settings []measure.Setting) (all [][]measure.Setting) {
	for _, s := range settings {
		at := slices.IndexFunc(all, func(o []measure.Setting) bool { return o[0].EndPoint == s.EndPoint })
		if at < 0 {
			at, all = len(all), append(all, nil)
		}
		all[at] = append(all[at], s)
	}
	return all
}

// alterError distinguishes a refusal by the host, which costs only the change,
// from a lost answer, after which the setting is unknown.
func (x *tuning) alterError(e *EndPoint, at []measure.Setting, err error) error {
	gone := x.anyLost()
	switch {
	case gone != nil:
		x.unsure = true
		return gone
	case errors.Is(err, bus.ErrTimeout) || errors.Is(err, bus.ErrLost) || errors.Is(err, bus.ErrClosed):
		x.unsure = true
		return fmt.Errorf("control: changing %s at %s: %w", at[0].Knob, e.Name, err)
	case fault.ReasonOf(err) == fault.Foreign:
		x.leaveChanged(at)
		return &fallen{measure.Foreign, fmt.Sprintf("%s: %v", e.Name, err)}
	}
	return &fallen{measure.Failed, e.Name + ": " + fault.Text(err)}
}

// foreign compares the values before the change with those when it was proposed:
// a value that differs was changed by somebody else.
func (x *tuning) foreign(p *measure.Proposal) error {
	for _, c := range x.open {
		at := slices.IndexFunc(p.Before, func(s measure.Setting) bool { return hostKnobOf(s) == hostKnobOf(c.Setting) })
		if at < 0 || c.Number == 0 || knob.Same(p.Before[at].Value, c.Before) {
			continue
		}
		x.leaveChanged([]measure.Setting{c.Setting})
		return &fallen{measure.Foreign, fmt.Sprintf("%s at %s changed from %q to %q since thru read it", c.Knob, c.EndPoint, p.Before[at].Value, c.Before)}
	}
	return nil
}

// leaveChanged marks knobs that somebody else changed, so that they are left alone.
func (x *tuning) leaveChanged(settings []measure.Setting) {
	for _, s := range settings {
		x.taken[hostKnobOf(s)] = true
	}
}

// revert reverts the change on trial, the last setting first. It leaves a setting
// that somebody else has changed, and gives the change up; a failed revert ends
// the tuning.
func (x *tuning) revert(ctx context.Context) error {
	open := x.open
	x.open = nil
	var failed error
	for len(open) > 0 {
		name := open[len(open)-1].EndPoint
		var numbers []int64
		for n := len(open); n > 0 && open[n-1].EndPoint == name; n-- {
			if c := open[n-1]; c.Number > 0 {
				numbers = append(numbers, c.Number)
			}
			open = open[:n-1]
		}
		if len(numbers) == 0 { // the agent takes an empty list as all
			continue
		}
		reply, err := bus.Call(context.WithoutCancel(ctx), x.Ends[name], bus.Revert, bus.RevertRequest{Numbers: numbers})
		if err != nil {
			x.unsure = true
			failed = both(failed, undoError(name, err))
			continue
		}
		failed = both(failed, x.undone(name, reply.Changed))
	}
	return failed
}

func undoError(name string, err error) error {
	return fault.Failf("revert it from the journal there: thru tune --rollback "+name, "control: reverting the change at %s: %w", name, err)
}

// undone checks the result of reverting changes at an end point.
func (x *tuning) undone(name string, changed []measure.Changed) (left error) {
	for _, c := range changed {
		c.EndPoint = name
		switch c.Outcome {
		case measure.Failed:
			x.unsure = true
			left = both(left, undoError(name, fmt.Errorf("%s: %s", c.Knob, c.Error)))
		case measure.Foreign:
			x.leaveChanged([]measure.Setting{c.Setting})
			left = both(left, &fallen{measure.Foreign, fmt.Sprintf("%s at %s is not reverted: %s", c.Knob, name, c.Error)})
		}
	}
	return left
}

// finishTime bounds finish, also after an interrupt.
const finishTime = 20 * time.Second

// finish ends the tuning at every host: it reverts the change on trial, and with
// undo all changes; then others may tune. After TuneEnd an end cannot revert any
// more, so all ends revert their trial before it.
func (x *tuning) finish(ctx context.Context, undo bool) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTime)
	defer cancel()
	failed := map[string]error{}
	for _, e := range x.there() {
		if !undo {
			failed[e.Name] = x.undoTrial(ctx, e)
		}
		undo = undo || failed[e.Name] != nil // that agent reverts all once this client is gone: so revert all at the others
	}
	stays := map[string]bool{} // ends that keep changes
	var all error
	for _, e := range x.there() {
		err := failed[e.Name]
		if err == nil && undo {
			err = x.undoAt(ctx, e, nil)
		}
		if err == nil {
			err = x.end(ctx, e)
		}
		all, undo = both(all, err), undo || err != nil
		stays[e.Name] = !undo
	}
	x.open = nil
	if undo {
		x.allUndone(stays)
		all = both(all, x.stayError(stays))
	}
	return all
}

// there returns the ends that this client tunes, without lost ones, which revert
// all changes by themselves.
func (x *tuning) there() []*EndPoint {
	return unit.Filtered(x.ours, func(e *EndPoint) bool { return e.Client.Err() == nil })
}

// undoTrial reverts the change on trial at one end point.
func (x *tuning) undoTrial(ctx context.Context, e *EndPoint) error {
	var numbers []int64
	for _, c := range x.open {
		if c.EndPoint == e.Name && c.Number > 0 {
			numbers = append(numbers, c.Number)
		}
	}
	if len(numbers) == 0 { // the agent takes an empty list as all
		return nil
	}
	return x.undoAt(ctx, e, numbers)
}

// undoAt reverts changes at one end point; without numbers, all of this tuning. It
// warns of settings that it leaves to somebody else.
func (x *tuning) undoAt(ctx context.Context, e *EndPoint, numbers []int64) error {
	reply, err := bus.Call(ctx, e, bus.Revert, bus.RevertRequest{Numbers: numbers})
	if err != nil {
		return undoError(e.Name, err)
	}
	err = x.undone(e.Name, reply.Changed)
	if _, left := givenUp(err); left {
		x.doc.Warnings = append(x.doc.Warnings, err.Error())
		return nil
	}
	return err
}

// end ends the tuning at one end point: the remaining changes stay. Where the call
// fails the agent reverts all.
func (x *tuning) end(ctx context.Context, e *EndPoint) error {
	_, err := bus.Call(ctx, e, bus.TuneEnd, bus.Empty{})
	if err == nil {
		return nil
	}
	err = fmt.Errorf("control: ending at %s: %w", e.Name, err)
	if e.Client.Err() != nil {
		return err
	}
	return both(err, x.undoAt(ctx, e, nil))
}
