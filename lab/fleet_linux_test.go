package lab_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"thru/internal/measure"
	"thru/lab"
)

// payloadShare is the share of a frame's bits that is payload of TCP over IPv4 at MTU 1500.
const payloadShare = goodput4 / gigabit

// uplinks returns n links of one rate.
func uplinks(n int, rate int64) []int64 { return slices.Repeat([]int64{rate}, n) }

// group returns the only group of a document.
func group(t *testing.T, doc measure.Document) measure.Group {
	t.Helper()
	if len(doc.Groups) != 1 || doc.Groups[0].Aggregate == nil || doc.Groups[0].Overlap == nil {
		t.Fatalf("the groups are %+v", doc.Groups)
	}
	return doc.Groups[0]
}

// TestFleetAggregates runs eight agents at one switch: a full mesh, and seven to one. The aggregate of the
// document must match the counters of the switch. The test is not parallel: it starts a hundred workers at
// once.
func TestFleetAggregates(t *testing.T) {
	const rate = 100e6
	f := startFleet(t, lab.FleetOptions{Rates: uplinks(8, rate), Control: true})
	for _, tt := range []struct {
		name, pairs string
		cells       int
		most        float64 // capacity of the links together
	}{
		{"mesh", "{type: mesh, among: all}", 56, 8 * rate * payloadShare},
		{"many to one", "{type: many-to-one, from: [h2, h3, h4, h5, h6, h7, h8], to: [h1]}", 7, rate * payloadShare},
	} {
		t.Run(tt.name, func(t *testing.T) {
			// A busy machine may start workers so late that few run at once; the document says so.
			for range 4 {
				if f.aggregates(t, tt.pairs, tt.cells, tt.most) {
					return
				}
				t.Log("too little ran at once: again")
			}
			t.Error("in no run enough ran at once")
		})
	}
}

// aggregates runs pairs at once for 3 s and judges the document. It returns false where the runs overlap by
// less than half.
func (f *fleet) aggregates(t *testing.T, pairs string, cells int, most float64) bool {
	const ramp, span = time.Second, 3 * time.Second
	before := map[string]lab.Counters{}
	for i := range f.Hosts {
		before[fmt.Sprintf("h%d", i+1)] = f.Switch.Counters(f.Port(i))
	}
	stop := f.Watch(20 * time.Millisecond)
	p := f.plan(t, "thru: 1\nname: x\ncontroller: fleet\nend_points: [{match: {part: [odd, even]}}]\npairs: ["+pairs+
		"]\norder: simultaneous\ngates: off\ntraffic: {time: 3s, ramp: 1s, streams: 1}\n")
	code := p.wait(t, 45*time.Second)
	watched := stop()
	if code != 0 {
		t.Fatalf("exit %d", code)
	}
	doc := p.document(t)
	if len(doc.Groups) == 1 && doc.Groups[0].Overlap == nil && len(doc.Groups[0].Missing) > 0 {
		return false
	}
	g := group(t, doc)
	if g.Cells != cells || len(g.Failed) > 0 {
		t.Errorf("%d cells, want %d; failed: %+v", g.Cells, cells, g.Failed)
	}
	// The bytes must match exactly over the whole life of the connections.
	got := received(doc, 0)
	for i := range f.Hosts {
		name := fmt.Sprintf("h%d", i+1)
		c := f.Switch.Counters(f.Port(i)).Sub(before[name])
		counted := lab.Payload(c.TxBytes, c.TxPackets)
		if want := got[name]; want > 0 && !near(counted, want, 1) {
			t.Errorf("%s says that it has received %.0f bytes, its port has counted %.0f", name, want, counted)
		}
	}
	o := *g.Overlap
	t.Logf("%.1f Mb/s over %v, skew %v of %v, fairness %v", g.Aggregate.Value/1e6, time.Duration(o.Ns), time.Duration(o.SkewNs), time.Duration(o.BoundNs), *g.Fairness)
	if time.Duration(o.Ns) < span/2 {
		return false
	}
	// The aggregate must match over the time in which all runs overlap.
	begin, end := together(doc, ramp)
	if counted := carried(watched, begin, end); !near(g.Aggregate.Value, counted, 1) {
		t.Errorf("the aggregate is %.2f Mb/s, the switch has counted %.2f", g.Aggregate.Value/1e6, counted/1e6)
	}
	if g.Aggregate.Value > most*1.01 || g.Aggregate.Value < most*0.85 {
		t.Errorf("the aggregate is %.2f Mb/s of %.2f", g.Aggregate.Value/1e6, most/1e6)
	}
	return true
}

// ring is a plan of four hosts that runs for a while.
const ring = `thru: 1
name: ring
controller: fleet
end_points: [h1, h2, h3, h4]
pairs: [{type: ring, among: all}]
order: simultaneous
gates: off
traffic: {time: 8s, ramp: 1s, streams: 1}
`

// TestFleetLosesAnAgent kills an agent during the test: its pairs fail, the others count.
func TestFleetLosesAnAgent(t *testing.T) {
	t.Parallel()
	f := startFleet(t, lab.FleetOptions{Rates: uplinks(4, 100e6)})
	p := f.plan(t, ring)
	f.running(t, p, 0)
	f.agents[2].signal(t, syscall.SIGKILL)
	if code := p.wait(t, 40*time.Second); code != 1 {
		t.Errorf("exit %d, want 1", code)
	}
	doc := p.document(t)
	for _, c := range doc.Cells {
		lost := c.From == "h3" || c.To == "h3"
		if lost != (c.Error != nil) {
			t.Errorf("%s to %s: error %+v", c.From, c.To, c.Error)
		}
		if !lost && (c.Goodput == nil || c.Goodput.Value < 50e6) {
			t.Errorf("%s to %s: goodput %+v", c.From, c.To, c.Goodput)
		}
	}
	if doc.Error == nil || !strings.Contains(doc.Error.Message, "h3") {
		t.Errorf("the error is %+v", doc.Error)
	}
	eventuallyIdle(t, f.Hosts[2], idle{}, lossLimit)
	f.awaitHosts(t, 3)
}

// TestFleetLosesTheController kills the controller during the test: the agents stop, deliver their results to
// the next controller, and serve again.
func TestFleetLosesTheController(t *testing.T) {
	t.Parallel()
	f := startFleet(t, lab.FleetOptions{Rates: uplinks(4, 100e6)})
	p := f.plan(t, strings.Replace(ring, "8s", "30s", 1))
	f.running(t, p, 0)
	f.control.signal(t, syscall.SIGKILL)
	if code := p.wait(t, lossLimit+8*time.Second); code != 1 {
		t.Errorf("exit %d, want 1", code)
	}
	p.document(t)
	f.allIdle(t)
	f.startControl(t)
	f.awaitHosts(t, 4)
	// The results that were not fetched, one document for each end, reach the controller.
	var kept []string
	lab.Eventually(t, 15*time.Second, "the controller has eight results", func() bool {
		kept, _ = filepath.Glob(filepath.Join(f.state, "results", "*", "*.json"))
		return len(kept) == 8
	})
	for _, file := range kept {
		// A document of the sender alone has no goodput and so no result: exit 1.
		if p := start(t, f.Controller, f.home, "", "report", file); p.wait(t, 10*time.Second) > 1 || !strings.Contains(p.stdout.String(), "partial") {
			t.Errorf("thru report of %s: exit %d", file, p.exit)
		}
	}
	again := f.plan(t, strings.Replace(ring, "8s", "1s", 1))
	if code := again.wait(t, 20*time.Second); code != 0 {
		t.Errorf("a plan under the new controller ends with exit %d", code)
	}
}
