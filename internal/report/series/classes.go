package series

import (
	"fmt"
	"slices"
	"strings"

	"thru/internal/doc"
	"thru/internal/doc/draw"
	"thru/internal/measure"
	"thru/internal/report/result"
	"thru/internal/stat"
	"thru/internal/unit"
)

// classCells returns the flows of a test that sends each class of traffic at once (--rrul), by direction;
// none for any other test.
func classCells(d *measure.Document) (up, down []*measure.Cell) {
	if d.Command != "test" {
		return nil, nil
	}
	for i := range d.Cells {
		c := &d.Cells[i]
		if c.Baseline || result.IsExperiment(c) || result.Asks(c) || !stat.Measured(c) || c.AtOnce < 4 {
			continue
		}
		if len(up) == 0 || c.From == up[0].From {
			up = append(up, c)
		} else {
			down = append(down, c)
		}
	}
	of := func(cells []*measure.Cell) bool {
		return slices.ContainsFunc(cells, func(c *measure.Cell) bool { return c.Spec.DSCP != cells[0].Spec.DSCP })
	}
	if !of(up) || !of(down) {
		return nil, nil
	}
	return up, down
}

// ClassesAnswer returns "87.4 Mb/s local -> peer, 88.9 Mb/s back, in classes BE 21.9/22.4, EF 20.1/20.2 Mb/s;
// latency 35 µs idle, 17.4 ms under load (+17.3 ms, grade A)"; "" for any other test.
func ClassesAnswer(d *measure.Document) string {
	up, down := classCells(d)
	if len(up) == 0 {
		return ""
	}
	sum := func(cells []*measure.Cell) (bps float64) {
		for _, c := range cells {
			bps += c.Goodput.Value
		}
		return bps
	}
	in := doc.ScaleFor(up[0].Goodput.Value)
	var each []string
	for i, c := range up {
		rates := in.Number(c.Goodput.Value)
		if i < len(down) {
			rates += "/" + in.Number(down[i].Goodput.Value)
		}
		each = append(each, result.ClassName(c.Spec.DSCP)+" "+rates)
	}
	s := fmt.Sprintf("%s %s, %s back at the same time (%s %s)", unit.Rate(sum(up)), result.PathName(up[0]), unit.Rate(sum(down)), strings.Join(each, ", "), in.Name)
	s += result.UnderLoadAnswer(up[0].UnderLoad)
	return s + doc.Prefixed(": ", result.Reason(nil, up[0], down[0]))
}

// ClassCharts draws the rates of all classes in each direction over time, and the delay below them, as flent
// does; nil for a test without classes.
func ClassCharts(d *measure.Document, cells []result.Cell) []doc.Chart {
	up, down := classCells(d)
	if len(up) == 0 {
		return nil
	}
	var legends []doc.Legend
	var words []string
	seconds, rate, long := 0.0, 0.0, false
	timelines := map[*measure.Cell]timeline{}
	for _, c := range slices.Concat(up, down) {
		k := newTimeline(c)
		timelines[c], seconds, rate, long = k, max(seconds, k.seconds), max(rate, Greatest(k.received)), long || len(k.received) > 1
		words = append(words, result.PathName(c)+", "+result.ClassName(c.Spec.DSCP)+": "+unit.Rate(c.Goodput.Value))
	}
	if !long {
		return nil
	}
	in := doc.ScaleFor(rate)
	var panels []draw.Panel
	for n, direction := range [][]*measure.Cell{up, down} {
		p := draw.Panel{Title: result.PathName(direction[0]) + ", " + in.Name, Height: TimelinePanel, Max: rate / in.Div}
		for i, c := range direction {
			l := with(draw.Line{Style: i % draw.Styles, Markers: Markers}, timelines[c].received, in.Div)
			if p.Lines = append(p.Lines, l); n == 0 {
				legends = append(legends, doc.Legend{Key: draw.Key(l), Name: result.ClassName(c.Spec.DSCP)})
			}
		}
		panels = append(panels, p)
	}
	if x := latencyRequests(cells, up[0]); x != nil {
		asker, _ := result.ShownFlow(x)
		mean, most := result.LatencyTimeline(asker)
		panels = append(panels, delayPanel(mean, most, Greatest(mean, most), draw.Line{Markers: Markers}))
	}
	drawn := draw.Drawing{ID: "classes", Title: "Classes and latency over time", Desc: strings.Join(words, "; "), X: secondsAxis(seconds), Panels: panels}
	return []doc.Chart{draw.Chart(drawn, "Rate of each class over time in both directions, and the latency.", legends)}
}
