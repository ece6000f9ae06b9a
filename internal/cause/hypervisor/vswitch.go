package hypervisor

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"thru/internal/cause/diagnose"
	"thru/internal/cause/gate"
	"thru/internal/cause/rule"
	"thru/internal/cause/scene"
	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// Vswitch is the cause `vswitch`.
func Vswitch() rule.Cause {
	return rule.Cause{
		Rule: diagnose.Rule{
			Cause: "vswitch", TCP: true, UDP: true, Title: "the virtual switch is full", Judge: func(f *diagnose.Flow) *diagnose.Outcome { return f.Either(judgeVswitch) },
			Seen:        "a thread that forwards guests' packets (vhost) fills 90% of a hypervisor CPU or more in the measured time; packets were dropped at the guest's port although its ring was not full; two guests of one host reach a third, or less, of the rate of one guest to itself (possible)",
			Distinction: "the guests' CPUs have time left; a full ring is `ring-overflow`, a port with a rate limit is `shaper`", Fix: "use multi-queue vhost, a context for each device, or SR-IOV", Effect: "one thread for each guest, or one for all",
			Source: "causes.md; gate virtual-switch; net.droppedTx, net.droppedRx of ESXi; drops of a tap", Brings: []string{"loss"},
		},
		Gates: []gate.Rule{
			{ID: "virtual-switch", Words: "vswitch bridge ovs vhost", Title: "Virtual switch", About: "bridges on the path, and the threads that forward guests' packets",
				Warns:  "a thread that forwards guests' packets (vhost) fills 80% of a CPU while no test runs",
				Why:    "one thread of the host forwards all packets of a guest: a full thread limits the guest's network",
				Source: "the catalogue of causes (vswitch); C-25", Fix: "use multi-queue vhost or SR-IOV", Checklist: []string{"C-25", "C-28"}, Host: gateVirtualSwitch},
		},
	}
}

// judgeVswitch joins a hypervisor's facts with its counters.
func judgeVswitch(e *diagnose.End) *diagnose.Outcome {
	own := switchSeen(e)
	if e.Guest() == nil {
		if own == nil || own.State == diagnose.Unknown {
			return Best(own, NoPlacement(e, "drops at the port of the virtual switch"))
		}
		return own
	}
	if e.Flow.OnOneMachine() {
		return own
	}
	below := switchOfHost(e)
	if own != nil && own.State == diagnose.Unknown { // the guest cannot know
		return below
	}
	return Seconded(own, below)
}

func switchSeen(e *diagnose.End) *diagnose.Outcome {
	if e.Flow.OnOneMachine() {
		return diagnose.No("both ends are on one host")
	}
	if gates := Conditions(e.Flow, "vswitch", e.Name); len(gates) > 0 {
		return Symptom(Condition(e, gates[0]), e.Flow.IsAll() == nil && !e.IsFull())
	}
	if guest, _ := e.Host.Guest(); guest {
		return diagnose.Missing("threads of the hypervisor's virtual switch", fmt.Sprintf("the %s is a guest; `--hypervisor URL` reads its host", e.Place))
	}
	return GateOutcome(e, "vswitch")
}

// switchOfHost judges the switch by its worker thread, its drops, and what the same guest carries without it.
func switchOfHost(e *diagnose.End) *diagnose.Outcome {
	p := e.Port()
	worker, busy := worker(e)
	if o := Best(WorkerOutcome(e), droppedAtPort(e, p), slowSwitch(e.Flow, e)); o != nil {
		return o.At(AtHost(e, SwitchName(e))).AddFix(easeSwitch(e))
	}
	switch {
	case p.Known && busy:
		return diagnose.No("no packet was dropped at the %s's port, and %s took %s of a CPU", e.Place, worker.Instance, unit.Percent(worker.Mean))
	case p.Known && !Drops(p):
		return diagnose.No("no packet was dropped at the %s's port of %s", e.Place, SwitchName(e))
	case p.Known: // and its ring was full
		return diagnose.No("packets were dropped at the %s's port because its ring was full", e.Place)
	case busy:
		return diagnose.No("%s took %s of a CPU", worker.Instance, unit.Percent(worker.Mean))
	}
	return diagnose.Missing("packets dropped at the "+e.Place+"'s port of the virtual switch", p.Why)
}

