// Package fleet words plans of many pairs and settings: the varied settings, targets, comparisons, rungs, and
// the hosts of a fleet.
package fleet

import (
	"fmt"
	"slices"
	"strings"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/report/facts"
	"thru/internal/report/result"
	"thru/internal/stat"
	"thru/internal/unit"
)

// View holds what a report shows of a plan: many pairs as tables.
type View struct {
	Failed      []string // hosts that were lost, pairs that failed, and why
	Waterfall   *waterfall
	Compared    []comparison
	ManualSteps []doc.Row // manual steps between blocks
	Targets     doc.Table
	missed      int       // of the targets: the first rows
	Sets        doc.Table // a row for each set, if there are several
	Chart       *doc.Chart
	Details     []setView
	Hidden      int // sets without details
	Points      doc.Table
	Few         bool // few enough pairs to show each as in a test of two hosts
}

// setView is a set in detail.
type setView struct {
	Name    string
	Overlap string
	Matrix  *doc.Matrix
	Pairs   []doc.Table // all pairs, or the slowest and the fastest
	Slow    doc.Table   // pairs far below the rest
	Limits  doc.Table   // causes, with how many pairs they limit
	Hosts   doc.Table
	Labels  doc.Table
}

// Limits of what is shown in detail.
const (
	fewPairs    = 24 // up to this number all pairs are listed
	worstPairs  = 8  // else this number of the slowest, and of the fastest
	maxDetails  = 12 // sets
	maxMatrix   = 12000
	maxFailures = 12 // reasons
)

// New returns the view of a plan's document; nil for a test of two hosts.
func New(d *measure.Document) *View {
	if !result.IsPlanned(d) {
		return nil
	}
	sets := Sets(d)
	f := &View{Failed: failures(d), Waterfall: newWaterfall(d), Compared: newComparisons(d), Few: result.MainCount(d) <= result.FewCells, Points: pointTable(d)}
	if d.Plan != nil {
		f.ManualSteps = ManualRows(d.Plan)
	}
	if len(d.Targets) > 0 {
		f.Targets, f.missed = TargetTable(d), FailedTargets(d)
	}
	tabled := slices.DeleteFunc(slices.Clone(sets), func(s *Set) bool { return inLadders(d, s) })
	if len(tabled) > 1 || len(tabled) == 1 && len(tabled[0].Axes) > 0 && len(sets) > 1 {
		f.Sets, f.Chart = setTable(tabled), newSetChart(tabled)
	}
	f.details(tabled)
	return f
}

// details adds the sets with more than one pair, the best one first.
func (f *View) details(sets []*Set) {
	most := Best(sets)
	sorted := slices.Clone(sets)
	slices.SortStableFunc(sorted, func(a, b *Set) int {
		switch {
		case a == most && b != most:
			return -1
		case b == most && a != most:
			return 1
		}
		return 0
	})
	places := 0
	for _, s := range sorted {
		if len(s.Pairs) < 2 && !s.AtOnce() {
			continue
		}
		if len(f.Details) == maxDetails {
			f.Hidden++
			continue
		}
		v := newSetView(s)
		if s == most && len(sets) > 1 {
			v.Name += " (highest rate)"
		}
		if v.Matrix != nil {
			if places += len(v.Matrix.Rows) * len(v.Matrix.Cols); places > maxMatrix || len(v.Matrix.Rows) > maxPageMatrix || len(v.Matrix.Cols) > maxPageMatrix {
				v.Matrix = nil
			}
		}
		f.Details = append(f.Details, v)
	}
}

func newSetView(s *Set) setView {
	v := setView{Name: s.Name, Matrix: newMatrix(s)}
	if s.Rung != "" && !strings.Contains(s.Name, s.Rung) {
		v.Name = doc.Join(s.Rung, s.Name)
	}
	if len(s.Groups) == 1 {
		g := s.Groups[0]
		v.Overlap = overlapText(g.Overlap)
		v.Hosts, v.Labels = shareTable(g.Hosts, "host", result.MaxHostRows).WithoutEmpty(), shareTable(g.Labels, "label", result.MaxHostRows).WithoutEmpty()
	}
	slowest := s.slowest()
	v.Slow, v.Limits = slowTable(s, slowest), limitTable(s)
	if len(slowest) <= fewPairs {
		all := pairTable(s, s.Pairs)
		all.Caption = "Each pair"
		v.Pairs = []doc.Table{all}
		return v
	}
	low := pairTable(s, slowest[:worstPairs])
	low.Caption = "Slowest pairs"
	fastest := slices.Clone(slowest[len(slowest)-worstPairs:])
	slices.Reverse(fastest)
	high := pairTable(s, fastest)
	high.Caption = fmt.Sprintf("fastest pairs, of %d", len(slowest))
	v.Pairs = []doc.Table{low, high}
	return v
}

// slowTable lists pairs with less than half the median, because a matrix shows only their figure.
func slowTable(s *Set, slowest []pairFigure) doc.Table {
	bar := stat.Median(s.values()) / 2
	var slow []pairFigure
	for _, p := range slowest {
		if p.Failed == "" && p.Value != nil && *p.Value < bar && len(slow) < worstPairs {
			slow = append(slow, p)
		}
	}
	if len(slow) == 0 {
		return doc.Table{}
	}
	g := pairTable(s, slow)
	g.Caption = "Pairs below half of the median"
	return g
}

