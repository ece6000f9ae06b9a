package report

import (
	"fmt"
	"strings"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/report/inventory"
	"thru/internal/stat"
	"thru/internal/unit"
)

// Answer is the result as a person would say it, and what binds it.
func Answer(d *measure.Document) string { return strings.Join(answers(d), "; ") }

// answers are the lines of the answer: two where the directions are held back
// by different causes, the worse one first.
func answers(d *measure.Document) []string {
	switch {
	case isTuning(d):
		return tuningAnswers(d)
	case isTransfer(d):
		return transferAnswers(d)
	case inventory.Is(d):
		return inventory.Answers(d)
	}
	if all := fleetAnswers(d); all != nil {
		return all
	}
	if s := ladderAnswer(d); s != "" {
		return []string{s}
	}
	if isDisk(d) {
		return diskAnswers(d)
	}
	if isCheck(d) {
		return []string{gatesAnswer(d)}
	}
	if s := classesAnswer(d); s != "" {
		return []string{s}
	}
	first, back, others := mainCells(d)
	switch {
	case first == nil:
		if s := fileAnswer(d); s != "" {
			return []string{s}
		}
		return nil
	case back != nil && heldApart(d.Verdict, first, back):
		worse, other := worseFirst(first, back)
		return []string{sentence(d.Verdict, worse, nil, others), otherSentence(worse, other, d.Verdict)}
	}
	return []string{sentence(d.Verdict, first, back, others)}
}

// sentence is the answer of a cell and of the one back, with what binds them.
func sentence(v *measure.Verdict, first, back *measure.Cell, others int) string {
	s, why := "", reason(first, back)
	switch {
	case asks(first):
		s = requestsAnswer(first, back)
	case v != nil && first.Ceiling != nil:
		s = verdictAnswer(v, first, back) + verdictReason(v, first, back)
		why = ""
	case isUDP(first):
		s = amounts(first, back, unit.Rate)
	default:
		s = amounts(first, back, unit.Rate) + ", " + what(first)
	}
	s += losslessAnswer(first.Search) + underLoadAnswer(first.UnderLoad)
	if others > 0 {
		s += ", and " + unit.Plural(others, "more flow")
	}
	if isPartial(first) || back != nil && isPartial(back) {
		s += " (partial: it ended early)"
	}
	if why != "" {
		s += ": " + why
	}
	return s
}

// mainCells picks the cell to name first, the one the other way, and counts
// the rest. Cells measured beside the main ones, or to tell causes apart, are
// not part of the answer. Bulk data comes before requests, which may be there
// for its sake.
func mainCells(d *measure.Document) (first, back *measure.Cell, others int) {
	for i := range d.Cells {
		c := &d.Cells[i]
		switch {
		case c.Beside || isExperiment(c) || isGauge(d, c) || !stat.Measured(c) && !isHeld(c) && !isSentOnly(c):
		case first == nil:
			first = c
		case back == nil && asks(c) == asks(first) && c.From == first.To && c.To == first.From && c.Streams == first.Streams && c.Window == first.Window:
			back = c
		default:
			others++
		}
	}
	return first, back, others
}

// amounts says "48.9 Gb/s local -> peer, 47.1 Gb/s back", and of datagrams
// "912 Mb/s of UDP local -> peer, 0.00% lost".
func amounts(first, back *measure.Cell, print func(float64) string) string {
	s := print(amountOf(first))
	switch {
	case !stat.Measured(first):
		s = "no result"
	case hasCapacity(first):
		if first.Search.Rising {
			s = "at least " + s
		}
		s = "capacity " + s + " of UDP"
	case isUDP(first):
		s += " of UDP"
	}
	s += " " + pathName(first) + lostAnswer(first) + jitterAnswer(first)
	if back == nil {
		return s
	}
	if stat.Measured(back) {
		s += ", " + print(amountOf(back)) + " back" + lostAnswer(back)
	} else {
		s += ", no result back"
	}
	if back.Group == first.Group {
		s += " at the same time"
	}
	return s
}

// amountOf is what the answer says of a cell: its goodput, or of a search the
// capacity. Of a cell that came to no figure it is nothing.
func amountOf(c *measure.Cell) float64 {
	switch {
	case hasCapacity(c):
		return *c.Search.CapacityBps
	case c.Goodput == nil:
		return 0
	}
	return c.Goodput.Value
}

func hasCapacity(c *measure.Cell) bool { return c.Search != nil && c.Search.CapacityBps != nil }

