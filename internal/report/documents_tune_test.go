package report

import (
	"fmt"
	"math/rand/v2"

	"thru/internal/measure"
	"thru/internal/unit"
)

// The documents of `thru tune`, made by hand.

// tuneDocuments returns all of them by name.
func tuneDocuments() map[string]*measure.Document {
	return map[string]*measure.Document{
		"tuned": tunedTest(), "advised": advisedTest(), "unhelped": unhelpedTest(), "same": sameTest(), "restored": restoredTest(),
	}
}

// stateOf adds a cell of a state of a tuning between local and b, and returns its index.
func stateOf(d *measure.Document, from, to string, bps float64, findings ...measure.Finding) int {
	c := newCellFor(from, to, 4, bps)
	c.Group, c.Experiment = len(d.Cells), "tune-0"
	told(&c, findings...)
	c.Goodput.CI95Low, c.Goodput.CI95High, c.Goodput.Basis, c.Goodput.Runs = new(0.985*bps), new(1.015*bps), "runs", 3
	d.Cells = append(d.Cells, c)
	return c.Group
}

// against returns a comparison of a state with and without a change.
func against(what string, base, value, low, high float64, pairs int, outcome string) *measure.Comparison {
	change := 100 * (value/base - 1)
	return &measure.Comparison{Base: "before", Variant: "with", What: what, Groups: [2]int{4, 5}, Figure: "goodput_bps", Pairs: pairs, BaseValue: &base, Value: &value,
		ChangePct: &change, LowPct: &low, HighPct: &high, LevelPct: new(99.375), P: new(0.0039), Outcome: outcome, Reason: "with against before: " + unit.Change(change),
		Guardrails: []measure.Guardrail{{Name: "CPU per Gb/s", Unit: "pct_per_gbps", Base: new(41.2), Variant: new(39.8)}, {Name: "loss", Unit: "pct", Base: new(0.0), Variant: new(0.0)}}}
}

func rmemProposal() measure.Proposal {
	return measure.Proposal{ID: "tcp-rmem@b", Title: "receive windows of up to 25 MiB at b",
		Settings: []measure.Setting{{EndPoint: "b", Knob: "tcp-rmem", Value: "4096 131072 26214400"}}, Before: []measure.Setting{{EndPoint: "b", Knob: "tcp-rmem", Value: "4096 131072 212992"}},
		From: "local", To: "b", Cause: "receive-window", Why: "the window that b advertises is full: 208 KiB in 20.6 ms",
		Expect: "200 Mb/s: 25 MiB x 8 / 20.6 ms is more than the link", ExpectBps: new(200e6), Source: "RFC 7323, section 1.1", Risk: "up to 25 MiB of kernel memory for each connection",
		Commands: []measure.Commands{{EndPoint: "b", Platform: "linux", Set: []string{"sysctl -w net.core.rmem_max=26214400"}, Undo: []string{"sysctl -w net.core.rmem_max=212992"}, Verify: []string{"sysctl net.core.rmem_max"}}}}
}

func tsoProposal() measure.Proposal {
	return measure.Proposal{ID: "tso@b", Title: "TSO off at b (eth0)", Settings: []measure.Setting{{EndPoint: "b", Knob: "tso", Interface: "eth0", Value: "off"}}, Before: []measure.Setting{{EndPoint: "b", Knob: "tso", Interface: "eth0", Value: "on"}},
		From: "b", To: "local", Cause: "broken-tso", Why: "segments that TSO makes of b's data do not arrive, shorter ones do", Expect: "that data passes at all", Risk: "more CPU at b",
		Commands: []measure.Commands{{EndPoint: "b", Platform: "linux", Set: []string{"ethtool -K eth0 tso off"}, Undo: []string{"ethtool -K eth0 tso on"}}}}
}

func mtuProposal() measure.Proposal {
	return measure.Proposal{ID: "mtu@b", Title: "MTU of 9000 at b (eth0)", Settings: []measure.Setting{{EndPoint: "b", Knob: "mtu", Interface: "eth0", Value: "9000"}}, Before: []measure.Setting{{EndPoint: "b", Knob: "mtu", Interface: "eth0", Value: "1500"}},
		Gate: "mtu-agreement", Why: "local has 9000, b has 1500", Expect: "fewer packets: 5 to 12% if a CPU is full", Source: "checklist, line 23", Risk: "the switches between must carry 9000 bytes", Cuts: true,
		Commands: []measure.Commands{{EndPoint: "b", Platform: "linux", Set: []string{"ip link set dev eth0 mtu 9000"}, Undo: []string{"ip link set dev eth0 mtu 1500"}}}}
}

