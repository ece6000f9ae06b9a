package truth

import (
	"math"
	"math/rand/v2"

	"thru/internal/measure"
	"thru/internal/stat"
)

// climbing is a condition of `thru ladder`.
type climbing struct {
	name string
	runs int
	run  func(*rand.Rand) float64 // random deviation of a run, as a logarithm
	cell float64                  // standard deviation of the level that all runs of a cell share
}

// cells returns the cells of a rung with the given rates: 1, 2, 4, 8 streams by two windows.
func (c climbing) cells(r *rand.Rand, rung string, rate func(streams int) float64) (all []measure.Cell) {
	for _, window := range []int64{0, 800 << 10} {
		for _, streams := range []int{1, 2, 4, 8} {
			level := c.cell * r.NormFloat64()
			var rates []float64
			for range c.runs {
				rates = append(rates, rate(streams)*math.Exp(level+c.run(r)))
			}
			x := flowCell("peer", rates)
			x.Streams, x.Window, x.Rung, x.Group = streams, measure.Pair{Send: window, Recv: window}, rung, len(all)
			all = append(all, x)
		}
	}
	return all
}

// claims reports whether the advice claims any difference.
func claims(a stat.Advice) bool { return a.Streams != 1 || a.Costly || a.Faster+a.Slower > 0 }

// told reports whether any rung of a ladder is reported to carry more or less than the one below it.
func told(l *measure.Ladder) bool {
	for _, r := range l.Rungs {
		if r.LossLowPct != nil && r.LossHighPct != nil && (*r.LossLowPct > 0 || *r.LossHighPct < 0) {
			return true
		}
	}
	return false
}

// level is the same rate for any number of streams.
func level(int) float64 { return 1e10 }

// ladderConditions returns conditions with cells that do not differ.
func ladderConditions() []climbing {
	return []climbing{
		{"1|3%|none", 1, scattering(0.03), 0}, {"1|12%|none", 1, scattering(0.12), 0}, {"1|two levels|none", 1, twoLevels, 0}, {"1|one in ten|3%", 1, oneInTen, 0.03},
		{"2|5%|none", 2, scattering(0.05), 0}, {"3|5%|none", 3, scattering(0.05), 0}, {"3|1%|3%", 3, quiet, 0.03}, {"3|two levels|none", 3, twoLevels, 0},
		{"5|1%|3%", 5, quiet, 0.03}, {"5|5%|3%", 5, scattering(0.05), 0.03}, {"5|one in ten|none", 5, oneInTen, 0},
	}
}

// equalCells returns the rates for cells that do not differ.
func equalCells(scale float64) table {
	alike := table{title: "ladder: nothing differs",
		about: "Eight cells (1, 2, 4, 8 streams, two windows) that carry the same, and four rungs of such cells. How often the advice claims that more streams carry more or cost\n" +
			"something, or that a window is clearly faster or slower; and how often a rung is reported to carry more or less than the one below, without \"may be chance\".",
		head: []string{"runs of a cell", "scatter of the runs", "of the cells", "false advice", "false rungs"}}
	for i, c := range ladderConditions() {
		advice := count(3000, scale, uint64(400+i), func(r *rand.Rand) bool { return claims(stat.StreamAdvice(c.cells(r, "", level), 8)) })
		rungs := count(1000, scale, uint64(450+i), func(r *rand.Rand) bool {
			d := &measure.Document{}
			for _, rung := range []string{"localhost", "virtual switch", "LAN", "interconnect"} {
				d.Cells = append(d.Cells, c.cells(r, rung, level)...)
			}
			stat.Ladder(d, nil)
			return told(d.Ladder)
		})
		alike.add(c.name, advice.most(0.05), rungs.most(0.05))
	}
	return alike
}

// streamsTable returns the rates for cells with a known effect of more streams.
func streamsTable(scale float64) table {
	t := table{title: "ladder: what is found", about: "The same cells, but 2, 4 and 8 streams carry this much more than one; runs scatter by 3%. How often the advice is to use several streams.",
		head: []string{"runs of a cell", "10%", "20%", "30%", "50%", "75%", "100%"}}
	for i, c := range []climbing{{"1", 1, scattering(0.03), 0}, {"3", 3, scattering(0.03), 0}, {"5", 5, scattering(0.03), 0}, {"10", 10, scattering(0.03), 0}} {
		var rates []rate
		for _, more := range []float64{0.1, 0.2, 0.3, 0.5, 0.75, 1} {
			rate := func(streams int) float64 {
				if streams == 1 {
					return 1e10
				}
				return 1e10 * (1 + more)
			}
			rates = append(rates, count(1000, scale, uint64(500+i), func(r *rand.Rand) bool {
				return stat.StreamAdvice(c.cells(r, "", rate), 8).Streams != 1
			}))
		}
		t.add(c.name, rates...)
	}
	return t
}
