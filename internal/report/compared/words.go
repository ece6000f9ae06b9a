package compared

import (
	"math"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// Limits of what is shown of a comparison. The JSON document has all.
const (
	maxFlowRows = 100 // flows
	maxFacts    = 40  // facts that changed
	answerFacts = 3   // facts named in the answer
)

// outcomeTone returns the colour of an outcome.
func outcomeTone(outcome string) doc.Tone {
	switch outcome {
	case measure.Improved, "better":
		return doc.ToneGood
	case measure.Worse:
		return doc.ToneBad
	case measure.Undecided, measure.NotCompared:
		return doc.ToneWarn
	}
	return doc.ToneNone
}

// comparedDirection returns the direction of a flow, or the location of a disk.
func comparedDirection(c *measure.ComparedCell) string { return atText(c.Place, c.From, c.To) }

// commonDirection returns the common direction, or disk, of cells with different traffic; else "".
func commonDirection(cells []measure.ComparedCell) string {
	several := false
	for i := range cells {
		if comparedDirection(&cells[i]) != comparedDirection(&cells[0]) {
			return ""
		}
		several = several || cells[i].What != cells[0].What
	}
	if !several {
		return ""
	}
	return comparedDirection(&cells[0])
}

// comparedName returns what distinguishes a cell from the others: its direction, or its traffic if all have
// the same direction.
func comparedName(cells []measure.ComparedCell, c *measure.ComparedCell) string {
	if commonDirection(cells) != "" {
		return whatCompared(c)
	}
	return comparedDirection(c)
}

// whatCompared returns the traffic of a cell, marked if it is a baseline.
func whatCompared(c *measure.ComparedCell) string {
	if c.Baseline {
		return c.What + " (baseline)"
	}
	return c.What
}

// atText returns "/srv at web1" for a disk, else the direction.
func atText(place, from, to string) string {
	if place != "" {
		return place + " at " + from
	}
	return endsText(from, to)
}

func endsText(from, to string) string {
	if from == to {
		return "localhost"
	}
	return measure.PairName(from, to)
}

// sampleText formats the figure of one side.
func sampleText(c *measure.ComparedCell, s *measure.Sample) string {
	switch {
	case s == nil:
		return "-"
	case c.Figure == "transactions_per_s":
		return stat.ThreeDigits(s.Value) + "/s"
	case c.Figure == "iops":
		return doc.PerSecond(s.Value) + " IOPS"
	case c.Figure == "bytes_per_s":
		return doc.ByteRate(s.Value)
	}
	return bitRate(s.Value)
}

// bitRate formats a rate; it shortens impossible values, which only a hostile document has.
func bitRate(bps float64) string {
	if !(math.Abs(bps) < 1e18) {
		return doc.Digits(bps) + " b/s"
	}
	return unit.Rate(bps)
}

func railText(of string, x float64) string {
	switch of {
	case "ns":
		return unit.Duration(int64(min(x, math.MaxInt64/2)))
	case "pct":
		return unit.Percent(x)
	case "pct_per_gbps":
		return doc.Digits(x) + "%"
	}
	return doc.Digits(x)
}
