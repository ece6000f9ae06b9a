package capture

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

// Limits of what a page shows of one connection.
const (
	maxMarkRows = 60
	tracePanel  = 150 // height
	markNumbers = measure.MostNumbers
)

// traced is one connection over time, with the packets to look up.
type traced struct {
	Name   string
	In     string // the capture that contains it, if there are two
	Open   bool   // the first of the page: others are folded
	Chart  *doc.Chart
	Counts doc.Table // what was counted, and in which packets first
	Marks  doc.Table // retransmissions and packets out of order
}

// newTraced returns the connections with something to show on a page.
func newTraced(pairs []pair, near, far *measure.Capture, id string) (all []traced) {
	for i, p := range pairs {
		c, in := p.near, near
		if c.Timeline == nil && p.far != nil && p.far.Timeline != nil {
			c, in = p.far, far
		}
		t := traced{Name: connName(c), Open: i == 0, Counts: countTable(c, captureName(in)), Marks: markTable(c)}
		if far != nil {
			t.In = captureName(in)
		}
		if k, ok := traceChart(c, captureName(in), fmt.Sprintf("%s-%d", id, i)); ok {
			t.Chart = &k
		}
		if t.Chart != nil || len(t.Counts.Rows)+len(t.Marks.Rows) > 0 {
			all = append(all, t)
		}
	}
	return all
}

// trace is the time line of a connection in the units of its axes.
type trace struct {
	from *measure.Trace
	time doc.Scale // of the x axis
	step float64   // in its unit
}

// traceChart draws a connection over time: its sequence numbers, its window, its round-trip times.
func traceChart(c *measure.Connection, in, id string) (doc.Chart, bool) {
	t := c.Timeline
	if t == nil || t.StepNs <= 0 || len(t.Sent)+len(t.Flight)+len(t.RTT) == 0 {
		return doc.Chart{}, false
	}
	steps := min(max(len(t.Sent), len(t.Flight), len(t.RTT)), measure.TraceSteps)
	length := float64(t.StepNs) * float64(steps)
	k := trace{from: t, time: doc.TimeScale(length)}
	k.step = float64(t.StepNs) / k.time.Div
	panels := append(append(k.sequences(), k.windows()...), k.roundTrips()...)
	if len(panels) == 0 {
		return doc.Chart{}, false
	}
	x := draw.XAxis{High: length / k.time.Div, Ticks: draw.NiceTicks(length/k.time.Div, 6), Title: "time, " + k.time.Name}
	x.High = x.Ticks[len(x.Ticks)-1].At
	name := connName(c)
	d := draw.Drawing{ID: id, Title: name + " over time", Desc: traceWords(c), X: x, Panels: panels}
	return draw.Chart(d, "Sequence numbers, window and RTT, from "+in+".", k.legends()), true
}

// Lines and markers of the panels.
func sentLine() draw.Line          { return draw.Line{Style: 0, Bare: true} }
func ackedLine() draw.Line         { return draw.Line{Style: 2, Bare: true} }
func windowLine() draw.Line        { return draw.Line{Style: 3, Bare: true, Dashed: true} }
func retransmitMarkers() draw.Line { return draw.Line{Style: 1, Marker: draw.Bars} }
func reorderMarkers() draw.Line    { return draw.Line{Style: 3, Marker: draw.Crosses} }

func (k trace) legends() []doc.Legend {
	all := []doc.Legend{{Key: draw.Key(sentLine()), Name: "sent, in flight"}, {Key: draw.Key(ackedLine()), Name: "acknowledged"}, {Key: draw.Key(windowLine()), Name: "receive window, right edge"}}
	if len(k.from.Again) > 0 {
		all = append(all, doc.Legend{Key: draw.Key(retransmitMarkers()), Name: "retransmitted"})
	}
	if len(k.from.Late) > 0 {
		all = append(all, doc.Legend{Key: draw.Key(reorderMarkers()), Name: "out of order"})
	}
	return all
}

// series returns the points of the steps; a step without a value breaks the line. Values above most are not
// drawn. part is the position of a value in its step.
func (k trace) series(values []int64, part, div, most float64) (ps []draw.Point) {
	for i, v := range values[:min(len(values), measure.TraceSteps)] {
		y := float64(v) / div
		if v < 0 || y > most {
			y = math.NaN()
		}
		ps = append(ps, draw.Point{X: (float64(i) + part) * k.step, Y: y})
	}
	return ps
}

// edgeRoom is how far the axis of sequence numbers extends above the data to show the window's edge, as a
// multiple of the data.
const edgeRoom = 1.25

// sequences returns the panel of the data sent and acknowledged, with the retransmissions.
func (k trace) sequences() []draw.Panel {
	t := k.from
	sent := mostOf(t.Sent, t.Acked)
	if sent <= 0 {
		return nil
	}
	most := min(edgeRoom*sent, mostOf(t.Sent, t.Acked, t.Edge))
	in := sizeScale(most)
	p := draw.Panel{Title: "sequence number, " + in.Name, Height: 1.6 * tracePanel, Max: most / in.Div}
	for _, s := range []struct {
		draw.Line
		of []int64
	}{{windowLine(), t.Edge}, {sentLine(), t.Sent}, {ackedLine(), t.Acked}} {
		s.Points = k.series(s.of, 1, in.Div, p.Max)
		p.Lines = append(p.Lines, s.Line)
	}
	for _, s := range []struct {
		draw.Line
		of []measure.PacketMark
	}{{retransmitMarkers(), t.Again}, {reorderMarkers(), t.Late}} {
		for _, m := range s.of[:min(len(s.of), measure.MostMarks)] {
			s.Points = append(s.Points, draw.Point{X: float64(m.AtNs) / k.time.Div, Y: float64(m.Seq) / in.Div})
		}
		p.Lines = append(p.Lines, s.Line)
	}
	return []draw.Panel{p}
}