// limitTable lists the causes that limit the pairs of a set, with their counts.
func limitTable(s *Set) doc.Table {
	var all result.SharedTexts
	for _, c := range s.Cells {
		if result.IsLimited(c) {
			all.Add(c.Findings[0].Cause, result.InSentence(result.Binding(c)), c)
		}
	}
	found := all.Joined()
	slices.SortStableFunc(found, func(a, b *result.SharedText) int { return len(b.Pairs) - len(a.Pairs) })
	g := doc.Table{Caption: "Limits", Columns: []doc.Column{{Name: "cause", Least: 12}, {Name: "pairs", Right: true}, {Name: "explanation", Least: 20}, {Name: "which", Least: 12}}}
	for _, x := range found {
		which := "all"
		if len(x.Pairs) < len(s.Cells) {
			which = doc.Gap{Facts: x.Pairs}.Text(min(len(x.Pairs), 2))
		}
		g.Rows = append(g.Rows, []string{doc.CleanUpTo(x.Mark, result.LongestCause), fmt.Sprint(len(x.Pairs)), x.Text(), which})
	}
	return g.First(result.MaxFindings)
}

// failures returns the hosts that were lost and the pairs that failed, by reason, and how much of the plan
// was not measured.
func failures(d *measure.Document) []string {
	var all []string
	var pairs []doc.Gap
	for _, p := range d.EndPoints {
		if p.Lost != "" && len(all) < maxFailures {
			all = append(all, doc.Clean(p.Name)+" was lost: "+doc.Reason(p.Lost))
		}
	}
	for _, g := range d.Groups {
		for _, f := range g.Failed {
			pairs = doc.AddGap(pairs, result.PairName(f.From, f.To), doc.Reason(f.Error))
		}
	}
	if len(d.Groups) > 0 {
		for i := range d.Cells {
			if c := &d.Cells[i]; c.Error != nil && !c.Baseline {
				pairs = addFailure(pairs, c)
			}
		}
	}
	for i, g := range pairs {
		if i == maxFailures {
			all = append(all, fmt.Sprintf("and %d more reasons, see the JSON document", len(pairs)-i))
			break
		}
		if at := slices.IndexFunc(d.EndPoints, func(p measure.EndPoint) bool { return p.Lost != "" && doc.Reason(p.Lost) == g.Why }); at >= 0 {
			g.Why = doc.Clean(d.EndPoints[at].Name) + " was lost" // the reason is named above
		}
		all = append(all, "failed: "+doc.Colon((doc.Gap{Facts: g.Facts}).Text(result.MaxNamed), g.Why))
	}
	if p := d.Plan; p != nil && p.Done < p.Steps {
		all = append(all, fmt.Sprintf("%d of %d steps were measured", p.Done, p.Steps))
	}
	return all
}

// addFailure adds a failed cell, unless its group has reported it.
func addFailure(pairs []doc.Gap, c *measure.Cell) []doc.Gap {
	name := result.PairName(c.From, c.To)
	if slices.ContainsFunc(pairs, func(g doc.Gap) bool { return slices.Contains(g.Facts, name) }) {
		return pairs
	}
	return doc.AddGap(pairs, name, doc.Reason(c.Error.Message))
}

// pointTable lists the end points if there are too many for columns.
func pointTable(d *measure.Document) doc.Table {
	if len(d.EndPoints) <= facts.MostEndPoints {
		return doc.Table{}
	}
	g := doc.Table{Caption: "End points", Columns: []doc.Column{{Name: "name"}, {Name: "address"}, {Name: "labels"}, {Name: "system"}, {Name: "kernel"}, {Name: "CPU"}, {Name: "memory"}, {Name: "clock offset", Right: true}, {Name: "lost"}}}
	for _, p := range d.EndPoints[:min(len(d.EndPoints), result.MaxHostRows)] {
		r := []string{doc.Clean(p.Name), doc.OrDash(doc.Clean(p.Addr)), doc.OrDash(facts.Labels(p.Labels, true)), "-", "-", "-", "-", doc.OrDash(doc.Known("%s", p.ClockNs, unit.Duration)), doc.OrDash(doc.Reason(p.Lost))}
		if p.Facts != nil {
			for i, f := range facts.Columns()[1:5] {
				r[3+i] = doc.OrDash(f.Value(p.Facts))
			}
		}
		g.Rows = append(g.Rows, r)
	}
	if n := len(d.EndPoints) - len(g.Rows); n > 0 {
		g.More = fmt.Sprintf("and %d more, see the JSON document", n)
	}
	return g.WithoutEmpty()
}

// WorstCells returns the cells of a large plan that are shown one by one: the judged one, the slowest of the
// best set, and failed ones with figures.
func WorstCells(d *measure.Document) []*measure.Cell {
	s := Best(Sets(d))
	if s == nil {
		return nil
	}
	var all []*measure.Cell
	if c, _ := Judged(d); c != nil {
		all = append(all, c)
	}
	for _, p := range s.slowest() {
		for _, c := range p.Cells {
			if len(c.Runs) > 0 && len(all) < result.FewCells && !slices.Contains(all, c) {
				all = append(all, c)
			}
		}
	}
	return all
}
