package stat

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"thru/internal/measure"
	"thru/internal/unit"
)

// planned is a document of a plan with these cells as its first group.
func planned(cells ...measure.Cell) *measure.Document {
	return &measure.Document{Plan: &measure.Planned{Name: "test"}, Cells: cells}
}

// part is one flow of a group: one run that began this late, with a rate in Gb/s for each of its seconds.
type part struct {
	from, to string
	late     float64 // seconds
	gbps     []float64
	bound    int64 // of the clock, in ns
}

func (p part) cell() measure.Cell {
	c := measure.Cell{From: p.from, To: p.to, Protocol: measure.TCP, Streams: 1}
	c.Runs = []measure.Run{p.run(0)}
	Summarise(&c, nil, Link{})
	return c
}

func (p part) run(index int) measure.Run {
	const second = int64(measure.Bin)
	n := int64(len(p.gbps))
	receiver := &measure.Evidence{EndPoint: p.to, MeasuredNs: n * second, Streams: []measure.Stream{{}},
		Host: hostSpan(50, 30), Base: hostSpan(10, 10), Worker: &measure.Process{SystemNs: n * second / 4, ResidentB: 10 << 20}}
	for i, g := range p.gbps {
		bytes := int64(g * 1e9 / 8)
		receiver.Bins = append(receiver.Bins, measure.StreamBin{At: int64(i) * second, Span: second, Bytes: bytes})
		receiver.Bytes += bytes
	}
	sender := &measure.Evidence{EndPoint: p.from, Sends: true, MeasuredNs: n * second, Bytes: receiver.Bytes, Streams: []measure.Stream{{}},
		Host: hostSpan(40, 20), Base: hostSpan(10, 10), Worker: &measure.Process{SystemNs: n * second / 8, ResidentB: 8 << 20}}
	start := int64(p.late * 1e9)
	return measure.Run{Index: index, Flows: []measure.Flow{{From: p.from, To: p.to, Sender: sender, Receiver: receiver}},
		Timing: &measure.Timing{StartNs: start, EndNs: start + n*second, BoundNs: p.bound}}
}

func cellsOfParts(parts ...part) []measure.Cell { return unit.Mapped(parts, part.cell) }

// isAbout reports whether two figures are equal up to floating-point errors.
func isAbout(got *float64, want float64) bool {
	return got != nil && math.Abs(*got-want) <= math.Abs(want)*1e-9
}

// Two flows, the second of which starts two and a half seconds late: only the time in which both ran counts.
func TestGroupsOverlap(t *testing.T) {
	d := planned(cellsOfParts(
		part{"a", "c", 0, []float64{1, 1, 1, 2, 2, 2}, 1e6},
		part{"b", "d", 2.5, []float64{4, 4, 8, 8, 8, 8}, 2e6},
	)...)
	Groups(d)
	if len(d.Groups) != 1 {
		t.Fatalf("%d groups", len(d.Groups))
	}
	g := d.Groups[0]
	// From 2.5 s to 6 s: half a second of 1 and three of 2; two of 4 and one and a half of 8.
	want := (0.5*1 + 3*2 + 2*4 + 1.5*8) / 3.5 * 1e9
	if g.Aggregate == nil || !isAbout(&g.Aggregate.Value, want) {
		t.Errorf("aggregate %+v, want %g", g.Aggregate, want)
	}
	if !isAbout(g.Sum, 1.5e9+40e9/6) {
		t.Errorf("sum %v", *g.Sum)
	}
	if o := g.Overlap; o == nil || o.Ns != 3.5e9 || o.SkewNs != 2.5e9 || o.BoundNs != 3e6 || math.Abs(o.SharePct-100*3.5/6) > 1e-9 {
		t.Errorf("overlap %+v", o)
	}
	x, y := (0.5*1+3*2)/3.5, (2*4+1.5*8)/3.5
	if !isAbout(g.Fairness, (x+y)*(x+y)/2/(x*x+y*y)) {
		t.Errorf("fairness %v", *g.Fairness)
	}
	if len(g.Warnings) != 2 || !strings.Contains(g.Warnings[0], "2.5 s apart") || !strings.Contains(g.Warnings[1], "unfairly") {
		t.Errorf("warnings %q", g.Warnings)
	}
	// Three whole seconds from 2.5 s on.
	if a := g.Aggregate; !isAbout(&a.Low, 5.5e9) || !isAbout(&a.High, 10e9) || a.Runs != 1 {
		t.Errorf("range %+v", a)
	}
}

