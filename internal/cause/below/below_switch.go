package below

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"thru/internal/cause/diagnose"
	"thru/internal/measure"
	"thru/internal/unit"
)

// Bars of a hypervisor's switch, in percent.
const (
	workerBar      = 90   // of one CPU: from here on a thread that moves packets is full
	workerFull     = 95   // from here on for certain
	rungBar        = 33.3 // of what the guest carries against itself: below it the switch costs much
	hostFullBar    = 90   // of the CPUs of a host
	othersBar      = 50   // of the CPUs of a host: from here on others than our guests fill it
	uplinkBar      = 90   // of an uplink's speed
	uplinkOther    = 20   // of it: from here on others fill it
	queueZeroCause = "0"
)

// drops tells whether anything was dropped there.
func drops(p diagnose.Port) bool { return p.Dropped > 0 || p.Shares && p.Share.Mean > 0 }

// proofs of what was dropped.
func proofs(p diagnose.Port, e *diagnose.End) (all []measure.Proof) {
	if p.Dropped > 0 {
		all = append(all, diagnose.Above(Tells(p.At, e.Name, p.Dropped, "packets"), 0))
	}
	if p.Shares && p.Share.Mean > 0 {
		all = append(all, diagnose.Above(Tells(p.Share, e.Name, p.Share.Mean, "pct"), 0))
	}
	return all
}

// switchName is the virtual switch in the words of a sentence.
func switchName(e *diagnose.End) string {
	for _, b := range e.Below {
		if b.Switch != nil && b.Switch.Name != "" {
			return diagnose.Line(b.Switch.Name)
		}
	}
	return "the virtual switch"
}

// vswitch joins what a hypervisor's facts say with what it counted.
func vswitch(e *diagnose.End) *diagnose.Outcome {
	own := switchSeen(e)
	if e.Guest() == nil {
		if own == nil || own.State == diagnose.Unknown {
			return Best(own, Unplaced(e, "drops at the port of the virtual switch"))
		}
		return own
	}
	if e.Flow.OnOneMachine() {
		return own
	}
	below := switchBelow(e)
	if own != nil && own.State == diagnose.Unknown { // the guest cannot know
		return below
	}
	return Seconded(own, below)
}

// switchBelow judges the switch by its worker, by what it dropped, and by what
// the same guest carries without it.
func switchBelow(e *diagnose.End) *diagnose.Outcome {
	p := e.Port()
	worker, busy := worker(e)
	if o := Best(workerFullOfEnd(e), droppedBelow(e, p), slowSwitch(e.Flow, e)); o != nil {
		return o.At(OnBed(e, switchName(e))).Mend(easeSwitch(e))
	}
	switch {
	case p.Known && busy:
		return diagnose.No("nothing was dropped at the %s's port, and %s took %s of a CPU", e.Place, worker.Instance, unit.Percent(worker.Mean))
	case p.Known && !drops(p):
		return diagnose.No("nothing was dropped at the %s's port of %s", e.Place, switchName(e))
	case p.Known: // and its ring was full
		return diagnose.No("what was dropped at the %s's port found its ring full", e.Place)
	case busy:
		return diagnose.No("%s took %s of a CPU", worker.Instance, unit.Percent(worker.Mean))
	}
	return diagnose.Missing("packets dropped at the "+e.Place+"'s port of the virtual switch", p.Why)
}

// worker is the busiest thread of the host that moves packets of the guest.
func worker(e *diagnose.End) (diagnose.Gauge, bool) {
	for _, r := range []diagnose.Gauges{e.OfGuest(measure.CounterThread), ofBed(e, measure.CounterThread)} {
		mine := diagnose.Gauges{}
		for _, x := range r.All {
			if moves(e, x.Instance) {
				mine.All = append(mine.All, x)
			}
		}
		if x, ok := mine.Worst(); ok {
			return x, true
		}
	}
	return diagnose.Gauge{}, false
}

