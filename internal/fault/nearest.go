package fault

import (
	"fmt"
	"slices"
	"strings"
)

// Nearest is the word that a mistyped text could have meant: the one from which
// it differs by a slip or two, "" where none is near.
func Nearest(text string, words []string) string {
	best, least := "", 1+len(text)/4
	for _, w := range words {
		if d := Distance(text, w); d < least || d == least && best == "" {
			best, least = w, d
		}
	}
	return best
}

// longestWord bounds the letters that are compared.
const longestWord = 64

// Distance is how many letters must be added, taken away or replaced to make
// b of a (Levenshtein). Of both the first 64 letters count.
func Distance(a, b string) int {
	a, b = a[:min(len(a), longestWord)], b[:min(len(b), longestWord)]
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := corner
			if a[i] != b[j] {
				replaced++
			}
			corner = row[j+1]
			row[j+1] = min(replaced, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}

// mostSuggested bounds how many names a hint has.
const mostSuggested = 8

// Suggest names those that a person may have meant, nearest first; "" where
// there are none.
func Suggest(before, name string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	far := func(other string) int { return Distance(strings.ToLower(name), strings.ToLower(other)) }
	names = slices.Clone(names)
	slices.Sort(names)
	slices.SortStableFunc(names, func(a, b string) int { return far(a) - far(b) })
	if far(names[0]) <= len(name)/2 {
		return before + names[0] + "?"
	}
	text := strings.Join(names[:min(len(names), mostSuggested)], ", ")
	if more := len(names) - mostSuggested; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return "there are " + text
}