// lostAnswer is ", 0.75% lost" of a cell of datagrams. A search loses on purpose.
func lostAnswer(c *measure.Cell) string {
	if c.Datagrams == nil || c.Search != nil {
		return ""
	}
	return ", " + lossPct(c.Datagrams) + " lost"
}

func jitterAnswer(c *measure.Cell) string {
	if c.Datagrams == nil || c.Datagrams.JitterNs == nil || c.Search != nil {
		return ""
	}
	return ", jitter " + doc.ShortTime(*c.Datagrams.JitterNs)
}

// losslessAnswer says "; 951 Mb/s without loss".
func losslessAnswer(s *measure.Search) string {
	switch {
	case s == nil:
		return ""
	case s.LosslessBps == nil || !s.IsConfirmed():
		return "; no rate without loss was confirmed"
	}
	return "; " + unit.Rate(*s.LosslessBps) + " without loss"
}

// requestsAnswer says "204 000 requests/s local -> peer, p50 4.8 µs, p99 6.1 µs".
func requestsAnswer(first, back *measure.Cell) string {
	s := stat.FigureText(first) + " " + pathName(first)
	if l := first.Latency; l != nil {
		ps := percentiles(l)
		last := ps[min(len(ps)-1, 2)] // p99, where there are enough for it
		s += ", p50 " + doc.ShortTime(l.P50)
		if len(ps) > 1 {
			s += ", p" + strings.TrimSuffix(last.name, "%") + " " + doc.ShortTime(last.ns)
		}
	}
	if back != nil {
		s += ", " + stat.FigureText(back) + " back"
	}
	return s
}

// underLoadAnswer says "; latency 200 µs idle, 4.1 ms under load (+3.9 ms)".
func underLoadAnswer(u *measure.UnderLoad) string {
	switch {
	case u == nil || u.Loaded == nil:
		return ""
	case u.Idle == nil:
		return "; latency " + doc.ShortTime(u.Loaded.P50) + " under load"
	}
	return "; latency " + doc.ShortTime(u.Idle.P50) + " idle, " + doc.ShortTime(u.Loaded.P50) + " under load" + addedAnswer(u)
}

func addedAnswer(u *measure.UnderLoad) string {
	if u.AddedNs == nil {
		return ""
	}
	return " (" + doc.Join(addedText(*u.AddedNs), doc.Prefixed("grade ", u.Grade)) + ")"
}

// verdictAnswer says "956 of 1000 Mb/s local -> peer (100% of what MTU 1500 allows): pass".
func verdictAnswer(v *measure.Verdict, first, back *measure.Cell) string {
	allows := fmt.Sprintf("%s of what MTU %d allows", unit.Percent(v.Share), first.Ceiling.MTU)
	return fmt.Sprintf("%s (%s): %s", amounts(first, back, ofLink(first)), allows, verdictWord(v))
}

// ofLink prints the first rate as a part of the link's, and others in the same unit.
func ofLink(c *measure.Cell) func(float64) string {
	in, link := doc.ScaleFor(amountOf(c)), float64(c.Ceiling.LinkBps)
	if amountOf(c) == 0 {
		in = doc.ScaleFor(link)
	}
	named := false
	return func(bps float64) string {
		switch {
		case named && doc.ScaleFor(bps) == in: // it needs neither link nor unit again
			return in.Number(bps)
		case named:
			return unit.Rate(bps)
		}
		named = true
		if link >= 1e4*in.Div {
			return unit.Rate(bps) + " of " + doc.Plain(link/doc.ScaleFor(link).Div) + " " + doc.ScaleFor(link).Name
		}
		return in.Number(bps) + " of " + doc.Plain(link/in.Div) + " " + in.Name
	}
}

func verdictWord(v *measure.Verdict) string {
	switch {
	case v.Pass:
		return "pass"
	case v.Inconclusive:
		return "inconclusive"
	}
	return "fail"
}

// ladderAnswer names the best cell of the first ladder.
func ladderAnswer(d *measure.Document) string {
	if d.Command != "ladder" {
		return ""
	}
	all := ladders(d)
	if len(all) == 0 || all[0].Best == nil {
		return ""
	}
	l := all[0]
	c := l.Best.Source
	s := fmt.Sprintf("%s with %s at the %s window: the most %s carried",
		unit.Rate(c.Goodput.Value), unit.Plural(c.Streams, "stream"), windowName(c.Window), l.Path)
	if d.Error != nil {
		s += " before the ladder broke off"
	}
	return s
}
