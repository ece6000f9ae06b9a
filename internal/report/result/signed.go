package result

import (
	"fmt"
	"math"
)

// SignedPct returns a change in percent, with its sign.
func SignedPct(pct float64) string {
	switch {
	case math.Abs(pct) >= 100:
		return fmt.Sprintf("%+.0f%%", pct)
	case math.Abs(pct) < 0.05: // a change that rounds to zero has no sign
		return "0.0%"
	}
	return fmt.Sprintf("%+.1f%%", pct)
}
