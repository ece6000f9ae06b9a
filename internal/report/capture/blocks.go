package capture

import (
	"fmt"
	"slices"

	"thru/internal/doc"
	"thru/internal/unit"
)

// Blocks returns the findings of the captures. A terminal shows them in one list, to which more is appended.
func Blocks(all []Packets, more ...doc.Row) (out []doc.Block) {
	for _, p := range all {
		rows, single := slices.Concat(p.Opening, p.Captures), p.Conns.single()
		short := rows
		if len(single.Rows) > 0 {
			short = slices.Concat(rows, []doc.Row{{Name: "connection", Value: p.Conns.Names[0]}}, single.Rows)
		}
		body := []doc.Block{doc.OnTerminal(doc.Pairs{Rows: slices.Concat(short, p.Crossing, more)}), doc.OnPages(doc.Pairs{Name: "Captures", Rows: rows},
			doc.SideBySide{Body: []doc.Block{single, doc.Pairs{Name: "Between the two captures", Rows: p.Crossing}}})}
		if len(p.Conns.Names) > 1 {
			short := p.Conns.table(p.Conns.Short)
			short.Caption += ", the first " + p.Conns.Names[0]
			body = append(body, doc.OnPages(p.Conns.table(p.Conns.Names)), doc.OnTerminal(short))
		}
		drawn := unit.Mapped(p.Traced, traced.details)
		out = append(out, doc.Section{Title: "Packet analysis" + doc.Prefixed(", ", p.Direction), Named: true, Body: append(body, doc.OnScreen(drawn...))})
	}
	return out
}

// single returns the figures of a single connection; empty for several.
func (t connTable) single() doc.Pairs {
	if len(t.Names) != 1 {
		return doc.Pairs{}
	}
	return doc.Pairs{Name: "Connection " + t.Names[0], Rows: t.lines()}
}

// table returns a table with a column for each connection.
func (t connTable) table(names []string) doc.Table {
	g := doc.Table{Caption: "Connections", Fit: true, Columns: []doc.Column{{Name: "figure", Least: 14}}}
	for _, n := range names {
		g.Columns = append(g.Columns, doc.Column{Name: n, Least: 12})
	}
	for _, r := range t.Rows {
		row := []string{r.Label()}
		for _, v := range r.Values {
			row = append(row, doc.OrDash(v))
		}
		g.Rows = append(g.Rows, row)
	}
	if t.More > 0 {
		g.More = fmt.Sprintf("and %d more in the JSON document", t.More)
	}
	return g
}

// details returns a connection over time.
func (t traced) details() doc.Block {
	var charts []doc.Chart
	if t.Chart != nil {
		charts = append(charts, *t.Chart)
	}
	in := ""
	if t.In != "" {
		in = ", from " + t.In
	}
	return doc.Details{Title: t.Name + " over time" + in, Open: t.Open, Body: []doc.Block{doc.SideBySide{Body: []doc.Block{
		doc.Charts{Charts: charts}, t.Counts}}, doc.Details{Title: "Marked packets", Body: []doc.Block{t.Marks}}}}
}
