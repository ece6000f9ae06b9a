// Package ladder words the cells of one path that vary streams and window: a matrix, charts, and what others have published.
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

// Ladder is the cells of one path as a matrix of streams by window.
type Ladder struct {
	Path    string    // "localhost", "local -> peer", "interconnect, a -> d"
	Rung    string    // of a ladder of several
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
	Range     string // least and greatest run or bin
	CPU       string // of the machine, sender/receiver
	Best      bool
	Level     bool   // it cannot be told from the best one
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

// Has tells whether a cell has its place in a matrix of streams by window:
// of a ladder of several rungs, those that nothing else was varied of.
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
	table, err := published.Load() // a broken table costs the context, not the report
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
			if d.Ladder == nil { // else it is said once for all rungs
				note += "; " + Caution
			}
			l.Notes = append(l.Notes, note)
		}
	}
}

// Caution is what is to be known of figures that others have published.
const Caution = "absolute figures do not travel between machines"

// limitNotes say what holds back the rung that carried most, and the one that carried least;
// what a ladder above has said in full is its cause alone.
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
	}{{"the most", l.Best}, {"the least", least}} {
		if c := x.Source; len(c.Findings) > 0 && (x.rung != l.Best || len(notes) == 0) {
			held := why.LimitText(c)
			if f := result.Binding(c); f != nil && said[held] {
				held = doc.Clean(f.Cause) + " (" + doc.Clean(f.Confidence) + "), as above"
			}
			said[why.LimitText(c)] = true
			notes = append(notes, fmt.Sprintf("%s (%s, %s window): %s", x.name, unit.Plural(c.Streams, "stream"), result.WindowName(c.Window), held))
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

// figures are those of all its cells.
func (l *Ladder) figures() (all []*measure.Figure) {
	for i := range l.Rungs {
		if g := l.Rungs[i].Source.Goodput; g != nil {
			all = append(all, g)
		}
	}
	return all
}

// Mark is what stands behind a rung's value: "*" the most, "~" not distinguishable from it.
func (r rung) Mark() string {
	switch {
	case r.Best:
		return "*"
	case r.Level:
		return "~"
	}
	return " " // figures end at one place
}

// at returns the rung of a place in the matrix, or nil.
func (l *Ladder) at(streams int, window measure.Pair) *rung {
	for i := range l.Rungs {
		if c := l.Rungs[i].Source; c.Streams == streams && c.Window == window {
			return &l.Rungs[i]
		}
	}
	return nil
}

// IsCut tells whether the kernel granted a cell less window than was asked for.
func IsCut(c *measure.Cell) bool {
	return slices.ContainsFunc(result.Evidences(c), func(e *measure.Evidence) bool {
		b := result.Buffer(e)
		return b != nil && b.Cut
	})
}

// cutNote says once that the kernel granted less window than was asked for.
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
	return fmt.Sprintf("the kernel cut the window of %s to %s%s", unit.Size(asked), unit.Size(got), limits(d))
}

// limits names the sysctls that cut a window, with their values.
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

// scenario is the published one that a rung compares with; "" where there is none.
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

// scenarioName is what people call a published scenario.
func scenarioName(scenario string) string {
	switch scenario {
	case published.SameHypervisor:
		return "two guests of one hypervisor"
	case published.SameVLAN:
		return "two hosts in one VLAN with ports of 25 Gb/s"
	case published.Interconnect:
		return "two data centers joined by 10 Gb/s"
	}
	return scenario
}

// publishedText is the published range for the same streams and window.
func publishedText(t published.Table, scenario string, c *measure.Cell) string {
	row, ok := t.Find(scenario, c.Streams, c.Window.Send)
	if !ok || c.Window.Send != c.Window.Recv {
		return "" // not published, or suspect
	}
	return ReferenceText(row)
}

// publishedNote puts the published figures of a scenario beside the best of
// this one: its cell, or the range of all its cells where that one is no reference.
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

// doubt is what speaks against a published figure, where its row says so.
func doubt(row published.Row) string {
	if !strings.HasPrefix(row.Note, "above ") {
		return ""
	}
	return "; it lies " + row.Note
}

// ReferenceText is the rate of a published row in Gb/s.
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