// The report of a group without compared clocks, without an overlap, and with requests only.
func TestGroupsWithoutAggregate(t *testing.T) {
	untimed := cellsOfParts(part{"a", "b", 0, []float64{1, 1}, 0}, part{"c", "d", 0, []float64{3, 3}, 0})
	untimed[1].Runs[0].Timing = nil
	apart := cellsOfParts(part{"a", "b", 0, []float64{1, 1}, 0}, part{"c", "d", 2, []float64{3, 3}, 0})
	asking := cellsOfParts(part{"a", "b", 0, []float64{1}, 0}, part{"c", "d", 0, []float64{1}, 0})
	for i := range asking {
		asking[i].Spec.Traffic = measure.RR
		asking[i].Runs[0].Flows[0].Sender.Streams[0].Requests = 1000
	}
	for name, tt := range map[string]struct {
		cells []measure.Cell
		why   string
		sum   float64
	}{
		"clocks not compared": {untimed, noClocks, 4e9},
		"one after the other": {apart, noOverlap, 4e9},
		"requests":            {asking, "requests and responses have no goodput", 0},
	} {
		d := planned(tt.cells...)
		Groups(d)
		g := d.Groups[0]
		if g.Aggregate != nil || whyMissing(g.Missing, "aggregate_bps") != tt.why {
			t.Errorf("%s: %+v, missing %v", name, g.Aggregate, g.Missing)
		}
		if (g.Sum == nil) != (tt.sum == 0) || tt.sum > 0 && !isAbout(g.Sum, tt.sum) {
			t.Errorf("%s: sum %v", name, g.Sum)
		}
		if tt.sum > 0 && !isAbout(g.Hosts[0].SentBps, 1e9) {
			t.Errorf("%s: host a %+v", name, g.Hosts[0])
		}
		if tt.sum == 0 && (g.Hosts[0].SentBps != nil || g.Hosts[0].CPU == nil) {
			t.Errorf("%s: host a %+v", name, g.Hosts[0])
		}
	}
}

// A host of several flows counts its machine's CPU once, and all its workers'.
func TestGroupsHosts(t *testing.T) {
	ones := []float64{1, 1, 1, 1}
	cells := cellsOfParts(part{"a", "hub", 0, ones, 0}, part{"b", "hub", 0, ones, 0}, part{"c", "hub", 0, ones, 0})
	cells[2].Runs[0].Flows[0].Receiver.Host = hostSpan(56, 30)
	d := planned(cells...)
	d.EndPoints = []measure.EndPoint{
		{Name: "a", Labels: map[string]string{"site": "east"}}, {Name: "b", Labels: map[string]string{"site": "east"}},
		{Name: "hub", Labels: map[string]string{"site": "west"}}, {Name: "idle", Labels: map[string]string{"site": "north"}},
	}
	Groups(d)
	g := d.Groups[0]
	if len(g.Hosts) != 4 || g.Hosts[3].Name != "hub" {
		t.Fatalf("hosts %+v", g.Hosts)
	}
	hub := g.Hosts[3]
	if hub.Flows != 3 || hub.SentBps != nil || !isAbout(hub.ReceivedBps, 3e9) {
		t.Errorf("hub %+v", hub)
	}
	// Busy 52 and 30 percent on average, 10 and 10 without: 0.62 cores. The workers took 0.75.
	if c := hub.CPU; c == nil || math.Abs(c.Pct-41) > 1e-9 || !isAbout(c.WorkerCores, 0.75) || !isAbout(&c.Cores, 0.75) || c.MaxCore != 0 || math.Abs(c.MaxCorePct-52) > 1e-9 {
		t.Errorf("hub's CPU %+v", hub.CPU)
	}
	if hub.PerCoreBps != nil {
		t.Errorf("hub's workers took more than its machine seems to have: %v per core", *hub.PerCoreBps)
	}
	if *hub.Memory.Worker != 30<<20 || *hub.Memory.Used != 4<<30 {
		t.Errorf("hub's memory %+v", hub.Memory)
	}
	a := g.Hosts[0]
	// 40+20 percent, 10+10 without: 0.4 cores for 1 Gb/s.
	if !isAbout(a.PerCoreBps, 2.5e9) || !isAbout(a.CPU.PctPerGbps, 40) {
		t.Errorf("a %+v", a)
	}
	if len(g.Labels) != 2 || g.Labels[0].Name != "site=east" || g.Labels[0].Flows != 2 || !isAbout(g.Labels[0].SentBps, 2e9) || !isAbout(&g.Labels[0].CPU.Cores, 0.8) || !isAbout(g.Labels[0].PerCoreBps, 2.5e9) {
		t.Errorf("labels %+v", g.Labels)
	}
	if a := g.Labels[0]; math.Abs(a.CPU.Pct-30) > 1e-9 || *a.Memory.Worker != 16<<20 {
		t.Errorf("east %+v %+v", a.CPU, a.Memory)
	}
	if w := g.Labels[1]; w.PerCoreBps != nil || w.CPU.PctPerGbps != nil {
		t.Errorf("the hub is all of west, and its cost is not known: %+v", w)
	}
}

