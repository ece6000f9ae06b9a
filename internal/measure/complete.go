package measure

import (
	"reflect"
	"slices"
	"strings"
)

// Complete is a copy that names its schema and has empty lists where the schema
// wants lists, so that a reader of its JSON never meets null.
func Complete(d *Document) *Document {
	c := completer{}.fill(reflect.ValueOf(*d)).Interface().(Document)
	c.Schema = Schema
	return &c
}

// completer knows of types whether JSON has lists in them that are always there.
type completer map[reflect.Type]bool

func (c completer) hasLists(t reflect.Type) bool {
	if known, ok := c[t]; ok {
		return known
	}
	c[t] = false // a type that holds itself adds nothing
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		c[t] = c.hasLists(t.Elem())
	case reflect.Struct:
		c[t] = slices.ContainsFunc(reflect.VisibleFields(t), func(f reflect.StructField) bool { return isList(f) || f.IsExported() && c.hasLists(f.Type) })
	}
	return c[t]
}

// isList tells of a list that JSON has also where it is empty.
func isList(f reflect.StructField) bool {
	_, options, tagged := strings.Cut(f.Tag.Get("json"), ",")
	return f.IsExported() && f.Type.Kind() == reflect.Slice && !tagged && options == ""
}

// fill is a copy of a value with all its lists; what has none is shared.
func (c completer) fill(v reflect.Value) reflect.Value {
	t := v.Type()
	if !c.hasLists(t) || t.Kind() != reflect.Struct && v.IsNil() {
		return v
	}
	switch t.Kind() {
	case reflect.Pointer:
		p := reflect.New(t.Elem())
		p.Elem().Set(c.fill(v.Elem()))
		return p
	case reflect.Slice:
		all := reflect.MakeSlice(t, v.Len(), v.Len())
		for i := range v.Len() {
			all.Index(i).Set(c.fill(v.Index(i)))
		}
		return all
	}
	x := reflect.New(t).Elem()
	x.Set(v)
	for _, f := range reflect.VisibleFields(t) {
		switch to := x.FieldByIndex(f.Index); {
		case isList(f) && to.IsNil():
			to.Set(reflect.MakeSlice(f.Type, 0, 0))
		case f.IsExported():
			to.Set(c.fill(to))
		}
	}
	return x
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
