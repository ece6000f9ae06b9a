package diagnose

import (
	"math"
	"slices"
	"strings"

	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// timeRules are the causes of rates that change in time.
func timeRules() []Rule {
	return []Rule{
		{
			Cause: "token-bucket", TCP: true, UDP: true, Unseen: hostPackets, Title: "a burst is allowed, then less", judge: tokenBucket,
			Seen:  "the rate has two levels, the higher one first; or a cloud's counters of exceeded allowances rose",
			Apart: "other traffic that joins makes the same two levels: only a bucket gives as many bytes again before the step of another run (certain)",
			Mends: "a larger instance or a higher rate; report both levels", Effect: "the lower level is what lasts",
			Source: "ENA driver, bw_in_allowance_exceeded; methods.md, change-point test", Tests: []string{longer, rested}, Brings: []string{"shaper", "policer", "loss"},
		},
		{
			Cause: "slow-convergence", TCP: true, Title: "the rate still rises when the run ends", judge: slowConvergence,
			Seen:  "the last third carries 10% more than the first, the congestion window grows to the end, there is no plateau",
			Apart: "a longer run reaches more", Mends: "a longer run, a longer ramp left out (-O)", Effect: "the figure is too low, not the path",
			Source: "methods.md, steady state; RFC 9438, section 4", Tests: []string{longer},
		},
		{
			Cause: "noisy-neighbour", TCP: true, UDP: true, Title: "others use the same machine or link", judge: noisyNeighbour,
			Seen:  "the rate varies from second to second with the CPU time that the hypervisor gives to others; by the hypervisor: others than the test's guests take half of a host's CPUs while 90% are busy, or a fifth of an uplink that is 90% full",
			Apart: "the same at another hour; a guest that gets its CPUs all the same loses nothing", Mends: "anti-affinity, a reservation, a quiet hour", Effect: "figures that change from run to run",
			Source: "proc(5), /proc/stat, steal; cpu.usage and net.received, net.transmitted of an ESXi host",
		},
	}
}

// allowance is what a cloud's hypervisor counts at an end's interface as queued or
// dropped since the instance used more than it may: of the data's own way, and of
// packets a second. Those of tracked connections and of services nearby hold no flow.
func (e *end) allowance() (packets float64, name string) {
	n := e.nic()
	if n == nil {
		return 0, ""
	}
	way := "bw_in"
	if e.sends() {
		way = "bw_out"
	}
	return counted(n, []string{way + "_allowance_exceeded", "pps_allowance_exceeded"}, nil)
}

// overAllowance judges by these counters. Bursts of any flow of the instance are
// counted, so it is certain only of bits a second, where much of this flow was, and
// this flow was most of what passed.
func (f *flow) overAllowance() *outcome {
	const certainShare = 0.001
	for _, e := range f.ends() {
		over, name := e.allowance()
		if over <= 0 {
			continue
		}
		n := e.nic()
		o := likely("the instance of %s used more than its allowance", e.name).at(e.onFace()).by(above(e.proof(name, over, "packets"), 0)).
			mend(advise(e, "a larger instance, or one without bursts; report both levels"))
		bytes := n.RxBytes
		if e.sends() {
			bytes = n.TxBytes
		}
		mine := 2*float64(e.seen.Bytes) > float64(bytes)
		perSecond := strings.HasPrefix(name, "pps_")
		if length, known := e.meanPacket(); perSecond && known && 2*length < f.mss() { // small packets of others
			mine = false
		}
		again, _ := f.againPct()
		switch {
		case f.linkIsFull() || !f.hasQueue() && (again < againBar || !f.mayFollow()): // nothing of this flow was held up
			o.beside()
		case perSecond && !mine:
			o.confidence = measure.Possible
		case over >= certainShare*float64(n.TxPackets+n.RxPackets) && over >= fewEvents && !perSecond && mine:
			o.confidence = measure.Certain
		}
		return o
	}
	return nil
}

// spreadOf is the median deviation from the median in percent; 100 of nothing.
func spreadOf(bins []float64) float64 {
	median := stat.Median(bins)
	if len(bins) == 0 || median <= 0 {
		return 100
	}
	var off []float64
	for _, b := range bins {
		off = append(off, max(b-median, median-b))
	}
	return 100 * stat.Median(off) / median
}

// riseBar is how much more the last third of a run that still rises carries than the first.
const riseBar = 1.1

func slowConvergence(f *flow) *outcome {
	bins := f.bins()
	left, _ := f.allowed()
	switch {
	case f.isHeld():
		return no("a rate was asked for")
	case f.follows() && f.rate() < bindsBar*left:
		return no("the rate goes up and down with what is lost")
	case f.stillClimbs():
		return f.asClimbing(likely("the congestion window still grows when the run ends: nothing is lost, no queue and no window is full"))
	case len(bins) < stat.LeastBins:
		return missing("five seconds of the course", "the run was too short to see a trend")
	}
	third := len(bins) / 3
	first, last := mean(bins[:third]), mean(bins[len(bins)-third:])
	switch {
	case last < riseBar*first:
		return no("the last third carries %s, the first %s", unit.Rate(last), unit.Rate(first))
	case rising(bins) < 0.8:
		return no("the rate goes up and down")
	}
	if _, _, _, steps := stat.ChangePoint(bins); steps {
		return no("the rate has two levels, no slope")
	}
	o := possible("the rate still rises when the run ends: from %s to %s", unit.Rate(first), unit.Rate(last)).at(measure.Where{Place: measure.AtTool}).
		by(f.receiver.proof("goodput of the first third", first, "bps"), above(f.receiver.proof("goodput of the last third", last, "bps"), riseBar*first))
	if o := f.asClimbing(o); f.experiment(longer) != nil {
		return o
	}
	if grows, ok := f.cwndGrows(); ok || last > farBar*first {
		if !grows && last <= farBar*first { // an overshoot shrinks it once, and the rate rises all the same
			return no("the congestion window does not grow")
		}
		o.confidence = measure.Likely
	}
	return o
}

// asClimbing settles a rate that still rises by a longer run.
func (f *flow) asClimbing(o *outcome) *outcome {
	o.at(measure.Where{Place: measure.AtTool}).mend(advise(nil, "measure for longer (-t 60), and leave more of the beginning out (-O)"))
	x := f.experiment(longer)
	switch {
	case x == nil:
	case f.against(x).Times < gainBar:
		return no("a longer run reaches %s, no more", unit.Rate(rateOf(x)))
	default:
		o.confidence = measure.Likely
		if f.rises(x) {
			o.confidence = measure.Certain
		}
		o.by(f.receiver.proof("goodput of a longer run", rateOf(x), "bps")).costs(0, "a longer run reaches "+unit.Rate(rateOf(x)), "the same traffic for longer")
	}
	return o
}

// rises tells whether a longer run carries clearly more after the time of this one than
// within it: what runs differ by is not in that.
func (f *flow) rises(longer *measure.Cell) bool {
	bins, first := stat.Bins(f.flowOf(runShown(longer)).Receiver), len(f.bins())
	return first > 0 && len(bins) > first && mean(bins[first:]) >= riseBar*mean(bins[:first])
}

// stillClimbs tells of a sender that its congestion window holds, though
// nothing was lost and no queue, window or buffer is full: it is on its way up.
func (f *flow) stillClimbs() bool {
	flight, ok1 := f.inFlight()
	cwnd, ok2 := f.cwnd()
	again, ok3 := f.againPct()
	held, _, ok4 := f.windowHeld()
	_, _, ok5 := f.rtt()
	if !ok1 || !ok2 || !ok3 || !ok4 || !ok5 || paces(f.congestion()) || f.sender.seen.Reported != "" {
		return false
	}
	course := f.cwnds()
	grows := len(course) > 1 && course[len(course)-1] >= slices.Max(course) && course[len(course)-1] > course[0]
	free := !f.hasQueue() && !f.sender.isFull() && !f.receiver.isFull() && !f.receiver.isBehind() && !f.linkIsFull()
	return grows && flight > 0.85*cwnd && again < againBar && held < rwndClear && free && sendBuffer(f).state != holds && f.rate() > 0
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
func (f *flow) cwndGrows() (grows, known bool) {
	course := f.cwnds()
	if len(course) < stat.LeastBins {
		return false, false
	}
	end := course[len(course)-1]
	return end >= 0.9*slices.Max(course) && end > 1.2*course[0], true
}

// cwnds are the congestion windows of all streams together at the end of each
// second, in segments; none where one of them is not known.
func (f *flow) cwnds() (course []float64) {
	if f.sender.seen == nil {
		return nil
	}
	for _, b := range f.sender.seen.Bins {
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
func noisyNeighbour(f *flow) *outcome { return seconded(f.noiseSeen(), f.crowded()) }

// crowdedEnd is an end whose host other work kept busy without the test; nil where none was.
func (f *flow) crowdedEnd() *end {
	for _, e := range f.ends() {
		if stat.IdleBusy(e.seen) >= stat.MostOtherWork {
			return e
		}
	}
	return nil
}

// otherWork judges a host that is busy without the test: it holds the flow where
// the thread of the traffic waits for a CPU.
func (e *end) otherWork() *outcome {
	busy := stat.IdleBusy(e.seen)
	o := possible("other work keeps %s of the CPUs of %s busy without the test", unit.Percent(busy), e.name).at(e.where()).
		by(above(e.proof("CPUs without the test", busy, "pct"), stat.MostOtherWork)).
		then("the same while " + e.name + " has no other work").mend(advise(e, "end the other work, or measure when it is done"))
	if t, ok := e.threads(); ok && t.wait > sharedBar {
		o.confidence = measure.Likely
		o.by(above(e.proof("thread waiting for a CPU", t.wait, "pct"), sharedBar))
	}
	return o
}

func (f *flow) noiseSeen() *outcome {
	if e := f.crowdedEnd(); e != nil {
		return e.otherWork()
	}
	flat, known := f.flatness()
	if !known {
		return missing("three seconds of the course", "the run was too short")
	}
	switch {
	case flat < unevenBar && f.packetsOnly(): // a steady neighbour does not vary
		return f.receiver.lacks("CPU time given to others (steal)")
	case flat < unevenBar:
		return no("the seconds differ by %s", unit.Percent(flat))
	}
	var at *end
	worst, seen := 0.0, false
	for _, e := range f.ends() {
		pct, ok := e.stealPct()
		seen = seen || ok
		if ok && pct > worst {
			at, worst = e, pct
		}
	}
	switch {
	case !seen:
		return f.receiver.lacks("CPU time given to others (steal)")
	case worst < stolenBar:
		return no("the hypervisor gave %s of the CPUs to others", unit.Percent(worst))
	}
	c, ok := at.stealTells(f.bins())
	switch {
	case !ok:
		return missing("five seconds with the steal of each", "the run was too short to see whether the rate follows it")
	case c > withSteal:
		return no("the rate does not follow the CPU time that others take")
	}
	return likely("others on the machine of %s take %s of its CPUs, and the rate varies with it", at.name, unit.Percent(worst)).at(at.where()).
		by(above(at.proof("steal of all CPUs", worst, "pct"), stolenBar), above(f.receiver.proof("deviation of the seconds from their median", flat, "pct"), unevenBar),
			below(at.proof("correlation of rate and steal, by the second", c, ""), withSteal)).
		then("the same at another hour").mend(advise(at, "reserve CPU for it, keep busy guests off its host, or measure at a quiet hour"))
}

// stealPct is the share of the CPUs that the end's threads may use which the
// hypervisor gave to others.
func (e *end) stealPct() (float64, bool) {
	if e.seen == nil || e.seen.Host == nil {
		return 0, false
	}
	return stealOf(e.own(e.seen.Host.CPUs))
}

func stealOf(cpus []measure.CPU) (float64, bool) {
	if len(cpus) == 0 {
		return 0, false
	}
	sum := 0.0
	for _, c := range cpus {
		sum += max(0, min(100, c.Steal))
	}
	return sum / float64(len(cpus)), true
}

// stealTells is the correlation of the rates of the seconds with the steal in them.
func (e *end) stealTells(bins []float64) (float64, bool) {
	var steal []float64
	for _, s := range e.seen.PerSec {
		pct, ok := stealOf(e.own(s.CPUs))
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
	mx, my := mean(xs), mean(ys)
	var xy, xx, yy float64
	for i := range xs {
		xy += (xs[i] - mx) * (ys[i] - my)
		xx += (xs[i] - mx) * (xs[i] - mx)
		yy += (ys[i] - my) * (ys[i] - my)
	}
	c := xy / math.Sqrt(xx*yy)
	return c, isNumber(c)
}
