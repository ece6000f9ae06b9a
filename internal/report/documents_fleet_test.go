package report

import (
	"fmt"
	"time"

	"thru/internal/measure"
)

// Documents of plans, made by hand: many pairs, ladders of rungs, variants.

// pairCell returns one pair of a plan, without the evidence of its seconds.
func pairCell(group int, from, to string, streams int, bps float64) measure.Cell {
	c := newCellFor(from, to, streams, bps)
	c.Group, c.Runs = group, []measure.Run{{StartedAt: began(), Goodput: new(bps), Timing: &measure.Timing{StartNs: 1_012_000_000, EndNs: 11_013_000_000, BoundNs: 84_000}, Flows: []measure.Flow{}}}
	c.Fairness, c.Reconciled, c.MeanPacket, c.BDP, c.NeededWindow, c.RFC6349 = nil, nil, nil, nil, nil, nil
	return c
}

// failPair removes the figures of a cell.
func failPair(c *measure.Cell, why string) {
	*c = measure.Cell{From: c.From, To: c.To, Group: c.Group, Protocol: c.Protocol, Streams: c.Streams, Spec: c.Spec, Axes: c.Axes, AtOnce: c.AtOnce, Runs: []measure.Run{},
		Error: &measure.Error{Message: why, ExitCode: 1}}
}

// fleetDocument has end points with these names, and a plan with that many steps.
func fleetDocument(steps int, names ...string) *measure.Document {
	d := newDocument("run", "plan.yaml")
	d.EndPoints, d.Missing = nil, nil
	for i, n := range names {
		f := linuxFacts(n, 8)
		f.NotChecked = nil
		d.EndPoints = append(d.EndPoints, measure.EndPoint{Name: n, Addr: fmt.Sprintf("192.0.2.%d:5200", i+1), Thru: "0.1.0", Facts: f,
			Labels: map[string]string{"site": []string{"east", "west"}[i%2]}, ClockNs: new(int64(i * 1_300_000))})
	}
	d.Plan = &measure.Planned{Name: "acceptance", Run: "20260314T092653-1f2e", SHA256: "9b5b5c1e", Order: "simultaneous", Steps: steps, Done: steps, Began: []time.Time{began()}}
	return d
}

// shareOfHost returns a host's share of a group.
func shareOfHost(name string, flows int, sent, received, cores float64) measure.Share {
	s := measure.Share{Name: name, Flows: flows, CPU: &measure.CPUFigure{Pct: cores / 8 * 100, Cores: cores, MaxCore: 3, MaxCorePct: min(100, 61+cores*9)}, Memory: &measure.MemFigure{Used: new(int64(3 << 30)), Total: new(int64(16 << 30))}}
	if sent > 0 {
		s.SentBps = new(sent)
	}
	if received > 0 {
		s.ReceivedBps = new(received)
	}
	s.PerCoreBps = new((sent + received) / cores)
	return s
}

// groupOf sums up the cells of a group, as stat does.
func groupOf(d *measure.Document, group int, label string, axes ...measure.Axis) measure.Group {
	g := measure.Group{Group: group, Label: label, Axes: axes, Overlap: &measure.Overlap{Ns: 9_880_000_000, SkewNs: 1_210_000, BoundNs: 84_000, SharePct: 98.8}}
	total := 0.0
	sent, received, flows := map[string]float64{}, map[string]float64{}, map[string]int{}
	var names []string
	for i := range d.Cells {
		c := &d.Cells[i]
		if c.Group != group {
			continue
		}
		g.Cells++
		c.Axes = axes
		for _, n := range []string{c.From, c.To} {
			if flows[n]++; flows[n] == 1 {
				names = append(names, n)
			}
		}
		if c.Error != nil {
			g.Failed = append(g.Failed, measure.Failure{From: c.From, To: c.To, Error: c.Error.Message})
			continue
		}
		total += c.Goodput.Value
		sent[c.From], received[c.To] = sent[c.From]+c.Goodput.Value, received[c.To]+c.Goodput.Value
	}
	for i := range d.Cells {
		if d.Cells[i].Group == group {
			d.Cells[i].AtOnce = g.Cells
		}
	}
	g.Sum, g.Fairness = new(total*1.002), new(0.981)
	g.Aggregate = &measure.Figure{Value: total, Low: total * 0.99, High: total * 1.01, Runs: 3, Basis: "runs"}
	for i, n := range names {
		g.Hosts = append(g.Hosts, shareOfHost(n, flows[n], sent[n], received[n], 1.1+0.6*float64(i%4)))
	}
	g.Labels = []measure.Share{shareOfHost("site=east", g.Cells, total, total*0.4, 5.5), shareOfHost("site=west", g.Cells, total*0.3, total*0.6, 4.2)}
	return g
}

