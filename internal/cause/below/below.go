// Package below holds the causes of what lies below a virtual machine: its hypervisor's
// switch, queues and limits.
package below

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"thru/internal/cause/diagnose"
	"thru/internal/cause/gate"
	"thru/internal/measure"
	"thru/internal/unit"
)

// Bed is the host that the end's guest is on, or that the end is.
func Bed(e *diagnose.End) *measure.GuestHost {
	for _, b := range e.Below {
		if b.Host != nil {
			return b.Host
		}
	}
	return nil
}

// BedName is that host in the words of a sentence.
func BedName(e *diagnose.End) string {
	if h := Bed(e); h != nil && h.Name != "" {
		return diagnose.Line(h.Name)
	}
	return "its host"
}

// GuestName is the virtual machine in the words of a sentence.
func GuestName(e *diagnose.End) string {
	if g := e.Guest(); g != nil && g.Name != "" {
		return diagnose.Line(g.Name)
	}
	return "the " + e.Place + "'s guest"
}

// OnBed is the place of a cause at what lies below the end.
func OnBed(e *diagnose.End, name string) measure.Where {
	w := e.Where()
	w.Below = name
	return w
}

// Unplaced is the outcome of a rule that asks for what lies below an end of
// which nobody knows where it is; nil where nobody was asked.
func Unplaced(e *diagnose.End, fact string) *diagnose.Outcome {
	switch {
	case e.Guest() != nil:
		return nil
	case len(e.Below) > 0:
		return nil // a host itself
	case e.NoPlace != "":
		return diagnose.Missing(fact+" of the "+e.Place, e.NoPlace)
	case e.HidesSteal():
		return diagnose.Missing(fact+" of the "+e.Place, "it is a guest: --hypervisor URL asks its host")
	}
	return nil
}

// OfBed is a counter of the host below the end.
func OfBed(e *diagnose.End, counter string) diagnose.Gauges {
	return e.Read(counter, func(b *measure.Beneath) string {
		if b.Host == nil {
			return ""
		}
		return b.Host.ID
	})
}

// Tells words a gauge as evidence: who it is about, what it is, and what its
// source calls it.
func Tells(x diagnose.Gauge, of string, value float64, unit string) measure.Proof {
	name := cmp.Or(x.Native, x.Counter)
	if plain := plainName(x.Counter); plain != "" {
		name = plain + " (" + name + ")"
	}
	switch isNumbered := IsNumber10(x.Instance); {
	case isNumbered && strings.HasPrefix(x.Counter, "cpu."):
		name += " of virtual CPU " + x.Instance
	case isNumbered:
		name += " of port " + x.Instance
	case x.Instance != "":
		name += " of " + x.Instance
	}
	return measure.Proof{EndPoint: of, Counter: diagnose.Line(name), Value: value, Unit: unit, SpanNs: x.SpanNs}
}

// plainName is a counter in two words or more, which a source's own name for it
// is not always: "cpu.ready.summation", "% Used".
func plainName(counter string) string {
	return map[string]string{
		measure.CounterReady: "ready, not run", measure.CounterCoStop: "co-stop time", measure.CounterLimited: "held back by a limit", measure.CounterSwapWait: "waiting for swap",
		measure.CounterUsage: "CPU load", measure.CounterBalloon: "ballooned memory", measure.CounterSwapped: "swapped memory", measure.CounterSwapIn: "swapped in a second",
		measure.CounterMemWait: "waiting for memory", measure.CounterRxBps: "received rate", measure.CounterTxBps: "sent rate",
		measure.CounterRxDropped: "dropped on receiving", measure.CounterTxDropped: "dropped on sending", measure.CounterRxDropPct: "dropped on receiving", measure.CounterTxDropPct: "dropped on sending",
		measure.CounterRingFull: "ring found full", measure.CounterNoBuffer: "no buffer in the ring", measure.CounterQueueRx: "received packets", measure.CounterThread: "CPU time",
	}[counter]
}

