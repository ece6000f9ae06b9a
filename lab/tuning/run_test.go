package tuning

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"thru/internal/measure"
	"thru/lab"
)

// Outcome is the result of one case. Rates are in bit/s, by direction.
type Outcome struct {
	Case
	Healthy   map[string]float64 // before anything was set badly
	Confirmed map[string]float64 // measured by thru test after the tuning, with the options that were kept
	Document  *measure.Document
	Exit      int
	Stayed    []string // settings that differ after the tuning
	Stood     []string // changes that thru tune --rollback found in force: "tcp-rmem@peer"
	Left      []string // settings that differ after the rollback
	Elapsed   time.Duration
}

// tuneLimit is how long a tuning may exceed its budget.
const tuneLimit = 30 * time.Minute

// Run builds the path, measures it, applies the bad settings, tunes it, measures it again, and rolls back.
func Run(t testing.TB, c Case, args ...string) Outcome {
	t.Helper()
	lab.Require(t, c.Needs...)
	s := c.Build(t)
	s.Serve()
	o := Outcome{Case: c}
	var err error
	if o.Healthy, err = s.rates(c.Args); err != nil {
		t.Fatal(err)
	}
	for _, b := range c.Bad {
		b.Spoil(s)
	}
	before, begin := s.Settings(), time.Now()
	o.Document, o.Exit = s.Run(s.A, tuneLimit, slices.Concat(words("tune %s --json --yes", Peer), args, c.Args)...)
	o.Elapsed, o.Stayed = time.Since(begin), s.Changed(before)
	_, options := o.kept()
	if o.Confirmed, err = s.rates(slices.Concat(c.Args, options)); err != nil {
		t.Error(err) // the result of the tuning counts all the same
	}
	o.Stood = s.RollBack()
	o.Left = s.Changed(before)
	return o
}

// rates returns the rates that thru test measures between the hosts, by direction.
func (s *Scene) rates(traffic []string) (map[string]float64, error) {
	s.t.Helper()
	d, code := s.Run(s.A, shortLimit, slices.Concat(words("test %s --json --force -t 3", Peer), traffic)...)
	if code != 0 {
		return nil, fmt.Errorf("tuning: thru test: %s", wrong(d, code))
	}
	return ratesOf(slices.DeleteFunc(d.Cells, func(c measure.Cell) bool { return c.Baseline })), nil
}

// ratesOf returns the rates of cells, by direction.
func ratesOf(cells []measure.Cell) map[string]float64 {
	all := map[string]float64{}
	for _, c := range cells {
		if name := measure.PairName(c.From, c.To); c.Goodput != nil {
			all[name] = max(all[name], c.Goodput.Value)
		}
	}
	return all
}

// milestone returns the rates of a row of the journey; a negative row counts from the end.
func milestone(d *measure.Document, n int) map[string]float64 {
	if d.Tuning == nil || len(d.Tuning.Journey) == 0 {
		return nil
	}
	if n < 0 {
		n += len(d.Tuning.Journey)
	}
	var cells []measure.Cell
	for _, i := range d.Tuning.Journey[n].Cells {
		if i >= 0 && i < len(d.Cells) {
			cells = append(cells, d.Cells[i])
		}
	}
	return ratesOf(cells)
}

// RollBack restores both hosts from their journals. It repeats the command while a host still reverts by
// itself. It returns the changes that were in force, in the form of changes.
func (s *Scene) RollBack() []string {
	s.t.Helper()
	var stood []string
	for i, h := range s.Hosts() {
		var d *measure.Document
		code := 0
		for deadline := time.Now().Add(shortLimit); ; time.Sleep(500 * time.Millisecond) {
			if d, code = s.Run(h, shortLimit, "tune", "--rollback", "--json"); code == 0 {
				break
			}
			if time.Now().After(deadline) {
				s.t.Errorf("tuning: thru tune --rollback at %s: %s", h.Name, wrong(d, code))
				break
			}
		}
		if d.Tuning != nil {
			for _, c := range d.Tuning.Restored {
				stood = append(stood, c.Knob+"@"+[]string{Local, Peer}[i])
			}
		}
	}
	return stood
}

// kept returns the changes that were kept, and those of them that are options of the test, as on a command
// line.
func (o Outcome) kept() (all, options []string) {
	for _, a := range o.attempts() {
		if a.Outcome != measure.Kept {
			continue
		}
		all = append(all, changes(a.Proposal)...)
		if a.Test != nil && strings.HasPrefix(a.Test.Flags, "-") {
			options = append(options, strings.Fields(a.Test.Flags)...)
		}
	}
	return all, options
}

// attempts are the attempts of the document.
func (o Outcome) attempts() []measure.Attempt {
	if o.Document.Tuning == nil {
		return nil
	}
	return o.Document.Tuning.Attempts
}

// tried describes the outcome of an attempt in one line.
func tried(a measure.Attempt) string {
	text := fmt.Sprintf("%-10s %s", a.Outcome, strings.Join(changes(a.Proposal), " "))
	if c := a.Comparison; c != nil && c.ChangePct != nil && c.LowPct != nil && c.HighPct != nil {
		text += fmt.Sprintf(" %+.1f%% (%+.1f..%+.1f) %d pairs", *c.ChangePct, *c.LowPct, *c.HighPct, c.Pairs)
	}
	return fmt.Sprintf("%s %.0f s: %s", text, time.Duration(a.ElapsedNs).Seconds(), a.Reason)
}
