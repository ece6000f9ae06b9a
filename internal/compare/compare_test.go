package compare

import (
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"thru/internal/measure"
)

func TestOutcomes(t *testing.T) {
	tests := []struct {
		name          string
		before, after []*measure.Document
		options       Options
		outcome       string
		basis         string
		regression    bool
		reason        string
	}{
		{"five runs each side, a fall", one(result("local", "peer", 10, 956e6, 955e6, 957e6, 956e6, 956e6)), one(result("local", "peer", 10, 812e6, 811e6, 813e6, 812e6, 812e6)), Options{}, measure.Worse, measure.OfRuns, true, "beyond 2%"},
		{"ten runs each side, less than sessions differ by", one(result("local", "peer", 10, around(rand.New(rand.NewPCG(1, 1)), 956e6, 0.1, 10)...)), one(result("local", "peer", 10, around(rand.New(rand.NewPCG(1, 2)), 880e6, 0.1, 10)...)), Options{}, measure.Undecided, measure.OfRuns, false, "a fall by 10% would be detected: more runs of one session add little"},
		{"five results each side, the same fall", docs("local", "peer", 956e6, 957e6, 955e6, 958e6, 954e6), docs("local", "peer", 880e6, 881e6, 879e6, 882e6, 878e6), Options{}, measure.Worse, measure.OfResults, true, "5 against 5 results"},
		{"a rise", one(result("local", "peer", 10, 812e6, 811e6, 813e6)), one(result("local", "peer", 10, 956e6, 955e6, 957e6)), Options{}, measure.Improved, measure.OfRuns, false, "beyond 2%"},
		{"the same", one(result("local", "peer", 10, 956e6, 955e6, 957e6)), one(result("local", "peer", 10, 955e6, 956e6, 957e6)), Options{}, measure.Equivalent, measure.OfRuns, false, "within 2%"},
		{"noise", one(result("local", "peer", 10, 900e6, 700e6, 800e6)), one(result("local", "peer", 10, 850e6, 650e6, 790e6)), Options{}, measure.Undecided, measure.OfRuns, false, "--repeat"},
		{"a wider bar", one(result("local", "peer", 10, 956e6, 955e6, 957e6)), one(result("local", "peer", 10, 812e6, 811e6, 813e6)), Options{BarPct: 20}, measure.Equivalent, measure.OfRuns, false, "within 20%"},
		{"single runs, a great fall", one(result("local", "peer", 10, 956e6)), one(result("local", "peer", 10, 600e6)), Options{}, measure.Worse, measure.OfSingles, true, "single runs, with an assumed standard deviation of 12%"},
		{"a single run that carried nothing", one(result("local", "peer", 10, 47e6)), one(result("local", "peer", 10, 0)), Options{}, measure.Worse, measure.OfSingles, true, "beyond 2%; nothing passed after"},
		{"a single run, and nothing before", one(result("local", "peer", 10, 0)), one(result("local", "peer", 10, 47e6)), Options{}, measure.Improved, measure.OfSingles, false, "nothing passed before"},
		{"three runs of two sessions", one(result("local", "peer", 10, 201e6, 200e6, 199e6)), one(result("local", "peer", 10, 186e6, 185e6, 184e6)), Options{}, measure.Undecided, measure.OfRuns, false, "indicative: 3 against 3 runs, with an assumed standard deviation of 3%"},
		{"one run below few", one(result("local", "peer", 10, 201e6, 200e6, 199e6)), one(result("local", "peer", 10, 160e6)), Options{}, measure.Undecided, measure.OfRuns, false, "indicative: 1 against 3 runs, with an assumed standard deviation of 12%"},
		{"five runs that vary", one(result("local", "peer", 10, 900e6, 700e6, 800e6, 750e6, 850e6)), one(result("local", "peer", 10, 850e6, 650e6, 790e6, 800e6, 810e6)), Options{}, measure.Undecided, measure.OfRuns, false, "the runs of a side vary by up to 30.8%: longer runs (-t 30)"},
		{"single runs, what runs differ by", one(result("local", "peer", 10, 956e6)), one(result("local", "peer", 10, 900e6)), Options{}, measure.Undecided, measure.OfSingles, false, "indicative"},
		{"a week that varies, a day within it", docs("local", "peer", 900e6, 800e6, 950e6, 700e6, 850e6), docs("local", "peer", 790e6), Options{}, measure.Undecided, measure.OfResults, false, "more results"},
		{"a steady week, a bad day", docs("local", "peer", 900e6, 902e6, 899e6, 901e6, 900e6), docs("local", "peer", 790e6), Options{}, measure.Undecided, measure.OfResults, false, "indicative: 1 against 5 results, with an assumed standard deviation of 12%"},
		{"a steady week, a day far below", docs("local", "peer", 900e6, 902e6, 899e6, 901e6, 900e6), docs("local", "peer", 590e6), Options{}, measure.Worse, measure.OfResults, true, "indicative: 1 against 5 results"},
		{"a steady week, bad days", docs("local", "peer", 900e6, 902e6, 899e6, 901e6, 900e6), docs("local", "peer", 790e6, 791e6, 792e6), Options{}, measure.Worse, measure.OfResults, true, "3 against 5 results"},
		{"a run that carried nothing", one(result("local", "peer", 10, 956e6, 955e6, 957e6)), one(result("local", "peer", 10, 0, 0, 0)), Options{}, measure.Worse, measure.OfRuns, true, "beyond 2%"},
	}
	for _, tt := range tests {
		x := Of(tt.before, tt.after, tt.options)
		if len(x.Cells) != 1 {
			t.Errorf("%s: %d cells", tt.name, len(x.Cells))
			continue
		}
		c := x.Cells[0]
		if c.Outcome != tt.outcome || c.Basis != tt.basis || x.Regression != tt.regression || x.Outcome != tt.outcome || !strings.Contains(c.Reason, tt.reason) {
			t.Errorf("%s: %s of %s (%s), %v; want %s of %s (%s)", tt.name, c.Outcome, c.Basis, c.Reason, x.Regression, tt.outcome, tt.basis, tt.reason)
		}
	}
}