// meshTest is four hosts, each to each other at once, with 1 and with 4 streams; one was lost in the second
// step.
func meshTest() *measure.Document {
	names := []string{"a", "b", "c", "d"}
	d := fleetDocument(2, names...)
	for group, streams := range []int{1, 4} {
		for i, from := range names {
			for j, to := range names {
				if i == j {
					continue
				}
				c := pairCell(group, from, to, streams, (640e6+40e6*float64(streams))*wave(i*4+j, 0.09))
				c.Label = fmt.Sprintf("%d streams", streams)
				if group == 1 && i == 1 && j == 2 {
					*c.Goodput = measure.Figure{Value: 211e6, Low: 190e6, High: 260e6, Runs: 3, Basis: "runs"}
					c.Findings = []measure.Finding{{Cause: "receiver-cpu", Confidence: measure.Certain, Summary: "the receiver's CPU 3 is full", Where: measure.Where{Place: "receiver", EndPoint: "c"}}}
				}
				if group == 1 && (from == "d" || to == "d") {
					failPair(&c, "d was lost: no answer for 10 s")
				}
				d.Cells = append(d.Cells, c)
			}
		}
		d.Groups = append(d.Groups, groupOf(d, group, fmt.Sprintf("%d streams", streams), measure.Axis{Name: "streams", Value: fmt.Sprint(streams)}))
	}
	d.EndPoints[3].Lost = "no answer for 10 s"
	d.Error = &measure.Error{Message: "control: 6 pairs failed: d was lost", ExitCode: 1}
	return d
}

// manyToOneTest is eight senders to one receiver behind 10 Gb/s, with targets.
func manyToOneTest() *measure.Document {
	names := []string{"store"}
	for i := range 8 {
		names = append(names, fmt.Sprintf("web-%02d.east.example.org", i+1))
	}
	d := fleetDocument(1, names...)
	for i, n := range names[1:] {
		c := pairCell(0, n, "store", 4, 940e6*wave(i, 0.04))
		c.Ceiling = &measure.Ceiling{Bps: 9.415e9, LinkBps: 10e9, LinkFrom: "stated", LinkLayer: "l2", MTU: 1500, SharePct: 100 * c.Goodput.Value / 9.415e9}
		d.Cells = append(d.Cells, c)
	}
	d.Groups = []measure.Group{groupOf(d, 0, "many to one, 4 streams")}
	d.Findings = []measure.Finding{{Cause: "receiver-cpu", Confidence: measure.Certain, Summary: "the CPU 3 of store is full: it takes in all 8 flows", Where: measure.Where{Place: "receiver", EndPoint: "store"},
		Evidence: []measure.Proof{{EndPoint: "store", Counter: "/proc/stat, CPU 3 softirq", Value: 98.6, Unit: "pct", Threshold: new(95.0), Above: true}}}}
	d.Targets = []measure.Target{{What: "aggregate of 8 pairs", Wanted: 9e9, Got: new(7.52e9), Unit: "bps", Reason: "7.52 Gb/s is 16% short"},
		{What: "fairness of 8 pairs", Wanted: 0.9, Got: new(0.981), Unit: "fairness", Pass: true, Reason: "they share evenly"},
		{What: "RTT under load of web-01.east.example.org -> store", Wanted: 5e6, Unit: "ns", AtMost: true, Reason: "it was not measured"}}
	d.Verdict = &measure.Verdict{Pass: false, Required: 9e9, Reason: "aggregate of 8 pairs: 7.52 Gb/s is 16% short, and 1 more target"}
	return d
}

