package cause

import (
	"testing"

	"thru/internal/cause/diagnose"
	"thru/internal/measure"
)

// small is a sender of messages of 256 bytes over 2 Gb/s.
func small() made {
	return made{bps: 262 * mb, rtt: 3 * ms, base: 2 * ms, window: 1339 * kb, flight: 143 * kb, cwnd: 1032 * kb, notSent: 66 * kb, length: 256, sender: diagnose.Threads{Run: 90, Wait: 8, Blocked: 2}}
}

// bbrAlone is bbr on a path that would carry more.
func bbrAlone() made {
	return made{bps: 15000 * mb, control: "bbr", pacing: 16000 * mb, rtt: ms / 5, base: ms / 10, flight: 300 * kb, cwnd: 900 * kb, window: 3000 * kb, notSent: 500 * kb, length: 128 << 10}
}

func TestSender(t *testing.T) {
	cubic := func(bps float64) measure.Cell {
		c := with(made{bps: bps}, func(m *made) { m.control = "cubic" }).cell()
		c.Experiment, c.Baseline, c.Spec.Congestion = diagnose.OtherControl, true, "cubic"
		return c
	}
	for _, x := range []struct {
		name   string
		of     made
		trials []measure.Cell
		cause  string
		want   string
	}{
		{"small messages", small(), nil, "app-limited", "likely"},
		{"large ones carry more in a single run", small(), []measure.Cell{experiment(diagnose.LargeMessages, 1900*mb)}, "app-limited", "likely"},
		{"large ones carry more", small(), []measure.Cell{experiment(diagnose.LargeMessages, 1900*mb), inTurn(small(), diagnose.LargeMessages)}, "app-limited", "certain"},
		{"large ones carry the same", small(), []measure.Cell{experiment(diagnose.LargeMessages, 270*mb)}, "app-limited", "no"},
		{"small messages, but time to spare", with(small(), func(m *made) { m.sender = diagnose.Threads{Run: 50, Wait: 2, Blocked: 48} }), nil, "app-limited", "no"},
		{"nothing to send", with(bbrAlone(), func(m *made) {
			m.control, m.idle, m.notSent, m.sender = "cubic", 95, 0, diagnose.Threads{Run: 20, Wait: 1, Blocked: 79}
		}), nil, "app-limited", "no"}, // blocked in send()
		{"no course", with(small(), func(m *made) { m.noTimeline, m.length = true, 128<<10 }), nil, "app-limited", "?"},
		{"bbr on a LAN", bbrAlone(), nil, "paced", "likely"},
		{"bbr on a LAN that loses half of all", with(bbrAlone(), func(m *made) { m.againPct = 47 }), nil, "paced", "no"},
		{"bbr that fills a link", with(bbrAlone(), func(m *made) { m.bps, m.pacing, m.link = 9400*mb, 9500*mb, 10_000*mb }), nil, "paced", "no"},
		{"bbr on a path of 1 Gb/s whose rate nobody tells", with(bbrAlone(), func(m *made) { m.bps, m.pacing = 956*mb, 970*mb }), nil, "paced", "no"},
		{"bbr at 1 Gb/s, and a full CPU", with(bbrAlone(), func(m *made) {
			m.bps, m.pacing, m.sender = 956*mb, 970*mb, diagnose.Threads{Run: 99, Wait: 0, Blocked: 1}
		}), nil, "paced", "likely"},
		{"cubic carries more in a single run", bbrAlone(), []measure.Cell{cubic(43000 * mb)}, "paced", "likely"},
		{"cubic carries more", bbrAlone(), []measure.Cell{cubic(43000 * mb), inTurn(bbrAlone(), diagnose.OtherControl)}, "paced", "certain"},
		{"cubic carries the same", bbrAlone(), []measure.Cell{cubic(15100 * mb)}, "paced", "no"},
		{"the route keeps bbr", bbrAlone(), []measure.Cell{func() measure.Cell {
			c := cubic(15100 * mb)
			c.Runs[0].Flows[0].Sender.Streams[0].Congestion = "bbr"
			return c
		}()}, "paced", "likely"},
		{"cubic does not pace", with(bbrAlone(), func(m *made) { m.control = "cubic" }), nil, "paced", "no"},
		{"bbr far away", with(bbrAlone(), func(m *made) { m.rtt, m.base = 21*ms, 20*ms }), nil, "paced", "possible"},
		{"bbr before a full queue", with(bbrAlone(), func(m *made) { m.rtt, m.base = 80*ms, 20*ms }), nil, "paced", "no"},
		{"bbr would let more go", with(bbrAlone(), func(m *made) { m.pacing, m.rtt, m.base = 40000*mb, 21*ms, 20*ms }), nil, "paced", "no"},
		{"control not known", with(bbrAlone(), func(m *made) { m.control = "-" }), nil, "paced", "?"},
	} {
		t.Run(x.name, func(t *testing.T) {
			d := x.of.document(x.trials...)
			if x.of.control == "-" {
				d.Cells[0].Runs[0].Flows[0].Sender.Streams[0].Congestion = ""
			}
			Diagnose(d)
			if got := outcomeOf(d.Cells[0].Diagnosis, x.cause); got != x.want {
				t.Errorf("%s: %q, want %q", x.cause, got, x.want)
			}
		})
	}
}

