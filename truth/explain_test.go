package truth

import (
	"math/rand/v2"

	"thru/internal/cause"
	"thru/internal/cause/diagnose"
	"thru/internal/measure"
)

// explainTrials is the number of simulated explanations for each condition.
const explainTrials = 1500

// scatterOf draws the ratio of one run of a path to the mean.
type scatterOf struct {
	name string
	draw func(*rand.Rand) float64
}

func pathScatters() []scatterOf {
	normal := func(r *rand.Rand) float64 { return max(0.05, 1+0.12*r.NormFloat64()) }
	levels := func(r *rand.Rand) float64 { return 1 - 0.2*float64(r.IntN(2)) }
	rare := func(r *rand.Rand) float64 {
		if r.IntN(10) == 0 {
			return 0.75
		}
		return 1
	}
	return []scatterOf{
		{"CV 12%", normal}, {"half of the runs 20% less", levels}, {"1 run in 10 25% less", rare},
		{"all three", func(r *rand.Rand) float64 { return normal(r) * levels(r) * rare(r) }},
	}
}

// deceived returns the rates for explanations of a path on which no experiment carries more.
func deceived(scale float64) table {
	t := table{
		title: "explain: experiments that carry no more",
		about: "How often `thru explain`, with four experiments that can each confirm a cause, calls one certain only because runs scatter. " +
			"An experiment that carries more alternates with the baseline until its interval decides, at most five times.",
		head: []string{"scatter of the runs", "certain"},
	}
	for i, s := range pathScatters() {
		certain := count(explainTrials, scale, uint64(2200+i), func(r *rand.Rand) bool {
			return explainOnce(func(string) float64 { return s.draw(r) }) != ""
		})
		bar := 0.01
		if i == len(pathScatters())-1 {
			bar = 0.02 // more than the assumed scatter of a path
		}
		t.add(s.name, certain.most(bar))
	}
	return t
}

// detected returns the rates for explanations of a path on which one experiment carries more.
func detected(scale float64) table {
	t := table{
		title: "explain: an experiment that carries more",
		about: "How often `thru explain` is certain of the cause if windows that the kernel adjusts carry this many times more.",
		head:  []string{"scatter of the runs", "1.5 times", "2 times", "5 times"},
	}
	for i, s := range pathScatters() {
		x := row{names: []string{s.name}}
		for k, times := range []float64{1.5, 2, 5} {
			found := count(explainTrials/4, scale, uint64(2300+10*i+k), func(r *rand.Rand) bool {
				return explainOnce(func(id string) float64 {
					if id == "default-window" {
						return times * s.draw(r)
					}
					return s.draw(r)
				}) == "fixed-window"
			})
			if i < len(pathScatters())-1 {
				found = found.least([]float64{0.65, 0.95, 0.99}[k])
			}
			x.rates = append(x.rates, found)
		}
		t.rows = append(t.rows, x)
	}
	return t
}

// explainOnce makes an explanation as package control does, and returns the certain cause; "" without one.
// carries draws the rate of a run of the base or of an experiment, relative to the base's mean.
func explainOnce(carries func(id string) float64) string {
	d := &measure.Document{
		EndPoints: []measure.EndPoint{explainHost("a"), explainHost("b")},
		Cells:     []measure.Cell{explainCell(explainSpec(), diagnose.Base, carries(diagnose.Base))},
	}
	made := []string{"longer", "small-segments", "udp-below", "udp-above", "udp-3x", "udp-10x", "udp-30x"} // their effect does not depend on how much more they carry
	for cause.Diagnose(d); !diagnose.Settled(&d.Cells[0]); cause.Diagnose(d) {
		t, more := cause.Next(d, 0, made)
		if !more {
			return ""
		}
		if !t.Again {
			made = append(made, t.ID)
		}
		id := t.ID
		if t.OfBase {
			id = diagnose.Base
		}
		one := explainCell(t.Spec, t.ID, carries(id))
		if t.Cell < 0 {
			d.Cells = append(d.Cells, one)
		} else {
			c := &d.Cells[t.Cell]
			c.Runs = append(c.Runs, one.Runs...)
		}
	}
	return d.Cells[0].Findings[0].Cause
}

// explainSpec sets everything that experiments can change.
func explainSpec() measure.Spec {
	return measure.Spec{From: "a", To: "b", Engine: measure.Native, Protocol: measure.TCP, Streams: 1, Duration: 5e9, Congestion: "bbr",
		Window: measure.Pair{Send: 1 << 20, Recv: 1 << 20}, Length: measure.Pair{Send: 8 << 10, Recv: 8 << 10}}
}

func explainHost(name string) measure.EndPoint {
	return measure.EndPoint{Name: name, Facts: &measure.Facts{Hostname: &name, OS: new("linux"), CongAvail: []string{"cubic", "bbr"}}}
}

// explainCell returns a run with a share of 4 Gb/s: the sender's thread is fully busy, and a loss of 1% keeps
// that from being certain by itself.
func explainCell(s measure.Spec, id string, share float64) measure.Cell {
	bps := 4e9 * share
	bytes := int64(bps / 8 * float64(s.Duration) / 1e9)
	start := measure.TCPInfo{Retrans: new(uint32), DataSegsOut: new(uint32), BusyUs: new(uint64), RwndLimitedUs: new(uint64)}
	end := measure.TCPInfo{Retrans: new(uint32(10_000)), DataSegsOut: new(uint32(1_000_000)), MinRTT: new(int64(100_000)), SendMSS: new(uint32(1448)),
		BusyUs: new(uint64(s.Duration / 1000)), RwndLimitedUs: new(uint64(s.Duration / 2000))}
	stream := measure.Stream{Congestion: s.Congestion, TCPStart: &start, TCP: &end, RunNs: new(s.Duration * 97 / 100), WaitNs: new(int64), BlockedNs: new(s.Duration * 3 / 100)}
	sender := &measure.Evidence{EndPoint: "a", Sends: true, MeasuredNs: s.Duration, PeerAddr: "10.0.0.2:5202", Streams: []measure.Stream{stream}}
	receiver := &measure.Evidence{EndPoint: "b", MeasuredNs: s.Duration, Bytes: bytes, Streams: []measure.Stream{{RunNs: new(s.Duration / 5), WaitNs: new(int64), BlockedNs: new(s.Duration * 4 / 5)}}}
	return measure.Cell{
		From: "a", To: "b", Protocol: s.Protocol, Streams: s.Streams, Window: s.Window, Length: s.Length, Spec: s, AtOnce: 1, Experiment: id, Baseline: id != diagnose.Base,
		Goodput: &measure.Figure{Value: bps, Runs: 1},
		Runs:    []measure.Run{{Goodput: &bps, Flows: []measure.Flow{{From: "a", To: "b", Sender: sender, Receiver: receiver}}}},
	}
}
