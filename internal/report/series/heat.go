package series

import (
	"fmt"
	"html"
	"maps"
	"math"
	"slices"
	"strings"

	"thru/internal/doc"
	"thru/internal/doc/draw"
	"thru/internal/measure"
	"thru/internal/report/result"
	"thru/internal/unit"
)

// heatmap is one quantity of several things over time: a row for each thing, a column for each second.
type heatmap struct {
	ID      string
	Title   string
	Unit    string // of the figures at the end of the rows
	Most    float64
	Seconds float64 // at the right edge
	Rows    []heatRow
	More    string // what the map omits
}

// heatRow is one core or queue. A second without a value is NaN.
type heatRow struct {
	Name   string
	Values []float64
}

// Limits of a heat map, so that a page stays small.
const (
	maxHeatRows    = 32
	maxHeatColumns = 60
	maxHeatCells   = 2 // flows that are drawn
	heatLevels     = 9
)

// Geometry of a heat map in SVG units: row names on the left, means on the right.
const (
	heatLeft   = 84.0
	heatRight  = 76.0
	heatHeight = 20.0 // height of a row
	heatTop    = 26.0
	heatBottom = 40.0
)

// Heatmaps draws CPU and queues of both ends of the first main cells; for cells that ran at the same time
// each host once.
func Heatmaps(cells []result.Cell) (all []doc.Chart) {
	type hostThen struct {
		group int
		host  string
		kind  int
	}
	drawn, shown := 0, map[hostThen]bool{}
	for _, c := range cells {
		if !c.Main() || drawn == maxHeatCells {
			continue
		}
		before := len(all)
		for i, kind := range []func(*measure.Evidence, string) heatmap{coreHeat, queueHeat, interruptHeat} {
			for _, e := range heatEnds(c.Source) { // charts of one kind are side by side
				place := "the " + result.EndName(e) + " " + doc.Clean(e.EndPoint)
				if c.Source.From == c.Source.To || c.Source.AtOnce > 1 {
					place = doc.Clean(e.EndPoint)
				}
				then := hostThen{c.Source.Group, e.EndPoint, i}
				if c.Source.AtOnce > 1 && shown[then] {
					continue
				}
				shown[then] = true
				if h := kind(e, place); len(h.Rows) > 0 && len(h.Rows[0].Values) > 1 {
					h.ID = fmt.Sprintf("heat%d", len(all))
					all = append(all, h.chart(c.Name))
				}
			}
		}
		if len(all) > before {
			drawn++
		}
	}
	return all
}

// heatEnds returns the ends of the flow shown; only one if both are one host.
func heatEnds(c *measure.Cell) (ends []*measure.Evidence) {
	sender, receiver := result.ShownFlow(c)
	if sender != nil {
		ends = append(ends, sender)
	}
	if receiver != nil && (sender == nil || c.From != c.To) {
		ends = append(ends, receiver)
	}
	return ends
}

// Uncounted names the ends whose packets per queue are unknown, and why.
func Uncounted(cells []result.Cell) (all []string) {
	for _, c := range cells {
		if !c.Main() {
			continue
		}
		if result.IsLocalhost(c.Source) {
			return nil // localhost has no queues
		}
		for _, e := range heatEnds(c.Source) {
			if len(e.PerSec) == 0 || len(queueHeat(e, "").Rows) > 0 {
				continue
			}
			s := "Packets of each queue at the " + result.EndName(e) + " " + doc.Clean(e.EndPoint) + ": " + doc.NotChecked + ", " + queueReason(e)
			all = append(all, s)
		}
		return all // one flow covers all
	}
	return nil
}

// queueReason returns why an end's driver reports no queues.
func queueReason(e *measure.Evidence) string {
	for _, m := range e.Missing {
		if measure.IsPart(m.Fact, "interface") {
			return doc.Reason(m.Why)
		}
	}
	return "the driver does not count them"
}

// coreHeat returns the load of each core of an end's host.
func coreHeat(e *measure.Evidence, place string) heatmap {
	h := heatmap{Title: "CPU use of each core at " + place, Unit: "%", Most: 100}
	h.gather(e, func(s *measure.HostSpan, set func(int, string, float64)) {
		for _, c := range s.CPUs {
			set(c.Core, fmt.Sprintf("CPU %d", c.Core), c.Busy())
		}
	})
	return h
}

