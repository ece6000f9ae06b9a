package change

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// profile is what a series does by the hour: the median of each group of hours of the week.
type profile struct {
	pattern pattern   // without groups: it does nothing by the hour
	centers []float64 // NaN: too few samples
	middle  float64   // of all samples, for hours of which there are too few
	chosen  int       // number of samples when the pattern was chosen
}

// pattern is a division of the week into groups.
type pattern struct {
	groups int
	of     func(slot uint8) int
	days   float64 // that a series needs for it
}

// patterns returns the divisions, the simplest first.
func patterns() []pattern {
	return []pattern{
		{24, func(slot uint8) int { return int(slot) % 24 }, 4},
		{2, kindOf, 12},
		{48, func(slot uint8) int { return int(slot)%24 + 24*kindOf(slot) }, 12},
		{7 * 24, func(slot uint8) int { return int(slot) }, 27},
	}
}

// kindOf returns 0 for an hour of a weekday, 1 for an hour of a weekend.
func kindOf(slot uint8) int {
	if slot < 24 || slot >= 6*24 {
		return 1
	}
	return 0
}

// Limits of a profile.
const (
	leastInGroup = 3   // samples, for a median
	leastGain    = 0.9 // of the deviations that a simpler profile leaves
)

// learn learns the profile of samples, and returns their residuals. It chooses the pattern that predicts each sample best from the others,
// again after the number of samples has changed by an eighth.
func (p *profile) learn(samples []sample) []float64 {
	order := make([]int, len(samples)) // by value
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(samples[a].value, samples[b].value) })
	p.middle = medianWithout(samples, order, -1)
	if math.Abs(float64(len(samples)-p.chosen))*8 < float64(len(samples)) {
		if p.pattern.groups == 0 {
			return p.residuals(samples)
		}
		if centers, residuals, _, ok := p.pattern.fit(samples, order, p.middle); ok {
			p.centers = centers
			return residuals
		}
	}
	*p = profile{middle: p.middle, chosen: len(samples)}
	best, least := p.residuals(samples), 0.0
	for i := range samples {
		least += math.Abs(samples[i].value - p.middle)
	}
	days := float64(samples[len(samples)-1].nanos-samples[0].nanos) / float64(24*time.Hour)
	for _, x := range patterns() {
		if days < x.days {
			continue
		}
		if centers, residuals, left, ok := x.fit(samples, order, p.middle); ok && left < leastGain*least {
			p.pattern, p.centers, best, least = x, centers, residuals, left
		}
	}
	return best
}

// fit returns the medians of the groups, the deviation of each sample from the median of the others of its group, and the sum of these
// deviations.
func (x pattern) fit(samples []sample, order []int, middle float64) (centers, residuals []float64, left float64, ok bool) {
	groups := make([][]int, x.groups)
	for _, i := range order {
		g := x.of(samples[i].slot)
		groups[g] = append(groups[g], i)
	}
	centers, residuals = make([]float64, x.groups), make([]float64, len(samples))
	lonely, used := 0, 0
	for g, members := range groups {
		centers[g] = math.NaN()
		few := len(members) < leastInGroup
		if few {
			lonely += len(members)
		} else {
			used++
			centers[g] = medianWithout(samples, members, -1)
		}
		for at, i := range members {
			center := middle
			if !few {
				center = medianWithout(samples, members, at)
			}
			residuals[i] = samples[i].value - center
			left += math.Abs(residuals[i])
		}
	}
	return centers, residuals, left, used > 1 && lonely*10 <= len(samples)
}

// medianWithout returns the median of samples that are in order of their values, without one of them (-1: with all).
func medianWithout(samples []sample, ordered []int, without int) float64 {
	n := len(ordered)
	if without >= 0 {
		n--
	}
	nth := func(i int) float64 {
		if without >= 0 && i >= without {
			i++
		}
		return samples[ordered[i]].value
	}
	return (nth((n-1)/2) + nth(n/2)) / 2
}

// residual returns by how much a sample exceeds what the profile predicts, and whether enough samples of its hour are known.
func (p *profile) residual(x *sample) (float64, bool) {
	if p.pattern.groups == 0 {
		return x.value, true
	}
	if c := p.centers[p.pattern.of(x.slot)]; !math.IsNaN(c) {
		return x.value - c, true
	}
	return x.value - p.middle, false
}

// residuals returns those of many samples.
func (p *profile) residuals(samples []sample) []float64 {
	all := make([]float64, len(samples))
	for i := range samples {
		all[i], _ = p.residual(&samples[i])
	}
	return all
}
