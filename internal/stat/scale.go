package stat

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"thru/internal/measure"
	"thru/internal/unit"
)

// Scale fills in the scaling S(P) = T(P)/T(1) of every cell for which a single stream of the same flow and window
// was measured (formula 10).
func Scale(cells []measure.Cell) {
	for i := range cells {
		c := &cells[i]
		if c.Streams < 2 || c.Goodput == nil || ofTuning(c) {
			continue
		}
		if one := single(cells, c); one != nil && one.Goodput.Value > 0 {
			c.Scaling = new(Scaling(c.Goodput.Value, one.Goodput.Value))
		}
	}
}

// single finds the one-stream cell that differs from c in nothing else.
func single(cells []measure.Cell, c *measure.Cell) *measure.Cell {
	for i := range cells {
		x := &cells[i]
		if x.Streams == 1 && x.Goodput != nil && !ofTuning(x) && x.From == c.From && x.To == c.To && x.Protocol == c.Protocol && x.Window == c.Window && x.Length == c.Length && sameSettings(&x.Spec, &c.Spec) {
			return x
		}
	}
	return nil
}

// ofTuning reports whether a cell of a tuning measured another state of the hosts than the current one.
func ofTuning(c *measure.Cell) bool { return strings.HasPrefix(c.Experiment, measure.OfTuning) }

// sameSettings reports whether two Specs request the same sockets and CPUs, unlike those of an explanation's
// experiments.
func sameSettings(a, b *measure.Spec) bool {
	return a.MSS == b.MSS && a.Congestion == b.Congestion && a.IO == b.IO && a.Unplaced == b.Unplaced
}

// Advice is what the cells of a ladder show about the number of streams and the window.
type Advice struct {
	Streams        int  // the fewest that no other number clearly exceeds; 0: not known
	Costly         bool // more of them carry clearly less
	Faster, Slower int  // cells that are clearly so with the fixed window
	Lines          []string
}

// StreamAdvice returns the advice that cells give. cpus are those of the smaller end (B-15: one connection keeps two
// CPU threads busy). A gain, a cost or a difference must pass clearlyMore.
func StreamAdvice(cells []measure.Cell, cpus int) (a Advice) {
	var of []*measure.Figure
	for i := range cells {
		if cells[i].Goodput != nil && !cells[i].Baseline {
			of = append(of, cells[i].Goodput)
		}
	}
	byStreams := withWindow(cells, 0)
	if len(byStreams) >= 2 {
		a.adviseStreams(byStreams, of, cpus)
	}
	a.adviseWindow(cells, of)
	return a
}

// withWindow returns the measured cells of a window by their streams.
func withWindow(cells []measure.Cell, window int64) []*measure.Cell {
	var out []*measure.Cell
	for i := range cells {
		if c := &cells[i]; c.Goodput != nil && !c.Baseline && c.Window.Send == window {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b *measure.Cell) int { return a.Streams - b.Streams })
	return out
}

// adviseStreams names the fewest streams that do not differ significantly from the best figure.
func (a *Advice) adviseStreams(cs []*measure.Cell, of []*measure.Figure, cpus int) {
	best := slices.MaxFunc(cs, func(a, b *measure.Cell) int { return cmp.Compare(a.Goodput.Value, b.Goodput.Value) })
	few := best
	for _, c := range cs {
		if c.Streams < few.Streams && !clearlyMore(best.Goodput, c.Goodput, of) {
			few = c
			break
		}
	}
	a.Streams = few.Streams
	s := fmt.Sprintf("Use %s: %s at the default window", unit.Plural(few.Streams, "stream"), unit.Rate(few.Goodput.Value))
	switch {
	case few == best:
	case isSingle(best.Goodput) || isSingle(few.Goodput):
		s += fmt.Sprintf("; one run each does not show whether %d, with %s, carry more (--repeat 5)", best.Streams, unit.Rate(best.Goodput.Value))
	default:
		s += fmt.Sprintf("; %s with %d is not a clear gain", unit.Rate(best.Goodput.Value), best.Streams)
	}
	if last := cs[len(cs)-1]; last.Streams > best.Streams && clearlyMore(best.Goodput, last.Goodput, of) {
		a.Costly = true
		s += fmt.Sprintf("; %d streams cost %.0f%%", last.Streams, 100*(1-last.Goodput.Value/best.Goodput.Value))
	}
	if cpus > 0 {
		s += fmt.Sprintf(". The usual start, half of the CPUs, would be %[2]d of this machine's %[1]d", cpus, max(cpus/2, 1))
	}
	a.Lines = append(a.Lines, s+".")
}

// adviseWindow counts the cells that the fixed window makes faster or slower.
func (a *Advice) adviseWindow(cells []measure.Cell, of []*measure.Figure) {
	n, single := 0, false
	for i := range cells {
		c := &cells[i]
		if c.Goodput == nil || c.Baseline || c.Window.Send == 0 {
			continue
		}
		for _, d := range withWindow(cells, 0) {
			if d.Streams != c.Streams || d.From != c.From {
				continue
			}
			n++
			single = single || isSingle(c.Goodput) || isSingle(d.Goodput)
			if clearlyMore(c.Goodput, d.Goodput, of) {
				a.Faster++
			} else if clearlyMore(d.Goodput, c.Goodput, of) {
				a.Slower++
			}
		}
	}
	if n > 0 {
		a.Lines = append(a.Lines, windowSentence(a.Faster, a.Slower, n, single))
	}
}

// windowSentence words in how many of n cells the window is clearly faster or slower; single: by one run each.
func windowSentence(up, down, n int, single bool) string {
	switch {
	case up == 0 && down == 0 && single:
		return "The fixed window makes no difference that one run each could show (--repeat 5): leave -w out."
	case up == 0 && down == 0:
		return "The fixed window makes no clear difference: leave -w out."
	case up == down:
		return fmt.Sprintf("The fixed window is clearly faster in %d of %d cells and slower in as many: measure both with --repeat.", up, n)
	case up > down:
		return fmt.Sprintf("The fixed window is clearly faster in %d of %d cells, slower in %d.", up, n, down)
	}
	return fmt.Sprintf("The fixed window is clearly slower in %d of %d cells, faster in %d: leave -w out.", down, n, up)
}

// worthwhilePct is the least gain worth reporting, in percent.
const worthwhilePct = 5

// clearlyMore reports whether a exceeds b by more than that, significantly, among some figures.
func clearlyMore(a, b *measure.Figure, of []*measure.Figure) bool {
	return a.Value > b.Value*(1+worthwhilePct/100.0) && Exceeds(a, b, of)
}
