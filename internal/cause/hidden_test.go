package cause

import (
	"strings"
	"testing"
	"time"

	"thru/internal/cause/diagnose"
	"thru/internal/measure"
)

// onKind makes both ends of a flow guests.
func onKind(kind string) func(*measure.Document) {
	return func(d *measure.Document) {
		for i := range d.EndPoints {
			d.EndPoints[i].Facts.Hypervisor = &kind
		}
	}
}

// inOneKernel makes both ends network namespaces of one guest.
func inOneKernel(d *measure.Document) {
	for i := range d.EndPoints {
		f := d.EndPoints[i].Facts
		f.Hostname, f.Kernel, f.Memory, f.CPUModel = new("vm"), new("6.18"), new(int64(1<<34)), new("CPU")
	}
}

// TestUnseen: a cause that the guest's host can have without the guest seeing it is at most likely until the host
// is queried; what the guest's own counters show stays certain.
func TestUnseen(t *testing.T) {
	policed := made{bps: 55e6, rtt: 20 * time.Millisecond, base: 20 * time.Millisecond, againPct: 1, flight: 138e3, cwnd: 140e3, window: 8e6}.
		document(datagramTrial(diagnose.UdpBelow, 49e6, 0, 0), datagramTrial(diagnose.UdpThrice, 165e6, 40, 0))
	queue := made{bps: 94e6, rtt: 60 * time.Millisecond, base: 20 * time.Millisecond, againPct: 0.05, flight: 700e3, cwnd: 705e3, window: 8e6}.
		document(datagramTrial(diagnose.UdpAbove, 103e6, 9, 38*time.Millisecond), experiment(diagnose.EightStreams, 94e6))
	lossy := made{bps: 7e6, rtt: 20 * time.Millisecond, base: 20 * time.Millisecond, againPct: 1, flight: 17e3, cwnd: 18e3, window: 8e6}.
		document(datagramTrial(diagnose.UdpBelow, 6.5e6, 1, 0))
	for cause, d := range map[string]*measure.Document{"policer": policed, "shaper": queue, "loss": lossy} {
		for _, x := range []struct {
			name string
			edit func(*measure.Document)
			want string
		}{
			{"no guests", onKind("none"), measure.Certain},
			{"guests of KVM", onKind("kvm"), measure.Likely},
			{"guests of ESXi", onKind("vmware"), measure.Likely},
			{"one guest", func(d *measure.Document) { onKind("none")(d); d.EndPoints[1].Facts.Hypervisor = new("xen") }, measure.Likely},
			{"namespaces of one guest", func(d *measure.Document) { onKind("kvm")(d); inOneKernel(d) }, measure.Certain},
		} {
			x.edit(d)
			if got := first(t, d); got != cause+" "+x.want {
				t.Errorf("%s, %s: %s, want %s", cause, x.name, got, x.want)
			}
			f := d.Cells[0].Findings[0]
			if x.want == measure.Likely && !strings.HasPrefix(f.Next, "check with the hypervisor (--hypervisor URL) whether the host of") {
				t.Errorf("%s, %s: next is %q", cause, x.name, f.Next)
			}
			if trial, more := Next(d, 0, nil); more {
				t.Errorf("%s, %s: %s is to tell what no experiment can", cause, x.name, trial.ID)
			}
			for i := range d.EndPoints {
				d.EndPoints[i].Facts = linux(d.EndPoints[i].Name)
			}
		}
	}
}

