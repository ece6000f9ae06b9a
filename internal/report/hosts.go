package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"thru/internal/measure"
	"thru/internal/unit"
)

// hosts is a table of facts: a column for each end point, a row for each fact.
type hosts struct {
	Caption string
	Names   []string
	Rows    []factRow
	More    string // what it leaves out
}

type factRow struct {
	Name   string
	Values []string // one an end point; "not checked" where a fact is not known
}

const (
	notChecked    = "not checked"
	maxEndPoints  = 8
	maxInterfaces = 24
)

// newHosts lays the facts of all end points side by side.
func newHosts(d *measure.Document) hosts {
	points := d.EndPoints[:min(len(d.EndPoints), maxEndPoints)]
	h := hosts{Caption: "Facts of the end points when they were measured"}
	if n := len(d.EndPoints) - len(points); n > 0 {
		h.More = fmt.Sprintf("The facts of %d more are in the JSON document.", n)
	}
	add := func(name, absent string, value func(measure.EndPoint) string) {
		r := factRow{Name: name}
		known := false
		for _, p := range points {
			v := value(p)
			known = known || v != ""
			if v == "" {
				v = absent
			}
			r.Values = append(r.Values, v)
		}
		if known {
			h.Rows = append(h.Rows, r)
		}
	}
	for _, p := range points {
		h.Names = append(h.Names, clean(p.Name))
	}
	add("address", "-", func(p measure.EndPoint) string { return clean(p.Addr) })
	add("thru", "-", func(p measure.EndPoint) string { return clean(p.Thru) })
	add("answers as", "-", func(p measure.EndPoint) string { return clean(p.Speaks) })
	for _, f := range factColumns() {
		add(f.name, notChecked, func(p measure.EndPoint) string {
			if p.Facts == nil {
				return ""
			}
			return f.value(p.Facts)
		})
	}
	for n, r := range hostRows(&measure.Facts{}) {
		add(r.Name, notChecked, func(p measure.EndPoint) string {
			if p.Facts == nil {
				return ""
			}
			return clean(hostRows(p.Facts)[n].Value)
		})
	}
	for _, key := range sysctlNames(points) {
		add(key, notChecked, func(p measure.EndPoint) string {
			if p.Facts == nil {
				return ""
			}
			return clean(p.Facts.Sysctls[key])
		})
	}
	return h
}

type factColumn struct {
	name  string
	value func(*measure.Facts) string
}

func factColumns() []factColumn {
	text := func(s *string) string {
		if s == nil {
			return ""
		}
		return clean(*s)
	}
	return []factColumn{
		{"host name", func(f *measure.Facts) string { return text(f.Hostname) }},
		{"system", func(f *measure.Facts) string {
			return join(text(f.Distro), strings.TrimSpace(text(f.OS)+" "+text(f.Arch)))
		}},
		{"kernel", func(f *measure.Facts) string { return text(f.Kernel) }},
		{"CPU", func(f *measure.Facts) string { return join(text(f.CPUModel), coresText(f.Cores)) }},
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

func coresText(n *int) string {
	if n == nil {
		return ""
	}
	return unit.Plural(*n, "logical core")
}

// interfacesText names each interface with what bounds it.
func interfacesText(f *measure.Facts) string {
	var all []string
	for _, i := range f.Interfaces[:min(len(f.Interfaces), maxInterfaces)] {
		var about []string
		if i.MTU != nil {
			about = append(about, fmt.Sprintf("MTU %d", *i.MTU))
		}
		if i.SpeedBps != nil && *i.SpeedBps > 0 {
			speed := scaleFor(float64(*i.SpeedBps))
			s := plain(float64(*i.SpeedBps)/speed.div) + " " + speed.name
			if i.Nominal != nil && *i.Nominal {
				s += " in name only"
			}
			about = append(about, s)
		}
		if i.Driver != nil {
			about = append(about, clean(*i.Driver))
		}
		if i.Up != nil && !*i.Up {
			about = append(about, "down")
		}
		all = append(all, strings.TrimSpace(clean(i.Name)+" "+bracket(strings.Join(about, ", "))))
	}
	return strings.Join(all, "; ")
}

// sysctlNames are the sysctls that any end point has, in order.
func sysctlNames(points []measure.EndPoint) []string {
	names := map[string]bool{}
	for _, p := range points {
		if p.Facts != nil {
			for key := range p.Facts.Sysctls {
				names[clean(key)] = true
			}
		}
	}
	sorted := slices.Sorted(maps.Keys(names))
	return sorted[:min(len(sorted), maxLines)]
}
