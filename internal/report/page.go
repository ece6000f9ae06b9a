package report

import (
	"slices"

	"thru/internal/doc"
	"thru/internal/doc/draw"
	"thru/internal/measure"
	"thru/internal/report/fleet"
	"thru/internal/report/ladder"
	"thru/internal/report/result"
	"thru/internal/report/series"
	"thru/internal/report/why"
)

// page is a view with the parts that only a page has: charts, and tables of the evidence.
type page struct {
	*view
	First   summary
	Picture *draw.Picture // of the answer
	Charts  []doc.Chart   // over time
	Heat    []doc.Chart   // of cores and queues
	Drawn   []string      // which run the charts show, if there are several
	Unseen  []string      // queues that the charts lack, and why
	Latency *series.LatencyPage
	Main    []cellPage
	Details []cellPage
}

// cellPage is a cell with its streams and seconds.
type cellPage struct {
	result.Cell
	Shown   bool // its rows are shown further up the page
	Streams doc.Table
	Seconds doc.Table
}

func newPage(d *measure.Document) page {
	v := newView(d)
	p := page{view: v, First: newSummary(d, result.LastState(d), v)}
	p.Picture = newPicture(result.LastState(d), v)
	drawn := v.Cells
	if len(v.Ladders) > 0 {
		drawn = nil // of a ladder only the judged cell
		if c, _ := fleet.Judged(d); c != nil {
			drawn = []result.Cell{result.NewCell(d, c)}
		}
	}
	if p.Charts = series.ClassCharts(d, drawn); p.Charts == nil {
		p.Charts = series.Charts(drawn)
	}
	p.Latency, p.Heat = series.NewLatencyPage(drawn), series.Heatmaps(drawn)
	p.Unseen, p.Drawn = series.Uncounted(drawn), drawnRuns(drawn)
	for i, c := range v.Cells {
		if v.Silent {
			break // the packets are all there is
		}
		drawn := slices.ContainsFunc(drawn, func(x result.Cell) bool { return x.Source == c.Source })
		if ladder.Has(d, c.Source) && !drawn && !c.Tried {
			continue // its ladder has a row for it
		}
		q := cellPage{Cell: c, Streams: series.StreamTable(c.Source)}
		if i < series.MaxTimelines || drawn && len(v.Ladders) > 0 {
			q.Seconds = series.SecondTable(c.Source)
		}
		if len(v.Ladders) == 0 && c.Main() && len(p.Main) < series.MaxTimelines {
			q.Shown = true
			p.Main = append(p.Main, q)
		} else if s := why.LimitText(c.Source); s != "" && (!drawn || len(v.Judged) == 0) {
			q.Rows = append(q.Rows[:len(q.Rows):len(q.Rows)], doc.Row{Name: "limited by", Value: s})
		}
		if !q.Shown || len(q.Streams.Rows)+len(q.Seconds.Rows) > 0 {
			p.Details = append(p.Details, q)
		}
	}
	return p
}

// drawnRuns names the run that each flow's chart shows, since the figures are of all runs.
func drawnRuns(cells []result.Cell) (all []string) {
	n := 0
	for _, c := range cells {
		if !c.Main() || n == series.MaxTimelines {
			continue
		}
		n++
		if len(c.Source.Runs) > 1 {
			all = append(all, c.Name+": the chart shows "+result.ShownName(c.Source)+"; the figures are of all runs")
		}
	}
	return all
}

// ManyDetails reports whether there are too many cells to print one by one.
func (p page) ManyDetails() bool { return len(p.Details) > result.FewCells }

// Slowest reports whether only the slowest pairs of a plan are shown one by one.
func (p page) Slowest() bool {
	return p.Fleet != nil && !p.Fleet.Few && len(p.Ladders) == 0 && len(p.Main) > 1
}

// Unsaid returns the advice that is not among the things to do at the top.
func (p page) Unsaid() []string {
	said := func(s string) bool {
		return slices.ContainsFunc(p.First.Rows, func(r summaryRow) bool {
			return slices.ContainsFunc(r.Items, func(i summaryItem) bool { return i.Text == s })
		})
	}
	return slices.DeleteFunc(slices.Clone(p.Advice), said)
}
