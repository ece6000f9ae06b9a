package queue

import (
	"math"
	"slices"
	"strings"

	"thru/internal/cause/below"
	"thru/internal/cause/diagnose"
	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// TimeCauses are the causes of rates that change in time.
func TimeCauses() []diagnose.Rule {
	return []diagnose.Rule{
		{
			Cause: "token-bucket", TCP: true, UDP: true, Unseen: diagnose.HostPackets, Title: "a burst is allowed, then less", Judge: tokenBucket,
			Seen:  "the rate has two levels, the higher one first; or a cloud's counters of exceeded allowances rose",
			Apart: "other traffic that joins makes the same two levels: only a bucket gives as many bytes again before the step of another run (certain)",
			Mends: "a larger instance or a higher rate; report both levels", Effect: "the lower level is what lasts",
			Source: "ENA driver, bw_in_allowance_exceeded; methods.md, change-point test", Tests: []string{diagnose.Longer, diagnose.Rested}, Brings: []string{"shaper", "policer", "loss"},
		},
		{
			Cause: "slow-convergence", TCP: true, Title: "the rate still rises when the run ends", Judge: slowConvergence,
			Seen:  "the last third carries 10% more than the first, the congestion window grows to the end, there is no plateau",
			Apart: "a longer run reaches more", Mends: "a longer run, a longer ramp left out (-O)", Effect: "the figure is too low, not the path",
			Source: "methods.md, steady state; RFC 9438, section 4", Tests: []string{diagnose.Longer},
		},
		{
			Cause: "noisy-neighbour", TCP: true, UDP: true, Title: "others use the same machine or link", Judge: noisyNeighbour,
			Seen:  "the rate varies from second to second with the CPU time that the hypervisor gives to others; by the hypervisor: others than the test's guests take half of a host's CPUs while 90% are busy, or a fifth of an uplink that is 90% full",
			Apart: "the same at another hour; a guest that gets its CPUs all the same loses nothing", Mends: "anti-affinity, a reservation, a quiet hour", Effect: "figures that change from run to run",
			Source: "proc(5), /proc/stat, steal; cpu.usage and net.received, net.transmitted of an ESXi host",
		},
	}
}

// allowance is what a cloud's hypervisor counts at an end's interface as queued or
// dropped since the instance used more than it may: of the data's own way, and of
// packets a second. Those of tracked connections and of services nearby hold no flow.
func allowance(e *diagnose.End) (packets float64, name string) {
	n := e.NIC()
	if n == nil {
		return 0, ""
	}
	way := "bw_in"
	if e.Sends() {
		way = "bw_out"
	}
	return diagnose.Counted(n, []string{way + "_allowance_exceeded", "pps_allowance_exceeded"}, nil)
}

// overAllowance judges by these counters. Bursts of any flow of the instance are
// counted, so it is certain only of bits a second, where much of this flow was, and
// this flow was most of what passed.
func overAllowance(f *diagnose.Flow) *diagnose.Outcome {
	const certainShare = 0.001
	for _, e := range f.Ends() {
		over, name := allowance(e)
		if over <= 0 {
			continue
		}
		n := e.NIC()
		o := diagnose.Likely("the instance of %s used more than its allowance", e.Name).At(e.OnFace()).By(diagnose.Above(e.Proof(name, over, "packets"), 0)).
			Mend(diagnose.Advise(e, "a larger instance, or one without bursts; report both levels"))
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
		case f.LinkIsFull() || !f.HasQueue() && (again < diagnose.AgainBar || !f.MayFollow()): // nothing of this flow was held up
			o.Beside()
		case perSecond && !mine:
			o.Confidence = measure.Possible
		case over >= certainShare*float64(n.TxPackets+n.RxPackets) && over >= diagnose.FewEvents && !perSecond && mine:
			o.Confidence = measure.Certain
		}
		return o
	}
	return nil
}

// riseBar is how much more the last third of a run that still rises carries than the first.
const riseBar = 1.1

