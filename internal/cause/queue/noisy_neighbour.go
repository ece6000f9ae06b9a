package queue

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"thru/internal/cause/cpu"
	"thru/internal/cause/diagnose"
	"thru/internal/cause/gate"
	"thru/internal/cause/hypervisor"
	"thru/internal/cause/rule"
	"thru/internal/cause/scene"
	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// NoisyNeighbour is the cause `noisy-neighbour`.
func NoisyNeighbour() rule.Cause {
	return rule.Cause{
		Rule: diagnose.Rule{
			Cause: "noisy-neighbour", TCP: true, UDP: true, Title: "other load shares the machine or link", Judge: judgeNoisyNeighbour,
			Seen:        "the rate varies from second to second with steal time; in the hypervisor's counters: guests outside the test take half of a host's CPUs while 90% are busy, or a fifth of an uplink that is 90% full",
			Distinction: "the same test at another hour; a guest that still gets its CPU time loses nothing", Fix: "set anti-affinity or a reservation, or measure at a quiet hour", Effect: "figures that change from run to run",
			Source: "proc(5), /proc/stat, steal; cpu.usage and net.received, net.transmitted of an ESXi host",
		},
		Gates: []gate.Rule{
			{ID: "link-load", Words: "traffic", Title: "Other traffic on the link", About: "traffic on the interface while no test runs",
				Warns:  "more than 5% of the link speed, or 50 Mb/s where the speed is nominal (veth, virtio)",
				Why:    "other traffic lowers the result, by a different amount in each run",
				Source: "thru's own threshold", Fix: "stop the other traffic, or measure when the link is quiet", Checklist: []string{"C-33"}, Face: gateLinkLoad},
			{ID: "rtt-spread", Words: "jitter latency rtt ping delay", Title: "Round trip of the idle path", About: "the distribution of the round trips of small messages, socket to socket",
				Warns:  "with 20 samples or more: the 90th percentile is three times the median and 3 ms above it, or the 99th is three times the median and 10 ms above it",
				Why:    "a path that queues or sleeps while idle gives results that change from run to run",
				Source: "thru's own threshold; RFC 6349, 3.3.1 measures the RTT first (C-15)", Fix: "look for other traffic, Wi-Fi, a busy host or power saving",
				Checklist: []string{"C-15"}, Path: gateRTTSpread},
			{ID: "cpu-load", Title: "Other CPU load", About: "CPU load of the host while no test runs",
				Warns:  "above 20% of the machine, or 80% of one CPU",
				Why:    "the test does not get the CPU time that others use, and that changes from run to run",
				Source: "thru's own threshold", Fix: "find the program that uses the CPU, and measure when the host is quiet", Checklist: []string{"C-29", "C-33"}, Host: gateCPULoad},
		},
	}
}

// judgeNoisyNeighbour joins what the ends see of other workloads with what their hosts report.
func judgeNoisyNeighbour(f *diagnose.Flow) *diagnose.Outcome {
	return hypervisor.Seconded(noiseSeen(f), Crowded(f))
}

func noiseSeen(f *diagnose.Flow) *diagnose.Outcome {
	if e := f.CrowdedEnd(); e != nil {
		if share, ok := f.CeilingShare(); ok && share >= stat.PassPct {
			return diagnose.No("the link is full nevertheless")
		}
		return otherWork(e)
	}
	flat, known := f.Flatness()
	if !known {
		return diagnose.Missing("a time line of 3 s or more", "the run was too short")
	}
	switch {
	case flat < unevenBar && f.PacketsOnly(): // a steady neighbour does not vary
		return f.Receiver.Lacks("CPU time given to others (steal)")
	case flat < unevenBar:
		return diagnose.No("the rate varies by only %s from second to second", unit.Percent(flat))
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
		return diagnose.No("steal time is only %s of the CPUs", unit.Percent(worst))
	}
	c, ok := stealCorrelation(at, f.Bins())
	switch {
	case !ok:
		return diagnose.Missing("steal time of 5 s or more, second by second", "the run was too short to see whether the rate follows it")
	case c > withSteal:
		return diagnose.No("the rate does not follow steal time")
	}
	return diagnose.Likely("other guests on the machine of %s take %s of its CPUs, and the rate varies with that", at.Name, unit.Percent(worst)).At(at.Where()).
		By(diagnose.Above(at.Proof("steal of all CPUs", worst, "pct"), stolenBar), diagnose.Above(f.Receiver.Proof("deviation of the rate from its median, by the second", flat, "pct"), unevenBar),
			diagnose.UnderBar(at.Proof("correlation of rate and steal, by the second", c, ""), withSteal)).
		Then("the same test at another hour").AddFix(diagnose.Advise(at, "reserve CPU for it, keep busy guests off its host, or measure at a quiet hour"))
}

