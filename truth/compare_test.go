package truth

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"thru/internal/compare"
	"thru/internal/measure"
	"thru/internal/stat"
)

// comparison is a condition of `thru compare`: how both sides are made.
type comparison struct {
	name       string
	results    int                      // per side
	runs       int                      // per result
	flows      int                      // per result
	run        func(*rand.Rand) float64 // random deviation of a run, as a logarithm
	session    float64                  // standard deviation of the level that a flow's runs in one result share
	guardrails float64                  // standard deviation of each guardrail of a result; 0: there are none
}

// quiet draws runs that scatter by 1%.
func quiet(r *rand.Rand) float64 { return 0.01 * r.NormFloat64() }

// twoLevels draws runs of which half carry 20% less.
func twoLevels(r *rand.Rand) float64 { return 0.005*r.NormFloat64() - 0.223*float64(r.IntN(2)) }

// oneInTen draws runs of which one in ten loses a quarter.
func oneInTen(r *rand.Rand) float64 {
	if r.IntN(10) == 0 {
		return 0.02*r.NormFloat64() - 0.288
	}
	return 0.02 * r.NormFloat64()
}

// scattering draws runs with standard deviation sd.
func scattering(sd float64) func(*rand.Rand) float64 {
	return func(r *rand.Rand) float64 { return sd * r.NormFloat64() }
}

// side returns one side, changed by a logarithm.
func (c comparison) side(r *rand.Rand, change float64, at time.Time) (docs []*measure.Document) {
	for n := range max(c.results, 1) {
		d := &measure.Document{StartedAt: at.Add(time.Duration(n) * time.Hour)}
		for f := range max(c.flows, 1) {
			d.Cells = append(d.Cells, c.cell(r, fmt.Sprint("peer", f), change))
		}
		docs = append(docs, d)
	}
	return docs
}

// cell returns a flow of one result. Its guardrails scatter whether the rate changed or not.
func (c comparison) cell(r *rand.Rand, to string, change float64) measure.Cell {
	var rates []float64
	level := change + c.session*r.NormFloat64()
	for range c.runs {
		rates = append(rates, 1e9*math.Exp(level+c.run(r)))
	}
	cell := flowCell(to, rates)
	if c.guardrails > 0 {
		vary := func(x float64) float64 { return x * math.Exp(c.guardrails*r.NormFloat64()) }
		cell.SenderCPU, cell.ReceiverCPU = &measure.CPUFigure{PctPerGbps: new(vary(20))}, &measure.CPUFigure{PctPerGbps: new(vary(30))}
		cell.RTTIdle, cell.RTTLoaded = new(int64(vary(5e6))), new(int64(vary(2e7)))
		cell.RFC6349 = &measure.RFC6349{EfficiencyPct: new(100 - vary(0.5))}
		cell.UnderLoad = &measure.UnderLoad{Loaded: &measure.Latency{Count: 1000, P50: int64(vary(2e7)), P99: int64(vary(4e7))}}
	}
	return cell
}

// flowCell returns a flow from the rates of its runs, in bit/s; the interval of a single one is 0.5%.
func flowCell(to string, rates []float64) measure.Cell {
	c := measure.Cell{From: "local", To: to, Protocol: measure.TCP, Streams: 1, Spec: measure.Spec{From: "local", To: to, Protocol: measure.TCP, Duration: 1e10}}
	mean := 0.0
	for i, x := range rates {
		mean += x / float64(len(rates))
		e := &measure.Evidence{EndPoint: to, MeasuredNs: 1e10, Bytes: int64(x / 8 * 10)}
		c.Runs = append(c.Runs, measure.Run{Index: i, Goodput: new(x), Flows: []measure.Flow{{From: "local", To: to, Receiver: e}}})
	}
	c.Goodput = &measure.Figure{Value: mean, Low: 0.99 * mean, High: 1.01 * mean, CI95Low: new(0.995 * mean), CI95High: new(1.005 * mean), Runs: len(rates)}
	if ci, ok := stat.MeanInterval(rates); ok {
		c.Goodput.CI95Low, c.Goodput.CI95High = &ci.Low, &ci.High
	}
	return c
}

// compared compares two sides of a condition.
func (c comparison) compared(r *rand.Rand, change float64, guards bool) *measure.Compared {
	began := time.Date(2026, 3, 14, 9, 26, 53, 0, time.UTC)
	before, after := c.side(r, 0, began), c.side(r, change, began.AddDate(0, 0, 7))
	return compare.Of(before, after, compare.Options{Guards: guards})
}

// has reports whether any flow has an outcome.
func has(x *measure.Compared, outcome string) bool {
	return slices.ContainsFunc(x.Cells, func(c measure.ComparedCell) bool { return c.Outcome == outcome })
}

