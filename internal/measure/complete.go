package measure

import (
	"reflect"
	"strings"
)

// Complete is a copy that names its schema and has empty lists where the schema
// wants lists, so that a reader of its JSON never meets null.
func Complete(d *Document) *Document {
	c := *d
	completer{}.fill(reflect.ValueOf(&c).Elem())
	c.Schema = Schema
	return &c
}

// completer knows of structs which fields, by their numbers, are lists that JSON always
// has, or have such in them.
type completer map[reflect.Type][]int

// fields are those of a struct, or of the structs that a pointer or a slice holds.
func (c completer) fields(t reflect.Type) []int {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if known, ok := c[t]; ok || t.Kind() != reflect.Struct {
		return known
	}
	c[t] = nil // a type that holds itself adds nothing
	for i := range t.NumField() {
		if f := t.Field(i); isList(f) || f.IsExported() && len(c.fields(f.Type)) > 0 {
			c[t] = append(c[t], i)
		}
	}
	return c[t]
}

// isList tells of a list that JSON has also where it is empty.
func isList(f reflect.StructField) bool {
	_, options, tagged := strings.Cut(f.Tag.Get("json"), ",")
	return f.IsExported() && f.Type.Kind() == reflect.Slice && !tagged && options == ""
}

// fill makes the lists of a value. What has such in it becomes a copy; all else is shared.
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

// list is a copy that is never nil.
func list[T any](s []T) []T { return append(make([]T, 0, len(s)), s...) }

// WithoutSamples is a copy that keeps of every second what a flow carried, and
// leaves out what each of its streams, cores and counters did in it: most of a
// document's length. It says so.
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
		c.Missing = append(list(d.Missing), NotChecked{Fact: "samples", Why: "left out of this document: --samples keeps them"})
	}
	return &c
}
