// Package report prints a measure.Document for people (Text, HTML, Markdown) and for programs (JSON, CSV,
// JUnit). It is pure: data in, an io.Writer out.
//
// Text, HTML and Markdown print the same view as the same blocks (package doc), so that they never disagree:
// the view decides what to show and formats every figure. A figure that was not measured is omitted or "not
// checked", never zero.
package report

import (
	"slices"
	"time"

	"thru/internal/doc"
	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/report/capture"
	"thru/internal/report/facts"
	"thru/internal/report/fleet"
	"thru/internal/report/inventory"
	"thru/internal/report/ladder"
	"thru/internal/report/result"
	"thru/internal/report/transfer"
	"thru/internal/report/tuning"
	"thru/internal/report/why"
	"thru/internal/stat"
	"thru/internal/unit"
)

// view is a document ready to print.
type view struct {
	Command     string // "test"
	Answer      string // the answer; "" if nothing was measured
	Back        string // the reverse direction, if another cause limits it
	Why         []why.Diagnosis
	Judged      []why.Diagnosis // what limits the judged flow of a plan
	Packets     []capture.Packets
	Steps       []step
	Silent      bool   // captured connections without any figure
	Ended       string // why an explanation stopped
	Verdict     *verdict
	Ladders     []ladder.Ladder
	Fleet       *fleet.View // of a plan of many pairs
	Tuning      *tuning.View
	Moving      *transfer.View // of a file transfer
	Blocks      []doc.Block    // of its subject
	Hypervisors []doc.Block    // hosts and guests of the end points
	Placement   *whereabouts   // placement of the end points; nil: no hypervisor was asked
	Cells       []result.Cell
	Hidden      int // cells over result.MaxCells
	Gates       gateList
	Paths       []doc.Pairs
	Brief       []doc.Pairs // a short table of each host
	Method      []string
	Again       repeating
	Inventory   inventory.Checklists
	Hosts       facts.Hosts
	Interfaces  []doc.Pairs // of all hosts
	Advice      []string
	Warnings    []string
	Missing     []doc.Gap // of the measurement
	Unseen      []doc.Gap // the same in few words, for a terminal that prints capture files
	FactGaps    []doc.Gap // of the hosts
	Error       *measure.Error
	Thru        string
	Started     string
	Elapsed     string
}

// verdict is the comparison with a known link rate.
type verdict struct {
	Pass   bool
	Open   bool   // inconclusive
	Word   string // "pass", "fail", "inconclusive"
	Reason string
	Do     string // what would decide it
}

// newView decides what to show of a document.
func newView(d *measure.Document) *view {
	said, tuned := answers(d), tuning.New(d)
	d = result.LastState(d)
	v := &view{
		Tuning:     tuned,
		Moving:     transfer.New(d),
		Placement:  newPlacement(d),
		Command:    doc.Clean(d.Command),
		Why:        newDiagnoses(d),
		Judged:     judgedDiagnosis(d),
		Packets:    capture.New(d),
		Silent:     result.IsSilent(d),
		Steps:      newSteps(d),
		Ended:      doc.Clean(d.Ended),
		Ladders:    ladder.All(d),
		Fleet:      fleet.New(d),
		Gates:      newGates(d),
		Paths:      newPaths(d),
		Brief:      facts.Brief(d),
		Hosts:      facts.NewHosts(d),
		Interfaces: facts.Interfaces(d),
		Advice:     append(doc.CleanAll(d.Advice), recommendedTexts(d)...),
		Warnings:   warnings(d),
		Missing:    gaps(d),
		FactGaps:   factGaps(d),
		Method:     methodLines(d),
		Again:      newRepeating(d),
		Inventory:  inventory.Record(d),
		Thru:       doc.Clean(d.Thru),
		Elapsed:    unit.Duration(d.ElapsedNs),
	}
	if tuned != nil {
		tuned.Ending = tuned.HowEnded(v.Ended, v.Elapsed)
	}
	v.Blocks = slices.Concat(tuned.Blocks(), transfer.Blocks(v.Moving), transfer.DiskBlocks(d.Disks))
	if result.OfFiles(d) {
		v.Unseen = fileGaps(d)
	}
	if inventory.Is(d) {
		v.Blocks = inventory.Blocks(d)
	} else {
		v.Hypervisors = inventory.Blocks(d)
	}
	v.add(said)
	if !d.StartedAt.IsZero() {
		v.Started = d.StartedAt.Format(time.RFC3339)
	}
	if d.Error != nil && !(result.IsCheck(d) && d.Error.ExitCode == fault.Verdict) { // its gates have reported it
		v.Error = &measure.Error{Message: doc.Reason(d.Error.Message), Hint: doc.Clean(d.Error.Hint), ExitCode: d.Error.ExitCode}
	}
	if d.Verdict != nil {
		v.Verdict = &verdict{Pass: d.Verdict.Pass, Open: d.Verdict.Inconclusive, Do: doc.Clean(d.Verdict.Do), Word: result.VerdictWord(d.Verdict), Reason: addedReason(d)}
	}
	v.showCells(d)
	return v
}

// addedReason returns what the reason of a verdict adds to the other sections: rungs and targets have tables.
func addedReason(d *measure.Document) string {
	switch {
	case !result.IsPlanned(d) || d.Ladder == nil && len(d.Targets) == 0:
		return doc.Clean(d.Verdict.Reason)
	case len(d.Targets) > 0:
		return doc.Clean(d.Verdict.Undecided)
	}
	return ""
}

// showCells chooses the cells that are shown one by one: of a large plan only the slowest.
func (v *view) showCells(d *measure.Document) {
	if v.Fleet != nil && !v.Fleet.Few && len(v.Ladders) == 0 {
		for _, c := range fleet.WorstCells(d) {
			v.Cells = append(v.Cells, result.NewCell(d, c))
		}
		v.Hidden = len(d.Cells) - len(v.Cells)
		return
	}
	for i := range d.Cells {
		if i == result.MaxCells {
			v.Hidden = len(d.Cells) - result.MaxCells
			break
		}
		v.Cells = append(v.Cells, result.NewCell(d, &d.Cells[i]))
	}
}

// add sets the lines of the answer, and marks the findings that they contain.
func (v *view) add(lines []line) {
	for i, l := range lines {
		if s := doc.CleanUpTo(l.text, result.MaxAnswer); i == 0 {
			v.Answer = s
		} else {
			v.Back = s
		}
		for _, d := range v.Why {
			if f := d.Findings; len(f) > 0 && f[0].IsIn(l.says) {
				f[0].Said = true
			}
		}
	}
}

// measured reports whether there is anything to report.
func measured(d *measure.Document) bool {
	return slices.ContainsFunc(d.Cells, func(c measure.Cell) bool {
		return stat.Measured(&c) || result.IsLimited(&c) || result.IsSentOnly(&c) || slices.ContainsFunc(c.Runs, func(r measure.Run) bool {
			_, ok := stat.RunFigure(&c, &r)
			return ok || r.Goodput != nil
		})
	})
}
