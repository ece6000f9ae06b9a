package gate

import (
	"slices"
	"strings"

	"thru/internal/fault"
	"thru/internal/measure"
)

// Filter is Filter by these rules.
func Filter(rules []Rule, gates []measure.Gate, only, skip []string) ([]measure.Gate, error) {
	for _, id := range slices.Concat(only, skip) {
		if err := known(rules, id); err != nil {
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
func known(rules []Rule, id string) error {
	for _, r := range rules {
		if r.ID == id {
			return nil
		}
	}
	hint := "`thru check --list` names all gates"
	if near := nearest(rules, strings.ToLower(id)); near != "" {
		hint = "did you mean " + near + "? " + hint
	}
	return fault.Usagef(hint, "gate: choosing gates: there is no gate %q", short(id))
}

// nearest is the id that a text could have meant: that of the rule which is
// known by this word too, or of a part of whose id it is, or from which it
// differs by a slip or two; "" where none is near.
func nearest(rules []Rule, text string) string {
	var ids []string
	for _, r := range rules {
		if slices.Contains(strings.Fields(r.Words), text) {
			return r.ID
		}
	}
	for _, r := range rules {
		if len(text) >= 3 && strings.Contains(r.ID, text) {
			return r.ID
		}
		ids = append(ids, r.ID)
	}
	return fault.Nearest(text, ids)
}

// short bounds what is repeated to the one who typed it.
func short(id string) string { return string([]rune(id)[:min(40, len([]rune(id)))]) }