// A flow that carried nothing is shown as zero, and its change has no percentage.
func TestNothingPassed(t *testing.T) {
	down := Of(one(result("local", "peer", 10, 47e6)), one(result("local", "peer", 10, 0)), Options{}).Cells[0]
	if down.After.Value != 0 || down.After.High != 0 || down.ChangePct == nil || *down.ChangePct > -99.9 {
		t.Errorf("%+v, %v", down.After, down.ChangePct)
	}
	up := Of(one(result("local", "peer", 10, 0)), one(result("local", "peer", 10, 47e6)), Options{}).Cells[0]
	if up.Before.Value != 0 || up.ChangePct != nil || up.HighPct != nil {
		t.Errorf("%+v, %v", up.Before, up.ChangePct)
	}
}

// A stalled run is reported; it is not averaged with the others.
func TestStalled(t *testing.T) {
	x := Of(one(result("local", "peer", 10, 900e6, 901e6, 902e6)), one(result("local", "peer", 10, 900e6, 0, 900e6)), Options{})
	c := x.Cells[0]
	if c.Outcome != measure.Undecided || !strings.HasPrefix(c.Reason, "1 of the 3 runs after carried nothing") || math.Abs(c.After.Value-600e6) > 1e6 || c.ChangePct == nil || math.Abs(*c.ChangePct+33.4) > 0.2 || c.LowPct != nil {
		t.Errorf("%s, %+v, %v", c.Reason, c.After, c.ChangePct)
	}
}

// One name for several machines is reported.
func TestSeveralMachines(t *testing.T) {
	mixed := docs("local", "local", 2e10, 5e9, 2e10)
	mixed[0].EndPoints[0].Facts.Hostname, mixed[1].EndPoints[0].Facts.Hostname = new("alpha"), new("beta")
	mixed[2].EndPoints[0].Facts.Hostname = new("alpha")
	x := Of(mixed, one(result("local", "local", 10, 2e10)), Options{})
	if got := strings.Join(x.Warnings, "; "); !strings.Contains(got, "before: local is the name of several machines (alpha / beta): choose one with --host") {
		t.Error(got)
	}
}