// The cost of a test is known if it exceeds other work and the counters' tick: by the same rule for a cell, a
// host, a label and an A/B test.
func TestCostOfHosts(t *testing.T) {
	for name, tt := range map[string]struct {
		busy, idle float64 // percent of each of two cores
		want       bool
	}{
		"quiet":            {40, 5, true},
		"busy otherwise":   {95, 60, false},
		"a hair":           {11.5, 10, false},
		"less than before": {10, 20, false},
	} {
		c := part{"a", "b", 0, []float64{1, 1}, 0}.cell()
		for _, e := range []*measure.Evidence{c.Runs[0].Flows[0].Sender, c.Runs[0].Flows[0].Receiver} {
			e.Host, e.Base, e.Worker = hostSpan(tt.busy, tt.busy), hostSpan(tt.idle, tt.idle), nil
		}
		Summarise(&c, nil, Link{})
		d := planned(c)
		d.EndPoints = []measure.EndPoint{{Name: "a", Labels: map[string]string{"site": "east"}}}
		Groups(d)
		g := d.Groups[0]
		got := []bool{c.SenderCPU.PctPerGbps != nil, g.Hosts[0].PerCoreBps != nil, g.Hosts[0].CPU.PctPerGbps != nil, g.Labels[0].PerCoreBps != nil, cpuCost(newTeam([]*measure.Cell{&c})) != nil}
		for i, x := range got {
			if x != tt.want {
				t.Errorf("%s: figure %d: known %v", name, i, x)
			}
		}
	}
}