// otherWork judges a host that is busy without the test: it limits the flow if the traffic's thread waits for a
// CPU.
func otherWork(e *diagnose.End) *diagnose.Outcome {
	busy := stat.IdleBusy(e.Seen)
	o := diagnose.Possible("other work keeps %s of the CPUs of %s busy without the test", unit.Percent(busy), e.Name).At(e.Where()).
		By(diagnose.Above(e.Proof("CPUs without the test", busy, "pct"), stat.MostOtherWork)).
		Then("the same test while " + e.Name + " has no other work").AddFix(diagnose.Advise(e, "stop the other work, or measure when it is done"))
	if t, ok := e.Threads(); ok && t.Wait > diagnose.SharedBar {
		o.Confidence = measure.Likely
		o.By(diagnose.Above(e.Proof("thread waiting for a CPU", t.Wait, "pct"), diagnose.SharedBar))
	}
	return o
}

// Thresholds of a noisy neighbour.
const (
	stolenBar = 5    // percent of the CPUs
	unevenBar = 10   // percent: median deviation of the seconds
	withSteal = -0.6 // correlation of the rate with the steal of the same second
)

// stealCorrelation returns the correlation of the seconds' rates with their steal time.
func stealCorrelation(e *diagnose.End, bins []float64) (float64, bool) {
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
	return stat.Correlation(bins[:n], steal[:n])
}

// Crowded judges how much of the host's CPUs, or of the uplink, is used by others than the test's guests.
func Crowded(f *diagnose.Flow) *diagnose.Outcome {
	var all []*diagnose.Outcome
	known, asked := false, false
	var unknownWhy *diagnose.Outcome
	for _, e := range f.Ends() {
		if e.Guest() == nil {
			unknownWhy = cmp.Or(unknownWhy, hypervisor.NoPlacement(e, "load of the host that it is on"))
			continue
		}
		asked = true
		o, ok := hostCrowded(e)
		up, okToo := uplinkCrowded(e)
		known = known || ok || okToo
		all = append(all, o, up)
	}
	switch o := hypervisor.Best(all...); {
	case o != nil:
		return o
	case known:
		return diagnose.No("guests outside the test fill neither the CPUs of the hosts nor the uplinks")
	case asked:
		return diagnose.Missing("load of the hypervisor hosts", hypervisor.HostCounter(f.Receiver, measure.CounterUsage).Why)
	}
	return unknownWhy
}

// hostCrowded judges the CPUs of the host; known reports whether they were read.
func hostCrowded(e *diagnose.End) (o *diagnose.Outcome, known bool) {
	load := hypervisor.HostCounter(e, measure.CounterUsage)
	usage, ok := load.Of("")
	ours, reported := oursOf(e, measure.CounterUsed)
	if !ok || !reported || cpusOf(load.Placement) <= 0 {
		return nil, false
	}
	others := max(0, usage.Mean-ours/cpusOf(load.Placement))
	if usage.Mean < hostFullBar || others < othersBar {
		return nil, true
	}
	o = diagnose.Possible("other guests fill the CPUs of %s: they take %s, of %s in use", hypervisor.HostName(e), unit.Percent(others), unit.Percent(usage.Mean)).
		By(diagnose.Above(hypervisor.GaugeEvidence(usage, e.Name, usage.Mean, "pct"), hostFullBar), diagnose.Above(measure.Proof{EndPoint: e.Name, Counter: "CPUs of the host that others take", Value: others, Unit: "pct", SpanNs: usage.SpanNs}, othersBar)).
		At(hypervisor.AtHost(e, hypervisor.HostName(e))).AddFix(&measure.Fix{EndPoint: hypervisor.HostName(e), Advice: "move busy guests away from it, reserve CPU for " + hypervisor.GuestName(e) + ", or measure at a quiet hour", Risk: "a guest that is moved stops for a moment; other guests lose the CPU time that is reserved"})
	o.RuledOutEffects = []string{"cpu-limit", "cpu-steal"} // more likely their root
	wait := cpu.HypervisorWaits(e)
	switch {
	case e.Flow.IsAll() != nil:
		o.MarkNotBinding()
	case wait != nil && wait.State == diagnose.Holds:
		o.Confidence = measure.Likely
	case wait != nil && wait.State == diagnose.Excluded: // the guest gets its CPUs nevertheless
		o.MarkNotBinding()
	}
	return o, true
}

// ours returns the guests among the document's end points that are on the end's host, each once.
func ours(e *diagnose.End) []*measure.Guest {
	var all []*measure.Guest
	h := hypervisor.HypervisorHost(e)
	for _, x := range e.Flow.Doc.EndPoints {
		for _, b := range x.Placement.HostPlacement(e.Flow.Doc.Inventories) {
			if b.Guest != nil && h != nil && b.Guest.Host == h.ID && !slices.Contains(all, b.Guest) {
				all = append(all, b.Guest)
			}
		}
	}
	return all
}

