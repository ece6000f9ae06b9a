package planfile

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"thru/internal/fault"
	"thru/internal/unit"
)

// starterHint tells how to get a plan.
const starterHint = "`thru plan new mesh` writes a plan to start from; `thru help plan` describes each key"

// source is the file being read. Its errors contain the position.
type source struct{ name, noun string }

// errorf returns an error at a node: "plan.yaml:12:5: what is wrong".
func (s *source) errorf(n *node, hint, format string, args ...any) error {
	return fault.Usagef(hint, "%s:%d:%d: %w", s.name, n.line, n.col, fmt.Errorf(format, args...))
}

// clip shortens a text of the file for an error, and removes control characters.
func clip(text string) string { return unit.Line(text, mostTitle) }

// meant returns the hint for an unknown word.
func meant(text string, words []string) string {
	if near := fault.Nearest(strings.ToLower(strings.ReplaceAll(text, "-", "_")), words); near != "" {
		return fmt.Sprintf("did you mean %s? There is %s", near, fault.Or(words))
	}
	return "there is " + fault.Or(words)
}

// keysOf refuses a node that is no mapping, and unknown keys.
func (s *source) keysOf(n *node, what string, known ...string) error {
	if n.kind != mapNode {
		return s.errorf(n, fmt.Sprintf("%s has keys: %s", what, fault.Or(known)), "%s is %s, not a mapping", what, n.describe())
	}
	var all []error
	for _, k := range n.keys {
		if !slices.Contains(known, k.text) {
			all = append(all, s.errorf(k, meant(k.text, known), "%s has no key %q", what, clip(k.text)))
		}
	}
	return errors.Join(all...)
}

// field is a key of a mapping, and the function that reads its value.
type field struct {
	key  string
	read func(*node) error
}

// into returns a function that reads a value into place.
func into[T any](place *T, read func(*node) (T, error)) func(*node) error {
	return func(n *node) (err error) {
		*place, err = read(n)
		return err
	}
}

// fields reads a mapping and refuses other keys; the first required ones must be present.
func (s *source) fields(x *node, what, example string, required int, all []field) error {
	known := unit.Mapped(all, func(f field) string { return f.key })
	if err := s.keysOf(x, what, known...); err != nil {
		return err
	}
	for i, f := range all {
		n := x.get(f.key)
		if n == nil && i < required {
			return s.errorf(x, example, "%s has no %s", what, f.key)
		}
		if n != nil {
			if err := f.read(n); err != nil {
				return err
			}
		}
	}
	return nil
}

// describe returns the node's value for an error.
func (n *node) describe() string {
	switch n.kind {
	case numberNode, textNode, boolNode:
		return fmt.Sprintf("%q", clip(n.text))
	default:
		return n.kind.String()
	}
}

// words reads a text; a number is accepted, too.
func (s *source) words(n *node, what, example string) (string, error) {
	if n.kind != textNode && n.kind != numberNode || n.text == "" {
		return "", s.errorf(n, fmt.Sprintf("%s takes a value such as %s", what, example), "%s is %s", what, n.value())
	}
	return n.text, nil
}

// value is describe for a scalar that may be empty.
func (n *node) value() string {
	if n.kind == textNode && n.text == "" {
		return "empty"
	}
	return n.describe()
}

// oneOf reads one of the allowed words.
func (s *source) oneOf(n *node, what string, allowed ...string) (string, error) {
	if n.kind == textNode && slices.Contains(allowed, n.text) {
		return n.text, nil
	}
	hint := fmt.Sprintf("%s takes %s", what, fault.Or(allowed))
	if near := fault.Nearest(strings.ToLower(n.text), allowed); near != "" {
		hint = fmt.Sprintf("did you mean %s? %s", near, hint)
	}
	return "", s.errorf(n, hint, "%s is %s", what, n.value())
}

// choose returns a function that reads one of the allowed words into place.
func (s *source) choose(place *string, what string, allowed ...string) func(*node) error {
	return into(place, func(n *node) (string, error) { return s.oneOf(n, what, allowed...) })
}

// list reads a list that is not empty.
func (s *source) list(n *node, what, example string) ([]*node, error) {
	if n.kind != listNode {
		return nil, s.errorf(n, fmt.Sprintf("%s takes a list such as %s", what, example), "%s is %s, not a list", what, n.value())
	}
	if len(n.items) == 0 {
		return nil, s.errorf(n, fmt.Sprintf("%s takes a list such as %s; leave the key out for none", what, example), "%s is an empty list", what)
	}
	return n.items, nil
}

// each reads the entries of a list of at most most entries.
func each[T any](s *source, n *node, what, example string, most int, read func(*node) (T, error)) ([]T, error) {
	items, err := s.list(n, what, example)
	if err != nil {
		return nil, err
	}
	if len(items) > most {
		return nil, s.errorf(n, "take fewer", "%s has %d entries, more than %d", what, len(items), most)
	}
	var values []T
	var all []error
	for _, x := range items {
		v, err := read(x)
		values, all = append(values, v), append(all, err)
	}
	return values, errors.Join(all...)
}

// once holds the noun and the hint for a duplicate entry of a list.
type once struct{ what, hint string }

// entries reads the entries of a key; none if the file does not have it. Entries without a name may repeat.
func entries[T any](f *File, key, example string, most int, name func(T) string, o once, read func(*node) (T, error)) ([]T, error) {
	n, ok := f.at(key)
	if !ok {
		return nil, nil
	}
	seen := map[string]bool{}
	return each(f.source, n, key, example, most, func(x *node) (T, error) {
		v, err := read(x)
		switch id := name(v); {
		case err != nil || id == "":
		case seen[id]:
			err = f.errorf(x, o.hint, "the %s %q exists twice", o.what, clip(id))
		default:
			seen[id] = true
		}
		return v, err
	})
}
