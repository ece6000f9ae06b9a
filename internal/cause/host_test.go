package cause

import (
	"strings"
	"testing"

	"thru/internal/cause/diagnose"
	"thru/internal/cause/knob"
	"thru/internal/measure"
)

// atBoth edits the evidence of both ends.
func atBoth(edit func(*measure.Evidence)) hostsEdit {
	return func(h *hosts) { edit(h.sender); edit(h.receiver) }
}

// throttled is a quota that stopped its groups for this share of the time, over all CPUs, in 60 of 100 periods.
func throttled(pct float64) hostsEdit {
	return func(h *hosts) {
		h.receiver.Host.Quota = &measure.QuotaSpan{CPUs: 0.2, Periods: 100, Throttled: 60, ThrottledNs: int64(pct * hostsTime / 100)}
	}
}

func quotaOfFacts(h *hosts) { h.doc.EndPoints[1].Facts.Cgroup.QuotaCPUs = new(0.5) }

func TestQuotaBinds(t *testing.T) {
	judgeHosts(t, "cpu-quota", []hostsRow{
		{"none", nil, "no", "has no CPU quota"},
		{"used up a little", []hostsEdit{throttled(9), reading(80, 15)}, "no", "throttled the receiver's thread only 9% of the time"},
		{"used up at times", []hostsEdit{throttled(11), reading(80, 15)}, "likely", "0.2 CPUs throttles the receiver 11% of the time"},
		{"used up mostly", []hostsEdit{throttled(60), reading(30, 65)}, "certain", ""},
		{"used up mostly, of a thread with time to spare", []hostsEdit{throttled(60), reading(10, 60)}, "likely", ""},
		{"used up at times, of a thread with time to spare", []hostsEdit{throttled(30), reading(10, 60)}, "possible", ""},
		{"the smaller part of what the thread waits for full CPUs", []hostsEdit{throttled(20), reading(30, 65), fullCores}, "possible", ""},
		{"the greater part of what it waits while CPUs are full", []hostsEdit{throttled(30), reading(30, 50), fullCores}, "likely", ""},
		{"by others of the group", []hostsEdit{throttled(60), reading(96, 2)}, "no", "2% of the time"},
		{"by others of the group, on many CPUs", []hostsEdit{throttled(700), reading(90, 9)}, "no", "9% of the time"},
		{"the thread waits for CPUs that are full", []hostsEdit{throttled(60), reading(30, 65), fullCores}, "likely", ""},
		{"the thread waits for others, and little for the quota", []hostsEdit{throttled(5), reading(30, 65)}, "no", "5% of the time"},
		{"its threads are not known", []hostsEdit{throttled(60), func(h *hosts) { h.receiver.Streams[0].WaitNs = nil }}, "likely", ""},
		{"a guest whose host may take the CPU", []hostsEdit{throttled(60), reading(30, 65), func(h *hosts) { h.doc.EndPoints[1].Facts.Hypervisor = new("hyperv") }}, "likely", ""},
		{"no period", []hostsEdit{func(h *hosts) { h.receiver.Host.Quota = &measure.QuotaSpan{CPUs: 0.2} }}, "no", ""},
		{"more time than passed", []hostsEdit{throttled(1e9), reading(30, 65)}, "certain", "65% of the time"},
		{"link full", []hostsEdit{throttled(60), reading(30, 65), linkShare(96)}, "no", "link is full"},
		{"not counted", []hostsEdit{quotaOfFacts}, "missing", "0.5 CPUs"},
		{"facts not read", []hostsEdit{func(h *hosts) {
			h.doc.EndPoints[1].Facts.Cgroup = nil
			h.doc.EndPoints[1].Facts.NotChecked = []measure.NotChecked{{Fact: "cgroup", Why: "no control groups are mounted"}}
		}}, "missing", "no control groups are mounted"},
		{"other systems", []hostsEdit{func(h *hosts) {
			for i := range h.doc.EndPoints {
				h.doc.EndPoints[i].Facts.Cgroup, h.doc.EndPoints[i].Facts.OS = nil, new("freebsd")
			}
		}}, "none", ""},
		{"no evidence", []hostsEdit{unseenHosts}, "missing", ""},
	})
	h := twoHosts(throttled(60), reading(30, 65), waitsUnread(8<<20))
	Diagnose(h.doc)
	if f := h.cell.Findings; len(f) < 2 || f[0].Cause != "cpu-quota" || f[1].Cause != "receiver-cpu" || f[1].BecauseOf != "cpu-quota" {
		t.Errorf("a reader that a quota stops: %+v", f)
	}
}

