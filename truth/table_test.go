package truth

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// table holds one verdict's rates over the simulated conditions.
type table struct {
	title string
	about string   // what is simulated, and what the rates count
	head  []string // names of the conditions and of the rates
	rows  []row
}

// row is one condition.
type row struct {
	names []string
	rates []rate
}

// rate is how often something happened in a number of trials, and its limits.
type rate struct {
	came, trials int
	atMost       float64 // limit; 0 if there is none
	atLeast      float64 // limit; 0 if there is none
}

// add adds a row; its names are joined by |.
func (t *table) add(names string, rates ...rate) {
	t.rows = append(t.rows, row{strings.Split(names, "|"), rates})
}

func (r rate) share() float64 { return float64(r.came) / float64(max(r.trials, 1)) }

// missed reports whether the rate exceeds its limit by more than the uncertainty of the trials (2.6 standard
// errors at the limit: one in 200).
func (r rate) missed() bool {
	doubt := func(bar float64) float64 { return 2.6 * math.Sqrt(bar*(1-bar)/float64(max(r.trials, 1))) }
	return r.atMost > 0 && r.share() > r.atMost+doubt(r.atMost) || r.atLeast > 0 && r.share() < r.atLeast-doubt(r.atLeast)
}

// String returns the rate as on the page: "1.2% (at most 5%)".
func (r rate) String() string {
	text := fmt.Sprintf("%.1f%%", 100*r.share())
	if r.atMost > 0 {
		text += fmt.Sprintf(" (at most %g%%)", 100*r.atMost)
	}
	if r.atLeast > 0 {
		text += fmt.Sprintf(" (at least %g%%)", 100*r.atLeast)
	}
	return text
}

// fewest returns the smallest number of trials: with -short a quarter, which shows only what is grossly wrong.
func fewest(n int) int {
	if testing.Short() {
		return n / 4
	}
	return n
}

// count makes n trials, scaled, each with its own random numbers, which follow from the seed and the number
// of the trial.
func count(n int, scale float64, seed uint64, trial func(*rand.Rand) bool) rate {
	return countOf(max(fewest(20), int(float64(n)*scale)), seed, trial)
}

func countOf(n int, seed uint64, trial func(*rand.Rand) bool) rate {
	r := rate{trials: n}
	for i := range n {
		if trial(rand.New(rand.NewPCG(seed, uint64(i)))) {
			r.came++
		}
	}
	return r
}

// most and least set the limit of a rate.
func (r rate) most(bar float64) rate  { r.atMost = bar; return r }
func (r rate) least(bar float64) rate { r.atLeast = bar; return r }

// misses returns the rates beyond their limits, a line for each.
func misses(tables []table) []string {
	var lines []string
	for _, t := range tables {
		for _, w := range t.rows {
			for i, r := range w.rates {
				if r.missed() {
					lines = append(lines, fmt.Sprintf("%s: %s: %s: %v", t.title, strings.Join(w.names, ", "), t.head[len(w.names)+i], r))
				}
			}
		}
	}
	return lines
}

// words explains the contents of the page's tables.
const words = `
- **Interval** of a single run: the mean of the same run if it continued. Another run of the path can differ by more.
- **Interval** of repeated runs: the mean of many more runs of the path.
- **Not stable**, a single run: it has two levels, drifts, or its halves differ, by more than its scatter explains.
- **Not stable**, repeated runs: their interval is wider than requested, or they form two groups.
- **Two levels**: the rate has one value up to some second, and another value after it.
- **Two groups** of runs: some runs have one rate and the others another, so that their mean describes neither.
- **Change point** of a watch: the level of a series of turns is another one from some turn on, by more than its past, its hours and its dependence explain.
- **CV**: the standard deviation in percent of the mean. **rho**: the correlation of a second with the one before.
- A rate with a limit has "at most" (wrong verdicts) or "at least" (found changes). Other rates are only reported.
`

// markdown returns the page.
func markdown(tables []table) string {
	var b strings.Builder
	b.WriteString("# How often thru's verdicts are wrong\n\n" +
		"Each table has the error rates of one verdict. `make truth` writes this page: it simulates each verdict with the code that makes it, from fixed\n" +
		"seeds.\n" + words)
	for _, t := range tables {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n", t.title, t.about)
		fmt.Fprintf(&b, "| %s | trials |\n|%s\n", strings.Join(t.head, " | "), strings.Repeat("---|", len(t.head)+1))
		for _, w := range t.rows {
			cells := append([]string{}, w.names...)
			trials := 0
			for _, r := range w.rates {
				cells, trials = append(cells, r.String()), max(trials, r.trials)
			}
			fmt.Fprintf(&b, "| %s | %d |\n", strings.Join(cells, " | "), trials)
		}
	}
	return b.String()
}
