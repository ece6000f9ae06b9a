package unit

import (
	"regexp"
	"sync"
)

// Pattern returns a regular expression that is compiled on first use: a program that compiles all its expressions starts later.
func Pattern(text string) func() *regexp.Regexp {
	return Once(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

// Once returns a function that makes a value on first use, for tables that nobody changes.
func Once[T any](make func() T) func() T { return sync.OnceValue(make) }
