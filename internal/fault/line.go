package fault

import (
	"strings"
	"unicode"
)

// Printable returns the text as one line without terminal control characters.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case unicode.IsPrint(r):
			return r
		}
		return '?'
	}, text)
}

// Short returns another host's message, shortened to one line.
func Short(text string) string { return Printable(text[:min(len(text), 128)]) }
