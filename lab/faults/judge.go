package faults

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"thru/internal/cause/diagnose"
	"thru/internal/measure"
)

// Row is the outcome of one direction of a fault.
type Row struct {
	Fault     string
	Direction string // "->" from the client, "<-" to it; of captures "s", "r" or "sr": at the sender, the receiver, both
	Want      Want
	Cause     string // of the first finding; empty without one
	Place     string
	Degree    string // its confidence
	Bps       float64
	Elapsed   time.Duration
	Found     []string // causes of all findings
	False     []string // certain findings that are wrong
	Trouble   string   // why there is no finding
}

// Judge compares a document with a fault: a row for each wanted direction.
func Judge(f Fault, d *measure.Document) []Row {
	var rows []Row
	for _, x := range []struct {
		name    string
		want    *Want
		forward bool
	}{{"->", f.Forward, true}, {"<-", f.Back, false}} {
		if x.want == nil {
			continue
		}
		r := Row{Fault: f.Name, Direction: x.name, Want: *x.want, Elapsed: time.Duration(d.ElapsedNs)}
		r.read(d, baseCell(d, x.forward))
		rows = append(rows, r)
	}
	return rows
}

// read copies the diagnosis of a cell.
func (r *Row) read(d *measure.Document, c *measure.Cell) {
	switch {
	case c == nil && d.Error != nil:
		r.Trouble = d.Error.Message
	case c == nil || len(c.Findings) == 0:
		r.Trouble = "the document has no finding of this direction"
	default:
		first := c.Findings[0]
		r.Cause, r.Place, r.Degree = first.Cause, first.Where.Place, first.Confidence
		for _, x := range c.Findings {
			r.Found = append(r.Found, x.Cause)
		}
	}
	if c != nil && c.Goodput != nil {
		r.Bps = c.Goodput.Value
	}
}

// baseCell returns the cell of one direction's requested traffic.
func baseCell(d *measure.Document, forward bool) *measure.Cell {
	for i := range d.Cells {
		c := &d.Cells[i]
		if c.Baseline || c.Experiment != "" && c.Experiment != diagnose.Base {
			continue
		}
		captured := len(c.Runs) > 0 && len(c.Runs[0].Flows) > 0 && c.Runs[0].Flows[0].Sender != nil && c.Runs[0].Flows[0].Sender.Reported == measure.ByCapture
		if captured || (c.From == "local") == forward { // a capture file has only one direction
			return c
		}
	}
	return nil
}

// Right reports whether the first finding is the expected one.
func (r Row) Right() bool {
	if len(r.False) > 0 || r.Want.Cause == "" && r.Trouble != "" {
		return false
	}
	if r.Want.Cause == "" && (r.Cause == measure.CauseNone || r.Degree == measure.Possible) {
		return true
	}
	if r.Want.With != "" && !slices.Contains(r.Found, r.Want.With) {
		return false
	}
	return (r.Cause == r.Want.Cause && (r.Want.Place == "" || r.Place == r.Want.Place)) || slices.Contains(r.Want.Or, r.Cause)
}

// FalseAlarm reports whether something was found on a healthy path.
func (r Row) FalseAlarm() bool {
	return !r.Right() && slices.Contains(Healthy(), r.Want.Cause) && r.Trouble == ""
}

// WrongCertain reports the worst case: a wrong finding with certainty.
func (r Row) WrongCertain() bool {
	return len(r.False) > 0 || !r.Right() && r.Degree == measure.Certain
}

// String returns the row as a line of the table.
func (r Row) String() string {
	want, found, verdict := cmp.Or(r.Want.Cause, "silent"), cmp.Or(r.Cause, "nothing"), "ok"
	switch {
	case r.WrongCertain():
		verdict = "WRONG, and certain of it"
	case !r.Right():
		verdict = "WRONG"
	}
	if r.Trouble != "" {
		verdict += ": " + r.Trouble
	}
	return fmt.Sprintf("%-26s %-2s %-20s %-20s %-9s  %-9s %10.1f %6.1f %s", r.Fault, r.Direction, want, found, r.Degree, r.Place, r.Bps/1e6, r.Elapsed.Seconds(), verdict)
}