func slowConvergence(f *diagnose.Flow) *diagnose.Outcome {
	bins := f.Bins()
	left, _ := f.Allowed()
	switch {
	case f.IsHeld():
		return diagnose.No("a rate was asked for")
	case f.Follows() && f.Rate() < diagnose.BindsBar*left:
		return diagnose.No("the rate goes up and down with what is lost")
	case stillClimbs(f):
		return asClimbing(f, diagnose.Likely("the congestion window still grows when the run ends: nothing is lost, no queue and no window is full"))
	case len(bins) < stat.LeastBins:
		return diagnose.Missing("five seconds of the course", "the run was too short to see a trend")
	}
	third := len(bins) / 3
	first, last := diagnose.Mean(bins[:third]), diagnose.Mean(bins[len(bins)-third:])
	switch {
	case last < riseBar*first:
		return diagnose.No("the last third carries %s, the first %s", unit.Rate(last), unit.Rate(first))
	case rising(bins) < 0.8:
		return diagnose.No("the rate goes up and down")
	}
	if _, _, _, steps := stat.ChangePoint(bins); steps {
		return diagnose.No("the rate has two levels, no slope")
	}
	o := diagnose.Possible("the rate still rises when the run ends: from %s to %s", unit.Rate(first), unit.Rate(last)).At(measure.Where{Place: measure.AtTool}).
		By(f.Receiver.Proof("goodput of the first third", first, "bps"), diagnose.Above(f.Receiver.Proof("goodput of the last third", last, "bps"), riseBar*first))
	if o := asClimbing(f, o); f.Experiment(diagnose.Longer) != nil {
		return o
	}
	if grows, ok := cwndGrows(f); ok || last > farBar*first {
		if !grows && last <= farBar*first { // an overshoot shrinks it once, and the rate rises all the same
			return diagnose.No("the congestion window does not grow")
		}
		o.Confidence = measure.Likely
	}
	return o
}

// asClimbing settles a rate that still rises by a longer run.
func asClimbing(f *diagnose.Flow, o *diagnose.Outcome) *diagnose.Outcome {
	o.At(measure.Where{Place: measure.AtTool}).Mend(diagnose.Advise(nil, "measure for longer (-t 60), and leave more of the beginning out (-O)"))
	x := f.Experiment(diagnose.Longer)
	switch {
	case x == nil:
	case f.Against(x).Times < diagnose.GainBar:
		return diagnose.No("a longer run reaches %s, no more", unit.Rate(diagnose.RateOf(x)))
	default:
		o.Confidence = measure.Likely
		if rises(f, x) {
			o.Confidence = measure.Certain
		}
		o.By(f.Receiver.Proof("goodput of a longer run", diagnose.RateOf(x), "bps")).Costs(0, "a longer run reaches "+unit.Rate(diagnose.RateOf(x)), "the same traffic for longer")
	}
	return o
}

// rises tells whether a longer run carries clearly more after the time of this one than
// within it: what runs differ by is not in that.
func rises(f *diagnose.Flow, longer *measure.Cell) bool {
	bins, first := stat.Bins(f.FlowOf(diagnose.RunShown(longer)).Receiver), len(f.Bins())
	return first > 0 && len(bins) > first && diagnose.Mean(bins[first:]) >= riseBar*diagnose.Mean(bins[:first])
}

// stillClimbs tells of a sender that its congestion window holds, though
// nothing was lost and no queue, window or buffer is full: it is on its way up.
func stillClimbs(f *diagnose.Flow) bool {
	flight, ok1 := f.InFlight()
	cwnd, ok2 := f.Cwnd()
	again, ok3 := f.AgainPct()
	held, _, ok4 := f.WindowHeld()
	_, _, ok5 := f.RTT()
	if !ok1 || !ok2 || !ok3 || !ok4 || !ok5 || diagnose.Paces(f.Congestion()) || f.Sender.Seen.Reported != "" {
		return false
	}
	course := cwnds(f)
	grows := len(course) > 1 && course[len(course)-1] >= slices.Max(course) && course[len(course)-1] > course[0]
	free := !f.HasQueue() && !f.Sender.IsFull() && !f.Receiver.IsFull() && !f.Receiver.IsBehind() && !f.LinkIsFull()
	return grows && flight > 0.85*cwnd && again < diagnose.AgainBar && held < diagnose.RwndClear && free && diagnose.SendBuffer(f).State != diagnose.Holds && f.Rate() > 0
}

// farBar is by how many times the last third exceeds the first, where the run
// began in slow start.
const farBar = 3

// rising is the share of the pairs of seconds of which the later one carries more.
func rising(bins []float64) float64 {
	bins = bins[:min(len(bins), 120)]
	up, all := 0, 0
	for i := range bins {
		for _, later := range bins[i+1:] {
			all++
			if later > bins[i] {
				up++
			}
		}
	}
	if all == 0 {
		return 0
	}
	return float64(up) / float64(all)
}

// cwndGrows tells whether the congestion window is greatest in the last
// seconds, and well above that of the first.
func cwndGrows(f *diagnose.Flow) (grows, known bool) {
	course := cwnds(f)
	if len(course) < stat.LeastBins {
		return false, false
	}
	end := course[len(course)-1]
	return end >= 0.9*slices.Max(course) && end > 1.2*course[0], true
}

// cwnds are the congestion windows of all streams together at the end of each
// second, in segments; none where one of them is not known.
func cwnds(f *diagnose.Flow) (course []float64) {
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
			course = append(course, sum)
		}
	}
	return course
}

