package report

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"thru/internal/doc"
	"thru/internal/doc/draw"
	"thru/internal/measure"
	"thru/internal/report/inventory"
	"thru/internal/report/result"
	"thru/internal/report/series"
	"thru/internal/stat"
	"thru/internal/unit"
)

// mostPlacements limits the end points that are listed one by one.
const mostPlacements = 40

// stretch is the measured time of a run.
type stretch struct{ begin, end time.Time }

// guestOrHost is the guest or the host of end points, with its counters.
type guestOrHost struct {
	name    string    // its kind and name, and its end points: "VM web-1 (a)"
	sources []calling // each source that knows it
	runs    []stretch
}

// calling is the id of a guest or host at one source.
type calling struct {
	source *measure.Inventory
	id     string
	nic    string // key of the adapter that carries the test; "": unknown, or a host
}

// hypervisorRuns lists the guests and hosts with counters, guests first, each once.
func hypervisorRuns(d *measure.Document) (all []guestOrHost) {
	runs := stretches(d)
	var guests, hosts []guestOrHost
	on := map[calling][]string{} // names of end points, by the machine's id at the first source
	for _, e := range d.EndPoints {
		p := e.Placement
		if p == nil {
			continue
		}
		var guest, host []calling
		for _, b := range p.HostPlacement(d.Inventories) {
			if b.Guest != nil {
				guest = append(guest, calling{b.Inventory, b.Guest.ID, keyOf(b.NIC)})
			}
			if b.Host != nil {
				host = append(host, calling{b.Inventory, b.Host.ID, ""})
			}
		}
		for _, x := range []struct {
			sources []calling
			name    string
			to      *[]guestOrHost
		}{{guest, "VM " + p.GuestName, &guests}, {host, "host " + p.HostName, &hosts}} {
			if len(x.sources) == 0 {
				continue
			}
			if on[x.sources[0]] == nil {
				*x.to = append(*x.to, guestOrHost{doc.Clean(x.name), x.sources, runs})
			}
			on[x.sources[0]] = append(on[x.sources[0]], doc.Clean(e.Name))
		}
	}
	all = slices.Concat(guests, hosts)
	for i := range all {
		names := on[all[i].sources[0]]
		if n := len(names) - 3; n > 0 {
			names = append(names[:3:3], fmt.Sprintf("%d more", n))
		}
		all[i].name += " (" + strings.Join(names, ", ") + ")"
	}
	return all
}

func keyOf(n *measure.GuestNIC) string {
	if n == nil {
		return ""
	}
	return n.Key
}

// stretches returns the measured times of all runs, each once, in order.
func stretches(d *measure.Document) (all []stretch) {
	for i := range d.Cells {
		for k := range d.Cells[i].Runs {
			if begin, end, ok := d.Cells[i].Runs[k].Span(); ok {
				all = append(all, stretch{begin, end})
			}
		}
	}
	slices.SortFunc(all, func(a, b stretch) int { return a.begin.Compare(b.begin) })
	return all
}

// of returns the series of a counter from the first source that has it: those of the adapter that carries the
// test, else of the whole machine, else of its parts.
func (b guestOrHost) of(counter string) (whole []*measure.Series) {
	ofPort := strings.HasPrefix(counter, "net.") || strings.HasPrefix(counter, "port.")
	for _, t := range b.sources {
		var parts, own []*measure.Series
		for i := range t.source.Series {
			s := &t.source.Series[i]
			switch {
			case s.Of != t.id || s.Counter != counter:
			case ofPort && t.nic != "" && s.Instance == t.nic:
				own = append(own, s)
			case s.Instance == "":
				whole = append(whole, s)
			case ofPort && t.nic != "": // another adapter
			default:
				parts = append(parts, s)
			}
		}
		for _, found := range [][]*measure.Series{own, whole, parts} {
			if len(found) > 0 {
				return found
			}
		}
	}
	return nil
}

// sampled calls take for each sample of a counter within the runs, once for each of several parts.
func (b guestOrHost) sampled(counter string, take func(at time.Time, value float64)) {
	for _, s := range b.of(counter) {
		seen := map[time.Time]bool{}
		for _, r := range b.runs {
			for _, x := range s.Within(r.begin, r.end) {
				if !seen[x.EndedAt] && !math.IsNaN(x.Value) && !math.IsInf(x.Value, 0) {
					seen[x.EndedAt] = true
					take(x.EndedAt, x.Value)
				}
			}
		}
	}
}

// measured returns the values of a counter; those of several parts follow each other.
func (b guestOrHost) measured(counter string) (values []float64) {
	b.sampled(counter, func(_ time.Time, value float64) { values = append(values, value) })
	return values
}

