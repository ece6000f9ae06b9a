package unit

import (
	"fmt"
	"math"
	"strings"
)

// Change formats a relative change in percent with its sign, "+4.2%"; from tenfold on as a factor, "x155".
func Change(pct float64) string {
	switch factor := 1 + pct/100; {
	case !finite(pct):
		return notKnown
	case factor >= 1e6:
		return "from near zero"
	case factor >= 10:
		return "x" + trimZeros(digits3(factor))
	case math.Abs(pct) < 0.05: // a change that rounds to zero has no sign
		return "0.0%"
	}
	if math.Abs(pct) >= 100 {
		return fmt.Sprintf("%+.0f%%", pct)
	}
	return fmt.Sprintf("%+.1f%%", pct)
}

// ChangeRange formats the interval of a change, "-16.0..-14.2%"; "" without an interval.
func ChangeRange(low, high *float64) string {
	if low == nil || high == nil {
		return ""
	}
	from, to := Change(*low), Change(*high)
	if strings.HasSuffix(to, "%") {
		from = strings.TrimSuffix(from, "%")
	}
	return from + ".." + to
}
