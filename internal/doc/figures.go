package doc

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"thru/internal/stat"
	"thru/internal/unit"
)

// Scale is the rate unit of a whole table or axis. With Div 0 each figure has its own unit.
type Scale struct {
	Div  float64
	Name string
}

// ScaleFor returns the decimal unit in which bps reads as 1 to 999.
func ScaleFor(bps float64) Scale {
	for _, s := range []Scale{{1e12, "Tb/s"}, {1e9, "Gb/s"}, {1e6, "Mb/s"}, {1e3, "kb/s"}} {
		if math.Abs(bps) >= 0.9995*s.Div {
			return s
		}
	}
	return Scale{1, "b/s"}
}

// Number prints bps in the scale's unit, without the unit.
func (s Scale) Number(bps float64) string {
	if s.Div == 0 {
		return unit.Rate(bps)
	}
	return Digits(bps / s.Div)
}

// Span prints "47.9-49.8".
func (s Scale) Span(low, high float64) string {
	if s.Div == 0 {
		return unit.RateRange(low, high)
	}
	return s.Number(low) + "-" + s.Number(high)
}

// Digits prints three significant digits, or all of the integer part.
func Digits(v float64) string {
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

// Plain prints a nominal value with no more digits than it has: "1000", "2.5".
func Plain(v float64) string {
	if math.Abs(v) >= 1e15 || math.IsNaN(v) {
		return Digits(v)
	}
	return strconv.FormatFloat(math.Round(v*1000)/1000, 'f', -1, 64)
}

// ByteRate prints bytes per second in decimal units, as disk vendors do: "3.21 GB/s".
func ByteRate(bytes float64) string {
	for _, s := range []Scale{{1e9, "GB/s"}, {1e6, "MB/s"}, {1e3, "kB/s"}} {
		if bytes >= 0.9995*s.Div {
			return Digits(bytes/s.Div) + " " + s.Name
		}
	}
	return Digits(bytes) + " B/s"
}

// PerSecond prints accesses per second: "85.2k".
func PerSecond(n float64) string {
	switch {
	case n >= 0.9995e6:
		return Digits(n/1e6) + "M"
	case n >= 9995:
		return Digits(n/1e3) + "k"
	}
	return Digits(n)
}

// AboutTime prints an estimated time, rounded: "2 min 10 s".
func AboutTime(d time.Duration) string {
	switch {
	case d > 10*time.Minute:
		d = d.Round(time.Minute)
	case d > time.Minute:
		d = d.Round(10 * time.Second)
	default:
		d = (d + time.Second - 1).Truncate(time.Second)
	}
	return unit.Duration(int64(d))
}

// TimeScale returns the unit in which ns reads as 1 or more.
func TimeScale(ns float64) Scale {
	for _, s := range []Scale{{Div: 1e9, Name: "s"}, {Div: 1e6, Name: "ms"}} {
		if ns >= s.Div {
			return s
		}
	}
	return Scale{Div: 1e3, Name: "µs"}
}

// ShortTime prints ns with three digits without trailing zeros: "4.8 µs", "212 µs", "4.1 ms". It keeps
// fractions of a microsecond.
func ShortTime(ns int64) string {
	switch {
	case ns < 0:
		return "-" + strings.TrimPrefix(ShortTime(-max(ns, -math.MaxInt64)), "-")
	case ns < int64(time.Microsecond) || ns >= int64(time.Second):
		return unit.Duration(ns)
	case float64(ns) < 999.5*float64(time.Microsecond):
		return stat.ThreeDigits(float64(ns)/1e3) + " µs"
	}
	return stat.ThreeDigits(float64(ns)/1e6) + " ms"
}