// Seconded joins what an end saw itself with what its hypervisor says, which
// knows more of it.
func Seconded(own, below *diagnose.Outcome) *diagnose.Outcome {
	switch {
	case below == nil:
		return own
	case own == nil:
		return below
	case own.State == diagnose.Holds && below.State == diagnose.Holds:
		return diagnose.Both(own, below)
	case own.State == diagnose.Holds && below.State == diagnose.Excluded:
		return diagnose.Doubted(own, below)
	case own.State == diagnose.Holds:
		return own
	case below.State == diagnose.Unknown && own.State == diagnose.Excluded:
		return own
	case below.State == diagnose.Excluded && own.State == diagnose.Excluded && own.Text != below.Text:
		return diagnose.No("%s; %s", own.Text, below.Text)
	}
	return below
}

// Best is the surest of several outcomes: the first where they are alike.
func Best(all ...*diagnose.Outcome) *diagnose.Outcome {
	var o *diagnose.Outcome
	for _, x := range all {
		if x != nil && (o == nil || diagnose.Sureness(x) > diagnose.Sureness(o)) {
			o = x
		}
	}
	return o
}

// Bars of what a host does with a guest's virtual CPUs, in percent of the time
// of one.
const (
	ReadyBar     = 5  // ready and not run (esxtop %RDY): from here on it costs something
	readyLikely  = 10 // from here on it is likely to bind
	ReadyCertain = 25 // from here on it does, where nothing else is in the way
	costopBar    = 3  // waiting for its fellows (esxtop %CSTP)
)

// WaitsBelow judges how long the host kept the guest's virtual CPUs waiting.
func WaitsBelow(e *diagnose.End) *diagnose.Outcome {
	if e.Guest() == nil {
		return Unplaced(e, "time that the host kept its virtual CPUs waiting")
	}
	b := e.CPUs()
	stop := b.Stop
	if !b.ReadyKnown && !b.StopKnown {
		return diagnose.Missing("time that the host kept the "+e.Place+"'s virtual CPUs waiting", cmp.Or(b.Ready.Why, "its threads are bound to CPUs that it was not told of"))
	}
	if o := e.Flow.IsAll(); o != nil {
		return o
	}
	if b.Net < ReadyBar && stop.Mean < costopBar {
		return diagnose.No("%s kept the virtual CPUs of the %s waiting %s of the time", BedName(e), e.Place, unit.Percent(b.Net))
	}
	o := diagnose.Possible("%s kept the virtual CPUs of the %s waiting %s of the time%s", BedName(e), e.Place, unit.Percent(max(b.Net, stop.Mean)), crowd(e))
	if b.ReadyKnown {
		p := Tells(b.Wait, e.Name, b.Net, "pct")
		if b.Net < b.Wait.Mean {
			p.Note = "of " + unit.Percent(b.Wait.Mean) + ", without what a limit held back"
		}
		o.By(diagnose.Above(p, ReadyBar))
	}
	if b.StopKnown {
		o.By(diagnose.Above(Tells(stop, e.Name, stop.Mean, "pct"), costopBar))
	}
	switch {
	case !b.Full && b.Net < readyLikely:
		o.Beside()
	case b.Full && b.Net > ReadyCertain && b.Unlimited:
		o.Confidence = measure.Certain
	case b.Full && (b.Net > readyLikely || stop.Mean > costopBar), b.Net > ReadyCertain:
		o.Confidence = measure.Likely
	}
	return o.At(OnBed(e, BedName(e))).Mend(freeCPU(e))
}

// crowd says how many virtual CPUs share how many of the host's, where they are
// more, or how few the guest may use.
func crowd(e *diagnose.End) string {
	g, h := e.Guest(), Bed(e)
	if n := len(g.Affinity); n > 0 && g.CPUs != nil && n < *g.CPUs {
		return fmt.Sprintf(": its %d virtual CPUs may use only %d of the host's", *g.CPUs, n)
	}
	if h == nil || h.CPUsHanded == nil || h.Facts == nil || h.Facts.Cores == nil || *h.CPUsHanded <= *h.Facts.Cores || *h.Facts.Cores <= 0 {
		return ""
	}
	return fmt.Sprintf(": %d virtual CPUs share its %d CPUs", *h.CPUsHanded, *h.Facts.Cores)
}

// Remedies at a hypervisor. The administrator runs them there, so they name the
// host, not the end point.