// A failed pair is named, and the others count; a repetition with fewer flows than the others does not.
func TestGroupsFailures(t *testing.T) {
	flow := func(from, to string, errs ...string) measure.Cell {
		c := measure.Cell{From: from, To: to, Protocol: measure.TCP}
		for i, e := range errs {
			r := part{from, to, 0, []float64{float64(i + 1), float64(i + 1)}, 0}.run(i)
			if e != "" {
				r.Error = &measure.Error{Message: e, Hint: "look there"}
			}
			c.Runs = append(c.Runs, r)
		}
		Summarise(&c, nil, Link{})
		return c
	}
	lost := flow("e", "f", "")
	for name, tt := range map[string]struct {
		cells  []measure.Cell
		want   float64 // Gb/s
		runs   int
		failed []string
	}{
		"all well":                   {[]measure.Cell{flow("a", "b", "", ""), flow("c", "d", "", "")}, 3, 2, nil},
		"one fails always":           {[]measure.Cell{flow("a", "b", "", ""), flow("c", "d", "", ""), flow("e", "f", "no route", "no route")}, 3, 2, []string{"no route"}},
		"one fails once":             {[]measure.Cell{flow("a", "b", "", ""), flow("c", "d", "", ""), flow("e", "f", "", "reset")}, 3, 1, []string{"in 1 of 2 runs: reset"}},
		"one is lost":                {[]measure.Cell{flow("a", "b", "", ""), flow("c", "d", "", ""), lost}, 3, 1, []string{"in 1 of 2 runs: f was lost: killed"}},
		"none to the end, both went": {[]measure.Cell{flow("a", "b", "cut"), flow("c", "d", "cut")}, 2, 1, []string{"cut", "cut"}},
	} {
		d := planned(tt.cells...)
		d.EndPoints = []measure.EndPoint{{Name: "f", Lost: "killed"}}
		Groups(d)
		g := d.Groups[0]
		if g.Aggregate == nil || !isAbout(&g.Aggregate.Value, tt.want*1e9) || g.Aggregate.Runs != tt.runs {
			t.Errorf("%s: %+v", name, g.Aggregate)
		}
		var failed []string
		for _, f := range g.Failed {
			failed = append(failed, f.Error)
			if f.Counted != strings.HasPrefix(f.Error, "in 1 of 2 runs") {
				t.Errorf("%s: %+v", name, f)
			}
		}
		if fmt.Sprint(failed) != fmt.Sprint(tt.failed) {
			t.Errorf("%s: failed %q, want %q", name, failed, tt.failed)
		}
	}
}

// Each step of a plan forms a group, and otherwise more than two concurrent flows.
func TestGroupsOfWhat(t *testing.T) {
	two := []float64{2, 2}
	flows := cellsOfParts(part{"a", "b", 0, two, 0}, part{"b", "a", 0, two, 0}, part{"a", "b", 0, two, 0})
	beside := flows[0]
	beside.Baseline, beside.Group = true, 1
	for name, tt := range map[string]struct {
		plan  bool
		cells []measure.Cell
		want  int
	}{
		"bidirectional":        {false, flows[:2], 0},
		"three at once":        {false, flows, 1},
		"a step of a plan":     {true, flows[:1], 1},
		"beside the main ones": {true, []measure.Cell{flows[0], beside}, 1},
		"nothing":              {true, nil, 0},
	} {
		d := planned(tt.cells...)
		if !tt.plan {
			d.Plan = nil
		}
		if Groups(d); len(d.Groups) != tt.want {
			t.Errorf("%s: %d groups, want %d", name, len(d.Groups), tt.want)
		}
	}
	alone := planned(flows[0])
	Groups(alone)
	if g := alone.Groups[0]; g.Aggregate == nil || g.Aggregate.Value != flows[0].Goodput.Value || g.Overlap != nil || g.Fairness != nil || g.Label != "a -> b" {
		t.Errorf("one flow: %+v", g)
	}
	named := planned(cellsOfParts(part{"a", "b", 0, two, 0}, part{"a", "b", 0, two, 0})...)
	named.Cells[0].Label, named.Cells[1].Label = "2 end points a host, end point 1 of 2", "2 end points a host, end point 2 of 2"
	if Groups(named); named.Groups[0].Label != "2 end points a host" {
		t.Errorf("label %q", named.Groups[0].Label)
	}
	four := planned(cellsOfParts(part{"a", "b", 0, []float64{1, 1}, 0}, part{"a", "b", 0, []float64{3, 3}, 0})...)
	four.Cells[0].Axes = []measure.Axis{{Name: "end_points", Value: "2"}}
	Groups(four)
	if g := four.Groups[0]; g.Label != "end_points 2" || !isAbout(g.Fairness, 16.0/20) || g.Hosts[0].Flows != 2 {
		t.Errorf("two flows of a pair: %+v", g)
	}
}

