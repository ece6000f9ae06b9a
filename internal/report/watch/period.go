package watch

import (
	"fmt"
	"strings"
	"time"

	"thru/internal/doc"
	"thru/internal/unit"
	"thru/internal/watch/record"
)

// exact is how begins and ends are printed: the zone tells the two hours of a night apart in which clocks are set back.
const exact = "2006-01-02 15:04:05.000 MST"

// Period returns what a watch knows of its pairs in a time, for all output formats.
func Period(p record.Period) doc.Report {
	zone := p.Begin.Location()
	r := doc.Report{Command: "thru report --watch", Tone: doc.ToneGood, When: p.Begin.Format("2006-01-02") + " to " + p.End.Add(-1).In(zone).Format("2006-01-02")}
	outages, missed, alarms := 0, 0, map[string]bool{}
	table := doc.Table{Caption: "Pairs", Columns: doc.FigureColumns("Pair", "Objectives missed", "Availability", "Outages", "Down", "Loss", "RTT p50", "RTT p99", "Goodput p50", "Goodput p5"), Fit: true}
	var body []doc.Block
	for _, x := range p.Pairs {
		outages += len(x.Outages) + x.MoreOutages
		bad := missedOf(x.Goals)
		missed += bad
		for _, a := range x.Alarms {
			alarms[a.ID] = true
		}
		table.Rows = append(table.Rows, append([]string{doc.Clean(pair(x.Pair)), fmt.Sprintf("%d of %d", bad, len(x.Goals))}, figuresOf(x.Figured)...))
		body = append(body, pairSection(x, zone))
	}
	r.Answer = fmt.Sprintf("%s: %s, %s missed, %s", unit.Plural(len(p.Pairs), "watched path"), unit.Plural(outages, "outage"), unit.Plural(missed, "objective"), unit.Plural(len(alarms), "alarm"))
	switch {
	case missed > 0:
		r.Tone = doc.ToneBad
	case outages+len(alarms) > 0:
		r.Tone = doc.ToneWarn
	}
	first, last := p.Begin.Format("MST"), p.End.In(zone).Format("MST")
	if first != last {
		first += " and " + last
	}
	r.Body = append([]doc.Block{table}, body...)
	r.Body = append(r.Body, doc.List{Notes: true, Lines: []string{
		"Times and days are in local time (" + first + "); hours of objectives are those of UTC. A day that clocks make shorter or longer counts as long as it was.",
		"Availability: share of the judged time in which the path was not down. Time that was not measured, and maintenance, is not judged.",
		"Percentiles are those of turns: RTT and loss of each minute, goodput of each TCP test. The day under way is not counted.",
	}})
	return r
}

// missedOf returns the number of objectives that missed more than their error budget.
func missedOf(goals []record.Goal) int {
	return len(unit.Filtered(goals, func(g record.Goal) bool { return g.UsedPct > 100 }))
}

// figuresOf returns the figures of a pair, or of one of its days. What was not measured is empty.
func figuresOf(s record.Figured) []string {
	row := []string{"", fmt.Sprint(len(s.Outages) + s.MoreOutages), "", "", "", "", "", ""}
	if s.Availability != nil {
		row[0] = fmt.Sprintf("%.3f%%", 100**s.Availability)
	}
	if d := s.States.In(record.Down); d > 0 {
		row[2] = unit.Duration(int64(d))
	}
	if s.LossRatio != nil {
		row[3] = unit.Percent(100 * *s.LossRatio)
	}
	set := func(i int, m record.Metric, of func(record.Figure) float64) {
		if f, known := s.Figure(m); known {
			row[i] = Value(m, of(f))
		}
	}
	median := func(f record.Figure) float64 { return f.P50 }
	set(4, record.RTTMedian, median)
	set(5, record.RTT99, func(f record.Figure) float64 { return f.P99 })
	set(6, record.Goodput, median)
	set(7, record.Goodput, func(f record.Figure) float64 { return f.P5 })
	return row
}

