package facts

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/unit"
)

// Hosts is a table of facts: a column for each end point, a row for each fact.
type Hosts struct {
	Caption string
	Names   []string
	Rows    []Row
	More    string // what the table omits
}

// Row is one fact of all end points.
type Row struct {
	Name   string
	Values []string // one for each end point; "not checked" if unknown
}

// NewHosts returns the facts of all end points side by side.
func NewHosts(d *measure.Document) Hosts {
	points := d.EndPoints[:min(len(d.EndPoints), MostEndPoints)]
	h := Hosts{Caption: "Facts of the end points during the measurement"}
	if n := len(d.EndPoints) - len(points); n > 0 {
		h.More = fmt.Sprintf("The facts of %d more are in the JSON document.", n)
	}
	add := func(name, absent string, value func(measure.EndPoint) string) {
		r := Row{Name: name}
		known := false
		for _, p := range points {
			v := value(p)
			known = known || v != ""
			v = cmp.Or(v, absent)
			r.Values = append(r.Values, v)
		}
		if known {
			h.Rows = append(h.Rows, r)
		}
	}
	for _, p := range points {
		h.Names = append(h.Names, doc.Clean(p.Name))
	}
	add("address", "-", func(p measure.EndPoint) string { return doc.Clean(p.Addr) })
	add("thru", "-", func(p measure.EndPoint) string { return doc.Clean(p.Thru) })
	add("program", "-", func(p measure.EndPoint) string { return doc.Clean(p.Speaks) })
	for _, f := range Columns() {
		add(f.Name, doc.NotChecked, func(p measure.EndPoint) string {
			if p.Facts == nil {
				return ""
			}
			return f.Value(p.Facts)
		})
	}
	for n, r := range hostRows(&measure.Facts{}) {
		add(r.Name, doc.NotChecked, func(p measure.EndPoint) string {
			if p.Facts == nil {
				return ""
			}
			return doc.Clean(hostRows(p.Facts)[n].Value)
		})
	}
	for _, key := range sysctlNames(points) {
		add(key, doc.NotChecked, func(p measure.EndPoint) string {
			if p.Facts == nil {
				return ""
			}
			return doc.Clean(p.Facts.Sysctls[key])
		})
	}
	return h
}

// Column is a fact of a host as a table column.
type Column struct {
	Name  string
	Value func(*measure.Facts) string
}

// Columns returns the facts that tables show side by side.
func Columns() []Column {
	text := func(s *string) string { return doc.Clean(measure.Value(s)) }
	return []Column{
		{"host name", func(f *measure.Facts) string { return text(f.Hostname) }},
		{"system", func(f *measure.Facts) string {
			return doc.Join(text(f.Distro), strings.TrimSpace(text(f.OS)+" "+text(f.Arch)))
		}},
		{"kernel", func(f *measure.Facts) string { return text(f.Kernel) }},
		{"CPU", func(f *measure.Facts) string { return doc.Join(text(f.CPUModel), Cores(f.Cores)) }},
		{"memory", func(f *measure.Facts) string {
			if f.Memory == nil {
				return ""
			}
			return unit.Size(*f.Memory)
		}},
		{"hypervisor", func(f *measure.Facts) string { return text(f.Hypervisor) }},
		{"congestion control", func(f *measure.Facts) string { return text(f.Congestion) }},
		{"interfaces", interfacesText},
	}
}

// Cores counts the logical cores; "" if unknown.
func Cores(n *int) string {
	return doc.Known("%s", n, func(n int) string { return unit.Plural(n, "logical core") })
}

// interfacesText names each interface with its MTU and speed.
func interfacesText(f *measure.Facts) string {
	var all []string
	for _, i := range f.Interfaces[:min(len(f.Interfaces), MostInterfaces)] {
		about := said(nil, i.MTU, func(n int) string { return fmt.Sprintf("MTU %d", n) })
		if i.SpeedBps != nil && *i.SpeedBps > 0 {
			speed := doc.ScaleFor(float64(*i.SpeedBps))
			s := doc.Plain(float64(*i.SpeedBps)/speed.Div) + " " + speed.Name
			if i.Nominal != nil && *i.Nominal {
				s += " nominal"
			}
			about = append(about, s)
		}
		about = said(about, i.Driver, doc.Clean)
		if i.Up != nil && !*i.Up {
			about = append(about, "down")
		}
		all = append(all, strings.TrimSpace(doc.Clean(i.Name)+" "+doc.Bracket(strings.Join(about, ", "))))
	}
	return strings.Join(all, "; ")
}

// sysctlNames returns the sysctls that any end point has, in order.
func sysctlNames(points []measure.EndPoint) []string {
	names := map[string]bool{}
	for _, p := range points {
		if p.Facts != nil {
			for key := range p.Facts.Sysctls {
				names[doc.Clean(key)] = true
			}
		}
	}
	sorted := slices.Sorted(maps.Keys(names))
	return sorted[:min(len(sorted), doc.MostLines)]
}

// Table returns the facts of all hosts side by side.
func (h *Hosts) Table() doc.Table {
	t := doc.Table{Caption: h.Caption, Sheet: true, Columns: []doc.Column{{Name: "fact"}}}
	for _, n := range h.Names {
		t.Columns = append(t.Columns, doc.Column{Name: n})
	}
	for _, r := range h.Rows {
		t.Rows = append(t.Rows, append([]string{r.Name}, r.Values...))
	}
	return t
}
