package report

import (
	"fmt"
	"slices"

	"thru/internal/unit"
)

// Columns of connections beside each other.
const (
	figureWidth = 20 // names of the figures
	connWidth   = 14 // least of a connection: fewer are shown where there is no room
)

// captured prints what the packets show of each flow that was captured. Of files
// the handshake comes first.
func (p *printer) captured(all []packets, files bool) {
	for _, c := range all {
		title := "what the packets show"
		if c.Way != "" {
			title += ", " + c.Way
		}
		fmt.Fprintf(p, "\n%s\n", p.Paint(bold, title))
		places := [][]row{c.Captures, c.Opening}
		if files {
			slices.Reverse(places)
		}
		p.named(slices.Concat(places...))
		p.connections(c.Conns)
		p.named(c.Crossing)
	}
}

func (p *printer) named(rows []row) {
	for _, r := range rows {
		p.Wrap("", nameWidth, "  "+r.Name, r.Value)
	}
}

// connections prints one connection in a line for each subject, and more of
// them in columns.
func (p *printer) connections(t connTable) {
	shown := min(len(t.Names), max(1, (p.Width-figureWidth)/connWidth))
	switch shown {
	case 0:
		return
	case 1:
		name := t.Names[0]
		if more := t.More + len(t.Names) - shown; more > 0 {
			name += ", and " + unit.Plural(more, "more connection")
		}
		p.Wrap("", nameWidth, "  connection", name)
		p.named(t.lines())
		return
	default:
		p.Wrap("", nameWidth, "  connections", t.Names[0]+" and others beside it")
		widths := []int{0, figureWidth - 4}
		for range shown {
			widths = append(widths, (p.Width-figureWidth)/shown-2)
		}
		p.Columns(widths, append([]string{"", ""}, t.Short[:shown]...))
		for _, r := range t.Rows {
			p.Columns(widths, append([]string{"", r.Label()}, r.Values[:shown]...))
		}
	}
	if more := t.More + len(t.Names) - shown; more > 0 {
		p.Wrap("", nameWidth, " ", "and "+unit.Plural(more, "more connection"))
	}
}
