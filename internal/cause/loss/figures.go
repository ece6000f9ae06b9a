package loss

import (
	"fmt"

	"thru/internal/cause/diagnose"
	"thru/internal/stat"
	"thru/internal/unit"
)

// Rare prints a share of loss, which counts far below what a percent is
// usually told to.
func Rare(pct float64) string {
	if pct > 0 && pct < 0.01 {
		return fmt.Sprintf("%.2g%%", pct)
	}
	return unit.Percent(pct)
}

// SettledFlatness is how much the rates of the seconds differ, without the first
// of a capture: there the connection only begins.
func SettledFlatness(f *diagnose.Flow) (float64, bool) {
	if bins := f.Bins(); f.PacketsOnly() && len(bins) > 3 {
		return stat.MedianDeviation(bins[1:]), true
	}
	return f.Flatness()
}

// SettledShare is the median rate of those seconds in percent of what the link can
// carry; 0 where it is not known.
func SettledShare(f *diagnose.Flow) float64 {
	bins := f.Bins()
	if !f.PacketsOnly() || len(bins) <= 3 || f.Cell.Ceiling == nil || f.Cell.Ceiling.Bps <= 0 {
		return 0
	}
	return 100 * stat.Median(bins[1:]) / f.Cell.Ceiling.Bps
}
