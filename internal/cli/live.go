package cli

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"thru/internal/bus"
	"thru/internal/cli/console"
	"thru/internal/control"
	"thru/internal/measure"
	"thru/internal/plan"
	"thru/internal/remote"
	"thru/internal/report/live"
	"thru/internal/unit"
)

// liveView shows the progress of a plan on a terminal, and nothing without one. It implements control.Observer,
// whose calls come from one goroutine.
type liveView struct {
	*console.Board
	plan     plan.Plan
	interval time.Duration
	specs    []measure.Spec
	rows     map[int64][]control.Live // reports by number of the interval
	each     int                      // how many ends report a flow: a foreign end does not
	trial    bool                     // of a search
}

func newWatch(e *env, p plan.Plan, ends remote.Pair, interval time.Duration, silent bool) *liveView {
	v := &liveView{Board: e.Board(silent), plan: p, interval: interval, each: 2}
	if ends.Peer.Foreign {
		v.each = 1
	}
	v.Line("%s", describePlan(p, ends))
	return v
}

// describePlan words before the test what will run, and for how long.
func describePlan(p plan.Plan, ends remote.Pair) string {
	what := unit.Plural(p.Runs(), "run")
	where := theEnds(ends)
	spec := mainSpec(p)
	if spec.Amount > 0 {
		return fmt.Sprintf("%s: %s of %s", where, what, unit.Size(spec.Amount))
	}
	about := unit.Duration(int64(p.Time().Round(time.Second)))
	if spec.Search {
		about += ", and up to a minute of trials"
	}
	return fmt.Sprintf("%s: %s of %s; about %s", where, what, unit.Duration(spec.Duration), about)
}

// theEnds names the end points.
func theEnds(ends remote.Pair) string {
	if ends.Local == ends.Peer {
		return "this machine against itself"
	}
	return "local and " + ends.Peer.Name
}

// mainSpec returns the first flow that is no baseline.
func mainSpec(p plan.Plan) measure.Spec {
	for _, s := range p.Steps {
		if !s.Baseline {
			return s.Specs[0]
		}
	}
	return p.Steps[0].Specs[0]
}

// Hear implements control.Observer.
func (v *liveView) Hear(e control.Event) { hearSteps(v, v.Board, e) }

// hearSteps passes events to a view of a plan; the rest goes to the board.
func hearSteps(v interface {
	Step(label string, specs []measure.Spec, done, total int)
	Live(control.Live)
	Ran(*measure.Cell)
	Failed(measure.Spec, error)
}, b *console.Board, e control.Event) {
	switch e := e.(type) {
	case control.StepBegun:
		v.Step(e.Label, e.Specs, e.Done, e.Total)
	case control.Live:
		v.Live(e)
	case control.Ran:
		v.Ran(e.Cell)
	case control.Failed:
		v.Failed(e.Spec, e.Err)
	default:
		b.Hear(e)
	}
}

// Step prints the heading of a run.
func (v *liveView) Step(label string, specs []measure.Spec, done, total int) {
	v.specs, v.rows = specs, map[int64][]control.Live{}
	v.trial = specs[0].Protocol == measure.UDP && v.plan.Steps[0].Specs[0].Search && !specs[0].Search
	if v.trial { // one line each, when it has ended
		return
	}
	v.Line("%s%s, %s", label, repetition(done, total), unit.Plural(specs[0].Streams, "stream"))
}

func repetition(done, total int) string {
	if total < 2 {
		return ""
	}
	return fmt.Sprintf(" (%d of %d)", done+1, total)
}

// Live prints a line once both ends of all flows have reported the interval.
func (v *liveView) Live(l control.Live) {
	if v.W == nil || v.trial || l.Event.Kind != bus.EventProgress {
		return
	}
	half := max(v.interval, time.Millisecond) / 2 // the ramp may have a figure within an interval
	n := int64(math.Floor(float64(l.Event.AtNs+l.Event.SpanNs) / float64(half)))
	v.rows[n] = append(v.rows[n], l)
	if len(v.rows[n]) < v.each*len(v.specs) {
		return
	}
	v.Printf("%s\n", live.Line(v.combine(v.rows[n]), v.Width))
	delete(v.rows, n)
}

// combine merges the interval's events to one line: bytes of the receivers, retransmissions of the senders,
// the load of each host once.
func (v *liveView) combine(row []control.Live) live.State {
	first := row[0]
	line := live.State{Phase: first.Event.Phase, Flows: make([]live.Flow, len(v.specs)),
		ElapsedNs: int64(first.Ramp), TotalNs: int64(first.Ramp + first.Total)}
	if v.specs[0].Amount > 0 {
		line.TotalNs = 0 // the duration is what the test measures
	}
	seen := map[string]bool{}
	for _, l := range row {
		e := l.Event
		line.AtNs = max(line.AtNs, e.AtNs+e.SpanNs)
		if l.Sends && e.Retransmits != nil {
			line.Retransmits = new(*e.Retransmits + measure.Value(line.Retransmits))
		}
		if s := v.specs[l.Flow]; v.each == 1 || l.Sends == (s.Traffic != measure.Bulk) { // the end whose figures count
			line.Flows[l.Flow] = liveFlow(s, e, len(v.specs) > 1, v.each == 2 || !l.Sends)
		}
		if !seen[l.EndPoint] {
			seen[l.EndPoint] = true
			line.Ends = append(line.Ends, live.CPU{Name: l.EndPoint, MachinePct: e.CPUPct, MaxCorePct: e.CPUMaxPct})
		}
	}
	line.ElapsedNs += line.AtNs
	slices.SortFunc(line.Ends, func(a, b live.CPU) int { return localFirst(a.Name, b.Name) })
	return line
}

// liveFlow returns one flow of a line with the figures of its kind of traffic. The loss on the way to a
// foreign end is not known yet.
func liveFlow(s measure.Spec, e bus.Event, several, knowsLoss bool) live.Flow {
	f := live.Flow{Name: s.From + " -> " + s.To, Bytes: e.Bytes, SpanNs: e.SpanNs}
	switch {
	case s.Traffic != measure.Bulk:
		f.Name, f.Requests = "beside", &e.Requests
	case s.Protocol == measure.UDP:
		if f.Packets = &e.Packets; knowsLoss {
			f.Lost = &e.Lost
		}
	case several && s.From == s.To && s.DialFrom:
		f.Name = "forward"
	case several && s.From == s.To:
		f.Name = "back"
	}
	return f
}

func localFirst(a, b string) int {
	if a == control.Local {
		return -1
	}
	if b == control.Local {
		return 1
	}
	return strings.Compare(a, b)
}

// Failed prints what has failed, and why.
func (v *liveView) Failed(s measure.Spec, err error) {
	v.Line("%s -> %s failed: %v", s.From, s.To, err)
}

// Ran prints the result of a trial.
func (v *liveView) Ran(c *measure.Cell) {
	if c.Search != nil && len(c.Search.Trials) > 0 {
		t := c.Search.Trials[len(c.Search.Trials)-1]
		v.Line("  trial %d: %s offered, %s received, %s of %s lost", len(c.Search.Trials), unit.Rate(t.AskedBps), unit.Rate(t.ReceivedBps), unit.Count(t.Lost), unit.Count(t.Sent))
	}
}
