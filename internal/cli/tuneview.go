package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"thru/internal/cli/console"
	"thru/internal/control"
	"thru/internal/doc"
	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/remote"
	"thru/internal/report/tuning"
	"thru/internal/unit"
)

// tuneView shows the progress of a tuning on a terminal, and asks there before risky changes. It implements
// control.Observer.
type tuneView struct {
	*console.Board
	e      *env
	ctx    context.Context
	ends   remote.Pair
	until  time.Time
	how    control.Tuning
	yes    bool
	answer chan string // lines of the terminal, after the first question
	nth    string      // "[2/7] "
	title  string      // of the current change
}

func newTuneView(ctx context.Context, e *env, ends remote.Pair, how control.Tuning, yes bool) *tuneView {
	return &tuneView{Board: e.Board(false), e: e, ctx: ctx, ends: ends, how: how, until: time.Now().Add(how.Budget), yes: yes}
}

// begin prints what will be done, and how long the known part takes. It prints also without a terminal.
func (v *tuneView) begin(base time.Duration) {
	about := doc.AboutTime(base + lookTime)
	switch {
	case v.how.DryRun:
		v.e.Line(fmt.Sprintf("%s: about %s to measure the present state; nothing is changed", theEnds(v.ends), about))
	case v.how.AA > 0:
		v.e.Line(fmt.Sprintf("%s: about %s to measure the present state, then %d comparisons of it with itself; nothing is changed", theEnds(v.ends), about, v.how.AA))
	default:
		v.e.Line(fmt.Sprintf("%s: about %s to measure the present state, then one change at a time; at most %s", theEnds(v.ends), about, roundTime(v.how.Budget)))
	}
}

// lookTime is the approximate time to read the hosts and probe the path.
const lookTime = 2 * time.Second

// Hear implements control.Observer.
func (v *tuneView) Hear(e control.Event) {
	switch e := e.(type) {
	case control.StepBegun:
		v.Step(e.Label, e.Specs, e.Done, e.Total)
	case control.Planned:
		v.Planned(e.Tuning, e.Proposals)
	case control.Trying:
		v.Trying(e.Proposal, e.Done, e.Of, e.Left)
	case control.Tried:
		v.Tried(e.Attempt)
	case control.Stands:
		v.Stands(e.Milestone, e.Cells)
	default:
		v.Board.Hear(e)
	}
}

// Planned prints how long the tuning will take, also without a terminal.
func (v *tuneView) Planned(t measure.Tuning, proposals []measure.Proposal) {
	v.Clear()
	v.e.Line(plannedLine(theEnds(v.ends), t, proposals, v.how))
	if v.how.AA > 0 { // none of the proposals is tried
		return
	}
	for i, p := range proposals {
		v.Printf("%3d %s\n", i+1, unit.Cut(fault.Printable(p.Title), v.Width-4))
	}
}

// plannedLine returns "local and b: 4 changes to try at first, about 5 min; at most 10 min". Follow-up
// changes of a kept change are not included.
func plannedLine(where string, t measure.Tuning, proposals []measure.Proposal, how control.Tuning) string {
	expected := doc.AboutTime(time.Duration(t.ExpectNs))
	n := unit.CountFunc(proposals, func(p measure.Proposal) bool { return p.OnlySaid == "" })
	switch {
	case how.AA > 0:
		return fmt.Sprintf("%s: %s of the state with itself, about %s", where, unit.Plural(how.AA, "comparison"), expected)
	case n == 0:
		return where + ": no change to try"
	case t.DryRun:
		return where + ": trying the proposals would take about " + expected
	}
	what := unit.Plural(n, "change") + " to try at first"
	switch {
	case time.Duration(t.ExpectNs) > how.Budget:
		return where + ": " + what + ", about " + expected + "; the budget ends it after " + roundTime(how.Budget)
	case t.ExpectNs > 0:
		what += ", about " + expected
	}
	return where + ": " + what + "; at most " + roundTime(how.Budget)
}

func roundTime(d time.Duration) string { return unit.Duration(int64(d.Round(time.Second))) }

// Trying begins the line of a change.
func (v *tuneView) Trying(p measure.Proposal, done, of int, left time.Duration) {
	if left > 0 {
		v.until = time.Now().Add(left)
	}
	v.title = p.Title
	v.nth = fmt.Sprintf("[%d/%d] ", done+1, max(of, done+1))
	v.progress(p.Title)
}

// Step shows which run of the change is made.
func (v *tuneView) Step(label string, specs []measure.Spec, done, total int) {
	now := ""
	if total > 1 {
		now = fmt.Sprintf("run %d of %d, ", done+1, total)
	}
	state, isTrial := strings.CutPrefix(label, v.title+": ") // "before" or "with"
	if isTrial && v.title != "" {
		now += state + ": " + v.title
	} else {
		now += label
	}
	v.progress(now + ", " + measure.PairName(specs[0].From, specs[0].To))
}

// progress shows one line: the change, the run, the time left.
func (v *tuneView) progress(now string) {
	left := "; no time left"
	if rest := time.Until(v.until); rest >= time.Second {
		left = "; " + roundTime(rest) + " left"
	}
	v.Now(unit.Cut(v.nth+fault.Printable(now), v.Width-len(left)-1) + left)
}

// Tried prints the outcome of a change.
func (v *tuneView) Tried(a measure.Attempt) {
	v.nth, v.title = "", ""
	v.Clear()
	if a.Outcome == measure.NoTime && a.Comparison == nil && a.ElapsedNs == 0 { // the result reports it for all of them
		return
	}
	v.Printf("%s\n", tuning.AttemptLine(a, v.Width))
}

// Stands prints the rates in the present state.
func (v *tuneView) Stands(m measure.Milestone, cells []measure.Cell) {
	var all []string
	for _, c := range cells {
		if c.Goodput != nil {
			all = append(all, unit.Rate(c.Goodput.Value)+" "+c.From+" -> "+c.To)
		}
	}
	v.Clear()
	if len(all) > 0 {
		v.Printf("%s\n", unit.Cut(fault.Printable("rate now   "+strings.Join(all, ", ")), v.Width))
	}
}

// accept returns why a change may not be tried; "" if it may. A change that may cut the connection to its
// host needs --yes or a confirmation at the terminal.
func (v *tuneView) accept(p measure.Proposal) (declined string) {
	switch {
	case !p.Cuts || v.yes:
		return ""
	case v.W == nil || !console.IsTerminal(v.e.In):
		return "it may cut the connection to the host for a while, and there is no terminal to ask at: --yes tries it"
	}
	v.Clear()
	v.Printf("%s", question(p))
	if console.IsYes(v.hear()) {
		return ""
	}
	return "it may cut the connection to the host for a while, and you said no"
}

// question words the risk of a change.
func question(p measure.Proposal) string {
	risk := fault.Printable(p.Risk)
	if risk != "" {
		risk = " (" + risk + ")"
	}
	return fmt.Sprintf("%s may cut the connection to the host for a while%s. Try it? [y/N] ", fault.Printable(p.Title), risk)
}

// hear waits for a line of the terminal; an interrupt counts as no.
func (v *tuneView) hear() string {
	if v.answer == nil {
		v.answer = make(chan string)
		go console.LinesOf(v.ctx, v.e.In, v.answer)
	}
	select {
	case line := <-v.answer:
		return line
	case <-v.ctx.Done():
		return ""
	}
}