// windows returns the panel of the receive window and the bytes in flight.
func (k trace) windows() []draw.Panel {
	t := k.from
	most := mostOf(t.Flight, t.Window)
	if most <= 0 {
		return nil
	}
	in := sizeScale(most)
	p := draw.Panel{Title: "receive window and in flight, " + in.Name, Height: tracePanel, Max: most / in.Div}
	w, f := windowLine(), sentLine()
	w.Points, f.Points = k.series(t.Window, 0.5, in.Div, p.Max), k.series(t.Flight, 0.5, in.Div, p.Max)
	p.Lines = []draw.Line{w, f}
	return []draw.Panel{p}
}

func (k trace) roundTrips() []draw.Panel {
	most := mostOf(k.from.RTT)
	if most <= 0 {
		return nil
	}
	in := doc.TimeScale(most)
	l := sentLine()
	l.Points = k.series(k.from.RTT, 0.5, in.Div, math.Inf(1))
	return []draw.Panel{{Title: "RTT, " + in.Name, Height: tracePanel, Max: most / in.Div, Lines: []draw.Line{l}}}
}

// mostOf returns the greatest value, at least 0.
func mostOf(lists ...[]int64) float64 {
	most := int64(0)
	for _, l := range lists {
		for _, v := range l {
			most = max(most, v)
		}
	}
	return float64(most)
}

// sizeScale returns the largest binary unit that is not above bytes.
func sizeScale(bytes float64) doc.Scale {
	for _, s := range []doc.Scale{{Div: 1 << 40, Name: "TiB"}, {Div: 1 << 30, Name: "GiB"}, {Div: 1 << 20, Name: "MiB"}, {Div: 1 << 10, Name: "KiB"}} {
		if bytes >= s.Div {
			return s
		}
	}
	return doc.Scale{Div: 1, Name: "B"}
}

// traceWords describes the time line for readers without the picture.
func traceWords(c *measure.Connection) string {
	t := newConnTable(&measure.Capture{Conns: []measure.Connection{*c}}, []pair{{near: c}})
	var parts []string
	for _, r := range t.lines() {
		parts = append(parts, r.Name+" "+r.Value)
	}
	return strings.Join(parts, "; ")
}

// countTable lists the counters of a connection, each with the first packets counted.
func countTable(c *measure.Connection, in string) doc.Table {
	t := doc.Table{Caption: "Packets by their number in " + in, Columns: append(doc.FigureColumns("seen", "times", "payload"), doc.Column{Name: "first packets"})}
	add := func(name string, n measure.Count) {
		if n.N <= 0 {
			return
		}
		payload, numbers := "-", result.NumberList(n.Packets, markNumbers)
		if n.Bytes > 0 {
			payload = unit.Size(n.Bytes)
		}
		if n.N > int64(len(n.Packets)) && len(n.Packets) > 0 && len(n.Packets) <= markNumbers {
			numbers += ", ..."
		}
		t.Rows = append(t.Rows, []string{name, unit.Count(n.N), payload, numbers})
	}
	for _, k := range directionCounts(&c.Data) {
		add(k.name, k.Count)
	}
	for _, k := range directionCounts(&c.Acks) {
		add(k.name+", reverse", k.Count)
	}
	return t
}

type namedCount struct {
	name string
	measure.Count
}

// directionCounts returns the counters of one direction with their common names.
func directionCounts(w *measure.Direction) []namedCount {
	return []namedCount{{"fast retransmission", w.Fast}, {"retransmission at a timeout", w.Timeout}, {"retransmission after a timeout", w.Wake}, {"retransmission as a probe", w.Tail},
		{"all retransmissions", w.Again}, {"spurious retransmission", w.Spurious}, {"out of order", w.Late}, {"sequence gap", w.Gaps}, {"acknowledged, not captured", w.Unseen},
		{"super-packets", w.Super}, {"duplicate acknowledgements", w.DupAcks}, {"with SACK blocks", w.SACKed}, {"D-SACK", w.DSACK}, {"zero window", w.Zero},
		{"zero window probes", w.Probes}, {"window full", w.Filled}, {"keep-alives", w.KeepAlive}, {"CE marks", w.CE}, {"ECN echo", w.ECE}, {"CWR", w.CWR}, {"IP fragments", w.Fragments}, {"resets", w.RST}}
}

// markTable lists the packets that the chart marks.
func markTable(c *measure.Connection) doc.Table {
	if c.Timeline == nil {
		return doc.Table{}
	}
	t := doc.Table{Figures: true, Caption: "Marked packets", Columns: doc.FigureColumns("packet", "seen as", "at", "first byte")}
	type marked struct {
		measure.PacketMark
		as string
	}
	var all []marked
	for _, k := range []struct {
		as string
		of []measure.PacketMark
	}{{"retransmitted", c.Timeline.Again}, {"out of order", c.Timeline.Late}} {
		for _, m := range k.of[:min(len(k.of), measure.MostMarks)] {
			all = append(all, marked{m, k.as})
		}
	}
	slices.SortStableFunc(all, func(a, b marked) int { return int(min(max(a.Packet-b.Packet, -1), 1)) })
	for i, m := range all {
		if i == maxMarkRows {
			t.More = fmt.Sprintf("and %s, see the JSON document", unit.Plural(len(all)-i, "more packet"))
			break
		}
		t.Rows = append(t.Rows, []string{fmt.Sprint(m.Packet), m.as, unit.Duration(m.AtNs), unit.Count(m.Seq)})
	}
	return t
}
