package tuning

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"thru/internal/doc"
	"thru/internal/doc/text"
	"thru/internal/measure"
	"thru/internal/report/result"
	"thru/internal/stat"
	"thru/internal/unit"
)

// tuningAnswer returns "38.9 -> 187 Mb/s local -> b, 41.2 -> 186 Mb/s back: 3 of 7 changes kept", and whether
// the target is met.
func tuningAnswer(d *measure.Document) string {
	t := d.Tuning
	if t.Restored != nil || isRollback(d) {
		return restoredAnswer(t.Restored)
	}
	if s := newSameness(d); s != nil {
		return s.text()
	}
	s := journeyAnswer(d)
	if s == "" && !t.DryRun {
		return ""
	}
	return strings.TrimPrefix(s+": "+changesAnswer(d), ": ") + TargetAnswer(d)
}

// Answers returns tuningAnswer as the lines of an answer; nil if it is empty.
func Answers(d *measure.Document) []string {
	if s := tuningAnswer(d); s != "" {
		return []string{s}
	}
	return nil
}

// isRollback reports whether a tuning only undid changes of earlier ones.
func isRollback(d *measure.Document) bool {
	return !d.Tuning.DryRun && len(d.Cells) == 0 && d.Error == nil && len(d.Tuning.Attempts)+len(d.Tuning.Journey)+len(d.Tuning.Advice) == 0
}

// journeyAnswer returns the first and the last figure of each direction.
func journeyAnswer(d *measure.Document) string {
	var parts []string
	first, last := ends(d)
	for i, from := range first {
		to := from
		if n := slices.IndexFunc(last, func(c *measure.Cell) bool { return sameDirection(c, from) }); n >= 0 {
			to = last[n]
		}
		name := result.PathName(from)
		if i == 1 && from.From == first[0].To && from.To == first[0].From && from.From != from.To {
			name = "back"
		}
		parts = append(parts, directionText(from, to)+" "+name)
	}
	return strings.Join(parts, ", ")
}

func directionText(from, to *measure.Cell) string {
	switch {
	case !stat.Measured(from) && !stat.Measured(to):
		return "no result"
	case math.Abs(result.AmountOf(to)-result.AmountOf(from)) <= stat.EquivalencePct/100.0*result.AmountOf(from): // no relevant change
		return unit.Rate(result.AmountOf(to))
	}
	return fromTo(result.AmountOf(from), result.AmountOf(to))
}

func sameDirection(a, b *measure.Cell) bool { return a.From == b.From && a.To == b.To }

// ends returns the cells of the first state and of the last; for a stored result both are its main cells.
func ends(d *measure.Document) (first, last []*measure.Cell) {
	if n := len(d.Tuning.Journey); n > 0 {
		return cellsOf(d, d.Tuning.Journey[0].Cells), cellsOf(d, d.Tuning.Journey[n-1].Cells)
	}
	there, back, _ := result.MainCells(d)
	first = unit.Filtered([]*measure.Cell{there, back}, func(c *measure.Cell) bool { return c != nil })
	return first, first
}

// changesAnswer words the outcome of the changes.
func changesAnswer(d *measure.Document) string {
	t := d.Tuning
	if t.DryRun && d.Error == nil {
		if LinkIsFull(d) && len(t.Advice) > 0 {
			return "the link is full; " + adviceAnswer(t)
		}
		return adviceAnswer(t)
	}
	kept, tried, last := 0, 0, ""
	for i := range t.Attempts {
		a := &t.Attempts[i]
		if !wasTried(a) {
			continue
		}
		if a.Outcome == measure.Kept {
			kept++
		}
		tried++
		last = a.Outcome
	}
	switch {
	case tried == 0:
		return untriedAnswer(d)
	case kept == 0 && tried == 1:
		return oneAnswer(last)
	case kept == 0:
		return fmt.Sprintf("none of %d changes helped measurably, all were undone", tried)
	case kept == tried && kept == 1:
		return "the one change tried was kept"
	case kept == tried:
		return fmt.Sprintf("all %d changes kept", tried)
	}
	return fmt.Sprintf("%d of %d changes kept", kept, tried)
}

// wasTried reports whether a change was made, and kept or reverted.
func wasTried(a *measure.Attempt) bool {
	switch a.Outcome {
	case measure.Kept, measure.Undone, measure.NotInUse, measure.Failed:
		return true
	}
	return false
}

