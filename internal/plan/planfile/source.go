package planfile

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"thru/internal/fault"
	"thru/internal/unit"
)

// starterHint says where a plan comes from.
const starterHint = "`thru plan new mesh` writes a plan to start from; `thru help plan` describes each key"

// source is the file that is read. Its errors say where.
type source struct{ name string }

// errorf is an error at a node: "plan.yaml:12:5: what is wrong".
func (s *source) errorf(n *node, hint, format string, args ...any) error {
	return fault.Usagef(hint, "%s:%d:%d: %w", s.name, n.line, n.col, fmt.Errorf(format, args...))
}

// clip is a text from the file as an error repeats it: short, and without
// signs that would move a terminal's cursor.
func clip(text string) string { return unit.Line(text, mostTitle) }

// meant is the hint about a word that is none of those known.
func meant(text string, words []string) string {
	if near := fault.Nearest(strings.ToLower(strings.ReplaceAll(text, "-", "_")), words); near != "" {
		return fmt.Sprintf("did you mean %s? There is %s", near, fault.Or(words))
	}
	return "there is " + fault.Or(words)
}

// keysOf refuses a node that is no mapping, and keys that are not known.
func (s *source) keysOf(n *node, what string, known ...string) error {
	if n.kind != mapNode {
		return s.errorf(n, fmt.Sprintf("%s has keys: %s", what, fault.Or(known)), "%s is %s, and not a mapping", what, n.describe())
	}
	var all []error
	for _, k := range n.keys {
		if !slices.Contains(known, k.text) {
			all = append(all, s.errorf(k, meant(k.text, known), "%s has no key %q", what, clip(k.text)))
		}
	}
	return errors.Join(all...)
}

// field is a key of a mapping, and what reads its value.
type field struct {
	key  string
	read func(*node) error
}

// into reads a value to where it belongs.
func into[T any](place *T, read func(*node) (T, error)) func(*node) error {
	return func(n *node) (err error) {
		*place, err = read(n)
		return err
	}
}

// fields reads a mapping, which has no other keys; required are those that it must have.
func (s *source) fields(x *node, what, example string, required int, all []field) error {
	var known []string
	for _, f := range all {
		known = append(known, f.key)
	}
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

// describe is the node's value for an error.
func (n *node) describe() string {
	switch n.kind {
	case numberNode, textNode, boolNode:
		return fmt.Sprintf("%q", clip(n.text))
	default:
		return n.kind.String()
	}
}

// words reads a value that is a text; a number will do where it can be one.
func (s *source) words(n *node, what, example string) (string, error) {
	if n.kind != textNode && n.kind != numberNode || n.text == "" {
		return "", s.errorf(n, fmt.Sprintf("%s takes a value such as %s", what, example), "%s is %s", what, n.value())
	}
	return n.text, nil
}

// value is describe, for a scalar that may be empty.
func (n *node) value() string {
	if n.kind == textNode && n.text == "" {
		return "empty"
	}
	return n.describe()
}

// oneOf reads one of a few words.
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

// choose reads one of a few words to where it belongs.
func (s *source) choose(place *string, what string, allowed ...string) func(*node) error {
	return into(place, func(n *node) (string, error) { return s.oneOf(n, what, allowed...) })
}

// list reads a list with something in it.
func (s *source) list(n *node, what, example string) ([]*node, error) {
	if n.kind != listNode {
		return nil, s.errorf(n, fmt.Sprintf("%s takes a list such as %s", what, example), "%s is %s, and not a list", what, n.value())
	}
	if len(n.items) == 0 {
		return nil, s.errorf(n, fmt.Sprintf("%s takes a list such as %s; leave the key out for none", what, example), "%s is an empty list", what)
	}
	return n.items, nil
}

// each reads the entries of a list, of which there may be so many.
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

// once is how an entry is called that stands in a list twice, and what to do then.
type once struct{ what, hint string }

// entries reads those of a key, none where the file does not have it. What has no
// name may be there twice.
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
			err = f.errorf(x, o.hint, "the %s %q is there twice", o.what, clip(id))
		default:
			seen[id] = true
		}
		return v, err
	})
}
