package cause

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"thru/internal/measure"
)

func ready(pct float64) func(*measure.Inventory) {
	return counts("vm-b", "0", measure.CounterReady, pct)
}

func limited(pct float64) func(*measure.Inventory) {
	return counts("vm-b", "0", measure.CounterLimited, pct)
}

func costop(pct float64) func(*measure.Inventory) {
	return counts("vm-b", "", measure.CounterCoStop, pct)
}

// idle is the sender's host, without a fault.
func idle(v *measure.Inventory) {
	counts("vm-a", "0", measure.CounterReady, 0.4)(v)
	counts("vm-a", "0", measure.CounterLimited, 0)(v)
}

func TestHypervisorSteal(t *testing.T) {
	full := reading(97, 1)
	judgeHosts(t, "cpu-steal", []hostsRow{
		{"a healthy host", []hostsEdit{belowEnds(idle, ready(0.8), costop(0.1)), full}, "no", "esx2 made the virtual CPUs of the receiver wait only 0.8%"},
		{"ready, CPU free", []hostsEdit{belowEnds(idle, ready(7))}, "possible beside", "esx2 makes the virtual CPUs of the receiver wait 7% of the time: 96 virtual CPUs share its 40 CPUs"},
		{"ready, CPU full", []hostsEdit{belowEnds(idle, ready(7)), full}, "possible", ""},
		{"much", []hostsEdit{belowEnds(idle, ready(14)), full}, "likely", ""},
		{"much, CPU free", []hostsEdit{belowEnds(idle, ready(14))}, "possible", ""},
		{"very much, the limit not counted", []hostsEdit{belowEnds(ready(40)), full}, "likely", ""},
		{"very much, and no limit", []hostsEdit{belowEnds(idle, ready(40), limited(0)), full}, "certain", "40%"},
		{"a limit's time is not counted", []hostsEdit{belowEnds(idle, ready(40), limited(38)), full}, "no", "2%"},
		{"the CPU is full by its host's count", []hostsEdit{belowEnds(idle, ready(30), limited(0), counts("vm-b", "0", measure.CounterUsed, 65))}, "certain", ""},
		{"co-stop", []hostsEdit{belowEnds(idle, ready(1), costop(6)), full}, "likely", "6%"},
		{"few CPUs to run on", []hostsEdit{belowEnds(idle, ready(14), guestB(func(g *measure.Guest) { g.Affinity = []int{3} })), full}, "likely", "its 4 virtual CPUs may use only 1"},
		{"link full", []hostsEdit{belowEnds(idle, ready(40), limited(0)), full, linkShare(96)}, "no", "link is full"},
		{"two samples are not there", []hostsEdit{belowEnds(overTime("vm-b", "0", measure.CounterReady, 20*time.Second, 40)), full}, "missing", "vsphere://vc reported no cpu.ready_pct"},
		{"of another virtual CPU", []hostsEdit{belowEnds(idle, ready(45), limited(0), counts("vm-b", "2", measure.CounterReady, 0.3)), full, onCore(0, 2)}, "no", "0.3%"},
		{"of a virtual CPU that it was not told of", []hostsEdit{belowEnds(idle, ready(45), limited(0)), full, onCore(0, 2)}, "missing", "CPUs to which its threads are bound"},
		{"of one of four, and the thread may use any", []hostsEdit{belowEnds(idle, ready(44), limited(0), counts("vm-b", "1", measure.CounterReady, 0), counts("vm-b", "2", measure.CounterReady, 0), counts("vm-b", "3", measure.CounterReady, 0)), full}, "likely", "11%"},
		{"very much, CPU free", []hostsEdit{belowEnds(idle, ready(40))}, "likely", ""},
		{"a short test", []hostsEdit{belowEnds(overTime("vm-a", "0", measure.CounterReady, 20*time.Second, 40, 40, 40)), full}, "missing", "fewer than two samples of 20"},
		{"a run that waited its turn", []hostsEdit{belowEnds(idle, ready(14)), full, func(h *hosts) {
			r := &h.cell.Runs[0]
			r.StartedAt, r.WaitedNs, r.MeasuredFrom = began().Add(-10*time.Minute), int64(9*time.Minute), new(began())
		}}, "likely", ""},
		{"only samples of another time", []hostsEdit{belowEnds(idle, func(v *measure.Inventory) {
			ready(40)(v)
			for i := range v.Series[len(v.Series)-1].Samples {
				p := &v.Series[len(v.Series)-1].Samples[i]
				p.EndedAt = p.EndedAt.Add(time.Minute)
			}
		}), full}, "missing", "fewer than two samples"},
		{"absurd values", []hostsEdit{belowEnds(idle, overTime("vm-b", "0", measure.CounterReady, sampled, math.NaN(), -4, math.Inf(1), 1e300)), full}, "missing", "fewer than two samples"},
		{"not placed", []hostsEdit{belowEnds(idle), unplacedB("two guests have its UUID"), full}, "missing", "two guests have its UUID"},
		{"nobody asked", []hostsEdit{full}, "no", "not a virtual machine"},
		{"what KVM took, seen from both sides", []hostsEdit{belowEnds(onKVM, idle, ready(30), limited(0)), full, func(h *hosts) {
			h.receiver.Streams[0].CPU, h.receiver.Host.CPUs[0] = new(0), measure.CPU{System: 68, Steal: 30, Idle: 2}
		}}, "certain", "esx2"},
		{"steal, and a host that says no", []hostsEdit{belowEnds(onKVM, idle, ready(0.5), limited(0)), full, func(h *hosts) {
			h.receiver.Streams[0].CPU, h.receiver.Host.CPUs[0] = new(0), measure.CPU{System: 68, Steal: 30, Idle: 2}
		}}, "possible", "but esx2 made"},
	})
	judgeHosts(t, "cpu-steal", []hostsRow{
		{"KVM without a quota", []hostsEdit{belowEnds(onKVM, ready(40), guestB(func(g *measure.Guest) { g.CPUShare = nil })), full}, "certain", ""},
		{"KVM, the limit of its whole group", []hostsEdit{belowEnds(onKVM, ready(40), counts("vm-b", "", measure.CounterLimited, 38), guestB(func(g *measure.Guest) { g.CPUQuota = new(0.5) })), full}, "no", "2%"},
		{"the source says why", []hostsEdit{belowEnds(idle, func(v *measure.Inventory) {
			v.NotChecked = []measure.NotChecked{{Fact: "counters of vm-x", Why: "other"}, {Fact: "counters of vm-b, esx7", Why: "no sample lies within the test"}}
		}), full}, "missing", "reported no cpu.ready_pct for it: no sample lies within the test"},
	})
	h := twoHosts(belowEnds(idle, ready(40), limited(0)), full, waitsUnread(8<<20))
	Diagnose(h.doc)
	f := h.cell.Findings
	brought := func(x measure.Finding) bool {
		return x.Cause == "receiver-cpu" && x.BecauseOf == "cpu-steal" && x.Confidence == measure.Likely
	}
	if len(f) < 2 || f[0].Cause != "cpu-steal" || f[0].Where.Below != "esx2" || !slices.ContainsFunc(f, brought) {
		t.Fatalf("a reader whose host is full: %+v", f)
	}
	if p := f[0].Evidence[0]; p.Counter != "ready time (native cpu.ready_pct) of virtual CPU 0" {
		t.Errorf("evidence %+v", p)
	}
	if r := f[0].Fix; r == nil || !strings.Contains(r.Advice, "reserve CPU for vm-b") || r.EndPoint != "esx2" {
		t.Errorf("remedy %+v", f[0].Fix)
	}
}

