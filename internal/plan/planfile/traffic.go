package planfile

import (
	"errors"
	"slices"

	"thru/internal/fault"
	"thru/internal/plan"
	"thru/internal/plan/option"
)

// apply changes a request by one key of the table of options and its value.
func (s *source) apply(r *plan.Request, key string, n *node) error {
	o := option.Find(key)
	kinds := map[option.Kind][]kind{option.Whole: {numberNode}, option.Truth: {boolNode}, option.Word: {textNode}, option.Text: {textNode, numberNode}}[o.Kind]
	if !slices.Contains(kinds, n.kind) || n.text == "" {
		return s.errorf(n, o.Hint(key, n.text), "%s is %s, not %s", key, n.value(), map[option.Kind]string{option.Whole: "a whole number", option.Truth: "true or false"}[o.Kind])
	}
	if err := o.Set(r, n.text); err != nil {
		return s.errorf(n, o.Hint(key, n.text), "%s is %s: %w", key, n.value(), err)
	}
	return nil
}

// settle applies all settings of a mapping.
func (f *File) settle(r *plan.Request, n *node) error {
	var all []error
	for i, k := range n.keys {
		if slices.Contains(option.Keys(option.OfTraffic), k.text) {
			all = append(all, f.apply(r, k.text, n.items[i]))
		}
	}
	return errors.Join(all...)
}

// clash refuses keys of a mapping that exclude each other.
func (f *File) clash(n *node) error {
	var given []option.Given
	for _, k := range n.keys {
		given = append(given, option.Given{ID: k.text})
		if err := option.Clash(given); err != nil {
			return f.spelled(err, k)
		}
	}
	return nil
}

// spelled words an error about options as in a plan file, at the position of a key that it names, in the last
// mapping first, else at where.
func (s *source) spelled(err error, where *node, mappings ...*node) error {
	var named []string
	option.Spelled(err, func(id, value string) string {
		named = append(named, id)
		return ""
	})
	for _, m := range slices.Backward(mappings) {
		if m == nil {
			continue
		}
		if i := slices.IndexFunc(m.keys, func(k *node) bool { return slices.Contains(named, k.text) }); i >= 0 {
			where = m.keys[i]
			break
		}
	}
	err = option.Spelled(err, option.AsKey)
	if clash := (*fault.Clash)(nil); errors.As(err, &clash) {
		*clash = clash.Typed(written(mappings))
	}
	return s.errorf(where, fault.Hint(err), "%w", err)
}

// written returns the options of some mappings as errors spell them.
func written(mappings []*node) (names []string) {
	for _, m := range mappings {
		if m == nil {
			continue
		}
		for i, k := range m.keys {
			names = append(names, k.text, option.AsKey(k.text, m.items[i].text))
			for _, value := range m.items[i].items {
				names = append(names, option.AsKey(k.text, value.text))
			}
		}
	}
	return names
}

// isBidirectional reports whether the traffic of a pair goes in both directions.
func isBidirectional(r plan.Request) bool { return !r.OneWay && !r.Reverse }
