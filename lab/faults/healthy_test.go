package faults

import (
	"fmt"
	"testing"
	"time"

	"thru/internal/measure"
	"thru/lab"
	"thru/lab/wire"
)

// healthy returns paths with nothing wrong: with a rate that is given, with one that is not, and with no
// limit but the CPU.
func healthy() []Fault {
	const mega, giga = int64(1_000_000), int64(1_000_000_000)
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	var all []Fault
	for _, x := range []struct {
		rate int64
		rtt  time.Duration
	}{
		{50 * mega, ms(20)}, {50 * mega, ms(80)}, {200 * mega, ms(2)}, {200 * mega, ms(20)}, {200 * mega, ms(80)},
		{giga, ms(2)}, {giga, ms(20)}, {giga, ms(80)}, {2500 * mega, ms(2)}, {2500 * mega, ms(20)},
	} {
		all = append(all, Fault{Name: fmt.Sprintf("healthy-%dM-%dms", x.rate/mega, x.rtt/time.Millisecond), About: "nothing, and its rate is known",
			Forward: well(), Args: flags("--link-rate %dM/l2", x.rate/mega), Build: overWire(roomy(x.rate, x.rtt))})
	}
	for _, rate := range []int64{50 * mega, giga, 2500 * mega} {
		all = append(all, Fault{Name: fmt.Sprintf("healthy-%dM-0ms", rate/mega), About: "nothing, and its rate is known",
			Forward: well(), Back: well(), Args: flags("--link-rate %dM/l2", rate/mega), Build: overVeth(lab.Options{Rate: rate})})
	}
	hosts := func() *Want {
		return &Want{Cause: measure.CauseNone, Or: []string{"sender-cpu", "receiver-cpu", "single-flow"}, Why: "without a link that binds, a CPU may"}
	}
	return append(all,
		Fault{Name: "healthy-streams", About: "nothing; 4 streams", Forward: well(), Args: flags("-P 4 --link-rate 200M/l2"), Build: overWire(roomy(usualRate, usualRTT))},
		Fault{Name: "healthy-bbr", About: "nothing; bbr", Forward: well(), Args: flags("--link-rate 200M/l2"), Build: overWire(withControl(roomy(usualRate, usualRTT), "bbr"))},
		Fault{Name: "healthy-jumbo", About: "nothing; an MTU of 9000", Forward: well(), Args: flags("--link-rate 1G/l2"), Build: overVeth(lab.Options{MTU: 9000, Rate: giga})},
		Fault{Name: "healthy-window", About: "nothing; the window is just what the link needs", Forward: well(), Args: flags("--link-rate 1G/l2"),
			Build: overWire(roomy(giga, ms(10)), server("net.ipv4.tcp_rmem", "4096 131072 3865536"))},
		Fault{Name: "healthy-udp", About: "nothing; datagrams at half the rate", Forward: &Want{Cause: measure.CauseNone, Or: []string{"app-limited", "link-rate"}, Why: "it is the rate that was asked for"},
			Args: flags("-u -b 100M --link-rate 200M/l2"), Build: overWire(roomy(usualRate, usualRTT))},
		Fault{Name: "unstated-200M-20ms", About: "nothing, and nobody knows the rate", Forward: full(), Build: overWire(roomy(usualRate, usualRTT))},
		Fault{Name: "unstated-1000M-0ms", About: "nothing, and nobody knows the rate", Forward: full(), Build: overVeth(lab.Options{Rate: giga})},
		Fault{Name: "veth", About: "nothing; no cap", Forward: hosts(), Build: overVeth(lab.Options{})},
		Fault{Name: "loopback", About: "nothing; both ends on one host", Forward: hosts(), Args: flags("-C cubic"), Build: oneHost},
		Fault{Name: "loopback-paced", About: "bbr over loopback", Forward: is("paced", measure.AtSender), Args: flags("-C bbr"), Build: oneHost},
	)
}

// roomy is a path whose queue holds a bandwidth-delay product, as a router's should, and the bursts of a busy
// machine.
func roomy(rate int64, rtt time.Duration) lab.WiredOptions {
	held := max(rtt, 25*time.Millisecond)
	return both(symmetric(rate, rtt), func(w *wire.Impairment) { w.Queue = int64(float64(rate) / 8 * held.Seconds()) })
}

// withControl sets the congestion control of both hosts.
func withControl(o lab.WiredOptions, name string) lab.WiredOptions {
	o.Congestion = name
	return o
}

// oneHost is a host that measures itself.
func oneHost(t testing.TB) *Scene {
	t.Helper()
	return &Scene{Client: lab.New(t).Host("a")}
}
