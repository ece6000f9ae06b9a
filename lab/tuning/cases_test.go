package tuning

import (
	"slices"
	"testing"
	"time"

	"thru/lab"
	"thru/lab/wire"
)

// Cases is the table: each fault alone, then several at once.
func Cases() []Case {
	return slices.Concat(longCases(), lossyCases(), fastCases(), hiddenCases(), jumboCases(), healthyCases())
}

// Rates and round trips of the paths: fast enough that a bad setting limits, slow enough that no CPU of a
// small machine does.
const (
	longRate = 200_000_000
	longRTT  = 20 * time.Millisecond
	fastRate = 1_000_000_000
)

// roomy is a path whose queue holds a bandwidth-delay product, and the bursts of a busy machine.
func roomy(rate int64, rtt time.Duration) lab.WiredOptions {
	w := wire.Impairment{Rate: rate, Delay: rtt / 2, Queue: int64(float64(rate) / 8 * max(rtt, 25*time.Millisecond).Seconds())}
	return lab.WiredOptions{AtoB: w, BtoA: w}
}

// overWire is a path in user space.
func overWire(o lab.WiredOptions) func(testing.TB) *Scene {
	return func(t testing.TB) *Scene {
		t.Helper()
		x := lab.NewWired(t, o)
		s := newScene(t, x.Pair, x.Wire)
		s.impairments = [2]wire.Impairment{o.AtoB, o.BtoA}
		return s
	}
}

// overVeth is a link without delay.
func overVeth(o lab.Options) func(testing.TB) *Scene {
	return func(t testing.TB) *Scene {
		t.Helper()
		return newScene(t, lab.NewPair(t, o), nil)
	}
}

// twoQueues is a link without delay that uses two queues; a veth starts with one.
func twoQueues(o lab.Options) func(testing.TB) *Scene {
	return func(t testing.TB) *Scene {
		t.Helper()
		s := overVeth(o)(t)
		for _, h := range s.Hosts() {
			h.Must("ethtool", words("-L %s rx 2 tx 2", lab.DataDev)...)
		}
		return s
	}
}

// long is a path that needs a large window.
func long(args ...string) Case {
	return Case{Name: "long", Build: overWire(roomy(longRate, longRTT)), Args: args}
}

// longCases: buffers and lost segments on a long path.
func longCases() []Case {
	const oneWay = "--one-way"
	return []Case{
		named(long(oneWay), smallReceive),
		named(long(oneWay), smallSend),
		named(long(oneWay), brokenTSO),
		named(long(oneWay), noScaling),
		named(long(), smallReceive, smallSend, smallReceiveBack),
		named(long(oneWay), smallReceive, smallSend, noSACK, idleBuffers, shortQueue),
		named(long(oneWay), brokenTSO, smallReceive, smallSend, idleBuffers),
	}
}

// lossyCases: a path with 0.1% packet loss, on which only a congestion control that does not respond to each
// loss is fast.
func lossyCases() []Case {
	o := roomy(longRate, longRTT)
	o.AtoB.Loss, o.AtoB.Seed, o.Congestion = 0.001, 7, "bbr"
	lossy := Case{Name: "lossy", Build: overWire(o), Args: []string{"--one-way"}}
	return []Case{
		named(lossy, wrongControl),
		named(lossy, wrongControl, smallReceive, smallSend),
	}
}

// fastCases: a link on which the cost of each packet limits.
func fastCases() []Case {
	tools := []lab.Need{lab.Program("ethtool"), lab.Program("nft")}
	tso := Case{Name: "fast", Build: overVeth(lab.Options{Rate: fastRate}), Args: []string{"--one-way"}, Needs: tools}
	cpu := Case{Name: "faster", Build: twoQueues(lab.Options{Rate: 10 * fastRate}), Args: []string{"--one-way"}, Needs: tools}
	return []Case{
		named(tso, brokenTSONear),
		named(cpu, offloadsOff),
		named(cpu, oneQueue),
		named(cpu, offloadsOff, oneQueue, idleBuffers),
	}
}

// hiddenCases: several faults that hide each other.
func hiddenCases() []Case {
	hidden := Case{Name: "hidden", Build: overVeth(lab.Options{Rate: fastRate}), Needs: []lab.Need{lab.Program("ethtool"), lab.Program("nft")}}
	return []Case{
		named(hidden, tinySend, jumboHere, noSegmentation, tinyReceive, usualControl),
		named(hidden, brokenTSONear, noSACK, littleReceive, jumboHere),
	}
}

// jumboCases: frames of 9000 bytes.
func jumboCases() []Case {
	jumbo := Case{Name: "jumbo", Build: overVeth(lab.Options{MTU: 9000, Rate: fastRate}), Args: []string{"--one-way"}, Needs: []lab.Need{lab.Program("ethtool")}}
	return []Case{
		named(jumbo, oneEnd),
		named(jumbo, oneEnd, offloadsOff, idleBuffers),
	}
}

// healthyCases: nothing that costs much is wrong. Settings without cures must stay.
func healthyCases() []Case {
	link := Case{Name: "healthy-link", Build: overVeth(lab.Options{Rate: fastRate})}
	path := long()
	path.Name = "healthy-long"
	return []Case{
		link,
		path,
		named(path, noSACK, shortQueue),
	}
}