// oursOf returns the sum of a counter over our guests on the host; false if one of them lacks it.
func oursOf(e *diagnose.End, counter string) (sum float64, ok bool) {
	guests := ours(e)
	for _, g := range guests {
		x, known := e.Read(counter, func(b *measure.HostPlacement) string {
			if b.Inventory.Guest(g.ID) != g {
				return ""
			}
			return g.ID
		}).Whole()
		if !known {
			return 0, false
		}
		sum += x.Mean
	}
	return sum, len(guests) > 0
}

// cpusOf returns the number of CPUs to which the load of a host refers: for KVM those that Linux schedules; for
// ESXi its cores, since it charges two threads of one core for the time of about one. 0: not known.
func cpusOf(b *measure.HostPlacement) float64 {
	h := b.Host
	switch {
	case h == nil || h.Facts == nil:
		return 0
	case b.Kind() != measure.KindKVM && h.Facts.CPU != nil && h.Facts.CPU.Cores != nil:
		return float64(*h.Facts.CPU.Cores)
	case h.Facts.Cores != nil:
		return float64(*h.Facts.Cores)
	}
	return 0
}

// Thresholds of a hypervisor's host and uplink, in percent.
const (
	hostFullBar = 90 // of the CPUs of a host
	othersBar   = 50 // of the CPUs of a host: from here others than our guests fill it
	uplinkBar   = 90 // of an uplink's speed
	uplinkOther = 20 // of it: from here others fill it
)

// uplinkCrowded judges the uplink in the data direction; known reports whether it was read.
func uplinkCrowded(e *diagnose.End) (o *diagnose.Outcome, known bool) {
	counter := measure.CounterRxBps
	if e.Sends() {
		counter = measure.CounterTxBps
	}
	up := hypervisor.Uplinks(e)
	if hypervisor.StaysInside(e.Flow) || len(up) != 1 || hypervisor.HypervisorHost(e) == nil {
		return nil, false
	}
	face := hypervisor.HypervisorHost(e).Facts.Interface(up[0])
	all, ok := hypervisor.HostCounter(e, counter).Of(up[0])
	ours, reported := oursOf(e, counter)
	if !ok || !reported || face == nil || diagnose.SpeedOf(face) == 0 {
		return nil, false
	}
	speed := diagnose.SpeedOf(face)
	others := max(0, all.Mean-max(ours, e.Flow.Rate())) // the flow is ours, even if a counter has less
	if stat.Pct(all.Mean, speed) < uplinkBar || stat.Pct(others, speed) < uplinkOther {
		return nil, true
	}
	o = diagnose.Likely("other traffic fills the uplink %s of %s: %s of its %s", diagnose.Word(up[0]), hypervisor.HostName(e), unit.Rate(others), unit.Rate(speed)).
		By(diagnose.Above(hypervisor.GaugeEvidence(all, e.Name, stat.Pct(all.Mean, speed), "pct"), uplinkBar), diagnose.Above(measure.Proof{EndPoint: e.Name, Counter: "share of the uplink that others take", Value: stat.Pct(others, speed), Unit: "pct", SpanNs: all.SpanNs}, uplinkOther)).
		At(hypervisor.AtHost(e, hypervisor.HostName(e))).Costs(max(0, speed-others), "other traffic leaves "+unit.Rate(max(0, speed-others)), "counters of the uplink").
		AddFix(&measure.Fix{EndPoint: hypervisor.HostName(e), Advice: "find the guests that use it, give the test an uplink of its own, or measure at a quiet hour", Risk: "traffic that moves to another uplink stops for a moment"})
	o.RuledOutEffects = []string{"cpu-limit", "cpu-steal"} // CPUs do not fill an uplink
	switch s, r := e.Flow.Sender.Load(), e.Flow.Receiver.Load(); {
	case e.Flow.IsAll() != nil:
		o.MarkNotBinding()
	case stat.Pct(all.Mean, speed) > hypervisor.WorkerFull && s.Known && r.Known && !s.IsFull() && !r.IsFull() && hypervisor.ShapedAt(e.Flow, e) == nil:
		o.Confidence = measure.Certain
	}
	return o, true
}

