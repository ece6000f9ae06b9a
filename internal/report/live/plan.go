package live

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"thru/internal/doc"
	"thru/internal/doc/text"
	"thru/internal/report/result"
	"thru/internal/unit"
)

// Plan is the state of a running plan.
type Plan struct {
	Turn, Turns int      // current run, from 1; steps times repeats
	Label       string   // of the step: "4 streams, default window"
	Phase       string   // current phase: "connecting", "ramp", "collecting"; empty in the measured time
	Bps         *float64 // goodput of all pairs now; nil: unknown
	Pairs       []Pair   // of the current step
	Failed      int      // pairs that have failed so far in the whole plan
	ElapsedNs   int64    // of TotalNs
	TotalNs     int64    // estimate for the whole plan; 0: unknown
}

// Pair is one pair of the current step.
type Pair struct {
	From, To string
	Bps      *float64 // goodput now; nil: unknown
	Failed   bool
}

// maxPairs limits the pairs that a running plan shows one by one.
const (
	maxPairs = 24
	pairGap  = 3
)

// PlanLines formats a running plan without newlines, in at most lines lines. The first line has the progress
// and the total rate; it omits parts from the right that exceed width (0: no limit). The other lines show
// each pair, or the slowest ones if not all fit.
func PlanLines(l Plan, width, lines int) []string {
	out := []string{planLine(l, width)}
	if lines > 1 && len(l.Pairs) > 1 {
		out = append(out, pairLines(l.Pairs, width, lines-1)...)
	}
	return out
}

func planLine(l Plan, width int) string {
	where := fmt.Sprintf("%*d/%d", len(fmt.Sprint(l.Turns)), l.Turn, l.Turns)
	carried := l.Phase
	if l.Bps != nil && l.Phase == "" {
		carried = unit.Rate(*l.Bps)
	}
	carried = fmt.Sprintf("%10s", doc.OrDash(doc.Clean(carried)))
	pairs := ""
	if len(l.Pairs) > 1 {
		pairs = unit.Plural(len(l.Pairs), "pair")
	}
	failed, soFar := "", ""
	if l.Failed > 0 {
		failed = fmt.Sprintf("%d failed", l.Failed)
		soFar = failed + " so far" // may exceed the number of pairs
	}
	bar, left := planBar(l)
	label := doc.Clean(l.Label)
	for _, parts := range [][]string{{where, carried, pairs, soFar, label, bar + left}, {where, carried, pairs, soFar, label, left},
		{where, carried, pairs, soFar, left}, {where, carried, failed, left}, {where, carried, failed}} {
		line := strings.TrimRight(joinGap(parts), " ")
		if width <= 0 || utf8.RuneCountInString(line) <= width {
			return line
		}
	}
	return where
}

// joinGap joins the non-empty parts with spaces.
func joinGap(parts []string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(parts), func(s string) bool { return s == "" }), "   ")
}

// planBar returns "[####------] " and "14 min left".
func planBar(l Plan) (bar, left string) {
	bar, left = barText(State{ElapsedNs: l.ElapsedNs, TotalNs: l.TotalNs})
	if rest := l.TotalNs - l.ElapsedNs; left != "" && rest > 60*int64(result.Second) {
		left = doc.AboutTime(time.Duration(rest)) + " left"
	}
	return bar, left
}

// pairLines formats pairs in columns, in at most lines lines.
func pairLines(pairs []Pair, width, lines int) []string {
	if width <= 0 {
		width = text.DefaultWidth
	}
	widest := 0
	for _, x := range pairs {
		widest = max(widest, utf8.RuneCountInString(pairText(x)))
	}
	each := max(1, (width-text.Indent)/(widest+pairGap))
	room := min(each*lines, maxPairs)
	if len(pairs) > room {
		pairs = slices.Clone(pairs)
		slices.SortStableFunc(pairs, slowestFirst)
		room-- // the last place counts the pairs that are not shown
	}
	var texts, out []string
	for _, x := range pairs[:min(len(pairs), room)] {
		texts = append(texts, pairText(x))
	}
	if n := len(pairs) - len(texts); n > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", n))
	}
	for row := range slices.Chunk(texts, each) {
		line := ""
		for _, s := range row {
			line += text.Pad(s, widest+pairGap)
		}
		line = strings.TrimRight(strings.Repeat(" ", text.Indent)+line, " ")
		out = append(out, unit.Cut(line, width))
	}
	return out
}

// slowestFirst orders pairs: failed ones, then those without a figure, then by rate.
func slowestFirst(a, b Pair) int {
	rank := func(x Pair) float64 {
		switch {
		case x.Failed:
			return -2
		case x.Bps == nil:
			return -1
		}
		return *x.Bps
	}
	switch ra, rb := rank(a), rank(b); {
	case ra < rb:
		return -1
	case ra > rb:
		return 1
	}
	return 0
}

func pairText(x Pair) string {
	value := "-"
	switch {
	case x.Failed:
		value = "failed"
	case x.Bps != nil:
		value = unit.Rate(*x.Bps)
	}
	return fmt.Sprintf("%s %9s", result.PairName(x.From, x.To), value)
}
