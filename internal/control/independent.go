package control

import (
	"cmp"
	"context"
	"time"

	"thru/internal/measure"
	"thru/internal/plan"
	"thru/internal/unit"
)

// runIndependent measures many pairs at once. All start at the same time, on
// clocks that were compared before. A failure of one pair leaves the others: its
// flow and its run have an error. The returned error is that of an interruption.
func (r *Runner) runIndependent(ctx context.Context, step plan.Step, flows []*flow) ([]measure.Run, error) {
	r.report(flows) // flows whose ends are known to be lost
	numberStreams(flows)
	ends := endsOf(able(flows))
	waited, failed := r.take(ctx, ends, step.Specs[0].Together)
	spread(flows, failed)
	c := &clocks{zero: time.Now()}
	c.before, failed = compare(ctx, endsOf(able(flows)), c.zero)
	spread(flows, failed)
	r.noteWalls(c.before)
	r.prepareAll(ctx, flows)
	r.startAll(ctx, flows, c)
	err := r.watch(ctx, able(flows), true, c.start)
	if ctx.Err() == nil {
		c.after, _ = compare(ctx, endsOf(able(flows)), c.zero)
	}
	within := collectManyTime
	if ctx.Err() != nil { // after Ctrl-C the user wants the prompt
		within = collectTime
	}
	r.harvest(ctx, flows, ends, within)
	for _, f := range flows {
		f.err = cmp.Or(f.err, f.sender.unread, f.receiver.unread)
		if f.rides != nil { // it uses the connections of a flow earlier in the list
			f.err = cmp.Or(f.err, f.rides.err)
		}
	}
	if err = cmp.Or(err, context.Cause(ctx)); err == nil {
		r.report(flows)
	}
	for _, f := range flows {
		c.timing(f)
	}
	return finish(flows, waited, nil), err
}

// numberStreams numbers the streams of all flows at each host, so that no two of
// them share a CPU while another is free.
func numberStreams(flows []*flow) {
	at := map[*EndPoint]int{}
	for _, f := range flows {
		if f.rides != nil {
			continue
		}
		a, b := f.sender.end, f.receiver.end
		f.spec.FirstStream = max(at[a], at[b])
		at[a] = f.spec.FirstStream + f.spec.Streams
		at[b] = at[a]
	}
}

// spread sets the error of an end point in all its flows.
func spread(flows []*flow, failed map[*EndPoint]error) {
	for _, f := range flows {
		f.err = cmp.Or(f.err, failed[f.sender.end], failed[f.receiver.end])
	}
}

// prepareAll opens both ends of every flow, many at a time.
func (r *Runner) prepareAll(ctx context.Context, flows []*flow) {
	fs := able(flows)
	unit.AtMost(len(fs), width, func(i int) {
		f := fs[i]
		f.err = f.connect(ctx, r.dialBack)
	})
	for _, f := range able(fs) {
		r.noteDial(f)
	}
	r.giveBack(ctx, flows)
}

// giveBack releases the sessions of failed flows, so that their agents are free
// again, and reports the failures.
func (r *Runner) giveBack(ctx context.Context, flows []*flow) {
	for _, f := range flows {
		if f.err != nil {
			f.drop()
		}
	}
	releaseStale(flows)
	if ctx.Err() == nil {
		r.report(flows)
	}
}

// startAll sends every session the common start time, receivers first: an agent
// without a known clock starts on receipt. All have the same ramp, the longest,
// so that they are measured at the same time.
func (r *Runner) startAll(ctx context.Context, flows []*flow, c *clocks) {
	fs := able(flows)
	ramp := time.Duration(0)
	for _, f := range fs {
		ramp = max(ramp, plan.Ramp(f.spec, f.dialling().rtt))
	}
	for _, f := range fs {
		if f.ramp = ramp; f.spec.Ramp > 0 || f.spec.NoRamp {
			f.ramp = plan.Ramp(f.spec, 0)
		}
	}
	receivers, senders := byRole(fs)
	c.setStart(len(receivers) + len(senders))
	measuredFrom(fs, c.start)
	for _, sides := range [][]*side{receivers, senders} {
		unit.AtMost(len(sides), width, func(i int) {
			s := sides[i]
			if s.flow.err == nil { // the sides of one kind belong to different flows
				s.flow.err = s.begin(ctx, c.startOf(s))
			}
		})
	}
	r.giveBack(ctx, flows)
}

// noteWalls keeps the differences of the wall clocks from this machine's.
func (r *Runner) noteWalls(all map[*EndPoint]reading) {
	if r.walls == nil {
		r.walls = map[string]time.Duration{}
	}
	for e, x := range all {
		r.walls[e.Name] = x.wall
	}
}
