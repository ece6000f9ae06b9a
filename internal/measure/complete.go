package measure

import (
	"reflect"
	"strings"
)

// Complete returns a copy of a document that names its schema and has empty lists where the schema requires lists, so that readers of its JSON never find
// null.
func Complete(d *Document) *Document {
	c := *d
	completer{}.fill(reflect.ValueOf(&c).Elem())
	c.Schema = Schema
	return &c
}

// completer caches for each struct the indices of the fields that are lists required in JSON, or that contain such lists.
type completer map[reflect.Type][]int

// fields returns these indices for a struct, or for the struct that a pointer or a slice holds.
func (c completer) fields(t reflect.Type) []int {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if known, ok := c[t]; ok || t.Kind() != reflect.Struct {
		return known
	}
	c[t] = nil // a recursive type adds nothing
	for i := range t.NumField() {
		if f := t.Field(i); isList(f) || f.IsExported() && len(c.fields(f.Type)) > 0 {
			c[t] = append(c[t], i)
		}
	}
	return c[t]
}

// isList reports whether a field is a list that JSON holds even when it is empty.
func isList(f reflect.StructField) bool {
	_, options, tagged := strings.Cut(f.Tag.Get("json"), ",")
	return f.IsExported() && f.Type.Kind() == reflect.Slice && !tagged && options == ""
}

// fill makes the missing lists of a value. It copies what contains such lists; all else is shared.
func (c completer) fill(v reflect.Value) {
	t := v.Type()
	fields := c.fields(t)
	if len(fields) == 0 || t.Kind() != reflect.Struct && v.IsNil() {
		return
	}
	switch t.Kind() {
	case reflect.Pointer:
		p := reflect.New(t.Elem())
		p.Elem().Set(v.Elem())
		c.fill(p.Elem())
		v.Set(p)
	case reflect.Slice:
		all := reflect.MakeSlice(t, v.Len(), v.Len())
		reflect.Copy(all, v)
		for i := range v.Len() {
			c.fill(all.Index(i))
		}
		v.Set(all)
	default:
		for _, i := range fields {
			if f := v.Field(i); f.Kind() == reflect.Slice && f.IsNil() && isList(t.Field(i)) {
				f.Set(reflect.MakeSlice(f.Type(), 0, 0))
			} else {
				c.fill(f)
			}
		}
	}
}

// list returns a copy that is never nil.
func list[T any](s []T) []T { return append(make([]T, 0, len(s)), s...) }

// WithoutSamples returns a copy without the figures of each stream, core and counter in every second: most of a document's length. It keeps what a flow
// carried in every second, and notes the omission in not_checked.
func WithoutSamples(d *Document) *Document {
	c := *d
	c.Cells = list(d.Cells)
	left := 0
	bare := func(e *Evidence) *Evidence {
		if e == nil {
			return nil
		}
		x := *e
		left += len(x.PerSec)
		x.PerSec, x.Bins = nil, list(x.Bins)
		for i := range x.Bins {
			left += len(x.Bins[i].Streams) + len(x.Bins[i].TCP)
			x.Bins[i].Streams, x.Bins[i].TCP = nil, nil
		}
		return &x
	}
	for i := range c.Cells {
		runs := list(c.Cells[i].Runs)
		for j := range runs {
			runs[j].Flows = list(runs[j].Flows)
			for k := range runs[j].Flows {
				f := &runs[j].Flows[k]
				f.Sender, f.Receiver = bare(f.Sender), bare(f.Receiver)
			}
		}
		c.Cells[i].Runs = runs
	}
	if left > 0 {
		c.Missing = append(list(d.Missing), NotChecked{Fact: "samples", Why: "this document omits them; --samples keeps them"})
	}
	return &c
}
