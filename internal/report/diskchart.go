package report

import (
	"fmt"
	"slices"
	"strings"

	"thru/internal/measure"
	"thru/internal/unit"
)

// maxDiskCharts bounds the drawings of disks: those of a transfer's ends are two.
const maxDiskCharts = 4

// diskCharts draw what each number of workers has reached, a line for each pattern.
func diskCharts(tests []measure.DiskTest) (all []chart) {
	for i := range tests {
		if c, ok := diskChart(&tests[i], i); ok && len(all) < maxDiskCharts {
			all = append(all, c)
		}
	}
	return all
}

// diskChart is the drawing of one disk; none where no pattern was tried with two
// numbers of workers.
func diskChart(t *measure.DiskTest, n int) (chart, bool) {
	most, workers, several := 0.0, []int{}, false
	for _, r := range t.Runs {
		for _, s := range r.Tried {
			most = max(most, s.Bytes)
			if !slices.Contains(workers, s.Workers) {
				workers = append(workers, s.Workers)
			}
		}
		several = several || len(r.Tried) > 1
	}
	if !several || len(workers) > maxLines {
		return chart{}, false
	}
	slices.Sort(workers)
	div, name := 1e6, "MB/s"
	if most >= 1e9 {
		div, name = 1e9, "GB/s"
	}
	d := drawing{ID: fmt.Sprintf("disk%d", n), Title: "Rate by workers, " + diskName(t), X: xAxis{Low: -0.5, High: float64(len(workers)) - 0.5, Title: "workers"}}
	for i, w := range workers {
		d.X.Ticks = append(d.X.Ticks, tick{float64(i), fmt.Sprint(w)})
	}
	p := panel{Title: "all workers together, " + name, Height: 180, Max: most / div}
	var legends []legend
	var words []string
	for i, r := range t.Runs[:min(len(t.Runs), styles)] {
		l := line{Style: i}
		for _, s := range r.Tried {
			l.Points = append(l.Points, point{float64(slices.Index(workers, s.Workers)), s.Bytes / div})
		}
		p.Lines, legends = append(p.Lines, l), append(legends, legend{key(l), clean(r.Pattern) + " of " + unit.Size(r.BlockBytes)})
		words = append(words, clean(r.Pattern)+": "+triedText(&r))
	}
	d.Panels, d.Desc = []panel{p}, strings.Join(words, "; ")
	return chartOf(d, "Workers are raised until their sum stops rising: "+diskName(t)+".", legends), true
}
