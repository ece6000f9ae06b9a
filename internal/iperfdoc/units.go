package iperfdoc

import "fmt"

// amount prints bytes as iperf3 does, in binary units, four characters wide: "23.9 MBytes", " 130 KBytes".
func amount(bytes float64) string { return inUnit(bytes, "Byte", 1024, adaptive) + "s" }

// rateIn prints bit/s in the unit of -f: k, m, g, t are decimal units of bits; K, M, G, T binary units of bytes; a chooses the unit of bits that fits, A that
// of bytes.
func rateIn(bps float64, format byte) string {
	bytes := format >= 'A' && format <= 'Z'
	power, ok := map[byte]int{'k': 1, 'm': 2, 'g': 3, 't': 4, 'K': 1, 'M': 2, 'G': 3, 'T': 4, 'b': 0, 'B': 0}[format]
	if !ok {
		power = adaptive
	}
	if bytes {
		return inUnit(bps/8, "Byte", 1024, power) + "s/sec"
	}
	return inUnit(bps, "bit", 1000, power) + "s/sec"
}

// adaptive chooses the unit in which a value has up to three digits before the point.
const adaptive = -1

var prefixes = []string{"", "K", "M", "G", "T"}

func inUnit(value float64, unit string, base float64, power int) string {
	value = finite(value)
	for p := 0; p < len(prefixes)-1 && (power == adaptive && value >= base || p < power); p++ {
		value /= base
		unit = prefixes[p+1] + unit[len(prefixes[p]):]
	}
	switch { // the limits are where rounding adds a digit
	case value < 9.995:
		return fmt.Sprintf("%4.2f %s", value, unit)
	case value < 99.95:
		return fmt.Sprintf("%4.1f %s", value, unit)
	default:
		return fmt.Sprintf("%4.0f %s", value, unit)
	}
}