// TestPacingGate: the gate advises no other congestion control if the traffic shows that pacing costs its path
// nothing.
func TestPacingGate(t *testing.T) {
	for name, tt := range map[string]struct {
		of   made
		want string
	}{
		"it costs":        {bbrAlone(), measure.GateWarn},
		"at 1 Gb/s":       {with(bbrAlone(), func(m *made) { m.bps, m.pacing = 956*mb, 970*mb }), measure.GatePass},
		"another control": {with(bbrAlone(), func(m *made) { m.control = "cubic" }), measure.GateWarn},
	} {
		d := tt.of.document()
		d.Gates = []measure.Gate{
			{ID: "congestion-control", Cause: "paced", EndPoint: "a", Status: measure.GateWarn, Fact: "bbr", Fix: []string{"sysctl"}},
			{ID: "congestion-control", Cause: "paced", EndPoint: "b", Status: measure.GateWarn, Fact: "bbr", Fix: []string{"sysctl"}},
		}
		Diagnose(d)
		if g := d.Gates[0]; g.Status != tt.want || (len(g.Fix) > 0) != (tt.want == measure.GateWarn) {
			t.Errorf("%s: %+v", name, g)
		}
		if g := d.Gates[1]; g.Status != measure.GateWarn {
			t.Errorf("%s, which sends nothing: %+v", name, g)
		}
	}
}

// TestAskedRate: a flow that carries its requested rate is healthy.
func TestAskedRate(t *testing.T) {
	m := made{bps: 49.9 * mb, rtt: 21 * ms, base: 20 * ms, idle: 98, window: 1000 * kb, flight: 125 * kb, cwnd: 900 * kb}
	d := m.document()
	d.Cells[0].Spec.Rate = 50e6
	Diagnose(d)
	if x := d.Findings[0]; x.Confidence != measure.Certain || !x.Healthy || x.Where.Place != measure.AtTool {
		t.Errorf("%+v", x)
	}
	d = m.document()
	d.Cells[0].Spec.MaxRate = 50e6
	Diagnose(d)
	if x := d.Findings[0]; x.Cause != "paced" || x.Confidence != measure.Certain || x.Where.Place != measure.AtTool {
		t.Errorf("what an end point allows: %+v", x)
	}
}

// Small blocks only at the reader are its fault.
func TestSmallReads(t *testing.T) {
	d := with(small(), func(m *made) { m.length = 128 << 10 }).document(experiment(diagnose.LargeMessages, 1900*mb))
	takeTurns(d)
	d.Cells[0].Length.Recv = 1 << 10
	Diagnose(d)
	if f := d.Cells[0].Findings[0]; f.Cause != "app-limited" || f.Confidence != measure.Certain || f.Where.EndPoint != d.Cells[0].To {
		t.Errorf("%s, %s at %+v", f.Cause, f.Confidence, f.Where)
	}
}

// TestPaces: judgements, gates and proposals agree on which congestion controls pace, derivatives of bbr included.
func TestPaces(t *testing.T) {
	for control, want := range map[string]bool{"bbr": true, "bbr2": true, "bbr3": true, "bbrplus": true, "cubic": false, "dctcp": false, "": false} {
		if diagnose.Paces(control) != want {
			t.Errorf("%q paces: %v", control, !want)
		}
	}
}
