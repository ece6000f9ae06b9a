package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"thru/internal/control"
	"thru/internal/measure"
	"thru/internal/report"
	"thru/internal/unit"
)

// tuneView tells on a terminal what a tuning does, and asks there before what is
// risky. It implements control.Observer.
type tuneView struct {
	unwatched
	e      *env
	ctx    context.Context
	w      *watch
	width  int
	ends   pair
	until  time.Time
	budget time.Duration
	yes    bool
	answer chan string // lines of the terminal, once anything was asked
	nth    string      // "[2/7] "
	title  string      // of the change that is tried
}

func newTuneView(ctx context.Context, e *env, ends pair, budget time.Duration, yes bool) *tuneView {
	v := &tuneView{e: e, ctx: ctx, w: &watch{}, ends: ends, budget: budget, until: time.Now().Add(budget), yes: yes}
	if width, ok := terminalSize(e.err); ok {
		v.w.w, v.width = e.err, width
	}
	v.w.printf("%s: the traffic as it is first, then one change at a time; at most %s\n", theEnds(ends), roundTime(budget))
	return v
}

// Checking implements control.Observer.
func (v *tuneView) Checking(what string) { v.w.Checking(what) }

// Waiting implements control.Observer.
func (v *tuneView) Waiting(endPoint string, ahead int) { v.w.Waiting(endPoint, ahead) }

// Planned implements control.Observer: how long it will take is said first, also
// where nobody watches.
func (v *tuneView) Planned(t measure.Tuning, proposals []measure.Proposal) {
	v.w.clear()
	v.e.line(plannedLine(theEnds(v.ends), t, proposals, v.budget))
	for i, p := range proposals {
		v.w.printf("%3d %s\n", i+1, cut(printable(p.Title), v.width-4))
	}
}

// plannedLine says "local and b: 4 changes to try, about 5 min, at most 10 min".
func plannedLine(where string, t measure.Tuning, proposals []measure.Proposal, budget time.Duration) string {
	n := 0
	for _, p := range proposals {
		if p.OnlySaid == "" {
			n++
		}
	}
	what := fmt.Sprintf("%d changes to try", n)
	switch n {
	case 0:
		return where + ": no change to try"
	case 1:
		what = "1 change to try"
	}
	switch expected := roundTime(time.Duration(t.ExpectNs)); {
	case t.DryRun:
		return where + ": " + what + ", which would take about " + expected + "; now nothing is changed"
	case time.Duration(t.ExpectNs) > budget:
		return where + ": " + what + ", about " + expected + "; the budget ends it after " + roundTime(budget)
	case t.ExpectNs > 0:
		what += ", about " + expected
	}
	return where + ": " + what + ", at most " + roundTime(budget)
}

func roundTime(d time.Duration) string { return unit.Duration(int64(d.Round(time.Second))) }

// Trying implements control.Observer.
func (v *tuneView) Trying(p measure.Proposal, done, of int, left time.Duration) {
	if left > 0 {
		v.until = time.Now().Add(left)
	}
	v.title = p.Title
	v.nth = fmt.Sprintf("[%d/%d] ", done+1, max(of, done+1))
	v.progress(p.Title)
}

// Step implements control.Observer.
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

// progress keeps one line on the screen: which change, which run, the time left.
func (v *tuneView) progress(now string) {
	left := "; no time left"
	if rest := time.Until(v.until); rest >= time.Second {
		left = "; " + roundTime(rest) + " left"
	}
	v.w.clear()
	v.w.printf("%s%s", cut(v.nth+printable(now), v.width-len(left)-1), left)
	v.w.pending = true
}

// cut shortens a text to the room that there is.
func cut(text string, room int) string {
	if r := []rune(text); room > 3 && len(r) > room {
		return string(r[:room-3]) + "..."
	}
	return text
}

// Tried implements control.Observer.
func (v *tuneView) Tried(a measure.Attempt) {
	v.nth, v.title = "", ""
	v.w.clear()
	v.w.printf("%s\n", report.AttemptLine(a, v.width))
}

// Stands implements control.Observer.
func (v *tuneView) Stands(m measure.Milestone, cells []measure.Cell) {
	var all []string
	for _, c := range cells {
		if c.Goodput != nil {
			all = append(all, unit.Rate(c.Goodput.Value)+" "+c.From+" -> "+c.To)
		}
	}
	v.w.clear()
	if len(all) > 0 {
		v.w.printf("%s\n", cut(printable("stands at  "+strings.Join(all, ", ")), v.width))
	}
}

func (v *tuneView) close() { v.w.clear() }

// accept tells whether a change may be tried: one that may cut the connection to
// its host only where --yes, or somebody at the terminal, says so.
func (v *tuneView) accept(p measure.Proposal) bool {
	switch {
	case !p.Cuts || v.yes:
		return true
	case v.w.w == nil || !isTerminal(v.e.in):
		return false
	}
	v.w.clear()
	v.w.printf("%s", question(p))
	answer := strings.ToLower(strings.TrimSpace(v.hear()))
	return answer == "y" || answer == "yes"
}

// question names the risk of a change.
func question(p measure.Proposal) string {
	risk := printable(p.Risk)
	if risk != "" {
		risk = " (" + risk + ")"
	}
	return fmt.Sprintf("%s may cut the connection to the host for a while%s. Try it? [y/N] ", printable(p.Title), risk)
}

// hear waits for a line of the terminal; an interrupt is a no.
func (v *tuneView) hear() string {
	if v.answer == nil {
		v.answer = make(chan string)
		go linesOf(v.ctx, v.e.in, v.answer)
	}
	select {
	case line := <-v.answer:
		return line
	case <-v.ctx.Done():
		return ""
	}
}

// linesOf hands on what is typed, line by line, until it ends or nobody asks any more.
func linesOf(ctx context.Context, in io.Reader, to chan<- string) {
	defer close(to)
	for s := bufio.NewScanner(in); s.Scan(); {
		select {
		case to <- s.Text():
		case <-ctx.Done():
			return
		}
	}
}

var _ control.Observer = (*tuneView)(nil)
