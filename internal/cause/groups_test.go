package cause

import (
	"fmt"
	"strings"
	"testing"

	"thru/internal/cause/groups"
	"thru/internal/measure"
	"thru/internal/stat"
)

// team is the flows of one step of a plan: n copies of of, each to the same receiver, from n end points.
func team(number, n int, of made, change func(c *measure.Cell)) []measure.Cell {
	var cells []measure.Cell
	for range n {
		c := of.cell()
		c.Group, c.AtOnce = number, n
		c.Axes = []measure.Axis{{Name: "end_points", Value: fmt.Sprint(n)}}
		c.Runs[0].Timing = &measure.Timing{EndNs: int64(madeTime)}
		for i := range c.Runs[0].Flows {
			f := &c.Runs[0].Flows[i]
			f.Receiver.EndPoint = "b"
			f.Receiver.Route = &measure.Route{Interface: "eth0"}
		}
		if change != nil {
			change(&c)
		}
		cells = append(cells, c)
	}
	return cells
}

// planOf is a document of a plan, its groups made by package stat.
func planOf(teams ...[]measure.Cell) *measure.Document {
	d := made{}.document()
	d.Cells, d.Plan = nil, &measure.Planned{}
	for _, t := range teams {
		d.Cells = append(d.Cells, t...)
	}
	for i := range d.EndPoints { // two machines
		d.EndPoints[i].Facts.Kernel = new("6.1")
	}
	stat.Groups(d)
	return d
}

// cpus sets the load of the receiver's CPUs with packets, in percent.
func cpus(packets ...float64) func(*measure.Cell) {
	return func(c *measure.Cell) {
		h := c.Runs[0].Flows[0].Receiver.Host
		h.CPUs = nil
		for i, pct := range packets {
			h.CPUs = append(h.CPUs, measure.CPU{Core: i, SoftIRQ: pct, Idle: 100 - pct})
		}
	}
}

// oneQueue makes all packets arrive through one queue of four, and fills its CPU.
func oneQueue(c *measure.Cell) {
	cpus(99, 5, 5, 5)(c)
	c.Runs[0].Flows[0].Receiver.Host.NIC = &measure.NICSpan{Name: "eth0", Driver: map[string]uint64{"rx_queue_0_packets": 1e6, "rx_queue_1_packets": 10, "rx_queue_2_packets": 10, "rx_queue_3_packets": 10}}
}

// irqsOnOne makes one CPU handle all interrupts, and fills it with packets.
func irqsOnOne(c *measure.Cell) {
	cpus(99, 5, 5, 5)(c)
	c.Runs[0].Flows[0].Receiver.Host.IRQs = []measure.IRQSpan{{Core: 0, Count: 1e6}}
}

// An aggregate that falls as end points are added: the fall is certain, its cause as far as the counters
// show it.
func TestAggregateFalls(t *testing.T) {
	quiet := cpus(30, 30, 30, 30)
	for name, tt := range map[string]struct {
		four, eight float64 // Gb/s together
		few, many   func(*measure.Cell)
		want        string // cause and confidence; "" of no finding
		says        string
	}{
		"it rises":              {4, 6, quiet, quiet, "", ""},
		"it stays":              {6, 5.9, quiet, quiet, "", ""},
		"queues are not known":  {8, 6, quiet, quiet, "too-few-queues possible", "8 end points a host 6.00 Gb/s: a queue bottleneck is the usual reason"},
		"one queue of four":     {8, 6, quiet, oneQueue, "rss-not-spreading likely", "100% of the packets of 8 flows arrived in one queue of 4"},
		"interrupts on one CPU": {8, 6, quiet, irqsOnOne, "irq-one-cpu likely", "one CPU of the receiver (0) takes all its packets"},
		"all CPUs full":         {8, 6, quiet, cpus(99, 99, 98, 97), "too-many-streams likely", "all CPUs of b are full"},
		"full with four, too":   {8, 6, cpus(99, 99, 98, 97), cpus(99, 99, 98, 97), "too-many-streams possible", ""},
	} {
		d := planOf(team(0, 4, made{bps: tt.four / 4 * 1e9}, tt.few), team(1, 8, made{bps: tt.eight / 8 * 1e9}, tt.many))
		Diagnose(d)
		got, summary := "", ""
		for _, x := range d.Findings {
			if strings.HasPrefix(x.Summary, "4 end points a host carry") {
				got, summary = x.Cause+" "+x.Confidence, x.Summary
				if x.Effect == nil || *x.Effect.BoundBps != tt.four*1e9 || len(x.Evidence) == 0 || x.Evidence[0].Threshold == nil || x.Fix == nil || x.Next == "" {
					t.Errorf("%s: half a finding: %+v", name, x)
				}
			}
		}
		if got != tt.want || !strings.Contains(summary, tt.says) {
			t.Errorf("%s: %q %q, want %q", name, got, summary, tt.want)
		}
		if tt.want != "" && d.Findings[0].Summary != summary {
			t.Errorf("%s: it is not the first: %+v", name, d.Findings[0])
		}
	}
}

