package result

import (
	"fmt"
	"strings"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// Sentence returns the answer for a cell and the reverse one, with what limits them.
func Sentence(v *measure.Verdict, first, back *measure.Cell, others int) string {
	s, why := "", Reason(v, first, back)
	switch {
	case Asks(first):
		s = RequestsAnswer(first, back)
	case v != nil && first.Ceiling != nil:
		s = verdictAnswer(v, first, back) + doc.Prefixed(", ", why)
		why = ""
	case IsUDP(first):
		s = Amounts(first, back, unit.Rate)
	default:
		s = Amounts(first, back, unit.Rate) + ", " + What(first)
	}
	s += losslessAnswer(first.Search) + UnderLoadAnswer(first.UnderLoad)
	if others > 0 {
		s += ", and " + unit.Plural(others, "more flow")
	}
	if IsPartial(first) || back != nil && IsPartial(back) {
		s += " (partial: ended early)"
	}
	return s + doc.Prefixed(": ", why)
}

// MainCells returns the cell to name first, the one of the reverse direction, and the number of other cells.
// It ignores baselines, probes and experiments. Bulk data comes before requests, which may only measure its
// latency.
func MainCells(d *measure.Document) (first, back *measure.Cell, others int) {
	for i := range d.Cells {
		c := &d.Cells[i]
		switch {
		case c.Baseline || IsExperiment(c) || IsGauge(d, c) || !stat.Measured(c) && !IsLimited(c) && !IsSentOnly(c):
		case first == nil:
			first = c
		case back == nil && Asks(c) == Asks(first) && c.From == first.To && c.To == first.From && c.Streams == first.Streams && c.Window == first.Window:
			back = c
		default:
			others++
		}
	}
	return first, back, others
}

// Amounts returns "48.9 Gb/s local -> peer, 47.1 Gb/s back", and for datagrams "912 Mb/s of UDP local ->
// peer, 0.00% lost".
func Amounts(first, back *measure.Cell, print func(float64) string) string {
	s := print(AmountOf(first))
	switch {
	case !stat.Measured(first):
		s = "no result"
	case HasCapacity(first):
		if first.Search.Rising {
			s = "at least " + s
		}
		s = "capacity " + s + " of UDP"
	case IsUDP(first):
		s += " of UDP"
	}
	s += " " + PathName(first) + lostAnswer(first) + jitterAnswer(first)
	if back == nil {
		return s
	}
	if stat.Measured(back) {
		s += ", " + print(AmountOf(back)) + " back" + lostAnswer(back)
	} else {
		s += ", no result back"
	}
	if back.Group == first.Group {
		s += " at the same time"
	}
	return s
}

// AmountOf returns the rate of a cell for the answer: its goodput, or of a search the capacity; 0 without a
// figure.
func AmountOf(c *measure.Cell) float64 {
	switch {
	case HasCapacity(c):
		return *c.Search.CapacityBps
	case c.Goodput == nil:
		return 0
	}
	return c.Goodput.Value
}

// HasCapacity reports whether a search has found the capacity of the path.
func HasCapacity(c *measure.Cell) bool { return c.Search != nil && c.Search.CapacityBps != nil }

// lostAnswer returns ", 0.75% lost" for a cell of datagrams. A search causes loss on purpose, so it returns
// "".
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

// losslessAnswer returns "; 951 Mb/s without loss".
func losslessAnswer(s *measure.Search) string {
	switch {
	case s == nil:
		return ""
	case s.LosslessBps == nil || !s.IsConfirmed():
		return "; no rate without loss was confirmed"
	}
	return "; " + unit.Rate(*s.LosslessBps) + " without loss"
}

// RequestsAnswer returns "204 000 requests/s local -> peer, p50 4.8 µs, p99 6.1 µs".
func RequestsAnswer(first, back *measure.Cell) string {
	s := stat.FigureText(first) + " " + PathName(first)
	if l := first.Latency; l != nil {
		ps := Percentiles(l)
		last := ps[min(len(ps)-1, 2)] // p99, if there are enough requests
		s += ", p50 " + doc.ShortTime(l.P50)
		if len(ps) > 1 {
			s += ", p" + strings.TrimSuffix(last.name, "%") + " " + doc.ShortTime(last.NS)
		}
	}
	if back != nil {
		s += ", " + stat.FigureText(back) + " back"
	}
	return s
}

// UnderLoadAnswer returns "; latency 200 µs idle, 4.1 ms under load (+3.9 ms)".
func UnderLoadAnswer(u *measure.UnderLoad) string {
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

// verdictAnswer returns "956 of 1000 Mb/s local -> peer (100% of what MTU 1500 allows): pass".
func verdictAnswer(v *measure.Verdict, first, back *measure.Cell) string {
	allows := fmt.Sprintf("%s of what MTU %d allows", unit.Percent(v.Share), first.Ceiling.MTU)
	return fmt.Sprintf("%s (%s): %s", Amounts(first, back, ofLink(first)), allows, VerdictWord(v))
}

// ofLink returns a function that prints the first rate as a part of the link rate, and later ones in the same
// unit.
func ofLink(c *measure.Cell) func(float64) string {
	in, link := doc.ScaleFor(AmountOf(c)), float64(c.Ceiling.LinkBps)
	if AmountOf(c) == 0 {
		in = doc.ScaleFor(link)
	}
	named := false
	return func(bps float64) string {
		switch {
		case named && doc.ScaleFor(bps) == in: // neither link nor unit needs repeating
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

// VerdictWord returns "pass", "fail" or "inconclusive".
func VerdictWord(v *measure.Verdict) string {
	switch {
	case v.Pass:
		return "pass"
	case v.Inconclusive:
		return "inconclusive"
	}
	return "fail"
}

// Interval returns the 95% interval of a figure, or its range if it has none.
func Interval(f *measure.Figure) (low, high float64) {
	if f.CI95Low != nil && f.CI95High != nil {
		return *f.CI95Low, *f.CI95High
	}
	return f.Low, f.High
}

// LimitsDiffer reports whether two directions need separate sentences: different causes limit them. A passing
// verdict needs only one.
func LimitsDiffer(v *measure.Verdict, first, back *measure.Cell) bool {
	if !IsLimited(first) && !IsLimited(back) || v != nil && v.Pass {
		return false
	}
	f, b := Binding(first), Binding(back)
	return f == nil || b == nil || f.Cause != b.Cause
}

// WorseFirst orders two directions by rate; one of them may be missing.
func WorseFirst(first, back *measure.Cell) (worse, other *measure.Cell) {
	if back != nil && IsLimited(back) && (!IsLimited(first) || AmountOf(back) < AmountOf(first)) {
		return back, first
	}
	return first, back
}

// Named returns the finding that the sentence about a cell and the reverse one contains; nil if it has none. After
// a pass it is only that the link is full.
func Named(v *measure.Verdict, first, back *measure.Cell) *measure.Finding {
	full := func(c *measure.Cell) bool { return c == nil || Binding(c) != nil && Binding(c).Cause == CauseLinkRate }
	worse, _ := WorseFirst(first, back)
	f := Binding(worse)
	if f == nil || f.Cause == measure.CauseNone || v != nil && first.Ceiling != nil && v.Pass && !(full(first) && full(back)) {
		return nil
	}
	return f
}

// Reason words the finding that the sentence contains; "" if it has none.
func Reason(v *measure.Verdict, first, back *measure.Cell) string {
	if f := Named(v, first, back); f != nil {
		return InSentence(f)
	}
	return ""
}

// OtherSentence returns the sentence for the faster direction if another cause, or none, limits it.
func OtherSentence(worse, other *measure.Cell, v *measure.Verdict) string {
	print := unit.Rate
	if v != nil && other.Ceiling != nil {
		print = ofLink(other)
	}
	s := Amounts(other, nil, print)
	if worse.Group == other.Group && stat.Measured(other) {
		s += " at the same time"
	}
	if f := Binding(other); f != nil {
		s += ": " + InSentence(f)
	}
	return s
}
