package queue

import (
	"slices"
	"strings"
	"time"

	"thru/internal/cause/diagnose"
	"thru/internal/cause/rule"
	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// TokenBucket is the cause `token-bucket`.
func TokenBucket() rule.Cause {
	return rule.Cause{
		Rule: diagnose.Rule{
			Cause: "token-bucket", TCP: true, UDP: true, Unseen: diagnose.HostPackets, Title: "a token bucket allows a burst, then a lower rate", Judge: judgeTokenBucket,
			Seen:        "the rate has two levels, the higher one first; or a cloud's counters of exceeded allowances rose",
			Distinction: "other traffic that starts causes the same two levels; only a token bucket passes as many bytes before the step of another run (certain)",
			Fix:         "use a larger instance or a higher rate; report both levels", Effect: "the lower level is the sustained rate",
			Source: "ENA driver, bw_in_allowance_exceeded; methods.md, change-point test", Tests: []string{diagnose.Longer, diagnose.Rested}, Brings: []string{"shaper", "policer", "loss"},
		},
	}
}

func judgeTokenBucket(f *diagnose.Flow) *diagnose.Outcome {
	if o := overAllowance(f); o != nil {
		return o
	}
	x, found := f.TwoLevels()
	long := f.Experiment(diagnose.Longer)
	flat, seen := f.Flatness()
	bps, _ := f.Goodput()
	switch passed := f.UdpPassed(); {
	case bps > 0 && passed > farAbove*bps:
		return diagnose.No("datagrams at %s pass: a bucket that this run had emptied would drop them", unit.Rate(passed))
	case !found && long == nil && seen && flat > 2*diagnose.FlatBar && !f.HasQueue() && !f.Falls():
		return diagnose.No("the rate varies by %s from second to second, and no queue is full: the path does not hold it at a level", unit.Percent(flat))
	case !found && len(f.Bins()) < 2*stat.LeastBins-4 && long == nil: // two levels of three seconds
		return diagnose.Missing("a time line of 6 s or more", "the run was too short to see two levels")
	case !found:
		return diagnose.No("the rate has one level")
	case x.Before < diagnose.StepBar*x.After || x.After <= 0:
		return diagnose.No("the second level is not clearly below the first: %s, then %s", unit.Rate(x.Before), unit.Rate(x.After))
	case f.Sender.IsFull() || f.Receiver.IsFull():
		return diagnose.No("a CPU is full")
	}
	o := diagnose.Likely("the rate falls from %s to %s after %.0f s: a token bucket allowed a burst, or other traffic started then", unit.Rate(x.Before), unit.Rate(x.After), x.Lasted.Seconds()).
		By(f.Receiver.Proof("first level", x.Before, "bps"), f.Receiver.Proof("second level", x.After, "bps")).
		Costs(x.After, "the sustained rate is "+unit.Rate(x.After), "change point of the rate, by the second").
		AddFix(diagnose.Advise(nil, "report both levels; use a larger instance or contract if the first one must be sustained"))
	if long != nil && diagnose.RateOf(long) < diagnose.StepBar*x.After {
		o.By(diagnose.UnderBar(measure.Proof{EndPoint: f.Receiver.Name, Counter: "goodput of a longer run after this one", Value: diagnose.RateOf(long), Unit: "bps"}, diagnose.StepBar*x.After))
	}
	after := secondsAfter(f, x)
	spread := stat.MedianDeviation(after)
	if len(after) < 3 || spread >= diagnose.FlatBar {
		o.Confidence = measure.Possible // a congestion control set back by losses or timeouts falls as well, and varies
		return o.Then("a longer run, to see whether the second level stays")
	}
	o.By(diagnose.UnderBar(f.Receiver.Proof("deviation of the rate after the step from its median, by the second", spread, "pct"), diagnose.FlatBar))
	if again := sameBurst(f, x); again > 0 {
		o.Confidence = measure.Certain
		return o.By(f.Receiver.Proof("bytes before the step, of each of several runs", again, "bytes"))
	}
	return o.Then("the same test after some idle minutes: a token bucket has filled again, and passes as many bytes before the rate falls")
}

// farAbove is the multiple of the goodput at which the datagrams of an experiment need more tokens than a bucket
// gets between the runs.
const farAbove = 9

// overAllowance judges by the cloud allowance counters. They include bursts of any flow of the instance, so the
// outcome is certain only for bits per second, if they count much and this flow was most of what passed.
func overAllowance(f *diagnose.Flow) *diagnose.Outcome {
	const certainShare = 0.001
	for _, e := range f.Ends() {
		over, name := allowance(e)
		if over <= 0 {
			continue
		}
		n := e.NIC()
		o := diagnose.Likely("the instance of %s used more than its allowance", e.Name).At(e.OnFace()).By(diagnose.Above(e.Proof(name, over, "packets"), 0)).
			AddFix(diagnose.Advise(e, "use a larger instance, or one without bursts; report both levels"))
		bytes := n.RxBytes
		if e.Sends() {
			bytes = n.TxBytes
		}
		mine := 2*float64(e.Seen.Bytes) > float64(bytes)
		perSecond := strings.HasPrefix(name, "pps_")
		if length, known := e.MeanPacket(); perSecond && known && 2*length < f.MSS() { // small packets of others
			mine = false
		}
		again, _ := f.AgainPct()
		switch {
		case f.LinkIsFull() || !f.HasQueue() && (again < diagnose.AgainBar || !f.MayFollow()): // no packet of this flow was delayed or dropped
			o.MarkNotBinding()
		case perSecond && !mine:
			o.Confidence = measure.Possible
		case over >= certainShare*float64(n.TxPackets+n.RxPackets) && over >= diagnose.FewEvents && !perSecond && mine:
			o.Confidence = measure.Certain
		}
		return o
	}
	return nil
}

// allowance returns what a cloud's hypervisor counts at an end's interface as queued or dropped because the
// instance exceeded its allowance: of bandwidth in the data direction, and of packets per second. Limits of
// tracked connections and of local services do not limit a flow.
func allowance(e *diagnose.End) (packets float64, name string) {
	n := e.NIC()
	if n == nil {
		return 0, ""
	}
	direction := "bw_in"
	if e.Sends() {
		direction = "bw_out"
	}
	return diagnose.Counted(n, []string{direction + "_allowance_exceeded", "pps_allowance_exceeded"}, nil)
}

// secondsAfter returns the rates of the seconds at the second level, of all runs; without the first of each,
// within which the rate may have fallen.
func secondsAfter(f *diagnose.Flow, x diagnose.TwoLevels) (all []float64) {
	for _, e := range sameReceivers(f) {
		bins := stat.Bins(e)
		high := x.LastHigh(bins)
		all = append(all, bins[min(high+1, len(bins)):]...)
	}
	return all
}

// sameReceivers returns the receivers of this run, and of those that differ from it only in start and duration.
func sameReceivers(f *diagnose.Flow) []*measure.Evidence {
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

// sameBurst returns how many bytes each of two or more runs carried above the second level; 0 if there are none,
// or they differ.
func sameBurst(f *diagnose.Flow, x diagnose.TwoLevels) float64 {
	var bursts []float64
	for _, e := range sameReceivers(f) {
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

// sameBurstPct is by how many percent the bytes of the burst may differ from run to run: a bucket refills while
// nothing is sent, and rates scatter.
const sameBurstPct = 25
