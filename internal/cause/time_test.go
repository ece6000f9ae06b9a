package cause

import (
	"slices"
	"testing"

	"thru/internal/cause/diagnose"
	"thru/internal/measure"
	"thru/internal/stat"
)

// biting makes the round-trip time grow from that second on.
func biting(from int) func(*measure.Document) {
	return func(d *measure.Document) {
		for i := range near(d).Bins {
			if i >= from {
				near(d).Bins[i].TCP[0].RTT = new(int64(40_000_000))
			}
		}
	}
}

// ramp makes that many bytes arrive in the second before the measured time.
func ramp(bytes int64) func(*measure.Document) {
	return func(d *measure.Document) { far(d).RampNs, far(d).RampBytes = 1e9, &bytes }
}

func TestTokenBucket(t *testing.T) {
	step := seconds(5, 5.01, 4.99, 5, 1, 1.01, 0.99, 1, 1)
	again := func(share float64) func(*measure.Document) { // another run, with that share of the seconds at the first level
		return func(d *measure.Document) {
			c := flowDoc(step, seconds(slices.Concat(slices.Repeat([]float64{5}, int(6*share)), slices.Repeat([]float64{1}, 6))...)).Cells[0]
			if share == 1 {
				c = flowDoc(step).Cells[0]
			}
			d.Cells[0].Runs = append(d.Cells[0].Runs, c.Runs...)
		}
	}
	counts := func(name string) func(*measure.Document) {
		return func(d *measure.Document) {
			near(d).Host.NIC.Driver = map[string]uint64{name: 9000}
		}
	}
	judgeRows(t, "token-bucket", []row{
		{"one level", "no", "one level", nil},
		{"high, then low, and a queue", "likely", "falls from 5.00 Gb/s to 1.00 Gb/s after 4 s", edits{step, biting(4)}},
		{"as many bytes in each of two runs", "certain", "", edits{step, again(1)}},
		{"another number of bytes in the other run", "likely", "", edits{step, again(0.5)}},
		{"no queue", "likely", "", edits{step}},
		{"halved", "likely", "", edits{seconds(5, 5.01, 4.99, 5, 2.5, 2.51, 2.49, 2.5, 2.5), biting(4)}},
		{"low, then high", "no", "not clearly below", edits{seconds(1, 1, 1.01, 0.99, 5, 5, 5.01, 5, 5)}},
		{"a small step", "no", "", edits{seconds(5, 5.01, 4.99, 5, 4.5, 4.51, 4.49, 4.5, 4.5), biting(4)}},
		{"a full CPU", "no", "CPU", edits{step, biting(4), func(d *measure.Document) { near(d).Streams[0].RunNs = new(int64(8e9)) }}},
		{"empty after the ramp", "likely", "from 3.20 Gb/s to 1.00 Gb/s after 1 s", edits{rate(1e9), loaded(40), ramp(400e6)}},
		{"a ramp like the rest", "no", "", edits{rate(1e9), loaded(40), ramp(150e6)}},
		{"a fast ramp without a queue", "no", "", edits{rate(1e9), ramp(400e6)}},
		{"short", "missing", "6 s or more", edits{seconds(5, 5, 5, 1, 1)}},
		{"short, and a longer run stays low", "likely", "falls from 5.00 Gb/s to 1.00 Gb/s after 4 s", edits{seconds(5, 5, 3, 1, 1), ramp(500e6), lasts(diagnose.Longer, slices.Repeat([]float64{1}, 12)...)}},
		{"the same burst after a rest", "certain", "", edits{seconds(5, 5, 3, 1, 1), ramp(500e6), lasts(diagnose.Longer, slices.Repeat([]float64{1}, 12)...), lasts(diagnose.Rested, 5, 5, 5, 2.6, 1, 1, 1, 1, 1)}},
		{"none after a rest", "likely", "", edits{seconds(5, 5, 3, 1, 1), ramp(500e6), lasts(diagnose.Longer, slices.Repeat([]float64{1}, 12)...), lasts(diagnose.Rested, slices.Repeat([]float64{1}, 12)...)}},
		{"short, and a longer run is as fast as the first seconds", "no", "one level", edits{seconds(5, 5, 3, 1, 1), lasts(diagnose.Longer, slices.Repeat([]float64{5}, 12)...)}},
		{"a longer run shows both levels", "likely", "falls from 5.00 Gb/s to 1.00 Gb/s after 6 s", edits{seconds(5, 5, 5, 5, 5), lasts(diagnose.Longer, 5, 5, 5, 5, 5, 5, 1, 1, 1, 1, 1, 1)}},
		{"a cloud counts a few", "likely", "allowance", edits{rate(5e9), loaded(40), func(d *measure.Document) {
			near(d).Host.NIC.TxPackets = 4_000_000
			near(d).Host.NIC.Driver = map[string]uint64{"bw_out_allowance_exceeded": 40}
		}}},
		{"a cloud counts it", "certain", "allowance", edits{rate(1e9), loaded(40), counts("bw_out_allowance_exceeded")}},
		{"a cloud counts packets a second", "likely", "allowance", edits{rate(1e9), loaded(40), counts("pps_allowance_exceeded")}},
		{"packets a second, which are others' small ones", "possible", "allowance", edits{rate(1e9), loaded(40), counts("pps_allowance_exceeded"), func(d *measure.Document) { near(d).Host.NIC.TxPackets = 9_000_000 }}},
		{"it counts, and nothing of this was held up", "likely beside", "", edits{rate(1e9), counts("bw_out_allowance_exceeded")}},
		{"it counts, of others mostly", "likely", "", edits{rate(1e8), loaded(40), counts("bw_out_allowance_exceeded")}},
		{"of the other way", "no", "one level", edits{rate(1e9), loaded(40), counts("bw_in_allowance_exceeded")}},
		{"of tracked connections", "no", "one level", edits{rate(1e9), loaded(40), counts("conntrack_allowance_exceeded")}},
		{"it counts, and the link is full", "likely beside", "", edits{counts("bw_out_allowance_exceeded")}},
		{"ten times as much passes", "no", "datagrams at 1.90 Gb/s pass", edits{rate(180e6), seconds(0.5, 0.1, 0.1, 0.1, 0.1), passing(diagnose.UdpTenfold, 1.9e9)}},
		{"three times as much passes", "missing", "", edits{rate(180e6), seconds(0.5, 0.1, 0.1, 0.1, 0.1), passing(diagnose.UdpThrice, 0.54e9)}},
		{"no evidence", "missing", "", edits{noEvidence}},
	})
}

