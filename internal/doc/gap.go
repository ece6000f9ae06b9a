package doc

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Gap is a reason and the facts that are missing because of it.
type Gap struct {
	Why   string
	Facts []string
	Like  int // number of omitted reasons for the same fact with the same beginning
}

// isLike reports whether a reason for a fact is this gap's reason for another host.
func (g Gap) isLike(fact, why string) bool {
	return beginEqual(g.Why, why) && len(g.Facts) == 1 && g.Facts[0] == fact
}

// beginEqual reports whether two long texts differ only at the end.
func beginEqual(a, b string) bool {
	return len(b) > mostlyEqual && strings.HasPrefix(a, b[:mostlyEqual])
}

// mostlyEqual is the common length that makes two reasons for a fact equal: those of many pairs differ only
// in host names.
const mostlyEqual = 40

// sameWords reports whether two reasons have the same words in another order, as those of the two directions
// between two hosts do.
func sameWords(a, b string) bool {
	between := func(r rune) bool { return strings.ContainsRune(" ;,", r) }
	words := func(s string) []string { return slices.Sorted(strings.FieldsFuncSeq(s, between)) }
	letters := func(s string) (sum rune) { // spares sorting the words of most pairs
		for _, r := range s {
			if !between(r) {
				sum += r
			}
		}
		return sum
	}
	return len(a) == len(b) && letters(a) == letters(b) && slices.Equal(words(a), words(b))
}

// AddGap adds a fact to its reason; it merges reasons that are equal or differ only in order or host names.
func AddGap(gaps []Gap, fact, why string) []Gap {
	i := slices.IndexFunc(gaps, func(g Gap) bool { return g.Why == why || slices.Contains(g.Facts, fact) && sameWords(g.Why, why) })
	if same := slices.IndexFunc(gaps, func(g Gap) bool { return g.isLike(fact, why) }); i < 0 && same >= 0 {
		gaps[same].Like++
		return gaps
	}
	switch {
	case i < 0 && len(gaps) == MostLines:
		return gaps
	case i < 0:
		return append(gaps, Gap{Why: why, Facts: []string{fact}})
	case len(gaps[i].Facts) < MostLines && !slices.Contains(gaps[i].Facts, fact):
		gaps[i].Facts = append(gaps[i].Facts, fact)
	}
	return gaps
}

// Text returns a gap in a few words: "a, b, c and 2 more (why)".
func (g Gap) Text(most int) string {
	facts := strings.Join(g.Facts[:min(most, len(g.Facts))], ", ")
	if n := len(g.Facts) - most; n > 0 {
		facts += fmt.Sprintf(" and %d more", n)
	}
	if g.Why == "" {
		return facts
	}
	if g.Like > 0 {
		return facts + " (" + g.Why + "; and " + strconv.Itoa(g.Like) + " more)"
	}
	return facts + " (" + g.Why + ")"
}

// GapFacts is how many facts a line names for each reason; a page has all.
const GapFacts = 4

// GapTable lists the missing facts, and why.
func GapTable(gaps []Gap) Table {
	t := Table{Columns: []Column{{Name: "fact"}, {Name: "why"}}}
	for _, g := range gaps {
		why := g.Why
		if g.Like > 0 {
			why += fmt.Sprintf("; and %d more", g.Like)
		}
		t.Rows = append(t.Rows, []string{strings.Join(g.Facts, ", "), OrDash(why)})
	}
	return t
}
