package gate

import (
	"slices"
	"strings"

	"thru/internal/fault"
	"thru/internal/measure"
)

// Filter applies cause.Filter with these rules.
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

// known returns an error for an id that no rule has.
func known(rules []Rule, id string) error {
	for _, r := range rules {
		if r.ID == id {
			return nil
		}
	}
	hint := "list all gates: `thru check --list`"
	if near := nearest(rules, strings.ToLower(id)); near != "" {
		hint = "did you mean " + near + "? " + hint
	}
	return fault.Usagef(hint, "gate: choosing gates: there is no gate %q", short(id))
}

// nearest returns the id that a text may mean: the rule with this word in its Words, an id that contains the text,
// or one that differs by one or two typing errors; "" if none is near.
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

// short limits the length of a repeated user input.
func short(id string) string { return string([]rune(id)[:min(40, len([]rune(id)))]) }