// passing adds an experiment whose datagrams all pass.
func passing(id string, bps float64) func(*measure.Document) {
	return try(id, bps, func(c *measure.Cell) { c.Datagrams = datagramTrial(id, bps, 0, 0).Datagrams })
}

// lasts adds an experiment whose seconds have these rates in Gb/s.
func lasts(id string, gbps ...float64) func(*measure.Document) {
	return func(d *measure.Document) {
		try(id, stat.Median(gbps)*1e9, func(c *measure.Cell) { c.Runs = flowDoc(seconds(gbps...)).Cells[0].Runs })(d)
	}
}

// A rate that fell within the base is measured for longer before any other experiment, and again after a rest in
// which a bucket refills.
func TestNextLengthensWhatFalls(t *testing.T) {
	d := flowDoc(rate(1.8e9), seconds(5, 5, 3, 1, 1), ramp(500e6))
	d.Cells[0].Experiment = diagnose.Base
	Diagnose(d)
	if x, more := Next(d, 0, nil); !more || x.ID != diagnose.Longer || x.Spec.Duration != 6e9 { // whether the level stays needs no more
		t.Fatalf("%s is tried first, for %v", x.ID, x.Spec.Duration)
	}
	lasts(diagnose.Longer, slices.Repeat([]float64{1}, 12)...)(d)
	Diagnose(d)
	made := []string{diagnose.Longer}
	for {
		x, more := Next(d, 0, made)
		if !more {
			t.Fatalf("after %v nothing is tried after a rest: %+v", made, d.Cells[0].Findings)
		}
		if x.ID == diagnose.Rested {
			// 1.6 GB fill in 13 s at 1 Gb/s.
			if x.Rest < 13e9 || x.Rest > 15e9 {
				t.Errorf("rests for %v", x.Rest)
			}
			if x.Spec.Duration < 7e9 || x.Spec.Duration > 9e9 { // 3 or 4 s until it falls, and some more
				t.Errorf("then runs for %v", x.Spec.Duration)
			}
			return
		}
		made = append(made, x.Name())
	}
}