// rungsTest is a ladder of four rungs.
func rungsTest() *measure.Document {
	d := fleetDocument(32, "a", "b", "c", "d")
	d.Command, d.Arguments, d.Plan.Order = "ladder", []string{"ladder", "--same-host", "a,b", "--same-lan", "a,c", "--across", "a,d"}, "sequential"
	d.Ladder = &measure.Ladder{Notes: []string{"all rungs were measured with the same 8 cells"}}
	for i, r := range []struct {
		name, to string
		bps      float64
		link     int64
	}{{"localhost", "a", 52.1e9, 0}, {"virtual switch", "b", 20.2e9, 0}, {"LAN", "c", 11.8e9, 25e9}, {"interconnect", "d", 9.41e9, 10e9}} {
		for j, streams := range []int{1, 2, 4, 8, 1, 2, 4, 8} {
			window := int64(j/4) * (800 << 10)
			c := pairCell(8*i+j, "a", r.to, streams, r.bps*[]float64{0.61, 0.88, 1, 0.97}[j%4]*(1-0.04*float64(j/4)))
			c.Rung, c.Window, c.AtOnce = r.name, measure.Pair{Send: window, Recv: window}, 1
			d.Cells = append(d.Cells, c)
		}
		x := measure.Rung{Name: r.name, From: "a", To: r.to, Best: &measure.Figure{Value: r.bps, Low: r.bps, High: r.bps, Runs: 1}, Label: "4 streams, default window"}
		if i > 0 {
			below := *d.Ladder.Rungs[i-1].Best
			x.LossPct, x.LostBps = new(100*(1-r.bps/below.Value)), new(below.Value-r.bps)
		}
		if r.link > 0 {
			x.Ceiling = &measure.Ceiling{Bps: 0.9415 * float64(r.link), LinkBps: r.link, LinkFrom: "stated", MTU: 1500, SharePct: 100 * r.bps / (0.9415 * float64(r.link))}
		}
		d.Ladder.Rungs = append(d.Ladder.Rungs, x)
	}
	d.Ladder.Rungs[2].Limited, d.Ladder.Rungs[2].Why = true, "virtual switch carries 20.2 Gb/s, 0.86 times the ceiling of 23.5 Gb/s: 1.3 times are needed to tell the path from the machine"
	d.Ladder.Rungs[2].Verdict = &measure.Verdict{Share: 50.1, Required: 95, Reason: "LAN carries 11.8 Gb/s, 50.13% of the ceiling of 23.5 Gb/s at MTU 1500; 95% is required"}
	d.Ladder.Rungs[3].Verdict = &measure.Verdict{Pass: true, Share: 99.9, Required: 95, Reason: "interconnect carries 9.41 Gb/s, 99.95% of the ceiling of 9.41 Gb/s at MTU 1500; 95% is required"}
	d.Verdict = d.Ladder.Rungs[2].Verdict
	return d
}

// variantsTest compares two congestion controls.
func variantsTest() *measure.Document {
	d := fleetDocument(16, "a", "b")
	d.Plan.Order = "interleaved"
	for i, v := range []string{"cubic", "bbr"} {
		c := pairCell(i, "a", "b", 4, []float64{8.1e9, 9.07e9}[i])
		c.Axes, c.AtOnce = []measure.Axis{{Name: "variant", Value: v}}, 1
		c.Goodput = &measure.Figure{Value: c.Goodput.Value, Low: c.Goodput.Value * 0.97, High: c.Goodput.Value * 1.02, Runs: 8, Basis: "runs"}
		d.Cells = append(d.Cells, c)
		d.Groups = append(d.Groups, measure.Group{Group: i, Label: v, Axes: c.Axes, Cells: 1, Aggregate: c.Goodput, Sum: new(c.Goodput.Value),
			Hosts: []measure.Share{shareOfHost("a", 1, c.Goodput.Value, 0, 2.1), shareOfHost("b", 1, 0, c.Goodput.Value, 1.9)}})
	}
	d.Comparisons = []measure.Comparison{{Base: "cubic", Variant: "bbr", What: "a -> b", Groups: [2]int{0, 1}, Figure: "goodput_bps", Pairs: 8, BaseValue: new(8.1e9), Value: new(9.07e9),
		ChangePct: new(12.1), LowPct: new(9.3), HighPct: new(14.6), LevelPct: new(95.0), P: new(0.0078), Outcome: measure.Improved, Reason: "the whole interval lies above +2%",
		Guardrails: []measure.Guardrail{{Name: "RTT under load", Unit: "ns", Base: new(4.2e6), Variant: new(1.1e6)}, {Name: "sender CPU per Gb/s", Unit: "pct_per_gbps", Base: new(11.0), Variant: new(13.9), Worse: true},
			{Name: "loss", Unit: "pct", NotJudged: "of TCP only what was sent again is known"}}}}
	return d
}

