package plan

import (
	"strings"

	"thru/internal/fault"
)

// Refused is the error of a request that cannot be measured. Text and hint name
// options as {id} or {id=value}; each face spells them as its user writes them.
type Refused struct{ text, hint string }

// Refuse is an error of usage whose text and hint name options as Refused has them.
func Refuse(hint, text string) error {
	r := &Refused{text, hint}
	_, plain := r.Spell(named)
	return fault.Usagef(plain, "%w", r)
}

// Error is the text with the ids of the options.
func (r *Refused) Error() string { return spell(r.text, named) }

// Spell is the text and the hint with the options as a face spells them; a value
// is "" where the option as such is meant.
func (r *Refused) Spell(as func(id, value string) string) (text, hint string) {
	return spell(r.text, as), spell(r.hint, as)
}

func named(id, value string) string { return strings.TrimSpace(id + " " + value) }

func spell(text string, as func(id, value string) string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "{")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		name, after, _ := strings.Cut(rest, "}")
		id, value, _ := strings.Cut(name, "=")
		b.WriteString(as(id, value))
		text = after
	}
}