// freeCPU gives a guest's virtual CPUs more of the host's.
func freeCPU(e *diagnose.End) *measure.Remedy {
	r := &measure.Remedy{EndPoint: BedName(e), Risk: "what is reserved is lost to the other guests of the host; what is moved stands still for a moment"}
	if e.Kind() != measure.KindKVM {
		r.Advice = "reserve CPU for " + GuestName(e) + ", give it fewer virtual CPUs, or move it or its neighbours"
		return r
	}
	r.Advice = "see which CPUs its virtual CPUs may use, then bind each to one that nothing else uses (libvirt: virsh vcpupin GUEST VCPU CPU; Proxmox: qm set ID --affinity; by hand: taskset -pc CPU TID)"
	r.Platform, r.Risk = "linux", "these only show"
	for _, t := range e.Guest().Threads {
		if t.Role == "vcpu" && t.TID > 0 && len(r.Commands) < 4 {
			r.Commands = append(r.Commands, fmt.Sprintf("taskset -pc %d", t.TID))
		}
	}
	if len(r.Commands) == 0 {
		r.Commands = []string{"virsh vcpuinfo " + Domain(e.Guest())}
	}
	return r
}

// IsNumber10 tells of text that is a decimal number.
func IsNumber10(text string) bool { _, err := strconv.ParseUint(text, 10, 32); return err == nil }

// Domain is a guest's name as a shell takes it.
func Domain(g *measure.Guest) string {
	if w := diagnose.Word(g.Name); w != "INTERFACE" {
		return w
	}
	return "GUEST"
}

// Setting is a setting of a host by the end of its name, as a command and a web
// service write it differently: "netNetqueueEnabled", "VMkernel.Boot.netNetqueueEnabled".
func Setting(f *measure.Facts, name string) (string, bool) {
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

// IsOff reads a switch: "FALSE", "0", "false (default TRUE, configured FALSE)".
func IsOff(value string) bool {
	first, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(value)), " ")
	return first == "false" || first == "0" || first == "no" || first == "off"
}

// Uplinks are the NICs of the host that may carry the guest's traffic: the one
// that is told, else all of its switch.
func Uplinks(e *diagnose.End) (all []string) {
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

// ShapedPort is a rate that the hypervisor holds the port of an end to.
type ShapedPort struct {
	End     *diagnose.End
	Name    string // of the port group, switch or adapter that it is set at
	Average float64
}

// ShapedAt is the shaping of the end's port in the direction of the data: its
// own, else that of the port group, else that of the switch. nil: there is none,
// or it is not known.
func ShapedAt(f *diagnose.Flow, e *diagnose.End) *ShapedPort {
	for _, b := range e.Below {
		if x, at, told := b.Shaped(e.Sends()); x != nil {
			return &ShapedPort{End: e, Name: diagnose.Line(at), Average: float64(*x.AverageBps)}
		} else if told {
			return nil
		}
	}
	return nil
}

// Bars of a shaped port, in percent of its average. It counts frames, so a
// flow at it carries their headers less: 5% at an MTU of 1500.
const (
	ShapedLow  = 88
	ShapedHigh = 102
)

// PortRate names the counter of what the end moves through its port.
func PortRate(e *diagnose.End) string {
	if e.Sends() {
		return measure.CounterTxBps
	}
	return measure.CounterRxBps
}

// Bars of a hypervisor's switch, in percent.
const (
	workerBar  = 90 // of one CPU: from here on a thread that moves packets is full
	WorkerFull = 95 // from here on for certain
)

// Drops tells whether anything was dropped there.
func Drops(p diagnose.Port) bool { return p.Dropped > 0 || p.Shares && p.Share.Mean > 0 }

// Proofs of what was dropped.
func Proofs(p diagnose.Port, e *diagnose.End) (all []measure.Proof) {
	if p.Dropped > 0 {
		all = append(all, diagnose.Above(Tells(p.At, e.Name, p.Dropped, "packets"), 0))
	}
	if p.Shares && p.Share.Mean > 0 {
		all = append(all, diagnose.Above(Tells(p.Share, e.Name, p.Share.Mean, "pct"), 0))
	}
	return all
}

// SwitchName is the virtual switch in the words of a sentence.
func SwitchName(e *diagnose.End) string {
	for _, b := range e.Below {
		if b.Switch != nil && b.Switch.Name != "" {
			return diagnose.Line(b.Switch.Name)
		}
	}
	return "the virtual switch"
}

// WorkerOutcome judges that thread; nil where it has time to spare.
func WorkerOutcome(e *diagnose.End) *diagnose.Outcome {
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
	case x.Mean > WorkerFull && f.Sender.Load().Known && f.Receiver.Load().Known && len(e.Guest().NICs) <= 1: // the threads of several adapters have one name
		o.Confidence = measure.Certain
	}
	return o
}