func TestLimit(t *testing.T) {
	full := reading(97, 1)
	hasLimit := guestB(func(g *measure.Guest) { g.CPUShare = &measure.Allocation{Limited: new(true), Limit: new(int64(2e9))} })
	quota := func(cpus float64) func(*measure.Inventory) {
		return guestB(func(g *measure.Guest) { g.CPUShare, g.CPUQuota = nil, new(cpus) })
	}
	used := func(pct float64) func(*measure.Inventory) { return counts("vm-b", "", measure.CounterUsed, pct) }
	judgeHosts(t, "cpu-limit", []hostsRow{
		{"nobody asked", []hostsEdit{full}, "none", ""},
		{"no limit", []hostsEdit{belowEnds(), full}, "no", "no CPU limit is set for vm-a; no CPU limit is set for vm-b"},
		{"a limit, nothing counted", []hostsEdit{belowEnds(hasLimit), full}, "possible beside", "a CPU limit of 2 GHz is set for vm-b; no counter shows whether it was used up"},
		{"a limit, not reached", []hostsEdit{belowEnds(hasLimit, limited(0.2)), full}, "no", "0.2%"},
		{"a limit, reached", []hostsEdit{belowEnds(hasLimit, ready(42), limited(40)), full}, "certain", "a CPU limit of 2 GHz throttles vm-b: it stopped the virtual CPUs 40% of the time"},
		{"and CPUs are short, too", []hostsEdit{belowEnds(hasLimit, ready(60), limited(40)), full}, "likely", ""},
		{"a little, CPU full", []hostsEdit{belowEnds(hasLimit, ready(9), limited(7)), full}, "likely", ""},
		{"a little, CPU free", []hostsEdit{belowEnds(hasLimit, ready(5), limited(3))}, "possible beside", ""},
		{"very much, CPU free", []hostsEdit{belowEnds(hasLimit, ready(51), limited(50))}, "likely", ""},
		{"of another virtual CPU", []hostsEdit{belowEnds(hasLimit, ready(42), limited(40), counts("vm-b", "2", measure.CounterReady, 0.1), counts("vm-b", "2", measure.CounterLimited, 0.1)), full, onCore(0, 2)}, "no", "0.1%"},
		{"of a resource pool", []hostsEdit{belowEnds(ready(42), limited(40)), full}, "certain", "of its resource pool or another parent"},
		{"KVM, none", []hostsEdit{belowEnds(onKVM, guestB(func(g *measure.Guest) { g.CPUShare = nil }), used(200)), full}, "no", "no CPU limit is set for vm-b"},
		{"KVM, not read", []hostsEdit{belowEnds(onKVM, guestB(func(g *measure.Guest) {
			g.CPUShare, g.NotChecked = nil, []measure.NotChecked{{Fact: "cpu_quota_cpus", Why: "not allowed"}}
		})), full}, "missing", "reported no cpu.limited_pct"},
		{"KVM, used up", []hostsEdit{belowEnds(onKVM, quota(0.5), used(49)), full}, "likely", "a CPU limit of 0.5 CPUs throttles vm-b"},
		{"KVM, used up and counted", []hostsEdit{belowEnds(onKVM, quota(0.5), used(49), ready(51), limited(50)), full}, "certain", ""},
		{"KVM, not used up", []hostsEdit{belowEnds(onKVM, quota(2), used(120)), full}, "no", "no limit stopped"},
		{"KVM, a quota of nothing", []hostsEdit{belowEnds(onKVM, quota(math.NaN()), used(120)), full}, "missing", ""},
		{"link full", []hostsEdit{belowEnds(hasLimit, ready(42), limited(40)), full, linkShare(96)}, "no", "link is full"},
		{"not placed", []hostsEdit{belowEnds(), unplacedB("it is in no inventory")}, "missing", "it is in no inventory"},
	})
	for name, x := range map[string]struct {
		edit func(*measure.Inventory)
		want string
	}{
		"libvirt":   {onKVM, "virsh schedinfo vm-b --live --set vcpu_quota=-1 global_quota=-1"},
		"odd name":  {func(v *measure.Inventory) { onKVM(v); v.Guests[1].Name = "x; rm -rf" }, "virsh schedinfo GUEST --live"},
		"no number": {func(v *measure.Inventory) { onKVM(v); v.Product = "Proxmox VE 8.2" }, "virsh"},
		"Proxmox": {func(v *measure.Inventory) {
			onKVM(v)
			v.Product, v.Guests[1].ID = "Proxmox VE 8.2", "100"
			for i := range v.Series {
				v.Series[i].Of = strings.Replace(v.Series[i].Of, "vm-b", "100", 1)
			}
		}, "qm set 100 --cpulimit 0"},
	} {
		h := twoHosts(belowEnds(quota(0.5), used(49), ready(51), limited(50), x.edit), full)
		Diagnose(h.doc)
		f := h.cell.Findings
		if len(f) == 0 || f[0].Cause != "cpu-limit" || f[0].Fix == nil || len(f[0].Fix.Commands) != 1 || !strings.HasPrefix(f[0].Fix.Commands[0], x.want) || f[0].Fix.EndPoint != "esx2" {
			t.Errorf("%s: %+v", name, f)
		}
		for _, y := range f[1:] {
			if y.Cause == "receiver-cpu" && y.BecauseOf != "cpu-limit" {
				t.Errorf("%s: a full CPU because of %q", name, y.BecauseOf)
			}
		}
	}
}

