package transfer

import (
	"fmt"
	"slices"
	"strings"

	"thru/internal/doc"
	"thru/internal/doc/draw"
	"thru/internal/measure"
	"thru/internal/report/result"
	"thru/internal/unit"
)

// maxDiskCharts limits the charts of disks: a transfer has two ends.
const maxDiskCharts = 4

// diskCharts draws the rate of each number of workers, a line for each pattern.
func diskCharts(tests []measure.DiskTest) (all []doc.Chart) {
	for i := range tests {
		if c, ok := diskChart(&tests[i], i); ok && len(all) < maxDiskCharts {
			all = append(all, c)
		}
	}
	return all
}

// diskChart draws one disk: sequential patterns by bytes, random ones by accesses. There is no chart if no
// pattern has two numbers of workers.
func diskChart(t *measure.DiskTest, n int) (doc.Chart, bool) {
	workers := triedWorkers(t)
	if len(workers) < 2 || len(workers) > result.MaxLines {
		return doc.Chart{}, false
	}
	d := draw.Drawing{ID: fmt.Sprintf("disk%d", n), Title: "Rate by workers, " + diskName(t), X: draw.XAxis{Low: -0.5, High: float64(len(workers)) - 0.5, Title: "workers"}}
	for i, w := range workers {
		d.X.Ticks = append(d.X.Ticks, draw.Tick{At: float64(i), Label: fmt.Sprint(w)})
	}
	var legends []doc.Legend
	var words []string
	order, random := draw.Panel{Title: "sequential, MB/s", Height: 130}, draw.Panel{Title: "random, 1000 IOPS", Height: 130}
	for i, r := range t.Runs[:min(len(t.Runs), draw.Styles)] {
		p, div := &order, 1e6
		if strings.HasPrefix(r.Pattern, "random") {
			p, div = &random, 1e3*float64(max(r.BlockBytes, 1))
		}
		l := draw.Line{Style: i}
		for _, s := range r.Tried {
			l.Points = append(l.Points, draw.Point{X: float64(slices.Index(workers, s.Workers)), Y: s.Bytes / div})
			p.Max = max(p.Max, s.Bytes/div)
		}
		p.Lines, legends = append(p.Lines, l), append(legends, doc.Legend{Key: draw.Key(l), Name: doc.Clean(r.Pattern) + " of " + unit.Size(r.BlockBytes)})
		words = append(words, doc.Clean(r.Pattern)+": "+triedText(&r))
	}
	for _, p := range []draw.Panel{order, random} {
		if len(p.Lines) > 0 {
			d.Panels = append(d.Panels, p)
		}
	}
	d.Desc = strings.Join(words, "; ")
	return draw.Chart(d, "The test adds workers until the total stops rising: "+diskName(t)+".", legends), true
}

// triedWorkers returns all numbers of workers that a disk was tested with.
func triedWorkers(t *measure.DiskTest) (all []int) {
	for _, r := range t.Runs {
		for _, s := range r.Tried {
			if !slices.Contains(all, s.Workers) {
				all = append(all, s.Workers)
			}
		}
	}
	slices.Sort(all)
	return all
}

// diskName returns "/srv at web1 (ext4 on nvme0n1)".
func diskName(t *measure.DiskTest) string {
	s := doc.Clean(t.Path) + " at " + doc.Clean(t.Where)
	switch {
	case t.FileSystem != "" && t.Device != "":
		return s + " (" + doc.Clean(t.FileSystem) + " on " + doc.Clean(t.Device) + ")"
	case t.FileSystem != "":
		return s + " (" + doc.Clean(t.FileSystem) + ")"
	}
	return s
}

// triedText returns the rate of each number of workers: "1: 210 MB/s, 2: 395 MB/s".
func triedText(r *measure.DiskRun) string {
	var steps []string
	for _, s := range r.Tried {
		steps = append(steps, fmt.Sprintf("%d: %s", s.Workers, doc.ByteRate(s.Bytes)))
	}
	s := strings.Join(steps, ", ")
	if r.Rising {
		s += "; still rising: more workers than allowed may reach more"
	}
	return s
}
