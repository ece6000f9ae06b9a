package diagnose

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"thru/internal/measure"
	"thru/internal/unit"
)

// Bars of a hypervisor's switch, in percent.
const (
	workerBar   = 90   // of one CPU: from here on a thread that moves packets is full
	workerFull  = 95   // from here on for certain
	rungBar     = 33.3 // of what the guest carries against itself: below it the switch costs much
	hostFullBar = 90   // of the CPUs of a host
	othersBar   = 50   // of the CPUs of a host: from here on others than our guests fill it
	uplinkBar   = 90   // of an uplink's speed
	uplinkOther = 20   // of it: from here on others fill it
	queueZero   = "0"
)

// port is what the hypervisor's switch dropped at the port of the end's guest,
// in the direction of the data.
type port struct {
	dropped     float64 // packets
	at          gauge
	share       gauge // of the packets, where that is what is told (esxtop %DRPTX, %DRPRX)
	known       bool
	shares      bool
	ring        float64 // times that the guest's ring was full, or packets that it had no buffer for
	ringAt      gauge
	ringCounted bool
	why         string
}

// port reads the counters of the end's port.
func (e *end) port() port {
	counter, pct := measure.CounterRxDropped, measure.CounterRxDropPct
	if e.sends() {
		counter, pct = measure.CounterTxDropped, measure.CounterTxDropPct
	}
	var p port
	if p.at, p.why = e.ofPort(counter); p.why == "" {
		p.known, p.dropped = true, p.at.sum
	}
	share, why := e.ofPort(pct)
	p.share, p.shares = share, why == ""
	if e.sends() {
		return p
	}
	for _, c := range []string{measure.CounterRingFull, measure.CounterNoBuffer} {
		if x, why := e.ofPort(c); why == "" { // both may count the same packet
			if !p.ringCounted || x.sum > p.ring {
				p.ring, p.ringAt = x.sum, x
			}
			p.ringCounted = true
		}
	}
	if p.known { // vmxnet3 has a second ring: the first one is full without a loss
		p.ring = min(p.ring, p.dropped)
	}
	return p
}

// drops tells whether anything was dropped there.
func (p port) drops() bool { return p.dropped > 0 || p.shares && p.share.mean > 0 }

// proofs of what was dropped.
func (p port) proofs(e *end) (all []measure.Proof) {
	if p.dropped > 0 {
		all = append(all, above(p.at.tells(e.name, p.dropped, "packets"), 0))
	}
	if p.shares && p.share.mean > 0 {
		all = append(all, above(p.share.tells(e.name, p.share.mean, "pct"), 0))
	}
	return all
}

// switchName is the virtual switch in the words of a sentence.
func (e *end) switchName() string {
	for _, b := range e.below {
		if b.Switch != nil && b.Switch.Name != "" {
			return line(b.Switch.Name)
		}
	}
	return "the virtual switch"
}

// vswitch joins what a hypervisor's facts say with what it counted.
func vswitch(e *end) *outcome {
	own := e.switchSeen()
	if e.guest() == nil {
		if own == nil || own.state == unknown {
			return best(own, e.unplaced("drops at the port of the virtual switch"))
		}
		return own
	}
	if e.flow.onOneMachine() {
		return own
	}
	below := e.switchBelow()
	if own != nil && own.state == unknown { // the guest cannot know
		return below
	}
	return seconded(own, below)
}

// switchBelow judges the switch by its worker, by what it dropped, and by what
// the same guest carries without it.
func (e *end) switchBelow() *outcome {
	p := e.port()
	worker, busy := e.worker()
	if o := best(e.workerFull(), e.droppedBelow(p), e.flow.slowSwitch(e)); o != nil {
		return o.at(e.onBed(e.switchName())).mend(e.easeSwitch())
	}
	switch {
	case p.known && busy:
		return no("nothing was dropped at the %s's port, and %s took %s of a CPU", e.place, worker.instance, unit.Percent(worker.mean))
	case p.known && !p.drops():
		return no("nothing was dropped at the %s's port of %s", e.place, e.switchName())
	case p.known: // and its ring was full
		return no("what was dropped at the %s's port found its ring full", e.place)
	case busy:
		return no("%s took %s of a CPU", worker.instance, unit.Percent(worker.mean))
	}
	return missing("packets dropped at the "+e.place+"'s port of the virtual switch", p.why)
}

