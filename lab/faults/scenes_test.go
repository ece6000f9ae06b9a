package faults

import (
	"testing"
	"time"

	"thru/lab"
	"thru/lab/wire"
)

// between is the scene of a pair of hosts.
func between(p *lab.Pair) *Scene {
	return &Scene{Client: p.A, Server: p.B, Target: p.Data.B4.String()}
}

// overWire is a scene over a path in user space; then changes its hosts.
func overWire(o lab.WiredOptions, then ...func(p *lab.Pair)) func(testing.TB) *Scene {
	return func(t testing.TB) *Scene {
		t.Helper()
		x := lab.NewWired(t, o)
		for _, change := range then {
			change(x.Pair)
		}
		return between(x.Pair)
	}
}

// overVeth is the same over a veth, which has no delay.
func overVeth(o lab.Options, then ...func(p *lab.Pair)) func(testing.TB) *Scene {
	return func(t testing.TB) *Scene {
		t.Helper()
		p := lab.NewPair(t, o)
		for _, change := range then {
			change(p)
		}
		return between(p)
	}
}

// symmetric is a path with the same rate and half of the round trip in each direction.
func symmetric(rate int64, rtt time.Duration) lab.WiredOptions {
	w := wire.Impairment{Rate: rate, Delay: rtt / 2}
	return lab.WiredOptions{AtoB: w, BtoA: w}
}

// forward changes only the direction from the client.
func forward(o lab.WiredOptions, change func(w *wire.Impairment)) lab.WiredOptions {
	change(&o.AtoB)
	return o
}

// both changes both directions.
func both(o lab.WiredOptions, change func(w *wire.Impairment)) lab.WiredOptions {
	change(&o.AtoB)
	change(&o.BtoA)
	return o
}

// client and server set a kernel parameter of one host.
func client(name, value string) func(*lab.Pair) {
	return func(p *lab.Pair) { p.A.Sysctl(name, value) }
}

func server(name, value string) func(*lab.Pair) {
	return func(p *lab.Pair) { p.B.Sysctl(name, value) }
}