func TestSlowConvergence(t *testing.T) {
	rise := seconds(1, 1.2, 1.4, 1.6, 1.8, 2, 2.2, 2.4)
	grows := func(d *measure.Document) {
		for i := range near(d).Bins {
			near(d).Bins[i].TCP[0].Cwnd = new(uint32(1000 + 200*i))
		}
	}
	judgeRows(t, "slow-convergence", []row{
		{"flat", "no", "", nil},
		{"rises with its window", "likely", "still rises when the run ends: from 1.10 Gb/s to 2.30 Gb/s", edits{rise, grows}},
		{"rises without it", "no", "congestion window", edits{rise}},
		{"a longer run is faster, as runs are by chance", "likely", "", edits{rate(1.7e9), rise, grows, try(diagnose.Longer, 3e9)}},
		{"a longer run is faster, since it rises on", "certain", "", edits{rate(1.7e9), rise, grows, try(diagnose.Longer, 3e9, risesOn)}},
		{"a longer run is not", "no", "reaches only", edits{rate(1.7e9), rise, grows, try(diagnose.Longer, 1.8e9)}},
		{"up and down", "no", "rises and falls", edits{seconds(1, 3, 1, 3.4, 1, 3, 2, 3.5), grows}},
		{"a step", "no", "two levels", edits{seconds(1, 1.01, 1.02, 1.03, 3, 3.01, 3.02, 3.03), grows}},
		{"a little", "no", "", edits{seconds(1, 1.01, 1.02, 1.03, 1.04, 1.05, 1.06, 1.07), grows}},
		{"with what is lost", "no", "with packet loss", edits{rate(30e6), rise, grows, lost(0.1)}},
		{"began in slow start", "likely", "", edits{rise, seconds(0.02, 0.1, 0.9, 2.3, 1.4, 1.8, 1.9, 2)}},
		{"imported", "possible", "", edits{rise, func(d *measure.Document) { near(d).Bins = nil }}},
		{"short", "missing", "5 s or more", edits{seconds(1, 2, 3)}},
	})
}