// worker is the busiest thread of the host that moves packets of the guest.
func (e *end) worker() (gauge, bool) {
	for _, r := range []gauges{e.ofGuest(measure.CounterThread), e.ofBed(measure.CounterThread)} {
		mine := gauges{}
		for _, x := range r.all {
			if e.moves(x.instance) {
				mine.all = append(mine.all, x)
			}
		}
		if x, ok := mine.worst(); ok {
			return x, true
		}
	}
	return gauge{}, false
}

// moves tells whether a thread of the host moves packets of the guest: one of
// its vhost threads, by name and where several have it number; QEMU's own where it
// has none; or one of ESXi, whose name has the guest's, or the number of its port
// or of one of its worlds.
func (e *end) moves(thread string) bool {
	const own = "main thread"
	name, _, _ := strings.Cut(thread, ":")
	for _, b := range e.below {
		if b.Guest == nil {
			continue
		}
		if isNamed(thread, &b) {
			return true
		}
		vhosts := 0
		for _, t := range b.Guest.Threads {
			if t.Role != "vhost" {
				continue
			}
			if vhosts++; t.Name != "" && t.Name == name {
				return true
			}
		}
		if vhosts == 0 && len(b.Guest.Threads) > 0 && thread == own {
			return true
		}
	}
	return false
}

// isNamed tells whether the name of a world of ESXi, such as
// "NetWorld-Dev-67108879-Tx", has a name or a number of the guest as a whole:
// "web1" is no part of "web10".
func isNamed(thread string, b *measure.Beneath) bool {
	if b.Kind() == measure.KindKVM {
		return false
	}
	if b.Guest.Name != "" && slices.Contains(strings.Split(thread, ":"), b.Guest.Name) {
		return true
	}
	var numbers []string
	if b.NIC != nil && b.NIC.Port != nil {
		numbers = append(numbers, *b.NIC.Port)
	}
	if b.NIC != nil {
		numbers = append(numbers, b.NIC.Key)
	}
	if b.Guest.PID != nil {
		numbers = append(numbers, strconv.Itoa(*b.Guest.PID))
	}
	const least = 5 // digits: fewer are queues and devices
	for _, n := range strings.FieldsFunc(thread, func(c rune) bool { return c < '0' || c > '9' }) {
		if len(n) >= least && slices.Contains(numbers, n) {
			return true
		}
	}
	return false
}

// workerFull judges that thread; nil where it has time to spare.
func (e *end) workerFull() *outcome {
	x, ok := e.worker()
	if !ok || x.mean < workerBar {
		return nil
	}
	f := e.flow
	o := likely("the thread of %s that moves the %s's packets is full: %s took %s of a CPU", e.bedName(), e.place, line(x.instance), unit.Percent(x.mean)).
		by(above(x.tells(e.name, x.mean, "pct"), workerBar))
	switch {
	case f.isAll() != nil:
		o.beside()
	case f.sender.isFull() || f.receiver.isFull():
		o.confidence = measure.Possible
	case x.mean > workerFull && f.sender.load().known && f.receiver.load().known && len(e.guest().NICs) <= 1: // the threads of several adapters have one name
		o.confidence = measure.Certain
	}
	return o
}

// verbatim is a name as a part of a format.
func verbatim(name string) string { return strings.ReplaceAll(name, "%", "%%") }

// droppedBelow judges what was dropped at the port and did not find the guest's
// ring full; nil where there is nothing such.
func (e *end) droppedBelow(p port) *outcome {
	n := p.dropped
	if p.ringCounted {
		n -= p.ring
	}
	if !p.drops() || p.ringCounted && n < p.dropped/2 {
		return nil
	}
	f := e.flow
	way := "toward the receiver"
	if e.sends() {
		way = "from the sender"
	}
	o := f.dropped(f.receiver, n, "", "%.0f packets "+way+" were dropped at "+verbatim(e.switchName()))
	if n <= 0 {
		o.text = fmt.Sprintf("%s of the packets %s were dropped at %s", unit.Percent(p.share.mean), way, e.switchName())
	}
	o.evidence = p.proofs(e)
	again, _ := f.sender.grew(segsAgain)
	if again > 0 {
		o.by(f.sender.proof("tcp_info.total_retrans", again, "segments"))
	}
	switch {
	case e.sends() && f.shapedAt(f.sender) != nil: // the port is held to a rate
		o.confidence = measure.Possible
	case !e.sends() && !p.ringCounted: // the guest's ring is the usual place
		o.confidence = measure.Possible
		o.then("counters of the port (--hypervisor ssh://root@HOST): they tell the guest's ring from the switch")
	}
	return o
}

