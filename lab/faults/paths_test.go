package faults

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"thru/internal/measure"
	"thru/lab"
	"thru/lab/wire"
)

// pathFaults: paths that limit the rate, drop packets, or reorder them.
func pathFaults() []Fault {
	path, sender := measure.AtPath, measure.AtSender
	const gigabit = 1_000_000_000
	policed := func(rate int64) func(*wire.Impairment) { // a bucket of 30 ms: less would drop what a busy machine bunches
		return func(w *wire.Impairment) { w.PoliceRate, w.PoliceBurst = rate, rate/8*30/1000 }
	}
	lossy := func(share, burst float64) func(*wire.Impairment) {
		return func(w *wire.Impairment) { w.Loss, w.LossBurst, w.Seed = share, burst, 7 }
	}
	return []Fault{
		{Name: "shaper", About: "100 Mb/s with a queue of 2 MB on a link of 1 Gb/s", Forward: is("shaper", path), Args: flags("--link-rate 1G/l2"),
			Build: overWire(both(symmetric(100_000_000, usualRTT), func(w *wire.Impairment) { w.Queue = 2 << 20 }))},
		{Name: "shaper-one-way", About: "only data from the client is shaped", Forward: is("shaper", path), Back: well(), Args: flags("--link-rate 400M/l2"),
			Build: overWire(forward(symmetric(400_000_000, usualRTT), func(w *wire.Impairment) { w.Rate, w.Queue = 50_000_000, 1<<20 }))},
		{Name: "shaper-own", About: "the sender's own qdisc holds 300 Mb/s", Forward: is("shaper", sender), Args: flags("--link-rate 1G/l2"),
			Build: overVeth(lab.Options{}, capped("300mbit", "2mb"))},
		{Name: "shaper-deep", About: "the sender's own qdisc holds 100 Mb/s, before a queue of 20 MB that windows fill", Forward: is("shaper", sender), Args: flags("-t 10"),
			Build: overVeth(lab.Options{}, capped("100mbit", "20mb"))},
		{Name: "shaper-window", About: "100 Mb/s, 20 ms away, with a queue that holds all of a window of 1 MiB", Forward: is("shaper", path), Args: flags("-w 1M"),
			Build: overWire(both(symmetric(100_000_000, usualRTT), func(w *wire.Impairment) { w.Queue = 20 << 20 }))},
		{Name: "policer", About: "100 Mb/s policed on a link of 1 Gb/s", Forward: is("policer", path), Args: flags("--link-rate 1G/l2"),
			Build: overWire(forward(symmetric(gigabit, usualRTT), policed(100_000_000)))},
		{Name: "policer-fast", About: "400 Mb/s policed, 4 ms away", Forward: is("policer", path),
			Build: overWire(forward(symmetric(gigabit, 4*time.Millisecond), policed(400_000_000)))},
		{Name: "loss-0.1", About: "one packet in a thousand is lost", Forward: is("loss", path),
			Build: overWire(forward(usual(), lossy(0.001, 0)))},
		{Name: "loss-1", About: "one packet in a hundred is lost, 10 ms away", Forward: is("loss", path), Args: flags("--link-rate 1G/l2"),
			Build: overWire(forward(symmetric(gigabit, 10*time.Millisecond), lossy(0.01, 0)))},
		{Name: "loss-0.01", About: "one packet in ten thousand is lost on 1 Gb/s over 40 ms", Forward: is("loss", path), Args: flags("--link-rate 1G/l2 -t 5"),
			Build: overWire(forward(symmetric(gigabit, 2*usualRTT), lossy(0.0001, 0)))},
		{Name: "loss-burst", About: "losses of 8 packets, 0.5% of all", Forward: is("loss", path),
			Build: overWire(forward(usual(), lossy(0.005, 8)))},
		{Name: "loss-one-way", About: "only data to the client is lost", Forward: well(), Back: is("loss", path), Args: flags("--link-rate %dM/l2", usualRate/1_000_000),
			Build: overWire(swap(forward(usual(), lossy(0.005, 0))))},
		{Name: "reordering", About: "one packet in twenty is late by 100 ms, more than a round trip with the queue full", Forward: is("reordering", path), Args: flags("--link-rate 1G/l2"),
			Build: overWire(forward(symmetric(gigabit, usualRTT), late(0.05, 100*time.Millisecond)))},
		{Name: "reordering-often", About: "three packets in ten are late by 100 ms", Forward: is("reordering", path),
			Build: overWire(forward(symmetric(gigabit, usualRTT), late(0.3, 100*time.Millisecond)))},
		{Name: "reordering-little", About: "one packet in fifty is overtaken, and the link is full all the same", Forward: with(well(), "reordering"),
			Args: flags("--link-rate 200M/l2"), Build: overWire(forward(usual(), late(0.02, 150*time.Microsecond)))},
		{Name: "token-bucket-soon", About: "350 Mb/s for 3 s, then 100 Mb/s, both ways", Forward: is("token-bucket", path), Back: is("token-bucket", path),
			Build: overWire(both(symmetric(0, 4*time.Millisecond), emptied(350_000_000, 100_000_000, 3)))},
		{Name: "token-bucket-late", About: "300 Mb/s for 10 s, then 130 Mb/s", Forward: is("token-bucket", path), Args: flags("-t 15 --budget 90"),
			Build: overWire(forward(symmetric(0, 4*time.Millisecond), emptied(300_000_000, 130_000_000, 10)))},
		{Name: "token-bucket", About: "250 MB at 500 Mb/s, then 50 Mb/s", Forward: is("token-bucket", path), Args: flags("-t 8"),
			Build: overWire(forward(symmetric(0, usualRTT), func(w *wire.Impairment) {
				w.PeakRate, w.Rate, w.Burst, w.Queue = 500_000_000, 50_000_000, 250<<20, 2<<20
			}))},
	}
}

