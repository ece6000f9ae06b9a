package queue

import (
	"slices"
	"time"

	"thru/internal/cause/diagnose"
	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

func tokenBucket(f *diagnose.Flow) *diagnose.Outcome {
	if o := overAllowance(f); o != nil {
		return o
	}
	x, found := f.TwoLevels()
	long := f.Experiment(diagnose.Longer)
	switch {
	case !found && len(f.Bins()) < 2*stat.LeastBins-4 && long == nil: // two levels of three seconds
		return diagnose.Missing("six seconds of the course", "the run was too short to see two levels")
	case !found:
		return diagnose.No("the rate has one level")
	case x.Before < diagnose.StepBar*x.After || x.After <= 0:
		return diagnose.No("the second level is not clearly below the first: %s, then %s", unit.Rate(x.Before), unit.Rate(x.After))
	case f.Sender.IsFull() || f.Receiver.IsFull():
		return diagnose.No("a CPU is full")
	}
	o := diagnose.Likely("the rate falls from %s to %s after %.0f s: a burst was allowed, then less, or others take the rest since", unit.Rate(x.Before), unit.Rate(x.After), x.Lasted.Seconds()).
		By(f.Receiver.Proof("first level", x.Before, "bps"), f.Receiver.Proof("second level", x.After, "bps")).
		Costs(x.After, "what lasts is "+unit.Rate(x.After), "change point of the seconds").
		Mend(diagnose.Advise(nil, "report both levels; a larger instance or contract, if the first one is to last"))
	if long != nil && diagnose.RateOf(long) < diagnose.StepBar*x.After {
		o.By(diagnose.Below(measure.Proof{EndPoint: f.Receiver.Name, Counter: "goodput of a longer run after this one", Value: diagnose.RateOf(long), Unit: "bps"}, diagnose.StepBar*x.After))
	}
	after := secondsAfter(f, x)
	spread := diagnose.SpreadOf(after)
	if len(after) < 3 || spread >= diagnose.FlatBar {
		o.Confidence = measure.Possible // a control that losses or timeouts have thrown back falls as well, and wanders
		return o.Then("a longer run: whether its second level stays")
	}
	o.By(diagnose.Below(f.Receiver.Proof("deviation of the seconds after the step from their median", spread, "pct"), diagnose.FlatBar))
	if again := sameBurst(f, x); again > 0 {
		o.Confidence = measure.Certain
		return o.By(f.Receiver.Proof("bytes before the step, of each of several runs", again, "bytes"))
	}
	return o.Then("the same after a rest of minutes: a bucket has filled again, and gives as many bytes before it falls")
}

// sameBurstPct is by how many percent the bytes of the burst may differ from run
// to run: a bucket fills again while nothing is sent, and rates scatter.
const sameBurstPct = 25

// sameBurst is how many bytes each of two runs or more brought above the second
// level; 0 where there are none, or they are not the same.
func sameBurst(f *diagnose.Flow, x diagnose.TwoLevels) float64 {
	var bursts []float64
	for _, e := range alike(f) {
		if bytes, lasted := x.BurstOf(e); lasted >= time.Second {
			bursts = append(bursts, bytes)
		}
	}
	slices.Sort(bursts)
	for n := len(bursts) - 1; n > 0; n-- { // a run right after another finds the bucket empty
		if bursts[n] <= bursts[n-1]*(1+sameBurstPct/100.0) {
			return (bursts[n] + bursts[n-1]) / 2
		}
	}
	return 0
}

// alike are the receivers of this run, and of those that differ from it only in
// when they began and how long they lasted.
func alike(f *diagnose.Flow) []*measure.Evidence {
	runs := slices.Clone(f.Cell.Runs)
	for _, id := range []string{diagnose.Longer, diagnose.Rested} {
		if c := f.Experiment(id); c != nil {
			runs = append(runs, c.Runs...)
		}
	}
	var es []*measure.Evidence
	for i := range runs {
		es = append(es, f.FlowOf(&runs[i]).Receiver)
	}
	return es
}

// secondsAfter are the rates of the seconds at the second level, of all runs; the
// first of each is left out, within which the rate may have fallen.
func secondsAfter(f *diagnose.Flow, x diagnose.TwoLevels) (all []float64) {
	for _, e := range alike(f) {
		bins := stat.Bins(e)
		high := x.LastHigh(bins)
		all = append(all, bins[min(high+1, len(bins)):]...)
	}
	return all
}
