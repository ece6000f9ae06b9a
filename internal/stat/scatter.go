package stat

import (
	"math"

	"thru/internal/measure"
	"thru/internal/unit"
)

// Scatter is by how much runs of one state differ.
type Scatter struct {
	Runs      int
	Low, High float64 // lowest and highest rate, in bit/s
	Pct       float64 // standard deviation of a run, in percent of the rate
}

// ScatterOf uses all completed data runs; the cells are of one direction in the same state. The deviation is that
// of the logarithms, as AB counts.
func ScatterOf(cells []*measure.Cell) (s Scatter) {
	var logs []float64
	for _, c := range cells {
		for i := range c.Runs {
			p := pairOf(c, &c.Runs[i])
			rate, ok := p.rate()
			if !ok || p.asks || !p.complete() || rate <= 0 {
				continue
			}
			if logs = append(logs, math.Log(rate)); s.Low == 0 || rate < s.Low {
				s.Low = rate
			}
			s.High = max(s.High, rate)
		}
	}
	if s.Runs = len(logs); s.Runs > 1 {
		s.Pct = 100 * math.Expm1(math.Sqrt(variance(logs)))
	}
	return s
}

// restlessRuns is how many runs show a scatter, and restlessPct the scatter from which relevant gains are missed:
// at 5% a gain of 5% is found in one of nine tunings, one of 10% in most (docs/tune.md).
const (
	restlessRuns = 6
	restlessPct  = 5
)

// String returns what that means for a tuning; "" if the runs hardly differ, or are too few.
func (s Scatter) String() string {
	if s.Runs < restlessRuns || s.Pct < restlessPct {
		return ""
	}
	return unit.Count(int64(s.Runs)) + " runs with the same settings carried " + unit.Rate(s.Low) + " to " + unit.Rate(s.High) + ", a spread of " + unit.Percent(s.Pct) +
		": many changes with a gain of less than twice that are not found; longer runs (-t) and quieter hosts find more"
}

// Correlation returns Pearson's coefficient; false if one of the series does not vary.
func Correlation(xs, ys []float64) (float64, bool) {
	c := covariance(xs, ys) / math.Sqrt(squares(xs)*squares(ys))
	return c, !math.IsNaN(c) && !math.IsInf(c, 0)
}