// A step with a failed pair is not part of a sweep: fewer flows carry less.
func TestSweepOfLostPair(t *testing.T) {
	d := planOf(team(0, 4, made{bps: 2e9}, cpus(30, 30)), team(1, 8, made{bps: 0.75e9}, cpus(30, 30)))
	d.Cells[11].Runs[0].Partial = true
	stat.Groups(d)
	if len(d.Groups[1].Failed) != 1 || d.Groups[1].Aggregate == nil {
		t.Fatalf("%+v", d.Groups[1])
	}
	if found := groups.Findings(theCatalogue(), d); len(found) > 0 {
		t.Errorf("%+v", found)
	}
}

// Many senders that fill the link of one receiver are all limited by it, though each has only its part.
func TestSharedLink(t *testing.T) {
	for name, tt := range map[string]struct {
		each float64 // Gb/s
		want string
	}{
		"full":     {2.35, "link-rate certain"},
		"not full": {1.5, "none"},
	} {
		d := planOf(team(0, 4, made{bps: tt.each * 1e9, link: 10e9}, func(c *measure.Cell) { c.Ceiling.LinkFrom = "stated" }))
		Diagnose(d)
		x := d.Cells[2].Findings[0]
		if got := x.Cause + " " + x.Confidence; !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s: %s: %s", name, got, x.Summary)
		}
		if tt.want != "none" && (!x.Healthy || !strings.Contains(x.Summary, "share it")) {
			t.Errorf("%s: %+v", name, x)
		}
	}
}

// All flows over a bundle use one of its members.
func TestGroupOnOneMember(t *testing.T) {
	bond := func(d *measure.Document, mode string) {
		d.EndPoints[1].Facts.Interfaces = []measure.Interface{{Name: "eth0", MTU: new(1500), Bond: &measure.Bond{Mode: mode, Members: []measure.BondMember{
			{Name: "p0", Up: true, SpeedBps: new(int64(1e9))}, {Name: "p1", Up: true, SpeedBps: new(int64(1e9))}}}}}
	}
	stated := func(c *measure.Cell) { c.Ceiling.LinkFrom = "stated" }
	for name, tt := range map[string]struct {
		doc  *measure.Document
		bond string
		want string
	}{
		"a bond, one member's rate":       {planOf(team(0, 4, made{bps: 0.235e9}, nil)), "802.3ad", "lag-one-member likely"},
		"a bond, two members' rate":       {planOf(team(0, 4, made{bps: 0.47e9}, nil)), "802.3ad", ""},
		"a bond of which one works":       {planOf(team(0, 4, made{bps: 0.235e9}, nil)), "active-backup", ""},
		"half of the link, 1 to 4":        {planOf(team(0, 1, made{bps: 0.94e9, link: 2e9}, stated), team(1, 4, made{bps: 0.235e9, link: 2e9}, stated)), "", "lag-one-member possible"},
		"two thirds of the link":          {planOf(team(0, 1, made{bps: 1.3e9, link: 2e9}, stated), team(1, 4, made{bps: 0.325e9, link: 2e9}, stated)), "", ""},
		"it rises to the whole link":      {planOf(team(0, 1, made{bps: 0.94e9, link: 2e9}, stated), team(1, 4, made{bps: 0.47e9, link: 2e9}, stated)), "", ""},
		"half of a link of no known rate": {planOf(team(0, 1, made{bps: 0.94e9}, nil), team(1, 4, made{bps: 0.235e9}, nil)), "", ""},
	} {
		if tt.bond != "" {
			bond(tt.doc, tt.bond)
		}
		got := ""
		for _, x := range groups.Findings(theCatalogue(), tt.doc) {
			got += x.Cause + " " + x.Confidence
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// The rungs of one document: a rung that the one below cannot prove reports that.
func TestRungsOfOneDocument(t *testing.T) {
	for name, tt := range map[string]struct {
		low, high, link float64 // Gb/s
		want            string
	}{
		"slow machine":                {5.8, 5.5, 10, "can generate only 5.80 Gb/s: it cannot prove a link of 10.0 Gb/s"},
		"fast machine":                {40, 5.5, 10, ""},
		"slow, link full":             {11, 9.4, 10, ""},
		"slow, the link is not known": {6, 5.5, 0, "it cannot prove that the path limits the rate to 5.50 Gb/s, which takes 1.3 times as much"},
		"fast, the link is not known": {40, 5.5, 0, ""},
	} {
		low := alone(tt.low*1e9, 0).Cells[0]
		low.Rung = "localhost"
		d := made{bps: tt.high * 1e9, link: tt.link * 1e9}.document()
		d.Cells[0].Rung = "LAN"
		slow := made{bps: 1e9, link: tt.link * 1e9}.cell() // not the maximum of the rung
		slow.Rung = "LAN"
		d.Cells = []measure.Cell{low, slow, d.Cells[0]}
		stat.Ladder(d, nil)
		Diagnose(d)
		Rungs([]*measure.Document{d})
		got := ""
		for _, x := range d.Cells[2].Findings {
			if x.Where.Place == measure.AtTool && strings.Contains(x.Summary, "can generate") {
				got = x.Summary
			}
		}
		if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
		if got != "" && d.Findings[0].Summary != got {
			t.Errorf("%s: the document begins with %q", name, d.Findings[0].Summary)
		}
	}
}
