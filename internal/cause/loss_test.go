package cause

import (
	"testing"
	"time"

	"thru/internal/cause/diagnose"
	"thru/internal/measure"
)

// lossy is 0.1% of random loss at 20 ms under cubic.
func lossy() made {
	return made{bps: 20.4 * mb, rtt: 20*ms + 800_000, base: 20 * ms, againPct: 0.138, flight: 51 * kb, cwnd: 51 * kb, window: 2600 * kb, notSent: 1775 * kb, recoveries: 1000}
}

// policed is a policer of 100 Mb/s at 20 ms under cubic.
func policed() made {
	return made{bps: 31.2 * mb, rtt: 20*ms + 700_000, base: 20 * ms, againPct: 0.104, flight: 79 * kb, cwnd: 79 * kb, window: 1167 * kb, notSent: 350 * kb, recoveries: 800}
}

// shaped is a shaper of 100 Mb/s with 2 MB of queue at 20 ms.
func shaped() made {
	return made{bps: 95.6 * mb, rtt: 141 * ms, base: 20 * ms, againPct: 0.183, flight: 1676 * kb, cwnd: 1682 * kb, window: 9353 * kb, notSent: 3260 * kb}
}

func TestLossAndQueues(t *testing.T) {
	below := func(rate, lost float64) measure.Cell { return datagramTrial(diagnose.UdpBelow, rate, lost, 0) }
	for _, x := range []struct {
		name   string
		of     made
		trials []measure.Cell
		first  string
		want   map[string]string
	}{
		{"loss alone", lossy(), nil, "loss likely", map[string]string{"policer": "possible", "shaper": "no"}},
		{"loss below the rate", lossy(), []measure.Cell{below(60*mb, 0.12)}, "loss certain", nil},
		{"few lost below the rate", lossy(), []measure.Cell{below(18*mb, 0.12)}, "loss likely", nil},
		{"lost below the rate, out of a full queue", lossy(), []measure.Cell{datagramTrial(diagnose.UdpBelow, 60*mb, 0.12, 60*ms)}, "policer possible", map[string]string{"loss": "no"}},
		{"lost below the rate, and too rare for it", with(lossy(), func(m *made) { m.bps = 5 * mb }), []measure.Cell{below(60*mb, 0.12)}, "loss likely", nil},
		{"one datagram lost is chance", lossy(), []measure.Cell{below(10*mb, 0.06)}, "loss likely", nil},
		{"none lost of many", lossy(), []measure.Cell{below(100*mb, 0)}, "policer possible", map[string]string{"loss": "no"}},
		{"none lost of too few to say", lossy(), []measure.Cell{below(8*mb, 0)}, "loss likely", nil},
		{"loss that the datagrams met at the receiver", lossy(), []measure.Cell{atReceiver(below(100*mb, 5))}, "policer possible", map[string]string{"loss": "no"}},

		{"more passes within a site than such a loss leaves", with(lossy(), func(m *made) { m.bps, m.rtt, m.base, m.againPct = 31_700*mb, ms/10, ms/20, 0.0007*4 }), nil, "none likely", map[string]string{"loss": "no"}},

		{"policer by datagrams", policed(), []measure.Cell{below(28*mb, 0), datagramTrial(diagnose.UdpAbove, 34*mb, 0, 0), datagramTrial(diagnose.UdpThrice, 93*mb, 0, 0), datagramTrial(diagnose.UdpTenfold, 310*mb, 68, 0)},
			"policer certain", map[string]string{"shaper": "no"}},
		{"near what passes bursts are lost", with(policed(), func(m *made) { m.bps = 348 * mb }), []measure.Cell{below(306*mb, 0), datagramTrial(diagnose.UdpAbove, 382*mb, 0.6, 0)}, "policer possible", map[string]string{"loss": "no"}},
		{"policer, while a host stood still for once", policed(), []measure.Cell{below(28*mb, 0), late(datagramTrial(diagnose.UdpTenfold, 310*mb, 68, 2*ms), 40*ms)}, "policer certain", map[string]string{"shaper": "no"}},
		{"policer of a slow path, where few packets take a while", with(policed(), func(m *made) { m.bps = 9 * mb }), []measure.Cell{below(8*mb, 0), datagramTrial(diagnose.UdpThrice, 27*mb, 60, 5*ms)}, "policer certain", map[string]string{"shaper": "no"}},
		{"all passes far above", policed(), []measure.Cell{below(28*mb, 0), datagramTrial(diagnose.UdpThrice, 93*mb, 0, 0), datagramTrial(diagnose.UdpThirtyfold, 930*mb, 0, 0)}, "loss likely", map[string]string{"policer": "no", "shaper": "no"}},
		{"not tried far enough", policed(), []measure.Cell{below(28*mb, 0), datagramTrial(diagnose.UdpThrice, 93*mb, 0, 0)}, "policer possible", map[string]string{"loss": "no"}},

		{"several streams, which losses hold one by one, carry more", with(lossy(), func(m *made) { m.bins = []float64{1, 1, 1, 1, 1} }), []measure.Cell{experiment(diagnose.EightStreams, 120*mb)}, "loss likely", map[string]string{"lag-one-member": "possible"}},

		{"shaper alone", shaped(), nil, "shaper likely", map[string]string{"loss": "no", "policer": "no"}},
		{"shaper by datagrams", shaped(), []measure.Cell{datagramTrial(diagnose.UdpAbove, 105*mb, 8, 120*ms)}, "shaper likely", nil},
		{"and by several streams", shaped(), []measure.Cell{datagramTrial(diagnose.UdpAbove, 105*mb, 8, 120*ms), experiment(diagnose.EightStreams, 96*mb)}, "shaper certain", map[string]string{"lag-one-member": "no"}},
		{"several carry a multiple", shaped(), []measure.Cell{datagramTrial(diagnose.UdpAbove, 105*mb, 8, 120*ms), experiment(diagnose.EightStreams, 191*mb)}, "lag-one-member likely", map[string]string{"shaper": "likely"}},
		{"a short queue", policed(), []measure.Cell{below(28*mb, 0), datagramTrial(diagnose.UdpTenfold, 310*mb, 68, 5*ms), experiment(diagnose.EightStreams, 90*mb)}, "shaper certain", map[string]string{"policer": "no"}},
		{"the link is full", with(shaped(), func(m *made) { m.link = 101 * mb }), nil, "none likely", map[string]string{"shaper": "no"}},
		{"rates far apart", with(shaped(), func(m *made) { m.bins = []float64{0.4, 1, 1.6, 1, 0.5} }), nil, "none likely", map[string]string{"shaper": "no"}},
		{"too short to see", with(shaped(), func(m *made) { m.bins = []float64{1, 1} }), nil, "none likely", map[string]string{"shaper": "?"}},
		{"a window that fills the queue", with(shaped(), func(m *made) { m.rwndPct, m.wndFull, m.againPct, m.window = 80, 80, 0, 1700*kb }), nil, "shaper likely", map[string]string{"receive-window": "no"}},
		{"a buffer that fills the queue", with(shaped(), func(m *made) { m.notSent, m.againPct, m.cwnd, m.buffer = 0, 0, 3000*kb, 2<<20 }), nil, "shaper likely", map[string]string{"send-buffer": "no"}},
		{"a buffer before a queue that comes and goes", with(shaped(), func(m *made) {
			m.notSent, m.againPct, m.cwnd, m.buffer, m.rtt, m.flight, m.bins = 0, 0, 3000*kb, 2<<20, 44*ms, 520*kb, []float64{0.95, 1.05, 1, 1.06, 0.94}
		}), nil, "send-buffer likely", nil},
		{"a window that fills the path once and a half", with(smallReceive(), func(m *made) { m.rtt = 36 * ms; m.window, m.flight = 176*kb, 176*kb }), nil, "receive-window likely", map[string]string{"shaper": "no"}},
		{"congestion window not used up", with(shaped(), func(m *made) { m.flight, m.againPct = 900*kb, 0 }), nil, "none likely", map[string]string{"shaper": "no"}},
	} {
		t.Run(x.name, func(t *testing.T) {
			d := x.of.document(x.trials...)
			if x.first != "none likely" { // other families may report more about it
				if got := first(t, d); got != x.first {
					t.Errorf("first %s, want %s", got, x.first)
				}
			}
			Diagnose(d)
			for cause, want := range x.want {
				if got := outcomeOf(d.Cells[0].Diagnosis, cause); got != want {
					t.Errorf("%s: %q, want %q", cause, got, want)
				}
			}
		})
	}
}

