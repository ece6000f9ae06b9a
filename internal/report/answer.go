package report

import (
	"fmt"

	"thru/internal/measure"
	"thru/internal/unit"
)

// answer is the first line of a report, as a person would say it.
func answer(d *measure.Document) string {
	if d.Command == "ladder" {
		if s := ladderAnswer(d); s != "" {
			return s
		}
	}
	first, back, others := mainCells(d)
	if first == nil {
		return ""
	}
	s := ""
	if d.Verdict != nil && first.Ceiling != nil {
		s = verdictAnswer(d.Verdict, first, back)
	} else {
		s = amounts(first, back, unit.Rate) + ", " + what(first)
	}
	if others > 0 {
		s += ", and " + count(others, "more flow")
	}
	if isPartial(first) || back != nil && isPartial(back) {
		s += " (partial: it ended early)"
	}
	return s
}

// mainCells picks the cell to name first, the one the other way, and counts
// the rest. Cells measured beside the main ones are not part of the answer.
func mainCells(d *measure.Document) (first, back *measure.Cell, others int) {
	for i := range d.Cells {
		c := &d.Cells[i]
		switch {
		case c.Beside || c.Goodput == nil:
		case first == nil:
			first = c
		case back == nil && c.From == first.To && c.To == first.From && c.Streams == first.Streams && c.Window == first.Window:
			back = c
		default:
			others++
		}
	}
	return first, back, others
}

// amounts says "48.9 Gb/s local -> peer, 47.1 Gb/s back".
func amounts(first, back *measure.Cell, print func(float64) string) string {
	s := print(first.Goodput.Value) + " " + pathName(first)
	if back == nil {
		return s
	}
	s += ", " + print(back.Goodput.Value) + " back"
	if back.Group == first.Group {
		s += " at the same time"
	}
	return s
}

// verdictAnswer says "956 of 1000 Mb/s local -> peer (100% of what MTU 1500 allows): pass".
func verdictAnswer(v *measure.Verdict, first, back *measure.Cell) string {
	link := float64(first.Ceiling.LinkBps)
	in := scaleFor(first.Goodput.Value)
	named := false
	amount := amounts(first, back, func(bps float64) string {
		if named { // the second figure needs neither link nor unit again
			return in.number(bps)
		}
		named = true
		return in.number(bps) + " of " + plain(link/in.div) + " " + in.name
	})
	allows := fmt.Sprintf("%s of what MTU %d allows", unit.Percent(v.Share), first.Ceiling.MTU)
	return fmt.Sprintf("%s (%s): %s", amount, allows, verdictWord(v))
}

func verdictWord(v *measure.Verdict) string {
	if v.Pass {
		return "pass"
	}
	return "fail"
}

// ladderAnswer names the best cell of the first ladder.
func ladderAnswer(d *measure.Document) string {
	all := ladders(d)
	if len(all) == 0 || all[0].Best == nil {
		return ""
	}
	l := all[0]
	c := l.Best.Source
	s := fmt.Sprintf("%s with %s at the %s window: the most %s carried",
		unit.Rate(c.Goodput.Value), count(c.Streams, "stream"), windowName(c.Window), l.Path)
	if d.Error != nil {
		s += " before the ladder broke off"
	}
	return s
}
