package unit

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// notKnown is printed for a NaN or an infinity. Callers should leave such a figure out.
const notKnown = "not known"

// Rate prints bit/s to three digits: "49.2 Gb/s", "956 Mb/s", "0 b/s".
func Rate(bps float64) string {
	if !finite(bps) {
		return notKnown
	}
	power := powerOf(bps, 1000)
	return rateIn(bps, power) + " " + rateUnit(power)
}

// RateRange prints two rates in the unit of the higher one: "47.8-49.9 Gb/s". It prints two equal texts once.
func RateRange(low, high float64) string {
	if !finite(low) || !finite(high) {
		return notKnown
	}
	power := powerOf(max(math.Abs(low), math.Abs(high)), 1000)
	a, b := rateIn(low, power), rateIn(high, power)
	if a != b {
		a += "-" + b
	}
	return a + " " + rateUnit(power)
}

// rateIn returns the number in the unit of 1000^power. Bits are whole.
func rateIn(bps float64, power int) string {
	if power == 0 {
		return strconv.FormatFloat(math.Round(bps), 'f', -1, 64)
	}
	return digits3(bps / math.Pow(1000, float64(power)))
}

func rateUnit(power int) string {
	if power == 0 {
		return "b/s"
	}
	if power == 1 {
		return "kb/s" // SI: the decimal kilo is small
	}
	return strings.ToUpper(prefixes[power-1:power]) + "b/s"
}

// exactSize limits the sizes that are printed to the byte, such as an MSS.
const exactSize = 10_000

// Size prints bytes with binary prefixes, to three digits without trailing zeros: "800 KiB", "1.5 MiB". Small sizes that are no whole KiB are exact ("1460
// B").
func Size(bytes int64) string {
	if size := math.Abs(float64(bytes)); size < 1024 || size < exactSize && bytes%1024 != 0 {
		return strconv.FormatInt(bytes, 10) + " B"
	}
	power := powerOf(float64(bytes), 1024)
	text := digits3(float64(bytes) / math.Pow(1024, float64(power)))
	return trimZeros(text) + " " + strings.ToUpper(prefixes[power-1:power]) + "iB"
}

// Duration prints nanoseconds compactly: "850 ns", "29 µs", "1.20 ms", "12 s",
// "8 min 10 s", "3 h 5 min". Microseconds are whole, as the kernel counts them.
func Duration(ns int64) string {
	if ns < 0 {
		return "-" + strings.TrimPrefix(Duration(-max(ns, -math.MaxInt64)), "-")
	}
	d := time.Duration(ns)
	switch {
	case d < time.Microsecond:
		return strconv.FormatInt(ns, 10) + " ns"
	case d.Round(time.Microsecond) < time.Millisecond:
		return strconv.FormatInt(int64(d.Round(time.Microsecond)/time.Microsecond), 10) + " µs"
	case d < time.Second:
		if text := digits3(float64(d) / float64(time.Millisecond)); text != "1000" {
			return text + " ms"
		}
		return "1 s"
	case d.Round(100*time.Millisecond) < time.Minute:
		return trimZeros(digits3(d.Seconds())) + " s"
	case d.Round(time.Second) < time.Hour:
		return twoUnits(int64(d.Round(time.Second)/time.Second), "min", "s")
	default:
		return twoUnits(int64(d.Round(time.Minute)/time.Minute), "h", "min")
	}
}

// twoUnits prints n of the small unit, 60 of which make a large one.
func twoUnits(n int64, great, small string) string {
	text := strconv.FormatInt(n/60, 10) + " " + great
	if n%60 != 0 {
		text += " " + strconv.FormatInt(n%60, 10) + " " + small
	}
	return text
}

// Percent prints to three digits, with at most two decimals and without trailing zeros: "98%", "2.5%", "0.25%". A value above zero never prints as "0%".
func Percent(pct float64) string {
	switch size := math.Abs(pct); {
	case !finite(pct):
		return notKnown
	case pct > 0 && size < 0.005:
		return "<0.01%"
	case pct < 0 && size < 0.005:
		return ">-0.01%"
	case size < 9.995:
		return trimZeros(strconv.FormatFloat(pct, 'f', 2, 64)) + "%"
	default:
		return trimZeros(digits3(pct)) + "%"
	}
}

// Count prints a whole number with its thousands separated: "812 743".
func Count(n int64) string {
	text := strconv.FormatInt(n, 10)
	first := 0
	if n < 0 {
		first = 1
	}
	for i := len(text) - 3; i > first; i -= 3 {
		text = text[:i] + " " + text[i:]
	}
	return text
}

// Plural counts things by an English noun that takes an s: "1 run", "3 runs".
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// Counted is Plural for large numbers: "1 segment", "10 000 segments".
func Counted(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Count(n) + " " + noun + "s"
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// digits3 prints three significant digits (four from 1000 to 1023, in a binary unit), and never more than three decimals.
func digits3(x float64) string {
	decimals := 3
	for _, bound := range []float64{0.9995, 9.995, 99.95} {
		if math.Abs(x) >= bound {
			decimals--
		}
	}
	if x == 0 {
		decimals = 0
	}
	return strconv.FormatFloat(x, 'f', decimals, 64)
}

// powerOf returns the greatest power of the base under which x prints as 1 or more. It considers the rounding to three digits, so that 999.6 M is 1.00 G.
func powerOf(x, base float64) int {
	x = math.Abs(x)
	power := 0
	for x >= base-0.5 && power < len(prefixes) {
		x /= base
		power++
	}
	return power
}

// trimZeros removes trailing decimal zeros, and the point.
func trimZeros(text string) string {
	if !strings.Contains(text, ".") {
		return text
	}
	return strings.TrimRight(strings.TrimRight(text, "0"), ".")
}

// List writes numbers as the kernel writes CPUs, sorted and without duplicates: "0-3,8".
func List(numbers []int) string {
	numbers = slices.Compact(slices.Sorted(slices.Values(numbers)))
	var parts []string
	for i := 0; i < len(numbers); {
		last := i
		for last+1 < len(numbers) && numbers[last+1] == numbers[last]+1 {
			last++
		}
		part := strconv.Itoa(numbers[i])
		if last > i {
			part += "-" + strconv.Itoa(numbers[last])
		}
		parts = append(parts, part)
		i = last + 1
	}
	return strings.Join(parts, ",")
}

// Bit returns 1 for true, else 0.
func Bit(b bool) int {
	if b {
		return 1
	}
	return 0
}