// tunedTest keeps three of six changes, and reaches its target.
func tunedTest() *measure.Document {
	d := newDocument("tune", "b", "--target", "150M")
	d.EndPoints[1].Name, d.ElapsedNs = "b", 412_000_000_000
	d.EndPoints[1].Knobs = []measure.KnobState{{Knob: "tcp-rmem", Value: "4096 131072 26214400", Possible: "4096 131072 2147483647"}, {Knob: "tso", Interface: "eth0", Value: "off", Possible: "on off"}, {Knob: "rx-ring", Interface: "eth0", Value: "256", Possible: "256", Refused: "the driver has no other"}}
	d.EndPoints[0].NoTune = "thru does not run as root here"
	d.Ended = "nothing that is left to try is expected to help"
	t := &measure.Tuning{TargetBps: 150e6, ExpectNs: 390e9, LevelPct: 99.375, Pairs: 9}
	found := []int{stateOf(d, "local", "b", 38.9e6, receiveWindow("b", "local", "b")), stateOf(d, "b", "local", 1.2e6, nothingFound())}
	windows := []int{stateOf(d, "local", "b", 181e6, nothingFound()), stateOf(d, "b", "local", 1.21e6, nothingFound())}
	whole := []int{stateOf(d, "local", "b", 181e6, fullLink()), stateOf(d, "b", "local", 186e6, fullLink())}
	t.Journey = []measure.Milestone{
		{Title: "as it was found", Cells: found, Findings: []string{"local -> b: the window that b advertises is full: 208 KiB in 20.6 ms", "b -> local: segments that TSO makes of b's data do not arrive"}, Causes: []string{"receive-window", "broken-tso"}},
		{Title: rmemProposal().Title, Attempt: new(0), Cells: windows, Findings: []string{"nothing was found that holds it back", "segments that TSO makes of b's data do not arrive"}, Causes: []string{"none", "broken-tso"}},
		{Title: tsoProposal().Title, Attempt: new(1), Cells: whole, Findings: []string{"the link is full: 95% of what MTU 1500 allows"}, Causes: []string{"link-rate", "link-rate"}},
	}
	t.Attempts = []measure.Attempt{
		{Proposal: rmemProposal(), Outcome: measure.Kept, Reason: "with against before: +365%", Comparison: against("local -> b", 38.9e6, 181e6, 340, 391, 9, measure.Improved), OtherDirection: against("b -> local", 1.2e6, 1.21e6, -1.2, 2.4, 9, measure.Undecided),
			Verified: []measure.Verification{{EndPoint: "b", What: "read back", Holds: new(true), Fact: "4096 131072 26214400"}, {EndPoint: "b", What: "window of the connection", Holds: new(true), Fact: "0.2 -> 6.2 MiB"}},
			Changed:  []measure.Changed{{Number: 3, Setting: measure.Setting{EndPoint: "b", Knob: "tcp-rmem", Value: "4096 131072 26214400"}, Before: "4096 131072 212992", Found: "4096 131072 26214400"}}, ElapsedNs: 61e9},
		{Proposal: tsoProposal(), Outcome: measure.Kept, Comparison: against("b -> local", 1.2e6, 186e6, 14000, 16100, 9, measure.Improved), ElapsedNs: 58e9,
			Verified: []measure.Verification{{EndPoint: "b", What: "size of the segments", Holds: new(true), Fact: "1514 bytes at most, 61 kB before"}}},
		{Proposal: measure.Proposal{ID: "test-congestion=bbr", Title: "bbr instead of cubic", Test: &measure.TestOptions{Congestion: "bbr", Flags: "-C bbr"}, Why: "0.02% of the segments are lost", Expect: "more where loss is random", From: "local", To: "b", Cause: "loss"}, Outcome: measure.Undone,
			Reason: "within 2%: it makes no difference", Comparison: against("local -> b", 181e6, 180.4e6, -1.1, 0.6, 9, measure.Equivalent), ElapsedNs: 40e9},
		{Proposal: measure.Proposal{ID: "backlog@b", Title: "a backlog of 4000 packets at b", Settings: []measure.Setting{{EndPoint: "b", Knob: "netdev-max-backlog", Value: "4000"}}, Gate: "softnet-drops", Why: "b has dropped 12 packets since its boot", Expect: "no drops"}, Outcome: measure.NotInUse,
			Reason: "it is set, and nothing uses it: undone", Verified: []measure.Verification{{EndPoint: "b", What: "length of the backlog", Holds: new(false), Fact: "RPS is off: no packet passes it"}}, ElapsedNs: 9e9},
		{Proposal: mtuProposal(), Outcome: measure.Declined, Reason: "it may cut the connection, and --yes was not given"},
		{Proposal: measure.Proposal{ID: "rx-ring@b", Title: "1024 receive descriptors at b (eth0)", Settings: []measure.Setting{{EndPoint: "b", Knob: "rx-ring", Interface: "eth0", Value: "1024"}}, Why: "the ring overflowed", Expect: "no drops"}, Outcome: measure.Foreign, Reason: "somebody else has set it to 512 meanwhile: left so"},
	}
	t.Attempts[0].Comparison.Guardrails[1] = measure.Guardrail{Name: "RTT under load", Unit: "ns", Base: new(20.6e6), Variant: new(34.1e6), Worse: true}
	t.Persistence = []measure.Persistence{
		{EndPoint: "b", Platform: "linux", Manager: "sysctl.d", File: "/etc/sysctl.d/90-thru.conf", Content: "net.ipv4.tcp_rmem = 4096 131072 26214400\n", Commands: []string{"sysctl --system"}, Undo: []string{"rm /etc/sysctl.d/90-thru.conf"}, Words: "read at boot by systemd-sysctl"},
		{EndPoint: "b", Platform: "linux", Manager: "systemd.link", File: "/etc/systemd/network/90-thru-eth0.link", Content: "[Match]\nOriginalName=eth0\n\n[Link]\nTCPSegmentationOffload=no\n", Commands: []string{"udevadm control --reload", "udevadm trigger -s net -c add"}},
	}
	t.Remains = []string{"local -> b: the link is full: 95% of what MTU 1500 allows", "b -> local: the same"}
	t.Advice = []measure.Proposal{mtuProposal()}
	t.Advice[0].OnlySaid = "it was declined"
	d.Tuning = t
	return d
}

