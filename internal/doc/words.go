package doc

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"thru/internal/fault"
	"thru/internal/unit"
)

// MostText limits one foreign string, in characters, so that a page stays small.
const MostText = 300

// MostRisk limits the text about the risk of a change, which must be readable to its end.
const MostRisk = 2 * MostText

// Clean makes a string of another host safe to print: no control or direction-changing characters, one line,
// limited length.
func Clean(s string) string { return CleanUpTo(s, MostText) }

// CleanUpTo is Clean with its own limit, in characters.
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

// Join joins the non-empty parts with commas.
func Join(parts ...string) string { return strings.Join(NonEmpty(parts...), ", ") }

// NonEmpty returns the texts that are not empty.
func NonEmpty(all ...string) []string {
	return unit.Filtered(all, func(s string) bool { return s != "" })
}

// Colon returns "what: why", or the one that is not empty.
func Colon(what, why string) string { return strings.Join(NonEmpty(what, why), ": ") }

// OrDash returns "-" for "".
func OrDash(s string) string { return cmp.Or(s, "-") }

// Prefixed puts a prefix before a text, unless it is empty.
func Prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

// Bracket puts a text in brackets, unless it is empty.
func Bracket(s string) string {
	if s == "" {
		return ""
	}
	return "(" + s + ")"
}

// Unbroken splits a text where a line may break: not within a number with separated thousands, not before its
// unit, and not after "p99.9".
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

// Fixed returns a text in which no line breaks within a number, nor before its unit.
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

// isPercentile reports whether a word is like "p50" or "p99.9".
func isPercentile(s string) bool {
	rest, ok := strings.CutPrefix(s, "p")
	return ok && rest != "" && strings.Trim(rest, "0123456789.") == ""
}

// isWhole reports whether a word is a whole number or ends a range of them.
func isWhole(s string) bool {
	return endsInDigit(s) && !strings.ContainsFunc(s, func(r rune) bool { return (r < '0' || r > '9') && !strings.ContainsRune(" -(+", r) })
}

// isThousands reports whether a word begins with exactly three digits.
func isThousands(s string) bool {
	n := strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' })
	return n == 3 || n < 0 && len(s) == 3
}

// Limits of lists, so that a report of any document stays readable and a page stays under 1 MB.
const (
	MostLines = 60 // warnings, reasons, facts of one kind
	FewLines  = 8  // on a terminal
)

// Reason returns a reason without the name of the package that reports it, ready to print.
func Reason(text string) string { return fault.Plain(Clean(text)) }

// CleanAll makes foreign lines safe, and limits their number.
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

// FirstOf returns the first of some lines, and one that counts the others.
func FirstOf(lines []string, most int) []string {
	if n := len(lines) - most; n > 0 {
		return append(lines[:most:most], fmt.Sprintf("and %d more", n))
	}
	return lines
}

// Spaced puts a space before a text, unless it is empty.
func Spaced(s string) string { return Prefixed(" ", s) }

// Verb returns one for n = 1, else many.
func Verb(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// Known puts a value in words into a format; "" for nil.
func Known[T any](format string, value *T, words func(T) string) string {
	if value == nil {
		return ""
	}
	return fmt.Sprintf(format, words(*value))
}

// Number formats a number; "" for nil.
func Number(n *int) string { return Known("%s", n, strconv.Itoa) }

// OnOff returns "on" or "off".
func OnOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// CSV returns a foreign text as a CSV field that no spreadsheet reads as a formula.
func CSV(s string) string {
	s = Clean(s)
	if strings.IndexAny(strings.TrimSpace(s), "=+-@＝＋－＠") == 0 {
		s = "'" + s
	}
	return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
}

// Quote returns a text as one word of a POSIX shell command line.
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
