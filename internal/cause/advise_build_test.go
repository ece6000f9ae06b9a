package cause

import (
	"fmt"
	"strings"

	"thru/internal/cause/knob"
	"thru/internal/measure"
)

// advisedPair is the document of one TCP stream from a to b over 10 Gb/s and 20 ms, between two correctly
// configured Linux hosts, with changes.
func advisedPair(changes ...func(*measure.Document)) *measure.Document {
	route := &measure.Route{Interface: "eth0", MTU: 1500}
	sees := func() measure.DirectionFacts {
		return measure.DirectionFacts{Route: route, MTU: &measure.PathMTU{Bytes: 1500, Claimed: 1500}, Congestion: new("cubic")}
	}
	d := &measure.Document{
		EndPoints: []measure.EndPoint{{Name: "a", Facts: advisedFacts()}, {Name: "b", Facts: advisedFacts()}},
		Paths: []measure.Path{{From: "a", To: "b", FromAddr: "10.0.0.1", ToAddr: "10.0.0.2", RTT: &measure.PathRTT{P50: 20e6},
			Forward: sees(), Back: sees()}},
		Cells: []measure.Cell{cell("a", "b", 4e8)},
	}
	for _, c := range changes {
		c(d)
	}
	return d
}

func cell(from, to string, bps float64) measure.Cell {
	return measure.Cell{From: from, To: to, Protocol: measure.TCP, Streams: 1, IO: measure.IOCopy, Goodput: &measure.Figure{Value: bps},
		Spec: measure.Spec{From: from, To: to, Protocol: measure.TCP, Streams: 1}}
}

func advisedFacts() *measure.Facts {
	eth := measure.Interface{Name: "eth0", Kind: new("physical"), MTU: new(1500), MaxMTU: new(9710), SpeedBps: new(int64(10e9)), Queues: new(4), NUMANode: new(1),
		Offloads: map[string]bool{}, Channels: &measure.Channels{Combined: 4, CombinedMax: 8}, Rings: &measure.Rings{RX: 512, RXMax: 4096},
		Coalesce: &measure.Coalesce{RXNs: 600_000}, Pause: &measure.Pause{Autoneg: true, RX: true, TX: true}, Qdisc: new("fq_codel"),
		RSS: &measure.RSS{Table: 8, Queues: []int{8}, Fields: map[string][]string{"tcp4": {"src-ip", "dst-ip", "src-port", "dst-port"}, "udp4": {"src-ip", "dst-ip"}}}}
	for _, o := range knob.Offloads() {
		eth.Offloads[knob.Offload(o)] = o != knob.LRO
	}
	for n := range 4 {
		eth.IRQs = append(eth.IRQs, measure.IRQ{Number: 24 + n, Allowed: []int{0}, Effective: []int{0}})
	}
	return &measure.Facts{OS: new("linux"), Kernel: new("6.1.0"), Cores: new(8), Congestion: new("cubic"), CongAvail: []string{"reno", "cubic", "bbr"},
		CPU:  &measure.Processors{Usable: new(8), Governors: []string{"powersave"}, Available: []string{"performance", "powersave"}},
		NUMA: []measure.NUMANode{{Node: 0, CPUs: []int{0, 1, 2, 3}}, {Node: 1, CPUs: []int{4, 5, 6, 7}}},
		Sysctls: map[string]string{
			"net.ipv4.tcp_rmem": "4096\t131072\t67108864", "net.ipv4.tcp_wmem": "4096\t16384\t67108864", "net.core.rmem_max": "212992", "net.core.wmem_max": "212992",
			"net.ipv4.tcp_window_scaling": "1", "net.ipv4.tcp_sack": "1", "net.ipv4.tcp_timestamps": "1", "net.ipv4.tcp_mtu_probing": "0",
			"net.ipv4.tcp_slow_start_after_idle": "1", "net.ipv4.tcp_no_metrics_save": "0", "net.core.netdev_max_backlog": "1000", "net.core.netdev_budget": "300",
		},
		Interfaces: []measure.Interface{eth}}
}

// finds adds a finding to the direction from a to b: at its sender, its receiver or the path.
func finds(cause, place string, change ...func(*measure.Finding)) func(*measure.Document) {
	return func(d *measure.Document) {
		f := measure.Finding{Cause: cause, Confidence: measure.Certain, Summary: "it is " + cause,
			Where: measure.Where{Place: place, From: "a", To: "b", EndPoint: map[string]string{measure.AtSender: "a", measure.AtReceiver: "b"}[place]},
			Fix:   &measure.Fix{Advice: "mend " + cause}}
		for _, c := range change {
			c(&f)
		}
		d.Cells[0].Findings = append(d.Cells[0].Findings, f)
	}
}

// withGate adds a gate of a host.
func withGate(id, cause, at string) func(*measure.Document) {
	return func(d *measure.Document) {
		d.Gates = append(d.Gates, measure.Gate{ID: id, Cause: cause, EndPoint: at, Interface: map[bool]string{true: "eth0"}[cause != "receive-window"],
			Status: measure.GateWarn, Fact: "the fact of " + id, Why: "why it matters", Advice: "mend " + id})
	}
}

// sysctl changes one of a host's facts.
func sysctl(at int, name, value string) func(*measure.Document) {
	return func(d *measure.Document) { d.EndPoints[at].Facts.Sysctls[name] = value }
}

// withInterface changes the interface of a host.
func withInterface(at int, change func(*measure.Interface)) func(*measure.Document) {
	return func(d *measure.Document) { change(&d.EndPoints[at].Facts.Interfaces[0]) }
}

// withExperiment adds a measurement of the same traffic with one difference.
func withExperiment(experiment string, bps float64, change func(*measure.Cell)) func(*measure.Document) {
	return func(d *measure.Document) {
		c := cell("a", "b", bps)
		c.Experiment, c.Baseline = experiment, true
		change(&c)
		d.Cells = append(d.Cells, c)
	}
}

// knobs are the knobs that the agent of a host reports: "knob interface=value", optionally followed by "|possible"
// and "|possible|refused".
func knobs(at int, list ...string) func(*measure.Document) {
	return func(d *measure.Document) {
		for _, text := range list {
			key, value, _ := strings.Cut(text, "=")
			id, iface, _ := strings.Cut(key, " ")
			parts := append(strings.Split(value, "|"), "", "")
			d.EndPoints[at].Knobs = append(d.EndPoints[at].Knobs, measure.KnobState{Knob: id, Interface: iface, Value: parts[0], Possible: parts[1], Refused: parts[2]})
		}
	}
}

// sets words the settings of proposals, one proposal per line.
func sets(list []measure.Proposal) string {
	var lines []string
	for _, p := range list {
		var parts []string
		for _, s := range p.Settings {
			parts = append(parts, strings.TrimSpace(s.EndPoint+" "+s.Knob+" "+s.Interface)+"="+s.Value)
		}
		switch {
		case p.Test != nil:
			parts = append(parts, "test "+p.Test.Flags)
		case len(parts) == 0:
			parts = append(parts, "say "+p.Title)
		}
		line := strings.Join(parts, " + ")
		if p.OnlySaid != "" && len(p.Settings) > 0 {
			line += fmt.Sprintf(" (%s)", p.OnlySaid)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}
