package unit

import (
	"strings"
	"unicode"
)

// Line makes one line of printable text, of at most so many characters: names
// and messages from a foreign host hold anything.
func Line(text string, most int) string {
	var b strings.Builder
	n := 0
	for _, c := range text {
		if n++; n > most {
			return b.String() + "..."
		}
		if !unicode.IsPrint(c) {
			c = '?'
		}
		b.WriteRune(c)
	}
	return b.String()
}
