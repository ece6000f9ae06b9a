package result

import (
	"fmt"
	"math"
)

// SignedPct is a change in percent, with its sign.
func SignedPct(pct float64) string {
	switch {
	case math.Abs(pct) >= 100:
		return fmt.Sprintf("%+.0f%%", pct)
	case math.Abs(pct) < 0.05: // no sign of what is not seen
		return "0.0%"
	}
	return fmt.Sprintf("%+.1f%%", pct)
}
