// Package unit parses and prints the quantities that people type and see: rates in bit/s with decimal prefixes (K = 1000), sizes in bytes with binary prefixes
// (K = 1024, as in iperf3), durations and percentages. Inside the program a quantity is a plain number in its base unit.
package unit

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
)

// Layers at which a link rate can be counted.
const (
	// L1 counts a frame with preamble, checksum and gap, as a port does.
	L1 = "l1"
	// L2 counts a frame without them, as shapers do (tc-tbf).
	L2 = "l2"
)

// What each parser accepts, for its error.
const (
	takesRate     = "a number with an optional prefix K, M, G, T (1000 each), such as 956M, 1.5G or 10Gbit/s"
	takesSize     = "a number with an optional prefix K, M, G, T (1024 each), such as 1460, 800K, 64KiB or 1M"
	takesPercent  = "a number with an optional %, such as 2.5 or 2.5%"
	takesDuration = "seconds, or numbers with ms, s, m, h, such as 10, 2.5, 60s or 1m30s"
	takesPair     = "one size for both, or TX/RX, such as 800K or 1M/256K"
	takesLink     = "a rate above 0 with an optional layer /l1 or /l2, such as 10G or 1G/l2"
)

// Causes that the errors wrap.
var (
	errEmpty    = errors.New("nothing given")
	errNegative = errors.New("it is negative")
	errNumber   = errors.New("it does not begin with a number")
	errSuffix   = errors.New("unknown suffix")
	errTooLarge = errors.New("it is too large")
	errZero     = errors.New("it is zero")
)

// refuse returns the error of every parser.
func refuse(what, text string, cause error, takes string) error {
	return fmt.Errorf("unit: parsing %s %q: %w; accepted is %s", what, text, cause, takes)
}

// ParseRate reads a rate in bit/s: "10G", "1.5g", "956 Mb/s", "500kbit/s". It rounds fractions of a bit. It refuses a capital B, which means bytes elsewhere.
func ParseRate(text string) (int64, error) {
	number, suffix, err := split(text)
	if err == nil {
		for _, unit := range []string{"bit/s", "bps", "b/s"} {
			if rest, found := strings.CutSuffix(suffix, unit); found {
				suffix = strings.TrimSpace(rest)
				break
			}
		}
		var n int64
		if n, err = scaled(number, suffix, 1000); err == nil {
			return n, nil
		}
	}
	return 0, refuse("rate", text, err, takesRate)
}

// ParseSize reads a size in bytes: "1460", "800k", "64KiB", "1.5 MiB". K is 1024 with and without the i. It rounds fractions of a byte.
func ParseSize(text string) (int64, error) {
	number, suffix, err := split(text)
	if err == nil {
		letters := strings.ToLower(suffix)
		if rest, found := strings.CutSuffix(letters, "ib"); found && rest != "" {
			letters = rest
		} else {
			letters = strings.TrimSuffix(letters, "b")
		}
		var n int64
		if n, err = scaled(number, suffix[:len(letters)], 1024); err == nil {
			return n, nil
		}
	}
	return 0, refuse("size", text, err, takesSize)
}

// ParseSizePair reads a size for both directions ("800K") or TX/RX ("1M/256K").
func ParseSizePair(text string) (send, recv int64, err error) {
	first, second, two := strings.Cut(text, "/")
	if send, err = ParseSize(first); err == nil {
		if !two {
			return send, send, nil
		}
		if recv, err = ParseSize(second); err == nil {
			return send, recv, nil
		}
	}
	return 0, 0, refuse("size pair", text, errors.Unwrap(err), takesPair)
}

// ParseLinkRate reads the rate of a link, above 0, and its layer: "10G" and "10G/l1" with preamble and gap, "1G/l2" frames only.
func ParseLinkRate(text string) (bps int64, layer string, err error) {
	layer, rate := L1, text
	if i := strings.LastIndexByte(text, '/'); i >= 0 {
		switch tail := strings.ToLower(text[i+1:]); tail {
		case L1, L2:
			layer, rate = tail, text[:i]
		}
	}
	bps, err = ParseRate(rate)
	if err != nil {
		return 0, "", refuse("link rate", text, errors.Unwrap(err), takesLink)
	}
	if bps == 0 {
		return 0, "", refuse("link rate", text, errZero, takesLink)
	}
	return bps, layer, nil
}

// ParsePercent reads a percentage, with or without the percent sign: "2.5%" is 2.5.
func ParsePercent(text string) (float64, error) {
	number, suffix, err := split(text)
	if err == nil && suffix != "" && suffix != "%" {
		err = fmt.Errorf("%w %q", errSuffix, suffix)
	}
	if err != nil {
		return 0, refuse("percentage", text, err, takesPercent)
	}
	p, err := strconv.ParseFloat(number, 64)
	if err != nil || math.IsInf(p, 0) {
		return 0, refuse("percentage", text, errTooLarge, takesPercent)
	}
	return p, nil
}

// ParseDuration reads a time: a plain number in seconds ("2.5"), else with the units of time.ParseDuration ("60s", "1m30s").
func ParseDuration(text string) (time.Duration, error) {
	clean := strings.TrimSpace(text)
	if _, _, err := split(clean); err != nil {
		return 0, refuse("duration", text, err, takesDuration)
	}
	if last := clean[len(clean)-1]; isDigit(last) {
		clean += "s"
	}
	d, err := time.ParseDuration(clean)
	if err != nil {
		return 0, refuse("duration", text, errors.New("not a time, or too long"), takesDuration)
	}
	return d, nil
}

// longest limits the length of a quantity, and so the time to parse it.
const longest = 64

// split splits "1.5 MiB" into its number and its suffix.
func split(text string) (number, suffix string, err error) {
	text = strings.TrimSpace(text)
	if len(text) > longest {
		return "", "", errTooLarge
	}
	if text == "" {
		return "", "", errEmpty
	}
	end, digits, points := 0, 0, 0
	for ; end < len(text) && (isDigit(text[end]) || text[end] == '.'); end++ {
		if text[end] == '.' {
			points++
		} else {
			digits++
		}
	}
	switch {
	case text[0] == '-':
		return "", "", errNegative
	case digits == 0 || points > 1:
		return "", "", errNumber
	}
	return text[:end], strings.TrimSpace(text[end:]), nil
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

// prefixes in rising order; each is the base times the one before.
const prefixes = "kmgtpe"

// scaled returns the number times its prefix; it is exact before one final rounding.
func scaled(number, prefix string, base int64) (int64, error) {
	value, ok := new(big.Rat).SetString(number)
	if !ok {
		return 0, errNumber
	}
	if prefix != "" {
		power := strings.Index(prefixes, strings.ToLower(prefix))
		if len(prefix) != 1 || power < 0 {
			return 0, fmt.Errorf("%w %q", errSuffix, prefix)
		}
		factor := new(big.Int).Exp(big.NewInt(base), big.NewInt(int64(power+1)), nil)
		value.Mul(value, new(big.Rat).SetInt(factor))
	}
	value.Add(value, big.NewRat(1, 2)) // half a unit, so that the division below rounds
	n := new(big.Int).Quo(value.Num(), value.Denom())
	if !n.IsInt64() {
		return 0, errTooLarge
	}
	return n.Int64(), nil
}
