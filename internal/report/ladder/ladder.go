// Package ladder words the cells of one path that vary streams and window: a matrix, charts, and published
// figures.
package ladder

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/published"
	"thru/internal/report/result"
	"thru/internal/report/why"
	"thru/internal/stat"
	"thru/internal/unit"
)

// Ladder holds the cells of one path as a matrix of streams by window.
type Ladder struct {
	Path    string    // "localhost", "local -> peer", "interconnect, a -> d"
	Rung    string    // of a ladder with several rungs
	Local   bool      // traffic stayed in one host
	Unit    doc.Scale // of all rates
	Streams []int
	Windows []measure.Pair
	Rungs   []rung
	Best    *rung
	Notes   []string // windows cut, published context
}

// rung is one cell of a ladder.
type rung struct {
	Source    *measure.Cell
	Value     string // "52.1", "failed" or "-"
	Range     string // lowest and highest run or bin
	CPU       string // of the machine, sender/receiver
	Best      bool
	Level     bool   // not significantly below the best one
	Published string // the same cell of a published ladder
}

// All groups the cells of a ladder document by rung and path.
func All(d *measure.Document) []Ladder {
	var all []Ladder
	for i := range d.Cells[:min(len(d.Cells), result.MaxCells)] {
		c := &d.Cells[i]
		if !Has(d, c) {
			continue
		}
		path := result.PathName(c)
		if c.Rung != "" && doc.Clean(c.Rung) != path {
			path = doc.Join(doc.Clean(c.Rung), path)
		}
		at := slices.IndexFunc(all, func(l Ladder) bool { return l.Path == path })
		if at < 0 {
			all, at = append(all, Ladder{Path: path, Rung: c.Rung, Local: result.IsLocalhost(c)}), len(all)
		}
		all[at].add(c)
	}
	said := map[string]bool{}
	for i := range all {
		all[i].finish(d)
		all[i].Notes = append(all[i].Notes, all[i].limitNotes(said)...)
	}
	return all
}

// Has reports whether a cell belongs in a matrix of streams by window: in a ladder of several rungs only
// cells that vary nothing else.
func Has(d *measure.Document, c *measure.Cell) bool {
	if d.Ladder == nil && d.Command != "ladder" || d.Ladder != nil && (c.Rung == "" || c.AtOnce > 1 || c.Baseline) {
		return false
	}
	return !slices.ContainsFunc(result.Conditions(c.Axes), func(a measure.Axis) bool { return a.Name != "streams" && a.Name != "window" })
}

func (l *Ladder) add(c *measure.Cell) {
	if !slices.Contains(l.Streams, c.Streams) {
		l.Streams = append(l.Streams, c.Streams)
	}
	if !slices.Contains(l.Windows, c.Window) {
		l.Windows = append(l.Windows, c.Window)
	}
	l.Rungs = append(l.Rungs, rung{Source: c})
}

// finish finds the best rung, and formats all in one unit.
func (l *Ladder) finish(d *measure.Document) {
	slices.Sort(l.Streams)
	for i := range l.Rungs {
		r := &l.Rungs[i]
		if g := r.Source.Goodput; g != nil && (l.Best == nil || g.Value > l.Best.Source.Goodput.Value) {
			l.Best = r
		}
	}
	l.Unit = doc.Scale{Div: 1e9, Name: "Gb/s"}
	if l.Best != nil {
		l.Best.Best = true
		l.Unit = doc.ScaleFor(l.Best.Source.Goodput.Value)
	}
	table, err := published.Load() // without the published table only the context is missing
	for i := range l.Rungs {
		l.format(&l.Rungs[i])
		if scenario := l.scenario(); scenario != "" && err == nil {
			l.Rungs[i].Published = publishedText(table, scenario, l.Rungs[i].Source)
		}
	}
	if note := cutNote(l, d); note != "" {
		l.Notes = append(l.Notes, note)
	}
	if scenario := l.scenario(); scenario != "" && err == nil {
		for _, note := range publishedNote(table, scenario, l) {
			if d.Ladder == nil { // else one note covers all rungs
				note += "; " + Caution
			}
			l.Notes = append(l.Notes, note)
		}
	}
}

