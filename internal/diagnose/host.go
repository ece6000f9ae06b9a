package diagnose

import (
	"fmt"
	"slices"

	"thru/internal/gate"
	"thru/internal/measure"
	"thru/internal/unit"
)

// hostRules are the causes of conditions of a host that may cost something.
func hostRules() []Rule {
	return []Rule{
		{
			Cause: "cpu-governor", TCP: true, UDP: true, Title: "the CPUs clock down", judge: func(f *flow) *outcome { return f.either(governor) },
			Seen:  "a governor that saves power; likely where a CPU is full and its clock was below 70% of its highest",
			Apart: "the same at the governor performance", Mends: "the governor performance", Effect: "5 to 30%",
			Source: "Linux cpufreq.rst; gate governor", Brings: []string{"sender-cpu", "receiver-cpu", "single-flow"},
		},
		{
			Cause: "numa-remote", TCP: true, UDP: true, Title: "the adapter is at another NUMA node", judge: func(f *flow) *outcome { return f.either(numa) },
			Seen:  "threads or interrupts on CPUs of another node than the adapter's; likely where a CPU is full above 10 Gb/s",
			Apart: "the same on CPUs of the adapter's node (-A)", Mends: "CPUs of the adapter's node", Effect: "10 to 40% at 40 Gb/s and more",
			Source: "numa_node of the device (sysfs); gate numa", Brings: []string{"sender-cpu", "receiver-cpu", "single-flow"},
		},
		{
			Cause: "firewall-cost", TCP: true, UDP: true, Title: "the firewall costs too much", judge: func(f *flow) *outcome { return f.either(firewall) },
			Seen:  "connection tracking dropped packets in the measured time, or its table is nearly full; long chains or bridged frames in it while a CPU is full",
			Apart: "the same with the test's ports accepted first, and not tracked", Mends: "notrack for the test's ports, sets for long chains", Effect: "CPU for each packet",
			Source: "/proc/net/stat/nf_conntrack; gates conntrack, firewall-rules, bridge-netfilter", Brings: []string{"sender-cpu", "receiver-cpu", "single-flow", "loss"},
		},
		{
			Cause: "vswitch", TCP: true, UDP: true, Title: "the virtual switch is full", judge: func(f *flow) *outcome { return f.either(vswitch) },
			Seen:  "a thread that moves guests' packets (vhost) fills a CPU of the hypervisor, in the measured time 90% of it or more; packets were dropped at the guest's port and did not find its ring full; between two guests of one host a third passes, or less, of what one carries against itself (possible)",
			Apart: "the guests' CPUs have time left; a ring that was full is ring-overflow, a port that is held to a rate is a shaper", Mends: "multi-queue vhost, a context for each device, SR-IOV", Effect: "one thread a guest, or one for all",
			Source: "causes.md; gate virtual-switch; net.droppedTx, net.droppedRx of ESXi; drops of a tap", Brings: []string{"loss"},
		},
		{
			Cause: "netqueue-off", TCP: true, UDP: true, Title: "NetQueue of the hypervisor is off", judge: func(f *flow) *outcome { return f.either(netQueue) },
			Seen:  "ESXi's kernel option netNetqueueEnabled is FALSE; likely where all packets of the uplink come by queue 0, or the rate falls with more guests; all of them by queue 0 of several alone is possible",
			Apart: "queues of their own for more guests carry more", Mends: "netNetqueueEnabled TRUE, and a reboot", Effect: "5 to 6 of 9.5 Gb/s (A-02)",
			Source: "checklist A-02, C-27",
		},
	}
}

// conditions are the gates of a cause at an end point, "" for the path, that
// are not passed: of the document, and where it has none those of its facts.
func (f *flow) conditions(cause, endPoint string) []measure.Gate {
	return slices.DeleteFunc(f.judgedGates(), func(g measure.Gate) bool {
		return g.Cause != cause || g.EndPoint != endPoint || g.Status != measure.GateWarn && g.Status != measure.GateFail
	})
}

