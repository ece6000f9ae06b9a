package queue

import (
	"slices"

	"thru/internal/cause/advise"
	"thru/internal/cause/diagnose"
	"thru/internal/cause/gate"
	"thru/internal/cause/knob"
	"thru/internal/cause/rule"
	"thru/internal/cause/scene"
	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// SlowConvergence is the cause `slow-convergence`.
func SlowConvergence() rule.Cause {
	return rule.Cause{
		Rule: diagnose.Rule{
			Cause: "slow-convergence", TCP: true, Title: "the rate still rises when the run ends", Judge: judgeSlowConvergence,
			Seen:        "the last third carries 10% more than the first, the congestion window grows to the end, there is no plateau",
			Distinction: "a longer run reaches more", Fix: "measure for longer, or omit more of the start (-O)", Effect: "the figure is lower than what the path carries",
			Source: "methods.md, steady state; RFC 9438, section 4", Tests: []string{diagnose.Longer},
		},
		Gates: []gate.Rule{
			{ID: "tcp-carry-over", Title: "Cached TCP metrics", About: "tcp_no_metrics_save and tcp_slow_start_after_idle, where the path is long (10 ms) and holds more than 1 MB; information only",
				Why:    "a slow-start threshold cached from an earlier connection with loss makes the next ones start slowly",
				Source: "ip-sysctl.rst", Fix: "do not cache it while measuring", Checklist: []string{"C-17"}, Host: gateTCPCarryOver},
		},
		Propose: []advise.Proposer{ProposeSlowConvergence},
	}
}

func judgeSlowConvergence(f *diagnose.Flow) *diagnose.Outcome {
	bins := f.Bins()
	left, _ := f.Allowed()
	switch {
	case f.IsRateLimited():
		return diagnose.No("a rate was requested")
	case f.Follows() && f.Rate() < diagnose.BindsBar*left:
		return diagnose.No("the rate rises and falls with packet loss")
	case stillClimbs(f):
		return asClimbing(f, diagnose.Likely("the congestion window still grows when the run ends: no packet is lost, no queue and no window is full"))
	case len(bins) < stat.LeastBins:
		return diagnose.Missing("a time line of 5 s or more", "the run was too short to see a trend")
	}
	third := len(bins) / 3
	first, last := stat.Mean(bins[:third]), stat.Mean(bins[len(bins)-third:])
	switch {
	case last < riseBar*first:
		return diagnose.No("the last third carries %s, the first %s", unit.Rate(last), unit.Rate(first))
	case stat.Rising(bins) < 0.8:
		return diagnose.No("the rate rises and falls")
	}
	if _, _, _, steps := stat.ChangePoint(bins); steps {
		return diagnose.No("the rate has two levels, and no slope")
	}
	o := diagnose.Possible("the rate still rises when the run ends: from %s to %s", unit.Rate(first), unit.Rate(last)).At(measure.Where{Place: measure.AtTool}).
		By(f.Receiver.Proof("goodput of the first third", first, "bps"), diagnose.Above(f.Receiver.Proof("goodput of the last third", last, "bps"), riseBar*first))
	if o := asClimbing(f, o); f.Experiment(diagnose.Longer) != nil {
		return o
	}
	if grows, ok := cwndGrows(f); ok || last > farBar*first {
		if !grows && last <= farBar*first { // an overshoot shrinks it once, and the rate rises nevertheless
			return diagnose.No("the congestion window does not grow")
		}
		o.Confidence = measure.Likely
	}
	return o
}

// stillClimbs reports whether the congestion window limits a sender although nothing was lost and no queue, window
// or buffer is full: its rate is still rising.
func stillClimbs(f *diagnose.Flow) bool {
	flight, ok1 := f.InFlight()
	cwnd, ok2 := f.Cwnd()
	again, ok3 := f.AgainPct()
	held, _, ok4 := f.WindowLimited()
	_, _, ok5 := f.RTT()
	if !ok1 || !ok2 || !ok3 || !ok4 || !ok5 || diagnose.Paces(f.Congestion()) || f.Sender.Seen.Reported != "" {
		return false
	}
	timeline := cwnds(f)
	grows := len(timeline) > 1 && timeline[len(timeline)-1] >= slices.Max(timeline) && timeline[len(timeline)-1] > timeline[0]
	free := !f.HasQueue() && !f.Sender.IsFull() && !f.Receiver.IsFull() && !f.Receiver.IsBehind() && !f.LinkIsFull()
	return grows && flight > 0.85*cwnd && again < diagnose.AgainBar && held < diagnose.RwndClear && free && diagnose.SendBuffer(f).State != diagnose.Holds && f.Rate() > 0
}

// cwnds returns the sum of all streams' congestion windows at the end of each second, in segments; none if one of
// them is not known.
func cwnds(f *diagnose.Flow) (timeline []float64) {
	if f.Sender.Seen == nil {
		return nil
	}
	for _, b := range f.Sender.Seen.Bins {
		sum := 0.0
		for _, t := range b.TCP {
			if t.Cwnd == nil {
				return nil
			}
			sum += float64(*t.Cwnd)
		}
		if len(b.TCP) > 0 {
			timeline = append(timeline, sum)
		}
	}
	return timeline
}

// asClimbing decides about a rate that still rises by a longer run.
func asClimbing(f *diagnose.Flow, o *diagnose.Outcome) *diagnose.Outcome {
	o.At(measure.Where{Place: measure.AtTool}).AddFix(diagnose.Advise(nil, "measure for longer (-t 60), and omit more of the start (-O)"))
	x := f.Experiment(diagnose.Longer)
	switch {
	case x == nil:
	case f.Against(x).Times < diagnose.GainBar:
		return diagnose.No("a longer run reaches only %s", unit.Rate(diagnose.RateOf(x)))
	default:
		o.Confidence = measure.Likely
		if rises(f, x) {
			o.Confidence = measure.Certain
		}
		o.By(f.Receiver.Proof("goodput of a longer run", diagnose.RateOf(x), "bps")).Costs(0, "a longer run reaches "+unit.Rate(diagnose.RateOf(x)), "the same traffic for longer")
	}
	return o
}

// rises reports whether a longer run carries clearly more after the time of this one than within it, which
// excludes differences between runs.
func rises(f *diagnose.Flow, longer *measure.Cell) bool {
	bins, first := stat.Bins(f.FlowOf(diagnose.RunShown(longer)).Receiver), len(f.Bins())
	return first > 0 && len(bins) > first && stat.Mean(bins[first:]) >= riseBar*stat.Mean(bins[:first])
}

// riseBar is how many times the first third of a run the last third carries at least, if it still rises.
const riseBar = 1.1

// cwndGrows reports whether the congestion window is largest in the last seconds, and well above that of the
// first.
func cwndGrows(f *diagnose.Flow) (grows, known bool) {
	timeline := cwnds(f)
	if len(timeline) < stat.LeastBins {
		return false, false
	}
	end := timeline[len(timeline)-1]
	return end >= 0.9*slices.Max(timeline) && end > 1.2*timeline[0], true
}

// farBar is by how many times the last third exceeds the first if the run began in slow start.
const farBar = 3

func gateTCPCarryOver(h *scene.Host) *gate.Finding {
	product, _ := h.BDP()
	if h.System != "linux" || product < 1e6 || h.RTT() < longRTT {
		return nil
	}
	var fix scene.Fix
	if h.Sysctls[knob.Sysctl(knob.NoMetricsSave)] == "0" {
		fix = h.Set(knob.NoMetricsSave, "", "1")
	}
	if h.Sysctls[knob.Sysctl(knob.SlowStartIdle)] == "1" {
		fix = fix.And(h.Set(knob.SlowStartIdle, "", "0"))
	}
	if len(fix.Lines) == 0 {
		return nil
	}
	return gate.Pass("TCP starts with cached metrics of earlier connections, or in slow start after a pause%s", gate.AtRTT(h.RTT())).Do(fix)
}

// longRTT is the round-trip time in ns from which a connection needs long to find its rate again.
const longRTT = 10e6

// ProposeSlowConvergence is for a rate that still rises: cached metrics of an earlier connection may limit it, and
// a pause makes it start anew.
func ProposeSlowConvergence(r advise.Request) []advise.Draft {
	h := r.Direction.From
	var list []advise.Draft
	if h.Value(knob.NoMetricsSave, "") == "0" {
		list = append(list, advise.Change(h, knob.NoMetricsSave, "", "1", "connections of %s do not start with cached metrics of earlier ones", h.Name).ForDirection(r.Direction))
	}
	if h.Value(knob.SlowStartIdle, "") == "1" {
		list = append(list, advise.Change(h, knob.SlowStartIdle, "", "0", "connections of %s keep their congestion window over a pause", h.Name).ForDirection(r.Direction))
	}
	return list
}