// queueHeat returns the packets of each queue, if the driver counts them.
func queueHeat(e *measure.Evidence, place string) heatmap {
	h := heatmap{Title: "Packets/s of each queue at " + place, Unit: "/s"}
	h.gather(e, func(s *measure.HostSpan, set func(int, string, float64)) {
		if s.NIC == nil || s.Span <= 0 {
			return
		}
		for name, n := range s.NIC.Driver {
			if direction, q, ok := queueOf(name); ok {
				key := 2 * q
				if direction == "tx" {
					key++
				}
				set(key, fmt.Sprintf("%s %d", direction, q), float64(n)*result.Second/float64(s.Span))
			}
		}
	})
	return h
}

// interruptHeat returns the interface's interrupts by core.
func interruptHeat(e *measure.Evidence, place string) heatmap {
	h := heatmap{Title: "Interrupts/s of the interface by core, at " + place, Unit: "/s"}
	h.gather(e, func(s *measure.HostSpan, set func(int, string, float64)) {
		for _, i := range s.IRQs {
			if s.Span > 0 {
				set(i.Core, fmt.Sprintf("CPU %d", i.Core), float64(i.Count)*result.Second/float64(s.Span))
			}
		}
	})
	return h
}

// queueOf parses direction and number of a queue from the name of its packet counter.
func queueOf(counter string) (direction string, q int, ok bool) {
	for _, direction := range []string{"rx", "tx"} {
		for _, form := range []string{"_queue_%d_packets", "-%d.packets", "%d_packets", "_%d_packets"} {
			if _, err := fmt.Sscanf(counter, direction+form, &q); err == nil && fmt.Sprintf(direction+form, q) == counter && q >= 0 && q < 1<<16 {
				return direction, q, true
			}
		}
	}
	return "", 0, false
}

// gather fills the rows second by second, in at most maxHeatColumns columns: it averages adjacent seconds if
// there are more. Rows are in the order of their keys.
func (h *heatmap) gather(e *measure.Evidence, read func(*measure.HostSpan, func(key int, name string, v float64))) {
	type sum struct{ total, n float64 }
	group := max(1, (len(e.PerSec)+maxHeatColumns-1)/maxHeatColumns)
	columns := (len(e.PerSec) + group - 1) / group
	sums, names := map[int][]sum{}, map[int]string{}
	for i := range e.PerSec {
		s := &e.PerSec[i]
		h.Seconds = max(h.Seconds, float64(s.At+s.Span)/result.Second)
		read(s, func(key int, name string, v float64) {
			if sums[key] == nil {
				sums[key], names[key] = make([]sum, columns), name
			}
			if x := &sums[key][i/group]; !math.IsNaN(v) && !math.IsInf(v, 0) {
				x.total, x.n = x.total+v, x.n+1
			}
		})
	}
	keys := slices.Sorted(maps.Keys(sums))
	for _, k := range keys {
		r := heatRow{Name: names[k]}
		for _, x := range sums[k] {
			r.Values = append(r.Values, x.total/x.n) // NaN if there is none
		}
		h.Rows = append(h.Rows, r)
	}
	h.busiest()
	if h.Most == 0 {
		for _, r := range h.Rows {
			h.Most = max(h.Most, greatestOf(r.Values))
		}
	}
}

// busiest keeps the rows with the highest means, in order.
func (h *heatmap) busiest() {
	if len(h.Rows) <= maxHeatRows {
		return
	}
	h.More = fmt.Sprintf(", the busiest %d of %d", maxHeatRows, len(h.Rows))
	means := unit.Mapped(h.Rows, heatRow.mean)
	slices.Sort(means)
	bar := means[len(means)-maxHeatRows]
	h.Rows = slices.DeleteFunc(h.Rows, func(r heatRow) bool { return r.mean() < bar })
	h.Rows = h.Rows[:min(len(h.Rows), maxHeatRows)]
}

// mean returns the mean of the seconds with a value; 0 if there is none.
func (r heatRow) mean() float64 {
	total, n := 0.0, 0.0
	for _, v := range r.Values {
		if !math.IsNaN(v) {
			total, n = total+v, n+1
		}
	}
	return total / max(n, 1)
}

func greatestOf(values []float64) (most float64) {
	for _, v := range values {
		if v > most {
			most = v
		}
	}
	return most
}

// level returns the level of a value on the scale, 0 to heatLevels.
func (h *heatmap) level(v float64) int {
	if math.IsNaN(v) || !(h.Most > 0) {
		return 0
	}
	return int(math.Round(min(max(v/h.Most, 0), 1) * heatLevels))
}

