package below

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"thru/internal/cause/diagnose"
	"thru/internal/measure"
	"thru/internal/unit"
)

// setting is a setting of a host by the end of its name, as a command and a web
// service write it differently: "netNetqueueEnabled", "VMkernel.Boot.netNetqueueEnabled".
func setting(f *measure.Facts, name string) (string, bool) {
	if f == nil {
		return "", false
	}
	for _, all := range []map[string]string{f.Sysctls, f.Changed} {
		for _, key := range slices.Sorted(maps.Keys(all)) {
			if key == name || strings.HasSuffix(key, "."+name) || strings.HasSuffix(key, "/"+name) {
				return all[key], true
			}
		}
	}
	return "", false
}

// isOff reads a switch: "FALSE", "0", "false (default TRUE, configured FALSE)".
func isOff(value string) bool {
	first, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(value)), " ")
	return first == "false" || first == "0" || first == "no" || first == "off"
}

// NetQueue joins what an ESXi end says of itself with what a guest's host does.
func NetQueue(e *diagnose.End) *diagnose.Outcome {
	own := netQueueSeen(e)
	if e.Guest() == nil || !e.OnESXi() {
		return own
	}
	below := netQueueBelow(e)
	if own != nil && own.State == diagnose.Unknown { // the guest cannot know
		return below
	}
	return Seconded(own, below)
}

// netQueueBelow judges the option of the guest's host, and by which queue of the
// uplink its packets came.
func netQueueBelow(e *diagnose.End) *diagnose.Outcome {
	if staysInside(e.Flow) {
		return diagnose.No("the data does not leave %s", BedName(e))
	}
	var facts *measure.Facts
	if h := bed(e); h != nil {
		facts = h.Facts
	}
	value, told := setting(facts, "netNetqueueEnabled")
	zero, queues, at := queueZero(e)
	alone := queues > 1 && zero > 100*diagnose.OneShare
	switch {
	case told && isOff(value):
		o := diagnose.Possible("NetQueue of %s is off", BedName(e)).By(measure.Proof{EndPoint: e.Name, Counter: "kernel option netNetqueueEnabled of " + BedName(e), Note: "its default is TRUE"})
		if alone || queues == 1 {
			o.By(zeroProof(e, at, zero))
		}
		return Symptom(o, !e.Sends() && e.Flow.IsAll() == nil && (alone || fallsWithMore(e.Flow))).At(OnBed(e, BedName(e))).Mend(queuesOn(e))
	case alone && !e.Sends():
		o := diagnose.Possible("all packets that %s receives come by queue 0 of %d", BedName(e), queues).By(zeroProof(e, at, zero))
		if e.Flow.IsAll() != nil {
			o.Beside()
		}
		return o.At(OnBed(e, BedName(e))).Then("the same with more guests: queues of their own carry more").Mend(queuesOn(e))
	case told || tellsChanges(facts):
		return diagnose.No("netNetqueueEnabled of %s has its default", BedName(e))
	case queues > 1:
		return diagnose.No("queue 0 of %s takes %s of its packets", BedName(e), unit.Percent(zero))
	}
	return diagnose.Missing("ESXi's kernel option netNetqueueEnabled", BedName(e)+" did not tell it")
}

// tellsChanges tells whether facts say which options are changed: one that is
// not among them has its default then. Parameters of drivers are there also
// where the options were not told.
func tellsChanges(f *measure.Facts) bool {
	return f != nil && !slices.ContainsFunc(f.NotChecked, func(m measure.NotChecked) bool { return m.Fact == "settings_changed" })
}

func zeroProof(e *diagnose.End, at diagnose.Gauge, zero float64) measure.Proof {
	return diagnose.Above(Tells(at, e.Name, zero, "pct"), 100*diagnose.OneShare)
}

// queueZero is the share of queue 0 in what the busiest uplink received, in
// percent, and how many queues it has.
func queueZero(e *diagnose.End) (pct float64, queues int, at diagnose.Gauge) {
	sums := map[string]float64{}
	count := map[string]int{}
	var zero = map[string]diagnose.Gauge{}
	for _, x := range ofBed(e, measure.CounterQueueRx).All {
		nic, queue, ok := strings.Cut(x.Instance, ":")
		if !ok || !isUplink(e, nic) {
			continue
		}
		sums[nic] += x.Mean
		count[nic]++
		if queue == queueZeroCause {
			zero[nic] = x
		}
	}
	busiest := ""
	for nic, n := range sums {
		if n > sums[busiest] || n == sums[busiest] && nic < busiest {
			busiest = nic
		}
	}
	if sums[busiest] < diagnose.FewPackets {
		return 0, 0, at
	}
	return diagnose.Share(zero[busiest].Mean, sums[busiest]), count[busiest], zero[busiest]
}