// pairSection returns what is known of a pair.
func pairSection(x record.PairPeriod, zone *time.Location) doc.Section {
	var rows doc.Rows
	var states []string
	for _, s := range []record.State{record.Up, record.Degraded, record.Down, record.Refused, record.Deferred, record.NotMeasured} {
		if d := x.States.In(s); d > 0 {
			states = append(states, State(s, "")+" "+unit.Duration(int64(d)))
		}
	}
	rows.Add("Time", strings.Join(states, ", "))
	if d := x.Maintenance.All(); d > 0 {
		rows.Add("Maintenance", unit.Duration(int64(d)))
	}
	rows.Add("Probes", fmt.Sprintf("%s, %s lost", unit.Count(x.SentPackets), unit.Count(x.LostPackets)))
	figures := doc.Table{Caption: "Percentiles", Columns: doc.FigureColumns("Figure", "p5", "p50", "p95", "p99", "Turns")}
	for _, f := range x.Figures {
		figures.Rows = append(figures.Rows, []string{Metric(f.Metric), Value(f.Metric, f.P5), Value(f.Metric, f.P50), Value(f.Metric, f.P95), Value(f.Metric, f.P99), unit.Count(int64(f.Count))})
	}
	goals := doc.Table{Caption: "Objectives", Columns: doc.FigureColumns("Objective", "Kept", "Error budget used"), Tone: func(cell string) doc.Tone {
		if strings.HasSuffix(cell, overdrawn) {
			return doc.ToneBad
		}
		return doc.ToneNone
	}}
	for _, g := range x.Goals {
		kept, used := fmt.Sprintf("%d of %d %s", g.Kept, g.Of, g.Per), unit.Percent(g.UsedPct)
		if g.Per == record.PerTime {
			kept = fmt.Sprintf("%.3f%%", 100*float64(g.Kept)/float64(g.Of))
		}
		if g.UsedPct > 100 {
			used += overdrawn
		}
		goals.Rows = append(goals.Rows, []string{doc.Clean(g.Objective), kept, used})
	}
	outages := doc.Table{Caption: "Outages", Columns: []doc.Column{{Name: "From"}, {Name: "Until"}, {Name: "For", Right: true}, {Name: "Reason"}}}
	for _, o := range x.Outages {
		until, lasted := "not over", unit.Duration(int64(x.End.Sub(o.Begin)))
		if !o.End.IsZero() {
			until, lasted = o.End.In(zone).Format(exact), unit.Duration(int64(o.End.Sub(o.Begin)))
		}
		why := reasons()[o.Reason]
		if o.Maintenance {
			why += ", within maintenance"
		}
		outages.Rows = append(outages.Rows, []string{o.Begin.In(zone).Format(exact), until, lasted, why})
	}
	if x.MoreOutages > 0 {
		outages.More = fmt.Sprintf("and %d more", x.MoreOutages)
	}
	return doc.Section{Title: doc.Clean(pair(x.Pair)), Named: true, Body: []doc.Block{doc.Pairs{Rows: rows}, figures, goals, outages, alarmList(x.Alarms, zone), daysOf(x, zone)}}
}

// overdrawn marks an error budget of which more is used than there is.
const overdrawn = ", missed"

// alarmList returns the alarms of a pair, each with its cause.
func alarmList(alarms []record.Alarm, zone *time.Location) doc.Block {
	lines := unit.Mapped(alarms, func(a record.Alarm) string {
		end := "; not over"
		if !a.End.IsZero() {
			end = "; over at " + a.End.In(zone).Format(dated)
		}
		return doc.Clean(Alarm(a, time.Time{}, zone) + end)
	})
	return doc.Titled("Alarms", doc.List{Lines: lines})
}

// daysOf returns the days of a pair, with the length of those that do not have 24 hours.
func daysOf(x record.PairPeriod, zone *time.Location) doc.Block {
	table := doc.Table{Columns: doc.FigureColumns("Day", "Availability", "Outages", "Down", "Loss", "RTT p50", "RTT p99", "Goodput p50", "Goodput p5"), Figures: true}
	table.Columns[0].Right = true // as all of a table of figures
	for _, d := range x.Days {
		name := d.Begin.In(zone).Format("2006-01-02")
		if length := d.End.Sub(d.Begin); length != 24*time.Hour {
			name += " (" + unit.Duration(int64(length)) + ")"
		}
		table.Rows = append(table.Rows, append([]string{name}, figuresOf(d)...))
	}
	return doc.Details{Title: "Days", Body: []doc.Block{table}}
}