// Caution is the caveat about published figures.
const Caution = "absolute figures depend on the machine"

// limitNotes words what limits the best and the worst rung; if an earlier ladder explained a cause in full,
// it only names the cause.
func (l *Ladder) limitNotes(said map[string]bool) (notes []string) {
	if l.Best == nil {
		return nil
	}
	least := l.Best
	for i := range l.Rungs {
		if r := &l.Rungs[i]; (stat.Measured(r.Source) || result.IsLimited(r.Source)) && result.AmountOf(r.Source) < result.AmountOf(least.Source) {
			least = r
		}
	}
	for _, x := range []struct {
		name string
		*rung
	}{{"highest", l.Best}, {"lowest", least}} {
		if c := x.Source; len(c.Findings) > 0 && (x.rung != l.Best || len(notes) == 0) {
			limit := why.LimitText(c)
			if f := result.Binding(c); f != nil && said[limit] {
				limit = doc.Clean(f.Cause) + " (" + doc.Clean(f.Confidence) + "), as above"
			}
			said[why.LimitText(c)] = true
			notes = append(notes, fmt.Sprintf("%s (%s, %s window): %s", x.name, unit.Plural(c.Streams, "stream"), result.WindowName(c.Window), limit))
		}
	}
	return notes
}

func (l *Ladder) format(r *rung) {
	c := r.Source
	r.CPU = result.MachinePct(c.SenderCPU) + "/" + result.MachinePct(c.ReceiverCPU)
	if c.Goodput == nil {
		if r.Value = "-"; c.Error != nil {
			r.Value = "failed"
		}
		return
	}
	r.Value = l.Unit.Number(c.Goodput.Value)
	if r.Range = "-"; result.HasRange(c.Goodput) {
		r.Range = l.Unit.Span(c.Goodput.Low, c.Goodput.High)
	}
	r.Level = !r.Best && !stat.Exceeds(l.Best.Source.Goodput, c.Goodput, l.figures())
}

// figures returns the figures of all cells.
func (l *Ladder) figures() (all []*measure.Figure) {
	for i := range l.Rungs {
		if g := l.Rungs[i].Source.Goodput; g != nil {
			all = append(all, g)
		}
	}
	return all
}

// Mark returns the suffix of a rung's value: "*" for the highest, "~" for not significantly lower.
func (r rung) Mark() string {
	switch {
	case r.Best:
		return "*"
	case r.Level:
		return "~"
	}
	return " " // aligns the figures
}

// at returns the rung at a place in the matrix, or nil.
func (l *Ladder) at(streams int, window measure.Pair) *rung {
	for i := range l.Rungs {
		if c := l.Rungs[i].Source; c.Streams == streams && c.Window == window {
			return &l.Rungs[i]
		}
	}
	return nil
}

// IsCut reports whether the kernel granted a cell less window than requested.
func IsCut(c *measure.Cell) bool {
	return slices.ContainsFunc(result.Evidences(c), func(e *measure.Evidence) bool {
		b := result.Buffer(e)
		return b != nil && b.Cut
	})
}

// cutNote returns one note that the kernel granted less window than requested.
func cutNote(l *Ladder, d *measure.Document) string {
	asked, got := int64(0), int64(math.MaxInt64)
	for _, r := range l.Rungs {
		for _, e := range result.Evidences(r.Source) {
			if b := result.Buffer(e); b != nil && b.Cut {
				asked, got = max(asked, b.Asked), min(got, result.Usable(b))
			}
		}
	}
	if asked == 0 {
		return ""
	}
	return fmt.Sprintf("the kernel reduced the window of %s to %s%s", unit.Size(asked), unit.Size(got), limits(d))
}