// isUplink tells whether a NIC of the host may carry the guest's traffic.
func isUplink(e *diagnose.End, nic string) bool {
	all := uplinks(e)
	return len(all) == 0 || slices.Contains(all, nic)
}

// uplinks are the NICs of the host that may carry the guest's traffic: the one
// that is told, else all of its switch.
func uplinks(e *diagnose.End) (all []string) {
	for _, b := range e.Below {
		if b.NIC != nil && b.NIC.Uplink != nil && *b.NIC.Uplink != "" {
			return []string{*b.NIC.Uplink}
		}
	}
	for _, b := range e.Below {
		if b.Switch == nil || b.Host == nil {
			continue
		}
		for _, u := range b.Switch.Uplinks {
			if (u.Host == "" || u.Host == b.Host.ID) && !slices.Contains(all, u.NIC) {
				all = append(all, u.NIC)
			}
		}
		return all
	}
	return nil
}

// fallsWithMore tells of a plan whose aggregate falls as end points are added.
func fallsWithMore(f *diagnose.Flow) bool {
	return slices.ContainsFunc(diagnose.Sweeps(f.Doc), func(s diagnose.Sweep) bool {
		last := s.Groups[len(s.Groups)-1].Aggregate
		most := s.Groups[diagnose.BestOf(s)].Aggregate
		return s.Axis == "end_points" && last.Value < most.Value*(1-diagnose.FallBar/100.0) && last.High < most.Low
	})
}

// queuesOn switches NetQueue on.
func queuesOn(e *diagnose.End) *measure.Remedy {
	return &measure.Remedy{EndPoint: BedName(e), Platform: "esxi", Commands: []string{"esxcli system settings kernel set -s netNetqueueEnabled -v TRUE"},
		Advice: "and as many receive queues as the driver has", Risk: "it takes a reboot of the host"}
}

// Crowded judges what others than the test's guests take of the host's CPUs, or
// of the uplink.
func Crowded(f *diagnose.Flow) *diagnose.Outcome {
	var all []*diagnose.Outcome
	known, asked := false, false
	var unknownWhy *diagnose.Outcome
	for _, e := range f.Ends() {
		if e.Guest() == nil {
			unknownWhy = cmp.Or(unknownWhy, Unplaced(e, "load of the host that it is on"))
			continue
		}
		asked = true
		o, ok := hostCrowded(e)
		up, okToo := uplinkCrowded(e)
		known = known || ok || okToo
		all = append(all, o, up)
	}
	switch o := Best(all...); {
	case o != nil:
		return o
	case known:
		return diagnose.No("others than the test's guests fill neither the CPUs of the hosts nor the uplinks")
	case asked:
		return diagnose.Missing("load of the hosts below", ofBed(f.Receiver, measure.CounterUsage).Why)
	}
	return unknownWhy
}

// ours are the guests of the document's end points that are on the end's host, each once.
func ours(e *diagnose.End) []*measure.Guest {
	var all []*measure.Guest
	h := bed(e)
	for _, x := range e.Flow.Doc.EndPoints {
		for _, b := range x.Placement.Beneath(e.Flow.Doc.Inventories) {
			if b.Guest != nil && h != nil && b.Guest.Host == h.ID && !slices.Contains(all, b.Guest) {
				all = append(all, b.Guest)
			}
		}
	}
	return all
}

