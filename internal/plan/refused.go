package plan

import (
	"errors"
	"strings"

	"thru/internal/fault"
)

// Refused is the error of a request that cannot be measured. Text and hint name options as {id} or
// {id=value}; each front end replaces them with its own spelling.
type Refused struct {
	text, hint string
	clash      *fault.Clash // of options that do not go together
}

// Refuse returns a usage error whose text and hint name options as in Refused.
func Refuse(hint, text string) error {
	r := &Refused{text: text, hint: hint}
	_, plain := r.Spell(named)
	return fault.Usagef(plain, "%w", r)
}

// refuseClash is Refuse for options that exclude each other, in lists separated by spaces.
func refuseClash(hint, these, with string) error {
	c := &fault.Clash{These: strings.Fields(these), With: strings.Fields(with)}
	err := Refuse(hint, c.Error())
	if r := (*Refused)(nil); errors.As(err, &r) {
		r.clash = c
	}
	return err
}

// Clash returns the options that exclude each other; nil if that is not the error.
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

// Error returns the text with the ids of the options.
func (r *Refused) Error() string { return spell(r.text, named) }

// Spell returns the text and the hint with the options spelled by as; its value is "" for the option itself.
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
