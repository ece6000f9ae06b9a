package faults

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"thru/internal/measure"
	"thru/lab"
	"thru/lab/wire"
)

// dice chooses the strength of faults at random.
type dice struct{ *rand.Rand }

// of chooses one of the values.
func of[T any](d dice, values ...T) T { return values[d.IntN(len(values))] }

// between chooses a value of a range.
func (d dice) between(low, high float64) float64 { return low + (high-low)*d.Float64() }

// path chooses a healthy path, with its rate and bandwidth-delay product in bytes.
func (d dice) path() (o lab.WiredOptions, rate int64, underWay float64) {
	rate = of(d, int64(60), 150, 300, 700) * 1_000_000
	rtt := time.Duration(of(d, 6, 12, 25, 50, 90)) * time.Millisecond
	return roomy(rate, rtt), rate, float64(rate) / 8 * rtt.Seconds()
}

// families returns a generator for each kind of fault. Each fault costs at least half of the rate.
func families() map[string]func(d dice) Fault {
	path, sender, receiver, tool := measure.AtPath, measure.AtSender, measure.AtReceiver, measure.AtTool
	return map[string]func(d dice) Fault{
		"receive-window": func(d dice) Fault {
			o, rate, underWay := d.path()
			size := int(max(16<<10, underWay*d.between(0.1, 0.5)))
			return vary(o, rate, is("receive-window", receiver), fmt.Sprintf("%d bytes", size), server("net.ipv4.tcp_rmem", fmt.Sprintf("4096 16384 %d", size)))
		},
		"send-buffer": func(d dice) Fault {
			o, rate, underWay := d.path()
			size := int(max(32<<10, underWay*d.between(0.1, 0.4)))
			return vary(o, rate, is("send-buffer", sender), fmt.Sprintf("%d bytes", size), client("net.ipv4.tcp_wmem", fmt.Sprintf("4096 16384 %d", size)))
		},
		"fixed-window": func(d dice) Fault {
			o, rate, underWay := d.path()
			f := vary(o, rate, is("fixed-window", tool), "")
			f.Args = append(f.Args, "-w", fmt.Sprint(int(max(16<<10, underWay*d.between(0.05, 0.2)))))
			return f
		},
		"loss": func(d dice) Fault {
			o, rate, _ := d.path()
			share := of(d, 0.001, 0.003, 0.01, 0.03)
			o = forward(o, func(w *wire.Impairment) { w.Loss, w.LossBurst, w.Seed = share, of(d, 0.0, 0, 3), d.Uint64() })
			return vary(o, rate, is("loss", path), fmt.Sprintf("%g%%", 100*share))
		},
		"policer": func(d dice) Fault {
			o, rate, _ := d.path()
			police := int64(float64(rate) * d.between(0.15, 0.4))
			return vary(forward(o, func(w *wire.Impairment) { w.PoliceRate, w.PoliceBurst = police, police/8*30/1000 }), rate, is("policer", path), fmt.Sprintf("at %d Mb/s", police/1_000_000))
		},
		"shaper": func(d dice) Fault {
			o, rate, _ := d.path()
			shaped, queue := int64(float64(rate)*d.between(0.1, 0.5)), d.between(0.04, 0.2)
			o = forward(o, func(w *wire.Impairment) {
				w.Rate, w.Queue = shaped, int64(float64(shaped)/8*(queue+w.Delay.Seconds()*2))
			})
			return vary(o, rate, is("shaper", path), fmt.Sprintf("at %d Mb/s", shaped/1_000_000))
		},
		"reordering": func(d dice) Fault {
			o, rate, _ := d.path()
			o = forward(o, func(w *wire.Impairment) { late(d.between(0.03, 0.1), 10*w.Delay)(w) })
			return vary(o, rate, is("reordering", path), "")
		},
		"mtu-black-hole": func(d dice) Fault {
			o, rate, _ := d.path()
			mtu := of(d, 1300, 1400, 1492)
			return vary(forward(o, func(w *wire.Impairment) { w.MTU = mtu }), rate, is("mtu-black-hole", path), fmt.Sprint(mtu))
		},
		"jumbo-mismatch": func(d dice) Fault {
			o, rate, _ := d.path()
			mtu := of(d, 1500, 4000, 8900)
			return vary(both(jumbo(o), func(w *wire.Impairment) { w.MTU = mtu }), rate, is("jumbo-mismatch", path), fmt.Sprint(mtu))
		},
		"broken-tso": func(d dice) Fault {
			o, rate, _ := d.path()
			return vary(forward(o, func(w *wire.Impairment) { w.DropAbove = 1514 }), rate, is("broken-tso", sender), "")
		},
		"lag-one-member": func(d dice) Fault {
			o, rate, _ := d.path()
			n := of(d, 2, 3, 5)
			o = both(o, func(w *wire.Impairment) { w.Members, w.MemberRate, w.Rate = n, rate/int64(n), 0 })
			return vary(o, rate, is("lag-one-member", path), fmt.Sprint(n, " members"))
		},
		"window-scaling-off": func(d dice) Fault {
			return vary(roomy(of(d, int64(100), 400)*1_000_000, time.Duration(of(d, 20, 60))*time.Millisecond), 0, is("window-scaling-off", receiver), "", server("net.ipv4.tcp_window_scaling", "0"))
		},
		"healthy": func(d dice) Fault {
			rate := int64(d.between(20, 1500)) * 1_000_000
			rtt := time.Duration(of(d, 0, 1, 5, 15, 40, 100)) * time.Millisecond
			return vary(roomy(rate, rtt), rate, well(), "")
		},
		"window-and-loss": func(d dice) Fault { // the window limits, the loss is rare
			o, rate, underWay := d.path()
			o = forward(o, func(w *wire.Impairment) { w.Loss, w.Seed = 2e-6, d.Uint64() })
			size := int(max(16<<10, underWay*d.between(0.1, 0.3)))
			return vary(o, rate, is("receive-window", receiver), fmt.Sprintf("%d bytes", size), server("net.ipv4.tcp_rmem", fmt.Sprintf("4096 16384 %d", size)))
		},
		"loss-and-window": func(d dice) Fault { // the loss limits, the window is short too
			o, rate, underWay := d.path()
			o = forward(o, func(w *wire.Impairment) { w.Loss, w.Seed = 0.02, d.Uint64() })
			return vary(o, rate, is("loss", path), "2%", server("net.ipv4.tcp_rmem", fmt.Sprintf("4096 16384 %d", int(max(256<<10, underWay)))))
		},
		"tso-and-window": func(d dice) Fault {
			o, rate, underWay := d.path()
			o = forward(o, func(w *wire.Impairment) { w.DropAbove = 1514 })
			return vary(o, rate, is("broken-tso", sender), "", server("net.ipv4.tcp_rmem", fmt.Sprintf("4096 16384 %d", int(max(64<<10, underWay/4)))))
		},
		"shaper-and-window": func(d dice) Fault { // the window limits before the shaper does
			o, rate, underWay := d.path()
			o = forward(o, func(w *wire.Impairment) { w.Rate = rate / 2 })
			size := int(max(16<<10, underWay*d.between(0.1, 0.25)))
			return vary(o, rate, is("receive-window", receiver), fmt.Sprintf("%d bytes", size), server("net.ipv4.tcp_rmem", fmt.Sprintf("4096 16384 %d", size)))
		},
	}
}

// vary is a fault over a path; a rate above 0 is given to thru.
func vary(o lab.WiredOptions, rate int64, want *Want, how string, then ...func(*lab.Pair)) Fault {
	about := fmt.Sprintf("%d Mb/s, %v, %s", max(o.AtoB.Rate, rate)/1_000_000, o.AtoB.Delay+o.BtoA.Delay, how)
	f := Fault{About: about, Forward: want, Build: overWire(o, then...)}
	if rate > 0 {
		f.Args = flags("--link-rate %dM/l2", rate/1_000_000)
	}
	return f
}

// Variants returns one fault of each family with strengths from a seed, since thru must find more than the
// faults of the table.
func Variants(seed uint64) []Fault {
	var all []Fault
	made := families()
	for n, name := range slices.Sorted(maps.Keys(made)) {
		f := made[name](dice{rand.New(rand.NewPCG(seed, uint64(n)))})
		f.Name = fmt.Sprintf("%s-v%d", name, seed)
		all = append(all, f)
	}
	return all
}
