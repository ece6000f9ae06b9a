package diagnose

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

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

// netQueue joins what an ESXi end says of itself with what a guest's host does.
func netQueue(e *end) *outcome {
	own := e.netQueueSeen()
	if e.guest() == nil || !e.onESXi() {
		return own
	}
	below := e.netQueueBelow()
	if own != nil && own.state == unknown { // the guest cannot know
		return below
	}
	return seconded(own, below)
}

// netQueueBelow judges the option of the guest's host, and by which queue of the
// uplink its packets came.
func (e *end) netQueueBelow() *outcome {
	if e.flow.staysInside() {
		return no("the data does not leave %s", e.bedName())
	}
	var facts *measure.Facts
	if h := e.bed(); h != nil {
		facts = h.Facts
	}
	value, told := setting(facts, "netNetqueueEnabled")
	zero, queues, at := e.queueZero()
	alone := queues > 1 && zero > 100*oneShare
	switch {
	case told && isOff(value):
		o := possible("NetQueue of %s is off", e.bedName()).by(measure.Proof{EndPoint: e.name, Counter: "kernel option netNetqueueEnabled of " + e.bedName(), Note: "its default is TRUE"})
		if alone || queues == 1 {
			o.by(e.zeroProof(at, zero))
		}
		return o.symptom(!e.sends() && e.flow.isAll() == nil && (alone || e.flow.fallsWithMore())).at(e.onBed(e.bedName())).mend(e.queuesOn())
	case alone && !e.sends():
		o := possible("all packets that %s receives come by queue 0 of %d", e.bedName(), queues).by(e.zeroProof(at, zero))
		if e.flow.isAll() != nil {
			o.beside()
		}
		return o.at(e.onBed(e.bedName())).then("the same with more guests: queues of their own carry more").mend(e.queuesOn())
	case told || tellsChanges(facts):
		return no("netNetqueueEnabled of %s has its default", e.bedName())
	case queues > 1:
		return no("queue 0 of %s takes %s of its packets", e.bedName(), unit.Percent(zero))
	}
	return missing("ESXi's kernel option netNetqueueEnabled", e.bedName()+" did not tell it")
}

// tellsChanges tells whether facts say which options are changed: one that is
// not among them has its default then. Parameters of drivers are there also
// where the options were not told.
func tellsChanges(f *measure.Facts) bool {
	return f != nil && !slices.ContainsFunc(f.NotChecked, func(m measure.NotChecked) bool { return m.Fact == "settings_changed" })
}

func (e *end) zeroProof(at gauge, zero float64) measure.Proof {
	return above(at.tells(e.name, zero, "pct"), 100*oneShare)
}

// queueZero is the share of queue 0 in what the busiest uplink received, in
// percent, and how many queues it has.
func (e *end) queueZero() (pct float64, queues int, at gauge) {
	sums := map[string]float64{}
	count := map[string]int{}
	var zero = map[string]gauge{}
	for _, x := range e.ofBed(measure.CounterQueueRx).all {
		nic, queue, ok := strings.Cut(x.instance, ":")
		if !ok || !e.isUplink(nic) {
			continue
		}
		sums[nic] += x.mean
		count[nic]++
		if queue == queueZero {
			zero[nic] = x
		}
	}
	busiest := ""
	for nic, n := range sums {
		if n > sums[busiest] || n == sums[busiest] && nic < busiest {
			busiest = nic
		}
	}
	if sums[busiest] < fewPackets {
		return 0, 0, at
	}
	return share(zero[busiest].mean, sums[busiest]), count[busiest], zero[busiest]
}

// isUplink tells whether a NIC of the host may carry the guest's traffic.
func (e *end) isUplink(nic string) bool {
	all := e.uplinks()
	return len(all) == 0 || slices.Contains(all, nic)
}

