package ladder

import (
	"fmt"
	"strconv"
	"strings"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/report/result"
	"thru/internal/unit"
)

// Answer names the best cell of the first ladder.
func Answer(d *measure.Document) string {
	if d.Command != "ladder" {
		return ""
	}
	all := All(d)
	if len(all) == 0 || all[0].Best == nil {
		return ""
	}
	l := all[0]
	c := l.Best.Source
	s := fmt.Sprintf("%s with %s and the %s window: the highest rate of %s",
		unit.Rate(c.Goodput.Value), unit.Plural(c.Streams, "stream"), result.WindowName(c.Window), l.Path)
	if d.Error != nil {
		s += " before the ladder ended early"
	}
	return s
}

// Blocks returns the cells of each ladder as a matrix of streams by window.
func Blocks(all []Ladder) (out []doc.Block) {
	for i := range all {
		l := &all[i]
		cells := cellTable(l)
		if cells.Caption = "Each cell"; i == 0 {
			cells.Caption += "; all figures are in the CSV and JSON documents"
		}
		out = append(out, doc.Section{Title: l.Path, Named: true, Body: []doc.Block{doc.Charts{Charts: charts(l, i)}, l.Table(i == 0),
			doc.Details{Title: "Retransmissions, round trips and causes of each cell", Body: []doc.Block{cells}}, doc.List{Lines: l.Notes, Notes: true}}})
	}
	return out
}

// Table returns a group of columns for each window. The first of several tables explains the marks.
func (l *Ladder) Table(first bool) doc.Table {
	caption := ""
	if first {
		caption = "Throughput, and CPU of the whole machine. * highest; ~ not significantly lower"
		if l.Best != nil && l.Best.Source.Goodput.Runs < 2 {
			caption = "Throughput, and CPU of the whole machine. * highest; ~ may be as high (one run)"
		}
	}
	t := doc.Table{Caption: caption, Columns: []doc.Column{{Name: "streams", Right: true}}, Tone: bestTone}
	for _, w := range l.Windows {
		group := result.WindowName(w) + " window"
		t.Columns = append(t.Columns, doc.Column{Group: group, Name: l.Unit.Name, Right: true}, doc.Column{Group: group, Name: "range", Right: true},
			doc.Column{Group: group, Name: "CPU snd/rcv", Right: true}, doc.Column{Group: group, Name: "published, Gb/s", Right: true, Wide: true})
	}
	for _, n := range l.Streams {
		row := []string{fmt.Sprint(n)}
		for _, w := range l.Windows {
			r := l.at(n, w)
			if r == nil {
				r = &rung{Value: "-"}
			}
			row = append(row, r.Value+r.Mark(), doc.OrDash(r.Range), doc.OrDash(r.CPU), doc.OrDash(r.Published))
		}
		t.Rows = append(t.Rows, row)
	}
	return t.WithoutEmpty()
}

func bestTone(cell string) doc.Tone {
	if strings.HasSuffix(cell, "*") {
		return doc.ToneGood
	}
	return doc.ToneNone
}

// cellTable returns the other figures of each cell of a ladder, one row for each.
func cellTable(l *Ladder) doc.Table {
	t := doc.Table{Figures: true, Columns: doc.FigureColumns("streams", "window", "retransmits", "RTT idle", "loaded", "limited by")}
	duration := func(ns *int64) string { return doc.OrDash(doc.Known("%s", ns, unit.Duration)) }
	for _, r := range l.Rungs {
		c := r.Source
		limit := "-"
		if f := result.Binding(c); f != nil {
			limit = doc.Clean(f.Cause) + " (" + doc.Clean(f.Confidence) + ")"
		}
		t.Rows = append(t.Rows, []string{strconv.Itoa(c.Streams), result.WindowName(c.Window),
			doc.OrDash(doc.Known("%s", c.Retransmits, unit.Count)), duration(c.RTTIdle), duration(c.RTTLoaded), limit})
	}
	return t
}
