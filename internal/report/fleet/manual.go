package fleet

import (
	"fmt"
	"strings"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/plan"
	"thru/internal/report/result"
	"thru/internal/unit"
)

// maxManual limits the manual steps in a table.
const maxManual = 50

// ManualRows returns the manual steps between the blocks of a plan.
func ManualRows(p *measure.Planned) []doc.Row {
	var rows []doc.Row
	for i := range p.ManualSteps[:min(len(p.ManualSteps), maxManual)] {
		rows = append(rows, doc.Row{Name: "manual step", Value: manualText(&p.ManualSteps[i])})
	}
	return rows
}

// manualText words a manual step, and when and how it was confirmed: "NetQueue on, at esx1: `...`, started
// anew; in force 14:02:11, sysctls.netNetqueueEnabled FALSE -> TRUE".
func manualText(h *measure.ManualStep) string {
	var done []string
	if h.How != "was so" {
		for _, c := range h.Commands[:min(len(h.Commands), result.MaxProofs)] {
			done = append(done, "`"+doc.CleanUpTo(c, result.LongestOrder)+"`")
		}
		if h.Reboot {
			done = append(done, "restarted")
		}
	}
	s := doc.Clean(h.Variant) + ", at " + doc.Clean(h.Host)
	if len(done) > 0 {
		s += ": " + strings.Join(done, ", ")
	}
	switch {
	case h.DoneAt == nil:
		return s + "; not in force yet"
	case h.How == "word":
		return s + "; in force according to the operator"
	}
	fact := doc.Clean(h.Fact)
	switch {
	case h.After == nil:
	case h.Before != nil && *h.Before != *h.After:
		fact += " " + doc.Clean(*h.Before) + " -> " + doc.Clean(*h.After)
	default:
		fact += " " + doc.Clean(*h.After)
	}
	if h.How == "was so" {
		return s + "; was already in force: " + fact
	}
	return fmt.Sprintf("%s; in force %s: %s", s, h.DoneAt.Format("15:04:05"), fact)
}

// plannedManual words a manual step before a plan runs.
func plannedManual(h plan.ManualStep) string {
	s := doc.Clean(h.Variant) + ": at " + doc.Clean(h.Host) + ", "
	for i, c := range h.Commands {
		if i > 0 {
			s += "; "
		}
		s += doc.CleanUpTo(c, result.LongestOrder)
	}
	if h.Reboot {
		s += ", and restart it"
	}
	if h.Fact == "" {
		return s + "; thru cannot check when it is done"
	}
	return s + fmt.Sprintf(" (until %s is %s, at most %s)", doc.Clean(h.Fact), doc.Clean(h.Is), unit.Duration(int64(h.Wait)))
}