// limits returns the sysctls that cut a window, with their values.
func limits(d *measure.Document) string {
	for _, p := range d.EndPoints {
		if p.Facts == nil {
			continue
		}
		r, w := p.Facts.Sysctls["net.core.rmem_max"], p.Facts.Sysctls["net.core.wmem_max"]
		if r != "" && w != "" {
			return fmt.Sprintf(" (net.core.rmem_max is %s, wmem_max %s)", doc.Clean(r), doc.Clean(w))
		}
	}
	return ""
}

// scenario returns the published scenario to compare a rung with; "" if there is none.
func (l *Ladder) scenario() string {
	switch strings.ToLower(l.Rung) {
	case "virtual switch":
		return published.SameHypervisor
	case "lan":
		return published.SameVLAN
	case "interconnect":
		return published.Interconnect
	}
	if l.Local {
		return published.Localhost
	}
	return ""
}

// scenarioName returns the common name of a published scenario.
func scenarioName(scenario string) string {
	switch scenario {
	case published.SameHypervisor:
		return "two guests on one hypervisor"
	case published.SameVLAN:
		return "two hosts in one VLAN with ports of 25 Gb/s"
	case published.Interconnect:
		return "two data centers joined by 10 Gb/s"
	}
	return scenario
}

// publishedText returns the published range for the same streams and window.
func publishedText(t published.Table, scenario string, c *measure.Cell) string {
	row, ok := t.Find(scenario, c.Streams, c.Window.Send)
	if !ok || c.Window.Send != c.Window.Recv {
		return "" // not published, or suspect
	}
	return ReferenceText(row)
}

// publishedNote compares the best cell with the published figures of a scenario: for the same cell, or the
// range of all cells if that one is no reference.
func publishedNote(t published.Table, scenario string, l *Ladder) []string {
	if l.Best == nil {
		return nil
	}
	c := l.Best.Source
	if row, ok := t.Find(scenario, c.Streams, c.Window.Send); ok && publishedText(t, scenario, c) != "" {
		return []string{fmt.Sprintf("published for %s with %s at the %s window: %s Gb/s (%s; %s%s)",
			scenarioName(scenario), unit.Plural(c.Streams, "stream"), result.WindowName(c.Window), publishedText(t, scenario, c), row.Tool, published.SourceTitle(row.Source), doubt(row))}
	}
	var low, high float64
	var source string
	least, most := math.Inf(1), 0.0
	for _, row := range t.Scenario(scenario) {
		if row.LowBps == nil || row.HighBps == nil || row.Streams == nil {
			continue
		}
		if source == "" || *row.LowBps < low {
			low = *row.LowBps
		}
		least, most = min(least, row.Streams.Low), max(most, row.Streams.High)
		high, source = max(high, *row.HighBps), row.Tool+"; "+published.SourceTitle(row.Source)+doubt(row)
	}
	if source == "" {
		return nil
	}
	streams := fmt.Sprintf("%.0f to %.0f streams", least, most)
	if least == most {
		streams = unit.Plural(int(least), "stream")
	}
	rates := doc.Scale{Div: 1e9, Name: "Gb/s"}.Span(low, high)
	if low == high {
		rates = doc.Scale{Div: 1e9, Name: "Gb/s"}.Number(low)
	}
	return []string{fmt.Sprintf("published for %s, %s: %s Gb/s (%s)", scenarioName(scenario), streams, rates, source)}
}

// doubt returns the caveat of a published figure, if its row has one.
func doubt(row published.Row) string {
	if !row.Above {
		return ""
	}
	return "; it is " + row.Note
}

// ReferenceText returns the rate of a published row in Gb/s.
func ReferenceText(row published.Row) string {
	in := doc.Scale{Div: 1e9, Name: "Gb/s"}
	switch low, high := row.LowBps, row.HighBps; {
	case row.Suspect:
		return ""
	case low != nil && high != nil && *low != *high:
		return in.Span(*low, *high)
	case high != nil:
		return in.Number(*high)
	case low != nil:
		return in.Number(*low)
	}
	return ""
}