func with(m made, change func(*made)) made { change(&m); return m }

// late sets a maximum delay of the datagrams.
func late(c measure.Cell, most time.Duration) measure.Cell {
	c.Datagrams.DelayMaxNs = new(int64(most))
	return c
}

// atReceiver attributes the loss to the receiver's socket.
func atReceiver(c measure.Cell) measure.Cell {
	c.LossPlaces = []measure.LossPlace{{Place: measure.LossSocket, EndPoint: "b", Packets: c.Datagrams.Lost}}
	return c
}

func TestReordering(t *testing.T) {
	m := made{bps: 190 * mb, rtt: 21 * ms, base: 20 * ms, reordered: 500, doubled: 100, againPct: 0.015, flight: 500 * kb, cwnd: 500 * kb}
	d := m.document()
	Diagnose(d)
	if got := outcomeOf(d.Cells[0].Diagnosis, "reordering"); got != "likely" {
		t.Errorf("what was sent again had come: %q", got)
	}
	mixed := datagramTrial(diagnose.UdpBelow, 170*mb, 0, 0)
	mixed.Datagrams.Reordered = mixed.Datagrams.Received / 100
	d = m.document(mixed)
	Diagnose(d)
	if got := outcomeOf(d.Cells[0].Diagnosis, "reordering"); got != "certain" {
		t.Errorf("with datagrams out of order: %q", got)
	}
	mixed.Datagrams.Reordered = 9
	d = m.document(mixed)
	Diagnose(d)
	if got := outcomeOf(d.Cells[0].Diagnosis, "reordering"); got != "likely" {
		t.Errorf("with nine datagrams out of order: %q", got)
	}
	mixed.Datagrams.Reordered = mixed.Datagrams.Received / 200
	d = with(m, func(m *made) { m.rtt = 40 * ms }).document(mixed)
	if got := first(t, d); got != "shaper likely" {
		t.Errorf("with a few datagrams out of order, before a queue: %q", got)
	}
	d = m.document(datagramTrial(diagnose.UdpBelow, 170*mb, 0, 0))
	Diagnose(d)
	if got := outcomeOf(d.Cells[0].Diagnosis, "reordering"); got != "no" {
		t.Errorf("with datagrams in order: %q", got)
	}
}