// judgedGates are all gates of the document; judged anew from its facts where
// it is of a version that kept none. Those of what lies below an end are left
// out: the rules look at the inventory itself.
func (f *flow) judgedGates() []measure.Gate {
	if len(f.doc.Gates) > 0 {
		return slices.DeleteFunc(slices.Clone(f.doc.Gates), func(g measure.Gate) bool { return gate.IsBelow(g.ID) })
	}
	if f.anew == nil {
		s := gate.Subject{Path: f.path(), Streams: f.cell.Streams, UDP: f.isUDP()}
		for _, e := range f.ends() {
			if e.facts != nil {
				s.Ends = append(s.Ends, gate.End{Name: e.name, Facts: e.facts, Route: e.route(), Shared: f.cell.From == f.cell.To})
			}
		}
		f.anew = gate.Judge(s)
	}
	return slices.Clone(f.anew)
}

// route of the end towards the other; nil where it is not known.
func (e *end) route() *measure.Route {
	if e.seen == nil {
		return nil
	}
	return e.seen.Route
}

// told is what the gates say of a cause at this end where none of them warns:
// nil where it does not apply to this host.
func (e *end) told(cause string) *outcome {
	if e.facts == nil {
		return e.lacks("facts of the host")
	}
	var passed, open *measure.Gate
	all := e.flow.judgedGates()
	for i := range all {
		g := &all[i]
		switch {
		case g.Cause != cause || g.EndPoint != e.name:
		case g.Status == measure.GatePass && passed == nil:
			passed = g
		case g.Status == measure.GateNotChecked && open == nil:
			open = g
		}
	}
	switch {
	case open != nil:
		return missing(open.Fact, "it was not read")
	case passed != nil:
		return no("at the %s: %s", e.place, passed.Fact)
	}
	return nil
}

// condition is a gate that warns, as a cause that may cost something.
func (e *end) condition(g measure.Gate) *outcome {
	w := e.where()
	w.Interface = g.Interface
	o := possible("at the %s: %s", e.place, g.Fact).at(w)
	o.by(measure.Proof{EndPoint: e.name, Counter: "gate " + g.ID, Value: 1, Note: line(g.Fact)})
	return o.mend(remedyOf(g, e.facts))
}

// symptom makes a condition likely where this run shows what it brings, and
// leaves it beside the rate where not.
func (o *outcome) symptom(shown bool) *outcome {
	if shown {
		o.confidence = measure.Likely
		return o
	}
	return o.beside()
}

// worksFully tells that a CPU of the end is full while the flow could carry more.
func (e *end) worksFully() bool { return e.flow.isAll() == nil && e.isFull() }

func governor(e *end) *outcome {
	gates := e.flow.conditions("cpu-governor", e.name)
	if len(gates) == 0 {
		return e.told("cpu-governor")
	}
	o := e.condition(gates[0])
	if !e.worksFully() {
		return o.beside()
	}
	if c := e.facts; c != nil && c.CPU != nil && c.CPU.CurrentHz != nil && c.CPU.MaxHz != nil && float64(*c.CPU.CurrentHz) < 0.7*float64(*c.CPU.MaxHz) {
		o.confidence = measure.Likely
		o.by(below(e.proof("clock of the fastest CPU when it was read", float64(*c.CPU.CurrentHz), "Hz"), 0.7*float64(*c.CPU.MaxHz)))
	}
	return o
}

// fastRate is where memory of another node begins to cost, in bit/s.
const fastRate = 10e9

func numa(e *end) *outcome {
	if gates := e.flow.conditions("numa-remote", e.name); len(gates) > 0 {
		bps, _ := e.flow.goodput()
		return e.condition(gates[0]).symptom(e.worksFully() && bps > fastRate)
	}
	if o := e.remoteThreads(); o != nil {
		return o
	}
	return e.told("numa-remote")
}

