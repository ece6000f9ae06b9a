package truth

import (
	"fmt"
	"math/rand/v2"

	"thru/internal/measure"
	"thru/internal/stat"
)

// verdicts returns the rates of the verdict on the link rate.
func verdicts(scale float64) table {
	t := table{
		title: "Verdict against the link's rate",
		about: "How often a path that carries this share of the ceiling passes, fails, or is inconclusive, if 95% are required. " +
			"One run and 5 runs (--repeat 5, --acceptance). Targets of a plan use the same figures.",
		head: []string{"runs", "scatter of the runs", "carries", "pass", "fail", "inconclusive"},
	}
	for _, runs := range []int{1, 5} {
		for _, deviation := range []float64{0.005, 0.02, 0.1} {
			for _, share := range []float64{0.90, 0.94, 0.96, 0.99} {
				t.rows = append(t.rows, judgedPaths(runs, deviation, share, scale))
			}
		}
	}
	return t
}

// judgedPaths counts the verdicts of one condition. With a deviation of at most 0.5%, at most 5% of the
// verdicts may be wrong.
func judgedPaths(runs int, deviation, share, scale float64) row {
	const ceiling = 1e9
	verdict := func(want func(*measure.Verdict) bool) rate {
		return count(2000, scale, uint64(runs), func(r *rand.Rand) bool {
			rates := make([]float64, runs)
			for i := range rates {
				rates[i] = min(share*ceiling*(1+deviation*r.NormFloat64()), ceiling)
			}
			c := flowCell("far", rates)
			stat.Summarise(&c, nil, stat.Link{})
			c.Ceiling = &measure.Ceiling{Bps: ceiling, LinkBps: ceiling, SharePct: 100 * c.Goodput.Value / ceiling}
			return want(stat.Verdict([]measure.Cell{c}))
		})
	}
	pass := verdict(func(v *measure.Verdict) bool { return v.Pass })
	fail := verdict(func(v *measure.Verdict) bool { return !v.Pass && !v.Inconclusive })
	open := verdict(func(v *measure.Verdict) bool { return v.Inconclusive })
	switch {
	case deviation <= 0.005 && share < 0.95:
		pass = pass.most(0.05)
	case deviation <= 0.005:
		fail = fail.most(0.05)
	}
	return row{[]string{fmt.Sprint(runs), fmt.Sprintf("%g%%", 100*deviation), fmt.Sprintf("%.0f%%", 100*share)}, []rate{pass, fail, open}}
}