// Pairs with unfair shares are named, with the round-trip times that may explain it; pairs that were meant to
// differ are not.
func TestGroupsUnfair(t *testing.T) {
	for name, tt := range map[string]struct {
		gbps   [2]float64
		change func(a, b *measure.Cell)
		want   string
	}{
		"fair":         {[2]float64{4, 3}, nil, ""},
		"unfair":       {[2]float64{8, 1}, nil, "(Jain's index 0.62): a -> x has 8.00 Gb/s, b -> y has 1.00 Gb/s"},
		"far":          {[2]float64{8, 1}, func(a, b *measure.Cell) { a.RTTIdle, b.RTTIdle = new(int64(1e6)), new(int64(40e6)) }, "; their round trips are 1.00 ms and 40.0 ms"},
		"so asked for": {[2]float64{8, 1}, func(a, b *measure.Cell) { a.Spec.Rate, b.Spec.Rate = 8e9, 1e9 }, ""},
	} {
		d := planned(cellsOfParts(part{"a", "x", 0, []float64{tt.gbps[0], tt.gbps[0]}, 0}, part{"b", "y", 0, []float64{tt.gbps[1], tt.gbps[1]}, 0})...)
		if tt.change != nil {
			tt.change(&d.Cells[0], &d.Cells[1])
		}
		Groups(d)
		said := strings.Join(d.Groups[0].Warnings, "\n")
		if (said == "") != (tt.want == "") || !strings.Contains(said, tt.want) {
			t.Errorf("%s: %q, want %q", name, said, tt.want)
		}
	}
}

// A second that spans several seconds of the overlap is distributed over them.
func TestTimeline(t *testing.T) {
	const s = int64(measure.Bin)
	c := secondSums{from: 10 * s, edges: make([]float64, 5), steps: make([]float64, 5)}
	c.add(9*s, 10*s+s/2, 3000)      // a third of it is within
	c.add(10*s+s/2, 11*s+s/2, 1000) // half and half
	c.add(11*s+s/2, 20*s, 8500)     // continues beyond
	c.add(0, s, 1<<40)              // before
	c.add(10*s, 10*s, 1<<40)        // no time
	c.add(12*s, 12*s+s/4, -1)       // no bytes
	want := []float64{(1000 + 500) * 8, (500 + 500) * 8, 1000 * 8, 1000 * 8}
	for i, got := range c.rates() {
		if math.Abs(got-want[i]) > 1e-6 {
			t.Errorf("second %d: %g, want %g", i, got, want[i])
		}
	}
}

// One pair fails in one repetition, another one in the next: each counts with what it carried when it ran, and not
// as zero.
func TestFairnessOfLostPairs(t *testing.T) {
	var cells []measure.Cell
	for i, lost := range []int{-1, 0, 1} {
		c := measure.Cell{From: string(rune('a' + i)), To: "x", Protocol: measure.TCP}
		for n := range 2 {
			r := part{c.From, c.To, 0, []float64{1, 1}, 0}.run(n)
			r.Partial = n == lost
			c.Runs = append(c.Runs, r)
		}
		Summarise(&c, nil, Link{})
		cells = append(cells, c)
	}
	d := planned(cells...)
	if Groups(d); !isAbout(d.Groups[0].Fairness, 1) {
		t.Errorf("fairness %v", *d.Groups[0].Fairness)
	}
}

func TestPerCore(t *testing.T) {
	host := func(sent, received, cores float64) measure.Share {
		return measure.Share{SentBps: &sent, ReceivedBps: &received, CPU: &measure.CPUFigure{Cores: cores}, PerCoreBps: new(1.0)}
	}
	if bps := PerCore([]measure.Share{host(1e9, 2e9, 1), host(0, 3e9, 2)}); bps == nil || *bps != 2e9 {
		t.Errorf("%v, want 2e9", measure.Value(bps))
	}
	unknown := host(1, 1, 1)
	unknown.PerCoreBps = nil
	for _, none := range [][]measure.Share{nil, {host(1, 1, 0)}, {host(1e9, 2e9, 1), unknown}} {
		if bps := PerCore(none); bps != nil {
			t.Errorf("%v of %+v", *bps, none)
		}
	}
}