// remoteThreads judges the CPUs that the end's threads are bound to against
// the node of the adapter; nil where nothing is to be said of them.
func (e *end) remoteThreads() *outcome {
	if e.face == nil || e.face.NUMANode == nil || e.facts == nil || len(e.facts.NUMA) < 2 {
		return nil
	}
	var local []int
	for _, n := range e.facts.NUMA {
		if n.Node == *e.face.NUMANode {
			local = n.CPUs
		}
	}
	for _, s := range e.streams() {
		if s.CPU == nil || len(local) == 0 || slices.Contains(local, *s.CPU) {
			continue
		}
		bps, _ := e.flow.goodput()
		return possible("%s thread runs on CPU %d, and its adapter is at NUMA node %d", e.owner(), *s.CPU, *e.face.NUMANode).at(e.onCPU(*s.CPU)).
			by(e.proof("CPU of the thread", float64(*s.CPU), ""), e.proof("numa_node of the adapter", float64(*e.face.NUMANode), "")).
			mend(advise(e, "bind it to a CPU of that node: -A with one of "+unit.List(local))).symptom(e.worksFully() && bps > fastRate)
	}
	return nil
}

func firewall(e *end) *outcome {
	drops := 0.0
	var counted []measure.Proof
	for _, name := range []string{"Conntrack.Drop", "Conntrack.EarlyDrop", "Conntrack.InsertFailed"} {
		if n, ok := e.counter(name); ok && n > 0 {
			drops += n
			counted = append(counted, above(e.proof(name, n, "packets"), 0))
		}
	}
	gates := e.flow.conditions("firewall-cost", e.name)
	if drops > 0 {
		o := possible("connection tracking of the %s dropped %.0f packets", e.place, drops).at(e.where()).by(counted...)
		o.mend(e.remedy(e.mender().Tracking()))
		if e.flow.blame(o, drops); o.confidence == measure.Certain { // connections of others are dropped first
			o.confidence = measure.Likely
		}
		return o
	}
	if len(gates) == 0 {
		return e.told("firewall-cost")
	}
	// Two ends of one kernel: a packet is judged on the CPU where it was sent.
	works := e.worksFully() || e.flow.onSameCPUs() && e.other().worksFully()
	return e.condition(gates[0]).symptom(gates[0].ID != "conntrack" && works)
}

func (e *end) switchSeen() *outcome {
	if e.flow.onOneMachine() {
		return no("no link lies between the ends")
	}
	if gates := e.flow.conditions("vswitch", e.name); len(gates) > 0 {
		return e.condition(gates[0]).symptom(e.flow.isAll() == nil && !e.isFull())
	}
	if e.facts != nil && e.facts.Hypervisor != nil && *e.facts.Hypervisor != "none" {
		return missing("threads of the hypervisor's switch", fmt.Sprintf("the %s is a guest: --hypervisor URL asks its host", e.place))
	}
	return e.told("vswitch")
}

func (e *end) netQueueSeen() *outcome {
	if e.facts == nil {
		return e.lacks("facts of the host")
	}
	if e.facts.OS != nil && *e.facts.OS == "esxi" {
		if v, told := setting(e.facts, "netNetqueueEnabled"); told && isOff(v) {
			return possible("NetQueue of the %s is off", e.place).at(e.where()).
				by(measure.Proof{EndPoint: e.name, Counter: "kernel option netNetqueueEnabled", Value: 0, Note: "its default is TRUE"}).
				mend(e.remedy(e.mender().Queues(e.faceName())))
		}
		if !tellsChanges(e.facts) {
			return e.lacks("settings_changed")
		}
		return no("netNetqueueEnabled of the %s has its default", e.place)
	}
	if e.facts.Hypervisor != nil && *e.facts.Hypervisor == "vmware" {
		return missing("ESXi's kernel option netNetqueueEnabled", fmt.Sprintf("the %s is a guest: --hypervisor URL asks its host", e.place))
	}
	return nil // only ESXi has it
}