// advisedTest is a dry run on a result: advice for Linux, FreeBSD and the test.
func advisedTest() *measure.Document {
	d := receiveWindowTest()
	d.Command, d.Arguments = "tune", []string{"tune", "result.json"}
	jumbo := mtuProposal()
	jumbo.Title, jumbo.ID = "MTU of 9000 at both ends", "mtu@b+mtu@local"
	jumbo.Commands = append(jumbo.Commands, measure.Commands{EndPoint: "local", Platform: "freebsd", Set: []string{"ifconfig vmx0 mtu 9000"}, Undo: []string{"ifconfig vmx0 mtu 1500"}, Words: "the switch first"})
	jumbo.OnlySaid = "thru changes no settings of FreeBSD"
	d.Tuning = &measure.Tuning{DryRun: true, Advice: []measure.Proposal{rmemProposal(), jumbo,
		{ID: "streams=4", Title: "4 streams instead of 1", Test: &measure.TestOptions{Streams: 4, Flags: "-P 4"}, Why: "one stream fills one window", Expect: "up to four times as much", ExpectBps: new(100e6)},
		{ID: "cpu-load@b", Title: "check process 7", Gate: "cpu-load", Why: "64% of the CPUs of b are busy", OnlySaid: "no setting of a host that thru knows cures it", Commands: []measure.Commands{{EndPoint: "b", Platform: "linux", Words: "check process 7"}}}}}
	return d
}

// unhelpedTest is a healthy path: nothing helps.
func unhelpedTest() *measure.Document {
	d := newDocument("tune", "b")
	d.EndPoints[1].Name, d.Ended = "b", "nothing that is left to try is expected to help"
	cells := []int{stateOf(d, "local", "b", 941e6, fullLink()), stateOf(d, "b", "local", 938e6, fullLink())}
	d.Tuning = &measure.Tuning{ExpectNs: 120e9, Pairs: 7, LevelPct: 97.5, Journey: []measure.Milestone{{Title: "as it was found", Cells: cells}},
		Attempts: []measure.Attempt{{Proposal: rmemProposal(), Outcome: measure.Undone, Reason: "none of 3 pairs of runs carried 2% more with it", Comparison: against("local -> b", 941e6, 940e6, -0.4, 0.2, 3, measure.Undecided), ElapsedNs: 21e9}}}
	d.Tuning.Attempts[0].Comparison.LowPct, d.Tuning.Attempts[0].Comparison.HighPct, d.Tuning.Attempts[0].Comparison.LevelPct = nil, nil, nil
	return d
}

