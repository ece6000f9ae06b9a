package faults

import (
	"time"

	"thru/internal/measure"
	"thru/lab"
	"thru/lab/wire"
)

// optionFaults: TCP options that are off, and options of thru that limit the rate.
func optionFaults() []Fault {
	tool, sender, path := measure.AtTool, measure.AtSender, measure.AtPath
	const sack, stamps = "net.ipv4.tcp_sack", "net.ipv4.tcp_timestamps"
	return []Fault{
		{Name: "sack-off", About: "the client has no SACK, on a path that loses 0.2%", Forward: is("sack-off", sender).or("the loss is what it makes worse", "loss"),
			Build: overWire(forward(usual(), func(w *wire.Impairment) { w.Loss, w.LossBurst, w.Seed = 0.002, 3, 7 }), client(sack, "0"))},
		{Name: "sack-off-queue", About: "no SACK where only a short queue loses", Forward: is("sack-off", sender).or("a queue too short for cubic", "loss"),
			Args: flags("--link-rate 200M/l2"), Build: overWire(both(usual(), func(w *wire.Impairment) { w.Queue = 100 << 10 }), client(sack, "0"))},
		{Name: "timestamps-off", About: "no timestamps: nothing to lose by it on a healthy link", Forward: with(well(), "timestamps-off"), Args: flags("--link-rate 200M/l2"),
			Build: overWire(usual(), client(stamps, "0"))},
		{Name: "mss-clamp", About: "a box rewrites the MSS to 536", Forward: is("mss-clamp", path), Args: flags("--link-rate 200M/l2"),
			Build: overWire(both(usual(), func(w *wire.Impairment) { w.ClampMSS = 536 }))},
		{Name: "app-limited-64", About: "-l 64", Forward: is("app-limited", tool), Args: flags("-l 64"), Build: overVeth(lab.Options{})},
		{Name: "app-limited-1K", About: "-l 1K", Forward: is("app-limited", tool), Args: flags("-l 1K"), Build: overVeth(lab.Options{})},
		{Name: "paced", About: "bbr over a veth", Forward: is("paced", sender), Args: flags("-C bbr"), Build: overVeth(lab.Options{}, ownControl)},
		{Name: "slow-convergence", About: "the first 5 s of 100 Mb/s over 600 ms", Forward: &Want{Cause: "slow-convergence"}, Args: flags("-t 5 -O 0.1"),
			Build: overWire(roomy(100_000_000, 600*time.Millisecond))},
	}
}

// ownControl leaves the congestion control to the sockets, since the attribute of a route would override
// theirs.
func ownControl(p *lab.Pair) {
	p.A.IP("route", "replace", "10.77.0.0/24", "dev", p.Data.Dev, "src", p.Data.A4.String())
	p.B.IP("route", "replace", "10.77.0.0/24", "dev", p.Data.Dev, "src", p.Data.B4.String())
}

// with wants a second cause too.
func with(w *Want, cause string) *Want {
	w.With = cause
	return w
}
