package stat

import (
	"strings"
	"testing"

	"thru/internal/measure"
)

// linked is a flow over a link of 10 Gb/s at MTU 1500, whose rate was stated or is that of the interfaces.
func linked(from, to string, gbps float64, how string) measure.Cell {
	c := part{from, to, 0, []float64{gbps, gbps}, 0}.cell()
	f := &c.Runs[0].Flows[0]
	f.Sender.Route, f.Receiver.Route = &measure.Route{Interface: "eth0"}, &measure.Route{Interface: "eth0"}
	c.Ceiling = &measure.Ceiling{Bps: 9.4e9, LinkBps: 10e9, LinkFrom: how, MTU: 1500, SharePct: 100 * gbps / 9.4}
	return c
}

// ports gives each host a port of 10 Gb/s, or of 25 if its name says so.
func ports(names ...string) []measure.EndPoint {
	var all []measure.EndPoint
	for _, n := range names {
		speed := int64(10e9)
		if strings.HasPrefix(n, "fast") {
			speed = 25e9
		}
		all = append(all, measure.EndPoint{Name: n, Facts: &measure.Facts{Interfaces: []measure.Interface{{Name: "eth0", SpeedBps: &speed}}}})
	}
	return all
}

func TestPlanVerdict(t *testing.T) {
	const face = "interface eth0 at a"
	streams := func(c measure.Cell, group int, n string) measure.Cell {
		c.Group, c.Axes = group, []measure.Axis{{Name: "streams", Value: n}}
		return c
	}
	failed := linked("a", "x", 9.3, stated)
	failed.Error = &measure.Error{Message: "cut"}
	for name, tt := range map[string]struct {
		cells []measure.Cell
		want  string // "pass", "fail" or "" of no verdict
		says  string
	}{
		"many to one, full":             {[]measure.Cell{linked("a", "x", 4.65, face), linked("b", "x", 4.65, face)}, "pass", "carry 98.94%"},
		"many to one, not full":         {[]measure.Cell{linked("a", "x", 4, face), linked("b", "x", 4, face)}, "fail", "a -> x carry 85.11%"},
		"two pairs of their own, full":  {[]measure.Cell{linked("a", "x", 9.2, face), linked("b", "y", 9.3, face)}, "pass", "97.87%"},
		"two pairs, one is not":         {[]measure.Cell{linked("a", "x", 9.2, face), linked("b", "y", 5, face)}, "fail", "b -> y carry 53.19%"},
		"into a faster port":            {[]measure.Cell{linked("a", "fast", 9.2, face), linked("b", "fast", 9.2, face)}, "pass", "97.87%"},
		"a stated link that all take":   {[]measure.Cell{linked("a", "x", 3.1, stated), linked("b", "y", 3.1, stated), linked("c", "z", 3.1, stated)}, "pass", "98.94%"},
		"a mesh of stated links":        {[]measure.Cell{linked("a", "b", 4.6, stated), linked("a", "c", 4.6, stated), linked("b", "a", 4.6, stated), linked("b", "c", 4.6, stated)}, "pass", "97.87%"},
		"the best number of streams":    {[]measure.Cell{streams(linked("a", "x", 5, stated), 0, "1"), streams(linked("a", "x", 9.3, stated), 1, "4")}, "pass", "98.94%"},
		"another pair falls short":      {[]measure.Cell{streams(linked("a", "x", 9.3, stated), 0, "4"), streams(linked("a", "y", 5, stated), 1, "4")}, "fail", "a to y"},
		"more than the link carries":    {[]measure.Cell{linked("a", "x", 9.74, stated), linked("b", "y", 5, stated)}, "fail", "an assumption"},
		"one failed":                    {[]measure.Cell{failed, linked("b", "y", 9.3, stated)}, "", ""},
		"no known rate":                 {cellsOfParts(part{"a", "x", 0, []float64{1, 1}, 0}), "", ""},
		"a rate below it was asked for": {[]measure.Cell{func() measure.Cell { c := linked("a", "x", 1, stated); c.Spec.Rate = 1e9; return c }()}, "", ""},
	} {
		d := planned(tt.cells...)
		d.EndPoints = ports("a", "b", "c", "x", "y", "z", "fast")
		Groups(d)
		got, said := "", ""
		if v := d.Verdict; v != nil {
			got, said = map[bool]string{true: "pass", false: "fail"}[v.Pass], v.Reason
		}
		if got != tt.want || !strings.Contains(said, tt.says) {
			t.Errorf("%s: %q %q, want %q %q", name, got, said, tt.want, tt.says)
		}
	}
}