// Bars of a noisy neighbour.
const (
	stolenBar = 5    // percent of the CPUs
	unevenBar = 10   // percent: median deviation of the seconds
	withSteal = -0.6 // correlation of the rate with the steal of the same second
)

// noisyNeighbour joins what the ends see of others with what their hosts do.
func noisyNeighbour(f *diagnose.Flow) *diagnose.Outcome {
	return below.Seconded(noiseSeen(f), below.Crowded(f))
}

// otherWork judges a host that is busy without the test: it holds the flow where
// the thread of the traffic waits for a CPU.
func otherWork(e *diagnose.End) *diagnose.Outcome {
	busy := stat.IdleBusy(e.Seen)
	o := diagnose.Possible("other work keeps %s of the CPUs of %s busy without the test", unit.Percent(busy), e.Name).At(e.Where()).
		By(diagnose.Above(e.Proof("CPUs without the test", busy, "pct"), stat.MostOtherWork)).
		Then("the same while " + e.Name + " has no other work").Mend(diagnose.Advise(e, "end the other work, or measure when it is done"))
	if t, ok := e.Threads(); ok && t.Wait > diagnose.SharedBar {
		o.Confidence = measure.Likely
		o.By(diagnose.Above(e.Proof("thread waiting for a CPU", t.Wait, "pct"), diagnose.SharedBar))
	}
	return o
}

func noiseSeen(f *diagnose.Flow) *diagnose.Outcome {
	if e := f.CrowdedEnd(); e != nil {
		if share, ok := f.CeilingShare(); ok && share >= stat.PassPct {
			return diagnose.No("the link is full all the same")
		}
		return otherWork(e)
	}
	flat, known := f.Flatness()
	if !known {
		return diagnose.Missing("three seconds of the course", "the run was too short")
	}
	switch {
	case flat < unevenBar && f.PacketsOnly(): // a steady neighbour does not vary
		return f.Receiver.Lacks("CPU time given to others (steal)")
	case flat < unevenBar:
		return diagnose.No("the seconds differ by %s", unit.Percent(flat))
	}
	var at *diagnose.End
	worst, seen := 0.0, false
	for _, e := range f.Ends() {
		pct, ok := stealPct(e)
		seen = seen || ok
		if ok && pct > worst {
			at, worst = e, pct
		}
	}
	switch {
	case !seen:
		return f.Receiver.Lacks("CPU time given to others (steal)")
	case worst < stolenBar:
		return diagnose.No("the hypervisor gave %s of the CPUs to others", unit.Percent(worst))
	}
	c, ok := stealTells(at, f.Bins())
	switch {
	case !ok:
		return diagnose.Missing("five seconds with the steal of each", "the run was too short to see whether the rate follows it")
	case c > withSteal:
		return diagnose.No("the rate does not follow the CPU time that others take")
	}
	return diagnose.Likely("others on the machine of %s take %s of its CPUs, and the rate varies with it", at.Name, unit.Percent(worst)).At(at.Where()).
		By(diagnose.Above(at.Proof("steal of all CPUs", worst, "pct"), stolenBar), diagnose.Above(f.Receiver.Proof("deviation of the seconds from their median", flat, "pct"), unevenBar),
			diagnose.Below(at.Proof("correlation of rate and steal, by the second", c, ""), withSteal)).
		Then("the same at another hour").Mend(diagnose.Advise(at, "reserve CPU for it, keep busy guests off its host, or measure at a quiet hour"))
}

// stealPct is the share of the CPUs that the end's threads may use which the
// hypervisor gave to others.
func stealPct(e *diagnose.End) (float64, bool) {
	if e.Seen == nil || e.Seen.Host == nil {
		return 0, false
	}
	return diagnose.StealOf(e.Own(e.Seen.Host.CPUs))
}

// stealTells is the correlation of the rates of the seconds with the steal in them.
func stealTells(e *diagnose.End, bins []float64) (float64, bool) {
	var steal []float64
	for _, s := range e.Seen.PerSec {
		pct, ok := diagnose.StealOf(e.Own(s.CPUs))
		if !ok {
			return 0, false
		}
		steal = append(steal, pct)
	}
	n := min(len(bins), len(steal))
	if n < stat.LeastBins {
		return 0, false
	}
	return correlation(bins[:n], steal[:n])
}

// correlation is Pearson's coefficient; false where one of the series does not vary.
func correlation(xs, ys []float64) (float64, bool) {
	mx, my := diagnose.Mean(xs), diagnose.Mean(ys)
	var xy, xx, yy float64
	for i := range xs {
		xy += (xs[i] - mx) * (ys[i] - my)
		xx += (xs[i] - mx) * (xs[i] - mx)
		yy += (ys[i] - my) * (ys[i] - my)
	}
	c := xy / math.Sqrt(xx*yy)
	return c, diagnose.IsNumber(c)
}
