package series

import (
	"math"
	"strings"

	"thru/internal/doc"
	"thru/internal/doc/draw"
	"thru/internal/measure"
	"thru/internal/report/result"
	"thru/internal/stat"
	"thru/internal/unit"
)

// LatencyPage holds the latency distributions of a page: a chart and a table of them all.
type LatencyPage struct {
	Chart doc.Chart
	Table doc.Table
}

const latencyHeight = 240

// NewLatencyPage draws the cells that have a latency; nil if there is none.
func NewLatencyPage(cells []result.Cell) *LatencyPage {
	p := &LatencyPage{Table: doc.Table{Figures: true, Caption: "Latency from request to response", Columns: doc.FigureColumns("share of the requests")}}
	var all []*measure.Latency
	var legends []doc.Legend
	var words []string
	plot := draw.Panel{Title: "latency", Height: latencyHeight}
	least, greatest, most := math.Inf(1), 0.0, 0.0
	for _, c := range cells {
		l := c.Source.Latency
		if l == nil || c.Tried || c.Baseline && !c.Gauge || len(all) == draw.Styles {
			continue
		}
		name := seriesName(c)
		one := draw.Line{Style: len(all), Dashed: len(all)%2 == 1, Markers: Markers}
		for _, at := range stat.LatencyCurve(l) {
			one.Points = append(one.Points, draw.Point{X: at.Nines, Y: at.Ns})
			least, greatest, most = min(least, at.Ns), max(greatest, at.Ns), max(most, at.Nines)
		}
		all = append(all, l)
		plot.Lines = append(plot.Lines, one)
		legends = append(legends, doc.Legend{Key: draw.Key(one), Name: name})
		p.Table.Columns = append(p.Table.Columns, doc.Column{Name: name, Right: true})
		words = append(words, name+": "+result.PercentilesText(l))
	}
	if len(all) == 0 {
		return nil
	}
	plot.Log = timeTicks(least, greatest)
	d := draw.Drawing{ID: "latency", Title: "Latency by percentile", Desc: strings.Join(words, "; "), X: ninesAxis(most), Panels: []draw.Panel{plot}}
	p.Chart = draw.Chart(d, "Share of requests with at most this latency.", legends)
	p.Table.Rows = latencyRows(all)
	return p
}

// seriesName distinguishes a cell's latency from the others'.
func seriesName(c result.Cell) string {
	if c.Gauge {
		return strings.TrimPrefix(doc.Clean(c.Source.Label), "latency, ")
	}
	return c.Name
}

// ninesAxis returns the axis of percentiles, with equal width for each further nine.
func ninesAxis(most float64) draw.XAxis {
	x := draw.XAxis{High: max(most, 1), Title: "share of the requests"}
	for _, t := range []draw.Tick{{At: math.Log10(2), Label: "50%"}, {At: 1, Label: "90%"}, {At: 2, Label: "99%"}, {At: 3, Label: "99.9%"}, {At: 4, Label: "99.99%"}, {At: 5, Label: "99.999%"}} {
		if t.At <= x.High {
			x.Ticks = append(x.Ticks, t)
		}
	}
	return x
}

// timeTicks returns the powers of ten in ns that contain all times; for a narrow range also twos and fives.
func timeTicks(least, greatest float64) []draw.Tick {
	low, high := math.Floor(math.Log10(clampTime(least))), math.Ceil(math.Log10(clampTime(greatest)))
	high = max(high, low+1)
	steps := []float64{1}
	if high-low <= 2 {
		steps = []float64{1, 2, 5}
	}
	var ticks []draw.Tick
	for power := low; power <= high; power++ {
		for _, step := range steps {
			if v := step * math.Pow(10, power); step == 1 || power < high {
				ticks = append(ticks, draw.Tick{At: v, Label: strings.ReplaceAll(doc.ShortTime(int64(v)), " ", "\u202f")})
			}
		}
	}
	return ticks
}

// clampTime limits a time of another host to what an axis can show: up to 11 days.
func clampTime(ns float64) float64 { return min(max(ns, 1), 1e15) }

// latencyRows returns the percentiles of all distributions side by side.
func latencyRows(all []*measure.Latency) [][]string {
	var rows [][]string
	add := func(name string, value func(*measure.Latency) string) {
		r := []string{name}
		for _, l := range all {
			r = append(r, value(l))
		}
		rows = append(rows, r)
	}
	add("min", func(l *measure.Latency) string { return doc.ShortTime(l.Min) })
	for i, name := range []string{"50%", "90%", "99%", "99.9%", "99.99%"} {
		add(name, func(l *measure.Latency) string {
			if ps := result.Percentiles(l); i < len(ps) {
				return doc.ShortTime(ps[i].NS)
			}
			return "-"
		})
	}
	add("max", func(l *measure.Latency) string { return doc.ShortTime(l.Max) })
	add("mean", func(l *measure.Latency) string { return doc.ShortTime(l.Mean) })
	add("requests", func(l *measure.Latency) string { return unit.Count(l.Count) })
	return rows
}