func TestHypervisorMemory(t *testing.T) {
	mem := func(counter string, x float64) func(*measure.Inventory) { return counts("vm-b", "", counter, x) }
	judgeHosts(t, "memory-pressure", []hostsRow{
		{"none", []hostsEdit{belowEnds(counts("vm-a", "", measure.CounterBalloon, 0), mem(measure.CounterBalloon, 0), mem(measure.CounterMemWait, 0))}, "no", "reclaimed no memory from the receiver"},
		{"a balloon of before", []hostsEdit{belowEnds(mem(measure.CounterBalloon, 1<<30))}, "possible beside", "vm-b lost 1 GiB to its balloon driver"},
		{"swapped out before", []hostsEdit{belowEnds(mem(measure.CounterSwapped, 1<<30))}, "possible beside", "vm-b has 1 GiB swapped out"},
		{"read back now", []hostsEdit{belowEnds(mem(measure.CounterSwapped, 1<<30), mem(measure.CounterSwapIn, 4e6))}, "possible", "memory of vm-b is read back from disk at 3.81 MiB per second"},
		{"waits", []hostsEdit{belowEnds(mem(measure.CounterMemWait, 4))}, "likely", "vm-b waited for memory 4% of the time"},
		{"virtual CPUs wait", []hostsEdit{belowEnds(counts("vm-b", "0", measure.CounterSwapWait, 0.1), counts("vm-b", "1", measure.CounterSwapWait, 6))}, "likely", "vm-b waited 6% of the time for memory to be read back from disk"},
		{"waits long", []hostsEdit{belowEnds(mem(measure.CounterMemWait, 30))}, "likely", ""},
		{"waits long, and has its CPUs", []hostsEdit{belowEnds(mem(measure.CounterMemWait, 30), ready(1), limited(0))}, "certain", "esx2"},
		{"waits, link full", []hostsEdit{belowEnds(mem(measure.CounterMemWait, 30)), linkShare(96)}, "possible beside", ""},
		{"not counted", []hostsEdit{belowEnds()}, "missing", "reported no mem.latency_pct"},
		{"not placed", []hostsEdit{belowEnds(), unplacedB("it is in no inventory")}, "missing", ""},
		{"nobody asked", nil, "no", "had enough memory"},
	})
}