// slowSwitch judges two guests of one host by what one of them carries against
// itself; nil where it is not far less, or something in the guests is full.
func (f *flow) slowSwitch(e *end) *outcome {
	bps, ok := f.goodput()
	itself := f.againstItself()
	rwnd, _ := f.rwndPct()
	again, _ := f.againPct()
	if f.relation() != measure.SameHost || !ok || itself <= 0 || f.isAll() != nil || share(bps, itself) > rungBar {
		return nil
	}
	if f.sender.isFull() || f.receiver.isFull() || rwnd > rwndBar || again >= againBar || !f.sender.load().known {
		return nil
	}
	return possible("between two guests of %s pass %s of what one carries against itself, and their CPUs have time left", e.bedName(), unit.Percent(share(bps, itself))).
		by(below(measure.Proof{EndPoint: e.name, Counter: "goodput of the same on one machine", Value: share(bps, itself), Unit: "pct"}, rungBar))
}

// againstItself is the best that a guest of the flow carries with both ends on
// it; 0 where that was not measured.
func (f *flow) againstItself() (bps float64) {
	for i := range f.doc.Cells {
		c := &f.doc.Cells[i]
		if c.From == c.To && (c.From == f.cell.From || c.From == f.cell.To) && c.Protocol == f.cell.Protocol && c.Spec.Traffic == measure.Bulk {
			bps = max(bps, rateOf(c))
		}
	}
	return bps
}

// ringOverflow joins what the receiver counted with what its port did.
func ringOverflow(f *flow) *outcome { return seconded(f.ringSeen(), f.ringBelow()) }

// ringBelow judges packets that the hypervisor could not hand to the receiver,
// whose ring had no room. The guest itself may not see them.
func (f *flow) ringBelow() *outcome {
	e := f.receiver
	if e.guest() == nil {
		return e.unplaced("packets that found its ring full at the hypervisor")
	}
	p := e.port()
	switch {
	case p.ringCounted && p.ring == 0:
		return no("the port of the receiver never found its ring full")
	case !p.ringCounted && !p.known && !p.shares:
		return missing("packets that the hypervisor found no room for in the receiver's ring", p.why)
	case !p.ringCounted && !p.drops():
		return no("nothing was dropped at the port of the receiver")
	case !p.ringCounted && e.workerFull() != nil:
		return missing("whether the receiver's ring was full, or the thread that fills it", "its port tells only that packets were dropped")
	}
	n, at := p.ring, p.ringAt
	if !p.ringCounted {
		n, at = p.dropped, p.at
	}
	full := " found it full %.0f times"
	if at.counter == measure.CounterNoBuffer {
		full = " had no buffer for %.0f packets"
	}
	o := f.dropped(e, n, at.native, "the receiver's ring overflows: its port at "+verbatim(e.switchName())+full)
	if d := f.cell.Datagrams; f.isUDP() && p.ringCounted && d != nil && d.Lost >= fewEvents && n > ofRetransmit*float64(d.Lost) {
		o.confidence = measure.Certain
	}
	if p.ringCounted {
		unit := "" // times
		if at.counter == measure.CounterNoBuffer {
			unit = "packets"
		}
		o.evidence[0] = above(at.tells(e.name, n, unit), 0)
	} else {
		o.text = fmt.Sprintf("packets for the receiver were dropped at %s: its ring is where they usually are", e.switchName())
		o.evidence = p.proofs(e)
		if o.confidence == measure.Certain { // the switch itself is not ruled out
			o.confidence = measure.Likely
		}
	}
	where := e.onFace()
	where.Below = e.switchName()
	return o.at(where).mend(e.remedy(e.mender().Ring(e.faceName())))
}

// easeSwitch lets the switch move more packets.
func (e *end) easeSwitch() *measure.Remedy {
	r := &measure.Remedy{EndPoint: e.bedName(), Risk: "the guest is shut down for it"}
	if e.kind() == measure.KindKVM {
		r.Advice = "give the adapter more queues (libvirt: <driver name='vhost' queues='N'/>; Proxmox: qm set ID --net0 ...,queues=N), or a virtual function of the NIC (SR-IOV)"
		return r
	}
	r.Advice = "a transmit context for each adapter (ethernetN.ctxPerDev = 1 or 3), receive queues of the NIC (ethernetN.pnicFeatures = 4), or a virtual function of it (SR-IOV)"
	return r
}
