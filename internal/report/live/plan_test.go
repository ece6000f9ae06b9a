package live

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestPlan(t *testing.T) {
	l := Plan{Turn: 3, Turns: 12, Label: "mesh, 4 streams", Bps: new(7.52e9), Failed: 1, ElapsedNs: 40e9, TotalNs: 100e9,
		Pairs: []Pair{{"a", "b", new(940e6), false}, {"a", "c", nil, true}, {"b", "a", nil, false}}}
	ramp := Plan{Turn: 1, Turns: 1, Phase: "ramp", ElapsedNs: 1e9, TotalNs: 1000e9}
	tests := []struct {
		name         string
		live         Plan
		width, lines int
		want         string
	}{
		{"all", l, 100, 3, " 3/12    7.52 Gb/s   3 pairs   1 failed so far   mesh, 4 streams   [####------] 60 s left\n  a -> b  940 Mb/s   a -> c    failed   b -> a         -"},
		{"a column", l, 30, 4, " 3/12    7.52 Gb/s   1 failed\n  a -> b  940 Mb/s\n  a -> c    failed\n  b -> a         -"},
		{"the slowest", l, 30, 3, " 3/12    7.52 Gb/s   1 failed\n  a -> c    failed\n  and 2 more"},
		{"one line", l, 60, 1, " 3/12    7.52 Gb/s   3 pairs   1 failed so far   60 s left"},
		{"ramp", ramp, 0, 2, "1/1         ramp   [----------] 17 min left"},
		{"too narrow", l, 8, 1, " 3/12"},
	}
	for _, tt := range tests {
		got := PlanLines(tt.live, tt.width, tt.lines)
		if strings.Join(got, "\n") != tt.want {
			t.Errorf("%s:\n%s\nwant\n%s", tt.name, strings.Join(got, "\n"), tt.want)
		}
		if len(got) > tt.lines {
			t.Errorf("%s: %d lines of %d", tt.name, len(got), tt.lines)
		}
	}
}

// TestPlanFits: any number of pairs with any names.
func TestPlanFits(t *testing.T) {
	var l Plan
	for i := range 500 {
		l.Pairs = append(l.Pairs, Pair{fmt.Sprintf("host%d\x1b", i), strings.Repeat("x", i%90), new(float64(i) * 1e6), i == 77})
	}
	for width := 60; width <= 200; width += 20 {
		for _, line := range PlanLines(l, width, 10) {
			if n := utf8.RuneCountInString(line); n > width || strings.Contains(line, "\x1b") {
				t.Errorf("%d columns of %d: %q", n, width, line)
			}
		}
	}
}