// inTurnTest is a ring of many pairs, one after the other, that was interrupted.
func inTurnTest() *measure.Document {
	var names []string
	for i := range 30 {
		names = append(names, fmt.Sprintf("n%d", i+1))
	}
	d := fleetDocument(30, names...)
	d.Plan.Order, d.Plan.Done = "sequential", 28
	for i := range 28 {
		c := pairCell(i, names[i], names[(i+1)%30], 1, 9.36e9*wave(i, 0.006))
		c.AtOnce = 1
		if i == 11 {
			c.Goodput.Value = 1.02e9
		}
		d.Cells = append(d.Cells, c)
		d.Groups = append(d.Groups, measure.Group{Group: i, Label: "1 stream", Cells: 1, Sum: new(c.Goodput.Value)})
	}
	d.Error = &measure.Error{Message: "control: interrupted", ExitCode: 1}
	return d
}

// vcpuTest is the study of throughput by CPUs.
func vcpuTest() *measure.Document {
	d := fleetDocument(4, "a", "b")
	d.Command, d.Arguments = "ladder", []string{"ladder", "b", "--vcpus"}
	for i, cpus := range []int{1, 2, 4, 8} {
		streams := max(1, cpus/2)
		c := pairCell(i, "a", "b", streams, []float64{5.1e9, 7.2e9, 11.3e9, 19.2e9}[i])
		c.AtOnce, c.Axes = 1, []measure.Axis{{Name: "cpus", Value: fmt.Sprint(cpus)}, {Name: "streams", Value: fmt.Sprint(streams)}}
		d.Cells = append(d.Cells, c)
		d.Groups = append(d.Groups, measure.Group{Group: i, Label: fmt.Sprintf("%d CPUs", cpus), Axes: c.Axes, Cells: 1, Sum: new(c.Goodput.Value),
			Hosts: []measure.Share{shareOfHost("a", 1, c.Goodput.Value, 0, float64(cpus)*0.96), shareOfHost("b", 1, 0, c.Goodput.Value, float64(cpus)*0.9)}})
	}
	return d
}

// fleetDocuments returns the documents of plans, by name.
func fleetDocuments() map[string]*measure.Document {
	return map[string]*measure.Document{"mesh": meshTest(), "many-to-one": manyToOneTest(), "rungs": rungsTest(), "variants": variantsTest(), "in-turn": inTurnTest(), "vcpus": vcpuTest()}
}

// smallFleet is a mesh with targets and rungs, small enough for the fuzzer.
func smallFleet() *measure.Document {
	d := meshTest()
	d.Cells, d.EndPoints = d.Cells[16:20], d.EndPoints[3:]
	d.EndPoints[0].Facts = nil
	d.Groups = d.Groups[1:]
	d.Targets = manyToOneTest().Targets
	d.Ladder = rungsTest().Ladder
	return d
}

// manyPairs is a plan in which each host sends to the next each hosts at once.
func manyPairs(hosts, each int) *measure.Document {
	var names []string
	for i := range hosts {
		names = append(names, fmt.Sprintf("host-%03d.rack-%d.example.org", i, i/20))
	}
	d := fleetDocument(1, names...)
	for i := range hosts {
		for j := range each {
			c := pairCell(0, names[i], names[(i+j+1)%hosts], 1, 1e9*wave(i+j, 0.2))
			c.Warnings = []string{fmt.Sprintf("the clock of %s was set back", names[i])}
			c.Missing = []measure.NotChecked{{Fact: "streams.tcp of " + names[i], Why: "no answer from " + names[j]}}
			d.Cells = append(d.Cells, c)
		}
		d.Paths = append(d.Paths, measure.Path{From: names[i], To: names[(i+1)%hosts], FromAddr: "192.0.2.1", ToAddr: "192.0.2.2", RTT: &measure.PathRTT{P50: 23000, Samples: 100}})
		d.Gates = append(d.Gates, measure.Gate{ID: "mtu-path", EndPoint: names[i], Status: measure.GateWarn, Fact: "the path drops packets above 1400 bytes, and no router reports it",
			Why: "a black hole for segments of that size; the handshake passes and the data does not", Fix: []string{"ip link set dev eth0 mtu 1400"}, Risk: "all traffic of that interface uses smaller packets"})
	}
	d.Groups = []measure.Group{groupOf(d, 0, "all at once")}
	for i := range 300 {
		d.Targets = append(d.Targets, measure.Target{What: "pair " + names[i%hosts], Wanted: 1e9, Got: new(0.9e9), Unit: "bps", Reason: "it is 10% short"})
	}
	return d
}