// uplinks are the NICs of the host that may carry the guest's traffic: the one
// that is told, else all of its switch.
func (e *end) uplinks() (all []string) {
	for _, b := range e.below {
		if b.NIC != nil && b.NIC.Uplink != nil && *b.NIC.Uplink != "" {
			return []string{*b.NIC.Uplink}
		}
	}
	for _, b := range e.below {
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
func (f *flow) fallsWithMore() bool {
	return slices.ContainsFunc(sweeps(f.doc), func(s sweep) bool {
		last := s.groups[len(s.groups)-1].Aggregate
		most := s.groups[bestOf(s)].Aggregate
		return s.axis == "end_points" && last.Value < most.Value*(1-fallBar/100.0) && last.High < most.Low
	})
}

// queuesOn switches NetQueue on.
func (e *end) queuesOn() *measure.Remedy {
	return &measure.Remedy{EndPoint: e.bedName(), Platform: "esxi", Commands: []string{"esxcli system settings kernel set -s netNetqueueEnabled -v TRUE"},
		Advice: "and as many receive queues as the driver has", Risk: "it takes a reboot of the host"}
}

// crowded judges what others than the test's guests take of the host's CPUs, or
// of the uplink.
func (f *flow) crowded() *outcome {
	var all []*outcome
	known, asked := false, false
	var unknownWhy *outcome
	for _, e := range f.ends() {
		if e.guest() == nil {
			unknownWhy = cmp.Or(unknownWhy, e.unplaced("load of the host that it is on"))
			continue
		}
		asked = true
		o, ok := e.hostCrowded()
		up, okToo := e.uplinkCrowded()
		known = known || ok || okToo
		all = append(all, o, up)
	}
	switch o := best(all...); {
	case o != nil:
		return o
	case known:
		return no("others than the test's guests fill neither the CPUs of the hosts nor the uplinks")
	case asked:
		return missing("load of the hosts below", f.receiver.ofBed(measure.CounterUsage).why)
	}
	return unknownWhy
}

// ours are the guests of the document's end points that are on the end's host, each once.
func (e *end) ours() []*measure.Guest {
	var all []*measure.Guest
	h := e.bed()
	for _, x := range e.flow.doc.EndPoints {
		for _, b := range x.Placement.Beneath(e.flow.doc.Inventories) {
			if b.Guest != nil && h != nil && b.Guest.Host == h.ID && !slices.Contains(all, b.Guest) {
				all = append(all, b.Guest)
			}
		}
	}
	return all
}

// oursOf is the sum of a counter over our guests on the host; false where one of
// them does not tell.
func (e *end) oursOf(counter string) (sum float64, ok bool) {
	guests := e.ours()
	for _, g := range guests {
		x, known := e.read(counter, func(b *measure.Beneath) string {
			if b.Inventory.Guest(g.ID) != g {
				return ""
			}
			return g.ID
		}).whole()
		if !known {
			return 0, false
		}
		sum += x.mean
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
func (e *end) hostCrowded() (o *outcome, known bool) {
	load := e.ofBed(measure.CounterUsage)
	usage, ok := load.of("")
	ours, told := e.oursOf(measure.CounterUsed)
	if !ok || !told || cpusOf(load.below) <= 0 {
		return nil, false
	}
	others := max(0, usage.mean-ours/cpusOf(load.below))
	if usage.mean < hostFullBar || others < othersBar {
		return nil, true
	}
	o = possible("others fill the CPUs of %s: %s of them, of %s in all", e.bedName(), unit.Percent(others), unit.Percent(usage.mean)).
		by(above(usage.tells(e.name, usage.mean, "pct"), hostFullBar), above(measure.Proof{EndPoint: e.name, Counter: "CPUs of the host that others take", Value: others, Unit: "pct", SpanNs: usage.spanNs}, othersBar)).
		at(e.onBed(e.bedName())).mend(&measure.Remedy{EndPoint: e.bedName(), Advice: "move busy guests away from it, reserve CPU for " + e.guestName() + ", or measure at a quiet hour", Risk: "what is moved stands still for a moment; what is reserved is lost to others"})
	o.apart = []string{"cpu-limit", "cpu-steal"} // it is rather their root
	wait := e.waitsBelow()
	switch {
	case e.flow.isAll() != nil:
		o.beside()
	case wait != nil && wait.state == holds:
		o.confidence = measure.Likely
	case wait != nil && wait.state == excluded: // the guest gets its CPUs all the same
		o.beside()
	}
	return o, true
}

// uplinkCrowded judges the uplink in the direction of the data; known tells
// whether it was seen.
func (e *end) uplinkCrowded() (o *outcome, known bool) {
	counter := measure.CounterRxBps
	if e.sends() {
		counter = measure.CounterTxBps
	}
	up := e.uplinks()
	if e.flow.staysInside() || len(up) != 1 || e.bed() == nil {
		return nil, false
	}
	face := e.bed().Facts.Interface(up[0])
	all, ok := e.ofBed(counter).of(up[0])
	ours, told := e.oursOf(counter)
	if !ok || !told || face == nil || speedOf(face) == 0 {
		return nil, false
	}
	speed := speedOf(face)
	others := max(0, all.mean-max(ours, e.flow.rate())) // the flow is ours, whatever a counter has of it
	if share(all.mean, speed) < uplinkBar || share(others, speed) < uplinkOther {
		return nil, true
	}
	o = likely("others fill the uplink %s of %s: %s of its %s", word(up[0]), e.bedName(), unit.Rate(others), unit.Rate(speed)).
		by(above(all.tells(e.name, share(all.mean, speed), "pct"), uplinkBar), above(measure.Proof{EndPoint: e.name, Counter: "share of the uplink that others take", Value: share(others, speed), Unit: "pct", SpanNs: all.spanNs}, uplinkOther)).
		at(e.onBed(e.bedName())).costs(max(0, speed-others), "they leave "+unit.Rate(max(0, speed-others)), "counters of the uplink").
		mend(&measure.Remedy{EndPoint: e.bedName(), Advice: "see which guests use it, give the test an uplink of its own, or measure at a quiet hour", Risk: "what is moved to another uplink stands still for a moment"})
	o.apart = []string{"cpu-limit", "cpu-steal"} // CPUs do not fill an uplink
	switch s, r := e.flow.sender.load(), e.flow.receiver.load(); {
	case e.flow.isAll() != nil:
		o.beside()
	case share(all.mean, speed) > workerFull && s.known && r.known && !s.isFull() && !r.isFull() && e.flow.shapedAt(e) == nil:
		o.confidence = measure.Certain
	}
	return o, true
}

// hostOffloads judges switches of ESXi that have its CPU do what a NIC or the
// switch could; nil where none is off.
func (e *end) hostOffloads() *outcome {
	h := e.bed()
	if h == nil || e.guest() == nil || !e.onESXi() {
		return nil
	}
	options := []string{"UseHwTSO", "UseHwTSO6"}
	if !e.sends() {
		options = []string{"Vmxnet3HwLRO", "Vmxnet3SwLRO"}
	}
	for _, name := range options {
		if v, ok := setting(h.Facts, name); ok && isOff(v) {
			return possible("an offload of %s is off: %s", e.bedName(), name).by(measure.Proof{EndPoint: e.name, Counter: "advanced setting " + name + " of " + e.bedName(), Note: "its default is 1"}).
				at(e.onBed(e.bedName())).beside().mend(&measure.Remedy{EndPoint: e.bedName(), Platform: "esxi", Commands: []string{fmt.Sprintf("esxcli system settings advanced set -o /Net/%s -i 1", name)},
				Risk: "it counts for every guest of the host"})
		}
	}
	return nil
}
