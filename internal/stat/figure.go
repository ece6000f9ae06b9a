package stat

import (
	"math"
	"strconv"

	"thru/internal/measure"
	"thru/internal/unit"
)

// MainFigure returns the main figure of a cell: its goodput in bit/s or, for requests and responses, their number
// per second. It is nil if neither was measured.
func MainFigure(c *measure.Cell) *measure.Figure {
	if asks(c) {
		return c.Transactions
	}
	return c.Goodput
}

// Measured reports whether a cell has its main figure.
func Measured(c *measure.Cell) bool { return MainFigure(c) != nil }

// RunFigure returns the main figure of one run of the cell, by which its repetitions are judged.
func RunFigure(c *measure.Cell, r *measure.Run) (float64, bool) {
	f := flowOf(c, r)
	if f == nil {
		return 0, false
	}
	return pair{run: r, sender: f.Sender, receiver: f.Receiver, asks: asks(c)}.rate()
}

// RunFigures returns those of all runs that have one.
func RunFigures(c *measure.Cell) []float64 {
	var all []float64
	for i := range c.Runs {
		if rate, ok := RunFigure(c, &c.Runs[i]); ok {
			all = append(all, rate)
		}
	}
	return all
}

// FigureText formats a cell's main figure in its unit, or "" if there is none.
func FigureText(c *measure.Cell) string {
	f := MainFigure(c)
	if f == nil {
		return ""
	}
	return printFor(c)(f.Value)
}

// asks reports whether a cell's traffic is requests and responses.
func asks(c *measure.Cell) bool { return c.Spec.Traffic != measure.Bulk }

func (s *summary) asks() bool  { return asks(s.cell) }
func (s *summary) isUDP() bool { return isUDP(s.cell) }

// isUDP reports whether a cell is bulk data in datagrams.
func isUDP(c *measure.Cell) bool { return c.Spec.Protocol == measure.UDP && !asks(c) }

// printFor returns the format of the cell's main figure.
func printFor(c *measure.Cell) func(float64) string {
	if asks(c) {
		return func(perSecond float64) string { return RequestRate(c.Spec.Traffic, perSecond) }
	}
	return unit.Rate
}

func (s *summary) print() func(float64) string { return printFor(s.cell) }

// RequestRate formats a rate of requests: "204 000 requests/s", or "12.5 connections/s" if each takes a connection
// of its own.
func RequestRate(traffic string, perSecond float64) string {
	if traffic == measure.CRR {
		return ThreeDigits(perSecond) + " connections/s"
	}
	return ThreeDigits(perSecond) + " requests/s"
}

// ThreeDigits formats a count or its rate to three significant digits, with a thousands separator: "204 000",
// "12.5".
func ThreeDigits(x float64) string {
	if math.IsNaN(x) || math.Abs(x) >= 1e18 {
		return "?"
	}
	step := 1.0
	for math.Abs(x) >= 999.5*step {
		step *= 10
	}
	if step > 1 || math.Abs(x) >= 99.5 {
		return unit.Count(int64(math.Round(x/step) * step))
	}
	return trimmed(x)
}

// trimmed formats a number under 100 to three significant digits without trailing zeros.
func trimmed(x float64) string {
	digit := 100.0
	if math.Abs(x) >= 9.995 {
		digit = 10
	}
	return strconv.FormatFloat(math.Round(x*digit)/digit, 'f', -1, 64)
}

// Requests returns how many requests per second of the requesting end were answered.
func Requests(e *measure.Evidence) (perSecond float64, ok bool) {
	if e == nil || e.MeasuredNs <= 0 {
		return 0, false
	}
	var n int64
	for _, x := range e.Streams {
		addTo(&n, x.Requests)
	}
	if n == 0 { // of an end that was lost only the seconds are known
		for _, b := range e.Bins {
			addTo(&n, b.Requests)
		}
	}
	if n == 0 && len(e.Streams) == 0 {
		return 0, false
	}
	return float64(n) * 1e9 / float64(e.MeasuredNs), true
}

// RequestBins returns the rates of the requesting end's 1 s bins, as Bins does.
func RequestBins(e *measure.Evidence) []float64 {
	return binRates(e, 1, func(b *measure.StreamBin) int64 { return b.Requests })
}

// addTo adds an untrusted count: a negative one counts as zero, and the sum saturates at 64 bits.
func addTo(total *int64, n int64) {
	if n > math.MaxInt64-*total {
		*total = math.MaxInt64
	} else if n > 0 {
		*total += n
	}
}

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
	c := covariance(xs, ys) / math.Sqrt(Squares(xs)*Squares(ys))
	return c, !math.IsNaN(c) && !math.IsInf(c, 0)
}
