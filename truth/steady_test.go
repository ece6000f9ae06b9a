package truth

import (
	"fmt"
	"math"
	"math/rand/v2"

	"thru/internal/stat"
)

// run draws a run of seconds around 1 Gb/s, with noise of a relative deviation; rho is the correlation of
// consecutive seconds.
func run(r *rand.Rand, seconds int, deviation, rho float64) []float64 {
	xs, last := make([]float64, seconds), r.NormFloat64()
	for i := range xs {
		xs[i] = 1e9 * max(0, 1+deviation*last)
		last = rho*last + math.Sqrt(1-rho*rho)*r.NormFloat64()
	}
	return xs
}

// lengths are the lengths of the simulated runs, in seconds.
func lengths() []int { return []int{10, 20, 30, 60, 120} }

// intervals returns the rates for the interval of a single run.
func intervals(scale float64) table {
	t := table{
		title: "Interval of a single run",
		about: "How often the 95% interval of a run contains the mean of the same run if it continued. Its seconds scatter by 5%, and each depends on " +
			"the one before by rho. The width is the mean half-width, relative to a mean with known variance. Runs below 30 s have no limit, below 10 s no interval.",
		head: []string{"seconds", "rho", "width", "covered"},
	}
	for _, n := range lengths() {
		for _, rho := range []float64{0, 0.3, 0.6} {
			t.rows = append(t.rows, covered(n, rho, scale))
		}
	}
	return t
}

// called returns how often a run is called not stable, and how often two levels are found.
func called(seed int, scale float64, draw func(*rand.Rand) []float64) []rate {
	return []rate{
		count(1000, scale, uint64(seed), func(r *rand.Rand) bool { return !stat.Steady(draw(r)).Steady }),
		count(1000, scale, uint64(seed), func(r *rand.Rand) bool { return len(stat.Steady(draw(r)).Levels) == 2 }),
	}
}

// covered returns the coverage and the width of the interval at one condition.
func covered(seconds int, rho, scale float64) row {
	width := 0.0
	c := count(4000, scale, uint64(seconds), func(r *rand.Rand) bool {
		ci, _ := stat.RunInterval(run(r, seconds, 0.05, rho))
		width += (ci.High - ci.Low) / 2
		return ci.Low <= 1e9 && 1e9 <= ci.High
	})
	if seconds >= 30 {
		c = c.least(0.92)
	}
	known := 1.96 * 0.05e9 * math.Sqrt((1+rho)/(1-rho)/float64(seconds))
	return row{[]string{fmt.Sprint(seconds), fmt.Sprint(rho), fmt.Sprintf("%.2f", width/float64(c.trials)/known)}, []rate{c}}
}

// calmRuns returns the rates for stationary runs.
func calmRuns(scale float64) table {
	t := table{
		title: "Steady: false alarms",
		about: "How often a run is called not stable although nothing changes. If its seconds depend on each other (rho), its rate wanders, and it is called not stable more often.",
		head:  []string{"seconds", "rho", "CV", "not stable", "two levels"},
	}
	for _, n := range lengths() {
		for _, rho := range []float64{0, 0.3, 0.6} {
			for _, cv := range []float64{0.03, 0.1, 0.2} {
				alarms := []rate{
					count(1000, scale, uint64(n), func(r *rand.Rand) bool { return !stat.Steady(run(r, n, cv, rho)).Steady }),
					count(1000, scale, uint64(n), func(r *rand.Rand) bool { _, _, _, found := stat.ChangePoint(run(r, n, cv, rho)); return found }),
				}
				if rho == 0 {
					alarms[0] = alarms[0].most(0.05)
				}
				t.add(fmt.Sprintf("%d|%v|%g%%", n, rho, 100*cv), alarms...)
			}
		}
	}
	return t
}

// steppedRuns returns the rates for runs that fall by 20% at one moment.
func steppedRuns(scale float64) table {
	t := table{
		title: "Steady: a step of -20%",
		about: "How often a drop of 20% at this percentage of the run is found: as not stable, and as two levels. The seconds scatter by 3%; with more scatter fewer drops are found.",
		head:  []string{"seconds", "CV", "at", "not stable", "two levels"},
	}
	for _, n := range lengths()[:4] {
		for _, cv := range []float64{0.03, 0.05} {
			for _, at := range []int{20, 35, 50, 65, 80} {
				found := called(n+at, scale, func(r *rand.Rand) []float64 {
					xs := run(r, n, cv, 0)
					for i := n * at / 100; i < n; i++ {
						xs[i] *= 0.8
					}
					return xs
				})
				if cv == 0.03 {
					found[0], found[1] = found[0].least(0.95), found[1].least(0.95)
				}
				t.add(fmt.Sprintf("%d|%g%%|%d%%", n, 100*cv, at), found...)
			}
		}
	}
	return t
}

