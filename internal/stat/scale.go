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

// StreamAdvice words what the cells of a ladder show about the number of streams and the window. cpus are those of
// the smaller end (B-15: one connection keeps two CPU threads busy). A gain, a cost or a difference must pass
// clearlyMore.
func StreamAdvice(cells []measure.Cell, cpus int) []string {
	var out []string
	var of []*measure.Figure
	for i := range cells {
		if cells[i].Goodput != nil && !cells[i].Baseline {
			of = append(of, cells[i].Goodput)
		}
	}
	byStreams := withWindow(cells, 0)
	if len(byStreams) >= 2 {
		out = append(out, streamSentence(byStreams, of, cpus))
	}
	if s := windowSentence(cells, of); s != "" {
		out = append(out, s)
	}
	return out
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

// streamSentence names the fewest streams that do not differ significantly from the best figure.
func streamSentence(cs []*measure.Cell, of []*measure.Figure, cpus int) string {
	best := slices.MaxFunc(cs, func(a, b *measure.Cell) int { return cmp.Compare(a.Goodput.Value, b.Goodput.Value) })
	few := best
	for _, c := range cs {
		if c.Streams < few.Streams && !clearlyMore(best.Goodput, c.Goodput, of) {
			few = c
			break
		}
	}
	s := fmt.Sprintf("Use %s: %s at the default window", unit.Plural(few.Streams, "stream"), unit.Rate(few.Goodput.Value))
	switch {
	case few == best:
	case isSingle(best.Goodput) || isSingle(few.Goodput):
		s += fmt.Sprintf("; one run each does not show whether %d, with %s, carry more (--repeat 5)", best.Streams, unit.Rate(best.Goodput.Value))
	default:
		s += fmt.Sprintf("; %s with %d is not a clear gain", unit.Rate(best.Goodput.Value), best.Streams)
	}
	if last := cs[len(cs)-1]; last.Streams > best.Streams && clearlyMore(best.Goodput, last.Goodput, of) {
		s += fmt.Sprintf("; %d streams cost %.0f%%", last.Streams, 100*(1-last.Goodput.Value/best.Goodput.Value))
	}
	if cpus > 0 {
		s += fmt.Sprintf(". The usual start, half of the CPUs, would be %[2]d of this machine's %[1]d", cpus, max(cpus/2, 1))
	}
	return s + "."
}

func windowSentence(cells []measure.Cell, of []*measure.Figure) string {
	var up, down, n int
	single := false
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
				up++
			} else if clearlyMore(d.Goodput, c.Goodput, of) {
				down++
			}
		}
	}
	switch {
	case n == 0:
		return ""
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
