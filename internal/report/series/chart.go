// Package series draws flows over time, and the load of their cores and queues, as charts and tables.
package series

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"thru/internal/doc"
	"thru/internal/doc/draw"
	"thru/internal/measure"
	"thru/internal/report/result"
	"thru/internal/unit"
)

// timeline is one cell over time, in the units of its panels.
type timeline struct {
	cell                         *measure.Cell
	sent, received               []draw.Point // bit/s
	senderCPU, senderMax         []draw.Point // %
	receiverCPU, receiverMax     []draw.Point
	RTT, farRTT                  []draw.Point // ns, from the sender's and the receiver's kernel
	retransmits, farAgain        []draw.Point // segments, from the sender's and the receiver's kernel
	lost                         []draw.Point // datagrams
	took, tookMost               []draw.Point // ns, of the latency probes: mean and maximum of each second
	seconds, rateMax, rttMax, re float64      // maximum values; re of retransmits or losses
	latency                      float64      // maximum of took and tookMost
}

// maxPoints limits one line of a chart.
const maxPoints = 240

// latencyRequests returns the latency probes that ran together with a cell; nil: none did.
func latencyRequests(cells []result.Cell, c *measure.Cell) *measure.Cell {
	for _, x := range cells {
		if x.Gauge && x.Source.Group == c.Group && x.Source.AtOnce > 1 {
			return x.Source
		}
	}
	return nil
}

func newTimeline(c *measure.Cell) timeline {
	sender, receiver := result.ShownFlow(c)
	k := timeline{cell: c, sent: Thin(result.ThroughputOf(sender)), received: Thin(result.ThroughputOf(receiver)),
		RTT: Thin(result.RTTOf(sender)), farRTT: Thin(result.RTTOf(receiver)), retransmits: Thin(result.RetransmitsOf(sender)), farAgain: Thin(result.RetransmitsOf(receiver))}
	if Greatest(k.farAgain) == 0 { // it sends only acknowledgements, which are not retransmitted
		k.farAgain = nil
	}
	switch {
	case result.Asks(c):
		k.sent, k.received, k.RTT, k.farRTT = Thin(result.RequestsOf(sender)), nil, nil, nil
	case result.IsUDP(c):
		k.lost = Thin(result.LostOf(receiver))
	}
	k.senderCPU, k.senderMax = result.CPUOf(sender)
	k.receiverCPU, k.receiverMax = result.CPUOf(receiver)
	for _, l := range []*[]draw.Point{&k.senderCPU, &k.senderMax, &k.receiverCPU, &k.receiverMax} {
		*l = Thin(*l)
	}
	k.rateMax = Greatest(k.sent, k.received)
	k.rttMax, k.re = Greatest(k.RTT, k.farRTT), Greatest(k.retransmits, k.farAgain, k.lost)
	for _, e := range []*measure.Evidence{sender, receiver} {
		if e != nil {
			k.seconds = max(k.seconds, float64(e.MeasuredNs)/result.Second)
		}
	}
	return k
}

// Thin averages adjacent points until at most maxPoints are left.
func Thin(ps []draw.Point) []draw.Point {
	group := (len(ps) + maxPoints - 1) / maxPoints
	if group < 2 {
		return ps
	}
	var out []draw.Point
	for i := 0; i < len(ps); i += group {
		part := ps[i:min(i+group, len(ps))]
		var mean draw.Point
		for _, p := range part {
			mean.X += p.X / float64(len(part))
			mean.Y += p.Y / float64(len(part))
		}
		out = append(out, mean)
	}
	return out
}

// Greatest returns the greatest value of some series, 0 if there is none.
func Greatest(series ...[]draw.Point) float64 {
	most := 0.0
	for _, ps := range series {
		for _, p := range ps {
			if !math.IsNaN(p.Y) && !math.IsInf(p.Y, 0) {
				most = max(most, p.Y)
			}
		}
	}
	return most
}

// Charts draws each main cell over time, all on the same scales. Latency probes of several cells are drawn
// with the first.
func Charts(cells []result.Cell) []doc.Chart {
	var all []timeline
	var asked []*measure.Cell
	var most timeline
	for _, c := range cells {
		if !c.Main() || len(all) == MaxTimelines && c.Source.AtOnce < 2*MaxTimelines || len(all) == 2*MaxTimelines {
			continue
		}
		k := newTimeline(c.Source)
		if max(len(k.sent), len(k.received)) < 2 {
			continue // one second is a figure, not a time line
		}
		if x := latencyRequests(cells, c.Source); x != nil && !slices.Contains(asked, x) {
			asked = append(asked, x)
			asker, _ := result.ShownFlow(x)
			k.took, k.tookMost = result.LatencyTimeline(asker)
			most.latency = max(most.latency, Greatest(k.took, k.tookMost))
		}
		all = append(all, k)
		most.seconds, most.rateMax = max(most.seconds, k.seconds), max(most.rateMax, k.rateMax)
		most.rttMax, most.re = max(most.rttMax, k.rttMax), max(most.re, k.re)
	}
	var charts []doc.Chart
	for i, k := range all {
		charts = append(charts, k.chart(i, most))
	}
	return charts
}

// MaxTimelines limits the cells that are drawn over time; twice as many if they ran at once.
const MaxTimelines = 4

