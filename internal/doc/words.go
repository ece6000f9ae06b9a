package doc

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"thru/internal/fault"
)

// MostText bounds one foreign string, so that a page stays small.
const MostText = 300

// MostRisk bounds what is said of the risk of a change, which is to be read to its end.
const MostRisk = 2 * MostText

// Clean makes a string of another host safe to print: no control or
// direction-changing characters, one line, bounded length.
func Clean(s string) string { return CleanUpTo(s, MostText) }

// CleanUpTo is Clean with a bound of its own, in characters.
func CleanUpTo(s string, most int) string {
	var b strings.Builder
	n := 0
	for _, r := range s {
		if n++; n > most {
			b.WriteString("...")
			break
		}
		switch {
		case r == '\n' || r == '\t':
			b.WriteByte(' ')
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			b.WriteRune('?')
		}
	}
	return b.String()
}

// Join puts what is there into one line.
func Join(parts ...string) string { return strings.Join(NonEmpty(parts...), ", ") }

// NonEmpty are the texts that have any words.
func NonEmpty(all ...string) (kept []string) {
	for _, s := range all {
		if s != "" {
			kept = append(kept, s)
		}
	}
	return kept
}

// Colon says what, and why where it is known.
func Colon(what, why string) string { return strings.Join(NonEmpty(what, why), ": ") }

// OrDash is "-" for nothing.
func OrDash(s string) string { return cmp.Or(s, "-") }

// Prefixed puts words before what is there.
func Prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

// Bracket puts what is there into brackets.
func Bracket(s string) string {
	if s == "" {
		return ""
	}
	return "(" + s + ")"
}

// Unbroken splits a text where a line may break: not within a number whose
// thousands are apart, not before its unit, and not behind "p99.9".
func Unbroken(text string) []string {
	var words []string
	for word := range strings.FieldsSeq(text) {
		n := len(words) - 1
		if n >= 0 && (isPercentile(words[n]) || isWhole(words[n]) && isThousands(word) || endsInDigit(words[n]) && isUnit(strings.TrimRight(word, ",;:.)"))) {
			words[n] += " " + word
			continue
		}
		words = append(words, word)
	}
	return words
}

// Fixed is a text in which no line breaks within a number, nor before its unit.
func Fixed(text string) string {
	words := Unbroken(text)
	for i, w := range words {
		words[i] = strings.ReplaceAll(w, " ", "\u00a0")
	}
	return strings.Join(words, " ")
}

func endsInDigit(s string) bool { return s[len(s)-1] >= '0' && s[len(s)-1] <= '9' }

func isUnit(s string) bool {
	return slices.Contains([]string{"ns", "µs", "ms", "s", "B", "KiB", "MiB", "GiB", "b/s", "kb/s", "Mb/s", "Gb/s", "Tb/s", "B/s", "kB/s", "MB/s", "GB/s", "IOPS"}, s)
}

// isPercentile tells whether a word is "p50", "p99.9".
func isPercentile(s string) bool {
	rest, ok := strings.CutPrefix(s, "p")
	return ok && rest != "" && strings.Trim(rest, "0123456789.") == ""
}

// isWhole tells whether a word is a whole number or ends a range of them.
func isWhole(s string) bool {
	return endsInDigit(s) && !strings.ContainsFunc(s, func(r rune) bool { return (r < '0' || r > '9') && !strings.ContainsRune(" -(+", r) })
}

// isThousands tells whether a word begins with three digits and no fourth.
func isThousands(s string) bool {
	n := strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' })
	return n == 3 || n < 0 && len(s) == 3
}

// Bounds of what is listed, so that a report of any document stays readable and a page stays under 1 MB.
const (
	MostLines = 60 // warnings, reasons, facts of one kind
	FewLines  = 8  // of these on a terminal
)

// Reason is what a part of the program says as a reason, without its name, ready to print.
func Reason(text string) string { return fault.Plain(Clean(text)) }

// CleanAll makes foreign lines safe, and bounds their number.
func CleanAll(lines []string) []string {
	var out []string
	for i, s := range lines {
		if i == MostLines {
			return append(out, fmt.Sprintf("and %d more, see the JSON document", len(lines)-MostLines))
		}
		out = append(out, Reason(s))
	}
	return out
}

// Spaced puts a space before what is there.
func Spaced(s string) string { return Prefixed(" ", s) }

// Verb is one of two forms, for one thing or for several.
func Verb(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// Number is a number that may not be known; "" then.
func Number(n *int) string {
	if n == nil {
		return ""
	}
	return strconv.Itoa(*n)
}

// OnOff is a setting in a word.
func OnOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// CSV is a foreign text as a field of CSV, of which no table program makes a formula.
func CSV(s string) string {
	s = Clean(s)
	if strings.IndexAny(strings.TrimSpace(s), "=+-@＝＋－＠") == 0 {
		s = "'" + s
	}
	return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
}

// Quote makes one word of a POSIX shell command line.
func Quote(s string) string {
	s = Clean(s)
	safe := func(r rune) bool {
		return r < 128 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_=+:,./@%", r))
	}
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !safe(r) }) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
