package report

import (
	"fmt"
	"math"
	"strconv"

	"thru/internal/unit"
)

// scale is a unit of rate that a whole table or axis uses. One whose div is 0
// is none: each figure has its own unit.
type scale struct {
	div  float64
	name string
}

// scaleFor picks the decimal unit in which bps reads as 1 to 999.
func scaleFor(bps float64) scale {
	for _, s := range []scale{{1e12, "Tb/s"}, {1e9, "Gb/s"}, {1e6, "Mb/s"}, {1e3, "kb/s"}} {
		if math.Abs(bps) >= 0.9995*s.div {
			return s
		}
	}
	return scale{1, "b/s"}
}

// Name is the unit, for the page's template.
func (s scale) Name() string { return s.name }

// number prints bps in the scale's unit, without the unit.
func (s scale) number(bps float64) string {
	if s.div == 0 {
		return unit.Rate(bps)
	}
	return digits(bps / s.div)
}

// span prints "47.9-49.8".
func (s scale) span(low, high float64) string {
	if s.div == 0 {
		return unit.RateRange(low, high)
	}
	return s.number(low) + "-" + s.number(high)
}

// digits prints three significant digits, or all of the integer part.
func digits(v float64) string {
	switch a := math.Abs(v); {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "?"
	case a >= 1e15:
		return fmt.Sprintf("%.2e", v)
	case a >= 99.95 || a == 0:
		return fmt.Sprintf("%.0f", v)
	case a >= 9.995:
		return fmt.Sprintf("%.1f", v)
	case a < 0.001:
		return fmt.Sprintf("%.1e", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}

// plain prints a nominal value with no more digits than it has: "1000", "2.5".
func plain(v float64) string {
	if math.Abs(v) >= 1e15 || math.IsNaN(v) {
		return digits(v)
	}
	return strconv.FormatFloat(math.Round(v*1000)/1000, 'f', -1, 64)
}