func gateLinkLoad(f *scene.Face) *gate.Finding {
	l := f.Host.Load
	if l == nil || scene.IsLoopback(f.Interface) || f.Below {
		return nil // the gate of the CPU load reports that it was not read
	}
	at := slices.IndexFunc(l.Interfaces, func(i measure.InterfaceLoad) bool { return i.Name == f.Name })
	if why := scene.Reason(f.Host.NotChecked, "load.interfaces"); at < 0 && why != scene.NotRead {
		return gate.NotChecked("other traffic of "+f.Name, why)
	}
	if at < 0 {
		return gate.Pass("%s carried no other traffic for %s", f.Name, gate.Span(l.SpanNs))
	}
	busy, direction := l.Interfaces[at].RxBps, "in"
	if out := l.Interfaces[at].TxBps; out > busy {
		busy, direction = out, "out"
	}
	bound, of := 50e6, "; the link speed is not known"
	if f.Speed() > 0 {
		bound, of = 0.05*float64(f.Speed()), ", of "+gate.Rate(f.Speed())
	}
	if busy > bound {
		return gate.Warn("%s carries %s of other traffic %s%s", f.Name, gate.Rate(busy), direction, of).Do(LookAtTraffic(f.Host))
	}
	return gate.Pass("%s carries %s of other traffic %s", f.Name, gate.Rate(busy), direction)
}

// LookAtTraffic names the commands that show who uses the network.
func LookAtTraffic(h *scene.Host) scene.Fix {
	return scene.Advise("stop the other traffic, or measure when the link is quiet; list connections with `" + cmp.Or(map[string]string{
		"linux": "ss -tunp", "freebsd": "sockstat -c", "darwin": "nettop -m tcp", "windows": "Get-NetTCPConnection -State Established",
		"solaris": "netstat -nu", "illumos": "netstat -nu", "esxi": "esxcli network ip connection list",
	}[h.System], "netstat -n") + "`")
}

func gateRTTSpread(sc *scene.Scene) *gate.Finding {
	r := sc.Subject.Path.RTT
	if r == nil || r.P50 <= 0 {
		return gate.Missing(sc, "round trip of the idle path", "rtt_idle")
	}
	switch {
	case r.Samples < 20:
	case r.P90 > 3*r.P50 && r.P90-r.P50 > 3e6:
		return gate.Warn("median %s, but 1 of 10 takes more than %s (%d round trips)", gate.Span(r.P50), gate.Span(r.P90), r.Samples)
	case r.P99 > 3*r.P50 && r.P99-r.P50 > 10e6:
		return gate.Warn("median %s, but 1 of 100 takes more than %s (%d round trips)", gate.Span(r.P50), gate.Span(r.P99), r.Samples)
	}
	return gate.Pass("median %s, 99 of 100 within %s", gate.Span(r.P50), gate.Span(r.P99))
}

func gateCPULoad(h *scene.Host) *gate.Finding {
	l := h.Load
	if l == nil || l.CPUPct == nil {
		return gate.Missing(h, "CPU load", "load.cpu_pct")
	}
	busiest := math.NaN()
	if l.BusiestPct != nil {
		busiest = *l.BusiestPct
	}
	fix := lookAtBusiest(h)
	switch {
	case *l.CPUPct > 20:
		return gate.Warn("%s of the CPUs are busy%s", gate.Percent(*l.CPUPct), busiestProcess(h)).Do(fix)
	case busiest > 80:
		return gate.Warn("one CPU is %s busy%s", gate.Percent(busiest), busiestProcess(h)).Do(fix)
	}
	return gate.Pass("%s of the CPUs are busy", gate.Percent(*l.CPUPct))
}

// lookAtBusiest is the fix for a busy process, which may be the host's purpose.
func lookAtBusiest(h *scene.Host) scene.Fix {
	top := h.Load.Top
	if len(top) == 0 || top[0].PID <= 0 || !(top[0].CPUPct >= muchOfCPU) {
		return scene.Fix{}
	}
	name := ""
	if scene.Plain(top[0].Name, "") {
		name = " (" + top[0].Name + ")"
	}
	return scene.Advise(fmt.Sprintf("check process %d%s; measure when it is idle or has ended", top[0].PID, name))
}

// muchOfCPU is the percentage of one CPU from which a process counts as the reason of a load.
const muchOfCPU = 20

// busiestProcess names the busiest process, and says if none explains the load: package host lists those above 5%
// of a CPU.
func busiestProcess(h *scene.Host) string {
	l := h.Load
	switch {
	case len(l.Top) == 0 && scene.Reason(h.NotChecked, "load.processes") != scene.NotRead:
		return ""
	case len(l.Top) == 0:
		return "; no process takes more than 5% of one CPU"
	}
	p, most := l.Top[0], ", most by"
	if !(p.CPUPct >= muchOfCPU) {
		most = "; the busiest process is"
	}
	return fmt.Sprintf("%s %.40s (process %d, %s of one CPU)", most, p.Name, p.PID, gate.Percent(p.CPUPct))
}
