package vsphere

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/vmware/govmomi/vim25/types"

	"thru/internal/measure"
)

// reader reads values from an object as the server sent it, and notes the
// reasons for missing ones.
type reader struct {
	object *types.ObjectContent
	unset  string // why the server may omit what it does not refuse
	gaps   []measure.NotChecked
}

// noReason is the reason where no better one is known.
const noReason = "the server does not report it"

// value reads a property. Where it is missing and fact is not empty, value
// notes the fact, with the refusal or else unset ("": the reader's) as the
// reason.
func value[T any](r *reader, fact, path, unset string) (T, bool) {
	var none T
	for _, p := range r.object.PropSet {
		if p.Name != path {
			continue
		}
		switch v := p.Val.(type) {
		case T:
			return v, true
		case *T:
			if v != nil {
				return *v, true
			}
		}
		r.gap(fact, fmt.Sprintf("the server reports %s in an undocumented form (%T)", path, p.Val))
		return none, false
	}
	r.gap(fact, cmp.Or(refusal(r.object, path), unset, r.unset))
	return none, false
}

// gap notes a missing fact.
func (r *reader) gap(fact, why string) {
	if fact == "" {
		return
	}
	r.gaps = append(r.gaps, measure.NotChecked{Fact: fact, Why: cmp.Or(why, noReason)})
}

// refusal returns why a server refuses a property, or "".
func refusal(o *types.ObjectContent, path string) string {
	for _, m := range o.MissingSet {
		// A refusal of "config" covers all its parts.
		if m.Path != path && !strings.HasPrefix(path, m.Path+".") {
			continue
		}
		if f, is := m.Fault.Fault.(*types.NoPermission); is {
			return noPermission(f)
		}
		if m.Fault.LocalizedMessage != "" {
			return fmt.Sprintf("the server refuses it: %.200s", m.Fault.LocalizedMessage)
		}
		return "the server refuses it: " + strings.TrimPrefix(fmt.Sprintf("%T", m.Fault.Fault), "*types.")
	}
	return ""
}

// text reads a property that is a word; an empty one is missing.
func (r *reader) text(fact, path, unset string) *string {
	n := len(r.gaps)
	v, ok := value[any](r, fact, path, unset)
	if !ok {
		return nil
	}
	if s := wordOf(v); s != "" {
		return &s
	}
	if len(r.gaps) == n {
		r.gap(fact, unset)
	}
	return nil
}

// wordOf returns the text of a string or of an API enumeration.
func wordOf(v any) string {
	if x := reflect.ValueOf(v); x.Kind() == reflect.String {
		return strings.TrimSpace(x.String())
	}
	return ""
}

// number reads a 32-bit number.
func (r *reader) number(fact, path, unset string) *int {
	if v, ok := value[int32](r, fact, path, unset); ok {
		return new(int(v))
	}
	return nil
}

// truth reads a yes or no.
func (r *reader) truth(fact, path, unset string) *bool {
	if v, ok := value[bool](r, fact, path, unset); ok {
		return &v
	}
	return nil
}

// word returns a pointer to a text, or nil where it is empty.
func word(s string) *string {
	if s = strings.TrimSpace(s); s != "" {
		return &s
	}
	return nil
}

// positive returns a pointer to a number above zero, or nil: the API has 0
// for unknown values.
func positive[T int16 | int32 | int64 | int](n T) *int {
	if n > 0 {
		return new(int(n))
	}
	return nil
}

// refusals collects what an account may not read: once for each kind of
// object and property, since a thousand machines lack it for the same reason.
type refusals struct {
	order []string
	of    map[string]*refused
}

// refused is one property that is refused.
type refused struct {
	fact, why, first string
	more             int
}

// note adds the refusals of an object.
func (f *refusals) note(kind, name string, o *types.ObjectContent) {
	for _, m := range o.MissingSet {
		why := refusal(o, m.Path)
		key := kind + "\x00" + m.Path + "\x00" + why
		if f.of == nil {
			f.of = map[string]*refused{}
		}
		if known := f.of[key]; known != nil {
			known.more++
			continue
		}
		f.of[key] = &refused{fact: kind + "." + m.Path, why: why, first: name}
		f.order = append(f.order, key)
	}
}

// list returns the refusals in words, in order of occurrence.
func (f *refusals) list() []measure.NotChecked {
	var all []measure.NotChecked
	for _, key := range f.order {
		r := f.of[key]
		of := " of " + r.first
		if r.more > 0 {
			of += fmt.Sprintf(" and %d more", r.more)
		}
		all = append(all, measure.NotChecked{Fact: r.fact, Why: r.why + of})
	}
	return all
}

// compact sorts and removes duplicates.
func compact(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}

// interfaceOf reads a property of an interface type. The decoder returns a
// value, but methods have pointer receivers.
func interfaceOf[T any](r *reader, path string) T {
	var none T
	v, ok := value[any](r, "", path, "")
	if !ok || v == nil {
		return none
	}
	if t, is := v.(T); is {
		return t
	}
	p := reflect.New(reflect.TypeOf(v))
	p.Elem().Set(reflect.ValueOf(v))
	if t, is := p.Interface().(T); is {
		return t
	}
	return none
}
