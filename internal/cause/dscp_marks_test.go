package cause

import (
	"testing"

	"thru/internal/measure"
)

// TestMarks checks the wording of marks that a path changes.
func TestMarks(t *testing.T) {
	sent := []int{46 << 2, 8 << 2, 0, 10 << 2, 26 << 2, 34 << 2, 48 << 2, 2, 3, 2} // out of order, one twice
	through := func(change func(dscp, ecn int) (int, int)) (list []measure.Mark) {
		for _, tos := range sent {
			d, e := change(tos>>2, tos&3)
			list = append(list, measure.Mark{Sent: tos >> 2, Seen: d, ECNSent: tos & 3, ECNSeen: e})
		}
		return list
	}
	for name, c := range map[string]struct {
		change       func(dscp, ecn int) (int, int)
		status, fact string
	}{
		"nothing": {func(d, e int) (int, int) { return d, e }, pass_, "marks arrive as they were sent (10 tried)"},
		"a full queue": {func(d, e int) (int, int) {
			if e == 2 {
				e = 3
			}
			return d, e
		}, pass_, "marks arrive as they were sent (10 tried)"},
		"all DSCP":    {func(d, e int) (int, int) { return 0, e }, warn_, "all DSCP are cleared (CS1, AF11, ..., CS6)"},
		"ToS byte":    {func(d, e int) (int, int) { return 0, 0 }, warn_, "all DSCP are cleared (CS1, AF11, ..., CS6); all ECN are cleared (ECT(0), CE)"},
		"precedence":  {func(d, e int) (int, int) { return d & 7, e }, warn_, "CS1, CS6 are cleared; AF11 arrives as DSCP 2, AF31 arrives as DSCP 2, ..., EF arrives as DSCP 6"},
		"one":         {func(d, e int) (int, int) { return d - d/46*d, e }, warn_, "EF, CS6 are cleared"},
		"ECN":         {func(d, e int) (int, int) { return d, e &^ 2 }, warn_, "ECT(0) is cleared; CE arrives as ECT(1)"},
		"another one": {func(d, e int) (int, int) { return max(d, 8), e }, warn_, "CS0 arrives as CS1"},
		"absurd":      {func(d, e int) (int, int) { return -d, e + 4 }, warn_, "CS1 arrives as DSCP -8, AF11 arrives as DSCP -10, ..., CS6 arrives as DSCP -48; Not-ECT arrives as ECN 4, ECT(0) arrives as ECN 6, CE arrives as ECN 7"},
	} {
		s := serverPair()
		s.Path.Forward.Marks = through(c.change)
		g, _ := of(Judge(s), "dscp")
		if g.Status != c.status || g.Fact != c.fact || (g.Status == warn_) != (g.Advice != "") {
			t.Errorf("%s: %s", name, gateText(g))
		}
	}
}