// sameTest compares a state with itself sixty times.
func sameTest() *measure.Document {
	d := newDocument("tune", "b", "--aa", "60")
	d.EndPoints[1].Name = "b"
	cells := []int{stateOf(d, "local", "b", 941e6, fullLink())}
	d.Tuning = &measure.Tuning{Pairs: 7, LevelPct: 97.5, Journey: []measure.Milestone{{Title: "as it was found", Cells: cells}}}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 60 {
		change := random.Float64() - 0.5
		c := *against("local -> b", 941e6, 941e6*(1+change/100), change-0.8, change+0.8, 7, measure.Equivalent)
		if i%20 == 7 {
			c.Outcome = measure.Undecided
		}
		if i == 33 {
			c.Outcome, c.ChangePct, c.LowPct, c.HighPct = measure.Worse, new(-3.1), new(-4.0), new(-2.1)
		}
		d.Tuning.Attempts = append(d.Tuning.Attempts, measure.Attempt{Proposal: measure.Proposal{ID: fmt.Sprintf("a-a-%d", i+1), Title: fmt.Sprintf("the state with itself, %d of 60", i+1), Why: "to measure the false-positive rate of the comparison", Expect: "no difference"},
			Outcome: measure.Settled, Comparison: &c, ElapsedNs: 30e9})
	}
	return d
}

// restoredTest is a rollback that leaves one setting that somebody else changed.
func restoredTest() *measure.Document {
	d := newDocument("tune", "--rollback", "b")
	d.EndPoints[1].Name, d.Cells = "b", []measure.Cell{}
	change := func(n int64, knob, iface, value, before, outcome, why string) measure.Changed {
		return measure.Changed{Number: n, Setting: measure.Setting{EndPoint: "b", Knob: knob, Interface: iface, Value: value}, Before: before, Outcome: outcome, Error: why}
	}
	d.Tuning = &measure.Tuning{Restored: []measure.Changed{
		change(4, "rx-ring", "eth0", "1024", "256", measure.Foreign, "it is 512 now: somebody else has set it since"),
		change(3, "tso", "eth0", "off", "on", measure.Undone, ""),
		change(1, "tcp-rmem", "", "4096 131072 26214400", "4096 131072 212992", measure.Settled, ""),
	}}
	return d
}

// hostileTuning is what a host could forge.
func hostileTuning() *measure.Document {
	const evil = "\x1b[31m<script>alert(1)</script>\r\n\u202e\"'&\x00\u0085"
	d := tunedTest()
	p := measure.Proposal{ID: evil, Title: evil, Settings: []measure.Setting{{EndPoint: evil, Knob: evil, Interface: evil, Value: evil}}, Test: &measure.TestOptions{Flags: evil}, From: evil, To: evil, Cause: evil, Gate: evil, Why: evil, Expect: evil,
		ExpectBps: new(-1e300), Source: evil, Risk: evil, OnlySaid: evil, Cuts: true, Commands: []measure.Commands{{EndPoint: evil, Platform: evil, Set: []string{evil}, Undo: []string{evil}, Verify: []string{evil}, Words: evil}}}
	c := against(evil, -1e300, 1e300, -1e300, 1e300, -1, evil)
	c.Guardrails = []measure.Guardrail{{Name: evil, Unit: evil, Base: new(1e300), Variant: new(-1e300), Worse: true}}
	t := d.Tuning
	for i := range 300 {
		t.Attempts = append(t.Attempts, measure.Attempt{Proposal: p, Outcome: []string{evil, measure.Kept}[i%2], Reason: evil, Comparison: c, OtherDirection: c, Verified: []measure.Verification{{EndPoint: evil, What: evil, Fact: evil}}, ElapsedNs: -1})
		t.Advice = append(t.Advice, p)
		t.Journey = append(t.Journey, measure.Milestone{Title: evil, Attempt: new(-i), Cells: []int{-1, i, 1 << 40}, Findings: []string{evil}})
		t.Persistence = append(t.Persistence, measure.Persistence{EndPoint: evil, Platform: evil, Manager: evil, File: evil, Content: evil, Commands: []string{evil}, Undo: []string{evil}})
		t.Remains = append(t.Remains, evil)
		t.Restored = append(t.Restored, measure.Changed{Setting: p.Settings[0], Before: evil, Found: evil, Outcome: evil, Error: fmt.Sprint(i, evil)})
	}
	return d
}
