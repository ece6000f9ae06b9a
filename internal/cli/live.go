package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"thru/internal/control"
	"thru/internal/measure"
	"thru/internal/plan"
	"thru/internal/report"
	"thru/internal/unit"
)

// watch shows the progress of a plan on a terminal, and nothing elsewhere.
// It implements control.Observer, whose calls come from one goroutine.
type watch struct {
	w        io.Writer // nil: not a terminal
	plan     plan.Plan
	interval time.Duration
	begin    time.Time
	step     string
	done     int
	total    int
	specs    []measure.Spec
	rows     map[int64][]control.Live // by number of the interval: what has come of it
	pending  bool                     // a progress line without line end is on the screen
}

func newWatch(e *env, p plan.Plan, ends pair, interval time.Duration, silent bool) *watch {
	v := &watch{plan: p, interval: interval, begin: time.Now()}
	if _, ok := terminalSize(e.err); ok && !silent {
		v.w = e.err
	}
	v.printf("%s; about %s\n", describePlan(p, ends), unit.Duration(int64(p.Time().Round(time.Second))))
	return v
}

// describePlan says before the test what will run.
func describePlan(p plan.Plan, ends pair) string {
	spec := p.Steps[0].Specs[0]
	what := fmt.Sprintf("%d runs", p.Runs())
	if p.Runs() == 1 {
		what = "1 run"
	}
	where := "this machine against itself"
	if ends.local != ends.peer {
		where = "local and " + ends.peer.Name
	}
	return fmt.Sprintf("%s: %s of %s", where, what, unit.Duration(spec.Duration))
}

func (v *watch) printf(format string, args ...any) {
	if v.w != nil {
		fmt.Fprintf(v.w, format, args...)
	}
}

// clear removes the progress line.
func (v *watch) clear() {
	if v.pending {
		v.printf("\r\x1b[K")
		v.pending = false
	}
}

func (v *watch) close() { v.clear() }

// Step implements control.Observer.
func (v *watch) Step(label string, specs []measure.Spec, done, total int) {
	v.step, v.done, v.total = label, done, total
	v.specs, v.rows = specs, map[int64][]control.Live{}
	if v.plan.Command != "ladder" {
		v.clear()
		v.printf("%s%s, %s\n", label, repetition(done, total), streams(specs[0].Streams))
	}
}

func repetition(done, total int) string {
	if total < 2 {
		return ""
	}
	return fmt.Sprintf(" (%d of %d)", done+1, total)
}

func streams(n int) string {
	if n == 1 {
		return "1 stream"
	}
	return fmt.Sprintf("%d streams", n)
}

// Waiting implements control.Observer.
func (v *watch) Waiting(endPoint string, ahead int) {
	v.clear()
	v.printf("%s is busy: waiting for %d other test(s)\n", endPoint, ahead)
}

// Live implements control.Observer: a line is printed when both ends of all
// flows have told of the interval.
func (v *watch) Live(l control.Live) {
	if v.w == nil {
		return
	}
	n := (l.Event.AtNs + l.Event.SpanNs) / int64(max(v.interval, time.Millisecond))
	v.rows[n] = append(v.rows[n], l)
	if len(v.rows[n]) < 2*len(v.specs) {
		return
	}
	line := v.combine(v.rows[n])
	delete(v.rows, n)
	if v.plan.Command == "ladder" {
		v.progress(line)
		return
	}
	width, _ := terminalSize(v.w)
	v.printf("%s\n", report.LiveLine(line, width))
}

// combine makes one line of the interval's events: bytes as the receivers saw
// them, retransmits of the senders, the load of each host once.
func (v *watch) combine(row []control.Live) report.Live {
	first := row[0]
	line := report.Live{Phase: first.Event.Phase, Flows: make([]report.LiveFlow, len(v.specs)),
		ElapsedNs: int64(first.Ramp), TotalNs: int64(first.Ramp + first.Total)}
	seen := map[string]bool{}
	for _, l := range row {
		e := l.Event
		line.AtNs = max(line.AtNs, e.AtNs+e.SpanNs)
		if l.Sends && e.Retransmits != nil {
			line.Retransmits = new(*e.Retransmits + orZero(line.Retransmits))
		}
		if !l.Sends {
			s := v.specs[l.Flow]
			line.Flows[l.Flow] = report.LiveFlow{Name: s.From + "->" + s.To, Bytes: e.Bytes, SpanNs: e.SpanNs}
		}
		if !seen[l.EndPoint] {
			seen[l.EndPoint] = true
			line.Ends = append(line.Ends, report.LiveCPU{Name: l.EndPoint, MachinePct: e.CPUPct, MaxCorePct: e.CPUMaxPct})
		}
	}
	line.ElapsedNs += line.AtNs
	slices.SortFunc(line.Ends, func(a, b report.LiveCPU) int { return localFirst(a.Name, b.Name) })
	return line
}

func orZero(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
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

// progress keeps one line on the screen that says how far the whole plan is.
func (v *watch) progress(l report.Live) {
	left := v.plan.Time() - time.Since(v.begin)
	v.clear()
	v.printf("[%d/%d] %-26s %12s   about %s left", v.done+1, v.total, v.step,
		unit.Rate(float64(l.Flows[0].Bytes)*8e9/float64(max(l.Flows[0].SpanNs, 1))), unit.Duration(int64(max(left, 0).Round(time.Second))))
	v.pending = true
}

// Ran implements control.Observer.
func (v *watch) Ran(c *measure.Cell) {
	if v.plan.Command != "ladder" || c.Goodput == nil {
		return
	}
	v.clear()
	v.printf("[%d/%d] %-26s %12s\n", v.done+1, v.total, v.step, unit.Rate(c.Goodput.Value))
}