func TestSteal(t *testing.T) {
	stealing := func(pct, system float64) hostsEdit {
		return func(h *hosts) {
			h.doc.EndPoints[0].Facts.Hypervisor = nil
			h.sender.Host.CPUs[1] = measure.CPU{Core: 1, System: system, Steal: pct, Idle: 100 - pct - system}
			h.sender.Streams[0].CPU = new(1)
		}
	}
	free := func(h *hosts) { h.sender.Streams[0].CPU = nil }
	guestOf := func(kind string) hostsEdit { return func(h *hosts) { h.doc.EndPoints[0].Facts.Hypervisor = &kind } }
	judgeHosts(t, "cpu-steal", []hostsRow{
		{"no guest", nil, "no", "not a virtual machine"},
		{"none", []hostsEdit{stealing(1, 50)}, "no", "1%"},
		{"some, of a CPU that is free", []hostsEdit{stealing(8, 50)}, "possible beside", ""},
		{"some, of a full one", []hostsEdit{stealing(8, 90), sending(97, 1)}, "possible", ""},
		{"much", []hostsEdit{stealing(30, 68), sending(97, 1)}, "likely", "30% of the sender's CPU 1"},
		{"most", []hostsEdit{stealing(55, 44), sending(97, 1)}, "certain", ""},
		{"link full", []hostsEdit{stealing(55, 44), sending(97, 1), linkShare(96)}, "no", ""},
		{"of another CPU", []hostsEdit{stealing(60, 5), sending(98, 1), onCore(0, 0)}, "no", "0% of the sender's CPU 0"},
		{"of one CPU, and the thread may use any", []hostsEdit{stealing(60, 39), sending(97, 1), free}, "possible", "15% of the sender's CPUs"},
		{"of all CPUs", []hostsEdit{sending(44, 1), free, func(h *hosts) {
			h.doc.EndPoints[0].Facts.Hypervisor = new("kvm")
			coresOf(h.sender, measure.CPU{System: 44, Steal: 55, Idle: 1})
		}}, "certain", "55% of the sender's CPUs"},
		{"of the CPU that takes the packets", []hostsEdit{onCore(0, 0), func(h *hosts) {
			h.doc.EndPoints[1].Facts.Hypervisor = new("kvm")
			h.receiver.Host.CPUs[2] = measure.CPU{Core: 2, SoftIRQ: 64, Steal: 35, Idle: 1}
		}}, "likely", "35% of the receiver's CPU 2"},
		{"of a kind that does not see it", []hostsEdit{stealing(0, 99), sending(97, 1), guestOf("vmware")}, "missing", "--hypervisor URL"},
		{"of a system that does not see it", []hostsEdit{stealing(0, 99), sending(97, 1), guestOf("kvm"), func(h *hosts) { h.doc.EndPoints[0].Facts.OS = new("freebsd") }}, "missing", "--hypervisor URL"},
		{"not read", []hostsEdit{stealing(0, 0), func(h *hosts) { h.sender.Host.CPUs = nil }}, "missing", ""},
	})
}

func TestMemoryPressure(t *testing.T) {
	counted := func(name string, n uint64) hostsEdit {
		return func(h *hosts) { h.receiver.Host.Proto[name] = n }
	}
	swapped := func(pages uint64) hostsEdit {
		return func(h *hosts) { h.receiver.Host.Swap = &measure.SwapSpan{InPages: pages / 2, OutPages: pages / 2} }
	}
	judgeHosts(t, "memory-pressure", []hostsRow{
		{"none", nil, "no", ""},
		{"a small buffer prunes", []hostsEdit{counted("TcpExt.PruneCalled", 500)}, "no", ""},
		{"entered", []hostsEdit{counted("TcpExt.TCPMemoryPressures", 1)}, "likely", "short of memory"},
		{"entered with the link full", []hostsEdit{counted("TcpExt.TCPMemoryPressures", 1), linkShare(96)}, "likely beside", ""},
		{"swaps a little", []hostsEdit{swapped(1000)}, "no", ""},
		{"swaps", []hostsEdit{swapped(1200)}, "possible", "swapped"},
		{"a condition", []hostsEdit{warns("memory", "memory-pressure", "a", "100 MiB of 4 GiB memory can be had")}, "possible beside", "100 MiB"},
		{"not read", []hostsEdit{atBoth(func(e *measure.Evidence) { e.Host.Proto = nil })}, "missing", ""},
	})
}

