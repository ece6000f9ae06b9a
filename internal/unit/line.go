package unit

import (
	"strings"
	"unicode"
)

// Line returns one line of printable text, of at most that many characters: names and messages from a foreign host may contain anything.
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

// Cut shortens a text to the columns of a terminal; with three columns or fewer it leaves the text as it is.
func Cut(text string, room int) string {
	if r := []rune(text); room > 3 && len(r) > room {
		return string(r[:room-3]) + "..."
	}
	return text
}