// oursOf is the sum of a counter over our guests on the host; false where one of
// them does not tell.
func oursOf(e *diagnose.End, counter string) (sum float64, ok bool) {
	guests := ours(e)
	for _, g := range guests {
		x, known := e.Read(counter, func(b *measure.Beneath) string {
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

// cpusOf are how many CPUs the load of a host is a share of: of KVM what Linux
// schedules; of ESXi its cores, since it charges two threads of one core for the
// time of about one. 0: not known.
func cpusOf(b *measure.Beneath) float64 {
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

// hostCrowded judges the CPUs of the host; known tells whether they were seen.
func hostCrowded(e *diagnose.End) (o *diagnose.Outcome, known bool) {
	load := ofBed(e, measure.CounterUsage)
	usage, ok := load.Of("")
	ours, told := oursOf(e, measure.CounterUsed)
	if !ok || !told || cpusOf(load.Below) <= 0 {
		return nil, false
	}
	others := max(0, usage.Mean-ours/cpusOf(load.Below))
	if usage.Mean < hostFullBar || others < othersBar {
		return nil, true
	}
	o = diagnose.Possible("others fill the CPUs of %s: %s of them, of %s in all", BedName(e), unit.Percent(others), unit.Percent(usage.Mean)).
		By(diagnose.Above(Tells(usage, e.Name, usage.Mean, "pct"), hostFullBar), diagnose.Above(measure.Proof{EndPoint: e.Name, Counter: "CPUs of the host that others take", Value: others, Unit: "pct", SpanNs: usage.SpanNs}, othersBar)).
		At(OnBed(e, BedName(e))).Mend(&measure.Remedy{EndPoint: BedName(e), Advice: "move busy guests away from it, reserve CPU for " + GuestName(e) + ", or measure at a quiet hour", Risk: "what is moved stands still for a moment; what is reserved is lost to others"})
	o.Apart = []string{"cpu-limit", "cpu-steal"} // it is rather their root
	wait := WaitsBelow(e)
	switch {
	case e.Flow.IsAll() != nil:
		o.Beside()
	case wait != nil && wait.State == diagnose.Holds:
		o.Confidence = measure.Likely
	case wait != nil && wait.State == diagnose.Excluded: // the guest gets its CPUs all the same
		o.Beside()
	}
	return o, true
}

// uplinkCrowded judges the uplink in the direction of the data; known tells
// whether it was seen.
func uplinkCrowded(e *diagnose.End) (o *diagnose.Outcome, known bool) {
	counter := measure.CounterRxBps
	if e.Sends() {
		counter = measure.CounterTxBps
	}
	up := uplinks(e)
	if staysInside(e.Flow) || len(up) != 1 || bed(e) == nil {
		return nil, false
	}
	face := bed(e).Facts.Interface(up[0])
	all, ok := ofBed(e, counter).Of(up[0])
	ours, told := oursOf(e, counter)
	if !ok || !told || face == nil || diagnose.SpeedOf(face) == 0 {
		return nil, false
	}
	speed := diagnose.SpeedOf(face)
	others := max(0, all.Mean-max(ours, e.Flow.Rate())) // the flow is ours, whatever a counter has of it
	if diagnose.Share(all.Mean, speed) < uplinkBar || diagnose.Share(others, speed) < uplinkOther {
		return nil, true
	}
	o = diagnose.Likely("others fill the uplink %s of %s: %s of its %s", diagnose.Word(up[0]), BedName(e), unit.Rate(others), unit.Rate(speed)).
		By(diagnose.Above(Tells(all, e.Name, diagnose.Share(all.Mean, speed), "pct"), uplinkBar), diagnose.Above(measure.Proof{EndPoint: e.Name, Counter: "share of the uplink that others take", Value: diagnose.Share(others, speed), Unit: "pct", SpanNs: all.SpanNs}, uplinkOther)).
		At(OnBed(e, BedName(e))).Costs(max(0, speed-others), "they leave "+unit.Rate(max(0, speed-others)), "counters of the uplink").
		Mend(&measure.Remedy{EndPoint: BedName(e), Advice: "see which guests use it, give the test an uplink of its own, or measure at a quiet hour", Risk: "what is moved to another uplink stands still for a moment"})
	o.Apart = []string{"cpu-limit", "cpu-steal"} // CPUs do not fill an uplink
	switch s, r := e.Flow.Sender.Load(), e.Flow.Receiver.Load(); {
	case e.Flow.IsAll() != nil:
		o.Beside()
	case diagnose.Share(all.Mean, speed) > workerFull && s.Known && r.Known && !s.IsFull() && !r.IsFull() && ShapedAt(e.Flow, e) == nil:
		o.Confidence = measure.Certain
	}
	return o, true
}

// HostOffloads judges switches of ESXi that have its CPU do what a NIC or the
// switch could; nil where none is off.
func HostOffloads(e *diagnose.End) *diagnose.Outcome {
	h := bed(e)
	if h == nil || e.Guest() == nil || !e.OnESXi() {
		return nil
	}
	options := []string{"UseHwTSO", "UseHwTSO6"}
	if !e.Sends() {
		options = []string{"Vmxnet3HwLRO", "Vmxnet3SwLRO"}
	}
	for _, name := range options {
		if v, ok := setting(h.Facts, name); ok && isOff(v) {
			return diagnose.Possible("an offload of %s is off: %s", BedName(e), name).By(measure.Proof{EndPoint: e.Name, Counter: "advanced setting " + name + " of " + BedName(e), Note: "its default is 1"}).
				At(OnBed(e, BedName(e))).Beside().Mend(&measure.Remedy{EndPoint: BedName(e), Platform: "esxi", Commands: []string{fmt.Sprintf("esxcli system settings advanced set -o /Net/%s -i 1", name)},
				Risk: "it counts for every guest of the host"})
		}
	}
	return nil
}
