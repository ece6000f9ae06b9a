package ladder

import (
	"fmt"

	"thru/internal/doc"
	"thru/internal/doc/draw"
	"thru/internal/report/result"
)

// charts draws throughput and CPU load over the number of streams.
func charts(l *Ladder, n int) []doc.Chart {
	if l.Best == nil || len(l.Streams) < 2 { // the table shows the same
		return nil
	}
	x := draw.XAxis{Low: -0.5, High: float64(len(l.Streams)) - 0.5, Title: "streams"}
	for i, s := range l.Streams {
		x.Ticks = append(x.Ticks, draw.Tick{At: float64(i), Label: fmt.Sprint(s)})
	}
	return []doc.Chart{throughputChart(l, x, n), cpuChart(l, x, n)}
}

// ChartHeight is the height of a chart over settings.
const ChartHeight = 230

// inTable describes a chart whose figures are in a table.
const inTable = "The table in this section has the figures."

func throughputChart(l *Ladder, x draw.XAxis, n int) doc.Chart {
	p := draw.Panel{Title: "throughput, " + l.Unit.Name, Height: ChartHeight}
	var legends []doc.Legend
	basis := "range"
	for i, w := range l.Windows {
		s := draw.Line{Style: i}
		for j, streams := range l.Streams {
			r := l.at(streams, w)
			if r == nil || r.Source.Goodput == nil {
				continue
			}
			g := r.Source.Goodput
			low, high := result.Interval(g)
			if g.CI95Low != nil {
				basis = "95% interval"
			}
			s.Points = append(s.Points, draw.Point{X: spreadWindows(l, j, i), Y: g.Value / l.Unit.Div})
			s.Errors = append(s.Errors, draw.Span{Low: low / l.Unit.Div, High: high / l.Unit.Div})
			p.Max = max(p.Max, g.Value/l.Unit.Div, high/l.Unit.Div)
		}
		p.Lines = append(p.Lines, s)
		legends = append(legends, doc.Legend{Key: draw.Key(s), Name: result.WindowName(w) + " window"})
	}
	d := draw.Drawing{ID: fmt.Sprintf("ladder%d", n), Title: "Throughput by streams and window, " + l.Path,
		Desc: inTable, X: x, Panels: []draw.Panel{p}}
	return draw.Chart(d, "Throughput by streams and window. Bars: "+basis+".", legends)
}

// spreadWindows shifts the windows at one number of streams sideways, so that none hides another.
func spreadWindows(l *Ladder, streams, window int) float64 {
	return float64(streams) + (float64(window)-float64(len(l.Windows)-1)/2)*0.12
}

func cpuChart(l *Ladder, x draw.XAxis, n int) doc.Chart {
	p := draw.Panel{Title: "CPU, % of the whole machine", Height: ChartHeight, Max: 100}
	var legends []doc.Legend
	for i, w := range l.Windows {
		sender, receiver := draw.Line{Style: i}, draw.Line{Style: i, Wide: true}
		for j, streams := range l.Streams {
			r := l.at(streams, w)
			if r == nil {
				continue
			}
			if f := r.Source.SenderCPU; f != nil {
				sender.Points = append(sender.Points, draw.Point{X: spreadWindows(l, j, i), Y: f.Pct})
			}
			if f := r.Source.ReceiverCPU; f != nil {
				receiver.Points = append(receiver.Points, draw.Point{X: spreadWindows(l, j, i), Y: f.Pct})
			}
		}
		p.Lines = append(p.Lines, receiver, sender)
		legends = append(legends, doc.Legend{Key: draw.Key(sender), Name: "sender, " + result.WindowName(w) + " window"}, doc.Legend{Key: draw.Key(receiver), Name: "receiver, " + result.WindowName(w) + " window"})
	}
	d := draw.Drawing{ID: fmt.Sprintf("ladder%d-cpu", n), Title: "CPU by streams and window, " + l.Path,
		Desc: inTable, X: x, Panels: []draw.Panel{p}}
	caption := "CPU of sender and receiver in the same cells."
	if l.Local {
		caption = "CPU in the same cells. Sender and receiver are the same machine."
	}
	return draw.Chart(d, caption, legends)
}
