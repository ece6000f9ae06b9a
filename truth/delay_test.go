package truth

import (
	"fmt"
	"math"
	"math/rand/v2"

	"thru/internal/measure"
	"thru/internal/stat"
)

// path returns the delay of a datagram in ns above that of the empty path; the datagram arrives at ns after
// the first one and gap ns after the previous one.
type path func(at, gap float64) float64

// delayTrial is one stream of datagrams with known delays.
type delayTrial struct {
	seconds float64
	ppm     float64
	every   float64 // ns between datagrams, on average
	path    func(*rand.Rand) path
}

// off returns by how many ns thru's mean differs from the true one of the measured time.
func (x delayTrial) off(r *rand.Rand) float64 {
	const rampNs, floorNs, noiseNs = 1e9, 200e3, 5e3
	d, wait := stat.NewDelays(), x.path(r)
	sum, n, least := 0.0, 0.0, math.Inf(1)
	for at, gap := 0.0, 0.0; at < x.seconds*1e9+rampNs; at += gap {
		delay := wait(at, gap) + noiseNs*r.Float64()
		least = min(least, delay)
		if at >= rampNs {
			sum, n = sum+delay, n+1
		}
		now := (at + floorNs + delay) * (1 + x.ppm/1e6)
		d.Take(int64(now), int64(now-at), at >= rampNs)
		gap = x.every * r.ExpFloat64()
	}
	var said measure.Datagrams
	d.Describe(&said, stat.NewHistogram())
	return math.Abs(float64(*said.DelayMeanNs) - (sum/n - least))
}

// empty is a path without a queue.
func empty(*rand.Rand) path { return func(float64, float64) float64 { return 0 } }

// mm1 is a queue with random gaps and sizes, at a load of 0 to 1.
func mm1(load float64) func(*rand.Rand) path {
	return func(r *rand.Rand) path {
		left := 0.0
		return func(_, gap float64) float64 {
			wait := max(left-gap, 0)
			left = wait + 1e6*load*r.ExpFloat64()
			return wait
		}
	}
}

// bursts are queues of 20 ms from other traffic that drain, one in 2 s on average.
func bursts(r *rand.Rand) path {
	left := 0.0
	return func(_, gap float64) float64 {
		left = max(left-gap/5, 0)
		if r.Float64() < gap/2e9 {
			left += 20e6 * r.Float64()
		}
		return left
	}
}

// stands is a queue that fills to 10 ms at a random point of the first half of the test, and then stays.
func stands(r *rand.Rand) path {
	from, takes := 1e9*(0.2+4*r.Float64()), 1e9*(0.01+3*r.Float64())
	return func(at, _ float64) float64 { return 10e6 * min(max(at-from, 0)/takes, 1) }
}

// delays returns how often the mean delay variation is wrong by a tenth of a millisecond. If skew cannot be
// distinguished from a queue nothing is removed, and the tolerance includes the skew's share of the mean.
func delays(scale float64) table {
	const barNs = 100e3
	t := table{title: "Delay variation of datagrams under clock skew",
		about: "A receiver's clock runs faster than the sender's; 1000 datagrams a second with random gaps, after a ramp of 1 s. " +
			"The rate counts means that differ from the true one by more than 0.1 ms. If the skew cannot always be determined (a queue that is rarely or never empty), the limit is " +
			"0.1 ms and half the drift of the clocks: thru then removes nothing, and the result says so.",
		head: []string{"path", "test", "skew", "wrong mean"}}
	for i, p := range []struct {
		name  string
		path  func(*rand.Rand) path
		drift float64 // allowed share of it
	}{{"no queue", empty, 0}, {"random queue, 50% busy", mm1(0.5), 0}, {"random queue, 90% busy", mm1(0.9), 0}, {"random queue, 97% busy", mm1(0.97), 0.5}, {"bursts of other traffic", bursts, 0}, {"standing queue of 10 ms", stands, 0.5}} {
		for _, seconds := range []float64{10, 60} {
			for _, ppm := range []float64{0, 10, 50, 200} {
				x := delayTrial{seconds: seconds, ppm: 0.99 * ppm, every: 1e6, path: p.path} // 200 ppm is the limit itself
				most := barNs + p.drift*(seconds+2)*1e3*ppm                                  // the ramp drifts, too
				wrong := count(200, scale, uint64(100*i)+uint64(ppm)+uint64(seconds)*1000, func(r *rand.Rand) bool { return x.off(r) > most })
				t.add(fmt.Sprintf("%s|%g s|%g ppm", p.name, seconds, ppm), wrong.most(0.05))
			}
		}
	}
	return t
}
