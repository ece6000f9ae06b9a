package result

import (
	"fmt"
	"slices"
	"strings"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/unit"
)

// ClassName returns the name of a code point (RFC 2474, RFC 3246), or its number.
func ClassName(dscp int) string {
	switch {
	case dscp == 0:
		return "BE"
	case dscp == 46:
		return "EF"
	case dscp%8 == 0:
		return fmt.Sprintf("CS%d", dscp/8)
	}
	return fmt.Sprintf("DSCP %d", dscp)
}

// AxesText returns "streams 8, window 800K".
func AxesText(axes []measure.Axis) string {
	var all []string
	for _, a := range axes {
		all = append(all, doc.Clean(strings.ReplaceAll(a.Name, "_", " ")+" "+a.Value))
	}
	return strings.Join(all, ", ")
}

// Conditions returns the axes other than the pairs.
func Conditions(axes []measure.Axis) []measure.Axis {
	return slices.DeleteFunc(slices.Clone(axes), func(a measure.Axis) bool { return a.Name == "pair" || a.Name == "pairs" })
}

// SetName returns the axes in words, or else the label of the group.
func SetName(axes []measure.Axis, label string) string {
	words := unit.Mapped(axes, AxisWords)
	if len(words) == 0 {
		return doc.Clean(label)
	}
	return strings.Join(words, ", ")
}

// AxisWords returns one value of an axis: "4 streams", "800K window".
func AxisWords(a measure.Axis) string {
	v := doc.Clean(a.Value)
	plural := func(one, many string) string {
		if v == "1" {
			return "1 " + one
		}
		return v + " " + many
	}
	switch a.Name {
	case "streams":
		return plural("stream", "streams")
	case "window":
		return v + " window"
	case "end_points":
		return plural("end point", "end points") + " a host"
	case "cpus":
		return plural("CPU", "CPUs")
	case "dscp":
		return "DSCP " + v
	case "congestion", "variant", "direction":
		return v
	}
	return doc.Clean(strings.ReplaceAll(a.Name, "_", " ")) + " " + v
}