// TestConditions: a condition does not bind if its symptom is not in the run.
func TestConditions(t *testing.T) {
	full := sending(97, 1)
	for _, cause := range []string{"cpu-governor", "emulated-nic", "wrong-driver", "lro-forwarding", "interrupt-moderation", "too-few-queues", "numa-remote", "firewall-cost", "offloads-off", "rss-not-spreading"} {
		judgeHosts(t, cause, []hostsRow{
			{"warned of", []hostsEdit{warns("x", cause, "a", "it is so")}, "possible beside", "it is so"},
			{"warned of at the other end", []hostsEdit{warns("x", cause, "b", "it is so")}, "possible beside", "it is so"},
			{"warned of, link full", []hostsEdit{warns("x", cause, "a", "it is so"), full, linkShare(96)}, "possible beside", ""},
			{"passed", []hostsEdit{gateOf("x", cause, "a", "it is well", measure.GatePass), gateOf("x", cause, "b", "it is well", measure.GatePass)}, "no", "it is well"},
			{"not checked", []hostsEdit{gateOf("x", cause, "a", "the fact", measure.GateNotChecked)}, "missing", "the fact"},
			{"no facts", []hostsEdit{func(h *hosts) { h.doc.EndPoints[0].Facts, h.doc.EndPoints[1].Facts = nil, nil }}, "missing", ""},
		})
	}
	of := func(cause string) hostsEdit { return warns("x", cause, "a", "it is so") }
	judgeHosts(t, "offloads-off", []hostsRow{
		{"of the sender, which is full", []hostsEdit{lacksOffloads("a", "TX checksum of eth0: off", knob.TXChecksum), full}, "likely", ""},
		{"of both ways", []hostsEdit{lacksOffloads("a", "TX checksum, RX checksum of eth0: off", knob.TXChecksum, knob.RXChecksum), full}, "likely", ""},
		{"of what the sender receives", []hostsEdit{lacksOffloads("a", "RX checksum of eth0: off", knob.RXChecksum), full}, "possible beside", ""},
		{"of another system", []hostsEdit{lacksOffloads("a", "LSO of Ethernet 2: off", "LSO"), full}, "likely", ""},
	})
	judgeHosts(t, "emulated-nic", []hostsRow{{"a CPU full", []hostsEdit{of("emulated-nic"), full}, "likely", ""}})
	judgeHosts(t, "wrong-driver", []hostsRow{{"a CPU full", []hostsEdit{of("wrong-driver"), full}, "possible beside", ""}})
	clock := func(hz int64) hostsEdit {
		return func(h *hosts) {
			h.doc.EndPoints[0].Facts.CPU = &measure.Processors{CurrentHz: &hz, MaxHz: new(int64(3e9))}
		}
	}
	judgeHosts(t, "cpu-governor", []hostsRow{
		{"a CPU full", []hostsEdit{of("cpu-governor"), full}, "possible", ""},
		{"a CPU full at a low clock", []hostsEdit{of("cpu-governor"), full, clock(2e9)}, "likely", ""},
		{"a CPU full at a high clock", []hostsEdit{of("cpu-governor"), full, clock(2.9e9)}, "possible", ""},
	})
	fast := func(h *hosts) { h.cell.Runs[0].Goodput = new(20e9) }
	judgeHosts(t, "numa-remote", []hostsRow{
		{"a CPU full, slow", []hostsEdit{of("numa-remote"), full}, "possible beside", ""},
		{"a CPU full, fast", []hostsEdit{of("numa-remote"), full, fast}, "likely", ""},
		{"threads elsewhere", []hostsEdit{full, fast, onCore(3, 0), twoNodes}, "likely", "CPU 3"},
		{"threads at the node", []hostsEdit{full, fast, onCore(1, 0), twoNodes, gateOf("numa", "numa-remote", "a", "eth0 is at NUMA node 0", measure.GatePass)}, "no", ""},
	})
	judgeHosts(t, "firewall-cost", []hostsRow{
		{"long chains, a CPU full", []hostsEdit{warns("firewall-rules", "firewall-cost", "a", "a chain of 900 rules"), full}, "likely", ""},
		{"table nearly full, a CPU full", []hostsEdit{warns("conntrack", "firewall-cost", "a", "90%"), full}, "possible beside", ""},
		{"drops and loss", []hostsEdit{func(h *hosts) { h.receiver.Host.Proto["Conntrack.Drop"] = 12 }, sentAgain(50)}, "possible beside", "dropped 12 packets"},
		{"drops and as much loss", []hostsEdit{func(h *hosts) { h.receiver.Host.Proto["Conntrack.Drop"] = 4000 }, sentAgain(5000)}, "likely", "dropped 4000 packets"},
		{"drops, nothing lost", []hostsEdit{func(h *hosts) { h.receiver.Host.Proto["Conntrack.InsertFailed"] = 12 }}, "possible beside", ""},
	})
}