// sums returns the values of a counter at each moment of the runs, added over its parts.
func (b guestOrHost) sums(counter string) (values []float64) {
	at := map[time.Time]float64{}
	b.sampled(counter, func(moment time.Time, value float64) { at[moment] += value })
	return slices.Sorted(maps.Values(at))
}

// counterFigure is one column of the counters: how values become a cell; "" for no values.
type counterFigure struct {
	name string
	text func(guestOrHost) string
}

func counterFigures() []counterFigure {
	figure := func(name, counter string, text func([]float64) string) counterFigure {
		return counterFigure{name, func(b guestOrHost) string { return textOf(b.measured(counter), text) }}
	}
	whole := func(name, counter string, text func([]float64) string) counterFigure {
		return counterFigure{name, func(b guestOrHost) string { return textOf(b.sums(counter), text) }}
	}
	return []counterFigure{
		whole("vCPUs busy", measure.CounterUsed, busyCPUs),
		figure("CPU of host", measure.CounterUsage, meanPct),
		figure("ready", measure.CounterReady, meanPct),
		figure("co-stop", measure.CounterCoStop, meanPct),
		figure("limited", measure.CounterLimited, meanPct),
		whole("in", measure.CounterRxBps, meanRate),
		whole("out", measure.CounterTxBps, meanRate),
		whole("packets/s, in", measure.CounterRxPps, meanCount),
		whole("packets/s, out", measure.CounterTxPps, meanCount),
		figure("dropped, in", measure.CounterRxDropped, total),
		figure("dropped, out", measure.CounterTxDropped, total),
		{"ring full", ringFull},
		whole("memory", measure.CounterConsumed, greatestSize),
		whole("in use", measure.CounterActive, greatestSize),
		whole("balloon", measure.CounterBalloon, greatestSize),
		whole("swapped", measure.CounterSwapped, greatestSize),
	}
}

func textOf(values []float64, text func([]float64) string) string {
	if len(values) == 0 {
		return ""
	}
	return text(values)
}

// ringFull counts packets that found no room in the guest's receive ring. Both counters may contain the same
// packet, so it returns the greater one.
func ringFull(b guestOrHost) string {
	full, none := b.measured(measure.CounterRingFull), b.measured(measure.CounterNoBuffer)
	if len(full) == 0 || len(none) > 0 && stat.Sum(none) > stat.Sum(full) {
		full = none
	}
	return textOf(full, total)
}

// busyCPUs converts percents of one CPU to "1.20, most 1.90".
func busyCPUs(values []float64) string {
	m, most := doc.Digits(stat.Mean(values)/100), doc.Digits(slices.Max(values)/100)
	if m == most {
		return m
	}
	return m + ", max " + most
}

func meanRate(values []float64) string { return unit.Rate(stat.Mean(values)) }

func meanCount(values []float64) string { return fmt.Sprintf("%.0f", stat.Mean(values)) }

// meanPct returns "3.2%, most 8.1%".
func meanPct(values []float64) string {
	m, most := unit.Percent(stat.Mean(values)), unit.Percent(slices.Max(values))
	if m == most {
		return m
	}
	return m + ", max " + most
}

// total returns the sum of packet counts.
func total(values []float64) string {
	return fmt.Sprintf("%.0f", stat.Sum(values))
}

func greatestSize(values []float64) string {
	most := slices.Max(values)
	if most < 1 {
		return "0"
	}
	return unit.Size(int64(min(most, math.MaxInt64/2)))
}

// counterGrid returns a row for each guest and host with samples within a run.
func counterGrid(all []guestOrHost) doc.Table {
	g := doc.Table{Caption: "Hypervisor counters during the measurement", Columns: []doc.Column{{Name: "machine", Least: 12}}}
	figures := counterFigures()
	for _, f := range figures {
		g.Columns = append(g.Columns, doc.Column{Name: f.name, Right: true, Least: 6})
	}
	for _, b := range all {
		row := []string{b.name}
		for _, f := range figures {
			row = append(row, doc.OrDash(f.text(b)))
		}
		if slices.ContainsFunc(row[1:], func(cell string) bool { return cell != "-" }) {
			g.Rows = append(g.Rows, row)
		}
	}
	g = g.WithoutEmpty().First(mostPlacements)
	if len(g.Rows) > 0 {
		g.More = strings.TrimPrefix(g.More+"; "+aboutCounters, "; ")
	}
	return g
}

// aboutCounters explains the columns.
const aboutCounters = "ready, co-stop, limited: share of time; for a VM the mean of its virtual CPUs. in, out, dropped: for a VM the adapter under test if it is known, for a host all adapters"

// mostCounterCharts limits the charts of guests and hosts.
const mostCounterCharts = 8

