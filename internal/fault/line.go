package fault

import (
	"strings"
	"unicode"
)

// Printable is the text as one line without what commands a terminal.
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

// Short is what another host says, fit for a line.
func Short(text string) string { return Printable(text[:min(len(text), 128)]) }