// untriedAnswer explains why a tuning has tried nothing.
func untriedAnswer(d *measure.Document) string {
	switch t := d.Tuning; {
	case d.Error != nil:
		return "the tuning ended before it tried a change"
	case t.TargetBps > 0 && MeetsTarget(d):
		return "no change was needed"
	case len(t.Attempts)+len(t.Advice) > 0:
		return "no change was tried"
	}
	return nothingAnswer(d.Tuning)
}

// nothingAnswer words that there is nothing to change, and whether --only restricted the search.
func nothingAnswer(t *measure.Tuning) string {
	if len(t.Only) > 0 {
		return "no change was found within --only"
	}
	return "no change was found"
}

// oneAnswer words the outcome of a single change that was tried and not kept.
func oneAnswer(outcome string) string {
	switch outcome {
	case measure.Failed:
		return "the one change tried failed, and nothing was changed"
	case measure.NotInUse:
		return "the one change tried did not take effect, and was undone"
	}
	return "the one change tried did not help measurably, and was undone"
}

// adviceAnswer names the first change that is advised, and counts the advice without commands.
func adviceAnswer(t *measure.Tuning) string {
	first, changes, advice := "", 0, t.Advice
	for _, p := range advice {
		if !isChange(&p) {
			continue
		}
		if changes++; first == "" {
			first = doc.Clean(p.Title)
		}
	}
	more := ""
	if n := len(advice) - changes; n > 0 {
		more = "; " + unit.Plural(n, "further check")
	}
	switch {
	case len(advice) == 0:
		return nothingAnswer(t)
	case changes == 0:
		return "no setting to change" + more
	case changes == 1:
		return "one change to try: " + first + more
	}
	return fmt.Sprintf("%d changes to try, first: %s%s", changes, first, more)
}

// LinkIsFull reports whether all cells of the last state fill their link: then no change can be shown to
// help.
func LinkIsFull(d *measure.Document) bool {
	_, last := ends(d)
	return len(last) > 0 && !slices.ContainsFunc(last, func(c *measure.Cell) bool {
		f := result.Binding(c)
		return f == nil || f.Cause != result.CauseLinkRate || !f.Healthy
	})
}

// TargetAnswer returns "; the target of 150 Mb/s is met".
func TargetAnswer(d *measure.Document) string {
	if d.Tuning.TargetBps <= 0 || d.Tuning.DryRun {
		return ""
	}
	if MeetsTarget(d) {
		return fmt.Sprintf("; the target of %s is met", unit.Rate(d.Tuning.TargetBps))
	}
	if host := BusyForTarget(d); host != "" {
		return fmt.Sprintf("; inconclusive: the target of %s is not met, and other work kept %s busy", unit.Rate(d.Tuning.TargetBps), doc.Clean(host))
	}
	return fmt.Sprintf("; the target of %s is not met", unit.Rate(d.Tuning.TargetBps))
}

// BusyForTarget returns a host that could not have reached a missed target, since other work kept it busy; ""
// if there is none.
func BusyForTarget(d *measure.Document) string {
	if MeetsTarget(d) {
		return ""
	}
	_, last := ends(d)
	return stat.BusyHost(last)
}

// MeetsTarget reports whether each direction carries the target of a tuning in its final state.
func MeetsTarget(d *measure.Document) bool {
	_, last := ends(d)
	for _, c := range last {
		if result.AmountOf(c) < d.Tuning.TargetBps {
			return false
		}
	}
	return len(last) > 0
}

// AttemptLine returns the outcome of a change in one line without a newline: "kept receive windows of up to
// 25 MiB at b: 38.9 -> 181 Mb/s, +365% (+340..+391%)". It cuts what exceeds width (0: no limit).
func AttemptLine(a measure.Attempt, width int) string {
	return unit.Cut(text.Pad(doc.Clean(a.Outcome), outcomeWidth)+" "+attemptText(&a), width)
}

// attemptText returns a change with its effect.
func attemptText(a *measure.Attempt) string {
	line := doc.Clean(a.Title)
	switch c := gainOf(a); {
	case c == nil || c.BaseValue == nil || c.Value == nil || c.ChangePct == nil:
		if a.Reason != "" {
			line += ": " + doc.Reason(a.Reason)
		}
	default:
		line += ": " + fromTo(*c.BaseValue, *c.Value) + ", " + unit.Change(*c.ChangePct) + doc.Prefixed(" ", doc.Bracket(unit.ChangeRange(c.LowPct, c.HighPct)))
	}
	return line
}

// outcomeWidth is the length of the longest outcome.
const outcomeWidth = 10