// equalTable returns the rates for sides that do not differ.
func equalTable(scale float64) table {
	t := table{title: "compare: nothing has changed",
		about: "Both sides are the same. Each session has its own level for each flow, common to all its runs (standard deviation in the table); runs scatter around it.\n" +
			"\"Two levels\": half of the runs carry 20% less. \"One in ten\": one run in ten loses a quarter. Rows with several flows count a change of any of them.",
		head: []string{"sides", "sessions", "runs", "worse", "improved"}}
	two, session := func(n int) string { return fmt.Sprintf("%d against %d runs", n, n) }, 0.03
	var all []comparison
	for _, n := range []int{1, 2, 3, 5, 10} {
		all = append(all, comparison{name: two(n) + "|3%|1%", runs: n, run: quiet, session: session})
	}
	for _, n := range []int{3, 5} {
		all = append(all,
			comparison{name: two(n) + "|3%|5%", runs: n, run: scattering(0.05), session: session},
			comparison{name: two(n) + "|none|two levels", runs: n, run: twoLevels},
			comparison{name: two(n) + "|3%|one in ten", runs: n, run: oneInTen, session: session})
	}
	all = append(all, comparison{name: two(1) + "|none|two levels", runs: 1, run: twoLevels}, comparison{name: two(1) + "|3%|one in ten", runs: 1, run: oneInTen, session: session})
	for _, n := range []int{3, 5, 10} {
		all = append(all, comparison{name: fmt.Sprintf("%d against %d results of one run|3%%|1%%", n, n), results: n, runs: 1, run: quiet, session: session})
	}
	for _, n := range []int{1, 3, 5} {
		all = append(all, comparison{name: "56 flows of " + two(n) + "|3%|1%", runs: n, flows: 56, run: quiet, session: session})
	}
	for i, c := range all {
		trials := 4000 / max(c.flows/8, 1)
		of := func(outcome string) rate {
			return count(trials, scale, uint64(100+i), func(r *rand.Rand) bool { return has(c.compared(r, 0, false), outcome) }).most(0.025)
		}
		t.add(c.name, of(measure.Worse), of(measure.Improved))
	}
	return t
}

// guardrailsTable returns the rates of `--fail-on any` if nothing has changed.
func guardrailsTable(scale float64) table {
	t := table{title: "compare --fail-on any: nothing has changed",
		about: "How often a rate or one of seven guardrails of any flow ends the command with exit code 3. Sessions scatter by 3%, runs by 1%; each guardrail\n" +
			"scatters between results as in the table (standard deviation of the logarithm).",
		head: []string{"sides", "guardrails", "regression"}}
	for i, c := range []comparison{
		{name: "1 against 1 result of one run|10%", runs: 1, guardrails: 0.1},
		{name: "1 against 1 result of 3 runs|10%", runs: 3, guardrails: 0.1},
		{name: "3 against 3 results|10%", results: 3, runs: 1, guardrails: 0.1},
		{name: "3 against 3 results|30%", results: 3, runs: 1, guardrails: 0.3},
		{name: "5 against 5 results|30%", results: 5, runs: 3, guardrails: 0.3},
		{name: "8 flows, 3 against 3 results|20%", results: 3, runs: 1, flows: 8, guardrails: 0.2},
	} {
		c.run, c.session = quiet, 0.03
		t.add(c.name, count(2000/max(c.flows, 1), scale, uint64(200+i), func(r *rand.Rand) bool { return c.compared(r, 0, true).Regression }).most(0.05))
	}
	return t
}

// foundTable returns the rates for drops: how often they are found, and how often a drop is called
// equivalent.
func foundTable(scale float64) table {
	t := table{title: "compare: what is found",
		about: "How often a drop is `worse`; sessions scatter by 3%, runs by 1%. The last rate is how often a path that has lost 5% is called `equivalent`: with one session on each side\n" +
			"that outcome refers to the runs, not to the path.",
		head: []string{"sides", "drop of 5%", "10%", "15%", "20%", "30%", "35%", "40%", "equivalent at 5%"}}
	var all []comparison
	for _, n := range []int{1, 2, 3, 5, 10} {
		all = append(all, comparison{name: fmt.Sprintf("%d against %d runs", n, n), runs: n})
	}
	for _, n := range []int{3, 5, 10} {
		all = append(all, comparison{name: fmt.Sprintf("%d against %d results", n, n), results: n, runs: 1})
	}
	for i, c := range all {
		c.run, c.session = quiet, 0.03
		of := func(fall float64, outcome string) rate {
			return count(1000, scale, uint64(300+i), func(r *rand.Rand) bool { return has(c.compared(r, math.Log1p(-fall), false), outcome) })
		}
		var rates []rate
		for _, fall := range []float64{0.05, 0.1, 0.15, 0.2, 0.3, 0.35, 0.4} {
			rates = append(rates, of(fall, measure.Worse))
		}
		t.add(c.name, append(rates, of(0.05, measure.Equivalent))...)
	}
	return t
}
