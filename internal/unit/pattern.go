package unit

import (
	"regexp"
	"sync"
)

// Pattern returns a regular expression that is compiled on first use: a program that compiles all its expressions starts later.
func Pattern(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}