// driftingRuns returns the rates for runs that rise or fall all the time.
func driftingRuns(scale float64) table {
	t := table{
		title: "Steady: a linear drift",
		about: "How often a run with this drift from its first to its last second is called not stable, and how often it is called two levels. " +
			"The seconds scatter by 2%. A rise may count as slow start and be left out. A drift of five standard deviations in ten seconds has no clear shape and no limit.",
		head: []string{"seconds", "drift", "not stable", "two levels"},
	}
	for _, n := range lengths()[:4] {
		for _, drift := range []float64{-0.4, -0.2, -0.1, 0.1, 0.2, 0.4} {
			found := called(n, scale, func(r *rand.Rand) []float64 {
				xs := run(r, n, 0.02, 0)
				for i := range xs {
					xs[i] += 1e9 * drift * float64(i) / float64(n-1)
				}
				return xs
			})
			if math.Abs(drift) >= 0.2 {
				found[1] = found[1].most(0.05)
			}
			t.add(fmt.Sprintf("%d|%+g%%", n, 100*drift), found...)
		}
	}
	return t
}

// repeats draws runs with a relative deviation, until the rule stops them.
func repeats(r *rand.Rand, deviation, precisionPct float64, least, most int) []float64 {
	var runs []float64
	for !stat.Enough(runs, precisionPct, least, most) {
		runs = append(runs, 1e9*(1+deviation*r.NormFloat64()))
	}
	return runs
}

// intervalOfRuns returns the rates for the interval of a fixed number of runs, and of a number that the
// interval itself decides.
func intervalOfRuns(scale float64) table {
	t := table{
		title: "Interval of repeated runs",
		about: "How often the 95% interval of the runs contains the mean of the path, for normally distributed runs. --repeat makes a fixed number of runs. " +
			"--precision 2.5% makes 5 to 15 runs, until the interval is that narrow. This stop costs a little coverage (with a minimum of 3 runs it would be 91%).",
		head: []string{"runs", "scatter of the runs", "covered"},
	}
	for _, c := range []struct {
		name        string
		pct         float64
		least, most int
	}{{"3", 0, 3, 3}, {"5", 0, 5, 5}, {"10", 0, 10, 10}, {"5 to 15 (--precision 2.5%)", 2.5, 5, 15}} {
		for _, deviation := range []float64{0.01, 0.03, 0.1} {
			t.add(fmt.Sprintf("%s|%g%%", c.name, 100*deviation), count(10000, scale, 5, func(r *rand.Rand) bool {
				ci, _ := stat.MeanInterval(repeats(r, deviation, c.pct, c.least, c.most))
				return ci.Low <= 1e9 && 1e9 <= ci.High
			}).least(0.92))
		}
	}
	return t
}

// groupsOfRuns returns how often runs are reported as two groups.
func groupsOfRuns(scale float64) table {
	t := table{
		title: "Two groups of runs",
		about: "How often runs are called two groups: runs of one level with a scatter of 10%, and runs with a random one of two levels, 25% apart, and a scatter of 1%. " +
			"At least two runs of each level are needed, which do not always occur.",
		head: []string{"runs", "one level", "two levels"},
	}
	for _, n := range []int{4, 5, 6, 8, 10, 15} {
		fires := func(level func(*rand.Rand) float64) rate {
			return count(4000, scale, uint64(n), func(r *rand.Rand) bool {
				runs := make([]float64, n)
				for i := range runs {
					runs[i] = 1e9 * level(r)
				}
				_, _, found := stat.TwoGroups(runs)
				return found
			})
		}
		t.add(fmt.Sprint(n),
			fires(func(r *rand.Rand) float64 { return 1 + 0.1*r.NormFloat64() }).most(0.05),
			fires(func(r *rand.Rand) float64 { return (1 - 0.2*float64(r.IntN(2))) * (1 + 0.01*r.NormFloat64()) }))
	}
	return t
}
