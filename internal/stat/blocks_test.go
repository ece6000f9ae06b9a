package stat

import (
	"strings"
	"testing"
	"time"

	"thru/internal/measure"
)

// blocksDoc is a plan of two variants in blocks: the last back runs of the base came after those of the variant.
func blocksDoc(order string, base, own []float64, back int) *measure.Document {
	d := variants(map[string][]float64{"a": base, "b": own})
	d.Plan = &measure.Planned{Order: order}
	begin := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	for i := range d.Cells {
		name, _ := variantOf(d.Cells[i].Axes)
		for n := range d.Cells[i].Runs {
			at := n
			if name == "b" {
				at += 50
			} else if n >= len(base)-back {
				at += 100
			}
			d.Cells[i].Runs[n].StartedAt = begin.Add(time.Duration(at) * time.Minute)
		}
	}
	return d
}

func TestBlocks(t *testing.T) {
	steady := []float64{5.00, 5.02, 4.98, 5.01, 4.99, 5.00}
	faster := []float64{9.50, 9.52, 9.48, 9.49, 9.51, 9.50}
	for _, tt := range []struct {
		name      string
		order     string
		base, own []float64
		back      int
		outcome   string
		reason    string
	}{
		{"faster", blocksOrder, steady, faster, 0, measure.Improved, "such as a reboot"},
		{"there and back", backOrder, steady, faster, 3, measure.Improved, "measured again at the end, a changed by"},
		{"slower", blocksOrder, faster, steady, 0, measure.Worse, "beyond 2%"},
		{"the same", blocksOrder, steady, steady, 0, measure.Equivalent, "within 2%"},
		{"a path that has changed by itself", backOrder, []float64{5.00, 5.02, 4.98, 9.51, 9.49, 9.50}, faster, 3, measure.Undecided, "the path changed during the comparison"},
		{"too few", blocksOrder, steady[:1], faster[:1], 0, measure.Undecided, "needs 2 of one of them"},
		{"nothing of one", blocksOrder, steady, nil, 0, measure.Undecided, "has no run"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := blocksDoc(tt.order, tt.base, tt.own, tt.back)
			Compare(d)
			if len(d.Comparisons) != 1 {
				t.Fatalf("comparisons: %d", len(d.Comparisons))
			}
			c := d.Comparisons[0]
			if c.Outcome != tt.outcome || !strings.Contains(c.Reason, tt.reason) {
				t.Errorf("%s: %s; want %s with %q", c.Outcome, c.Reason, tt.outcome, tt.reason)
			}
			if c.Blocks == nil || c.Blocks.BaseRuns != len(tt.base) || c.Blocks.VariantRuns != len(tt.own) || c.Pairs != 0 {
				t.Errorf("blocks: %+v, %d pairs", c.Blocks, c.Pairs)
			}
			if (c.Blocks.DriftPct != nil) != (tt.back > 0) {
				t.Errorf("drift: %v", c.Blocks.DriftPct)
			}
		})
	}
}
