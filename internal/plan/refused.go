package plan

import (
	"errors"
	"strings"

	"thru/internal/fault"
)

// Refused is the error of a request that cannot be measured. Text and hint name
// options as {id} or {id=value}; each face spells them as its user writes them.
type Refused struct {
	text, hint string
	clash      *fault.Clash // of options that do not go together
}

// Refuse is an error of usage whose text and hint name options as Refused has them.
func Refuse(hint, text string) error {
	r := &Refused{text: text, hint: hint}
	_, plain := r.Spell(named)
	return fault.Usagef(plain, "%w", r)
}

// refuseClash is Refuse of options that do not go with others, in lists parted by spaces.
func refuseClash(hint, these, with string) error {
	c := &fault.Clash{These: strings.Fields(these), With: strings.Fields(with)}
	err := Refuse(hint, c.Error())
	if r := (*Refused)(nil); errors.As(err, &r) {
		r.clash = c
	}
	return err
}

// Clash is that of a request whose options do not go together; nil of another one.
func (r *Refused) Clash(as func(id, value string) string) *fault.Clash {
	if r.clash == nil {
		return nil
	}
	var c fault.Clash
	for _, name := range r.clash.These {
		c.These = append(c.These, spell(name, as))
	}
	for _, name := range r.clash.With {
		c.With = append(c.With, spell(name, as))
	}
	return &c
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