// moves tells whether a thread of the host moves packets of the guest: one of
// its vhost threads, by name and where several have it number; QEMU's own where it
// has none; or one of ESXi, whose name has the guest's, or the number of its port
// or of one of its worlds.
func moves(e *diagnose.End, thread string) bool {
	const own = "main thread"
	name, _, _ := strings.Cut(thread, ":")
	for _, b := range e.Below {
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

// workerFullOfEnd judges that thread; nil where it has time to spare.
func workerFullOfEnd(e *diagnose.End) *diagnose.Outcome {
	x, ok := worker(e)
	if !ok || x.Mean < workerBar {
		return nil
	}
	f := e.Flow
	o := diagnose.Likely("the thread of %s that moves the %s's packets is full: %s took %s of a CPU", BedName(e), e.Place, diagnose.Line(x.Instance), unit.Percent(x.Mean)).
		By(diagnose.Above(Tells(x, e.Name, x.Mean, "pct"), workerBar))
	switch {
	case f.IsAll() != nil:
		o.Beside()
	case f.Sender.IsFull() || f.Receiver.IsFull():
		o.Confidence = measure.Possible
	case x.Mean > workerFull && f.Sender.Load().Known && f.Receiver.Load().Known && len(e.Guest().NICs) <= 1: // the threads of several adapters have one name
		o.Confidence = measure.Certain
	}
	return o
}

// verbatim is a name as a part of a format.
func verbatim(name string) string { return strings.ReplaceAll(name, "%", "%%") }

// droppedBelow judges what was dropped at the port and did not find the guest's
// ring full; nil where there is nothing such.
func droppedBelow(e *diagnose.End, p diagnose.Port) *diagnose.Outcome {
	n := p.Dropped
	if p.RingCounted {
		n -= p.Ring
	}
	if !drops(p) || p.RingCounted && n < p.Dropped/2 {
		return nil
	}
	f := e.Flow
	way := "toward the receiver"
	if e.Sends() {
		way = "from the sender"
	}
	o := f.Dropped(f.Receiver, n, "", "%.0f packets "+way+" were dropped at "+verbatim(switchName(e)))
	if n <= 0 {
		o.Text = fmt.Sprintf("%s of the packets %s were dropped at %s", unit.Percent(p.Share.Mean), way, switchName(e))
	}
	o.Evidence = proofs(p, e)
	again, _ := f.Sender.Grew(diagnose.SegsAgain)
	if again > 0 {
		o.By(f.Sender.Proof("tcp_info.total_retrans", again, "segments"))
	}
	switch {
	case e.Sends() && ShapedAt(f, f.Sender) != nil: // the port is held to a rate
		o.Confidence = measure.Possible
	case !e.Sends() && !p.RingCounted: // the guest's ring is the usual place
		o.Confidence = measure.Possible
		o.Then("counters of the port (--hypervisor ssh://root@HOST): they tell the guest's ring from the switch")
	}
	return o
}

// slowSwitch judges two guests of one host by what one of them carries against
// itself; nil where it is not far less, or something in the guests is full.
func slowSwitch(f *diagnose.Flow, e *diagnose.End) *diagnose.Outcome {
	bps, ok := f.Goodput()
	itself := againstItself(f)
	rwnd, _ := f.RwndPct()
	again, _ := f.AgainPct()
	if f.Relation() != measure.SameHost || !ok || itself <= 0 || f.IsAll() != nil || diagnose.Share(bps, itself) > rungBar {
		return nil
	}
	if f.Sender.IsFull() || f.Receiver.IsFull() || rwnd > diagnose.RwndBar || again >= diagnose.AgainBar || !f.Sender.Load().Known {
		return nil
	}
	return diagnose.Possible("between two guests of %s pass %s of what one carries against itself, and their CPUs have time left", BedName(e), unit.Percent(diagnose.Share(bps, itself))).
		By(diagnose.Below(measure.Proof{EndPoint: e.Name, Counter: "goodput of the same on one machine", Value: diagnose.Share(bps, itself), Unit: "pct"}, rungBar))
}

// againstItself is the best that a guest of the flow carries with both ends on
// it; 0 where that was not measured.
func againstItself(f *diagnose.Flow) (bps float64) {
	for i := range f.Doc.Cells {
		c := &f.Doc.Cells[i]
		if c.From == c.To && (c.From == f.Cell.From || c.From == f.Cell.To) && c.Protocol == f.Cell.Protocol && c.Spec.Traffic == measure.Bulk {
			bps = max(bps, diagnose.RateOf(c))
		}
	}
	return bps
}

// RingBelow judges packets that the hypervisor could not hand to the receiver,
// whose ring had no room. The guest itself may not see them.
func RingBelow(f *diagnose.Flow) *diagnose.Outcome {
	e := f.Receiver
	if e.Guest() == nil {
		return Unplaced(e, "packets that found its ring full at the hypervisor")
	}
	p := e.Port()
	switch {
	case p.RingCounted && p.Ring == 0:
		return diagnose.No("the port of the receiver never found its ring full")
	case !p.RingCounted && !p.Known && !p.Shares:
		return diagnose.Missing("packets that the hypervisor found no room for in the receiver's ring", p.Why)
	case !p.RingCounted && !drops(p):
		return diagnose.No("nothing was dropped at the port of the receiver")
	case !p.RingCounted && workerFullOfEnd(e) != nil:
		return diagnose.Missing("whether the receiver's ring was full, or the thread that fills it", "its port tells only that packets were dropped")
	}
	n, at := p.Ring, p.RingAt
	if !p.RingCounted {
		n, at = p.Dropped, p.At
	}
	full := " found it full %.0f times"
	if at.Counter == measure.CounterNoBuffer {
		full = " had no buffer for %.0f packets"
	}
	o := f.Dropped(e, n, at.Native, "the receiver's ring overflows: its port at "+verbatim(switchName(e))+full)
	if d := f.Cell.Datagrams; f.IsUDP() && p.RingCounted && d != nil && d.Lost >= diagnose.FewEvents && n > diagnose.OfRetransmit*float64(d.Lost) {
		o.Confidence = measure.Certain
	}
	if p.RingCounted {
		unit := "" // times
		if at.Counter == measure.CounterNoBuffer {
			unit = "packets"
		}
		o.Evidence[0] = diagnose.Above(Tells(at, e.Name, n, unit), 0)
	} else {
		o.Text = fmt.Sprintf("packets for the receiver were dropped at %s: its ring is where they usually are", switchName(e))
		o.Evidence = proofs(p, e)
		if o.Confidence == measure.Certain { // the switch itself is not ruled out
			o.Confidence = measure.Likely
		}
	}
	where := e.OnFace()
	where.Below = switchName(e)
	return o.At(where).Mend(e.Remedy(e.Mender().Ring(e.FaceName())))
}

// easeSwitch lets the switch move more packets.
func easeSwitch(e *diagnose.End) *measure.Remedy {
	r := &measure.Remedy{EndPoint: BedName(e), Risk: "the guest is shut down for it"}
	if e.Kind() == measure.KindKVM {
		r.Advice = "give the adapter more queues (libvirt: <driver name='vhost' queues='N'/>; Proxmox: qm set ID --net0 ...,queues=N), or a virtual function of the NIC (SR-IOV)"
		return r
	}
	r.Advice = "a transmit context for each adapter (ethernetN.ctxPerDev = 1 or 3), receive queues of the NIC (ethernetN.pnicFeatures = 4), or a virtual function of it (SR-IOV)"
	return r
}
