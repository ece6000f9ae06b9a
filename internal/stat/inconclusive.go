package stat

import (
	"fmt"

	"thru/internal/measure"
	"thru/internal/unit"
)

// MostOtherWork is how busy a host may be without the test, in percent of all its CPUs, if its rate is to be the
// path's.
const MostOtherWork = 90

// settle makes a verdict of these cells inconclusive if they cannot decide: a host kept busy by other work could
// not have shown the rate, or the interval of an unstable run contains the bar.
func settle(v measure.Verdict, cells ...*measure.Cell) measure.Verdict {
	for _, c := range cells {
		if AboveCeiling(c) {
			return v
		}
	}
	if host := BusyHost(cells); host != "" && !v.Pass {
		return busyVerdict(v, host)
	}
	for _, c := range cells {
		if holdsBar(c) {
			return openVerdict(v, fmt.Sprintf("the rate is not stable: it is between %s and %s", unit.Rate(*c.Goodput.CI95Low), unit.Rate(*c.Goodput.CI95High)),
				"measure for longer and several times: -t 60 --repeat 5")
		}
	}
	return v
}

// openVerdict returns an inconclusive verdict: why, and what would decide.
func openVerdict(v measure.Verdict, why, do string) measure.Verdict {
	v.Pass, v.Inconclusive, v.Do = false, true, do
	v.Reason += "; " + why
	return v
}

func busyVerdict(v measure.Verdict, host string) measure.Verdict {
	return openVerdict(v, host+" was busy without the test, so the test cannot show the rate of the path", EndOther(host))
}

// EndOther says what to do about a busy host.
func EndOther(host string) string {
	return "stop the other work at " + host + " and measure again, or measure between other hosts"
}

// BusyHost returns an end of the flows that was kept busy by other work; "" if there is none.
func BusyHost(cells []*measure.Cell) string {
	for _, c := range cells {
		for i := range c.Runs {
			f := flowOf(c, &c.Runs[i])
			if f == nil {
				continue
			}
			for _, e := range []*measure.Evidence{f.Sender, f.Receiver} {
				if IdleBusy(e) >= MostOtherWork {
					return e.EndPoint
				}
			}
		}
	}
	return ""
}

// IdleBusy returns how busy a host was without the test, in percent of all its CPUs; 0 if it was not read.
func IdleBusy(e *measure.Evidence) (busy float64) {
	if e == nil || e.Base == nil {
		return 0
	}
	for _, c := range e.Base.CPUs {
		busy += c.Busy() / float64(len(e.Base.CPUs))
	}
	return busy
}

// holdsBar reports whether the interval of an unstable rate contains the lowest passing rate.
func holdsBar(c *measure.Cell) bool {
	g := c.Goodput
	if g == nil || c.Ceiling == nil || g.Stable == nil || *g.Stable || g.CI95Low == nil || g.CI95High == nil {
		return false
	}
	bar := PassPct / 100 * c.Ceiling.Bps
	return *g.CI95Low < bar && bar <= *g.CI95High
}
