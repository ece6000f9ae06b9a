package planfile

import (
	"slices"
	"strings"

	"thru/internal/measure"
	"thru/internal/plan"
	"thru/internal/plan/option"
	"thru/internal/unit"
)

// Names of axes that are no keys of the traffic.
const (
	variantAxis   = "variant"
	directionAxis = "direction"
)

// mostPoints limits the combinations of all axes and variants.
const mostPoints = 10_000

// point is one combination of values of the axes, and a variant.
type point struct {
	axes    []measure.Axis
	values  []*node // of the axes of the file, in order
	variant *variant
}

// countPoints refuses too many combinations.
func (f *File) countPoints() error {
	n := max(len(f.variants), 1)
	for _, a := range f.axes {
		if n *= len(a.values); n > mostPoints {
			where, _ := f.at("axes")
			return f.errorf(where, "vary fewer things at a time", "the axes and variants have more than %d combinations", mostPoints)
		}
	}
	return nil
}

// points lists all combinations in the order of the file: the last axis changes fastest, and the variants
// faster still, so that variants are adjacent.
func (f *File) points() []point {
	list := []point{{}}
	for _, a := range f.axes {
		var next []point
		for _, p := range list {
			for _, v := range a.values {
				next = append(next, point{
					axes:   append(slices.Clip(p.axes), measure.Axis{Name: a.key, Value: v.text}),
					values: append(slices.Clip(p.values), v),
				})
			}
		}
		list = next
	}
	if len(f.variants) == 0 {
		return list
	}
	var next []point
	for _, p := range list {
		for i := range f.variants {
			v := &f.variants[i]
			next = append(next, point{axes: append(slices.Clip(p.axes), measure.Axis{Name: variantAxis, Value: v.name}), values: p.values, variant: v})
		}
	}
	return next
}

// traffic returns the request at a point.
func (f *File) traffic(p point) (plan.Request, error) {
	t := f.base
	if p.variant != nil {
		if err := f.settle(&t, p.variant.settings); err != nil {
			return t, err
		}
	}
	for i, v := range p.values {
		if err := f.apply(&t, f.axes[i].key, v); err != nil {
			return t, err
		}
	}
	if f.hasten > 0 {
		t.Duration, t.Ramp, t.RampSet, t.Amount, t.Blocks, t.Repeat, t.PrecisionPct = min(t.Duration, f.hasten), 0, true, 0, 0, 1, 0
	}
	return t, nil
}

// label describes the traffic at a point: "4 streams, 800 KiB window". It includes the streams even if no
// axis varies them.
func (p point) label(t plan.Request, streams int) string {
	var parts []string
	varied := func(key string) bool {
		return slices.ContainsFunc(p.axes, func(a measure.Axis) bool { return a.Name == key })
	}
	if !varied("streams") && streams > 0 && !(streams == 1 && len(p.axes) > 0) {
		parts = append(parts, flows(t, streams))
	}
	for _, a := range p.axes {
		if text := phrase(a, t); text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, ", ")
}

// flows words the number of streams by their kind of traffic.
func flows(t plan.Request, n int) string {
	thing := "stream"
	switch {
	case t.Traffic == measure.RR:
		thing = "asker"
	case t.Traffic == measure.CRR:
		thing = "caller"
	case t.Protocol == measure.UDP:
		thing = "UDP stream"
	}
	return unit.Plural(n, thing)
}

// phrase words a value of an axis for a label; "" if another part of the label contains it.
func phrase(a measure.Axis, t plan.Request) string {
	v := clip(a.Value)
	switch a.Name {
	case "streams":
		return flows(t, t.Streams)
	case "window", "length":
		return sizes(v, map[string]measure.Pair{"window": t.Window, "length": t.Length}[a.Name]) + " " + a.Name
	case "cpus":
		return unit.Plural(t.CPUs, "CPU")
	case "end_points":
		return unit.Plural(t.EndPoints, "end point") + " a host"
	case "dscp":
		return "DSCP " + v
	case "mss":
		return "MSS " + v
	case "ip":
		return "IPv" + v
	case "protocol":
		return strings.ToUpper(v)
	case variantAxis, "io", "congestion":
		if v == option.Default {
			return v + " " + a.Name
		}
		return v
	case "kind":
		return map[string]string{"bulk": "bulk", measure.RR: "requests", measure.CRR: "connections"}[v]
	case directionAxis:
		return ""
	case "bitrate", "total_bitrate", "time", "bytes":
		return v
	default:
		return a.Name + " " + v
	}
}

// sizes words a window or length in the units of the reports.
func sizes(text string, p measure.Pair) string {
	switch {
	case p == (measure.Pair{}):
		return option.Default
	case p.Send == p.Recv:
		return unit.Size(p.Send)
	default:
		return text
	}
}

// axisValue returns the value of an axis.
func (f *File) axisValue(p point, key string) *node {
	for i, a := range f.axes {
		if a.key == key {
			return p.values[i]
		}
	}
	if p.variant != nil && p.variant.settings.get(key) != nil {
		return p.variant.settings.get(key)
	}
	if t, ok := f.at("traffic"); ok && t.get(key) != nil {
		return t.get(key)
	}
	return f.root
}

// direction returns the direction of a step for a label.
func direction(t plan.Request, s plan.Step) string {
	switch {
	case s.Label == plan.IdleLatency:
		return plan.IdleLatency
	case t.Bidir && t.Traffic == measure.Bulk:
		return s.Label
	case !t.OneWay:
		return s.Label
	default:
		return ""
	}
}
