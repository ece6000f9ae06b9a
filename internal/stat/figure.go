package stat

import (
	"math"
	"strconv"

	"thru/internal/measure"
	"thru/internal/unit"
)

// MainFigure is what a cell is about: its goodput in bit/s or, of requests and
// responses, how many a second. It is nil where neither was measured.
func MainFigure(c *measure.Cell) *measure.Figure {
	if asks(c) {
		return c.Transactions
	}
	return c.Goodput
}

// Measured tells whether a cell has its main figure.
func Measured(c *measure.Cell) bool { return MainFigure(c) != nil }

// RunFigure is the same of one run of the cell: what its repeats are judged by.
func RunFigure(c *measure.Cell, r *measure.Run) (float64, bool) {
	f := flowOf(c, r)
	if f == nil {
		return 0, false
	}
	return pair{run: r, sender: f.Sender, receiver: f.Receiver, asks: asks(c)}.rate()
}

// RunFigures are those of all runs that have one.
func RunFigures(c *measure.Cell) []float64 {
	var all []float64
	for i := range c.Runs {
		if rate, ok := RunFigure(c, &c.Runs[i]); ok {
			all = append(all, rate)
		}
	}
	return all
}

// FigureText says a cell's main figure in its unit, or "" where there is none.
func FigureText(c *measure.Cell) string {
	f := MainFigure(c)
	if f == nil {
		return ""
	}
	return printFor(c)(f.Value)
}

// asks tells whether a cell's traffic is requests and responses.
func asks(c *measure.Cell) bool { return c.Spec.Traffic != measure.Bulk }

func (s *summary) asks() bool  { return asks(s.cell) }
func (s *summary) isUDP() bool { return isUDP(s.cell) }

// isUDP tells whether a cell is bulk data in datagrams.
func isUDP(c *measure.Cell) bool { return c.Spec.Protocol == measure.UDP && !asks(c) }

// printFor is how rates of the cell's main figure are said.
func printFor(c *measure.Cell) func(float64) string {
	if asks(c) {
		return func(perSecond float64) string { return RequestRate(c.Spec.Traffic, perSecond) }
	}
	return unit.Rate
}

func (s *summary) print() func(float64) string { return printFor(s.cell) }

// RequestRate prints a rate of requests: "204 000 requests/s", or of those
// that each take a connection of their own "12.5 connections/s".
func RequestRate(traffic string, perSecond float64) string {
	if traffic == measure.CRR {
		return ThreeDigits(perSecond) + " connections/s"
	}
	return ThreeDigits(perSecond) + " requests/s"
}

// ThreeDigits prints a count or its rate to three significant digits, with its
// thousands apart: "204 000", "12.5".
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

// trimmed prints a number under 100 to three significant digits without zeros at the end.
func trimmed(x float64) string {
	digit := 100.0
	if math.Abs(x) >= 9.995 {
		digit = 10
	}
	return strconv.FormatFloat(math.Round(x*digit)/digit, 'f', -1, 64)
}

// Requests is how many requests a second the end that asks had answered.
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

// RequestBins are the rates of the 1 s bins of the end that asks, as Bins has them.
func RequestBins(e *measure.Evidence) []float64 {
	return binRates(e, 1, func(b *measure.StreamBin) int64 { return b.Requests })
}

// addTo adds a count that may be anything: below zero it is none, and a sum
// beyond 64 bits stays at their end.
func addTo(total *int64, n int64) {
	if n > math.MaxInt64-*total {
		*total = math.MaxInt64
	} else if n > 0 {
		*total += n
	}
}