// TestLossBelowAndShaperAbove: packets are lost at any rate, and a shaper limits a far higher one: the loss binds.
func TestLossBelowAndShaperAbove(t *testing.T) {
	m := with(lossy(), func(m *made) { m.bps, m.againPct, m.recoveries = 78*mb, 0.2, 100 })
	d := m.document(datagramTrial(diagnose.UdpBelow, 70*mb, 0.1, 0), datagramTrial(diagnose.UdpThrice, 235*mb, 17, 20*ms))
	if got := first(t, d); got != "loss certain" {
		t.Error(got)
	}
	for _, cause := range []string{"policer", "shaper"} {
		if got := outcomeOf(d.Cells[0].Diagnosis, cause); got != "no" {
			t.Errorf("%s: %q", cause, got)
		}
	}
}

// TestLossUnderBBR: the loss does not slow bbr down, so the plateau comes first.
func TestLossUnderBBR(t *testing.T) {
	m := made{bps: 191 * mb, control: "bbr", rtt: 24 * ms, base: 20 * ms, againPct: 1, flight: 500 * kb, cwnd: 1100 * kb, window: 9000 * kb, notSent: 500 * kb, pacing: 194 * mb}
	d := m.document(datagramTrial(diagnose.UdpBelow, 170*mb, 0.95, 0), datagramTrial(diagnose.UdpAbove, 210*mb, 8, 20*ms), experiment(diagnose.EightStreams, 193*mb))
	if got := first(t, d); got != "shaper certain" {
		t.Error(got)
	}
	if got := outcomeOf(d.Cells[0].Diagnosis, "loss"); got != "certain" {
		t.Errorf("and the loss is %q", got)
	}
}
