package stat

import (
	"fmt"
	"slices"
	"time"

	"thru/internal/measure"
	"thru/internal/unit"
)

// Thresholds of the verdict, in percent of the ceiling.
const (
	PassPct         = 95.0
	MostLostPct     = 1.0   // of datagrams: a path that loses more does not deliver the rate
	AboveCeilingPct = 100.5 // above it the figure proves nothing: an assumption is wrong
)

const wrongAssumption = "an assumption about link rate, MTU or accounting is wrong"

// AboveCeiling reports whether a cell shows more than its link can carry. Data already in flight when the measured
// time began, or waiting in the receiver's kernel for an earlier lost segment, is no contradiction.
func AboveCeiling(c *measure.Cell) bool {
	return c.Ceiling != nil && c.Ceiling.SharePct > AboveCeilingPct+inFlightPct(c)
}

// inFlightPct returns the most data in flight at a time, in percent of what arrived in the measured time.
func inFlightPct(c *measure.Cell) (most float64) {
	for i := range c.Runs {
		f := flowOf(c, &c.Runs[i])
		if f == nil || f.Sender == nil || f.Receiver == nil || f.Receiver.Bytes <= 0 {
			continue
		}
		bytes := 0.0
		for k, s := range f.Sender.Streams {
			bytes += mostOut(f.Sender, k, s)
		}
		most = max(most, 100*bytes/float64(f.Receiver.Bytes))
	}
	return min(most, mostInFlight)
}

// mostInFlight limits that, in percent: a higher figure is invalid.
const mostInFlight = 10

// mostOut returns the most that a stream had sent and not seen acknowledged, in bytes: data waiting at the
// receiver for a lost segment is part of it.
func mostOut(e *measure.Evidence, stream int, s measure.Stream) float64 {
	if s.TCP == nil || s.TCP.SendMSS == nil {
		return 0
	}
	readings := []*measure.TCPInfo{s.TCPStart, s.TCP}
	for i := range e.Bins {
		if stream < len(e.Bins[i].TCP) {
			readings = append(readings, &e.Bins[i].TCP[stream])
		}
	}
	segments := 0.0
	for _, t := range readings {
		if t != nil && t.Unacked != nil {
			segments = max(segments, float64(*t.Unacked))
		}
	}
	return segments * float64(*s.TCP.SendMSS)
}

// Verdict compares the main cells with their ceilings. It is nil if none has one, since without a known link rate
// there is nothing to pass, and if a cell failed (an error, no verdict) or was limited by an end point.
func Verdict(cells []measure.Cell) *measure.Verdict {
	var v *measure.Verdict
	for _, c := range cells {
		if c.Error != nil && !c.Baseline || bounded(c) {
			return nil
		}
	}
	for _, c := range cells {
		if c.Baseline || !judgeable(c) {
			continue
		}
		if one := verdictOf(c); v == nil || worse(one, *v) {
			v = &one
		}
	}
	return v
}

// bounded reports whether an end point's operator allows less than the link carries: the path cannot be judged
// then.
func bounded(c measure.Cell) bool {
	return c.Ceiling != nil && c.Spec.MaxRate > 0 && float64(c.Spec.MaxRate) < c.Ceiling.Bps
}

// leastJudged is the shortest measured time that a verdict may rest on.
const leastJudged = time.Second

// judgeable returns false for a cell that was not meant to fill the link: requests and responses, a requested rate
// below the ceiling, or an amount that was transferred in under a second.
func judgeable(c measure.Cell) bool {
	switch {
	case c.Ceiling == nil || asks(&c):
		return false
	case c.Spec.Rate > 0 && float64(c.Spec.Rate) < c.Ceiling.Bps:
		return false
	case c.Spec.Amount > 0:
		return slices.ContainsFunc(c.Runs, func(r measure.Run) bool {
			f := flowOf(&c, &r)
			return f != nil && f.Receiver != nil && f.Receiver.MeasuredNs >= int64(leastJudged)
		})
	}
	return true
}

// worse reports which of two cells decides: one that fails, then an inconclusive one, then the lower share.
func worse(a, b measure.Verdict) bool {
	if a.Pass != b.Pass {
		return b.Pass
	}
	if a.Inconclusive != b.Inconclusive {
		return b.Inconclusive
	}
	return a.Share < b.Share
}

// verdictOf judges one cell.
func verdictOf(c measure.Cell) measure.Verdict { return settle(judged(c), &c) }

// judged compares what one cell carried with its ceiling.
func judged(c measure.Cell) measure.Verdict {
	v := measure.Verdict{Required: PassPct}
	name := c.From + " to " + c.To
	if c.Label != "" {
		name += " (" + c.Label + ")"
	}
	if c.Goodput == nil {
		v.Inconclusive, v.Reason, v.Do = true, name+" was not measured", "measure again"
		return v
	}
	whole := func(r measure.Run) bool { return !r.Partial && r.Error == nil }
	if len(c.Runs) > 0 && !slices.ContainsFunc(c.Runs, whole) {
		v.Inconclusive, v.Reason, v.Do = true, name+" was not measured completely", "measure again"
		return v
	}
	v.Share = c.Ceiling.SharePct
	v.Pass = v.Share >= PassPct && !AboveCeiling(&c)
	v.Reason = fmt.Sprintf("%s carries %.2f%% of the ceiling of %s, %s is required",
		name, v.Share, unit.Rate(c.Ceiling.Bps), unit.Percent(PassPct))
	if AboveCeiling(&c) {
		v.Reason = fmt.Sprintf("%s shows %.2f%% of the ceiling of %s: %s", name, v.Share, unit.Rate(c.Ceiling.Bps), wrongAssumption)
	}
	if d := c.Datagrams; d != nil && d.LossPct > MostLostPct {
		v.Pass = false
		v.Reason = fmt.Sprintf("%s carries %.2f%% of the ceiling of %s, but %s of the datagrams were lost; at most %s is allowed",
			name, v.Share, unit.Rate(c.Ceiling.Bps), unit.Percent(d.LossPct), unit.Percent(MostLostPct))
	}
	return v
}

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
	v.Pass, v.Inconclusive, v.Undecided, v.Do = false, true, why, do
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
