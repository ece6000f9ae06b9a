package doc

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
)

// MostText bounds one foreign string, so that a page stays small.
const MostText = 300

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
