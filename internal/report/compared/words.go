package compared

import (
	"fmt"
	"math"
	"strings"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// Bounds of what is shown of a comparison. The JSON document has all.
const (
	maxFlowRows = 100 // flows
	maxFacts    = 40  // facts that changed
	answerFacts = 3   // of these, named in the answer
)

// outcomeTone colours an outcome: what is undecided is not fine.
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

// comparedDirection is the direction of a flow, or where a disk is.
func comparedDirection(c *measure.ComparedCell) string { return atText(c.Place, c.From, c.To) }

// commonDirection is the direction, or the disk, of all cells where these are of several
// things; else "".
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

// comparedName is what tells a cell from the others: its direction, or where all
// have the same its traffic.
func comparedName(cells []measure.ComparedCell, c *measure.ComparedCell) string {
	if commonDirection(cells) != "" {
		return whatCompared(c)
	}
	return comparedDirection(c)
}

// whatCompared is the traffic of a cell, marked where it decides nothing.
func whatCompared(c *measure.ComparedCell) string {
	if c.Baseline {
		return c.What + " (beside)"
	}
	return c.What
}

// atText is "/srv at web1" of a disk, else the direction.
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

// sampleText is one side's figure.
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

// bitRate keeps what no link carries, and only a hostile document says, short.
func bitRate(bps float64) string {
	if !(math.Abs(bps) < 1e18) {
		return doc.Digits(bps) + " b/s"
	}
	return unit.Rate(bps)
}

// rangeText is the interval of a change: "-16.0..-14.2".
func rangeText(c *measure.ComparedCell) string {
	if c.LowPct == nil || c.HighPct == nil {
		return ""
	}
	return strings.TrimSuffix(signedPct(*c.LowPct), "%") + ".." + strings.TrimSuffix(signedPct(*c.HighPct), "%")
}

// signedPct is a change with its sign: "-15.1%"; of a hundredfold and more how many
// times as much.
func signedPct(pct float64) string {
	switch {
	case math.IsNaN(pct) || math.IsInf(pct, 0):
		return "?"
	case pct >= 9900:
		return doc.Digits(1+pct/100) + " times"
	}
	return fmt.Sprintf("%+.1f%%", pct)
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
