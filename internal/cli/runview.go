package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"thru/internal/bus"
	"thru/internal/cli/console"
	"thru/internal/control"
	"thru/internal/measure"
	"thru/internal/plan"
	"thru/internal/report/live"
	"thru/internal/unit"
)

// runView shows a running plan on a terminal, and nothing without one: a few redrawn lines at the bottom, and
// above them a line for each finished step. It implements control.Observer, whose calls come from one
// goroutine.
type runView struct {
	*console.Board
	plan    plan.Plan
	turns   []plan.Turn
	foreign map[string]bool // end points that report nothing during a test

	begin   time.Time // of the run
	stepped time.Time // of the current step
	label   string
	turn    int // from 0
	total   int
	specs   []measure.Spec
	flows   []liveFlowState
	phase   string
	over    []*measure.Cell // finished cells of the current step

	drawn time.Time
}

// liveFlowState is the state of a running flow.
type liveFlowState struct {
	bps    *float64
	failed bool
}

// drawEvery is the interval between two redraws, liveLines the limit of redrawn lines.
const (
	drawEvery = 200 * time.Millisecond
	liveLines = 7
)

func newRunView(e *env, p plan.Plan, ends map[string]*control.EndPoint, silent bool) *runView {
	v := &runView{Board: e.Board(silent), plan: p, turns: p.Schedule(), foreign: map[string]bool{}, begin: time.Now(), stepped: time.Now()}
	for name, x := range ends {
		v.foreign[name] = x.Foreign
	}
	return v
}

// Hear implements control.Observer.
func (v *runView) Hear(e control.Event) { hearSteps(v, v.Board, e) }

// Step begins the lines of a step.
func (v *runView) Step(label string, specs []measure.Spec, done, total int) {
	v.stepOver()
	v.label, v.specs, v.turn, v.total = label, specs, done, total
	v.flows, v.phase, v.stepped = make([]liveFlowState, len(specs)), "connecting", time.Now()
	v.draw()
}

// stepOver prints the line of the finished step.
func (v *runView) stepOver() {
	if len(v.over) == 0 {
		return
	}
	sum, measured := 0.0, 0
	for _, c := range v.over {
		if g := lastGoodput(c); g != nil {
			sum += *g
			measured++
		}
	}
	what := "-"
	if measured > 0 {
		what = unit.Rate(sum)
	}
	who := ""
	switch c := v.over[0]; {
	case c.Rung != "":
		who = c.Rung + ", "
	case len(v.over) == 1:
		who = c.From + " -> " + c.To + ", "
	}
	v.Line("%*d/%d   %10s   %s%s", len(fmt.Sprint(v.total)), v.turn+1, v.total, what, who, v.label)
	v.over = nil
}

// lastGoodput returns the goodput of the cell's last run; nil if it has none.
func lastGoodput(c *measure.Cell) *float64 {
	if len(c.Runs) == 0 || c.Spec.Traffic != measure.Bulk {
		return nil
	}
	return c.Runs[len(c.Runs)-1].Goodput
}

// Live notes the rate of a flow.
func (v *runView) Live(l control.Live) {
	if v.W == nil || l.Event.Kind != bus.EventProgress || l.Flow >= len(v.flows) {
		return
	}
	s := v.specs[l.Flow]
	if s.Traffic != measure.Bulk || l.Sends != v.foreign[s.To] { // the receiver's figure counts, if the receiver reports one
		return
	}
	if v.phase = ""; l.Event.Phase == "ramp" {
		v.phase = "ramp"
	}
	if l.Event.SpanNs > 0 {
		v.flows[l.Flow].bps = new(float64(l.Event.Bytes) * 8e9 / float64(l.Event.SpanNs))
	}
	if time.Since(v.drawn) >= drawEvery {
		v.draw()
	}
}

// draw shows the progress of the plan.
func (v *runView) draw() {
	if v.W == nil {
		return
	}
	v.drawn = time.Now()
	v.Now(live.PlanLines(v.state(), v.Width-1, liveLines)...)
}

// state returns the progress of the plan.
func (v *runView) state() live.Plan {
	elapsed := time.Since(v.begin)
	l := live.Plan{
		Turn: v.turn + 1, Turns: v.total, Label: strings.TrimPrefix(v.label, fmt.Sprintf("%d pairs, ", len(v.specs))), Phase: v.phase,
		ElapsedNs: int64(elapsed), TotalNs: int64(elapsed + v.left()),
	}
	sum, known := 0.0, false
	for i, s := range v.specs {
		f := v.flows[i]
		l.Pairs = append(l.Pairs, live.Pair{From: s.From, To: s.To, Bps: f.bps, Failed: f.failed})
		if f.failed {
			l.Failed++
		}
		if f.bps != nil && !f.failed {
			sum, known = sum+*f.bps, true
		}
	}
	if known {
		l.Bps = &sum
	}
	return l
}

// left estimates how long the rest of the plan takes.
func (v *runView) left() time.Duration {
	if v.turn >= len(v.turns) {
		return 0
	}
	now := v.plan.Steps[v.turns[v.turn].Step].Time() - time.Since(v.stepped)
	return max(now, 0) + v.plan.TimeOf(v.turns[v.turn+1:])
}

// Failed prints what has failed, and why.
func (v *runView) Failed(s measure.Spec, err error) {
	for i, x := range v.specs {
		if x.From == s.From && x.To == s.To && i < len(v.flows) {
			v.flows[i].failed = true
		}
	}
	v.Line("%s -> %s failed: %v", s.From, s.To, err)
}

// Ran keeps a cell for the line of its step.
func (v *runView) Ran(c *measure.Cell) {
	if !slices.Contains(v.over, c) { // a search reports each trial
		v.over = append(v.over, c)
	}
}