// print formats the figure of a row.
func (h *heatmap) print(v float64) string {
	if h.Unit == "%" {
		return fmt.Sprintf("%.0f%%", min(max(v, 0), 1e6))
	}
	for _, s := range []doc.Scale{{Div: 1e9, Name: "G"}, {Div: 1e6, Name: "M"}, {Div: 1e3, Name: "k"}} {
		if v >= 0.9995*s.Div {
			return doc.Digits(v/s.Div) + s.Name + h.Unit
		}
	}
	return doc.Digits(v) + h.Unit
}

// chart draws the map. It merges adjacent cells of one level, and each level is one SVG path.
func (h *heatmap) chart(of string) doc.Chart {
	height := heatTop + float64(len(h.Rows))*heatHeight + heatBottom
	right := draw.Width - heatRight
	var c draw.Canvas
	c.Add(`<svg viewBox="0 0 %.0f %.0f" role="img" aria-labelledby="%s-t %s-d">`, draw.Width, height, h.ID, h.ID)
	c.Add(`<title id="%s-t">%s</title><desc id="%s-d">%s</desc>`, h.ID, html.EscapeString(h.Title+", "+of), h.ID, html.EscapeString(h.words()))
	c.Text("tick", "end", draw.Width, heatTop-8, "mean")
	for level, path := range h.paths(right) {
		if path != "" {
			c.Add(`<path class="heat h%d" d="%s"/>`, level, path)
		}
	}
	for i, r := range h.Rows {
		y := heatTop + float64(i)*heatHeight + heatHeight - 5
		c.Text("tick", "end", heatLeft-8, y, r.Name)
		c.Text("tick", "end", draw.Width, y, h.print(r.mean()))
	}
	bottom := height - heatBottom
	ticks := draw.NiceTicks(h.Seconds, 6)
	for _, t := range ticks {
		if t.At <= h.Seconds {
			c.Text("tick", "middle", draw.Project(t.At, 0, h.Seconds, heatLeft, right), bottom+18, t.Label)
		}
	}
	c.Text("axis", "middle", (heatLeft+right)/2, bottom+36, "time, s")
	c.Add("</svg>")
	return doc.Chart{SVG: doc.Markup(c.String()), Caption: h.Title + h.More + ".", Legend: h.legend()}
}

// paths returns the SVG path of each level.
func (h *heatmap) paths(right float64) []string {
	paths := make([]strings.Builder, heatLevels+1)
	for i, r := range h.Rows {
		wide := (right - heatLeft) / float64(max(len(r.Values), 1))
		for j := 0; j < len(r.Values); {
			n := 1
			for j+n < len(r.Values) && h.level(r.Values[j+n]) == h.level(r.Values[j]) && math.IsNaN(r.Values[j+n]) == math.IsNaN(r.Values[j]) {
				n++
			}
			if !math.IsNaN(r.Values[j]) {
				w := wide * float64(n)
				fmt.Fprintf(&paths[h.level(r.Values[j])], "M%.1f %.0fh%.1fv%.0fh-%.1fz", heatLeft+wide*float64(j), heatTop+float64(i)*heatHeight+1, w, heatHeight-2, w)
			}
			j += n
		}
	}
	all := make([]string, len(paths))
	for i := range paths {
		all[i] = paths[i].String()
	}
	return all
}

// legend returns the scale, from zero to the maximum.
func (h *heatmap) legend() (all []doc.Legend) {
	for _, l := range []int{0, heatLevels / 3, 2 * heatLevels / 3, heatLevels} {
		k := fmt.Sprintf(`<svg class="key" viewBox="0 0 34 16" aria-hidden="true"><path class="heat h%d" d="M1 1h32v14h-32z"/></svg>`, l)
		all = append(all, doc.Legend{Key: doc.Markup(k), Name: h.print(h.Most * float64(l) / heatLevels)})
	}
	return all
}

// words describes the map for readers without the picture: the mean of each row.
func (h *heatmap) words() string {
	var all []string
	for _, r := range h.Rows {
		all = append(all, r.Name+" "+h.print(r.mean())+" on average, max "+h.print(greatestOf(r.Values)))
	}
	return strings.Join(all, "; ") + " over " + unit.Duration(int64(min(h.Seconds, 1e9)*result.Second))
}