// TestUnseenTime: if a guest cannot see its host take its CPUs away, that may explain a full CPU.
func TestUnseenTime(t *testing.T) {
	guest := func(kind, system string) hostsEdit {
		return func(h *hosts) {
			for i := range h.doc.EndPoints {
				h.doc.EndPoints[i].Facts.Hypervisor, h.doc.EndPoints[i].Facts.OS = &kind, &system
			}
		}
	}
	full := sending(97, 1)
	judgeHosts(t, "sender-cpu", []hostsRow{
		{"a guest of ESXi", []hostsEdit{full, guest("vmware", "linux")}, "likely", ""},
		{"a guest of Hyper-V", []hostsEdit{full, guest("hyperv", "linux")}, "likely", ""},
		{"a guest of something", []hostsEdit{full, guest("unknown hypervisor", "linux")}, "likely", ""},
		{"a guest of KVM", []hostsEdit{full, guest("kvm", "linux")}, "certain", ""},
		{"a guest of KVM that has no steal", []hostsEdit{full, guest("kvm", "freebsd")}, "likely", ""},
		{"the other end is one", []hostsEdit{full, func(h *hosts) { h.doc.EndPoints[1].Facts.Hypervisor = new("vmware") }}, "certain", ""},
		{"its host says that it takes none", []hostsEdit{full, belowEnds(idle)}, "certain", ""},
		{"its host says that it takes much", []hostsEdit{full, belowEnds(counts("vm-a", "0", measure.CounterReady, 45))}, "likely", ""},
		{"its host was asked, and does not tell", []hostsEdit{full, belowEnds()}, "likely", ""},
		{"the guest sees that much is taken", []hostsEdit{sending(50, 1), onCore(0, 0), guest("kvm", "linux"), func(h *hosts) {
			h.sender.Host.CPUs[0] = measure.CPU{System: 55, Steal: 44, Idle: 1}
		}}, "likely", ""},
	})
	judgeHosts(t, "cpu-limit", []hostsRow{
		{"a guest of ESXi", []hostsEdit{guest("vmware", "linux")}, "missing", "--hypervisor URL"},
		{"a guest of KVM", []hostsEdit{guest("kvm", "linux")}, "none", ""},
	})
}

// TestHypervisorDelays: packets wait because the host delays the receiver's virtual CPU, and its switch drops them: that
// is no shaper.
func TestHypervisorDelays(t *testing.T) {
	d := made{bps: 900e6, rtt: 9 * time.Millisecond, base: 300 * time.Microsecond, againPct: 0.03, flight: 1e6, cwnd: 1.05e6, window: 8e6}.
		document(datagramTrial(diagnose.UdpAbove, 990e6, 9, 8*time.Millisecond), experiment(diagnose.EightStreams, 905e6))
	v := vcenter()
	for _, g := range []string{"vm-a", "vm-b"} {
		overTime(g, "4000", measure.CounterRxDropped, time.Second, 0, 0, 0, 0, 0)(&v)
		overTime(g, "4000", measure.CounterTxDropped, time.Second, 0, 0, 0, 0, 0)(&v)
		held := map[string]float64{"vm-a": 0, "vm-b": 50}[g]
		overTime(g, "0", measure.CounterReady, time.Second, held, held, held, held, held)(&v)
		overTime(g, "0", measure.CounterLimited, time.Second, held, held, held, held, held)(&v)
	}
	onKind("vmware")(d)
	d.Inventories = []measure.Inventory{v}
	d.Cells[0].Runs[0].StartedAt = began()
	for i := range d.EndPoints {
		d.EndPoints[i].Placement = &measure.Placement{Source: v.Source, Guest: v.Guests[i].ID, Host: v.Guests[i].Host, NIC: "Network adapter 1"}
	}
	if got := first(t, d); got != "cpu-limit likely" || outcomeOf(d.Cells[0].Diagnosis, "shaper") != measure.Likely {
		t.Errorf("a receiver that its limit holds back: %s; %+v", got, d.Cells[0].Findings)
	}
	for i := range d.Inventories[0].Series {
		if s := &d.Inventories[0].Series[i]; s.Counter == measure.CounterReady || s.Counter == measure.CounterLimited {
			for j := range s.Samples {
				s.Samples[j].Value = 0
			}
		}
	}
	if got := first(t, d); got != "shaper certain" {
		t.Errorf("hosts that say that they hold nothing back: %s; %+v", got, d.Cells[0].Findings)
	}
}
