package gate

import (
	"slices"

	"thru/internal/fault"
	"thru/internal/measure"
)

// Filter keeps the gates whose ids are in only (all, where it is empty) and
// not in skip. An id that no rule has is a mistake of the caller's, and the
// error's hint is the nearest one.
func Filter(gates []measure.Gate, only, skip []string) ([]measure.Gate, error) {
	for _, id := range slices.Concat(only, skip) {
		if err := known(id); err != nil {
			return nil, err
		}
	}
	kept := []measure.Gate{}
	for _, g := range gates {
		wanted := len(only) == 0 || slices.Contains(only, g.ID)
		if wanted && !slices.Contains(skip, g.ID) {
			kept = append(kept, g)
		}
	}
	return kept, nil
}

// known refuses an id that no rule has.
func known(id string) error {
	best, least := "", 0
	for _, r := range rules() {
		if r.ID == id {
			return nil
		}
		if d := distance(id, r.ID); best == "" || d < least {
			best, least = r.ID, d
		}
	}
	return fault.Usagef("did you mean "+best+"? `thru check --list` names all", "gate: choosing gates: there is no gate %q", short(id))
}

// short bounds what is repeated to the one who typed it.
func short(id string) string { return string([]rune(id)[:min(40, len([]rune(id)))]) }

// distance is how many letters must be added, taken away or replaced to make
// b of a (Levenshtein). An id is short, so a is cut at 64 letters.
func distance(a, b string) int {
	a = a[:min(len(a), 64)]
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
