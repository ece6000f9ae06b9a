package fault

import (
	"fmt"
	"slices"
	"strings"
)

// Nearest returns the word that a mistyped text probably means: one that differs by a typo or two; "" where there is none.
func Nearest(text string, words []string) string {
	best, least := "", 1+len(text)/4
	for _, w := range words {
		if d := Distance(text, w); d < least || d == least && best == "" {
			best, least = w, d
		}
	}
	return best
}

// longestWord limits the length of the compared words.
const longestWord = 64

// Distance returns how many letters must be added, removed or replaced to turn a into b (Levenshtein). It compares the first 64 letters of both.
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

// mostSuggested limits how many names a hint has.
const mostSuggested = 8

// Suggest lists the names that the user probably meant, nearest first; "" without any.
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