// Flows of different rungs, or of different axis values of a plan, are never compared.
func TestOtherKinds(t *testing.T) {
	for name, change := range map[string]func(c *measure.Cell, v string){
		"rung": func(c *measure.Cell, v string) { c.Rung = v },
		"axis": func(c *measure.Cell, v string) { c.Axes = []measure.Axis{{Name: "variant", Value: v}} },
	} {
		before, after := result("local", "peer", 10, 1e9), result("local", "peer", 10, 1e9)
		change(&before.Cells[0], "a")
		change(&after.Cells[0], "b")
		if x := Of(one(before), one(after), Options{Anyway: true}); len(x.Cells) > 0 || len(x.Unmatched) != 2 {
			t.Errorf("%s: %+v", name, x.Cells)
		}
	}
}

// A mean of values without a single level is reported.
func TestUneven(t *testing.T) {
	level := func(n int, bps float64) (all []float64) {
		for i := range n {
			all = append(all, bps*(1+0.001*float64(i%3-1)))
		}
		return all
	}
	drift := make([]float64, 12)
	for i := range drift {
		drift[i] = 1e9 * (1 - 0.01*float64(i))
	}
	today := one(result("local", "peer", 10, 1e9))
	tests := []struct {
		name   string
		before []*measure.Document
		want   string
	}{
		{"steady", docs("local", "peer", level(12, 1e9)...), ""},
		{"two levels", docs("local", "peer", append(level(6, 1e9), level(6, 8e8)...)...), "before, local -> peer: two levels, the later results at 80% of the earlier ones: compare spans of one level"},
		{"a drift", docs("local", "peer", drift...), "before, local -> peer: the results drift, by -1"},
		{"two groups of runs", one(result("local", "peer", 10, 1e9, 8e8, 1.001e9, 8.01e8, 1.002e9, 8.02e8)), "before, local -> peer: the runs fall into two groups, one at 8"},
	}
	for _, tt := range tests {
		after := today
		if len(tt.before) == 1 {
			after = one(result("local", "peer", 10, 1e9, 1.001e9))
		}
		after[0].StartedAt = began().AddDate(0, 0, 1)
		got := strings.Join(Of(tt.before, after, Options{}).Warnings, "; ")
		if tt.want == "" && got != "" || !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// A week against today is compared by results: runs of one day are not independent values.
func TestRangeUnits(t *testing.T) {
	x := Of(docs("local", "peer", 900e6, 910e6, 890e6), one(result("local", "peer", 10, 900e6, 901e6)), Options{})
	c := x.Cells[0]
	if c.Before.Units != 3 || c.After.Units != 1 || math.Abs(c.Before.Low-890e6) > 1e6 || x.Before.Results[0].StartedAt.After(x.Before.Results[2].StartedAt) {
		t.Errorf("%+v %+v", c.Before, c.After)
	}
}

func TestMatching(t *testing.T) {
	udp := result("local", "peer", 10, 1e9)
	udp.Cells[0].Protocol, udp.Cells[0].Spec.Protocol = measure.UDP, measure.UDP
	both := func(a, b string) *measure.Document {
		d := result(a, b, 10, 1e9)
		back := result(b, a, 10, 1e9)
		d.Cells = append(d.Cells, back.Cells...)
		return d
	}
	mesh := func(names ...string) *measure.Document {
		d := &measure.Document{StartedAt: began()}
		for _, a := range names {
			for _, b := range names {
				if a != b {
					d.Cells = append(d.Cells, result(a, b, 10, 1e9).Cells...)
				}
			}
		}
		return d
	}
	named := func(d *measure.Document, hosts ...string) *measure.Document {
		for i := range d.EndPoints {
			d.EndPoints[i].Facts.Hostname = new(hosts[i])
		}
		return d
	}
	tests := []struct {
		name          string
		before, after *measure.Document
		matched       int
		unmatched     int
		warning       string
	}{
		{"by name", both("local", "peer"), both("local", "peer"), 2, 0, ""},
		{"by the machines' names", named(mesh2("a", "b"), "x", "y"), named(mesh2("c", "d"), "x", "y"), 1, 0, "it was a -> b before, and is c -> d after"},
		{"by who ran it", named(both("local", "10.0.0.2"), "x", "y"), named(both("local", "10.0.0.3"), "x", "z"), 2, 0, "it was local -> 10.0.0.2 before"},
		{"another machine of the same name", named(both("local", "peer"), "x", "y"), named(both("local", "peer"), "x", "z"), 2, 0, "peer is another machine: it was y, and is z"},
		{"other pairs of a mesh are not the same", mesh("a", "b", "c"), mesh("a", "b", "d"), 2, 8, ""},
		{"another protocol", result("local", "peer", 10, 1e9), udp, 0, 2, ""},
		{"the other direction", result("local", "peer", 10, 1e9), result("peer", "local", 10, 1e9), 0, 2, ""},
		{"nothing", &measure.Document{}, &measure.Document{}, 0, 0, ""},
	}
	for _, tt := range tests {
		x := Of(one(tt.before), one(tt.after), Options{})
		if len(x.Cells) != tt.matched || len(x.Unmatched) != tt.unmatched || !strings.Contains(strings.Join(x.Warnings, "; "), tt.warning) {
			t.Errorf("%s: %d and %d alone, warnings %q; want %d and %d", tt.name, len(x.Cells), len(x.Unmatched), x.Warnings, tt.matched, tt.unmatched)
		}
	}
}

// One stream against four: the single-stream baseline of the four is not compared.
func TestOtherStreams(t *testing.T) {
	one1, four := result("local", "peer", 10, 1e9), result("local", "peer", 10, 2e9)
	one1.Cells[0].Streams = 1
	baseline := result("local", "peer", 10, 1e9).Cells[0]
	baseline.Baseline, baseline.Streams = true, 1
	four.Cells = append(four.Cells, baseline)
	for _, tt := range []struct{ before, after *measure.Document }{{one1, four}, {four, one1}} {
		x := Of(one(tt.before), one(tt.after), Options{})
		if len(x.Cells) != 1 || x.Cells[0].Outcome != measure.NotCompared || !strings.Contains(x.Cells[0].Reason, "streams: ") || len(x.Unmatched) != 1 || x.Unmatched[0].What != "TCP, 1 stream (beside)" {
			t.Errorf("%s: %+v, %+v", x.Reason, x.Cells, x.Unmatched)
		}
		if y := Of(one(tt.before), one(tt.after), Options{Anyway: true}); y.Cells[0].ChangePct == nil || y.Outcome == measure.NotCompared {
			t.Errorf("%s: %+v", y.Reason, y.Cells)
		}
	}
}

func mesh2(a, b string) *measure.Document { return result(a, b, 10, 1e9) }

func TestSettings(t *testing.T) {
	tests := []struct {
		name    string
		change  func(d *measure.Document)
		setting string
		refuses bool
		affects bool
	}{
		{"streams", func(d *measure.Document) { d.Cells[0].Streams = 1 }, "streams", true, false},
		{"window", func(d *measure.Document) { d.Cells[0].Window = measure.Pair{Send: 800 << 10, Recv: 800 << 10} }, "window", true, false},
		{"rate", func(d *measure.Document) { d.Cells[0].Spec.Rate = 1e8 }, "rate", true, false},
		{"both at once", func(d *measure.Document) { d.Cells[0].AtOnce = 2 }, "flows at once", true, false},
		{"time", func(d *measure.Document) { d.Cells[0].Spec.Duration = 60e9 }, "measured time", false, false},
		{"engine", func(d *measure.Document) { d.Cells[0].Spec.Engine = measure.IPerf3 }, "engine", false, true},
		{"congestion control", func(d *measure.Document) {
			d.Cells[0].Runs[0].Flows[0].Sender.Streams[0].Congestion = "bbr"
		}, "congestion control", false, true},
		{"version", func(d *measure.Document) { d.Thru = "2.0" }, "thru", false, false},
		{"placement", func(d *measure.Document) { d.Cells[0].Runs[0].Flows[0].Receiver.Streams[0].CPU = new(3) }, "threads of the receiver at CPUs", false, false},
	}
	for _, tt := range tests {
		after := result("local", "peer", 10, 1e9)
		tt.change(after)
		before := result("local", "peer", 10, 1e9)
		x := Of(one(before), one(after), Options{})
		if len(x.Cells) != 1 {
			t.Errorf("%s: %d cells", tt.name, len(x.Cells))
			continue
		}
		c := x.Cells[0]
		if len(c.Settings) != 1 || c.Settings[0].Name != tt.setting || c.Settings[0].Refuses != tt.refuses || c.Settings[0].Affects != tt.affects || (c.Outcome == measure.NotCompared) != tt.refuses {
			t.Errorf("%s: %s, %+v", tt.name, c.Outcome, c.Settings)
		}
		if tt.refuses && (!strings.Contains(c.Reason, tt.setting) || c.ChangePct != nil) {
			t.Errorf("%s: refused by %q, change %v", tt.name, c.Reason, c.ChangePct)
		}
		if y := Of(one(before), one(after), Options{Anyway: true}); y.Cells[0].Outcome == measure.NotCompared {
			t.Errorf("%s: not compared although asked to: %s", tt.name, y.Cells[0].Reason)
		}
	}
}

// A flow that failed is neither equal nor unmatched: the earlier figure is gone.
func TestFailedAfter(t *testing.T) {
	after := result("local", "peer", 10)
	after.Cells[0].Error = &measure.Error{Message: "connection refused"}
	x := Of(one(result("local", "peer", 10, 1e9)), one(after), Options{})
	if c := x.Cells[0]; !c.Failed || c.Outcome != measure.NotCompared || !strings.Contains(c.Reason, "connection refused") || x.Regression || x.Outcome != measure.NotCompared {
		t.Errorf("%+v, %s", c, x.Outcome)
	}
}

// Baselines decide nothing, nor do the experiments of an explanation.
func TestBesideDecidesNothing(t *testing.T) {
	with := func(single, tried float64) *measure.Document {
		d := result("local", "peer", 10, 1e9, 1.001e9, 0.999e9)
		baseline := result("local", "peer", 10, single, single*1.001, single*0.999).Cells[0]
		baseline.Baseline, baseline.Streams = true, 1
		experiment := result("local", "peer", 10, tried).Cells[0]
		experiment.Experiment, experiment.Streams = "streams-8", 8
		d.Cells = append(d.Cells, baseline, experiment)
		return d
	}
	x := Of(one(with(5e8, 1e9)), one(with(1e8, 1e8)), Options{})
	if len(x.Cells) != 2 || x.Regression || x.Outcome != measure.Equivalent || x.Cells[1].Outcome != measure.Worse || !x.Cells[1].Baseline {
		t.Errorf("%s, %+v", x.Outcome, x.Cells)
	}
}

func TestGuardrails(t *testing.T) {
	d := func(cost, loss float64, rtt int64) *measure.Document {
		x := result("local", "peer", 10, 1e9, 1.001e9, 0.999e9)
		c := &x.Cells[0]
		c.SenderCPU = &measure.CPUFigure{PctPerGbps: &cost}
		c.RFC6349 = &measure.RFC6349{EfficiencyPct: new(100 - loss)}
		c.RTTLoaded = &rtt
		return x
	}
	tests := []struct {
		name          string
		before, after *measure.Document
		worse         string
	}{
		{"the same", d(10, 0, 5e6), d(10.5, 0.05, 5.4e6), ""},
		{"what two results differ by", d(10, 0, 4.4e6), d(12, 0.2, 6.39e6), ""},
		{"CPU", d(10, 0, 5e6), d(18, 0, 5e6), "CPU per Gb/s, sender"},
		{"sent again", d(10, 0, 5e6), d(10, 0.8, 5e6), "sent again"},
		{"round trip", d(10, 0, 5e6), d(10, 0, 12e6), "RTT under load"},
	}
	for _, tt := range tests {
		x := Of(one(tt.before), one(tt.after), Options{Guards: true})
		worse := ""
		for _, g := range x.Cells[0].Guards {
			if g.Worse {
				worse += g.Name
			}
		}
		if worse != "" && !strings.Contains(x.Reason, "guardrails worse: "+worse) {
			t.Errorf("%s: %s", tt.name, x.Reason)
		}
		if worse != tt.worse || x.Regression != (worse != "") || x.Outcome != measure.Equivalent {
			t.Errorf("%s: worse %q, regression %v", tt.name, worse, x.Regression)
		}
		if y := Of(one(tt.before), one(tt.after), Options{}); y.Regression {
			t.Errorf("%s: a guardrail is a regression without being asked to", tt.name)
		}
		back := Of(one(tt.after), one(tt.before), Options{Guards: true})
		for _, g := range back.Cells[0].Guards {
			if g.Worse || g.Better != (g.Name == tt.worse) {
				t.Errorf("%s, the other way: %+v", tt.name, g)
			}
		}
	}
}

// Guardrails of a range are compared by their scatter: without a change --fail-on any rarely exits with 3, and a
// doubled value is found.
func TestGuardrailsRarelyFire(t *testing.T) {
	const trials = 300
	r := rand.New(rand.NewPCG(11, 3))
	side := func(factor float64) (all []*measure.Document) {
		for _, d := range docs("local", "peer", around(r, 1e9, 1, 3)...) {
			vary := func(x float64) float64 { return x * math.Exp(0.1*r.NormFloat64()) }
			c := &d.Cells[0]
			c.SenderCPU, c.ReceiverCPU = &measure.CPUFigure{PctPerGbps: new(vary(20) * factor)}, &measure.CPUFigure{PctPerGbps: new(vary(30))}
			c.RTTIdle, c.RTTLoaded = new(int64(vary(5e6))), new(int64(vary(2e7)))
			c.UnderLoad = &measure.UnderLoad{Loaded: &measure.Latency{Count: 1000, P50: int64(vary(2e7)), P99: int64(vary(4e7))}}
			all = append(all, d)
		}
		return all
	}
	wrong, missed := 0, 0
	for range trials {
		if Of(side(1), side(1), Options{Guards: true}).Regression {
			wrong++
		}
		if !Of(side(1), side(3), Options{Guards: true}).Regression {
			missed++
		}
	}
	if wrong > trials*5/100 || missed > trials*10/100 {
		t.Errorf("of %d: %d wrong, %d missed", trials, wrong, missed)
	}
}

// TestAA compares repeated runs of the same with themselves: at most 2.5% of the pairs may come out as worse
// without a change, for one flow and for eight that share the error probability.
func TestAA(t *testing.T) {
	for _, tt := range []struct {
		name             string
		runs, flows, pct int
	}{{"5 runs", 5, 1, 5}, {"3 runs", 3, 1, 3}, {"single runs, 3%", 1, 1, 3}, {"single runs, 5%", 1, 1, 5}, {"single runs, 8%", 1, 1, 8}, {"8 flows of 5 runs", 5, 8, 5}, {"8 flows of single runs", 1, 8, 8}} {
		const pairs = 400
		r := rand.New(rand.NewPCG(7, uint64(tt.runs)))
		worse := 0
		for range pairs {
			side := func() *measure.Document {
				d := &measure.Document{StartedAt: began()}
				for i := range tt.flows {
					to := "peer" + string(rune('a'+i))
					d.Cells = append(d.Cells, result("local", to, 10, around(r, 1e9, float64(tt.pct), tt.runs)...).Cells...)
				}
				return d
			}
			if Of(one(side()), one(side()), Options{}).Regression {
				worse++
			}
		}
		t.Logf("%s: %d of %d pairs worse", tt.name, worse, pairs)
		if worse > pairs*25/1000 {
			t.Errorf("%s: %d of %d pairs of the same are worse", tt.name, worse, pairs)
		}
	}
}

// TestStored compares every recorded document with itself: nothing changed, nothing got worse, and the outcome can
// be encoded as JSON.
func TestStored(t *testing.T) {
	files, err := filepath.Glob("../report/testdata/*.json.golden")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d recorded documents, %v", len(files), err)
	}
	compared := 0
	for _, f := range files {
		d, err := read(f)
		if err != nil {
			t.Fatal(err)
		}
		again, _ := read(f)
		x := Of(one(d), one(again), Options{})
		for _, c := range x.Cells {
			if c.Outcome == measure.Worse || c.Outcome == measure.Improved || len(c.Settings) > 0 {
				t.Errorf("%s, %s: %s by %s, settings %v", f, c.What, c.Outcome, c.Reason, c.Settings)
			}
			if c.ChangePct != nil {
				compared++
			}
		}
		if len(x.Unmatched)+len(x.Facts)+len(x.Gates)+len(x.Causes) > 0 {
			t.Errorf("%s: %+v, %+v, %+v, %+v", f, x.Unmatched, x.Facts, x.Gates, x.Causes)
		}
		if _, err := json.Marshal(x); err != nil {
			t.Errorf("%s: %v", f, err)
		}
	}
	if compared < 20 {
		t.Errorf("only %d flows were compared", compared)
	}
}

func read(file string) (*measure.Document, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var d measure.Document
	return &d, json.Unmarshal(text, &d)
}

// TestHostile compares documents with lost or wrong parts.
func TestHostile(t *testing.T) {
	var recorded []string
	for _, name := range []string{"localhost", "verdict", "udp-loss", "rr", "mesh", "tuned", "captured", "check", "search"} {
		recorded = append(recorded, "../report/testdata/"+name+".json.golden")
	}
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		rate := rapid.SampledFrom([]float64{0.001, 0.01, 0.1, 0.5}).Draw(t, "rate")
		side := func(label string) []*measure.Document {
			d, err := read(rapid.SampledFrom(recorded).Draw(t, label))
			if errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
			spoil(reflect.ValueOf(d).Elem(), r, rate)
			return one(d)
		}
		x := Of(side("before"), side("after"), Options{Anyway: true, Guards: true})
		text, err := json.Marshal(x)
		if err != nil {
			t.Fatalf("the comparison is no JSON: %v", err)
		}
		if len(text) > 64<<20 {
			t.Fatalf("%d bytes", len(text))
		}
		for _, c := range x.Cells {
			if c.Reason == "" || c.Outcome == "" {
				t.Fatalf("%+v", c)
			}
		}
	})
}

// spoil removes and distorts parts of a document at random.
func spoil(v reflect.Value, r *rand.Rand, rate float64) {
	if r.Float64() < rate && v.CanSet() {
		v.SetZero()
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			spoil(v.Elem(), r, rate)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && v.Field(i).CanSet() {
				spoil(v.Field(i), r, rate)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			spoil(v.Index(i), r, rate)
		}
	case reflect.Int, reflect.Int64:
		if r.Float64() < rate {
			v.SetInt([]int64{-1, 0, 1, math.MaxInt64, math.MinInt64}[r.IntN(5)])
		}
	case reflect.Float64:
		if r.Float64() < rate {
			v.SetFloat([]float64{-1, 0, 1e308, 5e-324, math.Inf(1), math.NaN()}[r.IntN(6)])
		}
	case reflect.String:
		if r.Float64() < rate {
			v.SetString([]string{"]", "a[b", "\x1b[2J", "<script>", strings.Repeat("x", 10000)}[r.IntN(5)])
		}
	}
}