// emptied is a token bucket that passes a peak rate for so many seconds and its rate after that, with a queue
// of 20 ms.
func emptied(peak, rate, seconds int64) func(*wire.Impairment) {
	return func(w *wire.Impairment) {
		w.PeakRate, w.Rate, w.Burst, w.Queue = peak, rate, (peak-rate)/8*seconds, rate/8*20/1000
	}
}

// late delays a share of the packets.
func late(share float64, by time.Duration) func(*wire.Impairment) {
	return func(w *wire.Impairment) { w.Reorder, w.ReorderDelay, w.Seed = share, by, 7 }
}

// swap exchanges the directions.
func swap(o lab.WiredOptions) lab.WiredOptions {
	o.AtoB, o.BtoA = o.BtoA, o.AtoB
	return o
}

// capped puts a token bucket (tc-tbf(8)) on the client's interface, with a queue of that limit.
func capped(rate, limit string) func(*lab.Pair) {
	return func(p *lab.Pair) {
		p.A.Must("tc", flags("qdisc replace dev %s root tbf rate %s burst 256kb limit %s", lab.DataDev, rate, limit)...)
	}
}

// sizeFaults: packets that are too large for the path.
func sizeFaults() []Fault {
	path, sender := measure.AtPath, measure.AtSender
	tools := []lab.Need{lab.Program("nft"), lab.Program("ethtool")}
	return []Fault{
		{Name: "mtu-black-hole", About: "a router of 1500 between ends of 9000 that says nothing", Forward: is("mtu-black-hole", path), Needs: tools, Build: blackHole(9000, 1500)},
		{Name: "mtu-black-hole-1400", About: "a tunnel of 1400 that says nothing", Forward: is("mtu-black-hole", path), Needs: tools, Build: blackHole(1500, 1400)},
		{Name: "mtu-black-hole-back", About: "only packets to the client are dropped", Forward: &Want{Cause: measure.CauseNone, Or: []string{"link-rate", "shaper"}, Why: "that direction is a healthy plateau"},
			Back: is("mtu-black-hole", path), Build: overWire(swap(forward(usual(), func(w *wire.Impairment) { w.MTU = 1400 })))},
		{Name: "jumbo-mismatch", About: "both ends say 9000, a port between them 1500", Forward: is("jumbo-mismatch", path),
			Build: overWire(jumbo(both(symmetric(1_000_000_000, 2*time.Millisecond), func(w *wire.Impairment) { w.MTU = 1500 })))},
		{Name: "broken-tso", About: "segments that the sender's NIC should have cut are lost", Forward: is("broken-tso", sender), Needs: tools,
			Build: overVeth(lab.Options{}, oversize(1514))},
		{Name: "broken-tso-far", About: "the same over 10 ms at 500 Mb/s", Forward: is("broken-tso", sender), Args: flags("--link-rate 500M/l2"),
			Build: overWire(forward(symmetric(500_000_000, 10*time.Millisecond), func(w *wire.Impairment) { w.DropAbove = 1514 }))},
		{Name: "broken-tso-jumbo", About: "the same with an MTU of 9000", Forward: is("broken-tso", sender), Needs: tools,
			Build: overVeth(lab.Options{MTU: 9000}, oversize(9014))},
	}
}

// jumbo gives both hosts an MTU of 9000.
func jumbo(o lab.WiredOptions) lab.WiredOptions {
	o.MTU = 9000
	return o
}

// blackHole is a router whose link to the server has a smaller MTU than the hosts, and that sends no ICMP
// about it.
func blackHole(ends, middle int) func(testing.TB) *Scene {
	return func(t testing.TB) *Scene {
		t.Helper()
		x := lab.NewRouted(t, ends)
		x.R.IP("link", "set", lab.FarDev, "mtu", fmt.Sprint(middle))
		x.R.Nft("table inet silent {\nchain output {\ntype filter hook output priority 0\nicmp type destination-unreachable drop\nicmpv6 type packet-too-big drop\n}\n}\n")
		return &Scene{Client: x.A, Server: x.B, Target: x.Addr()}
	}
}

// oversize drops packets larger than a frame before the receiver's kernel sees them: segments that the sender
// should have cut.
func oversize(frame int) func(*lab.Pair) {
	return func(p *lab.Pair) {
		p.B.Nft(strings.ReplaceAll(fmt.Sprintf("table netdev broken {\nchain in {\ntype filter hook ingress device DEV priority 0\nmeta length > %d drop\n}\n}\n", frame), "DEV", lab.DataDev))
	}
}