func twoNodes(h *hosts) {
	f := h.doc.EndPoints[0].Facts
	f.NUMA = []measure.NUMANode{{Node: 0, CPUs: []int{0, 1}}, {Node: 1, CPUs: []int{2, 3}}}
	f.Interfaces[0].NUMANode = new(0)
}

func TestHypervisor(t *testing.T) {
	guest := func(kind string) hostsEdit {
		return func(h *hosts) { h.doc.EndPoints[0].Facts.Hypervisor = &kind }
	}
	esxi := func(changed map[string]string) hostsEdit {
		return func(h *hosts) { h.doc.EndPoints[0].Facts.OS, h.doc.EndPoints[0].Facts.Changed = new("esxi"), changed }
	}
	judgeHosts(t, "vswitch", []hostsRow{
		{"no guest", nil, "none", ""},
		{"a guest", []hostsEdit{guest("kvm")}, "missing", "is a guest"},
		{"vhost full", []hostsEdit{warns("virtual-switch", "vswitch", "a", "vhost 95%")}, "likely", "vhost"},
		{"vhost full, and a CPU", []hostsEdit{warns("virtual-switch", "vswitch", "a", "vhost 95%"), sending(97, 1)}, "possible beside", ""},
		{"one machine", []hostsEdit{guest("kvm"), func(h *hosts) { h.sender.PeerAddr = "127.0.0.1:5202" }}, "no", ""},
	})
	judgeHosts(t, "netqueue-off", []hostsRow{
		{"Linux", nil, "none", ""},
		{"a guest of ESXi", []hostsEdit{guest("vmware")}, "missing", "netNetqueueEnabled"},
		{"off", []hostsEdit{esxi(map[string]string{"netNetqueueEnabled": "FALSE"})}, "possible", "NetQueue"},
		{"on", []hostsEdit{esxi(nil)}, "no", "default"},
	})
}

// TestOldDocuments: a document without gates is judged by its facts.
func TestOldDocuments(t *testing.T) {
	h := twoHosts(sending(97, 1), func(h *hosts) {
		h.doc.Gates = nil
		h.doc.EndPoints[0].Facts.Interfaces[0].Offloads = map[string]bool{"tcp-segmentation-offload": false, "generic-segmentation-offload": false}
	})
	r, _ := diagnose.RuleOf(theCatalogue(), "offloads-off")
	o := r.Apply(diagnose.NewFlow(theCatalogue(), h.doc, h.cell))
	if o == nil || o.State != diagnose.Holds || o.Fix == nil || len(o.Fix.Commands) != 1 || !strings.Contains(o.Fix.Commands[0], "ethtool -K eth0 tso on gso on") {
		t.Errorf("offloads that are off in the facts alone: %+v", o)
	}
}
