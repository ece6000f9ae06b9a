package short

import (
	"slices"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/report"
	"thru/internal/report/result"
	"thru/internal/stat"
	"thru/internal/unit"
)

// leastColumn is the minimum width of a direction's column.
const leastColumn = 16

// figure is a row of the table: its name, and its value for a flow.
type figure struct {
	name string
	of   func(*report.Flow) string
}

// figures returns the directions side by side.
func figures(g *report.Gist) doc.Table {
	corner := ""
	if g.AtOnce {
		corner = "both at once"
	}
	t := doc.Table{Columns: []doc.Column{{Name: corner}}}
	for i := range g.Flows {
		t.Columns = append(t.Columns, doc.Column{Name: g.Flows[i].Name, Least: leastColumn})
	}
	shown := rows()
	if len(g.Why) == len(g.Flows) { // each finding has its direction: the last row would repeat it
		shown = shown[:len(shown)-1]
	}
	for _, f := range shown {
		row := []string{f.name}
		for i := range g.Flows {
			row = append(row, doc.OrDash(f.of(&g.Flows[i])))
		}
		if slices.ContainsFunc(row[1:], func(s string) bool { return s != "-" }) {
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}

func rows() []figure {
	return []figure{
		{"capacity", func(f *report.Flow) string { return capacity(f.Cell) }},
		{"goodput", func(f *report.Flow) string { return rate(f.Cell, false) }},
		{"requests", func(f *report.Flow) string { return rate(f.Cell, true) }},
		{"latency", func(f *report.Flow) string { return latency(f.Cell.Latency) }},
		{"under load", func(f *report.Flow) string {
			if u := f.Cell.UnderLoad; u != nil {
				return latency(u.Loaded)
			}
			return ""
		}},
		{"lost", func(f *report.Flow) string { return lost(f.Cell.Datagrams) }},
		{"CPU", func(f *report.Flow) string { return cpu(f.Cell.SenderCPU, f.Cell.From == f.Cell.To) }},
		{"CPU, sender", func(f *report.Flow) string { return cpu(f.Cell.SenderCPU, f.Cell.From != f.Cell.To) }},
		{"CPU, receiver", func(f *report.Flow) string { return cpu(f.Cell.ReceiverCPU, f.Cell.From != f.Cell.To) }},
		{"RTT", func(f *report.Flow) string { return result.RTTText(f.Cell.RTTIdle, f.Cell.RTTLoaded) }},
		{"retransmitted", func(f *report.Flow) string {
			if n := f.Cell.Retransmits; n != nil {
				return unit.Counted(*n, "segment")
			}
			return ""
		}},
		{"limited by", func(f *report.Flow) string { return f.Limit }},
	}
}

// rate returns "956 Mb/s (100%), single run".
func rate(c *measure.Cell, requests bool) string {
	f := stat.MainFigure(c)
	if result.Asks(c) != requests {
		return ""
	}
	if f == nil {
		return "not measured"
	}
	s, runs := stat.FigureText(c), "single run"
	if c.Ceiling != nil && c.Goodput != nil && c.Search == nil { // the share of a search is that of its capacity
		s += " " + doc.Bracket(unit.Percent(c.Ceiling.SharePct))
	}
	if c.Search != nil {
		runs = "mean of the search"
	}
	if f.Runs > 1 {
		runs = unit.Plural(f.Runs, "run")
	}
	if f.Stable != nil && !*f.Stable {
		runs += ", not stable"
	}
	return doc.Join(s, runs)
}

// capacity returns what a search has found: its best second; the goodput is the mean of the whole search.
func capacity(c *measure.Cell) string {
	if !result.HasCapacity(c) {
		return ""
	}
	s := unit.Rate(*c.Search.CapacityBps)
	if c.Ceiling != nil {
		s += " " + doc.Bracket(unit.Percent(c.Ceiling.SharePct))
	}
	return doc.Join(s, "best second")
}

func latency(l *measure.Latency) string {
	if l == nil {
		return ""
	}
	return "p50 " + doc.ShortTime(l.P50) + ", p99 " + doc.ShortTime(l.P99)
}

func lost(d *measure.DatagramFigures) string {
	if d == nil {
		return ""
	}
	return unit.Percent(d.LossPct) + doc.Known(", jitter %s", d.JitterNs, doc.ShortTime)
}

// cpu returns the load of the machine, and whether other work causes it.
func cpu(f *measure.CPUFigure, shown bool) string {
	switch {
	case f == nil || !shown:
		return ""
	case f.OtherCores != nil && *f.OtherCores > f.Cores && *f.OtherCores >= 0.5:
		return unit.Percent(f.Pct) + ", mostly other work"
	}
	return unit.Percent(f.Pct) + ", busiest core " + unit.Percent(f.MaxCorePct)
}
