package stat

import (
	"cmp"
	"slices"
	"strconv"

	"thru/internal/measure"
)

// Recommend returns, for each path on which streams, windows or lengths were varied, the smallest setting that
// carries as much: few streams before many, the system's window before a requested one, small ones before large
// ones. "As much" means within worthwhilePct of the best. It also counts the settings that the best does not
// clearly exceed (clearlyMore, over all settings of that path).
func Recommend(d *measure.Document) (all []measure.Recommended) {
	var keys []string
	found := map[string][]*measure.Cell{}
	for i := range d.Cells {
		c := &d.Cells[i]
		if c.Baseline || c.Experiment != "" || c.Goodput == nil || c.Error != nil || c.Spec.Traffic != measure.Bulk || c.Spec.Rate > 0 || c.Spec.Search || c.AtOnce > 1 {
			continue
		}
		others := slices.DeleteFunc(slices.Clone(c.Axes), func(a measure.Axis) bool { return a.Name == "streams" || a.Name == "window" || a.Name == "length" })
		key := c.From + "\n" + c.To + "\n" + c.Rung + "\n" + c.Protocol + "\n" + AxesText(others)
		if found[key] == nil {
			keys = append(keys, key)
		}
		found[key] = append(found[key], c)
	}
	for _, k := range keys {
		if r, ok := recommended(found[k]); ok {
			all = append(all, r)
		}
	}
	return all
}

// recommended chooses among the cells of one path; false if nothing was varied.
func recommended(cells []*measure.Cell) (r measure.Recommended, ok bool) {
	slices.SortStableFunc(cells, func(a, b *measure.Cell) int {
		return cmp.Or(cmp.Compare(a.Streams, b.Streams), comparePairs(a.Window, b.Window), comparePairs(a.Length, b.Length))
	})
	best := cells[0]
	var figures []*measure.Figure
	for i, c := range cells {
		if i > 0 && sameSetting(c, cells[i-1]) {
			return r, false // measured twice under a condition that is no setting
		}
		figures = append(figures, c.Goodput)
		if c.Goodput.Value > best.Goodput.Value {
			best = c
		}
	}
	if len(cells) < 2 {
		return r, false
	}
	var use *measure.Cell
	sameSettings := 0
	for _, c := range cells {
		if c != best && clearlyMore(best.Goodput, c.Goodput, figures) {
			continue
		}
		sameSettings++
		if use == nil && best.Goodput.Value <= c.Goodput.Value*(1+worthwhilePct/100.0) {
			use = c
		}
	}
	return measure.Recommended{
		From: use.From, To: use.To, Rung: use.Rung, Use: settingOf(use, cells), Bps: use.Goodput.Value,
		Best: settingOf(best, cells), BestBps: best.Goodput.Value, Equal: sameSettings, Settings: len(cells), Runs: use.Goodput.Runs,
	}, true
}

func comparePairs(a, b measure.Pair) int {
	return cmp.Or(cmp.Compare(a.Send, b.Send), cmp.Compare(a.Recv, b.Recv))
}

func sameSetting(a, b *measure.Cell) bool {
	return a.Streams == b.Streams && a.Window == b.Window && a.Length == b.Length
}

// settingOf returns the values of a cell that differ among those of its path.
func settingOf(c *measure.Cell, among []*measure.Cell) (axes []measure.Axis) {
	varies := func(differs func(x *measure.Cell) bool) bool { return slices.ContainsFunc(among, differs) }
	if varies(func(x *measure.Cell) bool { return x.Streams != c.Streams }) {
		axes = append(axes, measure.Axis{Name: "streams", Value: strconv.Itoa(c.Streams)})
	}
	if varies(func(x *measure.Cell) bool { return x.Window != c.Window }) {
		axes = append(axes, measure.Axis{Name: "window", Value: pairValue(c.Window)})
	}
	if varies(func(x *measure.Cell) bool { return x.Length != c.Length }) {
		axes = append(axes, measure.Axis{Name: "length", Value: pairValue(c.Length)})
	}
	return axes
}

// pairValue formats a size for a plan file.
func pairValue(p measure.Pair) string {
	one := func(n int64) string {
		switch {
		case n == 0:
			return "default"
		case n%(1<<20) == 0:
			return strconv.FormatInt(n>>20, 10) + "M"
		case n%(1<<10) == 0:
			return strconv.FormatInt(n>>10, 10) + "K"
		}
		return strconv.FormatInt(n, 10)
	}
	if p.Send == p.Recv {
		return one(p.Send)
	}
	return one(p.Send) + "/" + one(p.Recv)
}