const (
	TimelinePanel = 110
	Markers       = 8 // on each line
	LeastCount    = 4 // of an axis that counts whole things
)

func (k timeline) chart(n int, most timeline) doc.Chart {
	sender, receiver := draw.Line{Markers: Markers}, draw.Line{Style: 1, Wide: true, Markers: Markers}
	peak := func(style int, ps []draw.Point) draw.Line {
		return with(draw.Line{Style: style, Thin: true, Dashed: true}, ps, 1)
	}
	rates, times := k.rates(most), doc.TimeScale(most.rttMax)
	panels := []draw.Panel{{Title: rates.Name, Height: TimelinePanel, Max: most.rateMax / rates.Div,
		Lines: []draw.Line{with(receiver, k.received, rates.Div), with(sender, k.sent, rates.Div)}}}
	if len(k.senderCPU)+len(k.receiverCPU) > 0 {
		panels = append(panels, draw.Panel{Title: "CPU, % of the machine; fine: busiest core", Height: TimelinePanel, Max: 100,
			Lines: []draw.Line{peak(0, k.senderMax), peak(1, k.receiverMax), with(receiver, k.receiverCPU, 1), with(sender, k.senderCPU, 1)}})
	}
	if len(k.RTT)+len(k.farRTT) > 0 {
		panels = append(panels, draw.Panel{Title: "RTT in each end's kernel, " + times.Name, Height: TimelinePanel, Max: most.rttMax / times.Div,
			Lines: []draw.Line{with(receiver, k.farRTT, times.Div), with(sender, k.RTT, times.Div)}})
	}
	if len(k.took) > 1 {
		panels = append(panels, delayPanel(k.took, k.tookMost, most.latency, sender))
	}
	counted := func(title string, ps, far []draw.Point) {
		if len(ps)+len(far) > 0 && most.re > 0 {
			panels = append(panels, draw.Panel{Title: title, Height: TimelinePanel * 0.7, Max: max(most.re, LeastCount),
				Lines: []draw.Line{with(draw.Line{Stems: true}, ps, 1), with(draw.Line{Style: 1, Stems: true}, far, 1)}})
		}
	}
	counted("retransmitted segments/s", k.retransmits, k.farAgain)
	counted("lost datagrams/s", k.lost, nil)
	name := result.PathName(k.cell)
	d := draw.Drawing{ID: fmt.Sprintf("course%d", n), Title: name + " over time", Desc: k.words(), X: secondsAxis(most.seconds), Panels: panels}
	var legends []doc.Legend
	if len(k.sent) > 0 {
		legends = append(legends, doc.Legend{Key: draw.Key(sender), Name: "sender"})
	}
	if len(k.received)+len(k.receiverCPU) > 0 {
		legends = append(legends, doc.Legend{Key: draw.Key(receiver), Name: "receiver"})
	}
	caption := name + " over time, " + doc.Join(result.What(k.cell), result.OtherAxes(k.cell)) + "."
	if len(k.retransmits)+len(k.farAgain) > 0 && most.re == 0 {
		caption += " No retransmissions."
	}
	return draw.Chart(d, caption, legends)
}

// with returns the line through points whose values are divided by div.
func with(l draw.Line, ps []draw.Point, div float64) draw.Line {
	for _, p := range ps {
		l.Points = append(l.Points, draw.Point{X: p.X, Y: p.Y / div})
	}
	return l
}

// delayPanel draws the round-trip times of latency probes: the mean and the maximum of each second.
func delayPanel(mean, most []draw.Point, top float64, as draw.Line) draw.Panel {
	times := doc.TimeScale(top)
	return draw.Panel{Title: "latency of the probe requests, " + times.Name + "; fine: max", Height: TimelinePanel, Max: top / times.Div,
		Lines: []draw.Line{with(draw.Line{Thin: true, Dashed: true}, most, times.Div), with(as, mean, times.Div)}}
}

func secondsAxis(seconds float64) draw.XAxis {
	x := draw.XAxis{High: seconds, Ticks: draw.NiceTicks(seconds, 6), Title: "time, s"}
	if x.High <= 0 {
		x.High = x.Ticks[len(x.Ticks)-1].At
	}
	x.Ticks = slices.DeleteFunc(x.Ticks, func(t draw.Tick) bool { return t.At > x.High })
	return x
}

// rates returns the scale of the first panel; its name is the title.
func (k timeline) rates(most timeline) doc.Scale {
	if result.Asks(k.cell) {
		return doc.Scale{Div: 1, Name: "requests/s"}
	}
	in := doc.ScaleFor(most.rateMax)
	return doc.Scale{Div: in.Div, Name: "throughput, " + in.Name}
}

// words describes the time line for readers without the picture.
func (k timeline) words() string {
	parts := []string{result.What(k.cell)}
	if g := k.cell.Goodput; g != nil && !result.Asks(k.cell) {
		parts = append(parts, "goodput "+unit.Rate(g.Value)+", between "+unit.Rate(g.Low)+" and "+unit.Rate(g.High))
	}
	if len(k.retransmits) > 0 {
		parts = append(parts, fmt.Sprintf("max %.0f retransmitted segments/s", k.re))
	}
	if len(k.lost) > 0 {
		parts = append(parts, fmt.Sprintf("max %.0f lost datagrams/s", k.re))
	}
	return strings.Join(parts, "; ")
}