// counterCharts draws the counters over the time of the runs.
func counterCharts(all []guestOrHost) (charts []doc.Chart) {
	for _, b := range all {
		if len(charts) == mostCounterCharts {
			break
		}
		if c, ok := b.chart(len(charts)); ok {
			charts = append(charts, c)
		}
	}
	return charts
}

// counterLine is a series of a chart.
type counterLine struct{ counter, name string }

// chart draws CPU waits and drops of a guest or a host. The axis below shows the runs.
func (b guestOrHost) chart(n int) (doc.Chart, bool) {
	if len(b.runs) == 0 {
		return doc.Chart{}, false
	}
	zero := b.runs[0].begin
	width := b.runs[len(b.runs)-1].end.Sub(zero).Seconds()
	var panels []draw.Panel
	var legends []doc.Legend
	var words []string
	plot := func(title string, least float64, lines []counterLine) {
		p := draw.Panel{Title: title, Height: series.TimelinePanel * 0.8, Max: least}
		for i, l := range lines {
			points := b.points(l.counter, zero, width)
			if len(points) == 0 {
				continue
			}
			x := draw.Line{Style: i, Dashed: i%2 == 1, Points: points, Markers: series.Markers}
			p.Lines, p.Max = append(p.Lines, x), max(p.Max, series.Greatest(points))
			legends = append(legends, doc.Legend{Key: draw.Key(x), Name: l.name})
			words = append(words, fmt.Sprintf("%s max %.1f", l.name, series.Greatest(points)))
		}
		if len(p.Lines) > 0 {
			p.Lines = append(p.Lines, b.runLine(zero))
			panels = append(panels, p)
		}
	}
	plot("CPU, % of the time", 5, []counterLine{{measure.CounterReady, "ready"}, {measure.CounterCoStop, "co-stop"}, {measure.CounterLimited, "limited"}})
	plot("CPU of the host, %", 100, []counterLine{{measure.CounterUsage, "used"}})
	plot("dropped packets per interval", series.LeastCount, []counterLine{{measure.CounterRxDropped, "in"}, {measure.CounterTxDropped, "out"}})
	if len(panels) == 0 {
		return doc.Chart{}, false
	}
	legends = append(legends, doc.Legend{Key: draw.Key(b.runLine(zero)), Name: "measured run"})
	x := draw.XAxis{High: width, Ticks: draw.NiceTicks(width, 6), Title: "time since the first run, s"}
	x.Ticks = slices.DeleteFunc(x.Ticks, func(t draw.Tick) bool { return t.At > x.High })
	d := draw.Drawing{ID: fmt.Sprintf("below%d", n), Title: b.name + " during the runs", Desc: strings.Join(words, "; "), X: x, Panels: panels}
	return draw.Chart(d, b.name+" during the runs.", legends), true
}

// points returns the samples of a counter at the middle of their intervals, with several parts added up.
func (b guestOrHost) points(counter string, zero time.Time, width float64) (ps []draw.Point) {
	sums := map[time.Time]float64{}
	every, parts := time.Duration(0), 1.0
	all := b.of(counter)
	if strings.HasSuffix(counter, "_pct") { // of several CPUs the mean
		parts = float64(max(len(all), 1))
	}
	for _, s := range all {
		every = time.Duration(s.EveryNs)
		for _, x := range s.Samples {
			sums[x.EndedAt] += x.Value / parts
		}
	}
	for at, v := range sums {
		x := at.Add(-every / 2).Sub(zero).Seconds()
		if x >= 0 && x <= width && !math.IsNaN(v) && !math.IsInf(v, 0) {
			ps = append(ps, draw.Point{X: x, Y: v})
		}
	}
	slices.SortFunc(ps, func(a, b draw.Point) int {
		if a.X < b.X {
			return -1
		}
		return 1
	})
	return series.Thin(ps)
}

// runLine returns the line that marks the runs on the axis.
func (b guestOrHost) runLine(zero time.Time) draw.Line {
	l := draw.Line{Style: 3, Bare: true}
	for _, r := range b.runs[:min(len(b.runs), result.MaxCells)] {
		begin, end := r.begin.Sub(zero).Seconds(), r.end.Sub(zero).Seconds()
		l.Points = append(l.Points, draw.Point{X: begin, Y: 0}, draw.Point{X: end, Y: 0}, draw.Point{X: end, Y: math.NaN()})
	}
	return l
}

// unwatched returns the hypervisor counters that were not read.
func unwatched(d *measure.Document) (all []measure.NotChecked) {
	if inventory.Is(d) {
		return nil
	}
	for _, v := range d.Inventories {
		for _, n := range v.NotChecked {
			if n.CountersOf() != nil {
				all = append(all, n)
			}
		}
	}
	return all
}
