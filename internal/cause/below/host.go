package below

import (
	"fmt"
	"slices"

	"thru/internal/cause/diagnose"
	"thru/internal/cause/gate"
	"thru/internal/measure"
	"thru/internal/unit"
)

// HostCauses are the causes of conditions of a host that may cost something.
func HostCauses() []diagnose.Rule {
	return []diagnose.Rule{
		{
			Cause: "cpu-governor", TCP: true, UDP: true, Title: "the CPUs clock down", Judge: func(f *diagnose.Flow) *diagnose.Outcome { return f.Either(governor) },
			Seen:  "a governor that saves power; likely where a CPU is full and its clock was below 70% of its highest",
			Apart: "the same at the governor performance", Mends: "the governor performance", Effect: "5 to 30%",
			Source: "Linux cpufreq.rst; gate governor", Brings: []string{"sender-cpu", "receiver-cpu", "single-flow"},
		},
		{
			Cause: "numa-remote", TCP: true, UDP: true, Title: "the adapter is at another NUMA node", Judge: func(f *diagnose.Flow) *diagnose.Outcome { return f.Either(numa) },
			Seen:  "threads or interrupts on CPUs of another node than the adapter's; likely where a CPU is full above 10 Gb/s",
			Apart: "the same on CPUs of the adapter's node (-A)", Mends: "CPUs of the adapter's node", Effect: "10 to 40% at 40 Gb/s and more",
			Source: "numa_node of the device (sysfs); gate numa", Brings: []string{"sender-cpu", "receiver-cpu", "single-flow"},
		},
		{
			Cause: "firewall-cost", TCP: true, UDP: true, Title: "the firewall costs too much", Judge: func(f *diagnose.Flow) *diagnose.Outcome { return f.Either(firewall) },
			Seen:  "connection tracking dropped packets in the measured time, or its table is nearly full; long chains or bridged frames in it while a CPU is full",
			Apart: "the same with the test's ports accepted first, and not tracked", Mends: "notrack for the test's ports, sets for long chains", Effect: "CPU for each packet",
			Source: "/proc/net/stat/nf_conntrack; gates conntrack, firewall-rules, bridge-netfilter", Brings: []string{"sender-cpu", "receiver-cpu", "single-flow", "loss"},
		},
		{
			Cause: "vswitch", TCP: true, UDP: true, Title: "the virtual switch is full", Judge: func(f *diagnose.Flow) *diagnose.Outcome { return f.Either(vswitch) },
			Seen:  "a thread that moves guests' packets (vhost) fills a CPU of the hypervisor, in the measured time 90% of it or more; packets were dropped at the guest's port and did not find its ring full; between two guests of one host a third passes, or less, of what one carries against itself (possible)",
			Apart: "the guests' CPUs have time left; a ring that was full is ring-overflow, a port that is held to a rate is a shaper", Mends: "multi-queue vhost, a context for each device, SR-IOV", Effect: "one thread a guest, or one for all",
			Source: "causes.md; gate virtual-switch; net.droppedTx, net.droppedRx of ESXi; drops of a tap", Brings: []string{"loss"},
		},
		{
			Cause: "netqueue-off", TCP: true, UDP: true, Title: "NetQueue of the hypervisor is off", Judge: func(f *diagnose.Flow) *diagnose.Outcome { return f.Either(NetQueue) },
			Seen:  "ESXi's kernel option netNetqueueEnabled is FALSE; likely where all packets of the uplink come by queue 0, or the rate falls with more guests; all of them by queue 0 of several alone is possible",
			Apart: "queues of their own for more guests carry more", Mends: "netNetqueueEnabled TRUE, and a reboot", Effect: "5 to 6 of 9.5 Gb/s (A-02)",
			Source: "checklist A-02, C-27",
		},
	}
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

func governor(e *diagnose.End) *diagnose.Outcome {
	gates := Conditions(e.Flow, "cpu-governor", e.Name)
	if len(gates) == 0 {
		return Told(e, "cpu-governor")
	}
	o := Condition(e, gates[0])
	if !WorksFully(e) {
		return o.Beside()
	}
	if c := e.Facts; c != nil && c.CPU != nil && c.CPU.CurrentHz != nil && c.CPU.MaxHz != nil && float64(*c.CPU.CurrentHz) < 0.7*float64(*c.CPU.MaxHz) {
		o.Confidence = measure.Likely
		o.By(diagnose.Below(e.Proof("clock of the fastest CPU when it was read", float64(*c.CPU.CurrentHz), "Hz"), 0.7*float64(*c.CPU.MaxHz)))
	}
	return o
}

// fastRate is where memory of another node begins to cost, in bit/s.
const fastRate = 10e9

func numa(e *diagnose.End) *diagnose.Outcome {
	if gates := Conditions(e.Flow, "numa-remote", e.Name); len(gates) > 0 {
		bps, _ := e.Flow.Goodput()
		return Symptom(Condition(e, gates[0]), WorksFully(e) && bps > fastRate)
	}
	if o := remoteThreads(e); o != nil {
		return o
	}
	return Told(e, "numa-remote")
}

// remoteThreads judges the CPUs that the end's threads are bound to against
// the node of the adapter; nil where nothing is to be said of them.
func remoteThreads(e *diagnose.End) *diagnose.Outcome {
	if e.Face == nil || e.Face.NUMANode == nil || e.Facts == nil || len(e.Facts.NUMA) < 2 {
		return nil
	}
	var local []int
	for _, n := range e.Facts.NUMA {
		if n.Node == *e.Face.NUMANode {
			local = n.CPUs
		}
	}
	for _, s := range e.Streams() {
		if s.CPU == nil || len(local) == 0 || slices.Contains(local, *s.CPU) {
			continue
		}
		bps, _ := e.Flow.Goodput()
		return Symptom(diagnose.Possible("%s thread runs on CPU %d, and its adapter is at NUMA node %d", e.Owner(), *s.CPU, *e.Face.NUMANode).At(e.OnCPU(*s.CPU)).
			By(e.Proof("CPU of the thread", float64(*s.CPU), ""), e.Proof("numa_node of the adapter", float64(*e.Face.NUMANode), "")).
			Mend(diagnose.Advise(e, "bind it to a CPU of that node: -A with one of "+unit.List(local))), WorksFully(e) && bps > fastRate)
	}
	return nil
}

func firewall(e *diagnose.End) *diagnose.Outcome {
	drops := 0.0
	var counted []measure.Proof
	for _, name := range []string{"Conntrack.Drop", "Conntrack.EarlyDrop", "Conntrack.InsertFailed"} {
		if n, ok := e.Counter(name); ok && n > 0 {
			drops += n
			counted = append(counted, diagnose.Above(e.Proof(name, n, "packets"), 0))
		}
	}
	gates := Conditions(e.Flow, "firewall-cost", e.Name)
	if drops > 0 {
		o := diagnose.Possible("connection tracking of the %s dropped %.0f packets", e.Place, drops).At(e.Where()).By(counted...)
		o.Mend(e.Remedy(e.Mender().Tracking()))
		if e.Flow.Blame(o, drops); o.Confidence == measure.Certain { // connections of others are dropped first
			o.Confidence = measure.Likely
		}
		return o
	}
	if len(gates) == 0 {
		return Told(e, "firewall-cost")
	}
	// Two ends of one kernel: a packet is judged on the CPU where it was sent.
	works := WorksFully(e) || e.Flow.OnSameCPUs() && WorksFully(e.Other())
	return Symptom(Condition(e, gates[0]), gates[0].ID != "conntrack" && works)
}

func switchSeen(e *diagnose.End) *diagnose.Outcome {
	if e.Flow.OnOneMachine() {
		return diagnose.No("no link lies between the ends")
	}
	if gates := Conditions(e.Flow, "vswitch", e.Name); len(gates) > 0 {
		return Symptom(Condition(e, gates[0]), e.Flow.IsAll() == nil && !e.IsFull())
	}
	if e.Facts != nil && e.Facts.Hypervisor != nil && *e.Facts.Hypervisor != "none" {
		return diagnose.Missing("threads of the hypervisor's switch", fmt.Sprintf("the %s is a guest: --hypervisor URL asks its host", e.Place))
	}
	return Told(e, "vswitch")
}

func netQueueSeen(e *diagnose.End) *diagnose.Outcome {
	if e.Facts == nil {
		return e.Lacks("facts of the host")
	}
	if e.Facts.OS != nil && *e.Facts.OS == "esxi" {
		if v, told := setting(e.Facts, "netNetqueueEnabled"); told && isOff(v) {
			return diagnose.Possible("NetQueue of the %s is off", e.Place).At(e.Where()).
				By(measure.Proof{EndPoint: e.Name, Counter: "kernel option netNetqueueEnabled", Value: 0, Note: "its default is TRUE"}).
				Mend(e.Remedy(e.Mender().Queues(e.FaceName())))
		}
		if !tellsChanges(e.Facts) {
			return e.Lacks("settings_changed")
		}
		return diagnose.No("netNetqueueEnabled of the %s has its default", e.Place)
	}
	if e.Facts.Hypervisor != nil && *e.Facts.Hypervisor == "vmware" {
		return diagnose.Missing("ESXi's kernel option netNetqueueEnabled", fmt.Sprintf("the %s is a guest: --hypervisor URL asks its host", e.Place))
	}
	return nil // only ESXi has it
}
