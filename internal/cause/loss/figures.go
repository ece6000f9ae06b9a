package loss

import (
	"fmt"

	"thru/internal/cause/diagnose"
	"thru/internal/stat"
	"thru/internal/unit"
)

// Rare formats a percentage of loss, which matters far below the usual precision.
func Rare(pct float64) string {
	if pct > 0 && pct < 0.01 {
		return fmt.Sprintf("%.2g%%", pct)
	}
	return unit.Percent(pct)
}

// SettledFlatness returns how much the rates of the seconds differ, without the first of a capture, in which the
// connection starts.
func SettledFlatness(f *diagnose.Flow) (float64, bool) {
	if bins := f.Bins(); f.PacketsOnly() && len(bins) > 3 {
		return stat.MedianDeviation(bins[1:]), true
	}
	return f.Flatness()
}

// SettledShare returns the median rate of those seconds in percent of the link's ceiling; 0 if it is not known.
func SettledShare(f *diagnose.Flow) float64 {
	bins := f.Bins()
	if !f.PacketsOnly() || len(bins) <= 3 || f.Cell.Ceiling == nil || f.Cell.Ceiling.Bps <= 0 {
		return 0
	}
	return 100 * stat.Median(bins[1:]) / f.Cell.Ceiling.Bps
}