// worker returns the busiest thread of the host that moves packets of the guest.
func worker(e *diagnose.End) (diagnose.Gauge, bool) {
	for _, r := range []diagnose.Gauges{e.OfGuest(measure.CounterThread), HostCounter(e, measure.CounterThread)} {
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

// moves reports whether a thread of the host moves packets of the guest: one of its vhost threads, by name and, if
// several guests have that name, by number; QEMU's own thread if it has none; or one of ESXi, named after the
// guest, the number of its port, or one of its worlds.
func moves(e *diagnose.End, thread string) bool {
	const own = "main thread"
	name, _, _ := strings.Cut(thread, ":")
	for _, b := range e.Placements {
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

// isNamed reports whether the name of an ESXi world, such as "NetWorld-Dev-67108879-Tx", contains a name or number
// of the guest as a whole word: "web1" does not match "web10".
func isNamed(thread string, b *measure.HostPlacement) bool {
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
	const least = 5 // fewer digits are queues and devices
	for _, n := range strings.FieldsFunc(thread, func(c rune) bool { return c < '0' || c > '9' }) {
		if len(n) >= least && slices.Contains(numbers, n) {
			return true
		}
	}
	return false
}

// droppedAtPort judges drops at the port that are not explained by the guest's full ring; nil if there are none.
func droppedAtPort(e *diagnose.End, p diagnose.Port) *diagnose.Outcome {
	n := p.Dropped
	if p.RingCounted {
		n -= p.Ring
	}
	if !Drops(p) || p.RingCounted && n < p.Dropped/2 {
		return nil
	}
	f := e.Flow
	direction := "toward the receiver"
	if e.Sends() {
		direction = "from the sender"
	}
	o := f.Dropped(f.Receiver, n, "", "%.0f packets "+direction+" were dropped at "+Verbatim(SwitchName(e)))
	if n <= 0 {
		o.Text = fmt.Sprintf("%s of the packets %s were dropped at %s", unit.Percent(p.Share.Mean), direction, SwitchName(e))
	}
	o.Evidence = Proofs(p, e)
	again, _ := f.Sender.Seen.Delta(measure.Retransmits).Float()
	if again > 0 {
		o.By(f.Sender.Proof("tcp_info.total_retrans", again, "segments"))
	}
	switch {
	case e.Sends() && ShapedAt(f, f.Sender) != nil: // the port has a rate limit
		o.Confidence = measure.Possible
	case !e.Sends() && !p.RingCounted: // the guest's ring is the usual place
		o.Confidence = measure.Possible
		o.Then("counters of the port (--hypervisor ssh://root@HOST): they distinguish the guest's ring from the virtual switch")
	}
	return o
}

// slowSwitch compares the flow between two guests of one host with what one of them carries to itself; nil if it
// is not far less, or something in the guests is full.
func slowSwitch(f *diagnose.Flow, e *diagnose.End) *diagnose.Outcome {
	bps, ok := f.Goodput()
	itself := againstItself(f)
	rwnd, _ := f.RwndPct()
	again, _ := f.AgainPct()
	if f.Relation() != measure.SameHost || !ok || itself <= 0 || f.IsAll() != nil || stat.Pct(bps, itself) > rungBar {
		return nil
	}
	if f.Sender.IsFull() || f.Receiver.IsFull() || rwnd > diagnose.RwndBar || again >= diagnose.AgainBar || !f.Sender.Load().Known {
		return nil
	}
	return diagnose.Possible("two guests of %s reach only %s of the rate of one guest to itself, and their CPUs have time left", HostName(e), unit.Percent(stat.Pct(bps, itself))).
		By(diagnose.UnderBar(measure.Proof{EndPoint: e.Name, Counter: "goodput relative to the same test within one guest", Value: stat.Pct(bps, itself), Unit: "pct"}, rungBar))
}

// againstItself returns the highest rate of a guest of the flow with both ends on it; 0 if that was not measured.
func againstItself(f *diagnose.Flow) (bps float64) {
	for i := range f.Doc.Cells {
		c := &f.Doc.Cells[i]
		if c.From == c.To && (c.From == f.Cell.From || c.From == f.Cell.To) && c.Protocol == f.Cell.Protocol && c.Spec.Traffic == measure.Bulk {
			bps = max(bps, diagnose.RateOf(c))
		}
	}
	return bps
}

// rungBar is the percentage of the guest's rate to itself below which the switch is expensive.
const rungBar = 33.3

// easeSwitch helps the switch to move more packets.
func easeSwitch(e *diagnose.End) *measure.Fix {
	r := &measure.Fix{EndPoint: HostName(e), Risk: "the guest must be shut down"}
	if e.Kind() == measure.KindKVM {
		r.Advice = "give the adapter more queues (libvirt: <driver name='vhost' queues='N'/>; Proxmox: qm set ID --net0 ...,queues=N), or a virtual function of the NIC (SR-IOV)"
		return r
	}
	r.Advice = "set a transmit context for each adapter (ethernetN.ctxPerDev = 1 or 3) or receive queues of the NIC (ethernetN.pnicFeatures = 4), or use a virtual function of the NIC (SR-IOV)"
	return r
}

func gateVirtualSwitch(h *scene.Host) *gate.Finding {
	v := h.Hypervises
	if v == nil || v.Guests <= 0 && v.Vhost <= 0 && len(v.Switch) == 0 {
		return nil
	}
	if l := h.Load; l != nil && l.VhostPct != nil && *l.VhostPct > 80 {
		return gate.Warn("a thread that forwards guests' packets fills %s of a CPU; %d guests run here", gate.Percent(*l.VhostPct), v.Guests).
			Do(scene.Advise("give the busy guest's adapter several queues: driver name=vhost queues=4").Risking(scene.OnTheHost))
	}
	return gate.Pass("%d guests run here%s", max(0, v.Guests), among(v.Switch))
}

func among(switches []string) string {
	if len(switches) == 0 {
		return ""
	}
	return ", on virtual switch " + strings.Join(switches[:min(3, len(switches))], ", ")
}

// Thresholds of a hypervisor's switch, in percent.
const (
	workerBar  = 90 // of one CPU: from here a thread that moves packets is full
	WorkerFull = 95 // certain from here
)

// WorkerOutcome judges that thread; nil if it has idle time.
func WorkerOutcome(e *diagnose.End) *diagnose.Outcome {
	x, ok := worker(e)
	if !ok || x.Mean < workerBar {
		return nil
	}
	f := e.Flow
	o := diagnose.Likely("the thread of %s that forwards the %s's packets is full: %s took %s of a CPU", HostName(e), e.Place, diagnose.Line(x.Instance), unit.Percent(x.Mean)).
		By(diagnose.Above(GaugeEvidence(x, e.Name, x.Mean, "pct"), workerBar))
	switch {
	case f.IsAll() != nil:
		o.MarkNotBinding()
	case f.Sender.IsFull() || f.Receiver.IsFull():
		o.Confidence = measure.Possible
	case x.Mean > WorkerFull && f.Sender.Load().Known && f.Receiver.Load().Known && len(e.Guest().NICs) <= 1: // the threads of several adapters have one name
		o.Confidence = measure.Certain
	}
	return o
}
