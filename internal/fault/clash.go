package fault

import (
	"fmt"
	"slices"
	"strings"
)

// Clash says that flags cannot be combined with others. A user has typed only some of its flags: Typed returns the clash of those.
type Clash struct{ These, With []string }

// Clashing returns a usage error about flags; both lists are separated by spaces. An empty second list means that the first flags exclude each other.
func Clashing(hint, these, with string) error {
	return &Error{Code: Usage, Hint: hint, Err: &Clash{strings.Fields(these), strings.Fields(with)}}
}

// Error names all flags.
func (c Clash) Error() string {
	switch {
	case len(c.With) == 0:
		return And(c.These) + " do not go together"
	case len(c.These) == 1:
		return c.These[0] + " does not go with " + And(c.With)
	}
	return And(c.These) + " do not go with " + And(c.With)
}

// Typed keeps the flags that the user typed, as they are called in --help. A list without any typed flag stays complete, because a plan file may set its
// flags.
func (c *Clash) Typed(typed []string) Clash {
	return Clash{among(c.These, typed), among(c.With, typed)}
}

func among(flags, typed []string) []string {
	left := slices.DeleteFunc(slices.Clone(flags), func(f string) bool { return !slices.Contains(typed, f) })
	if len(left) == 0 {
		return flags
	}
	return left
}

// And returns a list as in a sentence: "a, b and c".
func And(names []string) string { return listed(names, " and ") }

// Or returns a choice: "a, b or c".
func Or(names []string) string { return listed(names, " or ") }

func listed(names []string, word string) string {
	if last := len(names) - 1; last > 0 {
		return strings.Join(names[:last], ", ") + word + names[last]
	}
	return strings.Join(names, "")
}

// MostNamed is how many end points or pairs an error names one by one.
const MostNamed = 8

// Few returns "a, b and c"; of many it names the first few and the number of the others.
func Few(names []string) string {
	if more := len(names) - MostNamed; more > 0 {
		names = append(slices.Clone(names[:MostNamed]), fmt.Sprintf("%d more", more))
	}
	return And(names)
}