func TestNoisyNeighbour(t *testing.T) {
	uneven := seconds(5, 9, 5, 9, 4, 8, 5, 9)
	steal := func(pct ...float64) func(*measure.Document) {
		return func(d *measure.Document) {
			sum := 0.0
			far(d).PerSec = nil
			for _, p := range pct {
				far(d).PerSec = append(far(d).PerSec, measure.HostSpan{CPUs: []measure.CPU{{Steal: p, Idle: 100 - p}}})
				sum += p
			}
			far(d).Host.CPUs = []measure.CPU{{Steal: sum / float64(len(pct)), Idle: 50}}
		}
	}
	crowded := func(waits int64) func(*measure.Document) {
		return func(d *measure.Document) {
			far(d).Base = &measure.HostSpan{CPUs: []measure.CPU{{User: 95, Idle: 5}}}
			for i := range far(d).Streams {
				far(d).Streams[i].WaitNs = new(waits * far(d).MeasuredNs / 100)
			}
		}
	}
	judgeRows(t, "noisy-neighbour", []row{
		{"even", "no", "", nil},
		{"a busy host", "possible", "other work keeps 95% of the CPUs of far busy", edits{rate(5e9), crowded(1)}},
		{"a busy host, and its thread waits for a CPU", "likely", "other work keeps 95% of the CPUs of far busy", edits{rate(5e9), crowded(60)}},
		{"a busy host, and a full link", "no", "the link is full", edits{crowded(60)}},
		{"the rate follows the steal", "likely", "other guests on the machine of far", edits{uneven, steal(40, 5, 45, 5, 50, 10, 40, 5)}},
		{"it does not", "no", "does not follow", edits{uneven, steal(5, 40, 5, 45, 5, 40, 5, 40)}},
		{"too little", "no", "1% of the CPUs", edits{uneven, steal(2, 0, 2, 0, 2, 0, 2, 0)}},
		{"seconds not kept", "missing", "", edits{uneven, steal(40, 5, 45, 5, 50, 10, 40, 5), func(d *measure.Document) { far(d).PerSec = nil }}},
		{"CPUs not known", "missing", "steal", edits{uneven, func(d *measure.Document) { near(d).Host, far(d).Host = nil, nil }}},
		{"no evidence", "missing", "", edits{noEvidence}},
	})
}

// TestStillClimbs: the rate of a sender that only its congestion window limits, without loss or a queue, is still
// rising.
func TestStillClimbs(t *testing.T) {
	m := made{bps: 5 * mb, rtt: 309 * ms, base: 300 * ms, flight: 188 * kb, cwnd: 188 * kb, window: 748 * kb, notSent: 224 * kb}
	grown := func(m made, timeline ...uint32) *measure.Document {
		d := m.document()
		e := d.Cells[0].Runs[0].Flows[0].Sender
		for i, n := range timeline {
			e.Bins = append(e.Bins, measure.StreamBin{At: int64(i) * 1e9, Span: 1e9, TCP: []measure.TCPInfo{{Cwnd: new(n)}}})
		}
		return d
	}
	for _, x := range []struct {
		name     string
		change   func(*made)
		timeline []uint32
		want     string
	}{
		{"grows", nil, []uint32{120, 128, 137}, "likely"},
		{"falls", nil, []uint32{137, 128, 120}, "no"},
		{"loses", func(m *made) { m.againPct = 0.1 }, []uint32{120, 128, 137}, "no"},
		{"fills a queue", func(m *made) { m.rtt = 400 * ms }, []uint32{120, 128, 137}, "no"},
		{"fills the receiver's window", func(m *made) { m.rwndPct = 90 }, []uint32{120, 128, 137}, "no"},
		{"has more room", func(m *made) { m.cwnd = 400 * kb }, []uint32{120, 128, 137}, "no"},
	} {
		c := m
		if x.change != nil {
			x.change(&c)
		}
		d := grown(c, x.timeline...)
		Diagnose(d)
		if got := outcomeOf(d.Cells[0].Diagnosis, "slow-convergence"); got != x.want {
			t.Errorf("%s: %q, want %q", x.name, got, x.want)
		}
	}
	d := grown(m, 120, 128, 137)
	d.Cells = append(d.Cells, experiment(diagnose.Longer, 40*mb))
	risesOn(&d.Cells[1])
	if got := first(t, d); got != "slow-convergence certain" {
		t.Errorf("a longer run reached more: %s", got)
	}
}

// risesOn doubles the length of a cell's run, at a rate half as high again.
func risesOn(c *measure.Cell) {
	e := c.Runs[0].Flows[0].Receiver
	for _, b := range e.Bins {
		b.At, b.Bytes = b.At+int64(len(e.Bins))*1e9, b.Bytes*3/2
		e.Bins = append(e.Bins, b)
	}
}
