package platform

import (
	"reflect"
	"slices"

	"thru/internal/measure"
)

// Merge adds to the facts of the commands those from another source; where
// both have one, the commands' fact counts. not_checked drops a fact that
// either source has.
func Merge(facts, other measure.Facts) measure.Facts {
	interfaces := slices.Clone(facts.Interfaces)
	for _, o := range other.Interfaces {
		i := slices.IndexFunc(interfaces, func(d measure.Interface) bool { return d.Name == o.Name })
		if i < 0 {
			interfaces = append(interfaces, o)
			continue
		}
		fill(&interfaces[i], o)
	}
	notes := append(slices.Clone(facts.NotChecked), other.NotChecked...)
	fill(&facts, other)
	facts.Interfaces = interfaces
	facts.NotChecked = missing(facts, notes)
	return facts
}

// fill copies values into the empty fields of a structure.
func fill[T any](to *T, from T) {
	target, source := reflect.ValueOf(to).Elem(), reflect.ValueOf(from)
	for i := range target.NumField() {
		if target.Field(i).IsZero() {
			target.Field(i).Set(source.Field(i))
		}
	}
}

// missing returns the notes whose fact is absent, each once.
func missing(f measure.Facts, notes []measure.NotChecked) []measure.NotChecked {
	has := document(f)
	seen := map[string]bool{}
	return slices.DeleteFunc(notes, func(n measure.NotChecked) bool {
		known := has.holds(n.Fact)
		for _, i := range f.Interfaces {
			if key, ok := n.Below("interfaces." + i.Name); ok {
				known = known || has.port(i.Name).holds(key)
			}
		}
		drop := known || seen[n.Fact]
		seen[n.Fact] = true
		return drop
	})
}
