package host

import (
	"errors"
	"strings"
)

// chosen returns the word in brackets of "always [madvise] never"; a single
// word without brackets is the choice itself.
func chosen(s string) (string, error) {
	if _, rest, ok := strings.Cut(s, "["); ok {
		if word, _, ok := strings.Cut(rest, "]"); ok && word != "" {
			return word, nil
		}
	}
	if words := strings.Fields(s); len(words) == 1 && !strings.ContainsAny(s, "[]") {
		return s, nil
	}
	return "", errors.New("no selected value in " + quoted(s))
}

// quoted shortens foreign text for an error.
func quoted(s string) string {
	if len(s) > 60 {
		s = s[:60] + "..."
	}
	return `"` + strings.ToValidUTF8(s, "?") + `"`
}