// Verbatim is a name as a part of a format.
func Verbatim(name string) string { return strings.ReplaceAll(name, "%", "%%") }

// Below is what the first inventory that knows the end says of it as a guest;
// false where it is none, or nobody was asked.
func Below(h *gate.Host) (measure.Beneath, bool) {
	if len(h.End.Below) == 0 || h.End.Below[0].Guest == nil {
		return measure.Beneath{}, false
	}
	return h.End.Below[0], true
}

// Conditions are the gates of a cause at an end point, "" for the path, that
// are not passed: of the document, and where it has none those of its facts.
func Conditions(f *diagnose.Flow, cause, endPoint string) []measure.Gate {
	return slices.DeleteFunc(JudgedGates(f), func(g measure.Gate) bool {
		return g.Cause != cause || g.EndPoint != endPoint || g.Status != measure.GateWarn && g.Status != measure.GateFail
	})
}

// JudgedGates are all gates of the document; judged anew from its facts where
// it is of a version that kept none. Those of what lies below an end are left
// out: the rules look at the inventory itself.
func JudgedGates(f *diagnose.Flow) []measure.Gate {
	if len(f.Doc.Gates) > 0 {
		return slices.DeleteFunc(slices.Clone(f.Doc.Gates), func(g measure.Gate) bool { return gate.IsBelowBy(f.Cat.Gates, g.ID) })
	}
	if f.Anew == nil {
		s := gate.Subject{Path: f.Path(), Streams: f.Cell.Streams, UDP: f.IsUDP()}
		for _, e := range f.Ends() {
			if e.Facts != nil {
				s.Ends = append(s.Ends, gate.End{Name: e.Name, Facts: e.Facts, Route: e.Route(), Shared: f.Cell.From == f.Cell.To})
			}
		}
		f.Anew = gate.JudgeBy(s, f.Cat.Gates)
	}
	return slices.Clone(f.Anew)
}

// Told is what the gates say of a cause at this end where none of them warns:
// nil where it does not apply to this host.
func Told(e *diagnose.End, cause string) *diagnose.Outcome {
	if e.Facts == nil {
		return e.Lacks("facts of the host")
	}
	var passed, open *measure.Gate
	all := JudgedGates(e.Flow)
	for i := range all {
		g := &all[i]
		switch {
		case g.Cause != cause || g.EndPoint != e.Name:
		case g.Status == measure.GatePass && passed == nil:
			passed = g
		case g.Status == measure.GateNotChecked && open == nil:
			open = g
		}
	}
	switch {
	case open != nil:
		return diagnose.Missing(open.Fact, "it was not read")
	case passed != nil:
		return diagnose.No("at the %s: %s", e.Place, passed.Fact)
	}
	return nil
}

// Condition is a gate that warns, as a cause that may cost something.
func Condition(e *diagnose.End, g measure.Gate) *diagnose.Outcome {
	w := e.Where()
	w.Interface = g.Interface
	o := diagnose.Possible("at the %s: %s", e.Place, g.Fact).At(w)
	o.By(measure.Proof{EndPoint: e.Name, Counter: "gate " + g.ID, Value: 1, Note: diagnose.Line(g.Fact)})
	return o.Mend(diagnose.RemedyOf(g, e.Facts))
}

// Symptom makes a condition likely where this run shows what it brings, and
// leaves it beside the rate where not.
func Symptom(o *diagnose.Outcome, shown bool) *diagnose.Outcome {
	if shown {
		o.Confidence = measure.Likely
		return o
	}
	return o.Beside()
}

// WorksFully tells that a CPU of the end is full while the flow could carry more.
func WorksFully(e *diagnose.End) bool { return e.Flow.IsAll() == nil && e.IsFull() }
